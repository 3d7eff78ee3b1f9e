"""A corpus of mentions as numbers: its distinct queries, their documents and mentions."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.files import read_mentions
from vbterrier.frames.ids import ids_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids

    Ints = NDArray[np.int64]


class Mentions:
    """The distinct queries (docno, mention) of a mention frame, in the order of their documents and mentions.

    Rows that repeat a query are one: a mention has one meaning in a document. The first row speaks for all.

    Parameters
    ----------
    frame
        Columns docno, mention; others pass through. Or the path of a file of them.
    name
        What messages call it.

    Attributes
    ----------
    rows
        The row of each query in the frame, shape (n,).
    document, mention
        The number of its document and of its mention, in the order of their bytes, shape (n,).
    n_documents, n_mentions
        How many there are.

    Raises
    ------
    InputError
        A missing column or value, an empty id, no rows.

    >>> found = Mentions(pd.DataFrame({"docno": ["d2", "d1", "d2"], "mention": ["Paris", "Paris", "Paris"]}))
    >>> found.rows.tolist(), found.frequency.tolist()
    ([1, 0], [2, 2])
    """

    def __init__(self, frame: Any, name: str = "mentions") -> None:
        self.frame = read_mentions(frame) if isinstance(frame, (str, os.PathLike)) else frame_of(frame, name)
        self.name = name
        require(self.frame, ("docno", "mention"), name)
        if not len(self.frame):
            raise InputError(f"{name}: no rows; wanted a row for each mention of a document, docno and mention")
        document, self.n_documents = self._codes("docno")
        mention, self.n_mentions = self._codes("mention")
        key = document * self.n_mentions + mention
        order = np.argsort(key, kind="stable")
        inside = key[order]
        first = np.concatenate([[True], inside[1:] != inside[:-1]])
        self.rows = order[first]
        self.document, self.mention = document[self.rows], mention[self.rows]
        self._repeats, self._spoken_for = order[~first], self.rows[np.cumsum(first)[~first] - 1]

    def __len__(self) -> int:
        return len(self.rows)

    def _codes(self, column: str) -> tuple[Ints, int]:
        ids = ids_of(self.frame[column], f"{self.name} column {column!r}")
        self._refuse_empty(ids, column)
        encoded = ids.text.dictionary_encode()
        place = np.empty(len(encoded.dictionary), dtype=np.int64)
        place[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(place))
        return place[encoded.indices.to_numpy()], len(place)

    def _refuse_empty(self, ids: Ids, column: str) -> None:
        row = pc.index(pc.equal(ids.text, ""), pa.scalar(value=True)).as_py()
        if row >= 0:
            raise InputError(f"{self.name} column {column!r}: row {row} is empty; give it a text, or remove the row")

    @cached_property
    def frequency(self) -> Ints:
        """How many documents hold the mention of each query, shape (n,)."""
        frequency: Ints = np.bincount(self.mention)[self.mention]
        return frequency

    def column(self, name: str) -> pd.Series[Any]:
        """A column of the frame, a row a query."""
        require(self.frame, (name,), self.name)
        column: pd.Series[Any] = self.frame[name].iloc[self.rows].reset_index(drop=True)
        return column

    def warn_of_conflicts(self, columns: Sequence[str]) -> None:
        """Warn of repeated queries whose rows do not agree in some columns: the first row was taken."""
        for name in columns:
            values = self.frame[name].iloc[np.concatenate([self._repeats, self._spoken_for])]
            told, taken = np.split(pd.factorize(values)[0], 2)
            n_other = int((told != taken).sum())
            if n_other:
                row, first = (int(rows[np.argmax(told != taken)]) for rows in (self._repeats, self._spoken_for))
                warnings.warn(
                    f"{self.name}: {n_other} rows repeat a docno and mention with another {name!r}, as rows {first} "
                    f"and {row}; the first row of each is taken, for a mention has one meaning in a document",
                    DegenerateWarning,
                    stacklevel=4,
                )
