"""Evidence of runs and judgments about unjudged documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from vbterrier.frames.ids import Ids, Lookup, release_unused
from vbterrier.kernels import fingerprints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints, Words
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.pool import Judgments, MachineLabels


# Pseudo-counts of the share of relevant documents among a topic's judgments.
POOL_COUNT = 3.0
# A run has the trust 1 from this share of the judged documents of the run with the most, and the least trust without.
TRUSTED_SHARE, LEAST_TRUST = 0.2, 0.02
# The power of the cosine that makes runs copies of each other, and the steps towards the weights.
COPY_POWER, WEIGHT_STEPS = 4, 200
# Documents of the evidence whose temporary arrays take much memory, and entries whose documents are text at a time.
MIN_LARGE_DOCUMENTS, _ENTRIES = 1 << 17, 1 << 20


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

    def run_entries(self, name: str) -> tuple[Bools, Ints]:
        """A mask of the entries of a run, and their rows in its frame."""
        of_run = self.run == list(self.runs).index(name)
        return of_run, self.row[of_run]


def first_documents(runs: Mapping[str, Run], judgments: Judgments, cutoff: int, *, checked: bool = False) -> Retrieved:
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


class RunWeights(NamedTuple):
    """Weights of the distinct runs of the evidence, shape (n_distinct,) each.

    ``by_copies``: copies have the weight of one run together, and other runs keep theirs. ``by_overlap``: runs with
    many equal documents have less weight together.
    """

    by_copies: Floats
    by_overlap: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """The union of the first documents of all evidence runs, with their judgments.

    Arrays of documents have an entry per distinct document of a topic, sorted by topic and by a key of the document,
    and runs with equal documents and ranks are one distinct run, so that the order and the names of runs and copies of
    them have no effect.
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
    # The distinct run of each evidence run, -1 without documents, (n_runs,), and the key of each distinct run, which
    # depends on its documents and ranks alone and sorts them, (n_distinct,).
    distinct: Ints
    run_keys: Words
    # Distinct run, rank (from 1) and document of each entry, a document of a distinct run.
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

    @property
    def n_distinct(self) -> int:
        """Number of distinct runs with documents."""
        return len(self.run_keys)

    @cached_property
    def copies(self) -> list[list[str]]:
        """The names of the runs of each distinct run that has several."""
        names = np.array(self.names, dtype=object)
        every = [names[self.distinct == place].tolist() for place in range(self.n_distinct)]
        return sorted(same for same in every if len(same) > 1)

    @cached_property
    def lookup(self) -> Lookup:
        """The position of a document by topic and id."""
        return Lookup(self.topic, self.docno)

    @cached_property
    def keys(self) -> Words:
        """A 64-bit key of each document that depends on its topic and id alone, shape (m,)."""
        return _document_keys(self.topics, self.topic, self.docno)

    def folds(self, rows: Ints, n_folds: int) -> Ints:
        """Divide some documents into parts with about equal ranks, shape (n_rows,), 0..n_folds - 1.

        Documents in the order of their best ranks, then of their sums of ``1/(3 + rank)`` over distinct runs, are
        assigned to the parts in turn; of equal documents in these, the order of topics and ids decides.
        """
        order = np.argsort(self.docno.take(rows).text.to_numpy(zero_copy_only=False), kind="stable")
        keys = (self.topic[rows], -self.fusion_scores[rows], self.best_rank[rows])
        order = order[np.lexsort(tuple(key[order] for key in keys))]
        folds = np.empty(len(rows), dtype=np.int64)
        folds[order] = np.arange(len(rows)) % n_folds
        return folds

    @cached_property
    def fusion_scores(self) -> Floats:
        """``Σ 1/(3 + rank)`` over the distinct runs of each document, shape (m,)."""
        return self.sums(lambda part: 1 / (3.0 + self.rank[part]))

    @cached_property
    def unjudged_positions(self) -> Ints:
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
        """Number of runs that retrieve each document, copies included, shape (m,)."""
        n_copies = np.bincount(self.distinct[self.distinct >= 0], minlength=self.n_distinct).astype(np.float64)
        return self.sums(lambda part: n_copies[self.run[part]]).astype(np.int64)

    @cached_property
    def in_cut(self) -> Bools:
        """Entries up to the cutoff."""
        return np.asarray(self.rank <= self.cutoff)

    @cached_property
    def near(self) -> Bools:
        """Documents that a run retrieves up to the cutoff, shape (m,)."""
        return np.asarray(self.best_rank <= self.cutoff)

    @cached_property
    def members(self) -> NDArray[np.uint8]:
        """Membership in the cut of each distinct run, shape (m, n_distinct), 0 or 1."""
        members = np.zeros((len(self), self.n_distinct), dtype=np.uint8)
        members[self.item[self.in_cut], self.run[self.in_cut]] = 1
        return members

    @cached_property
    def n_cut(self) -> Ints:
        """Documents of each distinct run and topic up to the cutoff, shape (n_distinct, n_topics)."""
        return self.by_ranking(np.ones(len(self.item))).astype(np.int64)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents of each distinct run and topic up to the cutoff, shape (n_distinct, n_topics)."""
        return self.by_ranking((self.level[self.item] < 0).astype(np.float64)).astype(np.int64)

    @cached_property
    def run_trust(self) -> Floats:
        """The trust in each distinct run as evidence about documents of others, .02 to 1, shape (n_distinct,).

        ``clip((J / (.2 max J))², .02, 1)`` with J the judged documents in its cuts; 1 if nothing is judged. A run of
        unknown documents says hardly anything about documents of other runs.
        """
        judged = (self.n_cut - self.n_unjudged).sum(axis=1)
        most = judged.max(initial=0)
        if not most:
            return np.ones(self.n_distinct)
        return np.asarray(np.clip((judged / (TRUSTED_SHARE * most)) ** 2, LEAST_TRUST, 1.0))

    @cached_property
    def trust(self) -> Floats:
        """The largest trust of the runs that retrieve each document, shape (m,)."""
        trust = np.zeros(len(self))
        for part in self._parts():
            np.maximum.at(trust, self.item[part], self.run_trust[self.run[part]])
        return trust

    @cached_property
    def trusted_rank(self) -> Floats:
        """The best rank of each document, in which runs of less trust count as deeper ones, shape (m,)."""
        best = np.full(len(self), np.inf)
        for part in self._parts():
            np.minimum.at(best, self.item[part], self.rank[part] / self.run_trust[self.run[part]])
        return np.asarray(np.minimum(best * self.trust, self.depth))

    @cached_property
    def weights(self) -> RunWeights:
        """Weights of the distinct runs from the cosine C of their membership in the cuts and their trust f.

        Of :func:`overlap_weights` with similarity ``C^4`` (by copies), and with C (by overlap).
        """
        members = self.members[self.near].astype(np.float32)
        size = np.sqrt(np.maximum(members.sum(axis=0, dtype=np.float64), 1.0))
        cosine = (members.T @ members).astype(np.float64) / np.outer(size, size)
        return RunWeights(overlap_weights(cosine**COPY_POWER, self.run_trust), overlap_weights(cosine, self.run_trust))

    @property
    def n_effective(self) -> float:
        """The effective number of runs, the sum of weights by copies: runs without judged documents hardly count."""
        return float(self.weights.by_copies.sum())

    def _parts(self) -> Iterator[slice]:
        """Yield parts of the entries whose temporary arrays take little memory."""
        return (slice(start, start + _ENTRIES) for start in range(0, len(self.item), _ENTRIES))

    def sums(self, values: Callable[[slice], Floats], *, by_rank: bool = False) -> Floats:
        """Sums of values of entries, given some entries at a time, by document, shape (m,), or rank, (depth + 1,)."""
        total = np.zeros(self.depth + 1 if by_rank else len(self))
        for part in self._parts():
            # In the order of the entries, so that parts of any size have the same sums.
            np.add.at(total, (self.rank if by_rank else self.item)[part], values(part))
        return total

    def by_ranking(self, values: Floats) -> Floats:
        """Sums of entries up to the cutoff by distinct run and topic, shape (n_distinct, n_topics)."""
        cell = self.run * len(self.topics) + self.topic[self.item]
        cut = self.in_cut
        sums = np.bincount(cell[cut], values[cut], minlength=self.n_distinct * len(self.topics))
        return sums.reshape(self.n_distinct, len(self.topics)).astype(np.float64)

    def mean_in_cut(self, values: Floats) -> Floats:
        """The weighted mean of a value of the entries up to the cutoff over runs, 0 below it, shape (m,)."""
        item, weight = self.item[self.in_cut], self.weights.by_copies[self.run[self.in_cut]]
        total, of_all = (np.bincount(item, each, minlength=len(self)) for each in (values * weight, weight))
        return ratio(total, of_all)

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
        # Runs that differ below this depth alone become copies.
        entries = _distinct(self.keys[items], self.n_distinct, self.run[kept], self.rank[kept], item.reshape(-1))
        again = np.append(entries.distinct, -1)[self.distinct]
        return replace(cut, **entries._replace(distinct=again)._asdict())


class _Entries(NamedTuple):
    """The entries of distinct runs; see :class:`Evidence`."""

    distinct: Ints
    run_keys: Words
    run: Ints
    rank: Ints
    item: Ints


def _distinct(keys: Words, n_runs: int, run: Ints, rank: Ints, item: Ints) -> _Entries:
    """Merge runs with equal documents and ranks; ``keys``: those of documents; ``run``: that of each entry."""
    of_run = np.zeros(n_runs, dtype=np.uint64)
    for start in range(0, len(run), _ENTRIES):
        part = slice(start, start + _ENTRIES)
        np.add.at(of_run, run[part], fingerprints.mix(keys[item[part]] + rank[part].astype(np.uint64)))
    full = np.flatnonzero(np.bincount(run, minlength=n_runs))
    run_keys, first, place = np.unique(of_run[full], return_index=True, return_inverse=True)
    distinct = np.full(n_runs, -1)
    distinct[full] = place.reshape(-1)
    chosen: Ints = _narrow(np.full(n_runs, -1))
    chosen[full[first]] = np.arange(len(first))
    # Sorted by key, so that sums do not depend on names, not even by rounding.
    order = np.argsort(chosen[run], kind="stable")
    order = order[np.count_nonzero(chosen[run] < 0) :]
    return _Entries(distinct, run_keys, _narrow(chosen[run[order]]), rank[order], _narrow(item[order]))


def collect_evidence(
    runs: Mapping[str, Run], judgments: Judgments, cutoff: int, depth: int, labels: MachineLabels | None = None
) -> Evidence:
    """Return the evidence of the first ``depth`` documents of some checked runs on the judged topics."""
    names, union = sorted(runs, key=str), _Union()
    n_runs = max(_ENTRIES // max(len(judgments.topics) * depth, 1), 1)
    parts = []
    for start in range(0, len(names), n_runs):
        entries = first_documents(
            {name: runs[name] for name in names[start : start + n_runs]}, judgments, depth, checked=True
        )
        parts.append((entries.run + np.int32(start), entries.rank, union.places(entries)))
    run, rank, item = (column[0] if len(parts) == 1 else np.concatenate(column) for column in zip(*parts, strict=True))
    del parts
    topics, counts = entries.topics, entries.counts
    order = np.lexsort((union.keys, union.topic))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    item = place[item]
    topic, level, docno = union.topic[order], np.maximum(union.level[order], -1), union.docno.take(order)
    machine = np.empty((0, len(order))) if labels is None else labels.lookup(topics, topic, docno)
    distinct = _distinct(_document_keys(topics, topic, docno), len(names), run, rank, item)
    about = (names, topics, counts, cutoff, depth)
    evidence = Evidence(*about, topic, level, docno, *distinct, machine)
    del entries, run, rank, item
    if len(order) > MIN_LARGE_DOCUMENTS:
        release_unused()
    return evidence


class _Union:
    """Distinct documents of several runs, in the order in which their runs are added."""

    def __init__(self) -> None:
        self.keys: Words = np.empty(0, dtype=np.uint64)
        self.topic: Ints = np.empty(0, dtype=np.int32)
        self.level: Ints = np.empty(0, dtype=np.int32)
        self.docno = Ids(pa.array([], pa.large_string()))

    def places(self, entries: Retrieved) -> Ints:
        """Add the documents of some entries, and return the place of each entry's document, shape (m,)."""
        keys, first = np.unique(fingerprints.keys(entries.topic, entries.docno.fingerprints), return_index=True)
        is_new = ~np.isin(keys, self.keys)
        new = first[is_new]
        self.keys = np.concatenate([self.keys, keys[is_new]])
        self.topic = np.concatenate([self.topic, entries.topic[new]])
        self.level = np.concatenate([self.level, entries.level[new]])
        self.docno = Ids(pa.concat_arrays([self.docno.text, entries.docno.take(new).text]))
        # The lookup compares ids, not only fingerprints.
        places: Ints = _narrow(Lookup(self.topic, self.docno).find_one(entries.topic, entries.docno))
        return places


def _document_keys(topics: list[str], topic: Ints, docno: Ids) -> Words:
    of_topics = Ids(pa.array(topics, pa.large_string())).fingerprints
    return fingerprints.mix(docno.fingerprints + fingerprints.mix(of_topics)[topic])


def _narrow(places: Ints) -> Any:
    """Positions, ranks or levels in 32 bits, half the memory."""
    return places.astype(np.int32)


def overlap_weights(similarity: Floats, total: Floats) -> Floats:
    """Weights ``w >= 0`` of runs with ``S w = f``, or ``S w >= f`` where w is 0, shape (n,).

    ``similarity``: S, shape (n, n), 0 to 1, with ones on the diagonal. ``total``: f, the weight of a run and those
    similar to it together, shape (n,). They minimise ``w' S w / 2 - f' w`` by multiplicative steps. Equal runs together
    have the weight of one, near copies nearly so, and weights of runs without similar ones do not change.

    Source: Sha, Saul, Lee: Multiplicative updates for nonnegative quadratic programming in support vector machines.
    NIPS 2002, for a matrix without negative entries.
    """
    weights = total
    with np.errstate(under="ignore"):
        for _ in range(WEIGHT_STEPS):
            before = weights
            weights = before * total / np.maximum(similarity @ before, np.finfo(np.float64).tiny)
            if (weights == before).all():
                break
    return np.asarray(weights)


def ratio(total: Any, weight: Any, empty: float = 0.0) -> Floats:
    """``total / weight``, and ``empty`` where the weight is 0."""
    return np.asarray(np.divide(total, weight, out=np.full(len(total), empty), where=weight > 0))


def logit(share: Floats) -> Floats:
    """``log(p / (1 - p))`` with shares clipped to [.001, .999]."""
    limited = np.clip(share, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(limited / (1 - limited)))
