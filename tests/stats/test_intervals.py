"""Intervals of a system's mean: against SciPy on the same stream, by hand, and their coverage."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, check_level
from vbterrier.kernels import resample
from vbterrier.kernels.resample import resamples, stream
from vbterrier.stats import topic_intervals
from vbterrier.stats.topic_intervals import (
    COLUMNS,
    TOPIC_METHODS,
    intervals,
    poisson_limits,
    topics_interval,
    topics_intervals,
    unjudged_interval,
)

SCORES = np.random.default_rng(7).beta(2, 5, 40)
SCIPY = {"percentile": "percentile", "bca": "BCa"}
TABLE = np.random.default_rng(8).beta([[2, 1, 0.3, 5]], 3, (60, 4))


def ends(interval):
    return interval.low, interval.high


def test_the_studentised_interval_is_a_plain_loop_over_resampled_topics():
    result = topics_intervals(TABLE, method="studentised", level=0.9, n_resamples=300, seed=5)
    counts = np.vstack(list(resamples(60, 300, stream(5, "")))).astype(int)
    for column in range(4):
        values = TABLE[:, column]
        drawn = [np.repeat(values, count) for count in counts]
        t = [(one.mean() - values.mean()) / (one.std(ddof=1) / math.sqrt(60)) for one in drawn]
        error = values.std(ddof=1) / math.sqrt(60)
        expected = values.mean() - np.quantile(t, [0.95, 0.05]) * error
        assert (result.low[column], result.high[column]) == pytest.approx(tuple(expected), abs=1e-12)
    # The scores are skewed to the right: so is the interval.
    assert result.high[2] - TABLE[:, 2].mean() > TABLE[:, 2].mean() - result.low[2]


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_a_column_has_the_interval_that_it_has_alone_whatever_the_blocks(method, monkeypatch):
    table = np.hstack([TABLE, np.full((60, 1), 0.25)])
    options = {"method": method, "n_resamples": 200, "seed": 4, "bounds": (-10.0, 10.0)}
    whole = topics_intervals(table, **options)
    alone = [ends(topics_interval(table[:, column], **options)) for column in range(5)]
    # Matrix products of another width have other rounding errors.
    assert np.array([*whole.low, *whole.high]) == pytest.approx(np.array(alone).T.ravel(), abs=1e-12)
    limit = 1 - 0.025 ** (1 / 60)
    assert (whole.low[4], whole.high[4]) == pytest.approx((0.25 - 10.25 * limit, 0.25 + 9.75 * limit))
    monkeypatch.setattr(topic_intervals, "_BLOCK_CELLS", 400)
    monkeypatch.setattr(resample, "_COUNT_BLOCK_CELLS", 60 * 7)
    blocks = topics_intervals(table, **options)
    assert (blocks.low, blocks.high) == (pytest.approx(whole.low, abs=1e-12), pytest.approx(whole.high, abs=1e-12))


@pytest.mark.parametrize("method", TOPIC_METHODS)
@given(unit=st.sampled_from([1e-6, 3.0, -1.0, 1e5]), zero=st.sampled_from([0.0, -0.5, 1000.0]))
@settings(max_examples=12, deadline=None)
def test_intervals_follow_the_unit_and_the_zero_of_the_measure(method, unit, zero):
    # Draws of the bounded limits are not symmetric.
    assume(method != "bounded" or unit > 0)
    bounds = sorted((zero - 10 * unit, zero + 10 * unit))
    result = topics_intervals(TABLE, method=method, n_resamples=100, seed=1, bounds=(-10, 10))
    moved = topics_intervals(unit * TABLE + zero, method=method, n_resamples=100, seed=1, bounds=tuple(bounds))
    low, high = (zero + unit * end for end in ((result.low, result.high) if unit > 0 else (result.high, result.low)))
    assert moved.low == pytest.approx(low, abs=1e-9 * (abs(unit) + abs(zero)))
    assert moved.high == pytest.approx(high, abs=1e-9 * (abs(unit) + abs(zero)))


def test_topics_that_nearly_all_score_the_same_have_no_studentised_end_and_one_warning():
    table = np.zeros((20, 3))
    table[:, 1] = np.linspace(0, 1, 20)
    table[4, 2] = 1.0
    with pytest.warns(DegenerateWarning) as record:
        result = topics_intervals(table, method="studentised")
    withheld, unbounded = (str(each.message) for each in record)
    assert withheld.startswith("1 of 3 intervals are withheld:")
    assert unbounded.startswith("1 of 3 studentised intervals are unbounded:")
    # .36 of the resamples lack the one topic, and their t is minus infinity.
    assert (result.high[2], result.low[2] > -0.1) == (np.inf, True)
    assert np.isnan([result.low[0], result.high[0]]).all()
    assert np.isfinite([result.low[1], result.high[1]]).all()
    within = topics_intervals(table, method="studentised", bounds=(0, 1))
    assert (within.low[2], within.high[2]) == (0, 1)


def test_seed_and_name_decide_the_resamples_together():
    first = ends(topics_interval(SCORES, n_resamples=200, seed=1, name="a"))
    assert first == ends(topics_interval(SCORES, n_resamples=200, seed=1, name="a"))
    assert first != ends(topics_interval(SCORES, n_resamples=200, seed=2, name="a"))
    assert first != ends(topics_interval(SCORES, n_resamples=200, seed=1, name="b"))


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_a_higher_level_gives_a_wider_interval_around_the_mean(method):
    inner, outer = (topics_interval(SCORES, level=level, method=method, bounds=(0, 1)) for level in (0.5, 0.99))
    assert outer.low < inner.low < SCORES.mean() < inner.high < outer.high


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_equal_scores_leave_room_for_other_topics(method):
    # Of 9 successes in 9 topics, the exact limit of the rate is .025^(1/9).
    clopper = stats.binomtest(9, 9).proportion_ci(0.95, "exact").low
    assert ends(topics_interval(np.ones(9), method=method, bounds=(0, 1))) == pytest.approx((clopper, 1))
    assert ends(topics_interval(np.zeros(9), method=method, bounds=(0, 1))) == pytest.approx((0, 1 - clopper))
    low, high = ends(topics_interval(np.full(9, 0.25), method=method, bounds=(0, 1)))
    assert (low, high) == pytest.approx((0.25 * clopper, 0.25 + 0.75 * (1 - clopper)))
    with pytest.warns(DegenerateWarning, match="1 of 1 intervals are withheld: all topics have the same score"):
        assert np.isnan(ends(topics_interval(np.full(9, 0.25), method=method))).all()


@pytest.mark.parametrize("method", SCIPY)
@pytest.mark.parametrize("values", [[0.0, 1.0], np.eye(50)[3]], ids=["two topics", "one differs"])
def test_the_least_spread_gives_finite_ends_in_order(method, values):
    low, high = ends(topics_interval(np.array(values), method=method, seed=1))
    assert 0 <= low < high <= 1


@pytest.mark.parametrize("method", TOPIC_METHODS)
@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_topics_give_nan_and_one_warning(method, n):
    with pytest.warns(DegenerateWarning, match="at least two") as record:
        interval = topics_interval(np.full(n, 0.5), method=method)
    assert len(record) == 1
    assert np.isnan(ends(interval)).all()
    assert interval.method == f"topics ({method})"


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_normal_interval_is_students_and_needs_no_resamples(level):
    expected = stats.ttest_1samp(SCORES, 0).confidence_interval(level)
    interval = topics_interval(SCORES, method="normal", level=level, seed=5)
    assert ends(interval) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert interval == topics_interval(SCORES, method="normal", level=level, seed=6, n_resamples=1)
    assert interval.method == "topics (normal)"


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan, math.inf])
def test_a_level_that_is_no_share_is_refused(level):
    for call in (check_level, partial(topics_interval, SCORES), partial(unjudged_interval, SCORES, SCORES)):
        with pytest.raises(ParameterError, match=r"wanted a number between 0 and 1, such as 0\.95"):
            call(level=level)


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_a_seed_that_is_none_is_refused(seed):
    two = frame("a", "AP", {"q1": 0.5, "q2": 0.1})
    for call, values in ((topics_interval, SCORES), (topics_intervals, SCORES[:, None]), (intervals, two)):
        with pytest.raises(ParameterError, match=f"seed={seed}: wanted a whole number of at least 0"):
            call(values, seed=seed)


@pytest.mark.parametrize(
    ("level", "z"), [(0.95, 1.959963984540054), (0.9, 1.6448536269514722), (0.5, 0.6744897501960817)]
)
def test_the_unjudged_interval_is_the_mean_and_z_times_the_error_of_the_mean_cut_to_what_scores_can_be(level, z):
    means, stds = np.array([0.4, 0.5, 0.6, 0.3]), np.array([0.1, 0.0, 0.2, 0.05])
    reach = z * math.sqrt(0.01 + 0.04 + 0.0025) / 4
    interval = unjudged_interval(means, stds**2, level=level)
    assert ends(interval) == pytest.approx((0.45 - reach, 0.45 + reach), abs=1e-14)
    assert interval.method == "unjudged (normal)"
    assert ends(unjudged_interval(np.array([0.02, 0.98]), np.array([0.81, 0.81]))) == (0.0, 1.0)
    assert unjudged_interval(np.array([0.99]), np.array([0.01])).high == 1.0
    assert unjudged_interval(np.array([0.01]), np.array([0.01])).low == 0.0


def frame(name, measure, scores):
    return pd.DataFrame({"name": name, "qid": list(scores), "measure": measure, "value": list(scores.values())})


@pytest.mark.parametrize("method", TOPIC_METHODS)
def test_a_frame_has_a_row_for_each_system_and_measure_whose_topics_may_differ(method):
    rng = np.random.default_rng(1)
    some, others = [f"q{i}" for i in range(12)], [f"q{i}" for i in range(3, 30)]
    scores = {
        ("b", "AP"): dict(zip(some, rng.random(12), strict=True)),
        ("b", "P@5"): dict(zip(others, rng.random(27), strict=True)),
        ("a", "AP"): dict(zip(some[::-1], rng.random(12), strict=True)),
    }
    table = pd.concat([frame(name, measure, by_topic) for (name, measure), by_topic in scores.items()])
    result = intervals(table, method=method, level=0.8, n_resamples=99, seed=7)
    assert list(result) == list(COLUMNS)
    assert [*zip(result["name"], result["measure"], strict=True)] == list(scores)
    for row, by_topic in zip(result.itertuples(), scores.values(), strict=True):
        values = np.array([by_topic[qid] for qid in sorted(by_topic)])
        options = {"method": method, "level": 0.8, "n_resamples": 99, "seed": 7}
        expected = topics_intervals(values[:, None], qids=sorted(by_topic), bounds=(0, 1), **options)
        assert (row.low, row.high) == pytest.approx((expected.low[0], expected.high[0]), abs=1e-12)
        assert row.value == pytest.approx(values.mean())
        assert (row.level, row.method, row.n_qids, row.seed) == (0.8, f"topics ({method})", len(by_topic), 7)
        assert row.n_resamples == (0 if method in {"normal", "unseen"} else 99)
    mixed = intervals(table.sample(frac=1, random_state=2), method=method, level=0.8, n_resamples=99, seed=7)
    one, other = (each.sort_values(["name", "measure"], ignore_index=True) for each in (mixed, result))
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)


def test_intervals_are_continuous_and_end_within_the_bounds():
    zeros = {f"q{i}": 0.0 for i in range(50)}
    for scores in (zeros, {**zeros, "q3": 0.001}, {**zeros, "q3": 1e-9}):
        row = intervals(frame("a", "AP", scores)).iloc[0]
        assert (row["low"], row["high"]) == pytest.approx((0, 1 - 0.025 ** (1 / 50)), abs=1e-4)
        assert row["method"] == "topics (unseen)"
    hundred = intervals(frame("a", "own", {q: 100 * value for q, value in zeros.items()}), bounds=(0, 100)).iloc[0]
    assert hundred["high"] == pytest.approx(100 * (1 - 0.025 ** (1 / 50)))
    with pytest.warns(DegenerateWarning, match="method='unseen' needs a measure with a known range"):
        assert intervals(frame("a", "own", {"q1": 1.0, "q2": 3.0}))["low"].isna().all()
    with pytest.raises(InputError, match=r"scores are outside bounds=\(0, 1\)"):
        intervals(frame("a", "own", {"q1": 1.0, "q2": 3.0}), bounds=(0, 1))


def test_frames_without_rows_and_with_one_topic():
    empty = pd.DataFrame({"name": [], "qid": [], "measure": [], "value": []})
    assert list(intervals(empty)) == list(COLUMNS)
    with pytest.warns(DegenerateWarning, match="at least two"):
        table = intervals(frame("a", "AP", {"q1": 0.5}))
    assert table["value"].tolist() == [0.5]
    assert table[["low", "high"]].isna().all(axis=None)


def test_limits_of_resamples_ignore_empty_ones_of_each_column():
    """The first row is the mean itself; the second column has two resamples with topics, the third none."""
    means = np.array([[9.0, 9.0, 9.0], [1.0, math.nan, math.nan], [2.0, 4.0, math.nan], [3.0, 2.0, math.nan]])
    result = poisson_limits(means, np.array([0.0, 1.0]))
    np.testing.assert_array_equal(result, [[1.0, 2.0, math.nan], [3.0, 4.0, math.nan]])
