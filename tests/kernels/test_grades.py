"""The engine against the process followed by hand: every sequence of drawn grades, one by one."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from urn import no_draws, outcome_moments, outcome_probs, random_problem, topic_model

from vbterrier.kernels.grades import choice, exact
from vbterrier.kernels.grades.choice import n_assigned_sequences, topic_distributions
from vbterrier.kernels.grades.distributions import (
    Grid,
    Pairs,
    Sample,
    atoms_from_unsorted,
    central_interval,
    histogram_mode,
    merge_atoms,
)
from vbterrier.kernels.grades.exact import sampled_distribution
from vbterrier.kernels.grades.model import UnjudgedModel
from vbterrier.kernels.grades.moments import moments
from vbterrier.kernels.grades.value_of_judging import linear_weights
from vbterrier.kernels.rankings import discounts

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def free_problem(n_unjudged, left=99, **options):
    """Three levels, at the first ranks; grades do not run out."""
    weights, left = discounts(n_unjudged) / 9, np.broadcast_to(left, 3)
    return topic_model(weights, [0.5, 0.3, 0.2], left, [0.0, 1.0, 2.0], base=0.1, **options)


@pytest.mark.parametrize("seed", range(20))
def test_five_hundred_random_problems_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        model = random_problem(rng)
        outcome = outcome_probs(model, digits=12)
        mean, variance = moments(model)
        assert (mean[0], variance[0]) == pytest.approx(outcome_moments(outcome), abs=1e-12)
        distribution = topic_distributions(model, "exact", no_draws)[0]
        values, probs = distribution.atoms()
        assert values == pytest.approx(list(outcome), abs=2e-12)
        assert probs == pytest.approx(list(outcome.values()), abs=1e-12)
        reached = np.cumsum(list(outcome.values()))
        expected = values[np.minimum([(reached >= level - 1e-12).argmax() for level in LEVELS], len(values) - 1)]
        assert distribution.quantiles(LEVELS) == pytest.approx(expected, abs=2e-12)
        assert (distribution.brackets(LEVELS) == distribution.quantiles(LEVELS)).all()
    nothing = model.select(slice(0, 0))
    assert (moments(nothing)[0].shape, topic_distributions(nothing, "auto", no_draws)) == ((0,), [])


@pytest.mark.parametrize("few", [0, 10**6])
def test_moments_of_a_topic_depend_on_no_other_topic(few, monkeypatch):
    monkeypatch.setattr("vbterrier.kernels.grades.moments._FEW_STATES", few)
    rng = np.random.default_rng(5)
    shape, strength = (60, 4), np.full(60, 2.0)
    weights, n_unjudged = np.tile(discounts(7), (60, 1)), rng.integers(1, 8, 60)
    weights[np.arange(7) >= n_unjudged[:, None]] = 0
    prob, left = rng.dirichlet(np.ones(4), 60)[:, None], rng.integers(0, 6, shape)
    model = UnjudgedModel(np.zeros(60), weights, n_unjudged, prob, left, np.arange(4.0), strength)
    together = moments(model)
    # Topics have two to four levels, which take different walks alone.
    assert set(model.n_active[model.binds]) == {2, 3, 4}
    alone = [moments(model.select(slice(topic, topic + 1))) for topic in range(60)]
    assert [part.tolist() for part in together] == [[float(each[at][0]) for each in alone] for at in (0, 1)]


@pytest.mark.parametrize("cap", [100, 149])
def test_moments_of_more_documents_than_a_byte_counts(cap):
    # Of 150 documents, of which a half draws grade 1, more than 100 practically never do.
    weights = 0.9 ** np.arange(150)
    model = topic_model(weights, [0.5, 0.5], [999, cap], [0.0, 1.0])
    mean, variance = moments(model)
    assert mean[0] == pytest.approx(weights.sum() / 2, abs=1e-6)
    assert variance[0] == pytest.approx((weights**2).sum() / 4, abs=1e-6)


@pytest.mark.parametrize("topics", [np.array([3, 0, 3]), slice(1, 3)])
def test_some_topics_have_the_levels_and_caps_of_all(topics):
    rng = np.random.default_rng(0)
    left = rng.integers(0, 3, (4, 3))
    model = dataclasses.replace(free_problem(3).select(np.zeros(4, dtype=int)), left=left)
    fresh = model.select(topics)
    assert model.attainable_prob.shape == (4, 1, 3)
    assert model.caps.shape == (4, 3)
    some = model.select(topics)
    assert some.attainable_prob.tolist() == fresh.attainable_prob.tolist() == model.attainable_prob[topics].tolist()
    assert some.caps.tolist() == fresh.caps.tolist()
    assert moments(some)[0].tolist() == moments(fresh)[0].tolist()


def test_worked_case_where_every_grade_can_run_out():
    ideal = 2 + discounts(2)[1]
    mean, variance = moments(topic_model(discounts(3) / ideal, [0.5, 0.2, 0.3], [1, 1, 1], [0, 1, 2]))
    assert mean[0] == pytest.approx(0.5586325264, abs=1e-10)
    assert variance[0] == pytest.approx(0.1108513044, abs=1e-10)


def test_halves_too_large_to_multiply_out_are_bisected():
    longer = free_problem(18)
    distribution = topic_distributions(longer, "auto", no_draws)[0]
    assert distribution.n_atoms > 1 << 20
    assert not distribution.is_sorted
    at = distribution.quantiles(LEVELS)
    assert (distribution.cdf(at) >= LEVELS - 1e-9).all()
    assert (distribution.cdf(at - 1e-9) < LEVELS).all()
    mean, variance = moments(longer)
    approximation = choice.grid_distribution(longer, 0)
    assert approximation.quantiles(LEVELS) == pytest.approx(at, abs=1e-3)
    assert (np.diff(distribution.quantiles(np.linspace(0.01, 0.99, 25))) >= 0).all()
    assert distribution.cdf(mean[0] + 8 * np.sqrt(variance[0])) == pytest.approx(1)


def test_split_keeps_commensurable_discounts_together():
    first, second, apart = exact.split_documents(discounts(16))
    assert apart
    homes = {int(rank): 0 for rank in first + 1} | {int(rank): 1 for rank in second + 1}
    assert len({homes[rank] for rank in (1, 3, 7, 15)}) == 1
    assert homes[2] == homes[8]
    assert abs(len(first) - len(second)) <= 1
    assert [part.tolist() for part in exact.split_documents(np.ones(1))[:2]] == [[0], []]


@pytest.mark.parametrize("strength", [None, 0.02, 3.0])
@pytest.mark.parametrize("binding", [False, True])
def test_the_grid_brackets_the_exact_quantiles(binding, strength):
    rng = np.random.default_rng(3)
    for _ in range(15):
        shared = None if strength is None else True
        model = random_problem(rng, n_levels=3, n_unjudged=6, binding=binding, shared=shared, strength=strength)
        truth = topic_distributions(model, "exact", no_draws)[0].quantiles(LEVELS)
        distribution = topic_distributions(model, "grid", no_draws)[0]
        low, high = distribution.brackets(LEVELS)
        assert ((low <= truth + 1e-12) & (truth <= high + 1e-12)).all()
        assert (high - low <= 2 * 6 * distribution.cell + 1e-15).all()
        assert distribution.values @ distribution.probs == pytest.approx(moments(model)[0][0], abs=1e-10)
        assert distribution.method == "grid"


@pytest.mark.slow
def test_a_deep_ranking_gets_the_narrower_bracket():
    n = 400
    model = topic_model(discounts(n) / 60, [0.7, 0.2, 0.1], [999, 999, 999], [0, 1, 2])
    distribution = topic_distributions(model, "auto", no_draws)[0]
    assert distribution.method == "grid"
    low, high = distribution.brackets(LEVELS)
    assert (high - low < 2 * n * distribution.cell).all()
    sample = topic_distributions(model, "mc", lambda _: np.random.default_rng(0).random((20_000, n)))[0]
    below, above = sample.brackets(LEVELS)
    assert (np.maximum(low, below) <= np.minimum(high, above)).all()


def test_atoms_without_impossible_values_with_neighbours_merged():
    values, probs = merge_atoms(np.array([0.1, 0.5, 0.5 + 1e-13, 0.9]), np.array([0.0, 0.25, 0.25, 0.5]))
    assert (values.tolist(), probs.tolist()) == ([0.5, 0.9], [0.5, 0.5])
    peaks = atoms_from_unsorted(np.array([0.9, 0.1, 0.5]), np.array([0.4, 0.4, 0.2]))
    assert peaks.mode() == 0.9, "the larger of two equal peaks"
    assert peaks.cdf(np.array([0.05, 0.1])).tolist() == [0.0, 0.4]


def test_the_mode_of_histograms_is_that_of_counting_by_hand():
    def fullest(draws):
        edges = np.linspace(min(draws), max(draws), 21).tolist()
        bins = [[x for x in draws if low < x <= high] for low, high in itertools.pairwise([-np.inf, *edges[1:]])]
        most = max(map(len, bins))
        return [x for inside in bins if len(inside) == most for x in inside]

    for seed in range(20):
        drawn = np.random.default_rng(seed).gamma(2.0, size=300)
        assert histogram_mode(drawn) == max(fullest(fullest(drawn.tolist())))
    assert histogram_mode(np.full(5, 0.7)) == 0.7
    legacy = Sample(np.array([0.0, 0.1, 0.1, 0.3]), np.full(4, 0.25), np.arange(1, 5) / 4, method="mc", legacy=True)
    assert legacy.quantiles(np.array([0.5, 0.75])).tolist() == pytest.approx([0.1, 0.15]), "interpolated"
    assert legacy.mode() == 0.1


def test_a_sample_is_its_draws_each_as_likely():
    distribution = sampled_distribution(free_problem(1), 0, np.array([[0.1], [0.6], [0.9], [0.2]]))
    one, two = 0.1 + 1 / 9, 0.1 + 2 / 9
    assert distribution.cdf(np.array([0.0, 0.1, one, two])).tolist() == [0.0, 0.5, 0.75, 1.0]
    assert distribution.quantiles(np.array([0.0, 0.5, 0.51, 0.75, 0.76, 1.0])) == pytest.approx(
        [0.1, 0.1, one, one, two, two]
    )
    assert distribution.atoms()[1].tolist() == [0.5, 0.25, 0.25]


def test_brackets_of_a_sample_are_the_band_of_massart():
    distribution = Sample(np.arange(1.0, 1001.0), np.full(1000, 1e-3), np.arange(1, 1001) / 1000, method="mc")
    # sqrt(log(2/0.05) / 2000) = 0.04295.
    assert distribution.brackets(np.array([0.5, 0.99])).tolist() == [[458.0, 948.0], [543.0, 1000.0]]


def test_the_work_of_a_lattice_is_that_of_its_own_topic():
    weights = [[1.0, np.sqrt(2)], [1.0, 2.0]]
    apart, alike = (topic_model(row, [0.5, 0.5], [9, 9], [0, 1]) for row in weights)
    both = dataclasses.replace(alike.select(np.zeros(2, dtype=int)), weights=np.array(weights))
    assert choice.lattice_work(both, 0) == choice.lattice_work(apart, 0) == np.inf
    assert choice.lattice_work(both, 1) == choice.lattice_work(alike, 0) < np.inf


def test_a_grid_covers_what_can_be_scored_and_no_more():
    model = free_problem(4, [99, 99, 0])
    distribution = choice.grid_distribution(model, 0)
    assert distribution.cell * choice.GRID_CELLS == pytest.approx(model.weights.sum())
    assert distribution.mode() <= model.base[0] + model.weights.sum() + distribution.cell


def test_the_limit_of_work_is_states_by_documents_by_levels(monkeypatch):
    model = free_problem(4, [99, 2, 1])
    limit = 3 * 2 * 4 * 3
    for most, fits in ((limit, True), (limit - 1, False)):
        monkeypatch.setattr("vbterrier.kernels.grades.moments.MAX_WORK", most)
        assert np.isfinite(moments(model)).all() == fits


def test_the_highest_sum_is_reached_though_rounding_leaves_less_than_all_probability():
    short = np.full((2, 2), 0.25 - 1e-11)
    assert Pairs(np.array([0.0, 1.0]), np.array([0.0, 5.0]), short).quantiles(np.array([1.0])).tolist() == [6.0]


def test_brackets_of_a_grid_are_hoeffdings_where_they_are_narrower():
    probs = np.full(10_001, 1 / 10_001)
    grids = [Grid(np.arange(10_001.0), probs, np.cumsum(probs), cell=1.0, n_documents=n) for n in (4, 200)]
    few, many = (np.diff(distribution.brackets(np.array([0.5])), axis=0).item() for distribution in grids)
    assert few == 8
    # 1e-9 of probability is less than a cell.
    assert many == pytest.approx(2 * np.sqrt(200 * np.log(2e9) / 2), abs=1.01)


@pytest.mark.parametrize(
    ("limit", "most", "model"),
    [
        # Half of five documents on three levels; draws that depend, of one prior; and of one each.
        ("MAX_HALF", 3**3, free_problem(5)),
        ("MAX_JOINED", 3**5, free_problem(5, strength=2.0)),
        (
            "MAX_SETS",
            3**4 * 3**4,
            topic_model(
                np.ones(4), np.random.default_rng(1).dirichlet(np.ones(3), 4), [99] * 3, [0, 1, 2], strength=2.0
            ),
        ),
    ],
)
def test_limits_of_what_is_done_exactly_are_met_to_the_last(limit, most, model, monkeypatch):
    for allowed, expected in ((most, True), (most - 1, False)):
        monkeypatch.setitem(getattr(choice, limit), "exact", allowed)
        assert choice.feasible(model, "exact").tolist() == [expected]


# Central intervals by mid-probabilities, against the definition and by what they promise.


LEVELS_OF_CENTRAL = (0.0, 0.1, 0.5, 0.8, 0.9, 0.95, 1.0)


def by_definition(values, probs, level):
    """The smallest and largest value with a mid-probability within the tails, else the median twice."""
    tail = (1 - level) / 2
    inside = [
        x for x in values if tail - 1e-9 <= probs[values < x].sum() + probs[values == x].sum() / 2 <= 1 - tail + 1e-9
    ]
    if inside:
        return min(inside), max(inside)
    median = min(x for x in values if probs[values <= x].sum() >= 0.5 - 1e-9)
    return median, median


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(1, 20)), min_size=1, max_size=12),
    st.sampled_from(LEVELS_OF_CENTRAL),
)
@settings(max_examples=300, deadline=None)
def test_the_ends_are_those_of_the_definition(atoms, level):
    values = np.array([value for value, _ in atoms]) / 8
    probs = np.array([count for _, count in atoms], dtype=float)
    probs /= probs.sum()
    assert central_interval(atoms_from_unsorted(values, probs), level) == pytest.approx(
        by_definition(values, probs, level)
    )


def test_one_document_that_is_hardly_ever_relevant_is_taken_for_not_relevant():
    assert central_interval(atoms_from_unsorted(np.array([0.3, 0.8]), np.array([0.92, 0.08])), 0.9) == (0.3, 0.3)
    # The quantile at .95 would be .8: between .3 and .8 lies everything.
    assert central_interval(atoms_from_unsorted(np.array([0.3, 0.8]), np.array([0.85, 0.15])), 0.9) == (0.3, 0.8)


def test_between_the_ends_lies_the_level_on_average():
    """Over distributions of one document, drawn at random, the interval covers the truth at the nominal rate."""
    rng = np.random.default_rng(0)
    held, quantiles = [], []
    for chance in rng.random(4000):
        distribution = atoms_from_unsorted(np.array([0.0, 1.0]), np.array([1 - chance, chance]))
        truth = float(rng.random() < chance)
        low, high = central_interval(distribution, 0.9)
        held.append(low <= truth <= high)
        low, high = distribution.quantiles(np.array([0.05, 0.95]))
        quantiles.append(low <= truth <= high)
    # Expected: a certain end is missed with the chance c of the other, for c below .1: 2 ∫ c dc = .01.
    assert np.mean(held) == pytest.approx(1 - 0.01, abs=0.006)
    assert np.mean(quantiles) >= np.mean(held)


# Linear weights of scores; the choice of documents is tested with the function that users call.


@pytest.mark.parametrize("n_priors", [1, 3])
def test_the_line_through_scores_that_are_one_has_its_weights(n_priors):
    gain, weights = np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    prob, value = rng.dirichlet(np.ones(3), n_priors), lambda _, assigned: 0.1 + gain[assigned] @ weights
    model = topic_model(np.zeros(3), prob, np.full(3, 9), gain, value=value)
    assert linear_weights(model, 0, rng.random((50, 3))) == pytest.approx(weights)


def test_many_documents_of_which_all_have_one_grade_have_one_sequence():
    assert exact.sequences(1, 70).tolist() == [[0] * 70]
    assert exact.sequences(2, 2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_sequences_of_levels_are_counted_up_to_a_limit():
    # Of 3 documents, at most one is assigned level 1: none, or each of the three.
    assert n_assigned_sequences(np.array([9, 1]), 3, 100) == 4
    assert n_assigned_sequences(np.array([9, 3]), 3, 100) == 8
    assert n_assigned_sequences(np.array([9, 3]), 3, 7) == float("inf")
