"""The Poisson bootstrap: sums that are the same however units are parted."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.errors import InputError
from vbterrier.kernels import resample as poisson
from vbterrier.kernels.resample import digits, means_of, poisson_weights, stream, weighted_sums

VALUES = st.floats(-(2.0**46), 2.0**46, exclude_min=True, exclude_max=True)


@given(VALUES)
def test_digits_add_up_to_the_value_and_are_small(value):
    found = digits(np.array([value]))[:, 0]
    units = [Fraction(2) ** power for power in (20, -6, -32, -58)]
    total = sum(Fraction(digit) * unit for digit, unit in zip(found.tolist(), units, strict=True))
    assert abs(total - Fraction(value)) <= Fraction(1, 2**59)
    assert (np.abs(found) <= 2**26).all()
    assert (found == np.trunc(found)).all()


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
    for resample in range(21):
        own = [Fraction(int(weight)) for weight in by_unit[:, resample]]
        for column in range(2):
            exact = sum(weight * row[column] for weight, row in zip(own, rounded, strict=True))
            held = sum(
                int(n) * Fraction(2) ** power
                for n, power in zip(sums[:, resample, column], (20, -6, -32, -58), strict=True)
            )
            assert held == exact
            mean = float(exact / sum(own))
            assert means_of(weights, sums)[resample, column] == pytest.approx(mean, rel=1e-15, abs=1e-300)
    order = rng.permutation(40)
    for part in (np.array_split(order, n) for n in (1, 3, 7)):
        made = [weighted_sums([units[i] for i in rows], values[rows], 20, seed=1) for rows in part]
        assert np.array_equal(sum(weights for weights, _ in made), weights)
        assert np.array_equal(sum(sums for _, sums in made), sums)
    monkeypatch.setattr(poisson, "_BLOCK", 50)
    assert np.array_equal(weighted_sums(units, values, 20, seed=1)[1], sums)


def test_a_resample_without_any_unit_has_no_mean():
    weights, sums = weighted_sums(["only"], np.array([[0.5]]), 200, seed=0)
    means = means_of(weights, sums)
    assert np.isnan(means[weights == 0]).all()
    assert (means[weights > 0] == 0.5).all()
    assert 40 < (weights == 0).sum() < 110, "e^-1 of them"


@pytest.mark.parametrize("value", [2.0**46, -(2.0**46), 1e300])
def test_values_beyond_what_is_held_are_refused(value):
    with pytest.raises(InputError, match="needs values below 2\\^46"):
        weighted_sums(["1"], np.array([[value]]), 5, seed=0)
