"""Labels that machines, such as language models, gave to documents: evidence about their relevance, not judgments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.contracts import frame_of, is_frame, require
from vbterrier.frames.files.reading import read_labels
from vbterrier.frames.ids import Ids, Lookup, ids_of, numbers_of, owner_of, repeated_pairs, require_same_kind
from vbterrier.frames.ranking import places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats, Ints
    from vbterrier.unjudged.pool import Judgments


@dataclass(frozen=True, eq=False)
class _Labeller:
    """The labels of one machine, sorted into topics."""

    name: str
    topics: list[str]
    topic: Ints
    qid: Ids
    docno: Ids
    label: Floats

    @cached_property
    def index(self) -> Lookup:
        return Lookup(self.topic, self.docno)


class MachineLabels:
    """Labels of documents by one or more machines.

    Labels are numbers on any scale, of judged and unjudged documents alike; the model learns what a label means from
    the documents that humans judged.

    Parameters
    ----------
    given
        A frame (qid, docno, label) or a path; several paths, named after their files; or a mapping of name to frame or
        path. See :func:`vbterrier.frames.read_labels`.

    Raises
    ------
    InputError
        No labels; two labellers with one name; a missing column or id, a label that is no finite number, a document
        with two labels.

    Attributes
    ----------
    names : list of str
        The labellers.

    Examples
    --------
    >>> labels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [0.9, 0.2]})
    >>> MachineLabels({"llm": labels})
    MachineLabels(llm)
    """

    def __init__(self, given: Any) -> None:
        self._labellers = [_labeller(name, labels) for name, labels in _named(given)]
        self.names = [labeller.name for labeller in self._labellers]
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise InputError(f"labels: two labellers are called {twice[0]!r}; name them, as {{'name': labels}}")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"MachineLabels({', '.join(self.names)})"

    def lookup(self, topics: Sequence[str], topic: Ints, docno: Ids) -> Floats:
        """Return the label of each document, NaN if a labeller gave none, shape (n_labellers, n_documents).

        ``topics``: the ids of the topics. ``topic, docno``: the position of the topic of each document, and its id,
        shape (n_documents,).
        """
        found = np.full((len(self), len(docno)), np.nan)
        for labeller, row in zip(self._labellers, found, strict=True):
            own = places(topics, labeller.topics)[topic]
            at = labeller.index.find_one(own, docno)
            row[at >= 0] = labeller.label[at[at >= 0]]
        return found

    def frame(self) -> pd.DataFrame:
        """Return all labels: qid, docno, grade (the label), name (of the labeller)."""
        parts = [
            pd.DataFrame(
                {
                    "qid": np.array(each.topics, dtype=object)[each.topic],
                    "docno": each.docno.text.to_pylist(),
                    "grade": each.label,
                    "name": each.name,
                }
            )
            for each in self._labellers
        ]
        return pd.concat(parts, ignore_index=True)

    def require_match(self, judgments: Judgments) -> None:
        """Check that ids can match those of judgments; warn of labellers that labelled no judged document.

        Raises InputError: integer ids in one frame and text in the other; no labeller labelled a document of the judged
        topics.
        """
        qid = f"{judgments.name} column 'qid'"
        for each in self._labellers:
            require_same_kind(judgments.qid, each.qid, qid, f"labels {each.name!r} column 'qid'")
        common = [labeller for labeller in self._labellers if set(labeller.topics) & set(judgments.topics)]
        if not common:
            first = self._labellers[0]
            raise InputError(
                f"labels {first.name!r}: none is of a judged topic: it has {examples(first.topics)}; "
                f"{judgments.name} has {examples(judgments.topics)}; look for other prefixes, leading zeros or blanks"
            )
        labels = self.lookup(judgments.topics, judgments.topic, judgments.docno)
        unused = [name for name, row in zip(self.names, labels, strict=True) if np.isnan(row).all()]
        if unused:
            first = next(each for each in self._labellers if each.name == unused[0])
            warn(
                f"labels {unused[0]!r}: no judged document has a label, so nothing can be learned from them: it has "
                f"{examples(first.docno.text[:4].to_pylist())}; {judgments.name} has "
                f"{examples(judgments.docno.text[:4].to_pylist())}"
            )


def labels_of(given: Any) -> MachineLabels | None:
    """Return machine labels from any form, ``None`` for none."""
    return given if given is None or isinstance(given, MachineLabels) else MachineLabels(given)


def _named(given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if is_frame(given):
        return [("labels", given)]
    if isinstance(given, Mapping):
        named = [(str(name), labels) for name, labels in given.items()]
    elif isinstance(given, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in given):
        named = [(_stem(path), path) for path in given]
    else:
        raise InputError(
            "labels: wanted a frame (qid, docno, label), a path, or a mapping of name to these; found "
            f"{type(given).__name__}"
        )
    if not named:
        raise InputError("labels: none; give the labels of at least one machine, or leave labels= out")
    return named


def _stem(path: str | os.PathLike[str]) -> str:
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


def _labeller(name: str, given: Any) -> _Labeller:
    what = f"labels {name!r}"
    frame = read_labels(given) if isinstance(given, (str, os.PathLike)) else frame_of(given, what)
    require(frame, ("qid", "docno", "label"), what)
    if not len(frame):
        raise InputError(f"{what}: no rows")
    qid, docno = (ids_of(frame[column], f"{what} column {column!r}") for column in ("qid", "docno"))
    topics, topic = qid.codes()
    label = numbers_of(frame["label"], f"{what} column 'label'", owner_of(topics, topic, docno))
    finite = np.isfinite(label)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(
            f"{what}: the label of document {docno.text[row].as_py()!r} of query {topics[topic[row]]!r} (row {row}) is "
            "infinite; wanted a number"
        )
    rows = repeated_pairs(topic, docno)
    if len(rows):
        row = int(rows[0])
        raise InputError(
            f"{what}: document {docno.text[row].as_py()!r} of query {topics[topic[row]]!r} has several labels "
            f"({len(rows)} rows repeat); keep one"
        )
    return _Labeller(name, topics, topic, qid, docno, label)


def frames_of(labels: MachineLabels, judgments: Judgments) -> pd.DataFrame:
    """Return the judged documents with their labels: qid, docno, grade, and a column for each labeller."""
    found = labels.lookup(judgments.topics, judgments.topic, judgments.docno)
    frame = pd.DataFrame(
        {
            "qid": np.array(judgments.topics, dtype=object)[judgments.topic],
            "docno": judgments.docno.text.to_pylist(),
            "grade": np.maximum(judgments.label, 0),
        }
    )
    return frame.assign(**dict(zip(labels.names, found, strict=True)))
