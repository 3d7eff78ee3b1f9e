"""Mergeable statistics: bitwise the same intervals for any split of the topics."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import resamples, stream
from vbterrier.kernels.vb import vb
from vbterrier.stats.matches import Statistic
from vbterrier.stats.topic_intervals import intervals
from vbterrier.stats.topic_statistics import PooledScores, TopicStatistics


def table(n_topics=60, seed=0):
    rng = np.random.default_rng(seed)
    parts = [
        pd.DataFrame({"name": name, "qid": [f"q{t}" for t in range(n)], "measure": measure, "value": rng.beta(2, 5, n)})
        for n, name, measure in ((n_topics, "b", "AP"), (n_topics - 1, "a", "AP"), (n_topics - 2, "a", "P@5"))
    ]
    return pd.concat([*parts, parts[0].assign(measure="Success@5", value=1.0)], ignore_index=True)


def merged(parts, **options):
    return functools.reduce(TopicStatistics.merge, [TopicStatistics(**options).add(part) for part in parts])


@pytest.mark.parametrize("n_parts", [1, 3, 7, None], ids=lambda n: f"{n} parts of topics" if n else "runs")
def test_parts_in_any_order_give_the_whole(n_parts):
    values, options = table(), {"n_resamples": 300, "seed": 4}
    whole = TopicStatistics(**options).add(values).to_frame(0.9)
    qids = np.random.default_rng(n_parts).permutation(values["qid"].unique())
    part = values["qid"].map({qid: i for i, qid in enumerate(qids)})
    groups = values.groupby(part % n_parts if n_parts else ["name", "measure"])
    parts = [rows.sample(frac=1, random_state=1) for _, rows in groups]
    sent = [pickle.loads(pickle.dumps(merged([rows], **options))) for rows in parts]
    every = merged(parts, **options), merged(parts[::-1], **options), functools.reduce(TopicStatistics.merge, sent)
    for result in every:
        assert_frame_equal(result.to_frame(0.9), whole, check_exact=True)


def test_ends_are_those_of_intervals_by_name():
    values = table()
    result = TopicStatistics(n_resamples=300, seed=4).add(values).to_frame(0.9)
    expected = intervals(values, method="poisson", level=0.9, n_resamples=300, seed=4)
    expected = expected.sort_values(["name", "measure"], ignore_index=True)
    ends = ["low", "high"]
    assert_frame_equal(result[ends], expected[ends], check_exact=True)
    assert_frame_equal(result, expected, rtol=1e-14)
    same = result[result["measure"] == "Success@5"].iloc[0]
    assert (same["low"], same["value"], same["high"]) == (pytest.approx(0.05 ** (1 / 60)), 1.0, 1.0)


def test_merging_leaves_both_statistics_unchanged():
    values = table()
    one, two = (TopicStatistics(n_resamples=50).add(part) for part in (values[:20], values[20:40]))
    before = one.to_frame(), two.to_frame()
    assert one.merge(two).to_frame()["n_qids"].tolist() == [40]
    assert_frame_equal(one.to_frame(), before[0])
    assert_frame_equal(two.to_frame(), before[1])


def test_one_topic_and_none_have_no_interval():
    statistics = TopicStatistics(n_resamples=50).add(table()[:1])
    with pytest.warns(DegenerateWarning, match="at least two"):
        result = statistics.to_frame()
    assert result[["low", "high"]].isna().all(axis=None)
    assert result["n_qids"].tolist() == [1]
    assert not len(TopicStatistics().to_frame())


def test_two_topics_leave_out_resamples_without_any():
    values = table()[:2]
    result = intervals(values, method="poisson", n_resamples=400)
    low, high = sorted(values["value"])
    assert (result["low"][0], result["high"][0]) == pytest.approx((low, high))
    assert_frame_equal(TopicStatistics(n_resamples=400).add(values).to_frame(), result, rtol=1e-14)


def test_large_values_and_warnings_of_empty_resamples_do_not_leak():
    # Warnings are errors in all tests.
    values = pd.DataFrame({"name": "a", "qid": ["1", "2"], "measure": "n", "value": [1e12, -1e-12]})
    assert TopicStatistics(n_resamples=100).add(values).to_frame()["value"][0] == pytest.approx(5e11, rel=1e-15)


QIDS = [f"q{n}" for n in range(30)]
SCORES = {
    "ES@5": Statistic("ES", 5),
    "VB@5": Statistic("VB", 5),
    "VB(variance='intent')@5": Statistic("VB", 5, variance="intent"),
    "VarPenalty@5": Statistic("VarPenalty", 5),
    "TopIntent@5": Statistic("TopIntent", 5),
}


def moments(n_systems=3, n=30, seed=0):
    """ES, the second moment and the most probable intent of queries with three intents of random gains."""
    rng = np.random.default_rng(seed)
    prob, gain = rng.dirichlet(np.ones(3), n), rng.random((n_systems, n, 3)) * (rng.random((n_systems, n, 3)) < 0.6)
    top = np.take_along_axis(gain, np.broadcast_to(prob.argmax(axis=1)[:, None], (n_systems, n, 1)), axis=2)[..., 0]
    return np.stack([(prob * gain).sum(-1), (prob * gain**2).sum(-1), top], axis=1)[:, None]


def by_hand(rows):
    """The five scores from rows of moments of one system: shape (n, 3)."""
    success, square, top = rows.mean(axis=0)
    bernoulli = success * (1 - success)
    spread = square - success**2
    return [success, success - bernoulli**0.5, success - spread**0.5, bernoulli**0.5, top]


def test_pooled_scores_and_their_resamples_by_a_loop():
    sums = moments()
    result = PooledScores(sums, ["a", "b", "c"], SCORES, QIDS).intervals(n_resamples=40, level=0.8, seed=3)
    order = np.argsort(QIDS)
    (counts,) = resamples(30, 40, stream(3, ""))
    for place, name in enumerate("abc"):
        rows = sums[place, 0].T[order]
        part = result[result["name"] == name]
        assert part["measure"].tolist() == list(SCORES)
        assert part["value"].tolist() == pytest.approx(by_hand(rows))
        drawn = [by_hand(np.repeat(rows, count.astype(int), axis=0)) for count in counts]
        expected = np.quantile(drawn, [0.1, 0.9], axis=0).T
        # Functions of ES alone: their range within the limits of ES.
        grid = np.linspace(*expected[0], 10_001)
        for column, scores in ((1, grid - np.sqrt(grid * (1 - grid))), (3, np.sqrt(grid * (1 - grid)))):
            expected[column] = scores.min(), scores.max()
        assert part[["low", "high"]].to_numpy() == pytest.approx(expected, abs=1e-7)
    about = result[["level", "method", "n_qids", "n_resamples", "seed"]].drop_duplicates()
    assert about.to_numpy().tolist() == [[0.8, "topics (percentile)", 30, 40, 3]]


@pytest.mark.parametrize("method", ["percentile", "bca", "normal"])
def test_pooled_success_is_a_mean_over_queries(method):
    sums = moments()
    rows = [
        (name, qid, measure, sums[place, 0, row, at])
        for place, name in enumerate("abc")
        for measure, row in (("ES@5", 0), ("TopIntent@5", 2))
        for at, qid in enumerate(QIDS)
    ]
    values = pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])
    options = {"method": method, "n_resamples": 200, "seed": 5}
    result = PooledScores(sums, list("abc"), SCORES, QIDS).intervals(**options)
    linear = result[result["measure"].isin(values["measure"])].reset_index(drop=True)
    assert_frame_equal(linear, intervals(values, **options), rtol=1e-10)
    turned = PooledScores(sums[..., ::-1], list("abc"), SCORES, QIDS[::-1]).intervals(**options)
    assert_frame_equal(turned, result, check_exact=True)


def test_pooled_differences_and_their_test():
    sums = moments(2, 8, seed=4)
    pooled = PooledScores(sums, ["a", "b"], SCORES, QIDS[:8])
    pairs = pooled.comparisons(n_resamples=20_000, seed=1)
    a, b = sums[0, 0].T, sums[1, 0].T
    assert pairs["diff"].tolist() == pytest.approx(np.subtract(by_hand(a), by_hand(b)))
    sizes = []
    for bits in range(2**8):
        swap = np.array([bits >> at & 1 for at in range(8)], dtype=bool)[:, None]
        sizes.append(np.abs(np.subtract(by_hand(np.where(swap, b, a)), by_hand(np.where(swap, a, b)))))
    exact = (np.array(sizes) >= sizes[0] - 1e-12).mean(axis=0)
    assert pairs["p_value"].to_numpy() == pytest.approx(exact, abs=0.015)
    assert (pairs["p_adjusted"] == pairs["p_value"]).all()
    turned = PooledScores(sums[::-1], ["b", "a"], SCORES, QIDS[:8]).comparisons(n_resamples=50, seed=1)
    same = pooled.comparisons(n_resamples=50, seed=1)
    assert turned["diff"].to_numpy() == pytest.approx(-same["diff"].to_numpy())
    assert turned["low"].to_numpy() == pytest.approx(-same["high"].to_numpy())
    assert not len(PooledScores(sums[:1], ["a"], SCORES, QIDS[:8]).comparisons())
    three = PooledScores(moments(), list("abc"), SCORES, QIDS).comparisons(baseline="b", n_resamples=99)
    assert three[["name_a", "name_b"]].drop_duplicates().to_numpy().tolist() == [["a", "b"], ["c", "b"]]
    assert (three["p_adjusted"] >= three["p_value"]).all()
    assert (three["p_adjusted"] > three["p_value"]).any()


def test_pooled_scores_without_spread_between_queries():
    sums = np.array([[[[1.0] * 20] * 3], [[[0.0] * 20] * 3]])
    scores = {"ES": Statistic("ES"), "VB": Statistic("VB"), "VarPenalty": Statistic("VarPenalty")}
    result = PooledScores(sums, ["all", "none"], scores, QIDS[:20]).intervals()
    least = 0.025 ** (1 / 20)
    rows = result.set_index(["name", "measure"])[["low", "value", "high"]]
    assert rows.loc[("all", "ES")].tolist() == pytest.approx([least, 1, 1])
    assert rows.loc[("all", "VB")].tolist() == pytest.approx([least - (least * (1 - least)) ** 0.5, 1, 1])
    # With no success, VB falls to its minimum before it rises again.
    assert rows.loc[("none", "VB")].tolist() == pytest.approx([(1 - 2**0.5) / 2, 0, 0])
    assert rows.loc[("none", "VarPenalty")].tolist() == pytest.approx([0, 0, (least * (1 - least)) ** 0.5])
    with pytest.warns(DegenerateWarning, match="at least two"):
        one = PooledScores(sums[..., :1], ["all", "none"], scores, QIDS[:1]).intervals()
    assert one["low"].isna().all()
    assert PooledScores(sums[..., :1], ["all", "none"], scores, QIDS[:1]).comparisons()["low"].isna().all()


@pytest.mark.nightly
@pytest.mark.parametrize("prob", [(1 - 0.5**0.5) / 2, 0.7])
@pytest.mark.parametrize("method", ["percentile", "bca", "normal"])
def test_pooled_intervals_cover_the_score_of_the_population(method, prob):
    """Of 100 queries with one intent each; VB is at its minimum in one population."""
    draws, n_simulations = stream(1, "pooled coverage"), 1000
    served = (draws.random((n_simulations, 1, 1, 100)) < prob).astype(float)
    names = [str(n) for n in range(n_simulations)]
    qids, scores = [f"q{n:02d}" for n in range(100)], {"VB": Statistic("VB")}
    pooled = PooledScores(np.repeat(served, 3, axis=2), names, scores, qids)
    result = pooled.intervals(method=method, n_resamples=999)
    truth = vb(np.array(prob), np.array(prob * (1 - prob)), 1.0)
    covered = int(((result["low"] <= truth) & (truth <= result["high"])).sum())
    # Nominally 950; the simulated systems share the resamples.
    assert 915 <= covered <= 970
