"""Mergeable statistics: bitwise the same intervals for any split of the topics."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.stats.topic_intervals import intervals, topics_intervals
from vbterrier.stats.topic_statistics import TopicStatistics


def table(n_topics=60, seed=0):
    rng = np.random.default_rng(seed)
    parts = [
        pd.DataFrame({"name": name, "qid": [f"q{t}" for t in range(n_topics - skipped)], "measure": measure}).assign(
            value=lambda rows: rng.beta(2, 5, len(rows))
        )
        for skipped, (name, measure) in enumerate([("b", "AP"), ("a", "AP"), ("a", "P@5")])
    ]
    return pd.concat([*parts, parts[0].assign(measure="Success@5", value=1.0)], ignore_index=True)


def merged(parts, **options):
    return functools.reduce(TopicStatistics.merge, [TopicStatistics(**options).add(part) for part in parts])


@pytest.mark.parametrize("n_parts", [1, 3, 7, None], ids=lambda n: f"{n} parts of topics" if n else "runs")
def test_parts_in_any_order_give_the_whole(n_parts):
    values, options = table(), {"n_resamples": 300, "seed": 4}
    whole = TopicStatistics(**options).add(values).intervals(0.9)
    qids = np.random.default_rng(n_parts).permutation(values["qid"].unique())
    part = values["qid"].map({qid: i for i, qid in enumerate(qids)})
    groups = values.groupby(part % n_parts if n_parts else ["name", "measure"])
    parts = [rows.sample(frac=1, random_state=1) for _, rows in groups]
    sent = [pickle.loads(pickle.dumps(merged([rows], **options))) for rows in parts]
    for found in (
        merged(parts, **options),
        merged(parts[::-1], **options),
        functools.reduce(TopicStatistics.merge, sent),
    ):
        assert_frame_equal(found.intervals(0.9), whole, check_exact=True)


def test_ends_are_those_of_intervals_by_name():
    values = table()
    found = TopicStatistics(n_resamples=300, seed=4).add(values).intervals(0.9)
    expected = intervals(values, method="poisson", level=0.9, n_resamples=300, seed=4)
    expected = expected.sort_values(["name", "measure"], ignore_index=True)
    ends = ["low", "high"]
    assert_frame_equal(found[ends], expected[ends], check_exact=True)
    assert_frame_equal(found, expected, rtol=1e-14)
    same = found[found["measure"] == "Success@5"].iloc[0]
    assert (same["low"], same["value"], same["high"]) == (pytest.approx(0.05 ** (1 / 60)), 1.0, 1.0)


def test_merging_changes_neither():
    values = table()
    one, two = (TopicStatistics(n_resamples=50).add(part) for part in (values[:20], values[20:40]))
    before = one.intervals(), two.intervals()
    assert one.merge(two).intervals()["n_qids"].tolist() == [40]
    assert_frame_equal(one.intervals(), before[0])
    assert_frame_equal(two.intervals(), before[1])


def test_one_topic_and_none_have_no_interval():
    statistics = TopicStatistics(n_resamples=50).add(table()[:1])
    with pytest.warns(DegenerateWarning, match="at least two"):
        found = statistics.intervals()
    assert found[["low", "high"]].isna().all(axis=None)
    assert found["n_qids"].tolist() == [1]
    assert not len(TopicStatistics().intervals())


def test_two_topics_leave_out_resamples_without_any():
    values = table()[:2]
    found = intervals(values, method="poisson", n_resamples=400)
    low, high = sorted(values["value"])
    assert (found["low"][0], found["high"][0]) == pytest.approx((low, high))
    assert_frame_equal(TopicStatistics(n_resamples=400).add(values).intervals(), found, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: TopicStatistics(seed=1).merge(TopicStatistics(seed=2)),
            ParameterError,
            "wanted the same n_resamples and seed",
        ),
        (lambda: TopicStatistics(n_resamples=0), ParameterError, "n_resamples=0"),
        (lambda: TopicStatistics(seed=-1), ParameterError, "seed=-1"),
        (lambda: TopicStatistics().intervals(95), ParameterError, "level=95"),
        (lambda: TopicStatistics().add(table().assign(value=np.inf)), InputError, "infinite"),
        (lambda: TopicStatistics().add(pd.concat([table(), table()])), InputError, "repeats"),
    ],
)
def test_what_cannot_be_merged_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("n", [25, 250])
def test_coverage_is_that_of_percentiles_or_better(n):
    rng = np.random.default_rng(n)
    hits = dict.fromkeys(("percentile", "poisson"), 0)
    for seed in range(4):
        values = rng.beta(2, 3, (n, 250)) * (rng.random((n, 250)) < 0.5)
        for method in hits:
            ends = topics_intervals(values, method=method, n_resamples=499, seed=seed)
            hits[method] += int(((ends.low <= 0.2) & (ends.high >= 0.2)).sum())
    # Four standard errors around the result of 10,000 samples.
    assert hits["poisson"] / 1000 == pytest.approx(0.937 if n == 25 else 0.945, abs=0.03)
    assert abs(hits["poisson"] - hits["percentile"]) < 25


def test_large_values_and_warnings_of_empty_resamples_do_not_leak():
    # Warnings are errors in all tests.
    values = pd.DataFrame({"name": "a", "qid": ["1", "2"], "measure": "n", "value": [1e12, -1e-12]})
    assert TopicStatistics(n_resamples=100).add(values).intervals()["value"][0] == pytest.approx(5e11, rel=1e-15)
