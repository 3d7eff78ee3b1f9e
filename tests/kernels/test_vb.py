"""Expected success and VB-Score: the paper's table and cases, textbook loops, the claims of its appendix."""

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vbterrier.kernels.vb import (
    bernoulli_variance,
    binary_gain,
    dcg_gain,
    distinct_matches,
    graded_gain,
    joint_coverage,
    lowest_point,
    per_topic,
    vb,
    vb_range,
)

unit = st.floats(0, 1)
alphas = st.floats(0, 20)
unit_arrays = st.lists(unit, min_size=1, max_size=30).map(np.array)

# Ding 2025, Table 1: ES, VB_0.5 and VB_1 as printed.
TABLE_1 = {
    1: (0.169, -0.018, -0.206),
    2: (0.425, 0.178, -0.069),
    3: (0.004, -0.029, -0.062),
    4: (0.074, -0.057, -0.188),
    5: (0.723, 0.500, 0.276),
    6: (0.025, -0.053, -0.131),
    7: (0.003, -0.025, -0.054),
    8: (0.046, -0.059, -0.163),
}


def score(success, alpha, **options):
    success = np.asarray(success, dtype=float)
    return vb(success, bernoulli_variance(success), alpha, **options)


def by_hand(success, alpha):
    return success - alpha * math.sqrt(success * (1 - success))


# The paper


@pytest.mark.parametrize("group", TABLE_1)
@pytest.mark.parametrize(("column", "alpha"), [(1, 0.5), (2, 1.0)])
def test_table_1_within_what_its_rounding_allows(group, column, alpha):
    printed, expected = TABLE_1[group][0], TABLE_1[group][column]
    possible = score(np.linspace(max(printed - 0.0005, 0), printed + 0.0005, 2001), alpha)
    assert possible.min() - 0.0005 <= expected <= possible.max() + 0.0005
    assert score(printed, alpha) == pytest.approx(by_hand(printed, alpha), abs=1e-15)
    assert possible.max() - possible.min() < 0.02, "a band that holds any number proves nothing"


# The claims of the appendix


@given(unit_arrays, alphas)
def test_a1_the_range_is_the_corrected_one(success, alpha):
    lowest = (1 - math.sqrt(1 + alpha**2)) / 2
    scores = score(success, alpha)
    assert (scores >= lowest - 1e-12).all()
    assert (scores <= 1).all()
    assert score(lowest_point(alpha), alpha) == pytest.approx(lowest, abs=1e-12)


@given(st.floats(0, 20))
def test_the_lowest_point_is_where_the_score_is_lowest(alpha):
    grid = np.linspace(0, 1, 4001)
    scores = score(grid, alpha)
    assert 0 <= lowest_point(alpha) <= 0.5
    assert score(lowest_point(alpha), alpha) <= scores.min() + 1e-12
    assert abs(grid[scores.argmin()] - lowest_point(alpha)) <= 1 / 4000


@given(unit_arrays, alphas)
def test_a2_the_score_lies_between_success_less_half_alpha_and_success(success, alpha):
    scores = score(success, alpha)
    assert (success - alpha / 2 <= scores + 1e-12).all()
    assert (scores <= success).all()
    assert score(0.5, alpha) == pytest.approx(0.5 - alpha / 2, abs=1e-12)


@given(st.lists(st.tuples(st.integers(1, 100), unit, unit), min_size=1, max_size=12), alphas)
def test_b1_more_gain_is_more_success_and_above_the_lowest_point_more_score(intents, alpha):
    weights, one, other = (np.array(column) for column in zip(*intents, strict=True))
    prob = weights / weights.sum()
    less, more = np.minimum(one, other), np.maximum(one, other)
    here = np.zeros(len(prob), int)
    low, high = (per_topic(prob * gain, here, 1) for gain in (less, more))
    assert low <= high + 1e-15
    if (more - less).max() > 1e-6:
        assert low < high
    if low[0] >= lowest_point(alpha):
        assert score(low, alpha) <= score(high, alpha) + 1e-12


def test_b1_fails_below_the_lowest_point():
    assert score(0.0, 1.0) > score(0.1, 1.0) > score(lowest_point(1.0), 1.0)


@st.composite
def two_distributions(draw):
    n = draw(st.integers(1, 10))
    weights = st.lists(st.floats(0.01, 1), min_size=n, max_size=n).map(np.array)
    one, other = draw(weights), draw(weights)
    # Nearby distributions too, where the bounds are tight.
    near = draw(st.sampled_from([0.0, 0.5, 0.99]))
    other = near * one + (1 - near) * other
    gain = draw(st.lists(unit, min_size=n, max_size=n).map(np.array))
    return one / one.sum(), other / other.sum(), gain


@given(two_distributions(), alphas, st.floats(0.01, 0.5))
def test_c1_and_c2_the_score_is_stable_under_other_probabilities(case, alpha, tau):
    one, other, gain = case
    distance = np.abs(one - other).sum()
    here = np.zeros(len(gain), int)
    success, moved = (per_topic(prob * gain, here, 1) for prob in (one, other))
    assert abs(success - moved) <= distance + 1e-12
    if min(success[0], moved[0]) >= tau and max(success[0], moved[0]) <= 1 - tau:
        slope = 1 + alpha * (1 - 2 * tau) / (2 * math.sqrt(tau * (1 - tau)))
        assert abs(score(success, alpha) - score(moved, alpha)) <= slope * distance + 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
def test_d1_means_of_replicas_concentrate_with_the_corrected_range(alpha):
    n_replicas, n_trials, off = 40, 4000, 0.12
    rng = np.random.default_rng(6)
    prob = np.array([0.4, 0.3, 0.2, 0.1])
    gain = (rng.random((n_trials, n_replicas, 4)) < 0.3).astype(float)
    success = per_topic(prob * gain, np.zeros(4, int), 1)[..., 0]
    scores = score(success, alpha)
    for values, width in ((success, 1.0), (scores, (1 + math.sqrt(1 + alpha**2)) / 2)):
        share = (np.abs(values.mean(axis=1) - values.mean()) >= off * width).mean()
        assert share <= 2 * math.exp(-2 * n_replicas * off**2) + 3 * math.sqrt(0.25 / n_trials)
    assert scores.min() < 0 or alpha == 0


# Options of the score


@given(unit_arrays, alphas)
def test_monotone_is_the_least_score_of_all_that_succeed_at_least_as_much(success, alpha):
    grid = np.append(np.linspace(0, 1, 2001), lowest_point(alpha))
    scores = score(success, alpha, monotone=True)
    for value, result in zip(success, scores, strict=True):
        least = score(np.append(grid[grid >= value], value), alpha).min()
        assert result == pytest.approx(least, abs=1e-12)
    order = np.argsort(success)
    assert (np.diff(scores[order]) >= -1e-12).all()
    assert (scores <= score(success, alpha) + 1e-12).all()


@given(unit_arrays, alphas, st.booleans())
def test_clip_raises_negative_scores_to_zero_and_leaves_others(success, alpha, monotone):
    scores = score(success, alpha, monotone=monotone)
    clipped = score(success, alpha, monotone=monotone, clip=True)
    assert clipped.tolist() == [max(value, 0.0) for value in scores.tolist()]


@given(unit_arrays)
def test_the_bernoulli_variance_is_never_negative(success):
    beyond = np.append(success, [1 + 1e-16, 1.0000000000000002, -1e-17])
    assert (bernoulli_variance(beyond) >= 0).all()
    assert bernoulli_variance(success) == pytest.approx(success * (1 - success), abs=1e-15)


# Gains


@st.composite
def matches(draw):
    cutoff = draw(st.integers(1, 12))
    n_intents = draw(st.integers(1, 6))
    pairs = st.tuples(st.integers(0, n_intents - 1), st.integers(0, cutoff - 1))
    result = draw(st.lists(pairs, unique=True, max_size=30))
    weights = draw(st.lists(unit, min_size=len(result), max_size=len(result)))
    return cutoff, n_intents, result, weights


def arrays(result, weights):
    intent, rank = (np.array([pair[side] for pair in result], dtype=np.int64) for side in (0, 1))
    return intent, np.array(weights, dtype=float), rank


@given(matches())
def test_the_binary_gain_is_the_best_match_of_each_intent(case):
    _, n_intents, result, weights = case
    intent, weight, _ = arrays(result, weights)
    expected = [0.0] * n_intents
    for (place, _), share in zip(result, weights, strict=True):
        expected[place] = max(expected[place], share)
    assert binary_gain(intent, weight, n_intents).tolist() == expected


@given(matches(), st.data())
def test_the_dcg_gain_is_the_textbook_loop(case, data):
    cutoff, n_intents, result, weights = case
    intent, weight, rank = arrays(result, weights)
    pool = data.draw(st.none() | st.lists(st.integers(0, 15), min_size=n_intents, max_size=n_intents))
    gain = dcg_gain(
        intent, weight, rank, n_known=None if pool is None else np.array(pool), cutoff=cutoff, n_intents=n_intents
    )
    for place in range(n_intents):
        dcg = sum(w / math.log2(r + 2) for (i, r), w in zip(result, weights, strict=True) if i == place)
        best = cutoff if pool is None else min(pool[place], cutoff)
        ideal = sum(1 / math.log2(r + 2) for r in range(best))
        assert gain[place] == pytest.approx(dcg / ideal if ideal else 0.0, abs=1e-12)


@given(matches())
def test_e1_success_with_binary_gain_does_not_fall_with_depth(case):
    cutoff, n_intents, result, weights = case
    intent, weight, rank = arrays(result, weights)
    prob = np.full(n_intents, 1 / n_intents)
    success = [
        per_topic(prob * binary_gain(intent[rank < k], weight[rank < k], n_intents), np.zeros(n_intents, int), 1)[0]
        for k in range(cutoff + 1)
    ]
    assert success[0] == 0
    assert (np.diff(success) >= -1e-15).all()


@given(matches(), st.data())
def test_the_joint_coverage_is_the_least_of_the_parts_so_far(case, data):
    cutoff, n_parts, result, weights = case
    part, weight, rank = arrays([pair for pair, w in zip(result, weights, strict=True) if w], [w for w in weights if w])
    sets = st.lists(st.integers(0, n_parts - 1), unique=True, min_size=1, max_size=4)
    members = data.draw(st.lists(sets, max_size=5))
    starts = np.cumsum([0, *map(len, members)])
    intent, at, reached = joint_coverage(part, rank, weight, np.array([*chain(*members)], dtype=np.int64), starts)
    rises = list(zip(intent.tolist(), at.tolist(), reached.tolist(), strict=True))
    expected = []
    for place, parts in enumerate(members):
        before = 0.0
        for k in range(cutoff):
            best = [
                max((w for (p, r), w in zip(result, weights, strict=True) if p == one and r <= k), default=0.0)
                for one in parts
            ]
            if min(best) > before:
                before = min(best)
                expected.append((place, k, before))
    assert rises == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.25, 0.5, 1.0])), max_size=12))
def test_repeated_matches_keep_their_largest_weight_by_intent_and_rank(rows):
    largest = {}
    for intent, rank, weight in rows:
        largest[intent, rank] = max(weight, largest.get((intent, rank), 0.0))
    pairs = list(largest) if len(largest) == len(rows) else sorted(largest)
    columns = np.array(rows).reshape(-1, 3).T
    result = distinct_matches(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2])
    assert list(zip(*(part.tolist() for part in result), strict=True)) == [(*pair, largest[pair]) for pair in pairs]


# Sums over topics


@settings(max_examples=60)
@given(st.integers(0, 4), st.integers(0, 3), st.integers(0, 12), st.integers(1, 5), st.integers(0, 2**31))
def test_sums_over_topics_are_the_textbook_loop_on_the_last_axis(rows, layers, n_intents, n_topics, seed):
    assume(rows * layers * n_intents)
    rng = np.random.default_rng(seed)
    values, topic = rng.random((layers, rows, n_intents)), rng.integers(0, n_topics, n_intents)
    sums = per_topic(values, topic, n_topics)
    assert sums.shape == (layers, rows, n_topics)
    for place in range(n_topics):
        assert sums[..., place] == pytest.approx(values[..., topic == place].sum(axis=-1), abs=1e-12)
    assert per_topic(values[0, 0], topic, n_topics) == pytest.approx(sums[0, 0], abs=1e-12)


def test_no_matches_and_no_intents_are_zeros_of_the_right_shape():
    nothing = np.empty(0, dtype=np.int64)
    assert binary_gain(nothing, np.empty(0), 3).tolist() == [0.0, 0.0, 0.0]
    one = np.array([0, 1])
    assert [len(part) for part in joint_coverage(nothing, nothing, np.empty(0), np.array([0]), one)] == [0, 0, 0]
    assert dcg_gain(nothing, np.empty(0), nothing, n_known=None, cutoff=5, n_intents=2).tolist() == [0.0, 0.0]
    assert dcg_gain(nothing, np.empty(0), nothing, n_known=nothing, cutoff=5, n_intents=0).shape == (0,)
    assert score(np.empty(0), 1.0).shape == (0,)


def test_inputs_are_left_as_they_were_and_the_given_variance_counts():
    success, variance = np.array([0.0, 0.1, 0.9]), np.array([0.0, 0.09, 0.09])
    for options in ({}, {"monotone": True}, {"clip": True}):
        vb(success, variance, 1.0, **options)
    assert success.tolist() == [0.0, 0.1, 0.9]
    assert variance.tolist() == [0.0, 0.09, 0.09]
    assert vb(np.array([0.5]), np.array([0.04]), 2.0).tolist() == pytest.approx([0.1])


# Overlapping intents, and the range of VB


@settings(max_examples=200)
@given(st.data(), st.integers(1, 6))
def test_neighbours_count_with_their_similarity_and_not_beyond(data, n):
    gain = np.array(data.draw(st.lists(unit, min_size=n, max_size=n)))
    similarity = np.array(data.draw(st.lists(unit, min_size=n * n, max_size=n * n))).reshape(n, n)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j and similarity[i, j] > 0]
    target, source = np.array(pairs, dtype=int).reshape(-1, 2).T
    before = gain.copy()
    result = graded_gain(gain, target, source, similarity[target, source])
    for i in range(n):
        assert result[i] == max([gain[i], *(similarity[i, j] * gain[j] for j in range(n) if j != i)])
    assert (gain == before).all()


@given(unit_arrays, unit, alphas)
def test_the_range_of_vb_is_that_of_a_fine_grid(success, distance, alpha):
    low, high = vb_range(success, np.full(len(success), distance), alpha)
    share = np.linspace(-1, 1, 801)[:, None]
    grid = score(np.clip(success + distance * share, 0, 1), alpha)
    assert (low <= grid.min(axis=0) + 1e-12).all()
    assert high == pytest.approx(grid.max(axis=0), abs=1e-12)
    # The lowest point may be between two points of the grid.
    assert (low >= grid.min(axis=0) - 0.01 * (1 + alpha)).all()
