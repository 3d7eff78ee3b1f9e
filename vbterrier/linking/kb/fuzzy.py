"""Names like others: all of a small knowledge base compared, of a large one those that share rare trigrams."""

from __future__ import annotations

from functools import cached_property
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
# How many names a mention is compared with, and how many places in the index are looked at to find them: recall of
# the best name with up to three letters wrong is .97 among a million names (tests/bench/test_kb.py).
_N_CANDIDATES, _N_POSTINGS = 256, 20_000
# Mentions whose trigrams are held together.
_AT_ONCE = 1000


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
        forms = [form for form in forms if form]
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
    def _texts(self) -> tuple[Ints, list[str]]:
        rows = self.connection.rows("SELECT place, text FROM form ORDER BY place")
        return np.array([place for place, _ in rows], dtype=np.int64), [text for _, text in rows]

    def _all(self, forms: list[str], cutoff: float) -> Iterator[pd.DataFrame]:
        places, texts = self._texts
        step = max(1, _CELLS // max(1, len(texts)))
        for begin in range(0, len(forms), step):
            some = forms[begin : begin + step]
            cells = _similarities(some, texts, cutoff)
            form, name = np.nonzero(cells > 0)
            yield _pairs(np.array(some, dtype=object)[form], places[name], cells[form, name])

    def _narrowed(self, forms: list[str], cutoff: float) -> Iterator[pd.DataFrame]:
        for begin in range(0, len(forms), _AT_ONCE):
            some = forms[begin : begin + _AT_ONCE]
            near = self._sharing(some)
            wanted = np.unique(np.concatenate(near)).tolist() if near else []
            texts = dict(self.connection.rows_of("SELECT place, text FROM form WHERE place IN ({})", wanted))
            for form, places in zip(some, near, strict=True):
                cells = _similarities([form], [texts[place] for place in places.tolist()], cutoff)[0]
                hits = np.flatnonzero(cells)
                yield _pairs(np.full(len(hits), form, dtype=object), places[hits], cells[hits])

    def _sharing(self, forms: list[str]) -> list[Ints]:
        """The places of the names that share the most of the rarest trigrams of each form."""
        trigrams = [_trigrams(form) for form in forms]
        every = list(set().union(*trigrams))
        known = dict(self.connection.rows_of("SELECT text, n FROM trigram WHERE text IN ({})", every))
        postings: dict[str, Ints] = {}
        return [_most_shared(self._rarest(own, known, postings)) for own in trigrams]

    def _rarest(self, trigrams: set[str], known: dict[str, int], postings: dict[str, Ints]) -> list[Ints]:
        """The names with each of the rarest trigrams of a form, as many trigrams as the budget allows."""
        taken: list[Ints] = []
        left = _N_POSTINGS
        for trigram in sorted(trigrams & known.keys(), key=lambda text: (known[text], text)):
            left -= known[trigram]
            if taken and left < 0:
                break
            if trigram not in postings:
                quoted = '"' + trigram.replace('"', '""') + '"'
                rows = self.connection.rows("SELECT rowid FROM form_trigram WHERE form_trigram MATCH ?", (quoted,))
                postings[trigram] = np.fromiter((place for (place,) in rows), dtype=np.int64, count=len(rows))
            taken.append(postings[trigram])
        return taken


def _trigrams(form: str) -> set[str]:
    """What the index holds of a form: blanks around let its first and last letters count, and names of one letter."""
    padded = f" {form} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def _most_shared(postings: list[Ints]) -> Ints:
    if not postings:
        return np.empty(0, dtype=np.int64)
    places, n_shared = np.unique(np.concatenate(postings), return_counts=True)
    # Of equals the first: the same names on every machine.
    return np.sort(places[np.argsort(-n_shared, kind="stable")[:_N_CANDIDATES]])


def _similarities(forms: list[str], texts: list[str], cutoff: float) -> Floats:
    """``1 - insertions and deletions / letters of both``, 0 below the cutoff; shape (n_forms, n_texts)."""
    process = module_of_extra("rapidfuzz.process", "linkers")
    indel = module_of_extra("rapidfuzz.distance", "linkers").Indel
    cells: Any = process.cdist(forms, texts, scorer=indel.normalized_similarity, score_cutoff=cutoff, dtype=np.float64)
    return np.asarray(cells, dtype=np.float64)


def _pairs(keys: Any, places: Ints, similarities: Floats) -> pd.DataFrame:
    return pd.DataFrame({"key": keys, "form": places, "similarity": similarities})
