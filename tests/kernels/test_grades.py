"""The engine against the process followed by hand: every sequence of drawn grades, one by one."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from urn import followed, moments_of, no_draws

from vbterrier.kernels.grades import choice, exact
from vbterrier.kernels.grades import choice as grid
from vbterrier.kernels.grades.choice import TooLargeError, distribution_of
from vbterrier.kernels.grades.distributions import Convolution, Grid, Pairs, Sample, atoms_of, histogram_mode, merged
from vbterrier.kernels.grades.exact import sampled_distribution, sequence_probs
from vbterrier.kernels.grades.model import UnjudgedModel
from vbterrier.kernels.grades.moments import moments
from vbterrier.kernels.rankings import discounts

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def draws(n_draws, n_unjudged, seed=0):
    return lambda _: np.random.default_rng(seed).random((n_draws, n_unjudged))


def expected_quantile(outcome, level):
    reached = 0.0
    for value, chance in outcome.items():
        reached += chance
        if reached >= level - 1e-12:
            return value
    return value


def random_problem(rng, *, n_levels=None, n_unjudged=None, binding=None):
    n_levels = n_levels or int(rng.integers(1, 5))
    n_unjudged = int(rng.integers(0, 6)) if n_unjudged is None else n_unjudged
    gain = np.concatenate([[0.0], np.sort(rng.choice(np.arange(1, 9), n_levels - 1, replace=False))]).astype(float)
    prob = rng.random((n_unjudged if rng.random() < 0.5 else 1, n_levels)) * (rng.random(n_levels) < 0.8)
    prob[:, 0] += 1e-3
    prob /= prob.sum(axis=1, keepdims=True)
    left = (
        rng.integers(0, 4, n_levels) if (rng.random() < 0.6 if binding is None else binding) else np.full(n_levels, 50)
    )
    weights = discounts(12)[np.sort(rng.choice(12, n_unjudged, replace=False))] / 7.0
    return UnjudgedModel(np.array([rng.random()]), weights[None], np.array([n_unjudged]), prob[None], left[None], gain)


def free_problem(n_unjudged):
    """Three levels, all with enough documents, at the first ranks."""
    return UnjudgedModel(
        np.array([0.1]),
        discounts(n_unjudged)[None] / 9,
        np.array([n_unjudged]),
        np.array([[[0.5, 0.3, 0.2]]]),
        np.array([[99, 99, 99]]),
        np.array([0.0, 1.0, 2.0]),
    )


def whole_list(model):
    gain, prob, _ = exact.active(model)
    n_unjudged = int(model.n_unjudged[0])
    return exact._values(model.base, model.weights, gain), sequence_probs(prob, n_unjudged, None)


def stacked(problems):
    """Problems of one number of levels as one batch, padded as the callers pad."""
    width = max(int(p.n_unjudged[0]) for p in problems)
    n_levels = len(problems[0].gain)
    weights, prob = np.zeros((len(problems), width)), np.zeros((len(problems), max(width, 1), n_levels))
    prob[:, :, 0] = 1.0
    for row, p in enumerate(problems):
        n = int(p.n_unjudged[0])
        weights[row, :n] = p.weights[0]
        prob[row, :n] = p.prob[0]
    return UnjudgedModel(
        np.concatenate([p.base for p in problems]),
        weights,
        np.concatenate([p.n_unjudged for p in problems]),
        prob,
        np.concatenate([p.left for p in problems]),
        problems[0].gain,
    )


@pytest.mark.parametrize("seed", range(20))
def test_five_hundred_random_problems_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        model = random_problem(rng)
        outcome = followed(model, digits=12)
        mean, variance = moments(model)
        assert (mean[0], variance[0]) == pytest.approx(moments_of(outcome), abs=1e-12)
        distribution = distribution_of(model, "exact", no_draws)[0]
        values, probs = distribution.atoms()
        assert values == pytest.approx(list(outcome), abs=2e-12)
        assert probs == pytest.approx(list(outcome.values()), abs=1e-12)
        assert distribution.quantiles(LEVELS) == pytest.approx(
            [expected_quantile(outcome, q) for q in LEVELS], abs=2e-12
        )
        assert (distribution.brackets(LEVELS) == distribution.quantiles(LEVELS)).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_batch_equals_its_topics_one_by_one(seed):
    rng = np.random.default_rng(seed)
    singles = [random_problem(rng, n_levels=3) for _ in range(40)]
    gain = np.array([0.0, 1.0, 2.0])
    singles = [UnjudgedModel(p.base, p.weights, p.n_unjudged, p.prob, p.left, gain) for p in singles]
    batch = stacked(singles)
    mean, variance = moments(batch)
    distributions = distribution_of(batch, "auto", no_draws)
    for row, single in enumerate(singles):
        assert (mean[row], variance[row]) == pytest.approx([m[0] for m in moments(single)], abs=1e-13)
        alone = distribution_of(single, "auto", no_draws)[0]
        assert distributions[row].quantiles(LEVELS) == pytest.approx(alone.quantiles(LEVELS), abs=1e-13)
        assert distributions[row].mode() == pytest.approx(alone.mode(), abs=1e-12)
        assert distributions[row].cdf(0.6) == pytest.approx(alone.cdf(0.6), abs=1e-12)


def test_worked_case_where_every_grade_can_run_out():
    ideal = 2 + discounts(2)[1]
    model = UnjudgedModel(
        np.zeros(1),
        discounts(3)[None] / ideal,
        np.array([3]),
        np.array([[[0.5, 0.2, 0.3]]]),
        np.array([[1, 1, 1]]),
        np.array([0.0, 1.0, 2.0]),
    )
    mean, variance = moments(model)
    assert ideal == pytest.approx(2.6309297536)
    assert mean[0] == pytest.approx(0.5586325264, abs=1e-10)
    assert variance[0] == pytest.approx(0.1108513044, abs=1e-10)


@pytest.mark.parametrize("n_unjudged", [7, 9, 11])
def test_two_halves_equal_the_sorted_whole(n_unjudged):
    model = free_problem(n_unjudged)
    distribution = distribution_of(model, "auto", no_draws)[0]
    assert isinstance(distribution, Convolution)
    values, probs = whole_list(model)
    whole = atoms_of(values[0], probs[0])
    assert distribution.quantiles(LEVELS) == pytest.approx(whole.quantiles(LEVELS), abs=1e-12)
    assert [distribution._by_bisection(q) for q in LEVELS] == pytest.approx(whole.quantiles(LEVELS), abs=3e-12)
    assert distribution._by_bisection(0.0) == pytest.approx(whole.values[0], abs=1e-12)
    assert distribution.mode() == pytest.approx(whole.mode(), abs=1e-12)
    assert distribution.cdf(float(whole.values[500])) == pytest.approx(whole.cdf(float(whole.values[500])), abs=1e-12)
    assert distribution.atoms()[0] == pytest.approx(whole.atoms()[0], abs=2e-12)
    assert distribution.atoms()[1] == pytest.approx(whole.atoms()[1], abs=1e-12)
    assert (distribution.brackets(LEVELS) == distribution.quantiles(LEVELS)).all()


def test_halves_too_large_to_multiply_out_are_bisected():
    longer = free_problem(18)
    distribution = distribution_of(longer, "auto", no_draws)[0]
    assert distribution.n_atoms > 1 << 20
    assert not distribution.is_sorted
    at = distribution.quantiles(LEVELS)
    for level, value in zip(LEVELS, at, strict=True):
        assert distribution.cdf(value) >= level - 1e-9 > distribution.cdf(value - 1e-9) - 1e-9
    mean, variance = moments(longer)
    approximation = grid.grid_distribution(longer, 0)
    assert approximation.quantiles(LEVELS) == pytest.approx(at, abs=1e-3)
    assert (np.diff(distribution.quantiles(np.linspace(0.01, 0.99, 25))) >= 0).all()
    assert distribution.cdf(mean[0] + 8 * np.sqrt(variance[0])) == pytest.approx(1)


def test_split_keeps_commensurable_discounts_together():
    first, second, apart = exact.split(discounts(16))
    assert apart
    homes = {int(rank): 0 for rank in first + 1} | {int(rank): 1 for rank in second + 1}
    assert len({homes[rank] for rank in (1, 3, 7, 15)}) == 1
    assert homes[2] == homes[8]
    assert abs(len(first) - len(second)) <= 1


@pytest.mark.parametrize("binding", [False, True])
def test_the_grid_brackets_the_exact_quantiles(binding):
    rng = np.random.default_rng(3)
    for _ in range(20):
        model = random_problem(rng, n_levels=3, n_unjudged=6, binding=binding)
        truth = distribution_of(model, "exact", no_draws)[0].quantiles(LEVELS)
        distribution = distribution_of(model, "grid", no_draws)[0]
        low, high = distribution.brackets(LEVELS)
        assert (low <= truth + 1e-12).all()
        assert (truth <= high + 1e-12).all()
        assert (high - low <= 2 * 6 * distribution.cell + 1e-15).all()
        assert distribution.values @ distribution.probs == pytest.approx(moments(model)[0][0], abs=1e-10)
        assert distribution.method == "grid"


def test_a_deep_ranking_gets_the_narrower_bracket():
    n = 400
    prob = np.array([[[0.7, 0.2, 0.1]]])
    model = UnjudgedModel(
        np.zeros(1),
        discounts(n)[None] / 60,
        np.array([n]),
        prob,
        np.array([[999, 999, 999]]),
        np.array([0.0, 1.0, 2.0]),
    )
    distribution = distribution_of(model, "auto", no_draws)[0]
    assert distribution.method == "grid"
    low, high = distribution.brackets(LEVELS)
    assert (high - low < 2 * n * distribution.cell).all()
    sample = distribution_of(model, "mc", draws(20_000, n))[0]
    below, above = sample.brackets(LEVELS)
    assert (np.maximum(low, below) <= np.minimum(high, above)).all()


@pytest.mark.parametrize("binding", [False, True])
def test_draws_follow_the_process(binding):
    rng = np.random.default_rng(8)
    for _ in range(8):
        model = random_problem(rng, n_levels=4, n_unjudged=4, binding=binding)
        distribution = distribution_of(model, "mc", draws(40_000, 4, seed=5))[0]
        outcome = followed(model, digits=12)
        mean, variance = moments_of(outcome)
        assert distribution.values.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / 40_000) + 1e-12)
        low, high = distribution.brackets(LEVELS)
        truth = np.array([expected_quantile(outcome, q) for q in LEVELS])
        assert ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all()
        assert distribution.mode() in distribution.values


def test_too_large_for_the_asked_method_is_an_error_and_auto_falls_back(monkeypatch):
    model = random_problem(np.random.default_rng(2), n_levels=3, n_unjudged=5, binding=False)
    monkeypatch.setitem(choice.MAX_HALF, "exact", 1)
    monkeypatch.setitem(choice.MAX_HALF, "auto", 1)
    with pytest.raises(TooLargeError, match="topic 0"):
        distribution_of(model, "exact", no_draws)
    monkeypatch.setitem(choice.MAX_CELLS, "grid", 1)
    monkeypatch.setitem(choice.MAX_CELLS, "auto", 1)
    with pytest.raises(TooLargeError, match="topic 0"):
        distribution_of(model, "grid", no_draws)
    distribution = distribution_of(model, "auto", draws(10, 5))[0]
    assert distribution.method == "mc"
    assert not distribution.legacy


def test_moments_beyond_the_work_limit_are_left_to_the_caller(monkeypatch):
    monkeypatch.setattr("vbterrier.kernels.grades.moments.MAX_WORK", 0)
    model = UnjudgedModel(
        np.zeros(1),
        discounts(3)[None],
        np.array([3]),
        np.array([[[0.5, 0.5]]]),
        np.array([[9, 1]]),
        np.array([0.0, 1.0]),
    )
    mean, variance = moments(model)
    assert np.isnan(mean).all()
    assert np.isnan(variance).all()


def test_no_topics_is_an_empty_answer():
    model = UnjudgedModel(
        np.zeros(0),
        np.zeros((0, 3)),
        np.zeros(0, int),
        np.zeros((0, 1, 2)),
        np.zeros((0, 2), int),
        np.array([0.0, 1.0]),
    )
    assert moments(model)[0].shape == (0,)
    assert distribution_of(model, "auto", no_draws) == []


def test_impossible_values_are_left_out_and_neighbours_merged():
    values, probs = merged(np.array([0.1, 0.5, 0.5 + 1e-13, 0.9]), np.array([0.0, 0.25, 0.25, 0.5]))
    assert values.tolist() == [0.5, 0.9]
    assert probs.tolist() == [0.5, 0.5]


def test_the_mode_of_two_equal_peaks_is_the_larger():
    assert atoms_of(np.array([0.9, 0.1, 0.5]), np.array([0.4, 0.4, 0.2])).mode() == 0.9


def test_cdf_below_the_first_atom_is_zero():
    assert atoms_of(np.array([0.5]), np.ones(1)).cdf(0.4) == 0.0
    assert atoms_of(np.array([0.5]), np.ones(1)).cdf(0.5) == 1.0


def test_legacy_draws_interpolate_and_read_the_mode_from_histograms():
    values = np.array([0.0, 0.1, 0.1, 0.3])
    distribution = Sample(values, np.full(4, 0.25), np.arange(1, 5) / 4, method="mc", legacy=True)
    assert distribution.quantiles(np.array([0.5, 0.75])).tolist() == pytest.approx([0.1, 0.15])
    assert distribution.mode() == 0.1
    assert histogram_mode(np.full(5, 0.7)) == 0.7


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=5),
    st.lists(st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]), min_size=3, max_size=3).filter(any),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_properties_of_every_law(weights, prob, left):
    prob = np.array(prob) / sum(prob)
    n = len(weights)
    model = UnjudgedModel(
        np.array([0.25]),
        np.array([weights]),
        np.array([n]),
        prob[None, None],
        np.array([left]),
        np.array([0.0, 1.0, 3.0]),
    )
    mean, variance = moments(model)
    distribution = distribution_of(model, "auto", no_draws)[0]
    values, probs = distribution.atoms()
    assert probs.sum() == pytest.approx(1, abs=1e-12)
    assert values @ probs == pytest.approx(mean[0], abs=1e-11)
    assert (values - mean[0]) ** 2 @ probs == pytest.approx(variance[0], abs=1e-10)
    assert values.min() >= 0.25 - 1e-12
    assert values.max() <= 0.25 + 3 * sum(weights) + 1e-9
    quantiles = distribution.quantiles(np.linspace(0, 1, 21))
    assert (np.diff(quantiles) >= 0).all()
    assert quantiles[0] == pytest.approx(values[0], abs=1e-12)


def test_the_mode_of_histograms_is_that_of_counting_by_hand():
    def fullest(draws):
        edges = np.linspace(min(draws), max(draws), 21).tolist()
        bins = [[x for x in draws if low < x <= high] for low, high in itertools.pairwise([-np.inf, *edges[1:]])]
        most = max(map(len, bins))
        return [x for inside in bins if len(inside) == most for x in inside]

    for seed in range(20):
        drawn = np.random.default_rng(seed).gamma(2.0, size=300)
        assert histogram_mode(drawn) == max(fullest(fullest(drawn.tolist())))


def test_a_sample_is_its_draws_each_as_likely():
    distribution = sampled_distribution(free_problem(1), 0, np.array([[0.1], [0.6], [0.9], [0.2]]))
    one, two = 0.1 + 1 / 9, 0.1 + 2 / 9
    assert [distribution.cdf(value) for value in (0.0, 0.1, one, two)] == [0.0, 0.5, 0.75, 1.0]
    assert distribution.quantiles(np.array([0.0, 0.5, 0.51, 0.75, 0.76, 1.0])) == pytest.approx(
        [0.1, 0.1, one, one, two, two]
    )
    assert distribution.atoms()[1].tolist() == [0.5, 0.25, 0.25]


def test_brackets_of_a_sample_are_the_band_of_massart():
    distribution = Sample(np.arange(1.0, 1001.0), np.full(1000, 1e-3), np.arange(1, 1001) / 1000, method="mc")
    # sqrt(log(2/0.05) / 2000) = 0.04295.
    assert distribution.brackets(np.array([0.5, 0.99])).tolist() == [[458.0, 948.0], [543.0, 1000.0]]


def test_the_work_of_a_lattice_is_that_of_its_own_topic():
    model = UnjudgedModel(
        np.zeros(2),
        np.array([[1.0, np.sqrt(2)], [1.0, 2.0]]),
        np.array([2, 2]),
        np.full((2, 1, 2), 0.5),
        np.full((2, 2), 9),
        np.array([0.0, 1.0]),
    )
    assert grid.lattice_work(model, 0) == np.inf
    assert grid.lattice_work(model, 1) == grid.lattice_work(model.select(slice(1, 2)), 0) < np.inf


def test_a_grid_covers_what_can_be_scored_and_no_more():
    model = dataclasses.replace(free_problem(4), left=np.array([[99, 99, 0]]))
    distribution = grid.grid_distribution(model, 0)
    assert distribution.cell * grid.CELLS == pytest.approx(model.weights.sum())
    assert distribution.mode() <= model.base[0] + model.weights.sum() + distribution.cell


def test_one_document_is_a_half_and_nothing():
    first, second, apart = exact.split(np.ones(1))
    assert (first.tolist(), second.tolist(), apart) == ([0], [], True)
    assert np.ones(1)[second].size == 0


def test_the_limit_of_work_is_states_by_documents_by_levels(monkeypatch):
    model = dataclasses.replace(free_problem(4), left=np.array([[99, 2, 1]]))
    limit = 3 * 2 * 4 * 3
    for most, known in ((limit, True), (limit - 1, False)):
        monkeypatch.setattr("vbterrier.kernels.grades.moments.MAX_WORK", most)
        assert np.isfinite(moments(model)).all() == known


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
        ("MAX_JOINED", 3**5, dataclasses.replace(free_problem(5), strength=np.array([2.0]))),
        (
            "MAX_SETS",
            3**4 * 3**4,
            dataclasses.replace(
                free_problem(4),
                strength=np.array([2.0]),
                prob=np.random.default_rng(1).dirichlet(np.ones(3), (1, 4)),
            ),
        ),
    ],
)
def test_limits_of_what_is_done_exactly_are_met_to_the_last(limit, most, model, monkeypatch):
    for allowed, expected in ((most, True), (most - 1, False)):
        monkeypatch.setitem(getattr(choice, limit), "exact", allowed)
        assert choice.feasible(model, "exact").tolist() == [expected]
