"""Sheets of annotated documents: rows by people and machines, and their inclusion probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, printable, warn
from vbterrier.evaluate.ambiguous_documents import DESIGNS, FEWEST_DOCUMENTS, FEWEST_TOPICS
from vbterrier.evaluate.inputs import is_path
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.reading import read_document_annotations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats
    from vbterrier.evaluate.ambiguous_documents import AmbiguousDocuments


_KEY = ["qid", "docno"]
_KINDS = ("person", "model")
# Relative difference of an inclusion probability in a sheet from that of the design, which has six digits.
_INCLUSION_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class AnnotationSheet:
    """Annotations of the documents of an evaluation.

    ``design``: topics, documents, or none. ``share``: of each candidate in the annotation of its document by people,
    shape (n,); ``machine``: the candidates that models annotated, and the documents that they did, or ``None``.
    ``is_drawn, is_annotated``: documents in the sheet, and those that people annotated; ``inclusion``: 1 for others;
    ``annotation``, ``source``: texts, shape (D,).
    """

    design: str
    share: Floats
    machine: tuple[Bools, Bools] | None
    is_drawn: Bools
    is_annotated: Bools
    inclusion: Floats
    annotation: Any
    source: Any
    n_units: int

    @classmethod
    def of(cls, documents: AmbiguousDocuments, annotations: Any) -> AnnotationSheet:
        """Read and check sheets."""
        n_documents, table = documents.n_documents, documents.table
        number = {
            (documents.qids[topic], docno): row
            for row, (topic, docno) in enumerate(zip(table.topic, documents.docno, strict=True))
        }
        is_drawn, by_person, by_model = (np.zeros(n_documents, dtype=bool) for _ in range(3))
        inclusion = np.ones(n_documents)
        share, tagged = np.zeros(len(table.document)), np.zeros(len(table.document), dtype=bool)
        annotation, source = (np.full(n_documents, "", dtype=object) for _ in range(2))
        designs = set()
        for where, row in _rows(annotations):
            document = number.get((row.qid, row.docno))
            if document is None:
                _refuse_stranger(documents, row, where)
                continue
            kind = _kind(row.source, where)
            if row.design:
                designs.add(_design(row.design, where))
                # The last of several sheets has the probabilities of all draws, which are the largest.
                inclusion[document] = max(_probability(row.inclusion, where), inclusion[document] * is_drawn[document])
                is_drawn[document] = True
            if not row.annotation:
                continue
            here = slice(table.starts[document], table.starts[document + 1])
            made = np.zeros(here.stop - here.start)
            made[documents.places(int(table.topic[document]), row.annotation, where)] = 1.0
            if kind == "model":
                by_model[document], tagged[here] = True, (made > 0) & ~table.is_nil[here]
            else:
                made /= made.sum()
                if by_person[document] and (made != share[here]).any():
                    raise InputError(f"{where} has two annotations by people that differ; keep one")
                by_person[document], share[here] = True, made
            if kind == "person" or not by_person[document]:
                annotation[document], source[document] = row.annotation, row.source
        if len(designs) > 1:
            raise InputError("annotations: found samples of topics and of documents; keep those of one design")
        design = next(iter(designs), "none")
        n_units = len(np.unique(table.topic[is_drawn])) if design == "topics" else int(is_drawn.sum())
        sheet = cls(
            design,
            share,
            (tagged, by_model) if by_model.any() else None,
            is_drawn,
            by_person,
            inclusion,
            annotation,
            source,
            n_units,
        )
        if design != "none":
            sheet._require_inclusion(documents)
        return sheet

    def _require_inclusion(self, documents: AmbiguousDocuments) -> None:
        """Refuse inclusion probabilities of other runs, cutoffs or topics, or of several draws."""
        expected = documents.sample(self.design, self.n_units, 0, units=True).inclusion
        odd = self.is_drawn & (np.abs(self.inclusion - expected) > _INCLUSION_TOLERANCE * expected)
        if odd.any():
            one = int(np.argmax(odd))
            qid = documents.qids[documents.table.topic[one]]
            raise InputError(
                f"annotations: document {documents.docno[one]!r} of query {qid!r} has the inclusion probability "
                f"{self.inclusion[one]:.6g}, and {expected[one]:.6g} for these runs and {self.n_units} drawn "
                f"{self.design}; give the runs, topics and cutoffs of the draw, and of several draws the last sheet"
            )

    def usable(self, documents: AmbiguousDocuments) -> tuple[str, Bools]:
        """The reason that there are no intervals, and the documents that count as annotated."""
        none = np.zeros(documents.n_documents, dtype=bool)
        if not self.is_annotated.any():
            return "no annotations by people", none
        if self.design == "none":
            return "the annotated documents are no random sample", none
        counted_documents = self.is_annotated & self.is_drawn
        if self.design == "topics":
            topic = documents.table.topic
            lacking = np.bincount(topic, ~counted_documents, len(documents.qids)) > 0
            is_begun = np.bincount(topic, self.is_drawn, len(documents.qids)) > 0
            if (lacking & is_begun).any():
                left_out = [documents.qids[one] for one in np.flatnonzero(lacking & is_begun)]
                warn(
                    f"annotations: {len(left_out)} of {int(is_begun.sum())} drawn topics have documents without an "
                    f"annotation and are left out ({examples(left_out)}); intervals assume that this is by chance"
                )
            counted_documents &= ~lacking[topic]
            n_topics = len(np.unique(topic[counted_documents]))
            if n_topics < FEWEST_TOPICS:
                return f"fewer than {FEWEST_TOPICS} annotated topics", counted_documents
        elif (self.is_drawn & ~self.is_annotated).any():
            n_lacking = int((self.is_drawn & ~self.is_annotated).sum())
            warn(
                f"annotations: {n_lacking} of {int(self.is_drawn.sum())} drawn documents have no annotation; intervals "
                "assume that this is by chance"
            )
        if counted_documents.sum() < FEWEST_DOCUMENTS:
            return f"fewer than {FEWEST_DOCUMENTS} annotated documents", counted_documents
        return "", counted_documents

    def adjusted_inclusion(self, is_annotated: Bools) -> Floats:
        """Inclusion probabilities, reduced by the share of drawn documents that were annotated."""
        if self.design == "topics":
            return self.inclusion
        return self.inclusion * (int(is_annotated.sum()) / int(self.is_drawn.sum()))


def _rows(annotations: Any) -> Iterator[tuple[str, Any]]:
    """The rows of one or several sheets, with the place of each in messages."""
    for place, sheet in enumerate(annotations if isinstance(annotations, (list, tuple)) else [annotations]):
        name, frame = _sheet_rows(sheet, place)
        for number, row in enumerate(frame.itertuples(index=False)):
            yield f"{name}: row {number} (query {row.qid!r}, document {row.docno!r})", row


def _refuse_stranger(documents: AmbiguousDocuments, row: Any, where: str) -> None:
    """Refuse a document of a sheet that no system shows, unless it is one without annotation."""
    if row.qid not in documents.qids and row.design == "topics":
        raise InputError(f"{where} is of a query without candidates or results here; give the topics of the draw")
    if row.annotation:
        raise InputError(
            f"{where} is not among the first {documents.cutoffs[-1]} documents of a system; give the runs and cutoffs "
            "for which documents were drawn; a spreadsheet may have changed the id"
        )


def _sheet_rows(sheet: Any, place: int) -> tuple[str, pd.DataFrame]:
    """The name and the rows of a sheet, texts without missing values."""
    name = f"annotations {printable(sheet)}" if is_path(sheet) else f"annotations {place}"
    frame = read_document_annotations(sheet) if is_path(sheet) else pandas_frame(sheet, name)
    require(frame, (*_KEY, "annotation"), name)
    columns = {
        column: (frame[column] if column in frame.columns else pd.Series("", frame.index, dtype=object))
        for column in (*_KEY, "annotation", "source", "design", "inclusion")
    }
    texts = {column: values.astype(object).where(values.notna(), "") for column, values in columns.items()}
    if not ("design" in frame.columns and "inclusion" in frame.columns):
        texts["design"] = pd.Series("", frame.index, dtype=object)
    return name, pd.DataFrame({column: values.astype(str).str.strip() for column, values in texts.items()})


def _kind(source: str, where: str) -> str:
    kind = source.partition(":")[0].strip().casefold() or "person"
    if kind not in _KINDS:
        raise InputError(f"{where}: source {source!r}; wanted person or model, and a name after ':' if there is one")
    return kind


def _design(design: str, where: str) -> str:
    if design not in DESIGNS:
        raise InputError(f"{where}: design {design!r}; wanted {' or '.join(DESIGNS)}")
    return design


def _probability(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value <= 1:
        raise InputError(f"{where}: inclusion {text!r}; wanted a probability above 0, as the sheet was written")
    return value
