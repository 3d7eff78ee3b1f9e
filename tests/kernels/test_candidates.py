"""Probabilities of candidates, which to keep, their clusters and perturbations, against loops and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from vbterrier.kernels import candidates
from vbterrier.kernels.candidates import (
    another,
    bootstrap_counts,
    complete_linkage,
    cosines,
    keyed_uniforms,
    log_gammas,
    normalise_weights,
    peaks,
    softmax,
    survivors,
    unnormalised_softmax,
)
from vbterrier.kernels.vb import per_topic, segments


@st.composite
def problems(draw, low=0.0, high=1.0):
    """Values with topics in any order, every topic there."""
    n_topics = draw(st.integers(1, 4))
    topic = [*range(n_topics), *draw(st.lists(st.integers(0, n_topics - 1), max_size=8))]
    values = draw(st.lists(st.floats(low, high), min_size=len(topic), max_size=len(topic)))
    order = draw(st.permutations(range(len(topic))))
    return np.array(values)[order], np.array(topic)[order], n_topics


def sums(prob, topic, n_topics):
    return [math.fsum(prob[topic == place]) for place in range(n_topics)]


@given(problems())
def test_proportional_is_the_share_of_the_sum(problem):
    weights, topic, n = problem
    prob = candidates.proportional(weights, topic, n)
    for place in range(n):
        mine = weights[topic == place]
        if mine.sum() > 1e-300:
            assert prob[topic == place] == pytest.approx(mine / mine.sum(), rel=1e-9, abs=1e-300)
    assert sums(prob, topic, n) == pytest.approx([1.0] * n)


def test_edges_of_weights():
    topic, none = np.array([1, 0, 1, 0]), np.empty(0, dtype=int)
    assert candidates.proportional(np.array([0.0, 3.0, 0.0, 1.0]), topic, 2).tolist() == [0.5, 0.75, 0.5, 0.25]
    for scale in (1e-320, 1e-300, 1e300):
        prob = candidates.proportional(np.array([1.0, 3.0]) * scale, np.array([0, 0]), 1)
        assert prob == pytest.approx([0.25, 0.75], abs=1e-3)
    assert candidates.tempered_prob(np.zeros(2), 0.5, np.array([0, 0]), 1).tolist() == [0.5, 0.5]
    assert candidates.tempered_prob(np.array([0.0, 0.2]), 0.5, np.array([0, 0]), 1).tolist() == [0.0, 1.0]
    impossible = candidates.relaxed_prob(np.array([0.0, 1.0]), np.array([0.0, 900.0]), np.array([0, 0]), 1)
    assert impossible.tolist() == [0.0, 1.0]
    assert softmax(np.array([1e300, -1e300, -5000.0, -5000.0]), topic[[1, 1, 0, 0]], 2).tolist() == [1, 0, 0.5, 0.5]
    assert normalise_weights(np.array([[0.0, 0.0, 2.0]]), np.array([0, 0, 1]), 2).tolist() == [[0.0, 0.0, 1.0]]
    assert candidates.proportional(np.empty(0), none, 0).shape == (0,)
    assert candidates.truncation_mask(np.empty(0), none, none, top=1).shape == (0,)
    assert candidates.temperature_softmax(np.empty(0), 1.0, none, 0).shape == (0,)


@given(problems(low=1e-6), st.floats(0.05, 20))
def test_tempering_is_a_power(problem, temperature):
    weights, topic, n = problem
    expected = candidates.proportional(weights ** (1 / temperature), topic, n)
    assert candidates.tempered_prob(weights, temperature, topic, n) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("temperature", "expected"), [(1.0, [0.2, 0.8]), (2.0, [1 / 3, 2 / 3])])
def test_tempering_by_hand(temperature, expected):
    assert candidates.tempered_prob(np.array([0.1, 0.4]), temperature, np.array([0, 0]), 1) == pytest.approx(expected)


@given(problems(low=-50, high=50), st.floats(0.05, 20))
def test_softening_is_the_formula(problem, temperature):
    score, topic, n = problem
    prob = candidates.temperature_softmax(score, temperature, topic, n)
    for place in range(n):
        mine = score[topic == place]
        raised = [math.exp((s - max(mine)) / temperature) for s in mine]
        assert prob[topic == place] == pytest.approx([r / sum(raised) for r in raised], abs=1e-12)


@pytest.mark.parametrize("temperature", [1e-300, 1e-5, 1e300])
def test_extreme_scores_and_temperatures_stay_finite(temperature):
    prob = candidates.temperature_softmax(np.array([1e308, -1e308, 7.0]), temperature, np.array([0, 0, 1]), 2)
    assert prob.tolist() == [1.0, 0.0, 1.0]


@given(problems(low=-20, high=20), st.floats(0.1, 10), st.data())
def test_relaxation_adds_in_log_space(problem, temperature, data):
    score, topic, n = problem
    delta = np.array(data.draw(st.lists(st.floats(0, 9), min_size=len(score), max_size=len(score))))
    both = candidates.relaxed_prob(candidates.temperature_softmax(score, temperature, topic, n), delta, topic, n)
    assert both == pytest.approx(softmax(score / temperature - delta, topic, n), abs=1e-12)
    alone = candidates.relaxed_prob(candidates.proportional(np.ones(len(score)), topic, n), delta, topic, n)
    expected = np.exp(-delta)
    assert alone == pytest.approx(candidates.proportional(expected, topic, n), abs=1e-12)


def test_masses_that_stay():
    prob = candidates.with_fixed_masses(
        np.array([0.25, 0.75, 0.0, 1.0]), np.array([0.0, 0.0, 0.6, 0.0]), np.array([0, 0, 0, 1]), 2
    )
    assert prob == pytest.approx([0.1, 0.3, 0.6, 1.0])
    assert candidates.with_fixed_masses(np.zeros(2), np.array([0.3, 0.0]), np.array([0, 0]), 1).tolist() == [1.0, 0.0]


@given(problems(), st.randoms(use_true_random=False))
def test_ranks_are_places_in_the_sorted_list(problem, random):
    values, topic, n = problem
    values = np.round(values, 1)
    tie = np.array(random.sample(range(len(values)), len(values)))
    ranks = candidates.ranks(values, topic, tie)
    for place in range(n):
        mine = np.flatnonzero(topic == place)
        expected = sorted(mine, key=lambda i: (-values[i], tie[i]))
        assert [expected.index(i) for i in mine] == ranks[mine].tolist()


def textbook_kept(prob, topic, tie, threshold, top, mass):
    stay = []
    for place in set(topic.tolist()):
        mine = sorted(np.flatnonzero(topic == place), key=lambda i: (-prob[i], tie[i]))
        total = 0.0
        for rank, i in enumerate(mine):
            reached = mass is not None and total >= mass - 1e-9
            if rank == 0 or (prob[i] >= threshold and (top is None or rank < top) and not reached):
                stay.append(i)
            total += prob[i]
    return sorted(stay)


@given(
    problems(low=0.01),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 0.3, 0.95, 1.0]),
    st.randoms(use_true_random=False),
)
def test_what_is_kept_is_what_the_textbook_keeps(problem, threshold, top, mass, random):
    weights, topic, n = problem
    prob = np.round(candidates.proportional(np.round(weights, 1) + 0.1, topic, n), 12)
    tie = np.array(random.sample(range(len(prob)), len(prob)))
    kept = candidates.truncation_mask(prob, topic, tie, threshold=threshold, top=top, mass=mass)
    assert np.flatnonzero(kept).tolist() == textbook_kept(prob, topic, tie, threshold, top, mass)
    assert set(topic[kept].tolist()) == set(range(n)), "no topic is emptied"


def test_masses_are_reached_and_values_equal_in_spite_of_rounding():
    prob = np.array([0.7, 0.1, 0.1, 0.1])
    assert (0.7 + 0.1) + 0.1 < 0.9, "the sum falls short in floats"
    assert candidates.truncation_mask(prob, np.zeros(4, int), np.arange(4), mass=0.9).tolist() == [
        True,
        True,
        True,
        False,
    ]
    third = np.full(3, 1 / 3)
    assert candidates.truncation_mask(third, np.zeros(3, int), np.arange(3), threshold=1 / 3 + 1e-13).all()
    alike = np.array([0.4, 0.1 + 0.2, 0.3])
    assert alike[1] > alike[2]
    assert candidates.truncation_mask(alike, np.zeros(3, int), np.array([0, 2, 1]), top=2).tolist() == [
        True,
        False,
        True,
    ]


def test_leading_axes_are_replicas():
    rng = np.random.default_rng(5)
    topic, tie = np.array([1, 0, 1, 0, 1]), np.array([3, 1, 4, 0, 2])
    prob = np.stack([candidates.proportional(rng.random(5), topic, 2) for _ in range(6)]).reshape(2, 3, 5)
    delta = rng.random((2, 3, 5))
    calls = {
        "kept": lambda p, _: candidates.truncation_mask(p, topic, tie, top=2, mass=0.8),
        "ranks": lambda p, _: candidates.ranks(p, topic, tie),
        "relaxed": lambda p, d: candidates.relaxed_prob(p, d, topic, 2),
        "tempered": lambda p, _: candidates.tempered_prob(p, 0.7, topic, 2),
        "softened": lambda _, d: candidates.temperature_softmax(d, 0.7, topic, 2),
        "with_fixed_masses": lambda p, d: candidates.with_fixed_masses(p, d / 10, topic, 2),
        "proportional": lambda _, d: candidates.proportional(d, topic, 2),
    }
    for name, call in calls.items():
        together = call(prob, delta)
        for i, j in np.ndindex(2, 3):
            assert together[i, j] == pytest.approx(call(prob[i, j], delta[i, j])), name


def test_cross_entropy_by_hand():
    logits, target = np.array([0.0, math.log(3), 5.0]), np.array([1.0, 0.0, 0.0])
    assert candidates.cross_entropy(logits, target, np.array([0, 0, 1]), 2) == pytest.approx(math.log(4))
    half = np.array([0.5, 0.5])
    assert candidates.cross_entropy(np.array([1e5, 0.0]), half, np.array([0, 0]), 1) == pytest.approx(5e4)
    # Warnings are errors here: the logarithm of an empty topic is never taken.
    alone = candidates.cross_entropy(np.zeros(2), target[:2], np.array([1, 1]), 3)
    assert alone == pytest.approx(np.log(2))


# Complete linkage against SciPy and against its definition.


def groups(labels):
    return {tuple(np.flatnonzero(labels == label)) for label in set(labels.tolist())}


@st.composite
def similarities(draw):
    n = draw(st.integers(1, 8))
    # All different, so that no tie rule matters.
    values = draw(st.lists(st.integers(0, 10_000), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2, unique=True))
    matrix = np.eye(n)
    matrix[np.triu_indices(n, 1)] = np.array(values, dtype=float) / 10_000
    return np.maximum(matrix, matrix.T)


@given(similarities(), st.sampled_from([0.1, 0.5, 0.95]))
def test_complete_linkage_is_that_of_scipy(similarity, threshold):
    result = complete_linkage(similarity, threshold)
    if len(similarity) > 1:
        distance = 1 - similarity
        np.fill_diagonal(distance, 0)
        tree = linkage(squareform(distance, checks=False), method="complete")
        expected = fcluster(tree, t=1 - threshold + 1e-9, criterion="distance")
        assert groups(result) == groups(expected)
    for group in groups(result):
        assert similarity[np.ix_(group, group)].min() >= threshold - 1e-9
        assert result[list(group)].tolist() == [group[0]] * len(group)


def test_of_equal_pairs_the_first_goes_first_and_few_things_are_clusters_of_their_own():
    chain = np.array([[1, 0.96, 0.5], [0.96, 1, 0.96], [0.5, 0.96, 1]])
    assert complete_linkage(chain, 0.95).tolist() == [0, 0, 2]
    assert [complete_linkage(np.ones((n, n)), 0.95).tolist() for n in (0, 1)] == [[], [0]]


def test_a_cosine_of_the_threshold_itself_is_enough():
    angle = np.arccos(0.95)
    vectors = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    assert complete_linkage(cosines(vectors * 3), 0.95).tolist() == [0, 0]


def test_cosines_know_no_length():
    vectors = np.array([[1e-200, 1e-200], [1e200, 0.0], [0.0, 0.0], [-2.0, 0.0]])
    expected = np.array([[1, 0.5**0.5, 0, -(0.5**0.5)], [0.5**0.5, 1, 0, -1], [0, 0, 0, 0], [-(0.5**0.5), -1, 0, 1]])
    assert cosines(vectors) == pytest.approx(expected, abs=1e-12)


# Probabilities of candidates: textbook loops, ranges of floats, rows of replicas.


numbers = st.floats(-50, 50) | st.sampled_from([-math.inf, 0.0])


@st.composite
def cases(draw):
    """Logits of (b, n) candidates of topics in any order."""
    n_topics = draw(st.integers(1, 4))
    topic = draw(st.lists(st.integers(0, n_topics - 1), max_size=9))
    b = draw(st.integers(1, 3))
    rows = st.lists(numbers, min_size=len(topic), max_size=len(topic))
    logits = draw(st.lists(rows, min_size=b, max_size=b))
    return np.array(logits).reshape(b, len(topic)), np.array(topic, dtype=np.int64), n_topics


def textbook(row, topic, place):
    here = [math.exp(x) for x, t in zip(row, topic, strict=True) if t == place]
    return [x / sum(here) if sum(here) else 0.0 for x in here]


@given(cases())
def test_the_softmax_is_the_textbook_loop_of_each_row(case):
    logits, topic, n_topics = case
    before = logits.copy()
    result = softmax(logits, topic, n_topics)
    assert (logits == before).all(), "inputs are left as they were"
    for b, row in enumerate(logits):
        for place in range(n_topics):
            assert result[b, topic == place].tolist() == pytest.approx(textbook(row, topic, place), abs=1e-12)
    if len(topic):
        assert softmax(logits[0], topic, n_topics) == pytest.approx(result[0], abs=1e-15)


@given(cases())
def test_peaks_and_sums_are_the_textbook_loops(case):
    logits, topic, n_topics = case
    weights = np.exp(logits)
    for b in range(len(logits)):
        for place in range(n_topics):
            here = logits[b, topic == place]
            assert peaks(logits, topic, n_topics)[b, place] == max(here.tolist(), default=-math.inf)
            total = math.fsum(weights[b, topic == place])
            assert per_topic(weights, topic, n_topics)[b, place] == pytest.approx(total, rel=1e-12)
            assert per_topic(weights[b], topic, n_topics)[place] == pytest.approx(total, rel=1e-12)


@given(cases())
def test_the_most_probable_is_raised_to_one_exactly(case):
    logits, topic, n_topics = case
    best = peaks(unnormalised_softmax(logits, topic, n_topics), topic, n_topics)
    there = peaks(logits, topic, n_topics) > -math.inf
    assert (best[there] == 1.0).all()
    assert (best[~there] <= 0.0).all()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_segments_bring_the_intents_of_each_topic_together(topic):
    topic = np.array(topic)
    order, present, starts = segments(topic)
    sorted_topic = topic if order is None else topic[order]
    assert (np.diff(sorted_topic) >= 0).all()
    assert present.tolist() == sorted(set(topic.tolist()))
    assert sorted_topic[starts].tolist() == present.tolist()
    assert (order is None) == (np.diff(topic) >= 0).all()


# Numbers behind perturbations: textbook loops as oracles, and the distributions that they should have.


# Refused is what a right generator gives in 1 of 10,000 runs; seeds are fixed, so a test that passes always passes.
RARE = 1e-4


@st.composite
def topics(draw):
    """Candidates of some topics side by side, some of them absent, in a few replicas."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    topic = np.repeat(np.arange(len(sizes)), sizes)
    b = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    alive = rng.random((draw(st.sampled_from([1, b])), len(topic))) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return topic, len(sizes), alive, rng.random((b, len(topic)))


# Gamma variates in logarithms


@pytest.mark.parametrize("shape", [0.01, 0.2, 1.0, 7.5, 300.0])
def test_gammas_have_the_distribution_of_gammas(shape):
    rng = np.random.default_rng(5)
    logs = log_gammas(np.array(shape), rng.standard_gamma(shape + 1, 4000), rng.standard_exponential(4000))
    assert stats.kstest(logs, stats.loggamma(shape).cdf).pvalue > RARE


def test_shapes_whose_gammas_underflow_have_finite_logarithms_and_zero_has_none():
    shape = np.array([1e-9, 1e-300, 0.0])
    logs = log_gammas(shape, np.ones(3), np.array([1.0, 0.25, 0.0]))
    assert logs.tolist() == [pytest.approx(-1e9), pytest.approx(-0.25e300), -math.inf]


def test_shapes_of_one_row_serve_all_replicas():
    larger, exponential = np.random.default_rng(0).gamma(2.0, size=(2, 5, 3))
    shape = np.array([[0.5, 0.0, 2.0]])
    expected = np.log(larger[:, [0, 2]]) - exponential[:, [0, 2]] / shape[:, [0, 2]]
    assert log_gammas(shape, larger, exponential)[:, [0, 2]] == pytest.approx(expected, rel=1e-14)


# Dropping


@given(topics(), st.sampled_from([0.0, 0.3, 0.999, 1.0]))
def test_survivors_are_those_of_the_textbook_loop(case, share):
    topic, n_topics, alive, uniform = case
    result = survivors(uniform, alive, share, topic, n_topics)
    for b, row in enumerate(uniform):
        for place in range(n_topics):
            here = [i for i in np.flatnonzero(topic == place) if alive[b % len(alive), i]]
            stay = [i for i in here if row[i] >= share]
            if here and not stay:
                stay = [max(here, key=lambda i: row[i])]
            assert [i for i in np.flatnonzero(topic == place) if result[b, i]] == stay


# Resampling


@given(topics())
def test_resampled_counts_are_those_of_the_textbook_loop(case):
    topic, n_topics, alive, uniform = case
    result = bootstrap_counts(uniform, alive, topic, n_topics)
    for b, row in enumerate(uniform):
        for place in range(n_topics):
            mine = np.flatnonzero(topic == place)
            here = [i for i in mine if alive[b % len(alive), i]]
            drawn = [here[int(row[mine[j]] * len(here))] for j in range(len(here))]
            assert [int(result[b, i]) for i in mine] == [drawn.count(i) for i in mine]


# Numbers of keys


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), st.integers(0, 50), st.integers(1, 20))
def test_a_key_draws_the_same_whatever_others_and_batches_there_are(keys, first, n):
    words = np.array(keys, dtype=np.uint64)
    whole = keyed_uniforms(words, 0, first + n)
    assert whole.shape == (first + n, len(keys))
    assert (keyed_uniforms(words[-1:], first, n) == whole[first:, -1:]).all()
    assert ((whole >= 0) & (whole < 1)).all()


def test_numbers_of_keys_are_uniform_and_unrelated_over_keys_and_replicas():
    keys = np.random.default_rng(3).integers(0, 2**64, 60, dtype=np.uint64)
    drawn = keyed_uniforms(keys, 0, 500)
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > RARE
    assert len(np.unique(drawn)) == drawn.size
    off_diagonal = np.corrcoef(drawn.T)[np.triu_indices(60, 1)]
    assert stats.kstest(off_diagonal * np.sqrt(500), "norm").pvalue > RARE
    next_to = np.corrcoef(drawn[1:].ravel(), drawn[:-1].ravel())[0, 1]
    assert abs(next_to) * np.sqrt(drawn.size) < 4


def test_the_numbers_of_a_key_are_the_published_ones_of_splitmix64():
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    expected = [(word >> 11) / 2**53 for word in published]
    assert keyed_uniforms(np.zeros(1, dtype=np.uint64), 0, 4)[:, 0].tolist() == expected


# Confusion


@given(topics())
def test_another_is_any_other_candidate_of_the_topic(case):
    topic, n_topics, _, uniform = case
    start = np.searchsorted(topic, np.arange(n_topics))[topic]
    size = np.bincount(topic)[topic]
    intent = np.arange(len(topic))
    result = another(uniform, intent[None], start, size)
    for b in range(len(uniform)):
        for i in intent:
            others = [j for j in intent if topic[j] == topic[i] and j != i]
            expected = others[int(uniform[b, i] * len(others))] if others else i
            assert result[b, i] == expected
