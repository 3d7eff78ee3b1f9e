"""Candidates that only variants contain, with intents weighted by constraints."""

import numpy as np
import pandas as pd
import pytest

from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import DropConstraints
from vbterrier.stats.replicas import replicate
from vbterrier.stats.variants import Variants, with_variants


def relaxed(prior, violations):
    """An I frame of one query as RelaxConstraints writes it."""
    delta = [float(sum(row)) for row in violations.values()]
    prob = np.array([prior[entity] for entity in violations]) * np.exp(-np.array(delta))
    return pd.DataFrame(
        {
            "qid": "q",
            "entity_id": list(violations),
            "prob": prob / prob.sum(),
            "delta": delta,
            "violations": list(violations.values()),
        }
    )


OWN = relaxed({"A": 0.5, "B": 0.5}, {"A": [0.0], "B": [1.0]})
OTHER = relaxed({"A": 0.25, "C": 0.75}, {"A": [0.0, 1.0], "C": [2.0, 0.0]})


def test_candidates_of_variants_come_with_lists_as_long_as_their_query_s_longest():
    both = with_variants(OWN, [Variants([OTHER])])
    assert both["entity_id"].tolist() == ["A", "B", "C"]
    assert both["prob"].tolist() == [*OWN["prob"], 0.0]
    assert both["delta"].tolist() == [0.0, 1.0, 2.0]
    assert both["violations"].tolist() == [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]


def test_a_variant_without_constraints_violates_none():
    plain = pd.DataFrame({"qid": ["q"], "entity_id": ["C"], "prob": [1.0]})
    both = with_variants(OWN, [Variants([plain])])
    assert both["delta"].tolist() == [0.0, 1.0, 0.0]
    assert both["violations"].tolist() == [[0.0], [1.0], [0.0]]


def test_dropping_the_constraints_of_a_variant_leaves_its_prior():
    perturbations = [Variants([OTHER], order="turn"), DropConstraints(1.0)]
    both = with_variants(OWN, perturbations)
    covers_c = Matches(intent=np.array([2]), rank=np.array([0]))
    found = replicate(both, {"c": covers_c}, perturbations, [Statistic("ES", 1)], n_replicas=3)
    assert found.point.ravel().tolist() == [0.0]
    assert found.values.ravel() == pytest.approx([0.75] * 3)
    kept = replicate(both, {"c": covers_c}, perturbations[:1], [Statistic("ES", 1)], n_replicas=3)
    assert kept.values.ravel() == pytest.approx([OTHER["prob"][1]] * 3)
