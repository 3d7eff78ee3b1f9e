"""Groups of documents of similar probability below the cuts, of which only the numbers in each level are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.kernels.grade_regression import sigmoid, symmetric_root

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.kernels.resample import Singles
    from vbterrier.unjudged.model import GradeModel


# Groups of a topic.
N_GROUPS = 8
# Documents whose features are copied at a time.
_BLOCK_ROWS = 1 << 14


class Groups(NamedTuple):
    """Groups of unjudged documents, sorted by topic.

    ``means``, ``variances``: the mean features of each group in each step, shape (n_groups, p) each, and the variance
    of the logits of its documents, shape (n_groups,) each, with that due to the uncertainty of the coefficients.
    Documents have the weight of the probability that they reach the lower level: those that do have larger logits.
    ``sizes``: the sum of the trust in the documents, shape (n_groups,): those of a run of unknown documents add hardly
    anything to complete pools. ``ends``: the first group of each topic, and the number of all groups, (n_topics + 1,).
    """

    means: list[Singles]
    variances: list[Singles]
    sizes: Floats
    ends: Ints


def consecutive(ends: Ints, most: int) -> list[slice]:
    """Divide topics into runs of consecutive ones with at most so many rows in total, or one topic each.

    ``ends``: the first row of each topic, and the number of all rows, shape (n_topics + 1,). Topics without rows count
    as one row.
    """
    slices, start = [], 0
    while start < len(ends) - 1:
        stop = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        slices.append(slice(start, min(max(stop, start + 1), start + most)))
        start = slices[-1].stop
    return slices


def document_groups(model: GradeModel, is_grouped: Bools, first_of_topic: Ints) -> Groups:
    """Divide documents of each topic into groups of equal size, by the logit of their probability of relevance.

    - ``is_grouped``: the documents that belong to a group, among the unjudged ones of the evidence, shape (n_unjudged,)
    - ``first_of_topic``: the first unjudged document of each topic, and the number of all, shape (n_topics + 1,)
    """
    evidence, steps = model.evidence, model.steps
    ends = np.searchsorted(np.flatnonzero(is_grouped), first_of_topic)
    n_groups = np.minimum(np.diff(ends), N_GROUPS if steps else 0)
    group_ends = np.concatenate([[0], np.cumsum(n_groups)])
    sizes = np.zeros(group_ends[-1])
    means = [np.zeros((len(sizes), step.design.shape[1]), dtype=np.float32) for step in steps]
    variances = [np.zeros(len(sizes), dtype=np.float32) for _ in steps]
    for topics in consecutive(ends, _BLOCK_ROWS):
        among, groups = (slice(*offsets[[topics.start, topics.stop]]) for offsets in (first_of_topic, group_ends))
        rows = evidence.unjudged_positions[among][is_grouped[among]]
        if not len(rows) or not steps:
            continue
        topic = evidence.topic[rows]
        rows = rows[np.lexsort((steps[0].regression.logit(steps[0].design[rows], topic), topic))]
        turn = np.arange(ends[topics.start], ends[topics.stop]) - ends[topic]
        group = group_ends[topic] - groups.start + turn * n_groups[topic] // np.diff(ends)[topic]
        size, sizes[groups] = np.bincount(group), np.bincount(group, evidence.trust[rows])
        first, reached = np.cumsum(size) - size, np.ones((len(rows), 1))
        for number, step in enumerate(steps):
            fitted, design = step.regression, step.design[rows]
            root = symmetric_root(fitted.coef_cov * model.constants.inflation)
            total = np.add.reduceat(reached, first)
            means[number][groups] = np.add.reduceat(reached * design, first, axis=0) / total
            # The square root of the covariance of the logits of documents, and their expected values.
            logit = fitted.logit(design, topic)
            parts = np.column_stack([design @ root, logit])
            squares = np.add.reduceat(reached * parts**2, first, axis=0) / total
            squares -= (np.add.reduceat(reached * parts, first, axis=0) / total) ** 2
            variances[number][groups] = squares.sum(axis=1)
            reached = reached * sigmoid(logit)[:, None]
    return Groups(means, variances, sizes, group_ends)
