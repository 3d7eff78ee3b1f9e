"""Every public measure on 25 queries x 1,000 documents, in a table: pytest tests/bench --benchmark-only.

``python -m suite`` times the same beside other packages, at larger sizes too, with memory and growth.
"""

import time

import pytest
from suite.synthetic import Collection, Shape
from suite.ways import MEASURES, SOURCES, ways

pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.fixture(scope="module", params=MEASURES)
def collection(request, tmp_path_factory):
    depth = 1 if request.param == "linking" else 1000
    return Collection(Shape(request.param, 25, depth, ids="clueweb"), tmp_path_factory.mktemp(request.param))


@pytest.mark.filterwarnings("ignore:.* intervals are withheld")
@pytest.mark.parametrize("source", SOURCES)
def test_measures(benchmark, collection, source):
    """One after another, each of the kind's."""
    ours = {way.measure: way for way in reversed(ways(collection.shape.kind)) if way.is_ours}
    calls = [ours[text].ready(collection, source) for text in MEASURES[collection.shape.kind]]
    result = benchmark.pedantic(lambda: [call() for call in calls], rounds=1, warmup_rounds=0)
    assert all(result)
    benchmark.extra_info["measures"] = list(MEASURES[collection.shape.kind])
