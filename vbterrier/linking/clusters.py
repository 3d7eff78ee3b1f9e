"""Scores of clusters of mentions: entities, and the numbered clusters of mentions without an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from vbterrier.annotations import Floats, Ints


SCORES = ("B3", "CEAFm", "CEAFe", "MUC", "Pairs")


def cluster_scores(gold: pd.DataFrame, system: pd.DataFrame) -> Floats:
    """Precision, recall and F1 of ``SCORES``, shape (5, 3); NaN for a denominator of 0.

    With the number ``n_ij`` of mentions that gold cluster i, of ``g_i`` mentions, shares with system cluster j, of
    ``s_j`` mentions:

    - B³ (Bagga and Baldwin 1998): ``P = Σ n_ij²/s_j / Σ s_j``, ``R = Σ n_ij²/g_i / Σ g_i``
    - CEAFm and CEAFe (Luo 2005): the largest sum of ``n_ij``, or of ``2 n_ij/(g_i + s_j)``, over one-to-one alignments
      of clusters, divided by numbers of mentions, or of clusters
    - MUC (Vilain et al. 1995): ``R = Σ_i (Σ_j n_ij - |{j: n_ij > 0}|) / Σ_i (g_i - 1)``, P likewise
    - Pairs: pairs of mentions in one cluster, ``Σ n_ij (n_ij - 1)/2`` of those of gold and of the system

    ``gold``, ``system``: distinct mentions, with columns mention and cluster of any kind of value.
    """
    (i, g), (j, s) = (
        (codes, np.bincount(codes).astype(np.float64))
        for codes in (pd.factorize(each["cluster"])[0] for each in (gold, system))
    )
    both = gold.assign(i=i)[["mention", "i"]].merge(system.assign(j=j)[["mention", "j"]], on="mention")
    shared = both.groupby(["i", "j"]).size()
    n: Floats = np.asarray(shared, dtype=np.float64)
    i, j = (shared.index.get_level_values(side).to_numpy(dtype=np.int64) for side in ("i", "j"))
    overlaps = n, np.asarray(2 * n / (g[i] + s[j]), dtype=np.float64)
    of_mentions, of_clusters = (_best_alignment(i, j, overlap) for overlap in overlaps)
    links = n.sum() - len(n)
    pairs = (n * (n - 1) / 2).sum()
    # Numerators of precision and of recall, and denominators.
    parts = [
        ((n**2 / s[j]).sum(), (n**2 / g[i]).sum(), s.sum(), g.sum()),
        (of_mentions, of_mentions, s.sum(), g.sum()),
        (of_clusters, of_clusters, len(s), len(g)),
        (links, links, (s - 1).sum(), (g - 1).sum()),
        (pairs, pairs, (s * (s - 1) / 2).sum(), (g * (g - 1) / 2).sum()),
    ]
    rows = np.array(parts, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = rows[:, 0] / rows[:, 2], rows[:, 1] / rows[:, 3]
        f1 = np.where(precision + recall == 0, 0.0, 2 * precision * recall / (precision + recall))
    return np.stack([precision, recall, f1], axis=1)


def _best_alignment(i: Ints, j: Ints, overlap: Floats) -> float:
    """The largest sum of overlaps over alignments in which each cluster occurs at most once."""
    if not len(overlap):
        return 0.0
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_gold = int(i.max()) + 1
    size = n_gold + int(j.max()) + 1
    _, part = connected_components(coo_array((np.ones(len(i)), (i, j + n_gold)), shape=(size, size)), directed=False)
    total = 0.0
    # Clusters of different components share nothing, so that each component has an assignment of its own.
    for _, rows in pd.Series(np.arange(len(i))).groupby(part[i]):
        (a, n_a), (b, n_b) = ((codes, len(names)) for codes, names in (pd.factorize(side[rows]) for side in (i, j)))
        matrix = np.zeros((n_a, n_b))
        matrix[a, b] = overlap[rows]
        total += matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    return float(total)
