"""Parts of BCa intervals against plain loops, for several scores at once."""

import numpy as np
import pytest

from vbterrier.kernels.resample import acceleration_of, quantiles_at


def by_hand(left_out, *, of_mean=False):
    """Efron's formula with one query after the other, shape (n, n_topics) to its accelerations."""
    squares, cubes = [], []
    for column in left_out.T:
        known = column[~np.isnan(column)]
        n = max(len(known), 1)
        influence = [(n - 1) * (known.mean() - one) / n for one in known]
        squares.append(sum(one**2 for one in influence))
        cubes.append(sum(one**3 for one in influence))
    if of_mean:
        return sum(cubes) / (6 * sum(squares) ** 1.5)
    return [cube / (6 * square**1.5) for square, cube in zip(squares, cubes, strict=True)]


def test_accelerations_of_several_scores_are_those_of_each():
    left_out = np.random.default_rng(1).random((2, 3, 6, 4))
    left_out[0, 1, 4:, 2] = np.nan
    found, of_mean = acceleration_of(left_out), acceleration_of(left_out, of_mean=True)
    assert found.shape == (2, 3, 4)
    assert of_mean.shape == (2, 3)
    for place in np.ndindex(2, 3):
        assert found[place] == pytest.approx(by_hand(left_out[place]))
        assert of_mean[place] == pytest.approx(by_hand(left_out[place], of_mean=True))


def test_quantiles_at_levels_of_their_own_are_numpys():
    rng = np.random.default_rng(2)
    replicas, levels = rng.normal(size=(9, 3, 2)), rng.random((2, 3, 2))
    levels[:, 0] = [[0.0, 1.0], [1.0, 0.0]]
    found = quantiles_at(replicas, levels)
    for side, *place in np.ndindex(2, 3, 2):
        expected = np.quantile(replicas[(slice(None), *place)], levels[(side, *place)])
        assert found[(side, *place)] == pytest.approx(expected, abs=1e-15)
    # The last replica is no weighted mean of two.
    assert found[1, 0, 0] == replicas[:, 0, 0].max()
    assert quantiles_at(np.array([0.3]), np.array([0.2, 1.0])).tolist() == [0.3, 0.3]
