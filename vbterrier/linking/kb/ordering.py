"""Aliases of a knowledge base in the order of its file, with the probabilities of their entities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import agreeing, warn
from vbterrier.frames.ids import release_unused
from vbterrier.frames.names import normal_forms
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING
from vbterrier.linking.aliases import Vocabulary
from vbterrier.linking.lexicon import Lexicon

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from vbterrier.annotations import AnyInts, Floats, Ints


# Rows that are read or written at a time.
FETCH_ROWS = 10_000
# Rows of arrays that are processed at a time.
_BLOCK_ROWS = 100_000
# With more aliases than this, a file beside the knowledge base has the names for linkers in texts.
MAX_MEMORY_ALIASES = 100_000


@dataclass(frozen=True, eq=False)
class Senses:
    """Entities of numbered texts with their probabilities, by text, then by descending probability, then by entity."""

    key: AnyInts  # the number of the text
    entity: AnyInts  # the number of the entity
    prob: Floats  # the probability of the entity given the text
    mention: AnyInts  # the number of the alias that contributes most

    @classmethod
    def of(cls, key: AnyInts, entity: AnyInts, prob: Floats, mention: AnyInts) -> Senses:
        """Sort senses."""
        order = np.lexsort((entity, -prob, key))
        return cls(key[order], entity[order], prob[order], mention[order])

    def write(self, db: sqlite3.Connection, table: str) -> None:
        """Insert all senses; numbers start at 1, ranks at 0."""
        rank = np.arange(len(self.key)) - np.searchsorted(self.key, self.key)
        _insert(db, table, self.key + 1, rank, self.entity + 1, self.prob, self.mention + 1)


class Ordering:
    """The distinct aliases of staged entities as numbers, which are sorted faster than text.

    They take some 80 bytes of memory per alias. Texts are in memory only while they are numbered, and arrays are
    processed in blocks, so that temporary arrays are small.
    """

    def __init__(self, db: sqlite3.Connection, smoothing: float = 1.0) -> None:
        self.db, self.smoothing = db, smoothing

    def write_texts(self) -> None:
        """Number aliases and their normal forms in the order of the file, and insert them, with their indexes."""
        db = self.db
        texts, self.mention = _distinct(_texts(db, "SELECT text FROM staged.alias ORDER BY rowid"))
        forms, form = _distinct([pa.array(normal_forms(some), pa.large_string()) for some in _lists(texts)])
        # Similar names have similar lengths.
        order = np.argsort(pc.utf8_length(forms).to_numpy(), kind="stable")
        forms, self.form = forms.take(pa.array(order)), _inverse(order)[form]
        del order, form
        _insert(db, "form", np.arange(1, len(forms) + 1), forms)
        del forms
        db.execute("INSERT INTO form_length SELECT length(text), min(place) FROM form GROUP BY 1 ORDER BY 1")
        db.execute("CREATE UNIQUE INDEX form_text ON form(text)")
        # A view of one number.
        self.weight: Floats = np.broadcast_to(1.0, len(texts))
        if self._has("weight", "weight"):
            weights = [self._weights(some) for some in _lists(texts)]
            self.weight = np.concatenate([np.empty(0), *weights])
        _insert(db, "mention", np.arange(1, len(texts) + 1), texts, self.form + 1, self.weight)
        del texts
        release_unused()
        db.execute("CREATE UNIQUE INDEX mention_text ON mention(text)")

    def _weights(self, texts: list[str]) -> list[float]:
        """Return the weights of consecutive aliases."""
        sql = "SELECT text, weight FROM staged.weight WHERE text BETWEEN ? AND ?"
        weights = dict(self.db.execute(sql, (texts[0], texts[-1])))
        return [weights.get(text, 1.0) for text in texts]

    def read_aliases(self) -> None:
        """Number the entities of aliases, and merge repeated rows."""
        self._read_popularity()
        n = len(self.mention)
        places = self._numbers(
            "SELECT coalesce(e.place, 0) FROM staged.alias AS a LEFT JOIN entity AS e ON e.id = a.id ORDER BY a.rowid",
            n,
            np.int32,
        )
        source = np.full(n, -1, np.int32)
        if self._has("alias", "origin"):
            # Only the rows of an id that redirects have an origin.
            _, source = _distinct(_texts(self.db, "SELECT coalesce(origin, '') FROM staged.alias ORDER BY rowid"))
        prior, count = (
            self._numbers(f"SELECT {name} FROM staged.alias ORDER BY rowid", n, np.float64)  # noqa: S608 - constant names
            if self._has("alias", name)
            else np.full(n, np.nan)
            for name in ("prior", "count")
        )
        places -= 1
        order = np.argsort(self.mention, kind="stable").astype(np.int32)
        keys = self.mention[order]
        parts: list[tuple[AnyInts, AnyInts, Floats, Floats]] = [(self.mention[:0], places[:0], prior[:0], count[:0])]
        parts += [
            _merge_senses(self.mention[rows], places[rows], source[rows], prior[rows], count[rows])
            for rows in (order[some] for some in _blocks(keys))
        ]
        del self.mention, places, source, prior, count, order, keys
        self.mention, self.entity, self.prior, self.count = (np.concatenate(each) for each in zip(*parts, strict=True))
        del parts
        release_unused()
        is_known = not (np.isnan(self.prior).all() and np.isnan(self.count).all())
        self.has_source = self.has_popularity or is_known
        self.has_counts = self.has_popularity or not np.isnan(self.count).all()
        self.counts_are_of_entities = self.has_popularity and not is_known

    def _read_popularity(self) -> None:
        """Read the count of each entity."""
        cursor = self.db.execute(
            "SELECT e.place, sum(p.count) FROM staged.popularity AS p JOIN entity AS e ON e.id = p.id GROUP BY 1"
        )
        self.popularity = np.zeros(self.db.execute("SELECT count(*) FROM entity").fetchone()[0])
        while rows := cursor.fetchmany(FETCH_ROWS):
            places, counts = zip(*rows, strict=True)
            self.popularity[np.array(places) - 1] = counts
        self.has_popularity = self._has("popularity", "count")

    def _has(self, table: str, column: str) -> bool:
        """Return True if any staged row has a value in a column."""
        sql = f"SELECT EXISTS (SELECT 1 FROM staged.{table} WHERE {column} IS NOT NULL)"  # noqa: S608 - constant names
        return bool(self.db.execute(sql).fetchone()[0])

    def _numbers(self, sql: str, n: int, kind: Any) -> NDArray[Any]:
        """Return the only column of a query of n rows as numbers."""
        if kind != np.float64:
            return np.fromiter(chain.from_iterable(self.db.execute(sql)), kind, n)
        # A missing number is NaN.
        return np.fromiter((np.nan if one is None else one for (one,) in self.db.execute(sql)), kind, n)

    def write_mention_senses(self) -> None:
        """Insert ``p(e|m)``: the prior divided by the sum of the priors; the other entities share the rest of 1."""
        notes = _PriorNotes()
        self.weights_are_counts = self.has_counts and not self.weight.strides[0]
        if self.weights_are_counts:
            self.weight = np.ones(len(self.weight))
        for some in _blocks(self.mention):
            self.prior[some] = self._prob(some, notes)
            senses = Senses.of(self.mention[some], self.entity[some], self.prior[some], self.mention[some])
            senses.write(self.db, "mention_sense")
            # From here on in the order of the senses.
            self.entity[some], self.prior[some] = senses.entity, senses.prob
        del self.count, self.popularity
        notes.warn()

    def _prob(self, some: slice, notes: _PriorNotes) -> Floats:
        """Return the probabilities of the entities of some mentions.

        Entities without a prior share the rest in proportion to ``c + a``, the count of the alias, or else of the
        entity, and the smoothing.
        """
        at, entity, prob = self.mention[some] - self.mention[some.start], self.entity[some], self.prior[some].copy()
        others = np.flatnonzero(np.isnan(prob))
        prob[others] = 0.0
        n = np.bincount(at)
        n_given = n - np.bincount(at[others], minlength=len(n))
        prior_sum: Floats = np.bincount(at, weights=prob).astype(np.float64)
        notes.add(n, n_given, prior_sum)
        scale = np.maximum(prior_sum, 1.0)
        share = np.ones(len(others))
        if self.has_source:
            share = self.count[some][others]
            share = np.where(np.isnan(share), self.popularity[entity[others]], share) + self.smoothing
        of_rest = np.bincount(at[others], weights=share, minlength=len(n))
        if self.weights_are_counts:
            # The weight of an alias is the sum of its counts, so that counts are compared between spellings.
            counted = np.flatnonzero((n_given == 0) & (of_rest > 0))
            places = self.mention[some.start] + counted
            self.weight[places] = of_rest[counted]
            rows = zip(of_rest[counted].tolist(), (places + 1).tolist(), strict=True)
            self.db.executemany("UPDATE mention SET weight = ? WHERE place = ?", rows)
        # Without smoothing all counts of an alias may be 0.
        share[(of_rest == 0)[at[others]]] = 1.0
        of_rest = np.where(of_rest == 0, np.maximum(n - n_given, 1), of_rest)
        rest = np.maximum(0.0, 1.0 - prior_sum) / of_rest / scale
        whole = np.where(n_given < n, scale, np.where(prior_sum > 0, prior_sum, 1.0))
        prob /= whole[at]
        prob[others] = rest[at[others]] * share
        equal = ((prior_sum <= 0) & (n_given == n))[at]
        prob[equal] = 1.0 / n[at[equal]]
        return prob

    def write_form_senses(self) -> None:
        """Insert ``p(e|form) = Σ_m w_m p(e|m) / Σ_m w_m`` over the aliases m of a form; 1/n if no alias has a prior.

        Counts of entities are the same for all their aliases, and do not add up: the largest ``w_m p(e|m)`` counts.
        """
        add = np.maximum if self.counts_are_of_entities else np.add
        order = np.argsort(self.form[self.mention], kind="stable").astype(np.int32)
        keys = self.form[self.mention[order]]
        for some in _blocks(keys):
            rows = order[some]
            mention, entity, form = self.mention[rows], self.entity[rows], keys[some]
            mass = self.weight[mention] * self.prior[rows]
            by_mass = np.lexsort((mention, -mass, entity, form))
            first = _starts(form[by_mass], entity[by_mass])
            best = by_mass[first]
            total = add.reduceat(mass[by_mass], first) if self.has_source else np.ones(len(best))
            form = form[best]
            at = form - form[0]
            prob = total / np.bincount(at, weights=total)[at]
            Senses.of(form, entity[best], prob, mention[best]).write(self.db, "form_sense")
        del self.form

    def write_lexicon(self, path: Path, digest: str) -> None:
        """Write the names for linkers in texts, if there are too many to index them each time."""
        if len(self.weight) <= MAX_MEMORY_ALIASES:
            return
        self.db.execute("PRAGMA shrink_memory")
        release_unused()
        columns = {"alias": self.mention, "entity": self.entity, "score": self.prior}
        if not self.has_source:
            columns["score"] = np.ones(len(self.prior))
        is_weighted = bool(self.weight.strides[0])
        columns["weight"] = self.weight[self.mention] if is_weighted else np.broadcast_to(1.0, len(self.mention))
        rows = pd.DataFrame(columns, copy=False)
        no_text = pa.array([], pa.string())
        # The list has the only reference to the table, whose rows are freed when they are indexed.
        names = _Stored(self.db, len(self.weight))
        tables = [Vocabulary(names, no_text, no_text, rows, self.has_source, self.counts_are_of_entities)]
        del self.mention, self.entity, self.prior, self.weight, columns, rows
        lexicon = Lexicon.of_vocabulary(tables.pop())
        # Ids and names are read last, when the arrays of the index are free.
        ids, labels = (
            pa.concat_arrays(_texts(self.db, f"SELECT {name} FROM entity ORDER BY place"))  # noqa: S608 - constant names
            for name in ("id", "name")
        )
        replace(lexicon, ids=ids, labels=labels).save(path, digest)


class _Stored:
    """The aliases of a database, which are read when they are needed."""

    def __init__(self, db: sqlite3.Connection, n: int) -> None:
        self.db, self.n = db, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, places: slice) -> list[str]:
        sql = "SELECT text FROM mention WHERE place > ? AND place <= ? ORDER BY place"
        return [text for (text,) in self.db.execute(sql, (places.start, places.stop))]


def _blocks(key: AnyInts) -> Iterator[slice]:
    """Yield blocks of consecutive rows that do not separate equal keys, which are sorted."""
    cuts = np.searchsorted(key, key[_BLOCK_ROWS::_BLOCK_ROWS])
    for begin, end in pairwise(np.unique([0, *cuts.tolist(), len(key)]).tolist()):
        yield slice(begin, end)


def _merge_senses(
    mention: AnyInts, entity: AnyInts, source: AnyInts, prior: Floats, count: Floats
) -> tuple[AnyInts, AnyInts, Floats, Floats]:
    """Count repeated rows of an alias and an id once; add the priors of ids that redirect to one entity.

    The counts of repeated rows are added. Rows without an entity (-1) are dropped.
    """
    order = np.lexsort((source, entity, mention))
    order = order[entity[order] >= 0]
    mention, entity, source = mention[order], entity[order], source[order]
    prior, count = prior[order], count[order]
    if not len(order):
        return mention, entity, prior, count
    of_senses = _starts(mention, entity)
    counts = np.add.reduceat(np.nan_to_num(count), of_senses)
    counts[~np.logical_or.reduceat(~np.isnan(count), of_senses)] = np.nan
    first = _starts(mention, entity, source)
    # The largest prior; missing ones count if there is no other.
    prior = np.fmax.reduceat(prior, first)
    mention, entity = mention[first], entity[first]
    first = _starts(mention, entity)
    has_prior = ~np.isnan(prior)
    total = np.add.reduceat(np.where(has_prior, prior, 0.0), first)
    total[~np.logical_or.reduceat(has_prior, first)] = np.nan
    return mention[first], entity[first], total, counts


def _starts(*keys: NDArray[Any]) -> Ints:
    """Return the first row of each run of equal keys."""
    changes = np.ones(len(keys[0]), bool)
    changes[1:] = False
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


def _inverse(order: NDArray[Any]) -> NDArray[np.int32]:
    """Return the place of each number in an order."""
    # Half the memory of 64 bits.
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _texts(db: sqlite3.Connection, sql: str) -> list[Any]:
    """Return the only column of a query, text, as Arrow arrays."""
    cursor, chunks = db.execute(sql), [pa.array([], pa.large_string())]
    while rows := cursor.fetchmany(FETCH_ROWS):
        chunks.append(pa.array(list(chain.from_iterable(rows)), pa.large_string()))
    return chunks


def _lists(texts: Any) -> Iterator[list[str]]:
    """Yield lists of consecutive texts."""
    for begin in range(0, len(texts), FETCH_ROWS):
        yield texts[begin : begin + FETCH_ROWS].to_pylist()


def _distinct(chunks: list[Any]) -> tuple[Any, NDArray[np.int32]]:
    """Return the distinct texts of Arrow arrays in the order of their code points, and the number of each text.

    Sorting takes a third of the memory of a hash table.
    """
    text = pa.concat_arrays([pa.array([], pa.large_string()), *chunks])
    chunks.clear()
    release_unused()
    order = pc.array_sort_indices(text)
    text = text.take(order)
    is_first = np.ones(len(text), bool)
    is_first[1:] = pc.not_equal(text[1:], text[:-1]).to_numpy(zero_copy_only=False)
    number = np.empty(len(text), np.int32)
    number[order.to_numpy()] = np.cumsum(is_first, dtype=np.int32) - 1
    text = text.filter(pa.array(is_first))
    release_unused()
    return text, number


def _insert(db: sqlite3.Connection, table: str, *columns: Any) -> None:
    """Insert columns of equal length."""
    places = ", ".join("?" * len(columns))
    for begin in range(0, len(columns[0]), FETCH_ROWS):
        parts = (column[begin : begin + FETCH_ROWS] for column in columns)
        rows = zip(*(part.tolist() for part in parts), strict=True)
        db.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608 - constant names


class _PriorNotes:
    """Numbers of aliases with priors that do not sum to 1, are missing, or are all 0."""

    def __init__(self) -> None:
        self.n_off = self.n_mixed = self.n_zero = 0
        self.low, self.high = np.inf, -np.inf

    def add(self, n: Ints, n_given: Ints, prior_sum: Floats) -> None:
        """Count some aliases, with n entities, of which n_given have a prior, and the sum of the priors."""
        off = (prior_sum > 0) & ((n_given == n) | (prior_sum > 1)) & (np.abs(prior_sum - 1) > PROBABILITY_ROUNDING)
        self.n_off += int(off.sum())
        self.low, self.high = prior_sum[off].min(initial=self.low), prior_sum[off].max(initial=self.high)
        self.n_mixed += int(((n_given > 0) & (n_given < n)).sum())
        self.n_zero += int(((n_given == n) & (n > 0) & (prior_sum == 0)).sum())

    def warn(self) -> None:
        """Warn of these aliases."""
        messages = []
        if self.n_off:
            sums = f"{self.low:.4g} to {self.high:.4g}"
            messages.append(
                f"the priors of {agreeing(self.n_off, 'aliases')} sum to {sums}, not 1: divided by their sum"
            )
        if self.n_mixed:
            some = agreeing(self.n_mixed, "aliases have entities with and without a prior")
            messages.append(f"{some}: the latter share the rest of 1")
        if self.n_zero:
            some = f"the priors of {agreeing(self.n_zero, 'aliases')} are all 0"
            messages.append(f"{some}: their entities are treated as equally probable")
        if messages:
            warn("; ".join(messages))
