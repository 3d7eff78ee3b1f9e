"""What can tag documents, each as one thing that finds tags for the rows of a frame."""

from __future__ import annotations

import os
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, ParameterError, examples
from vbterrier.frames.contracts import frame_of, is_frame
from vbterrier.frames.ids import ids_of
from vbterrier.frames.named import named
from vbterrier.tags.table import TagTable
from vbterrier.tags.texts import ByText, Found, Linked, called, label_of

if TYPE_CHECKING:
    from collections.abc import Callable

DOCNO = "docno"
# What belongs to a result, not to its document.
_OF_RESULTS = ("qid", "query", "score", "rank")


class Tagger(Protocol):
    """What finds tags for the rows of a frame."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs."""

    @property
    def weighted(self) -> bool:
        """Whether its weights are more than whether, unless asked."""

    @property
    def per_query(self) -> bool:
        """Whether tags may differ between queries."""

    def find(self, frame: pd.DataFrame) -> Found:
        """The tags of each row, in any order, a tag perhaps twice."""


class ByDocno:
    """Documents are entities: each is tagged with its own id."""

    columns, weighted, per_query = (DOCNO,), False, False

    def find(self, frame: pd.DataFrame) -> Found:
        """One tag for every row."""
        docno = ids_of(frame["docno"], "run column 'docno'")
        return Found(np.arange(len(docno)), docno, np.ones(len(docno)))


class ByTable:
    """Tags that exist already."""

    weighted = True

    def __init__(self, table: TagTable) -> None:
        self.table = table
        self.per_query = table.topics is not None
        self.columns = ("qid", DOCNO) if self.per_query else (DOCNO,)

    def find(self, frame: pd.DataFrame) -> Found:
        """The tags of each row's document, warning where no document has any."""
        row, place = self.table.find(frame)
        if len(frame) and not len(row) and len(self.table.docno):
            warnings.warn(
                f"no document has {self.table.name}: {examples(self.table.docno.text[:4].to_pylist())} against "
                f"{examples(frame['docno'].iloc[:4])}; look for other prefixes or ids",
                DegenerateWarning,
                stacklevel=4,
            )
        return Found(row, self.table.entity.take(place), self.table.weight[place])


class ByFunction:
    """A function from a frame of documents to a frame of tags."""

    weighted = True

    def __init__(self, function: Callable[[pd.DataFrame], Any], *, per_query: bool) -> None:
        self.function, self.per_query = function, per_query
        self.columns = ("qid", DOCNO) if per_query else (DOCNO,)

    def find(self, frame: pd.DataFrame) -> Found:
        """Ask for the tags of every document once, or once a query."""
        documents = frame.drop_duplicates(["qid", DOCNO]) if self.per_query else self._once(frame)
        tags = frame_of(self.function(documents.reset_index(drop=True)), "what the tagger gave")
        table = TagTable(tags, name="tags that the tagger gave")
        if table.topics is not None and not self.per_query:
            raise InputError(f"{label_of(self.function)}: gave tags with qid; drop it, or give per_query=True")
        return ByTable(table).find(frame)

    @staticmethod
    def _once(frame: pd.DataFrame) -> pd.DataFrame:
        own = frame.drop(columns=[name for name in _OF_RESULTS if name in frame.columns])
        texts = [name for name in own.columns if pd.api.types.infer_dtype(own[name], skipna=True) == "string"]
        documents = own.drop_duplicates(DOCNO)
        several = own[[DOCNO, *(name for name in texts if name != DOCNO)]].drop_duplicates()
        if len(several) > len(documents):
            docno = several.loc[several.duplicated(DOCNO), DOCNO].iloc[0]
            raise InputError(
                f"document {docno!r} comes with two texts, and tags of a function of frames hold for the document; "
                "give per_query=True, or drop the column that differs"
            )
        return documents


def tagger_of(given: Any, *, fields: tuple[str, ...] | None, per_query: bool, best: bool, cache: bool) -> Tagger:
    """Whatever a user calls a tagger, as one.

    Raises
    ------
    ParameterError
        Nothing that could tag.
    """
    if isinstance(given, str) and given == DOCNO:
        return ByDocno()
    if isinstance(given, (str, os.PathLike)) or is_frame(given):
        return ByTable(TagTable(named("tags", given)))
    is_linker = callable(getattr(given, "link", None))
    if not is_linker and not callable(given):
        raise ParameterError(
            f"tagger={given!r}: wanted 'docno', a linker, a frame or file of tags, or a function of a text or a frame"
        )
    if not is_linker and fields is None:
        return ByFunction(given, per_query=per_query)
    if not fields:
        raise ParameterError(f"fields={fields!r}: {label_of(given)} reads texts; name their columns")
    read = Linked(given, best) if is_linker else partial(called, given)
    return ByText(fields, read, weighted=not is_linker, cache=cache)
