"""How long 1,000 queries take to draw, next to a loop and to plain pandas: pytest tests/bench --benchmark-only.

Two million mentions of 200,000 documents.
"""

import numpy as np
import pandas as pd
import pytest

from vbterrier.design.profile import query_profile
from vbterrier.design.sampling import sample_queries

N_ROWS, N_DOCUMENTS, N_QUERIES = 2_000_000, 200_000, 1000


@pytest.fixture(scope="module")
def corpus():
    draw = np.random.default_rng(0)
    document, mention = np.sort(draw.integers(N_DOCUMENTS, size=N_ROWS)), draw.zipf(1.5, N_ROWS).clip(max=1_000_000)
    frame = pd.DataFrame({"document": document, "mention": mention, "size": draw.random(N_ROWS) + 0.1})
    frame["docno"], frame["mention"] = frame["document"].map("D{:07d}".format), frame["mention"].map("name {}".format)
    return frame[["docno", "mention", "size"]].drop_duplicates(["docno", "mention"])


def with_pandas(corpus, unit):
    """One query of each unit, then n of these: every unit is drawn from."""
    distinct = corpus.drop_duplicates(["docno", "mention"])
    return distinct.groupby(unit).sample(1, random_state=0).sample(N_QUERIES, random_state=0)


def with_a_loop(corpus, unit):
    distinct = corpus.drop_duplicates(["docno", "mention"])
    draw, other = np.random.default_rng(0), {"docno": "mention", "mention": "docno"}[unit]
    queries = {}
    for one, two in zip(distinct[unit], distinct[other], strict=True):
        queries.setdefault(one, []).append(two)
    return [(one, draw.choice(queries[one])) for one in draw.choice(list(queries), N_QUERIES, replace=False)]


@pytest.fixture(scope="module")
def seconds():
    """What each way took, so that those that come later say how many times the first one's time they need."""
    return {}


def compared(benchmark, seconds, name, first, call):
    found = benchmark.pedantic(call, rounds=3, warmup_rounds=1)
    seconds[name] = benchmark.stats.stats.min
    benchmark.extra_info[f"times {first}"] = round(seconds[name] / seconds.get(first, np.nan), 2)
    print(benchmark.extra_info)
    return found


@pytest.mark.parametrize(("unit", "method"), [("docno", "random-document"), ("mention", "random-mention")])
@pytest.mark.parametrize("way", ["sample_queries", "pandas groupby", "loop"])
def test_drawing(benchmark, corpus, seconds, way, unit, method):
    ways = {
        "sample_queries": lambda: sample_queries(corpus, N_QUERIES, method=method),
        "pandas groupby": lambda: with_pandas(corpus, unit),
        "loop": lambda: with_a_loop(corpus, unit),
    }
    found = compared(benchmark, seconds, f"{way}, {method}", f"sample_queries, {method}", ways[way])
    assert len(found) == N_QUERIES


def test_drawing_by_weight_from_strata(benchmark, corpus, seconds):
    options = {"method": "weighted", "weights": "size", "strata": 3}
    name = "sample_queries, random-document"
    found = compared(benchmark, seconds, "weighted", name, lambda: sample_queries(corpus, N_QUERIES, **options))
    assert len(found) == N_QUERIES


def test_the_profile_of_a_sample(benchmark, corpus, seconds):
    sample, name = sample_queries(corpus, N_QUERIES), "sample_queries, random-document"
    found = compared(benchmark, seconds, "profile", name, lambda: query_profile(sample, corpus))
    assert found["n"].iloc[0] == N_QUERIES
