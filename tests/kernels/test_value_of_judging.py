"""Linear weights of scores; the choice of documents is tested with the function that users call."""

import numpy as np
import pytest
from urn import model_of

from vbterrier.kernels.grades.value_of_judging import linear_weights


@pytest.mark.parametrize("n_priors", [1, 3])
def test_the_line_through_scores_that_are_one_has_its_weights(n_priors):
    gain, weights = np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(1)
    prob, value = rng.dirichlet(np.ones(3), n_priors), lambda _, landed: 0.1 + gain[landed] @ weights
    model = model_of(np.zeros(3), prob, np.full(3, 9), gain, value=value)
    assert linear_weights(model, 0, rng.random((50, 3))) == pytest.approx(weights)
