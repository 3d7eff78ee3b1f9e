"""Draws that share their prior's uncertainty, against the urn followed by hand, ball by ball."""

import dataclasses
import math

import numpy as np
import pytest
from urn import no_draws, outcome_moments, outcome_probs, random_problem, topic_model

from vbterrier.kernels.grades import choice
from vbterrier.kernels.grades.choice import TooLargeError, topic_distributions
from vbterrier.kernels.grades.exact import enumerated_distribution, n_walk_states, sampled_scores, walk
from vbterrier.kernels.grades.model import UnjudgedModel, comonotone_variance, urn
from vbterrier.kernels.grades.moments import moments
from vbterrier.kernels.rankings import discounts

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def uncertain_problem(rng, *, n_unjudged=None, shared=None, **options):
    """A random problem with a prior of some strength; by hand, four documents with separate priors are many."""
    shared = rng.random() < 0.6 if shared is None else shared
    n_unjudged = int(rng.integers(0, 5)) if n_unjudged is None else n_unjudged
    options = {"n_levels": int(rng.integers(2, 4)), "strength": rng.choice([0.02, 0.7, 3.0, 40.0]), **options}
    return random_problem(rng, n_unjudged=n_unjudged, shared=shared, **options)


def with_strength(model, strength):
    return dataclasses.replace(model, strength=np.full(len(model), float(strength)))


def same_law(distribution, outcome, tolerance=1e-12):
    values, probs = distribution.atoms()
    # Rounding to 11 places joins what belongs together.
    assert values == pytest.approx(list(outcome), abs=2e-11)
    assert probs == pytest.approx(list(outcome.values()), abs=tolerance)


@pytest.mark.parametrize("seed", range(12))
def test_random_problems_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        model = uncertain_problem(rng)
        outcome = outcome_probs(model)
        same_law(topic_distributions(model, "exact", no_draws)[0], outcome)
        mean, variance = moments(model)
        if not np.isnan(mean[0]):
            assert (mean[0], variance[0]) == pytest.approx(outcome_moments(outcome), abs=1e-11)
        else:
            assert model.binds[0]
            assert not model.is_shared


def test_two_documents_by_hand():
    # Two documents, grade 1 with probability p, s = 2: P(1,1) = p·(2p + 1)/3 and so on.
    p, s = 0.3, 2.0
    model = topic_model([1.0, 10.0], [1 - p, p], [9, 9], [0, 1], strength=s)
    both, one = p * (s * p + 1) / (s + 1), p * s * (1 - p) / (s + 1)
    values, probs = topic_distributions(model, "exact", no_draws)[0].atoms()
    assert values.tolist() == [0.0, 1.0, 10.0, 11.0]
    assert probs == pytest.approx([1 - both - 2 * one, one, one, both], abs=1e-15)
    mean, variance = moments(model)
    assert mean[0] == pytest.approx(11 * p)
    # Cov = p(1-p)/(s+1).
    assert variance[0] == pytest.approx(p * (1 - p) * (1 + 100 + 2 * 10 / (s + 1)))
    # With one document of grade 1 left, the second falls to grade 0.
    last = dataclasses.replace(model, left=np.array([[9, 1]]))
    values, probs = topic_distributions(last, "exact", no_draws)[0].atoms()
    assert values.tolist() == [0.0, 1.0, 10.0]
    assert probs == pytest.approx([1 - both - 2 * one, one + both, one], abs=1e-15)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("binding", [False, True])
def test_a_strong_prior_is_a_known_one(shared, binding):
    rng = np.random.default_rng(3)
    for _ in range(6):
        model = uncertain_problem(rng, n_unjudged=4, shared=shared, binding=binding)
        independent = dataclasses.replace(model, strength=None)
        truth = topic_distributions(independent, "exact", no_draws)[0]
        exactly, strong = (topic_distributions(with_strength(model, s), "exact", no_draws)[0] for s in (np.inf, 1e12))
        assert exactly.atoms()[1] == pytest.approx(truth.atoms()[1], abs=1e-15)
        assert strong.atoms()[1] == pytest.approx(truth.atoms()[1], abs=1e-10)
        assert moments(with_strength(model, np.inf))[1] == pytest.approx(moments(independent)[1], abs=1e-15)


def batch_of(singles):
    names = ("base", "weights", "n_unjudged", "prob", "left", "strength")
    return UnjudgedModel(
        **{name: np.concatenate([getattr(single, name) for single in singles]) for name in names}, gain=singles[0].gain
    )


def test_means_without_variances_are_the_same_and_batches_change_nothing(monkeypatch):
    rng = np.random.default_rng(19)
    batch = batch_of([uncertain_problem(rng, n_unjudged=5, shared=True, binding=True, n_levels=3) for _ in range(40)])
    mean, variance = moments(batch)
    assert not np.isnan(variance).any()
    alone, left_out = moments(batch, with_variance=False)
    assert alone.tolist() == mean.tolist()
    assert np.isnan(left_out).any()
    monkeypatch.setattr("vbterrier.kernels.grades.moments._BLOCK_CELLS", 50)
    assert [part.tolist() for part in moments(batch)] == [mean.tolist(), variance.tolist()]


@pytest.mark.parametrize(("n_levels", "n_unjudged"), [(4, 6), (6, 5), (16, 4)])
@pytest.mark.parametrize("strength", [0.3, 5.0, np.inf])
def test_moments_by_recursion_over_levels_equal_those_of_all_sequences(n_levels, n_unjudged, strength, monkeypatch):
    rng = np.random.default_rng(n_levels)
    counts = np.array([n_unjudged, n_unjudged, n_unjudged - 1, 1, 0])
    model = UnjudgedModel(
        rng.random(5),
        np.where(np.arange(n_unjudged) < counts[:, None], rng.random((5, n_unjudged)), 0.0),
        counts,
        rng.dirichlet(np.full(n_levels, 0.5), (5, 1)),
        rng.integers(0, 3, (5, n_levels)),
        np.sort(rng.choice(40, n_levels, replace=False)).astype(float),
        np.full(5, strength),
    )
    assert model.binds[:3].all()
    listed = [enumerated_distribution(model, topic) for topic in range(5)]
    expected = [distribution.values @ distribution.probs for distribution in listed]
    assert moments(model, with_variance=False)[0] == pytest.approx(expected, rel=1e-12)
    squares = [(each.values - mean) ** 2 @ each.probs for each, mean in zip(listed, expected, strict=True)]
    for few, work, batch in ((0, 0, 1), (0, 0, 100_000), (3, 10**6, 100_000)):
        monkeypatch.setattr("vbterrier.kernels.grades.moments._FEW_COUNTS", few)
        monkeypatch.setattr("vbterrier.kernels.grades.moments._PAIR_WORK", work)
        monkeypatch.setattr("vbterrier.kernels.grades.moments._BLOCK_CELLS", batch)
        mean, variance = moments(model)
        assert mean == pytest.approx(expected, rel=1e-12)
        assert variance == pytest.approx(squares, rel=1e-9, abs=1e-12)
    monkeypatch.setattr("vbterrier.kernels.grades.moments._MOST_DOCUMENTS", 0)
    for work in (0, 10**6):
        # Pairs need the mean of the recursion over levels.
        monkeypatch.setattr("vbterrier.kernels.grades.moments._PAIR_WORK", work)
        mean, variance = moments(model)
        assert mean == pytest.approx(expected, rel=1e-12)
        assert variance == pytest.approx(squares, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("strength", [0.05, 4.0, np.inf])
def test_the_longest_list_of_the_recursion_equals_that_of_the_states(strength, monkeypatch):
    model = topic_model(discounts(100), [0.6, 0.3, 0.1], [99, 9, 4], [0, 1, 2], strength=strength)
    by_levels = moments(model, with_variance=False)[0]
    monkeypatch.setattr("vbterrier.kernels.grades.moments._MOST_DOCUMENTS", 99)
    assert by_levels == pytest.approx(moments(model, with_variance=False)[0], rel=1e-12)


def test_a_batch_of_mixed_strengths_equals_its_topics_one_by_one():
    rng = np.random.default_rng(9)
    batch = batch_of(
        [uncertain_problem(rng, n_unjudged=5, shared=True, binding=row % 3 == 0, n_levels=3) for row in range(30)]
    )
    batch.strength[::4] = np.inf
    batch.n_unjudged[::5] = 3
    batch.weights[::5, 3:] = 0.0
    mean, variance = moments(batch)
    distributions = topic_distributions(batch, "auto", no_draws)
    for row in range(len(batch)):
        alone = batch.select(np.array([row]))
        assert (mean[row], variance[row]) == pytest.approx([m[0] for m in moments(alone)], abs=1e-13)
        assert distributions[row].quantiles(LEVELS) == pytest.approx(
            topic_distributions(alone, "auto", no_draws)[0].quantiles(LEVELS), abs=1e-12
        )
        same_law(distributions[row], outcome_probs(alone))


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_numbers_of_the_urn_give_the_exact_distribution(shared, numbers):
    rng = np.random.default_rng(6)
    n = 40_000
    for _ in range(6):
        model = uncertain_problem(
            rng, n_unjudged=4, shared=shared, n_levels=3, **({"strength": np.inf} if numbers else {})
        )
        truth = topic_distributions(model, "exact", no_draws)[0]
        sample = topic_distributions(
            model, "mc", lambda _, s=model.strength[0]: urn(np.random.default_rng(1), n, 4, s)
        )[0]
        low, high = sample.brackets(LEVELS)
        at = truth.quantiles(LEVELS)
        assert ((low - 1e-9 <= at) & (at <= high + 1e-9)).all()
        values, probs = truth.atoms()
        # Where every draw has the same value, its mean is rounded in the order in which NumPy sums.
        within = 5 * np.std(sample.values) / np.sqrt(n) + 1e-12
        assert sample.values.mean() == pytest.approx(values @ probs, abs=within)


def test_a_known_prior_gives_independent_numbers():
    numbers = urn(np.random.default_rng(2), 100, 5, np.inf)
    assert (numbers == np.random.default_rng(2).random((100, 5))).all()
    assert urn(np.random.default_rng(2), 3, 0, 1.0).shape == (3, 0)


def product(levels):
    """A score that is no sum: documents count only together with the one before."""
    before = np.concatenate([np.ones((len(levels), 1)), levels[:, :-1]], axis=1)
    return (levels * before).sum(axis=1) / 10.0


@pytest.mark.parametrize("loose", [False, True])
def test_scores_that_are_no_sums(loose):
    rng = np.random.default_rng(10)
    for _ in range(20):
        model = dataclasses.replace(uncertain_problem(rng), value=lambda topic, levels: product(levels) + topic)
        model = model if loose else dataclasses.replace(model, strength=None)
        outcome = outcome_probs(model)
        distribution = topic_distributions(model, "auto", no_draws)[0]
        same_law(distribution, outcome)
        assert np.isnan(moments(model)).all()
        n, s = int(model.n_unjudged[0]), model.strength[0] if loose else np.inf
        sample = topic_distributions(model, "mc", lambda _, n=n, s=s: urn(np.random.default_rng(1), 20_000, n, s))[0]
        low, high = sample.brackets(LEVELS)
        at = distribution.quantiles(LEVELS)
        assert ((low - 1e-9 <= at) & (at <= high + 1e-9)).all()


def test_some_topics_keep_their_place_in_the_score():
    one = topic_model([0.0], [0.5, 0.5], [9, 9], [0, 1], value=lambda topic, levels: topic + levels[:, 0] / 2)
    model = dataclasses.replace(one.select(np.zeros(3, dtype=int)), value=one.value)
    some = model.select(np.array([2, 0])).select(slice(0, 1))
    assert topic_distributions(some, "auto", no_draws)[0].atoms()[0].tolist() == [2.0, 2.5]
    assert sampled_scores(model, 1, np.array([[0.2], [0.7]])).tolist() == [1.0, 1.5]


@pytest.mark.parametrize("kind", ["sum", "value", "binding", "priors"])
def test_too_large_is_an_error_or_sampled_and_scores_or_draws_that_do_not_come_apart_have_no_grid(kind, monkeypatch):
    rng = np.random.default_rng(11)
    model = uncertain_problem(rng, n_levels=3, n_unjudged=4, shared=kind != "priors", binding=kind == "binding")
    if kind == "value":
        model = dataclasses.replace(model, value=lambda _, levels: product(levels))
    if kind == "sum":
        model = dataclasses.replace(model, strength=None)
    if kind in ("value", "priors"):
        with pytest.raises(TooLargeError, match="topic 0"):
            topic_distributions(model, "grid", no_draws)
    for name in ("MAX_SEQUENCES", "MAX_SETS", "MAX_HALF", "MAX_JOINED", "MAX_CELL_UPDATES", "MAX_LATTICE"):
        for method in getattr(choice, name):
            monkeypatch.setitem(getattr(choice, name), method, 1)
    for method in ("exact", "grid"):
        with pytest.raises(TooLargeError, match="topic 0"):
            topic_distributions(model, method, no_draws)
    distribution = topic_distributions(model, "auto", lambda _: urn(rng, 50, 4, 1.0))[0]
    assert (distribution.method, distribution.legacy) == ("mc", False)


def test_blocks_of_draws_do_not_change_scores(monkeypatch):
    model = uncertain_problem(np.random.default_rng(14), n_unjudged=4)
    numbers = np.random.default_rng(0).random((100, 4))
    whole = sampled_scores(model, 0, numbers)
    monkeypatch.setattr("vbterrier.kernels.grades.exact.BLOCK_SEQUENCES", 7)
    assert (sampled_scores(model, 0, numbers) == whole).all()


def free_problem(weights, strength=np.inf, prob=(0.5, 0.3, 0.2), gain=(0.0, 0.5, 1.0), left=(99, 99, 99)):
    return topic_model(weights, prob, left, gain, base=0.1, strength=strength)


WEIGHTS = {
    "nDCG": lambda n: discounts(n) / 7,
    "RBP": lambda n: 0.2 * 0.8 ** np.arange(n),
    "RBP, halving": lambda n: 0.5 * 0.5 ** np.arange(n),
    "RBP, first only": lambda n: np.eye(1, n)[0],
    "precision": lambda n: np.full(n, 1 / 20),
}


@pytest.mark.parametrize("strength", [np.inf, 0.6, 9.0])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_halves_that_depend_on_each_other_or_are_of_one_kin_equal_the_list(kind, strength):
    n = 8
    for prob in ((0.5, 0.3, 0.2), (0.0, 0.6, 0.4)):
        model = free_problem(WEIGHTS[kind](n), strength, prob)
        distribution = topic_distributions(model, "auto", no_draws)[0]
        truth = enumerated_distribution(model, 0)
        assert distribution.method == "exact"
        assert distribution.atoms()[0] == pytest.approx(truth.atoms()[0], abs=2e-12)
        assert distribution.atoms()[1] == pytest.approx(truth.atoms()[1], abs=1e-12)
        levels = np.linspace(0, 1, 23)
        assert distribution.quantiles(levels) == pytest.approx(truth.quantiles(levels), abs=2e-12)
        assert (distribution.brackets(levels) == distribution.quantiles(levels)).all()
        assert distribution.mode() == pytest.approx(truth.mode(), abs=2e-12)
        values = truth.atoms()[0][::-50].reshape(-1, 1)
        assert distribution.cdf(values) == pytest.approx(truth.cdf(values), abs=1e-12)


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("strength", [np.inf, 2.0])
@pytest.mark.parametrize("left", [99, 6])
def test_precision_is_exact_however_deep(method, strength, left):
    n = 40
    model = free_problem(np.full(n, 1 / 50), strength, gain=(0.0, 1.0, 1.0), left=(99, left, 2 * left))
    distribution = topic_distributions(model, method, no_draws)[0]
    values, probs = distribution.atoms()
    assert distribution.method == "exact"
    assert (values - 0.1) * 50 == pytest.approx(np.round((values - 0.1) * 50), abs=1e-9)
    mean, variance = moments(model)
    assert (mean[0], variance[0]) == pytest.approx((values @ probs, (values - mean[0]) ** 2 @ probs), abs=1e-12)
    if left == 99 and np.isinf(strength):
        # Binomial(40, 0.5).
        assert probs[20] == pytest.approx(math.comb(n, 20) / 2**n)


def test_kin_too_many_to_multiply_out_goes_to_the_grid():
    model = free_problem(0.2 * 0.8 ** np.arange(18))
    assert topic_distributions(model, "auto", no_draws)[0].method == "grid"
    with pytest.raises(TooLargeError, match="topic 0"):
        topic_distributions(model, "exact", no_draws)
    deep = free_problem(0.5 * 0.5 ** np.arange(1200))
    assert topic_distributions(deep, "mc", lambda _: np.random.default_rng(0).random((10, 1200)))[0].n_atoms == 10
    # Among more sequences than a float can count, none is listed.
    assert topic_distributions(deep, "auto", lambda _: np.random.default_rng(0).random((10, 1200)))[0].method in (
        "grid",
        "mc",
    )


def test_certain_and_uncertain_priors_do_not_mix_where_the_same_grades_run_out():
    model = uncertain_problem(np.random.default_rng(15), n_unjudged=4, shared=True, n_levels=3)
    both = dataclasses.replace(model, left=np.array([[1, 1, 1]])).select(np.zeros(2, dtype=int))
    for strength in ([np.inf, 0.7], [0.7, np.inf]):
        mixed = dataclasses.replace(both, strength=np.array(strength))
        assert mixed.binds.all()
        expected = [outcome_moments(outcome_probs(mixed, topic)) for topic in range(2)]
        assert np.column_stack(moments(mixed)) == pytest.approx(np.array(expected), abs=1e-11)


def test_states_count_the_levels_that_are_drawn_alone():
    model = topic_model(np.ones(4), [0.5, 0.0, 0.5], [9, 9, 9], [0, 1, 2], strength=2.0)
    # So many of the four documents are on the second of two levels: none to all of them.
    assert n_walk_states(model) == len(walk(model)) == 5


def test_the_variance_of_one_number_for_all_is_that_of_its_steps():
    rng = np.random.default_rng(8)
    prob, weights, gain = rng.dirichlet(np.ones(3), (4, 2)), rng.random((4, 2)), np.array([0.0, 1.0, 3.0])
    result = comonotone_variance(prob, weights, gain)
    for topic in range(4):
        ends = np.cumsum(prob[topic], axis=1)[:, :-1]
        cuts = np.sort([0.0, *ends.ravel(), 1.0])
        middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
        scores = [weights[topic] @ gain[(ends <= u).sum(axis=1)] for u in middles]
        mean = widths @ scores
        assert result[topic] == pytest.approx(widths @ (np.array(scores) - mean) ** 2)
