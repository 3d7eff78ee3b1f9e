"""Means in units of their own spread, where there is one."""

import numpy as np
import pytest

from vbterrier.kernels.resample import ENDLESS, studentised


def test_it_is_students_t_without_the_factor_of_n():
    values = np.random.default_rng(1).normal(0.1, 1, (5, 30))
    t = values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(30))
    assert studentised(values.mean(axis=1), (values**2).mean(axis=1)) * np.sqrt(29) == pytest.approx(t, rel=1e-12)


def test_what_varies_by_rounding_alone_does_not_vary():
    means = np.array([0.3, -0.3, 2.0, 1e-17, 0.0])
    squares = means**2 * (1 + np.array([1e-15, 1e-15, -1e-15, 0, 0]))
    assert studentised(means, squares).tolist() == [ENDLESS, -ENDLESS, ENDLESS, 0.0, 0.0]
