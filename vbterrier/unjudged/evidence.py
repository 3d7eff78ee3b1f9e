"""Evidence of runs and judgments about unjudged documents, and signs of the reasons why they are unjudged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from vbterrier.frames.ids import Ids, Lookup, release_unused
from vbterrier.kernels import fingerprints
from vbterrier.kernels.grade_regression import fit_logit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints, Words
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.pool import Judgments, MachineLabels


# Standardised features are clipped at this many standard deviations.
MOST_DEVIATIONS = 4.0
# Pseudo-counts of the shares of relevant documents among a topic's judgments outside and inside the evidence.
OUTSIDE_COUNT, POOL_COUNT = 4.0, 3.0
# Neighbours of a document: ranks in multiples of the cutoff, parts that are left out, and pseudo-counts.
NEIGHBOUR_RANKS, PARTS, NEIGHBOUR_COUNT = 2, 10, 6.0
# Judgments outside the evidence are a feature if there are more of them.
LEAST_OUTSIDE = 20
# Runs with a smaller share of the documents of the largest run are no evidence about documents of other runs.
LEAST_SIZE = 0.1
# Runs have separate coefficients if there are at least three and at most 50: their cost is quadratic.
SEVERAL, MOST_RUN_COLUMNS = 3, 50
# Differences between topics below this standard deviation are rounding errors.
LEAST_DEVIATION = 1e-6
# Runs with a smaller variance of judging say nothing about its causes.
LEAST_EXPECTED = 0.5
# The first ranks, which every pool covers if it covers any.
FIRST_RANKS = 3
# The excess of judged documents there, of selected documents, and standard deviations of it between collections.
SELECTED_EXCESS, SELECTED_SPREAD, RANDOM_SPREAD = 0.7, 0.25, 0.05
# Runs with a larger share of unjudged documents are strange.
USUAL = 0.7
# All features, in the order of their columns.
FEATURES = ("intercept", "rank", "curvature", "best", "below", "neighbours", "share", "support", "company", "outside")
# Features that can explain which documents were judged.
JUDGING_FEATURES = ("intercept", "rank", "best", "share", "support", "company")
# Documents of the evidence whose temporary arrays take much memory.
MANY = 1 << 17
# A pool shows its depth if the judged share over a window of ranks before the cutoff is at least this share of that at
# the first ranks, and ends where the share over a window falls by more than this.
WINDOW, LEAST_SHARE, LEAST_FALL = 5, 0.9, 0.05


@dataclass(frozen=True, eq=False)
class Retrieved:
    """The documents that several runs retrieve up to a cutoff; arrays have an entry per document, shape (m,).

    Entries are sorted by name of the run, by topic as text and by rank, so that results do not depend on the order of
    the frames, not even by rounding. Positions that stay in memory have 32 bits.
    """

    runs: Mapping[str, Run]
    # The judged topics, sorted as text, and the judged documents of each topic and grade, shape (n, L).
    topics: list[str]
    counts: Ints
    # Positions of run and topic, the row in the frame of the run, and the rank, from 1.
    run: Ints
    row: Ints
    topic: Ints
    rank: Ints
    # The position of the grade in the judgments' grades, below 0 for unjudged documents.
    level: Ints
    docno: Ids

    def rows_of(self, name: str) -> tuple[Bools, Ints]:
        """A mask of the entries of a run, and their rows in its frame."""
        own = self.run == list(self.runs).index(name)
        return own, self.row[own]


def retrieved(runs: Mapping[str, Run], judgments: Judgments, cutoff: int, *, checked: bool = False) -> Retrieved:
    """Return the first ``cutoff`` documents of each judged topic of several runs, checked before or here."""
    runs = {name: runs[name] for name in sorted(runs, key=str)}
    turn = np.array(sorted(range(len(judgments.topics)), key=judgments.topics.__getitem__), dtype=np.int64)
    parts, docnos = [], []
    for run in runs.values():
        top = judgments.judge(run, cutoff, checked=checked)
        rows, levels = top.rows[turn], top.levels[turn]
        topic, rank = np.nonzero(rows >= 0)
        row = rows[topic, rank]
        parts.append((row, _narrow(topic), _narrow(rank + 1), _narrow(levels[topic, rank])))
        docnos.append(run.docno.take(row).text)
    owner: Ints = np.repeat(_narrow(np.arange(len(parts))), [len(row) for row, *_ in parts])
    # The entries of a single run need no second copy.
    row, topic, rank, level = (
        column[0] if len(parts) == 1 else np.concatenate(column) for column in zip(*parts, strict=True)
    )
    topics = [judgments.topics[place] for place in turn]
    docno = Ids(docnos[0] if len(docnos) == 1 else pa.concat_arrays(docnos))
    return Retrieved(runs, topics, judgments.counts[turn], owner, row, topic, rank, level, docno)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The union of the first documents of all evidence runs, with their judgments.

    Arrays of documents have an entry per distinct document of a topic, sorted by topic and by a key of the document, so
    that the order of frames has no effect.
    """

    # The evidence runs and the judged topics, sorted as text; judged documents of each topic and level, (n_topics, L).
    names: list[str]
    topics: list[str]
    counts: Ints
    # The cutoff k of the measure, and the number of ranks of each run that are used.
    cutoff: int
    depth: int
    # Topic, level (-1: unjudged) and id of each document, shape (m,).
    topic: Ints
    level: Ints
    docno: Ids
    # Run, rank (from 1) and document of each entry, a document of a run.
    run: Ints
    rank: Ints
    item: Ints
    # The label of each machine labeller, NaN if it gave none, shape (n_labellers, m).
    labels: Floats

    def __len__(self) -> int:
        return len(self.topic)

    @property
    def n_runs(self) -> int:
        """Number of evidence runs."""
        return len(self.names)

    @cached_property
    def lookup(self) -> Lookup:
        """The position of a document by topic and id."""
        return Lookup(self.topic, self.docno)

    @cached_property
    def keys(self) -> Words:
        """A 64-bit key of each document that depends on its topic and id alone, shape (m,)."""
        topics = Ids(pa.array(self.topics, pa.large_string())).fingerprints
        return fingerprints.mix(self.docno.fingerprints + fingerprints.mix(topics)[self.topic])

    @cached_property
    def substantial(self) -> Ints:
        """Positions of the runs with at least a tenth of the documents in the cuts that the largest run has."""
        n = self.n_cut.sum(axis=1)
        return np.flatnonzero(n >= max(LEAST_SIZE * n.max(initial=0), 1))

    @cached_property
    def run_keys(self) -> Words:
        """A 64-bit key of each run that depends on its documents and ranks alone, shape (n_runs,)."""
        keys = np.zeros(self.n_runs, dtype=np.uint64)
        np.add.at(keys, self.run, fingerprints.mix(self.keys[self.item] + self.rank.astype(np.uint64)))
        return keys

    @cached_property
    def unjudged(self) -> Ints:
        """Positions of the unjudged documents."""
        places: Ints = _narrow(np.flatnonzero(self.level < 0))
        return places

    @cached_property
    def best_rank(self) -> Ints:
        """The best rank of each document, shape (m,)."""
        best: Ints = _narrow(np.full(len(self), np.iinfo(np.int32).max))
        np.minimum.at(best, self.item, self.rank)
        return best

    @cached_property
    def n_retrieving(self) -> Ints:
        """Number of runs that retrieve each document, shape (m,)."""
        return np.bincount(self.item, minlength=len(self))

    @cached_property
    def in_cut(self) -> Bools:
        """Entries up to the cutoff."""
        return np.asarray(self.rank <= self.cutoff)

    @cached_property
    def near(self) -> Bools:
        """Documents that a run retrieves up to the cutoff, shape (m,)."""
        return np.asarray(self.best_rank <= self.cutoff)

    @cached_property
    def n_cut(self) -> Ints:
        """Documents of each run and topic up to the cutoff, shape (n_runs, n_topics)."""
        return self.by_ranking(np.ones(len(self.item))).astype(np.int64)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents of each run and topic up to the cutoff, shape (n_runs, n_topics)."""
        return self.by_ranking((self.level[self.item] < 0).astype(np.float64)).astype(np.int64)

    def by_ranking(self, values: Floats) -> Floats:
        """Sums of entries up to the cutoff by run and topic, shape (n_runs, n_topics)."""
        cell = self.run * len(self.topics) + self.topic[self.item]
        cut = self.in_cut
        sums = np.bincount(cell[cut], values[cut], minlength=self.n_runs * len(self.topics))
        return sums.reshape(self.n_runs, len(self.topics)).astype(np.float64)

    def mean_in_cut(self, values: Floats) -> Floats:
        """The mean of a value of the entries up to the cutoff over the runs of each document, 0 below it, (m,)."""
        item = self.item[self.in_cut]
        total, n = np.bincount(item, values, minlength=len(self)), np.bincount(item, minlength=len(self))
        return np.asarray(total / np.maximum(n, 1), dtype=np.float64)

    @cached_property
    def outside(self) -> Ints:
        """Judged documents of each topic and level that no evidence run retrieves, shape (n_topics, L)."""
        judged = self.level >= 0
        cells = self.topic[judged] * self.counts.shape[1] + self.level[judged]
        return self.counts - np.bincount(cells, minlength=self.counts.size).reshape(self.counts.shape)

    @cached_property
    def pool_logit(self) -> Floats:
        """The logit of each topic's share of relevant judged documents, with 3 pseudo-counts, shape (n_topics,)."""
        relevant, judged = self.counts[:, 1:].sum(axis=1), self.counts.sum(axis=1)
        overall = relevant.sum() / max(judged.sum(), 1)
        return logit((relevant + POOL_COUNT * overall) / (judged + POOL_COUNT))

    def cut_to(self, depth: int) -> Evidence:
        """Return the evidence of the first ``depth`` ranks."""
        if depth >= self.depth:
            return self
        kept = self.rank <= depth
        items, item = np.unique(self.item[kept], return_inverse=True)
        docno, labels = self.docno.take(items), self.labels[:, items]
        cut = replace(self, depth=depth, topic=self.topic[items], level=self.level[items], docno=docno, labels=labels)
        return replace(cut, run=self.run[kept], rank=self.rank[kept], item=_narrow(item.reshape(-1)))


def evidence_of(
    runs: Mapping[str, Run], judgments: Judgments, cutoff: int, depth: int, labels: MachineLabels | None = None
) -> Evidence:
    """Return the evidence of the first ``depth`` documents of some checked runs on the judged topics."""
    entries = retrieved(runs, judgments, depth, checked=True)
    first = np.unique(fingerprints.keys(entries.topic, entries.docno.fingerprints), return_index=True)[1]
    first = _narrow(first[np.argsort(entries.topic[first], kind="stable")])
    topic, level, docno = entries.topic[first], np.maximum(entries.level[first], -1), entries.docno.take(first)
    # The lookup compares ids, not only fingerprints.
    item = _narrow(Lookup(topic, docno).find_one(entries.topic, entries.docno))
    machine = np.empty((0, len(first))) if labels is None else labels.lookup(entries.topics, topic, docno)
    about = (list(entries.runs), entries.topics, entries.counts, cutoff, depth)
    evidence = Evidence(*about, topic, level, docno, entries.run, entries.rank, item, machine)
    del entries
    if len(first) > MANY:
        release_unused()
    return evidence


def _narrow(places: Ints) -> Any:
    """Positions, ranks or levels in 32 bits, half the memory."""
    return places.astype(np.int32)


def logit(share: Floats) -> Floats:
    """``log(p / (1 - p))`` with shares clipped to [.001, .999]."""
    limited = np.clip(share, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(limited / (1 - limited)))


def _standardised(values: Floats, among: Bools | None = None) -> Floats:
    """Values with mean 0 and standard deviation 1 among some documents, clipped at 4; 0 for the others."""
    reference = values if among is None else values[among]
    scaled = (values - reference.mean()) / (reference.std() + 1e-9)
    scaled = np.clip(scaled, -MOST_DEVIATIONS, MOST_DEVIATIONS)
    return scaled if among is None else np.where(among, scaled, 0.0)


@dataclass(frozen=True, eq=False)
class Features:
    """Features of documents for the regression of their grades."""

    # Intercept and features, shape (m, p), and their names.
    fixed: Floats
    names: list[str]
    # The log rank in each substantial run, 0 if it does not retrieve the document; no columns of fewer than 3 runs.
    by_run: Floats
    # Membership in the cut of each run, shape (m, n_runs), 0 or 1.
    support: NDArray[np.uint8]
    # The features and the log ranks in runs, which steps without machine labels share, shape (m, .).
    design: Floats


def features_of(evidence: Evidence) -> Features:
    """Return the features of all documents.

    ``rank``: ``log Σ_runs 1/(3 + rank)``. ``curvature``: its square. ``best`` and ``below``: ``-log`` of the best rank,
    at most and at least the cutoff. ``neighbours``: see :func:`_neighbours`. With two or more runs ``share``, the share
    of runs that retrieve a document, and ``support``, ``log(w + .25)`` with w the effective number of runs that
    retrieve it up to the cutoff, in which a run has the weight ``1 / Σ_other overlap``, so that similar runs count as
    one. With three or more ``company``, the mean effective support of the documents in the same cut. ``outside``: the
    logit of the share of relevant documents among the judgments of the topic that no run retrieves.
    """
    m, near, cut = len(evidence), evidence.near, evidence.in_cut
    # Runs of a few documents have no columns, so that they do not change the model of the others.
    substantial = evidence.substantial
    n_runs = len(substantial)
    n_columns = n_runs if SEVERAL <= n_runs <= MOST_RUN_COLUMNS else 0
    richness = _richness(evidence)
    present = {
        "below": not near.all(),
        "share": n_runs > 1,
        "support": n_runs > 1,
        "company": n_runs >= SEVERAL,
        "outside": richness is not None,
    }
    names = [name for name in FEATURES if present.get(name, True)]
    # Columns are written where they stay: there are many documents.
    design = np.zeros((m, len(names) + n_columns))
    columns = dict(zip(names, design.T, strict=False))
    columns["intercept"][:] = 1.0
    columns["rank"][:] = _standardised(np.log(np.bincount(evidence.item, 1 / (3.0 + evidence.rank), minlength=m)))
    columns["curvature"][:] = _standardised(columns["rank"] ** 2)
    # Two slopes of the best rank: pools often end at the cutoff, and judged documents below it were chosen otherwise.
    best, cutoff = evidence.best_rank, evidence.cutoff
    columns["best"][:] = _standardised(-np.log(np.minimum(best, cutoff)))
    if "below" in columns:
        # 0 in the cut: in shallow pools no document below it is judged, and the slope stays 0.
        below = -np.log(np.maximum(best, cutoff) / cutoff)
        columns["below"][:] = np.maximum(below / below.std(), -MOST_DEVIATIONS)
    support = np.zeros((m, evidence.n_runs), dtype=np.uint8)
    support[evidence.item[cut], evidence.run[cut]] = 1
    columns["neighbours"][:] = _standardised(_neighbours(evidence))
    if n_runs > 1:
        retrieving = np.bincount(evidence.item, np.isin(evidence.run, substantial), minlength=m)
        columns["share"][:] = _standardised(retrieving / n_runs)
        of_runs = support[near][:, substantial].astype(np.float64)
        overlap = of_runs.T @ of_runs
        size = np.maximum(np.diag(overlap), 1.0)
        weight = 1 / np.maximum((overlap / np.minimum(size[:, None], size[None, :])).sum(axis=1), 1e-9)
        effective = np.zeros(m)
        effective[near] = of_runs @ weight
        columns["support"][:] = _standardised(np.log(effective + 0.25), near)
        if "company" in columns:
            share = (effective / weight.sum())[evidence.item]
            company = evidence.by_ranking(share) / np.maximum(evidence.n_cut, 1)
            company = evidence.mean_in_cut(company[evidence.run[cut], evidence.topic[evidence.item[cut]]])
            columns["company"][:] = _standardised(company, near)
    if richness is not None:
        columns["outside"][:] = richness[evidence.topic]
    if n_columns:
        place = np.full(evidence.n_runs, -1)
        place[substantial] = np.arange(len(names), design.shape[1])
        own = place[evidence.run] >= 0
        rank = evidence.rank[own]
        design[evidence.item[own], place[evidence.run[own]]] = 1 - np.log(rank) / np.log(evidence.depth + 1)
    return Features(design[:, : len(names)], names, design[:, len(names) :], support, design)


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


def _neighbours(evidence: Evidence) -> Floats:
    """The relevance of the judged documents beside each document, relative to its topic, shape (m,).

    For each run that retrieves a document in the first 2k ranks, the logit of the share of relevant judged documents in
    these ranks, less that of the topic over all runs; then the mean over runs. Shares have six pseudo-counts of the
    next larger set. Documents are divided into ten parts by their keys, and shares leave out the document's own part,
    so that no judgment predicts itself.
    """
    entry = evidence.rank <= NEIGHBOUR_RANKS * evidence.cutoff
    item = evidence.item[entry]
    level, topic = evidence.level[item], evidence.topic[item]
    part = (evidence.keys[item] % np.uint64(PARTS)).astype(np.int64)
    overall = (level > 0).sum() / max((level >= 0).sum(), 1)

    def share(cell: Ints, prior: Any) -> Floats:
        both = cell * PARTS + part
        judged, relevant = (np.bincount(cell, of)[cell] - np.bincount(both, of)[both] for of in (level >= 0, level > 0))
        return np.asarray((relevant + NEIGHBOUR_COUNT * prior) / (judged + NEIGHBOUR_COUNT))

    base = share(topic, overall)
    value = logit(share(evidence.run[entry] * len(evidence.topics) + topic, base)) - logit(base)
    n = np.bincount(item, minlength=len(evidence))
    return np.asarray(np.bincount(item, value, minlength=len(evidence)) / np.maximum(n, 1))


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


def selection(evidence: Evidence) -> tuple[float, float]:
    """Signs that documents were selected for judging: ``(sigma, KS)``, each from 0 (at random) to 1.

    ``sigma`` is the probability that documents at the first ranks were preferred, with prior 1/2. The statistic is the
    excess of judged documents at the ranks 1 to 3 of each run over its cut, scaled to the sum of ``n_r j_r (1 - j_r)``
    over runs, with n_r the documents of run r in its cuts and j_r their judged share; its standard error is the larger
    of that over topics and the binomial one. Judging at random has the expectation 0, and selection one of .7 with a
    standard deviation of .25, as measured on six collections; larger values count as .7. The judged share of whole
    topics is subtracted, so that judging topic by topic is no selection, and runs of which nothing or everything is
    judged have no weight.

    KS is the largest difference between judged and unjudged documents in the distribution of their best rank; 1 for a
    pool with a fixed depth.
    """
    cut, k = evidence.in_cut, evidence.cutoff
    run, topic = evidence.run[cut], evidence.topic[evidence.item[cut]]
    n, judged = _judged_of_runs(evidence)
    open_variance = (n * judged * (1 - judged)).sum()
    if open_variance <= 0:
        return 0.0, 0.0
    excess = (evidence.level[evidence.item[cut]] >= 0) - judged[run]
    n_topics = len(evidence.topics)
    of_topic = np.bincount(topic, excess, n_topics) / np.maximum(np.bincount(topic, minlength=n_topics), 1)
    first = evidence.rank[cut] <= FIRST_RANKS
    scale = n / np.maximum(np.bincount(run, first, len(n)), 1)
    sums = np.bincount(topic, (excess - of_topic[topic]) * first * scale[run], n_topics)
    with_documents = np.unique(topic).size
    error = np.sqrt(((sums - sums.sum() / with_documents) ** 2).sum()) / open_variance
    n_first, n_near = (evidence.best_rank <= FIRST_RANKS).sum(), evidence.near.sum()
    share = open_variance / n.sum()
    error = max(error, np.sqrt(max(1 / n_first - 1 / n_near, 0.0) / max(share, 1e-9)))
    statistic = min(sums.sum() / open_variance, SELECTED_EXCESS)
    # The logarithm of the ratio of two normal densities.
    variances = SELECTED_SPREAD**2 + error**2, RANDOM_SPREAD**2 + error**2
    deviations = (statistic - SELECTED_EXCESS) ** 2 / variances[0], statistic**2 / variances[1]
    log_ratio = (deviations[1] - deviations[0] + np.log(variances[1] / variances[0])) / 2
    sigma = 1 / (1 + np.exp(-np.clip(log_ratio, -30, 30)))
    close = evidence.best_rank <= 2 * k
    judged_ranks, unknown = (evidence.best_rank[close & mask] for mask in (evidence.level >= 0, evidence.level < 0))
    if not len(judged_ranks) or not len(unknown):
        return float(sigma), 0.0
    gap = [(judged_ranks <= depth).mean() - (unknown <= depth).mean() for depth in range(1, 2 * k)]
    return float(sigma), float(max(0.0, *gap))


def _judged_of_runs(evidence: Evidence) -> tuple[Floats, Floats]:
    """Documents of each run in its cuts, and the share of them that is judged, 0 for empty runs, (n_runs,) each."""
    n = evidence.n_cut.sum(axis=1).astype(np.float64)
    return n, 1 - (evidence.n_unjudged.sum(axis=1) + (n == 0)) / np.maximum(n, 1)


@dataclass(frozen=True, eq=False)
class Judging:
    """The relation of judging to the evidence.

    - ``unexplained``: the part of the variance of judging that ranks and runs do not explain, of the runs that retrieve
      a document up to the cutoff, 0 to 1, shape (m,); 0 below the cutoff
    - ``excess``: the unjudged share of a document's cuts minus the mean of the topic over all runs, shape (m,)
    - ``strange``: the part of the unjudged share of a document's runs over all topics above .7, 0 to 1, shape (m,)
    """

    unexplained: Floats
    excess: Floats
    strange: Floats


def judging_of(evidence: Evidence, features: Features) -> Judging:
    """Explain which documents of the cuts are judged by a ridge regression on their ranks and runs.

    The judgments of a run of which all documents at the first ranks were pooled, or none, are explained by its ranks
    and by the other runs, and say nothing more about relevance. What remains unexplained was decided by something that
    the evidence lacks, most often by pooled systems, which retrieve relevant documents. Of run r, that is ``Σ p (1 - p)
    / (n_r j_r (1 - j_r))`` over its documents, with p the fitted probability that a document is judged. Means of topics
    weight runs by their judged documents, so that strange runs have no effect on others.
    """
    near, cut = evidence.near, evidence.in_cut
    columns = [place for place, name in enumerate(features.names) if name in JUDGING_FEATURES]
    design = features.fixed[near][:, columns]
    if 1 < len(evidence.substantial) <= MOST_RUN_COLUMNS:
        design = np.column_stack([design, features.support[near][:, evidence.substantial]])
    ridge = np.where(np.arange(design.shape[1]) < len(columns), 0.1, 0.25)
    ridge[0] = 0.01
    fitted = np.zeros(len(evidence))
    fitted[near] = fit_logit(design, evidence.level[near] >= 0, ridge)
    n, judged = _judged_of_runs(evidence)
    variance = n * judged * (1 - judged)
    run, item = evidence.run[cut], evidence.item[cut]
    chance = fitted[item]
    del fitted
    residual = np.bincount(run, chance * (1 - chance), len(n))
    of_run = np.where(variance > LEAST_EXPECTED, np.minimum(residual / np.maximum(variance, 1e-9), 1.0), 0.0)
    share = evidence.n_unjudged / np.maximum(evidence.n_cut, 1)
    weight = (n * judged)[:, None] * (evidence.n_cut > 0)
    of_topic = (weight * share).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-9)
    excess = evidence.mean_in_cut(share[run, evidence.topic[item]])
    excess[near] -= of_topic[evidence.topic[near]]
    strange = np.maximum(1 - judged - USUAL, 0) / (1 - USUAL)
    return Judging(evidence.mean_in_cut(of_run[run]), excess, evidence.mean_in_cut(strange[run]))


def _by_rank(evidence: Evidence) -> tuple[Ints, Floats]:
    """Documents and judged documents at each rank over all runs and topics, shape (depth,)."""
    judged = np.bincount(evidence.rank, evidence.level[evidence.item] >= 0, minlength=evidence.depth + 1)
    return np.bincount(evidence.rank, minlength=evidence.depth + 1)[1:], judged[1:].astype(np.float64)


def judged_shares(evidence: Evidence) -> Floats:
    """The share of judged documents at each rank over all runs and topics, shape (depth,); NaN at empty ranks."""
    n, judged = _by_rank(evidence)
    return np.where(n > 0, judged / np.maximum(n, 1), np.nan)


def pool_depth(evidence: Evidence) -> int:
    """The depth to which runs were judged, the depth of the evidence if none shows.

    If the judged share of the last ranks of the cut, plus two standard errors, is below .9 of that of the ranks 1 to 3,
    the pool is shallower than the cutoff or has other runs, and does not show its depth. Otherwise it ends at the first
    rank from the cutoff on after which the judged share over five ranks falls by more than .05, plus two standard
    errors, and more than at the next ranks.
    """
    n, judged = _by_rank(evidence)
    depth, k = evidence.depth, evidence.cutoff
    topics = max(len(np.unique(evidence.topic)), 1)
    total, n_judged = (np.concatenate([[0.0], np.cumsum(values)]) for values in (n, judged))

    def share(start: Ints, stop: Ints) -> Floats:
        """Judged shares of the ranks ``start + 1`` to ``stop``, NaN without documents."""
        size = total[stop] - total[start]
        return np.where(size > 0, (n_judged[stop] - n_judged[start]) / np.maximum(size, 1), np.nan)

    top, last = share(np.array([0, max(k - WINDOW, 0)]), np.array([min(FIRST_RANKS, k), k]))
    # Two standard errors, since few topics show a share roughly.
    if not last + 2 * np.sqrt(max(last * (1 - last), 0.0) / (WINDOW * topics)) >= LEAST_SHARE * top:
        return depth
    ends = np.arange(k, depth)
    before, after = share(np.maximum(ends - WINDOW, 0), ends), share(ends, np.minimum(ends + WINDOW, depth))
    size = np.minimum(total[np.minimum(ends + WINDOW, depth)] - total[ends], WINDOW * topics)
    error = np.sqrt(np.maximum(before * (1 - before) + after * (1 - after), 1e-9) / np.maximum(size, 1))
    fall = np.nan_to_num(before - after)
    following = np.max([np.append(fall[step:], np.zeros(min(step, len(fall)))) for step in range(1, WINDOW)], axis=0)
    falls = np.flatnonzero((fall > LEAST_FALL + 2 * np.nan_to_num(error)) & (fall >= following))
    return int(ends[falls[0]]) if len(falls) else depth
