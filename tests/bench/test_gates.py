"""Gates of speed: ratios to peers in one process, in CPU seconds, each below what was reached when it was set.

They use pytest-benchmark's fixture, so that other runs of the tests leave them out: ``pytest tests/bench
--benchmark-only``, the last step of ``.ci/run``.
"""

import pytest

from vbterrier.evaluate.bench.pairs import readings
from vbterrier.evaluate.bench.synthetic import Collection, Shape
from vbterrier.evaluate.bench.timing import alternating, ratio
from vbterrier.evaluate.bench.ways import way_named

N_QUERIES, DEPTH, ROUNDS = 250, 1000, 3
NDCG, ALPHA = "ir_measures nDCG@10", "ir_measures alpha_nDCG@10"
# At least so many times faster than the peer; what is aimed at stands in vbterrier.evaluate.bench.targets.
GATES = {
    ("judged", "vbterrier.score nDCG@10", NDCG): 7,
    ("judged", "vbterrier.score BNDCG@10", NDCG): 6,
    ("judged", "vbterrier BNDCG@10", NDCG): 9,
    ("judged", "vbterrier BNDCG@10", "pytrec_eval ndcg_cut_10"): 1.9,
    ("intents", "vbterrier ES@10", ALPHA): 9,
    ("intents", "vbterrier VB@10", ALPHA): 9,
}
# At most so many times the time of pyarrow, which checks nothing: twice what is aimed at.
READING = 2.6


def measured(kind, folder):
    """The times of all ways that gates name for a kind of collection, alternating."""
    names = sorted({name for own, *pair in GATES if own == kind for name in pair})
    collection = Collection(Shape(kind, N_QUERIES, DEPTH), folder)
    times, failed = alternating({name: way_named(name).ready(collection) for name in names}, ROUNDS)
    assert not failed
    return times


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in GATES}))
def test_measures_are_faster_than_peers(benchmark, tmp_path, kind):
    times = benchmark.pedantic(measured, (kind, tmp_path), rounds=1)
    found = {
        f"{ours} against {theirs}": (ratio(times[theirs].cpu, times[ours].cpu)["median"], least)
        for (own, ours, theirs), least in GATES.items()
        if own == kind
    }
    benchmark.extra_info.update({name: round(times_faster, 1) for name, (times_faster, _) in found.items()})
    print(benchmark.extra_info)
    assert all(times_faster >= least for times_faster, least in found.values()), found


def test_reading_a_run_takes_at_most_twice_the_target(benchmark, tmp_path):
    calls = readings(Collection(Shape("judged", N_QUERIES, DEPTH), tmp_path))
    times, failed = benchmark.pedantic(alternating, (calls, ROUNDS), rounds=1)
    assert not failed
    found = ratio(times["ours"].cpu, times["other"].cpu)
    print(found)
    assert found["median"] <= READING, found
