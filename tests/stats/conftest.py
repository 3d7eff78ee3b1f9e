"""Small intents for tests of replicas, and a shared loop over perturbations of candidates."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.stats.candidates import CandidateArrays, Draws, State


@pytest.fixture
def intents():
    """Three queries, one with a single candidate, one with a candidate of probability 0; unsorted rows."""
    qids, prob = ["q2", "q1", "q1", "q3", "q2", "q2", "q1"], [0.5, 0.3, 0.6, 1.0, 0.5, 0.0, 0.1]
    return pd.DataFrame({"qid": qids, "entity_id": [*"ZBAAYXC"], "prob": prob})


@pytest.fixture
def relaxed():
    """Two queries, one with two constraints and one with none, as RelaxConstraints writes them."""
    base = np.array([0.5, 0.3, 0.2])
    violations = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.5]])
    prob = base * np.exp(-violations.sum(axis=1))
    frame = pd.DataFrame(
        {"qid": "q1", "entity_id": ["A", "B", "C"], "prob": prob / prob.sum(), "delta": violations.sum(axis=1)}
    )
    frame["violations"] = violations.tolist()
    free = pd.DataFrame({"qid": "q2", "entity_id": ["A", "B"], "prob": [0.25, 0.75], "delta": 0.0})
    free["violations"] = [[], []]
    return pd.concat([frame, free], ignore_index=True)


@pytest.fixture
def perturbed():
    """Function (frame, perturbations, n, seed) -> probabilities, shape (n_replicas, n_rows)."""

    def of(frame, perturbations, n=50, seed=0):
        candidates = CandidateArrays.of(frame)
        draws = Draws(seed, candidates, n=n)
        state = State.unperturbed(candidates)
        for perturbation in perturbations:
            state = perturbation.apply(state, draws.named(type(perturbation).__name__))
        prob = np.empty((n, len(frame)))
        prob[:, candidates.rows] = state.prob
        return prob

    return of
