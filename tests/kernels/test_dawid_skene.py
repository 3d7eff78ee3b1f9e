"""Grades without gold: planted judges, a textbook loop, missing labels."""

import numpy as np
import pytest

from vbterrier.kernels.dawid_skene import dawid_skene


def planted(n=3000, accuracy=(0.9, 0.8, 0.65, 0.75), n_grades=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_grades, n, p=[0.6, 0.3, 0.1])
    wrong = (truth[:, None] + rng.integers(1, n_grades, (n, len(accuracy)))) % n_grades
    return truth, np.where(rng.random((n, len(accuracy))) < accuracy, truth[:, None], wrong)


def test_the_accuracy_of_planted_judges_and_the_prevalence_are_found():
    truth, labels = planted()
    estimate = dawid_skene(labels, 3)
    assert estimate.prevalence == pytest.approx(np.bincount(truth) / len(truth), abs=0.03)
    accuracy = np.einsum("g,jgg->j", estimate.prevalence, estimate.confusion)
    assert accuracy == pytest.approx([0.9, 0.8, 0.65, 0.75], abs=0.03)
    # The grades are right more often than those of the best judge, and of the majority.
    votes = (labels[:, :, None] == np.arange(3)).sum(axis=1).argmax(axis=1)
    right = [(each == truth).mean() for each in (estimate.posterior.argmax(axis=1), votes, labels[:, 0])]
    assert right[0] > max(right[1:])
    assert estimate.posterior.sum(axis=1) == pytest.approx(1)
    assert estimate.confusion.sum(axis=2) == pytest.approx(np.ones((4, 3)))
    # Probabilities are calibrated.
    sure = estimate.posterior.max(axis=1)
    assert sure.mean() == pytest.approx(right[0], abs=0.03)


def test_one_step_is_that_of_the_textbook():
    """At the end, the estimates satisfy the equations (2.3) to (2.5) of the paper, summed item by item."""
    _, labels = planted(60)
    labels[3:20, 1] = -1
    estimate = dawid_skene(labels, 3)
    counts = np.full((4, 3, 3), 0.01)
    for item, row in enumerate(labels):
        for judge, label in enumerate(row):
            if label >= 0:
                counts[judge, :, label] += estimate.posterior[item]
    confusion = counts / counts.sum(axis=2, keepdims=True)
    assert estimate.confusion == pytest.approx(confusion, abs=1e-5)
    for item, row in enumerate(labels):
        chance = estimate.prevalence.copy()
        for judge, label in enumerate(row):
            chance *= confusion[judge, :, label] if label >= 0 else 1
        assert estimate.posterior[item] == pytest.approx(chance / chance.sum(), abs=1e-4)


def test_items_without_labels_have_the_prevalence():
    _, labels = planted(400)
    labels[:5] = -1
    estimate = dawid_skene(labels, 3)
    assert estimate.posterior[:5] == pytest.approx(np.tile(estimate.prevalence, (5, 1)), abs=1e-6)
