"""Labels of documents as arrays: judgments, and labels of machines, which are evidence about relevance."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, agreeing, examples, warn
from vbterrier.frames import ranking
from vbterrier.frames.columns import LABELS
from vbterrier.frames.contracts import LabelFrame, is_frame, pandas_frame, require
from vbterrier.frames.files.rated_lists import read_judges
from vbterrier.frames.files.reading import read_labels
from vbterrier.frames.ids import (
    Ids,
    Lookup,
    column_keys,
    column_numbers,
    repeated_pairs,
    require_same_kind,
    row_describer,
)
from vbterrier.frames.ranking import places, run_places
from vbterrier.frames.trectools import is_trectools
from vbterrier.kernels import fingerprints
from vbterrier.kernels.rankings import gains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints, Words
    from vbterrier.frames.ranking import Run


UNJUDGED_LEVEL = -1
NO_DOCUMENT_LEVEL = -2


class Judgments(LabelFrame):
    """The judged documents of every topic, by grade.

    Labels below 0 count as grade 0, as in trec_eval; with ``drop_negative`` as missing judgments, as in the published
    code of the ECIR 2023 paper. ``grades``: the grades that occur, increasing from 0, shape (L,). ``counts``: judged
    documents of each topic and grade, shape (n, L).
    """

    def __init__(
        self, qrels: Any, *, name: str = "qrels", drop_negative: bool = False, ids: tuple[Ids, Ids] | None = None
    ) -> None:
        super().__init__(qrels, name=name, drop_negative=drop_negative, ids=ids)
        grade = np.maximum(self.label, 0)
        self.grades = np.union1d(grade, 0)
        self.level = np.searchsorted(self.grades, grade)
        self.counts = self.count(self.topic, self.level)

    @cached_property
    def of_topics(self) -> Words:
        """A fingerprint of the judgments of each topic, independently of their order, shape (n,)."""
        grade = self.grades[self.level].astype(np.uint64)
        return fingerprints.of_groups(self.topic, self.docno.fingerprints, grade, len(self.topics))

    @property
    def fingerprint(self) -> bytes:
        """Bytes that determine all judgments, independently of their order."""
        return fingerprints.of_named_groups(self.topics, self.of_topics)

    def with_grades(self, grades: Ints) -> Judgments:
        """Return the same judgments with additional, possibly unused grades."""
        wider = copy.copy(self)
        wider.grades = np.union1d(self.grades, grades)
        place = np.searchsorted(wider.grades, self.grades)
        wider.level = place[self.level]
        wider.counts = np.zeros((len(self.topics), len(wider.grades)), dtype=np.int64)
        wider.counts[:, place] = self.counts
        return wider

    def count(self, topic: Ints, level: Ints) -> Ints:
        """Count each grade in each topic, shape (n, L)."""
        cells = np.bincount(topic * len(self.grades) + level, minlength=len(self.topics) * len(self.grades))
        return cells.reshape(len(self.topics), len(self.grades))

    def judged_ranks(self, run: Run, ranks: Ints | None = None) -> JudgedRanks:
        """Look up all documents of a run; ids are not checked. Costs no table of topics by ranks.

        - ``ranks``: the rank of each row, from 0; by default in trec_eval's order
        """
        run.refuse_duplicates()
        place = places(run.topics, self.topics)
        judged, row = self.lookup.find(place[run.topic], run.docno)
        topic = place[run.topic[judged]]
        rank = run.row_ranks(judged) if ranks is None else ranks[judged]
        order = np.lexsort((rank, topic))
        sizes = np.zeros(len(self.topics), dtype=np.int64)
        sizes[place[place >= 0]] = np.bincount(run.topic, minlength=len(run.topics))[place >= 0]
        return JudgedRanks(self, topic[order], rank[order], self.level[row[order]], sizes)

    def unjudged_share(self, run: Run, cutoff: int) -> Floats:
        """``unjudged / retrieved`` up to a cutoff, 0 if nothing is retrieved, shape (n_topics,); no checks of ids."""
        if cutoff < run.longest:
            return self.judge(run, cutoff, checked=True).unjudged_share()
        ranks = self.judged_ranks(run)
        n_judged = np.bincount(ranks.topic, minlength=len(self.topics))
        return np.asarray((ranks.n_retrieved - n_judged) / np.maximum(ranks.n_retrieved, 1))

    def judge(self, run: Run, cutoff: int | None, *, checked: bool = False) -> JudgedTop:
        """Look up the first ``cutoff`` documents of each topic of a run, after checks that ids can match."""
        if checked:
            place = places(run.topics, self.topics)
        else:
            place = run_places(run, self.topics, self.qid, self.name)
            require_same_kind(self.docno, run.docno, f"{self.name} column 'docno'", f"{run.name} column 'docno'")
        top = run.top(cutoff)
        if not checked:
            top.warn_of_ties(run.name)
        rows, topic, rank, docno = top.of_topics(place, len(self.topics))
        levels = np.full(rows.shape, NO_DOCUMENT_LEVEL, dtype=np.int64)
        row = self.lookup.find_one(topic, docno)
        levels[topic, rank] = np.where(row >= 0, self.level[row], UNJUDGED_LEVEL) if len(self.level) else UNJUDGED_LEVEL
        return JudgedTop(self, run, rows, levels, cutoff)


@dataclass(frozen=True, eq=False)
class JudgedRanks:
    """The judged documents of a run, by topic and rank."""

    judgments: Judgments
    # The topic, the rank from 0 and the position of the grade in ``judgments.grades`` of each, shape (n_documents,).
    topic: Ints
    rank: Ints
    level: Ints
    # The number of retrieved documents of each topic, shape (n_topics,).
    n_retrieved: Ints

    def condensed_list(self) -> JudgedRanks:
        """Return the ranking without its unjudged documents."""
        sizes = np.bincount(self.topic, minlength=len(self.n_retrieved))
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(len(self.topic)) - starts[self.topic]
        return JudgedRanks(self.judgments, self.topic, rank, self.level, sizes)


@dataclass(frozen=True, eq=False)
class JudgedTop:
    """A run with its judgments up to a rank cutoff, for every judged topic."""

    judgments: Judgments
    run: Run
    # The row of the run at each rank, -1 for no document, shape (n, width).
    rows: Ints
    # The position of the grade in ``judgments.grades``, -1 for unjudged, -2 for no document, shape (n, width).
    levels: Ints
    # The requested cutoff k, None for the whole ranking. The width is smaller if all lists are shorter.
    cutoff: int | None

    def cut_to(self, cutoff: int | None) -> JudgedTop:
        """Return the judged run with a smaller cutoff."""
        if cutoff == self.cutoff:
            return self
        return JudgedTop(self.judgments, self.run, self.rows[:, :cutoff], self.levels[:, :cutoff], cutoff)

    def ranks(self) -> JudgedRanks:
        """Return the judged documents by topic and rank."""
        topic, rank = np.nonzero(self.levels >= 0)
        sizes = np.asarray(np.count_nonzero(self.levels != NO_DOCUMENT_LEVEL, axis=1))
        return JudgedRanks(self.judgments, topic, rank, self.levels[topic, rank], sizes)

    def deeper(self, times: int) -> JudgedTop:
        """Return the judged run with a cutoff ``times`` as large, limited by memory."""
        if self.cutoff is None:
            return self
        cutoff = max(self.cutoff, min(self.cutoff * times, ranking.MAX_PLACES // max(len(self.run.topics), 1)))
        return self.judgments.judge(self.run, cutoff, checked=True)

    @cached_property
    def unjudged_mask(self) -> NDArray[np.bool_]:
        """A mask of unjudged documents, shape (n, width)."""
        return np.equal(self.levels, UNJUDGED_LEVEL)

    @cached_property
    def n_unjudged(self) -> Ints:
        """Unjudged documents of each topic, shape (n,)."""
        return np.asarray(np.count_nonzero(self.unjudged_mask, axis=1))

    @cached_property
    def counts(self) -> Ints:
        """Judged documents of each topic and grade up to the cutoff, shape (n, L)."""
        topic, rank = np.nonzero(self.levels >= 0)
        return self.judgments.count(topic, self.levels[topic, rank])

    def with_grades(self, grades: Ints) -> JudgedTop:
        """Return the same run with additional grades, see :meth:`Judgments.with_grades`."""
        wider = self.judgments.with_grades(grades)
        # Levels -2 and -1 index the last two elements: no document, unjudged.
        place = np.append(np.searchsorted(wider.grades, self.judgments.grades), [NO_DOCUMENT_LEVEL, UNJUDGED_LEVEL])
        return JudgedTop(wider, self.run, self.rows, place[self.levels], self.cutoff)

    def unjudged_share(self) -> NDArray[np.float64]:
        """``unjudged / retrieved`` up to the cutoff, 0 if nothing is retrieved, shape (n,)."""
        retrieved = np.count_nonzero(self.levels != NO_DOCUMENT_LEVEL, axis=1)
        return np.asarray(self.n_unjudged / np.maximum(retrieved, 1))


def grade_gains(judged: JudgedTop | JudgedRanks, dcg: str) -> NDArray[np.float64]:
    """The gain of each grade, shape (L,): ``"log2"`` the grade, ``"exp-log2"`` ``2^grade - 1``."""
    grades = judged.judgments.grades
    with np.errstate(over="ignore"):
        gain = gains(grades, exponential=dcg == "exp-log2")
    if not np.isfinite(gain).all():
        raise InputError(f"{judged.judgments.name}: grade {grades[-1]} has no finite gain 2^grade - 1; use dcg='log2'")
    return gain


class _Labeller(NamedTuple):
    """The labels of one machine, sorted into topics."""

    name: str
    topics: list[str]
    topic: Ints
    qid: Ids
    docno: Ids
    label: Floats
    lookup: Lookup


class MachineLabels:
    """Labels of documents by one or more machines.

    Labels are numbers on any scale, of judged and unjudged documents alike; the model learns what a label means from
    the documents that humans judged. ``names`` are the labellers.

    Parameters
    ----------
    source
        A frame (qid, docno, label) or a path; several paths, named after their files; or a mapping of name to frame or
        path. A book of Quepid has labels of several raters. See :func:`vbterrier.frames.read_labels`.

    Raises
    ------
    InputError
        No labels; labellers with one name; missing columns or ids; labels that are not finite, or two of a document.

    Examples
    --------
    >>> labels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [0.9, 0.2]})
    >>> MachineLabels({"llm": labels})
    MachineLabels(llm)
    """

    def __init__(self, source: Any) -> None:
        self._labellers = [_read_labeller(name, labels) for name, labels in _named_labels(source)]
        self.names = [labeller.name for labeller in self._labellers]
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise InputError(f"labels: two labellers are called {twice[0]!r}; name them, as {{'name': labels}}")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"MachineLabels({', '.join(self.names)})"

    def lookup(self, topics: Sequence[str], topic: Ints, docno: Ids) -> Floats:
        """Return the label of each document, NaN if a labeller gave none, shape (n_labellers, n_documents)."""
        labels = np.full((len(self), len(docno)), np.nan)
        for labeller, row in zip(self._labellers, labels, strict=True):
            labeller_topic = places(topics, labeller.topics)[topic]
            at = labeller.lookup.find_one(labeller_topic, docno)
            row[at >= 0] = labeller.label[at[at >= 0]]
        return labels

    @property
    def fingerprint(self) -> bytes:
        """Bytes that determine all labels, independently of their order."""
        parts = []
        for each in self._labellers:
            label = (each.label + 0.0).view(np.uint64)
            prints = fingerprints.of_groups(each.topic, each.docno.fingerprints, label, len(each.topics))
            parts += [each.name.encode(), fingerprints.of_named_groups(each.topics, prints)]
        return b"".join(parts)

    def frame(self) -> pd.DataFrame:
        """Return all labels: qid, docno, grade (the label), name (of the labeller)."""
        parts = [_id_columns(each).assign(grade=each.label, name=each.name) for each in self._labellers]
        return pd.concat(parts, ignore_index=True)

    def require_match(self, judgments: Judgments) -> None:
        """Check that ids can match those of judgments; warn of labellers that labelled no judged document."""
        qid = f"{judgments.name} column 'qid'"
        for each in self._labellers:
            require_same_kind(judgments.qid, each.qid, qid, f"labels {each.name!r} column 'qid'")
        if not any(set(each.topics) & set(judgments.topics) for each in self._labellers):
            first = self._labellers[0]
            raise InputError(
                f"labels {first.name!r}: none is of a judged topic: it has {examples(first.topics)}; "
                f"{judgments.name} has {examples(judgments.topics)}; look for other prefixes, leading zeros or blanks"
            )
        labels = self.lookup(judgments.topics, judgments.topic, judgments.docno)
        unused = [each for each, row in zip(self._labellers, labels, strict=True) if np.isnan(row).all()]
        if unused:
            ids, judged = (examples(each.docno.text[:4].to_pylist()) for each in (unused[0], judgments))
            warn(
                f"labels {unused[0].name!r}: no judged document has a label, so nothing can be learned from them: it "
                f"has {ids}; {judgments.name} has {judged}"
            )


def machine_labels(source: Any) -> MachineLabels | None:
    """Return machine labels from any form, ``None`` for none."""
    return source if source is None or isinstance(source, MachineLabels) else MachineLabels(source)


def _named_labels(source: Any) -> list[tuple[str, Any]]:
    if isinstance(source, (str, os.PathLike)):
        source = [source]
    if is_frame(source) or is_trectools(source):
        return [("labels", source)]
    if isinstance(source, Mapping):
        named = [(str(name), labels) for name, labels in source.items()]
    elif isinstance(source, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in source):
        named = [pair for path in source for pair in read_judges(path).items()]
    else:
        raise InputError(
            "labels: wanted a frame (qid, docno, label), a path, or a mapping of name to these; found "
            f"{type(source).__name__}"
        )
    if not named:
        raise InputError("labels: none; give the labels of at least one machine, or leave labels= out")
    return named


def _read_labeller(name: str, source: Any) -> _Labeller:
    what = f"labels {name!r}"
    frame = read_labels(source) if isinstance(source, (str, os.PathLike)) else pandas_frame(source, what, LABELS)
    require(frame, ("qid", "docno", "label"), what)
    if not len(frame):
        raise InputError(f"{what}: no rows")
    qid, docno = (column_keys(frame[column], f"{what} column {column!r}") for column in ("qid", "docno"))
    topics, topic = qid.codes()
    label = column_numbers(frame["label"], f"{what} column 'label'", row_describer(topics, topic, docno))
    infinite, rows = np.flatnonzero(~np.isfinite(label)), repeated_pairs(topic, docno)
    if len(infinite) or len(rows):
        row = int(infinite[0] if len(infinite) else rows[0])
        document = f"document {docno.text[row].as_py()!r} of query {topics[topic[row]]!r}"
        if len(infinite):
            raise InputError(f"{what}: the label of {document} (row {row}) is infinite; wanted a number")
        raise InputError(f"{what}: {document} has several labels ({agreeing(len(rows), 'rows repeat')}); keep one")
    return _Labeller(name, topics, topic, qid, docno, label, Lookup(topic, docno))


def labelled_judgments(labels: MachineLabels, judgments: Judgments) -> pd.DataFrame:
    """Return the judged documents with their labels, sorted: qid, docno, grade, a column for each labeller."""
    values = labels.lookup(judgments.topics, judgments.topic, judgments.docno)
    frame = _id_columns(judgments).assign(grade=np.maximum(judgments.label, 0))
    return frame.assign(**dict(zip(labels.names, values, strict=True))).sort_values(["qid", "docno"], ignore_index=True)


def _id_columns(labelled: _Labeller | Judgments) -> pd.DataFrame:
    """The columns qid and docno."""
    qid = np.array(labelled.topics, dtype=object)[labelled.topic]
    return pd.DataFrame({"qid": qid, "docno": labelled.docno.text.to_pylist()})
