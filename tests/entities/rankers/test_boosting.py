"""Parameters of LightGBM that are the stage's to set, by whichever name."""

import numpy as np
import pytest

from vbterrier.entities.rankers.learning import Examples, learn
from vbterrier.errors import ParameterError

EXAMPLES = Examples(np.arange(40.0)[:, None] % 2, np.arange(40) % 2, np.full(20, 2))


@pytest.mark.parametrize("name", ["seed", "random_state", "n_jobs", "application", "n_estimators", "early_stopping"])
def test_what_the_stage_sets_is_refused_under_its_aliases(name):
    """LightGBM would drop some without a word, and take others in place of the stage's own."""
    with pytest.raises(ParameterError, match=f"parameters: '{name}' is set by the stage"):
        learn(EXAMPLES, None, names=["x"], rounds=1, patience=0, parameters={name: 1}, seed=0)


def test_other_parameters_are_taken():
    assert "[num_leaves: 3]" in learn(
        EXAMPLES, None, names=["x"], rounds=1, patience=0, parameters={"num_leaves": 3}, seed=0
    )
