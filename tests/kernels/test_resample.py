"""Streams, resampling and limits of means: random numbers of seed and name alone, against plain loops and SciPy."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from vbterrier.errors import InputError
from vbterrier.kernels.fingerprints import mix
from vbterrier.kernels.resample import (
    INFINITY_SUBSTITUTE,
    bca_acceleration,
    binomials,
    bounded_limits,
    constant_limits,
    digits,
    gammas,
    left_out_slopes,
    mean_draws,
    nested_noise,
    poisson_weights,
    poissons,
    quantiles_at,
    random_signs,
    resampled_counts,
    resampled_means,
    resampled_variances,
    resamples,
    stream,
    studentised_means,
    weighted_means,
    weighted_sums,
)

names = st.lists(st.text(max_size=6), max_size=3).map(tuple)


def first(seed, *what):
    return stream(seed, *what).random(4).tolist()


@given(st.integers(0, 2**200) | st.sampled_from([0, 2**32 - 1, 2**32, 2**128 - 1, 2**128]), names)
@pytest.mark.slow
def test_a_stream_is_that_of_numpys_spawn_key(seed, what):
    key = [number for word in what for number in (len(word), *word.encode())]
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
    assert first(seed, *what) == expected.random(4).tolist()


@pytest.mark.parametrize(
    "group",
    [
        [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("a", "b", "c")],
        [("1",), ("11",), ("1", "1"), ("é",), ("e\u0301",), ("É",)],
        [(), ("",), ("", ""), ("\0",), ("\0", "\0"), ("\0\0",)],
    ],
)
def test_names_cut_otherwise_are_other_names(group):
    drawn = [tuple(first(3, *what)) for what in group]
    assert len(set(drawn)) == len(group)
    with pytest.raises(ValueError, match="seed=-1: wanted a whole number of at least 0"):
        stream(-1, "q1")


def test_the_numbers_are_those_of_before():
    # NumPy promises the bits of PCG64 for good, not what a Generator makes of them.
    assert stream(0, "q1").bit_generator.random_raw(3).tolist() == [
        7608188247521556960,
        18245194547821072109,
        14452854046650137892,
    ]


def test_resamples_are_counts_of_draws_however_they_are_cut_into_blocks(monkeypatch):
    whole = np.concatenate(list(resamples(7, 50, stream(1, "topics"))))
    drawn = stream(1, "topics").integers(7, size=(50, 7), dtype=np.int32)
    assert whole.tolist() == [[(row == unit).sum() for unit in range(7)] for row in drawn]
    monkeypatch.setattr("vbterrier.kernels.resample._COUNT_BLOCK_CELLS", 90)
    monkeypatch.setattr("vbterrier.kernels.resample._DRAWN", 30)
    blocks = list(resamples(7, 50, stream(1, "topics")))
    assert [len(block) for block in blocks] == [12, 12, 12, 12, 2]
    assert np.array_equal(np.concatenate(blocks), whole)


@pytest.mark.parametrize("n_columns", [0, 1, 2, 3])
@pytest.mark.parametrize("drawn_at_once", [30, 1 << 15])
def test_means_over_resampled_rows_by_plain_loops(monkeypatch, n_columns, drawn_at_once):
    monkeypatch.setattr("vbterrier.kernels.resample._DRAWN", drawn_at_once)
    values = np.random.default_rng(5).random((6, n_columns))
    drawn = stream(2, "topics").integers(6, size=(20, 6), dtype=np.int32)
    expected = [values[rows].mean(axis=0) for rows in drawn]
    assert resampled_means(values, 20, stream(2, "topics")) == pytest.approx(np.array(expected), rel=1e-13)


def test_signs_have_even_chances_and_are_those_of_their_unit():
    signs = np.concatenate(list(random_signs(3, 20_000, stream(1, "signs"))))
    assert signs.shape == (20_000, 3)
    assert set(signs.ravel().tolist()) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(20_000)
    assert np.abs(np.corrcoef(signs.T)[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(20_000)


# Parts of BCa intervals against plain loops, for several scores at once.


def by_hand(left_out, *, of_mean=False):
    """Efron's formula with one query after the other, shape (n, n_topics) to its accelerations."""
    squares, cubes = [], []
    for column in left_out.T:
        values = column[~np.isnan(column)]
        n = max(len(values), 1)
        influence = [(n - 1) * (values.mean() - one) / n for one in values]
        squares.append(sum(one**2 for one in influence))
        cubes.append(sum(one**3 for one in influence))
    if of_mean:
        return sum(cubes) / (6 * sum(squares) ** 1.5)
    return [cube / (6 * square**1.5) for square, cube in zip(squares, cubes, strict=True)]


def test_accelerations_of_several_scores_are_those_of_each():
    left_out = np.random.default_rng(1).random((2, 3, 6, 4))
    left_out[0, 1, 4:, 2] = np.nan
    result, of_mean = bca_acceleration(left_out), bca_acceleration(left_out, of_mean=True)
    assert result.shape == (2, 3, 4)
    assert of_mean.shape == (2, 3)
    for place in np.ndindex(2, 3):
        assert result[place] == pytest.approx(by_hand(left_out[place]))
        assert of_mean[place] == pytest.approx(by_hand(left_out[place], of_mean=True))


def test_quantiles_at_levels_of_their_own_are_numpys():
    rng = np.random.default_rng(2)
    replicas, levels = rng.normal(size=(9, 3, 2)), rng.random((2, 3, 2))
    levels[:, 0] = [[0.0, 1.0], [1.0, 0.0]]
    result = quantiles_at(replicas, levels)
    for side, *place in np.ndindex(2, 3, 2):
        expected = np.quantile(replicas[(slice(None), *place)], levels[(side, *place)])
        assert result[(side, *place)] == pytest.approx(expected, abs=1e-15)
    # The last replica is no weighted mean of two.
    assert result[1, 0, 0] == replicas[:, 0, 0].max()
    assert quantiles_at(np.array([0.3]), np.array([0.2, 1.0])).tolist() == [0.3, 0.3]


# Limits of means of bounded scores: Clopper and Pearson's for 0 and 1, valid for other scores.


TAILS = [0.025, 0.975]


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (1, 5), (3, 20), (20, 20), (45, 60)])
def test_limits_of_0_and_1_are_exact(successes, n):
    table = np.repeat([1.0, 0.0], [successes, n - successes])[:, None]
    expected = stats.binomtest(successes, n).proportion_ci(0.95, "exact")
    result = bounded_limits(table, (0.0, 1.0), TAILS, 100_000, np.random.default_rng(1))[:, 0]
    assert result == pytest.approx([expected.low, expected.high], abs=0.006)
    # Another unit changes nothing.
    moved = bounded_limits(6 * table - 2, (-2.0, 4.0), TAILS, 100_000, np.random.default_rng(1))[:, 0]
    assert moved == pytest.approx(6 * result - 2)


def test_equal_scores_have_the_same_limits_in_closed_form():
    table = np.full((12, 2), [0.3, 1.0])
    drawn = bounded_limits(table, (0.0, 1.0), TAILS, 200_000, np.random.default_rng(2))
    assert constant_limits(table[0], 12, (0.0, 1.0), TAILS) == pytest.approx(drawn, abs=0.003)
    # Nothing is known without bounds, or outside them.
    assert np.isnan(constant_limits(0.3, 12, (-np.inf, np.inf), TAILS)).all()
    assert np.isnan(constant_limits(1.3, 12, (0.0, 1.0), TAILS)).all()


def test_scores_without_bounds_or_outside_them_have_no_limits():
    table = np.array([[0.1, 0.5], [0.2, 1.5], [0.9, 0.5]])
    draws = np.random.default_rng(1)
    assert np.isnan(bounded_limits(table, (-np.inf, np.inf), TAILS, 10, draws)).all()
    result = bounded_limits(table, (0.0, 1.0), TAILS, 1000, draws)
    assert np.isnan(result).tolist() == [[False, True], [False, True]]
    # Each column may have its own probabilities.
    wide, narrow = bounded_limits(table[:, [0, 0]], (0.0, 1.0), [[0.005, 0.25], [0.995, 0.75]], 1000, draws).T
    assert wide[0] < narrow[0] < table[:, 0].mean() < narrow[1] < wide[1]


@pytest.mark.slow
def test_weights_are_those_of_repeated_topics_with_the_heaviest_as_the_further_one(monkeypatch):
    values, weights = np.array([[0.0], [1.0], [0.5]]), np.array([1.0, 3.0, 2.0])
    low, high = mean_draws(values, (0.0, 1.0), 50_000, np.random.default_rng(3), weights)
    exponential = np.random.default_rng(3).standard_exponential((50_000, 4)) * [1.0, 3.0, 2.0, 3.0]
    shares = exponential / exponential.sum(axis=1, keepdims=True)
    assert low[:, 0] == pytest.approx(shares @ [0.0, 1.0, 0.5, 0.0])
    assert high[:, 0] == pytest.approx(shares @ [0.0, 1.0, 0.5, 1.0])
    # Blocks draw the same numbers.
    monkeypatch.setattr("vbterrier.kernels.resample.BLOCK_CELLS", 40)
    assert mean_draws(values, (0.0, 1.0), 50_000, np.random.default_rng(3), weights)[0] == pytest.approx(low)


# Nested resampling against plain loops.


N, M, B = 5, 2, 7


@pytest.fixture
def drawn():
    rng = np.random.default_rng(3)
    return rng.random((N, M, B)), resampled_counts(N, B, stream(1, "topics"))


def test_each_copy_of_a_topic_takes_a_draw_of_its_own(drawn):
    draws, often = drawn
    np.testing.assert_array_equal(often.T, np.concatenate(list(resamples(N, B, stream(1, "topics")))))
    assert often.max() > 1
    expected = np.zeros((M, B))
    for resample in range(B):
        for topic in range(N):
            for copy in range(often[topic, resample]):
                away = draws[topic] - draws[topic].mean(axis=1, keepdims=True)
                expected[:, resample] += away[:, (resample - copy) % B] / N
    noise, means, variances = nested_noise(iter(draws), often)
    np.testing.assert_allclose(noise, expected, atol=1e-14)
    np.testing.assert_allclose(means, draws.mean(axis=2).T)
    np.testing.assert_allclose(variances, draws.var(axis=2, ddof=1).T)
    # Draws that are all the same have no spread to the last bit.
    noise, means, variances = nested_noise(np.full((2, 1, 10), 0.1), np.ones((2, 10), dtype=np.uint16))
    assert not noise.any()
    assert not variances.any()
    assert means.tolist() == [[0.1, 0.1]]


def test_means_and_variances_of_resamples(drawn):
    draws, often = drawn
    values = 1e6 + draws[:, :, 0].T
    means, variances = resampled_variances(values, often)
    for resample in range(B):
        chosen = np.repeat(values, often[:, resample], axis=1)
        np.testing.assert_allclose(means[:, resample], chosen.mean(axis=1))
        np.testing.assert_allclose(variances[:, resample], chosen.var(axis=1, ddof=1) * N / (N - 1), rtol=1e-6)
    # Rows far apart lose no digits to each other.
    _, apart = resampled_variances(draws[:, :, 0].T + np.array([[0.0], [1e9]]), often)
    assert apart[0] == pytest.approx(resampled_variances(draws[:, :1, 0].T, often)[1][0], rel=1e-12)


# The Poisson bootstrap: sums that are the same however units are parted.


VALUES = st.floats(-(2.0**46), 2.0**46, exclude_min=True, exclude_max=True)


UNITS = [Fraction(2) ** power for power in (20, -6, -32, -58)]


@given(VALUES)
def test_digits_add_up_to_the_value_and_are_small(value):
    result = digits(np.array([value]))[:, 0]
    total = sum(map(operator.mul, map(Fraction, result.tolist()), UNITS))
    assert abs(total - Fraction(value)) <= Fraction(1, 2**59)
    assert (np.abs(result) <= 2**26).all()
    assert (result == np.trunc(result)).all()


def test_weights_are_poisson_numbers_of_mean_1_of_the_unit_alone():
    weights = poisson_weights([f"q{i}" for i in range(50)], 4000, seed=3)
    assert (weights[:, 0] == 1).all()
    drawn = weights[:, 1:].ravel()
    for k in range(5):
        share = math.exp(-1) / math.factorial(k)
        assert abs((drawn == k).mean() - share) < 5 * math.sqrt(share * (1 - share) / drawn.size)
    assert abs(np.corrcoef(weights[:, 1:])[np.triu_indices(50, 1)]).max() < 6 / math.sqrt(4000)
    assert np.array_equal(weights[7], poisson_weights(["q7"], 4000, seed=3)[0])
    assert np.array_equal(weights[7, 1:], stream(3, "", "poisson", "q7").poisson(1.0, 4000))
    assert not np.array_equal(weights[7], poisson_weights(["q7"], 4000, seed=4)[0])
    assert not np.array_equal(weights[7], poisson_weights(["q7"], 4000, seed=3, name="x")[0])


def test_sums_are_exact_in_any_parts(monkeypatch):
    rng = np.random.default_rng(0)
    values = np.stack([rng.random(40), rng.normal(size=40) * 10.0 ** rng.integers(-9, 12, 40)], axis=1)
    units = [f"q{i}" for i in range(40)]
    weights, sums = weighted_sums(units, values, 20, seed=1)
    # By hand, in fractions.
    by_unit = poisson_weights(units, 20, seed=1)
    rounded = [[Fraction(round(Fraction(value) * 2**58), 2**58) for value in row] for row in values.tolist()]
    for resample, column in np.ndindex(21, 2):
        fractions = [Fraction(int(weight)) for weight in by_unit[:, resample]]
        exact = sum(weight * row[column] for weight, row in zip(fractions, rounded, strict=True))
        assert sum(map(operator.mul, map(int, sums[:, resample, column]), UNITS)) == exact
        mean = float(exact / sum(fractions))
        assert weighted_means(weights, sums)[resample, column] == pytest.approx(mean, rel=1e-15, abs=1e-300)
    order = rng.permutation(40)
    for part in (np.array_split(order, n) for n in (1, 3, 7)):
        made = [weighted_sums([units[i] for i in rows], values[rows], 20, seed=1) for rows in part]
        assert np.array_equal(sum(weights for weights, _ in made), weights)
        assert np.array_equal(sum(sums for _, sums in made), sums)
    monkeypatch.setattr("vbterrier.kernels.resample._COUNT_BLOCK_CELLS", 50)
    assert np.array_equal(weighted_sums(units, values, 20, seed=1)[1], sums)


def test_resamples_without_units_have_no_mean_and_values_beyond_what_is_held_are_refused():
    weights, sums = weighted_sums(["only"], np.array([[0.5]]), 200, seed=0)
    means = weighted_means(weights, sums)
    assert np.isnan(means[weights == 0]).all()
    assert (means[weights > 0] == 0.5).all()
    assert 40 < (weights == 0).sum() < 110, "e^-1 of them"
    for value in (2.0**46, -(2.0**46), 1e300):
        with pytest.raises(InputError, match="needs values below 2\\^46"):
            weighted_sums(["1"], np.array([[value]]), 5, seed=0)


# Slopes that leave one query out, against fits without it.


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 12), st.integers(0, 10_000))
def test_each_slope_is_the_fit_without_the_query(n, seed):
    """The leading axis is that of replicas."""
    labels, scores = np.random.default_rng(seed).normal([[[5.0]], [[-3.0]]], [[[1.0]], [[2.0]]], (2, 2, n))
    result = left_out_slopes(labels, scores)
    for slopes, label, score in zip(result, labels, scores, strict=True):
        expected = [np.polyfit(np.delete(score, i), np.delete(label, i), 1)[0] for i in range(n)]
        assert slopes == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("size", [1e-9, 0.1, -0.1, 1e9, 0.0])
def test_scores_that_do_not_differ_have_no_slope(size):
    labels = np.array([0.3, 0.1, 0.9, 0.5, 0.7, 0.7])
    assert not left_out_slopes(labels, np.full(6, size)).any()
    # All others are alike without the first.
    one = left_out_slopes(labels, np.array([size, 0, 0, 0, 0, 0]))
    assert one[0] == 0
    assert (one[1:] != 0).all() == (size != 0)
    assert not left_out_slopes(labels[:2], np.array([0.0, size])).any()


# Means in units of their own spread, where there is one.


def test_it_is_students_t_without_the_factor_of_n_and_variation_by_rounding_alone_is_none():
    values = np.random.default_rng(1).normal(0.1, 1, (5, 30))
    t = values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(30))
    assert studentised_means(values.mean(axis=1), (values**2).mean(axis=1)) * np.sqrt(29) == pytest.approx(t, rel=1e-12)
    means = np.array([0.3, -0.3, 2.0, 1e-17, 0.0])
    squares = means**2 * (1 + np.array([1e-15, 1e-15, -1e-15, 0, 0]))
    assert studentised_means(means, squares).tolist() == [
        INFINITY_SUBSTITUTE,
        -INFINITY_SUBSTITUTE,
        INFINITY_SUBSTITUTE,
        0.0,
        0.0,
    ]


# Numbers of the draws of unseen documents.


@pytest.mark.parametrize("mean", [0.0, 0.01, 1.0, 7.5, 15.9, 16.1, 40.0, 900.0])
def test_poisson_numbers_are_the_quantiles_of_their_distribution(mean):
    uniform = ((np.arange(20_000) + 0.5) / 20_000).astype(np.float32)
    result = poissons(np.full(len(uniform), mean, dtype=np.float32), uniform)
    expected = stats.poisson.ppf(uniform.astype(np.float64), np.float32(mean))
    # Exact up to 16, apart from the rounding of distribution functions; approximate above.
    assert np.abs(result - expected).max() <= 1
    assert (result != expected).mean() < (0.0005 if mean < 16 else 0.03)
    assert result.mean() == pytest.approx(mean, rel=0.001, abs=0.001)


@pytest.mark.parametrize(
    ("size", "prob"),
    [(0, 0.3), (1, 0.5), (5, 0.02), (9, 0.3), (20, 0.5), (90, 0.1), (90, 0.4), (17, 0.9), (300, 0.9), (1000, 0.001)],
)
def test_binomial_numbers_are_the_quantiles_of_their_distribution(size, prob):
    uniform = ((np.arange(20_000) + 0.5) / 20_000).astype(np.float32)
    result = binomials(np.float32(size), np.full(len(uniform), prob, dtype=np.float32), uniform)
    expected = stats.binom.ppf(uniform.astype(np.float64), size, np.float32(prob))
    assert np.abs(result - expected).max() <= 1
    assert (result != expected).mean() < (0.0005 if size * prob < 16 else 0.03)
    assert result.mean() == pytest.approx(size * prob, rel=0.001, abs=0.001)


def test_binomial_numbers_of_a_fraction_have_its_mean_and_variance():
    uniform = ((np.arange(20_000) + 0.5) / 20_000).astype(np.float32)
    result = binomials(np.float32(7.5), np.full(len(uniform), 0.2, dtype=np.float32), uniform)
    assert result.mean() == pytest.approx(1.5, rel=0.001)
    assert result.var() == pytest.approx(1.2, rel=0.002)


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 3.0, 50.0])
def test_gamma_numbers_have_the_stated_moments_and_quantiles(shape):
    keys = mix(np.arange(64, dtype=np.uint64))
    normal = special.ndtri((np.arange(1024) + 0.5) / 1024)
    normal = (normal / np.sqrt((normal**2).mean())).astype(np.float32)
    result = gammas(keys, 2048, normal, np.full((64, 1), shape)).astype(np.float64)
    assert result.shape == (64, 2048)
    assert result.mean() == pytest.approx(shape, rel=0.01)
    assert result.var() == pytest.approx(shape, rel=0.03)
    for tail in (0.05, 0.5, 0.95):
        assert stats.gamma.cdf(np.quantile(result, tail), shape) == pytest.approx(tail, abs=0.01)
