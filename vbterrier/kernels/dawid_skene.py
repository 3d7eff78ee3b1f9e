"""Grades of items from the labels of several judges without gold labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints

_MAX_STEPS, _TOLERANCE = 500, 1e-8
# Pseudo-counts of each cell of a confusion matrix, so that labels that a judge never gives remain possible.
_SMOOTHING = 0.01


@dataclass(frozen=True)
class LatentGrades:
    """Estimates of :func:`dawid_skene` for n items, J judges and K grades.

    - ``prevalence``: share of items of each grade, shape (K,)
    - ``confusion``: probability of each label (last axis) given the grade, shape (J, K, K)
    - ``posterior``: probability of each grade of each item, shape (n, K)
    """

    prevalence: Floats
    confusion: Floats
    posterior: Floats


def dawid_skene(labels: Ints, n_grades: int) -> LatentGrades:
    """Maximum-likelihood estimates of true grades and of the confusion matrix of each judge, by EM.

    ``P(labels of item i, grade g) = p_g Π_j θ_j[g, label_ij]``: given the grade, judges err independently of each
    other, and of everything else about the item. Judges that share errors seem more accurate than they are.

    - ``labels``: labels from 0 to ``n_grades - 1``, -1 for none, shape (n, J), n at least 1. Three judges or more
      identify the estimates; items without labels get the prevalence
    - ``n_grades``: the number of grades K

    EM starts from the share of judges for each label, and ends when no probability changes by 1e-8, or after 500 steps.
    Each step costs n J K². Confusion matrices have .01 pseudo-counts per cell.

    Source: Dawid and Skene, Applied Statistics 28, 1979, section 3.
    """
    has_label = (labels[:, :, None] == np.arange(n_grades)).astype(np.float64)
    votes = has_label.sum(axis=1) + 1 / n_grades
    posterior = votes / votes.sum(axis=1, keepdims=True)
    for _ in range(_MAX_STEPS):
        prevalence = posterior.mean(axis=0)
        counts = np.einsum("ig,ijl->jgl", posterior, has_label) + _SMOOTHING
        confusion = counts / counts.sum(axis=2, keepdims=True)
        logs = np.log(np.maximum(prevalence, np.finfo(np.float64).tiny))
        likelihood = logs + np.einsum("ijl,jgl->ig", has_label, np.log(confusion))
        likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        before, posterior = posterior, likelihood / likelihood.sum(axis=1, keepdims=True)
        if np.abs(posterior - before).max(initial=0.0) < _TOLERANCE:
            break
    return LatentGrades(prevalence, confusion, posterior)
