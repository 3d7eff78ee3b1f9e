"""Names like others: all of a small knowledge base compared, of a large one those that share rare trigrams."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import FileError
from vbterrier.linking.extras import module_of_extra
from vbterrier.linking.kb.schema import COMPARED_AT_MOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.linking.kb.connection import Connection

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Similarities held at a time: 64 MB.
_CELLS = 2**23
# How many names of a large knowledge base a mention is compared with, and how many entries of the index may be read to
# find them.
_N_CANDIDATES, _N_POSTINGS = 1000, 60_000
# Mentions whose trigrams are looked up together.
_AT_ONCE = 1000
# Of numbers computed from a cutoff, which are not exact in binary.
_ROUNDING, _SLACK = 1e-9, 1e-6


class Names:
    """The normal forms of a knowledge base, to be compared with others.

    Parameters
    ----------
    connection
        Of the knowledge base.
    n_forms
        How many it holds.
    has_trigrams
        Whether it holds an index of them.
    """

    def __init__(self, connection: Connection, n_forms: int, *, has_trigrams: bool) -> None:
        self.connection, self.n_forms, self.has_trigrams = connection, n_forms, has_trigrams

    def like(self, forms: Sequence[str], cutoff: float) -> pd.DataFrame:
        """The pairs of a form (``key``) and a name's place (``form``) whose ``similarity`` is at least the cutoff."""
        forms = sorted((form for form in forms if form), key=len)
        if self.has_trigrams:
            parts = list(self._narrowed(forms, cutoff))
        elif self.n_forms <= COMPARED_AT_MOST:
            parts = list(self._all(forms, cutoff))
        else:
            raise FileError(
                self.connection.path,
                f"has {self.n_forms:,} names and no index of trigrams, which fuzzy look-ups need; build it again with "
                "SQLite 3.34 or later",
            )
        columns = {"key": object, "form": np.int64, "similarity": np.float64}
        return pd.concat([pd.DataFrame([], columns=list(columns)).astype(columns), *parts], ignore_index=True)

    @cached_property
    def _lengths(self) -> tuple[Ints, Ints]:
        """The lengths that names have, rising, and the first place of each."""
        rows = self.connection.rows("SELECT n_letters, first FROM form_length ORDER BY n_letters")
        lengths, first = zip(*rows, strict=True) if rows else ((), ())
        return np.array(lengths, dtype=np.int64), np.array(first, dtype=np.int64)

    def _range(self, n_letters: int, cutoff: float) -> tuple[int, int]:
        """The first place, and the one behind the last, of names whose length allows the similarity.

        ``s = 2 LCS / (m + n) ≤ 2 min(m, n) / (m + n)``, so ``m c / (2 - c) ≤ n ≤ m (2 - c) / c``.
        """
        lengths, first = self._lengths
        shortest = math.ceil(n_letters * cutoff / (2 - cutoff) - _ROUNDING)
        longest = math.floor(n_letters * (2 - cutoff) / cutoff + _ROUNDING)
        ends = np.append(first, self.n_forms + 1)
        low, high = np.searchsorted(lengths, [shortest, longest + 1])
        return int(ends[low]), int(ends[high])

    @cached_property
    def _texts(self) -> list[str]:
        return [text for (text,) in self.connection.rows("SELECT text FROM form ORDER BY place")]

    def _all(self, forms: list[str], cutoff: float) -> Iterator[pd.DataFrame]:
        for n_letters, group in groupby(forms, key=len):
            same = list(group)
            low, high = self._range(n_letters, cutoff)
            names = self._texts[low - 1 : high - 1]
            step = max(1, _CELLS // max(1, len(names)))
            for begin in range(0, len(same), step):
                yield _similar(same[begin : begin + step], names, np.arange(low, high), cutoff)

    def _narrowed(self, forms: list[str], cutoff: float) -> Iterator[pd.DataFrame]:
        for begin in range(0, len(forms), _AT_ONCE):
            some = forms[begin : begin + _AT_ONCE]
            trigrams = [_trigrams(form) for form in some]
            every = sorted(set().union(*trigrams))
            known = dict(self.connection.rows_of("SELECT text, n FROM trigram WHERE text IN ({})", every))
            for form, own in zip(some, trigrams, strict=True):
                near = self._sharing(form, {trigram: known[trigram] for trigram in own & known.keys()}, cutoff)
                rows = self.connection.rows_of("SELECT place, text FROM form WHERE place IN ({})", near.tolist())
                texts = dict(rows)
                yield _similar([form], [texts[place] for place in near.tolist()], near, cutoff)

    def _sharing(self, form: str, trigrams: dict[str, int], cutoff: float) -> Ints:
        """The names that share the most of the rarest trigrams of a form, of equals those nearest in length."""
        low, high = self._range(len(form), cutoff)
        postings = [np.empty(0, dtype=np.int64)]
        left = _N_POSTINGS * self.n_forms
        for trigram in sorted(trigrams, key=lambda text: (trigrams[text], text)):
            left -= trigrams[trigram] * (high - low)
            if left < 0 and len(postings) > 1:
                break
            postings.append(self._having(trigram, low, high))
        places, n_shared = np.unique(np.concatenate(postings), return_counts=True)
        lengths, first = self._lengths
        off = np.abs(lengths[np.searchsorted(first, places, side="right") - 1] - len(form))
        return np.sort(places[np.lexsort((places, off, -n_shared))[:_N_CANDIDATES]])

    def _having(self, trigram: str, low: int, high: int) -> Ints:
        """The places, within a range, of the names that hold a trigram."""
        quoted = '"' + trigram.replace('"', '""') + '"'
        # One text of numbers reaches Python five times as fast as a row for each.
        ((places,),) = self.connection.rows(
            "SELECT coalesce(group_concat(rowid), '') FROM form_trigram "
            "WHERE form_trigram MATCH ? AND rowid >= ? AND rowid < ?",
            (quoted, low, high),
        )
        return np.fromstring(places, dtype=np.int64, sep=",")


def _trigrams(form: str) -> set[str]:
    """What the index holds of a form: blanks around let its first and last letters count, and names of one letter."""
    padded = f" {form} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _similar(forms: list[str], names: list[str], places: Ints, cutoff: float) -> pd.DataFrame:
    """Pairs of a form and a name with ``s = 1 - insertions and deletions / letters of both``, at least the cutoff."""
    process = module_of_extra("rapidfuzz.process", "linkers")
    indel = module_of_extra("rapidfuzz.distance", "linkers").Indel
    # Asked for a little less: RapidFuzz can lose pairs whose similarity is the very cutoff.
    least = max(cutoff - _SLACK, 0.0)
    cells: Any = process.cdist(forms, names, scorer=indel.normalized_similarity, score_cutoff=least, dtype=np.float64)
    form, name = np.nonzero(cells >= cutoff)
    return pd.DataFrame(
        {"key": np.array(forms, dtype=object)[form], "form": places[name], "similarity": cells[form, name]}
    )
