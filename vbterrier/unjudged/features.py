"""Features of documents for the regression of their grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.unjudged.evidence import logit, ratio

if TYPE_CHECKING:
    from vbterrier.annotations import Bools, Floats
    from vbterrier.unjudged.evidence import Evidence


# Standardised features are clipped at this many standard deviations.
MOST_DEVIATIONS = 4.0
# Pseudo-counts of the shares of relevant documents among a topic's judgments outside the evidence.
OUTSIDE_COUNT = 4.0
# Neighbours of a document: ranks in multiples of the cutoff, and pseudo-counts.
NEIGHBOUR_RANKS, NEIGHBOUR_COUNT = 2, 6.0
# Judgments outside the evidence are a feature if there are more of them.
LEAST_OUTSIDE = 20
# At most so many distinct runs have separate coefficients: their cost is quadratic.
MOST_RUN_COLUMNS = 50
# Differences between topics below this standard deviation are rounding errors, and so are those between documents below
# the other one; shares of runs that are nearly copies differ by less than the third.
LEAST_DEVIATION, LEAST_SPREAD, LEAST_SHARE_SPREAD = 1e-6, 1e-9, 0.1
# Features of unjudged documents that are limited to those of judged ones.
LIMITED = ("curvature", "share", "support", "company")
# All features, in the order of their columns.
FEATURES = ("intercept", "rank", "curvature", "best", "below", "neighbours", "share", "support", "company", "outside")


@dataclass(frozen=True, eq=False)
class Features:
    """Features of documents for the regression of their grades."""

    # Intercept and features, shape (m, p), and their names.
    fixed: Floats
    names: list[str]
    # The log rank in each distinct run times the root of its weight, 0 if it does not retrieve the document and below
    # all cuts.
    by_run: Floats
    # The features and the log ranks in runs, which steps without machine labels share, shape (m, .).
    design: Floats


def features_of(evidence: Evidence) -> Features:
    """Return the features of all documents.

    Sums over runs have weights: w by copies, v by overlap (see :class:`~vbterrier.unjudged.evidence.RunWeights`); those
    of a document are divided by its trust t. Columns are standardised with t as the weight of a document.

    - ``rank``: ``log(Σ_runs w/(3 + rank) / t)``; ``curvature``: its square
    - ``best`` and ``below``: ``-log`` of the best rank, at most and at least the cutoff
    - ``neighbours``: see :func:`neighbours`
    - ``share``: the share ``Σ w / t / Σ_all w`` of the runs that retrieve a document
    - ``support``: ``log(Σ v / t + .25)`` over runs that retrieve it up to the cutoff
    - ``company``: the mean share ``Σ v / Σ_all v`` of the documents in the same cut
    - ``outside``: the logit of the share of relevant documents among the judgments of the topic that no run retrieves

    With n the effective number of runs, ``share`` and ``support`` are multiplied by ``n - 1`` and ``company`` by ``n -
    2``, at least 0 and at most 1, so that no column appears or vanishes with a copy. These three and ``curvature`` are
    limited to the values of judged documents: beside a run of everything that is judged, unjudged documents have fewer
    runs than any judged one, and relevance by number of runs does not extend so far.

    A column per distinct run has ``√w (1 - log rank / log(depth + 1))``, so that near copies together have the prior
    variance of one run; 0 for documents below all cuts. Those of them that are judged were often retrieved by pooled
    systems that the evidence lacks, and would make a run look better below its cut, and thus worse in it, than its
    unjudged documents are.
    """
    m, near, trust = len(evidence), evidence.near, evidence.trust
    by_copies, by_overlap = evidence.weights
    of_two, of_three = (float(np.clip(evidence.n_effective - n, 0.0, 1.0)) for n in (1, 2))
    n_columns = evidence.n_distinct if evidence.n_distinct <= MOST_RUN_COLUMNS else 0
    richness = _richness(evidence)
    present = {
        "below": not near.all(),
        "share": of_two > 0,
        "support": of_two > 0,
        "company": of_three > 0,
        "outside": richness is not None,
    }
    names = [name for name in FEATURES if present.get(name, True)]
    # Columns are written where they stay: there are many documents.
    design = np.zeros((m, len(names) + n_columns))
    columns = dict(zip(names, design.T, strict=False))
    columns["intercept"][:] = 1.0
    run, rank = evidence.run, evidence.rank
    fused = evidence.sums(lambda part: by_copies[run[part]] / (3.0 + rank[part]))
    # Weights of runs that other runs make superfluous can be 0.
    columns["rank"][:] = _standardise_values(np.log(np.maximum(fused / trust, LEAST_SPREAD)), trust)
    columns["curvature"][:] = _standardise_values(columns["rank"] ** 2, trust)
    # Two slopes of the best rank: pools often end at the cutoff, and judged documents below it were chosen otherwise.
    best, cutoff = evidence.trusted_rank, evidence.cutoff
    columns["best"][:] = _standardise_values(-np.log(np.minimum(best, cutoff)), trust)
    if "below" in columns:
        # 0 in the cut: in shallow pools no document below it is judged, and the slope stays 0.
        below = -np.log(np.maximum(best, cutoff) / cutoff)
        columns["below"][:] = np.maximum(below / max(_moments(below, trust)[1], LEAST_SPREAD), -MOST_DEVIATIONS)
    columns["neighbours"][:] = _standardise_values(neighbours(evidence), trust)
    if of_two:
        share = evidence.sums(lambda part: by_copies[run[part]]) / trust / by_copies.sum()
        columns["share"][:] = of_two * _standardise_values(share, trust, LEAST_SHARE_SPREAD)
        support = np.zeros(m)
        support[near] = evidence.members[near] @ by_overlap / trust[near]
        among = np.where(near, trust, 0.0)
        columns["support"][:] = of_two * _standardise_values(np.log(support + 0.25), among, LEAST_SHARE_SPREAD)
        if of_three:
            cut = evidence.in_cut
            company = evidence.by_ranking((support / by_overlap.sum())[evidence.item]) / np.maximum(evidence.n_cut, 1)
            company = evidence.mean_in_cut(company[evidence.run[cut], evidence.topic[evidence.item[cut]]])
            columns["company"][:] = of_three * _standardise_values(company, among)
    is_judged = evidence.level >= 0
    if is_judged.any():
        for column in (columns[name] for name in LIMITED if name in columns):
            judged = column[is_judged]
            np.clip(column, judged.min(), judged.max(), out=column)
    if richness is not None:
        columns["outside"][:] = richness[evidence.topic]
    if n_columns:
        entry = near[evidence.item]
        of_rank = 1 - np.log(rank[entry]) / np.log(evidence.depth + 1)
        design[evidence.item[entry], len(names) + run[entry]] = of_rank * np.sqrt(by_copies[run[entry]])
    return Features(design[:, : len(names)], names, design[:, len(names) :], design)


def _moments(values: Floats, weight: Floats) -> tuple[float, float]:
    """The weighted mean and standard deviation."""
    mean = np.average(values, weights=weight)
    return float(mean), float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))


def _standardise_values(values: Floats, weight: Floats, least: float = LEAST_SPREAD) -> Floats:
    """Values with weighted mean 0 and standard deviation 1, clipped at 4; 0 where the weight is 0.

    ``least``: values of a smaller standard deviation are divided by it.
    """
    mean, spread = _moments(values, weight)
    scaled = np.clip((values - mean) / max(spread, least), -MOST_DEVIATIONS, MOST_DEVIATIONS)
    return np.where(weight > 0, scaled, 0.0)


def _richness(evidence: Evidence) -> Floats | None:
    """The feature ``outside`` of each topic, shape (n_topics,); ``None`` if few judgments, or equal ones, show it."""
    n_outside = evidence.outside.sum(axis=1)
    if n_outside.sum() <= LEAST_OUTSIDE:
        return None
    relevant = evidence.outside[:, 1:].sum(axis=1)
    overall = relevant.sum() / n_outside.sum()
    richness = logit((relevant + OUTSIDE_COUNT * overall) / (n_outside + OUTSIDE_COUNT))
    if richness.std() <= LEAST_DEVIATION:
        return None
    return np.asarray((richness - richness.mean()) / max(richness.std(), 0.3))


def neighbours(evidence: Evidence) -> Floats:
    """The relevance of the judged documents beside each document, relative to its topic, shape (m,).

    For each run that retrieves a document in the first 2k ranks, the logit of the share of relevant judged documents in
    these ranks, less that of the topic over all runs; then the weighted mean over runs. Shares leave out the document
    itself, so that no judgment predicts itself, and have six pseudo-counts of the next larger set::

        base = (R - W h + 6 p)/(J - W j + 6)
        run = (R_r - h + 6 base)/(J_r - j + 6)

    with J and R the weighted sums of judged and of relevant documents over the runs of the topic, p their ratio in all
    topics, J_r and R_r the numbers of documents of the run, W the weight of the document's runs, and j and h 1 if it is
    judged and if it is relevant.
    """
    entry = evidence.rank <= NEIGHBOUR_RANKS * evidence.cutoff
    item, run = evidence.item[entry], evidence.run[entry]
    weight = evidence.weights.by_copies[run]
    level, topic = evidence.level[item], evidence.topic[item]
    is_judged, hit = (level >= 0).astype(np.float64), (level > 0).astype(np.float64)
    of_item = np.bincount(item, weight, minlength=len(evidence))
    n_judged, n_hit = (
        np.maximum(np.bincount(topic, weight * each)[topic] - of_item[item] * each, 0.0) for each in (is_judged, hit)
    )
    total = (weight * is_judged).sum()
    overall = (weight * hit).sum() / total if total else 0.0
    base = (n_hit + NEIGHBOUR_COUNT * overall) / (n_judged + NEIGHBOUR_COUNT)
    cell = run * len(evidence.topics) + topic
    n_judged, n_hit = (np.bincount(cell, each)[cell] - each for each in (is_judged, hit))
    value = logit((n_hit + NEIGHBOUR_COUNT * base) / (n_judged + NEIGHBOUR_COUNT)) - logit(base)
    return ratio(np.bincount(item, weight * value, minlength=len(evidence)), of_item)


def label_columns(labels: Floats, is_judged: Bools, hit: Bools) -> Floats:
    """The labels of each labeller on a scale of logits, shape (m, n_labellers).

    It is the logit of an isotonic regression of relevance (``hit``) on the label among the judged documents
    (``is_judged``), less its mean; 0 for documents without a label.
    """
    columns = np.zeros((labels.shape[1], len(labels)))
    if not len(labels):
        return columns
    # Takes longer to import than a small collection to score.
    from sklearn.isotonic import IsotonicRegression

    for number, label in enumerate(labels):
        labelled = ~np.isnan(label)
        both = labelled & is_judged
        outcome = hit[both[is_judged]].astype(np.float64)
        if not len(outcome):
            continue
        least = 0.5 / (len(outcome) + 1)
        rising = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(label[both], outcome)
        scaled = logit(rising.predict(label[labelled]))
        columns[labelled, number] = scaled - logit(rising.predict(label[both])).mean()
    return columns
