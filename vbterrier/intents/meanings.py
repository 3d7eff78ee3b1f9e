"""Which candidates of a query mean the same: by id, by name, by likeness of names."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.intents.frame import NIL, warn_of
from vbterrier.kernels import candidates as kernels
from vbterrier.kernels.clusters import complete_linkage, cosines
from vbterrier.kernels.vb import per_topic
from vbterrier.linking.normal import normal_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Texts = NDArray[np.object_]
    Likeness = Callable[[list[list[str]]], Iterator[Floats]]


@dataclass(frozen=True, eq=False)
class Meanings:
    """Candidates that were merged so far.

    Parameters
    ----------
    topic, ids, prob, names
        Of each meaning, shape (m,): its topic, the id and the name (empty where there is none) of the most probable
        candidate in it, and the sum of their probabilities.
    known
        Whether a knowledge base knows the id, shape (m,).
    row
        The row that stands for it, shape (m,).
    of_row
        The meaning of each row, shape (n,).
    """

    topic: Ints
    ids: Texts
    prob: Floats
    names: Texts
    known: Bools
    row: Ints
    of_row: Ints

    @property
    def may_merge(self) -> Bools:
        """Which are no NIL, shape (m,)."""
        return np.asarray(self.ids != NIL, dtype=bool)

    def merged(self, key: Ints) -> Meanings:
        """Those of one key made one: the most probable stands for all, among equals the smallest id."""
        group = pd.factorize(key)[0]
        n = int(group.max(initial=-1)) + 1
        tie = pd.factorize(self.ids, sort=True)[0]
        rank = kernels.ranks(np.round(self.prob, kernels.DIGITS), group, tie)
        order = np.lexsort([rank, group])
        chosen = order[np.searchsorted(group[order], np.arange(n))]
        # A name is taken from the next where the first has none.
        named = pd.Series(self.names[order]).where(self.names[order] != "")
        names = named.groupby(group[order]).first().fillna("").to_numpy(dtype=object)
        known = per_topic(self.known.astype(np.float64), group, n) > 0
        total = per_topic(self.prob, group, n)
        return Meanings(self.topic[chosen], self.ids[chosen], total, names, known, self.row[chosen], group[self.of_row])

    def forms(self) -> Texts:
        """Normal forms of the names, of the ids where there is no name."""
        return np.array(normal_forms(np.where(self.names == "", self.ids, self.names).tolist()), dtype=object)


def by_id(topic: Ints, ids: Sequence[str], prob: Floats, names: Sequence[str], known: Bools) -> Meanings:
    """One meaning for each id of a topic."""
    rows = np.arange(len(topic))
    each = Meanings(topic, np.array(ids, dtype=object), prob, np.array(names, dtype=object), known, rows, rows)
    return each.merged(_codes(topic, each.ids))


def by_name(meanings: Meanings, kb: Any, topics: Sequence[str]) -> Meanings:
    """One meaning for each name of a topic in normal form; entities that a knowledge base knows stay apart."""
    form = pd.factorize(meanings.forms())[0]
    key = _codes(meanings.topic, form)
    several = np.bincount(key, weights=meanings.known) > 1
    own = np.arange(len(key))
    stays = ~meanings.may_merge | (meanings.known & several[key])
    key = np.where(stays, len(key) + own, key)
    for one, other in _aliased(meanings, kb):
        key[one] = key[other]
    merged = meanings.merged(key)
    before, after = (np.bincount(some.topic[some.may_merge], minlength=len(topics)) for some in (meanings, merged))
    warn_of(
        [topics[place] for place in np.flatnonzero((before > 1) & (after == 1)).tolist()],
        "whose candidates all have one name and became one: if they are homonyms, give kb= or strings=False",
    )
    return merged


def _aliased(meanings: Meanings, kb: Any) -> Iterator[tuple[int, int]]:
    """Candidates unknown to the knowledge base whose name there is one other candidate's alone."""
    strange = np.flatnonzero(~meanings.known & meanings.may_merge & (meanings.names != ""))
    if kb is None or not len(strange):
        return
    found = kb.lookup(meanings.names[strange].tolist(), how="normalised").drop_duplicates(["text", "entity_id"])
    found = found[~found["text"].duplicated(keep=False)]
    place = {pair: at for at, pair in enumerate(zip(meanings.topic.tolist(), meanings.ids.tolist(), strict=True))}
    for text, entity in zip(found["text"].tolist(), kb.resolve(found["entity_id"].tolist()), strict=True):
        one = int(strange[text])
        other = place.get((int(meanings.topic[one]), entity))
        if other is not None:
            yield one, other


def by_likeness(meanings: Meanings, threshold: float, likeness: Likeness) -> Meanings:
    """One meaning for each group of a topic whose names are alike, each pair of them (complete linkage).

    Parameters
    ----------
    threshold
        How alike the least alike pair of a group is.
    likeness
        From groups of names to a matrix for each.
    """
    form = pd.factorize(meanings.forms())[0]
    groups = list(_comparable(meanings))
    key = np.arange(len(meanings.topic))
    for group, similarity in zip(groups, likeness([meanings.names[group].tolist() for group in groups]), strict=True):
        # Entities of one name that the knowledge base tells apart: their names say nothing more.
        known = meanings.known[group]
        homonyms = known[:, None] & known & (form[group][:, None] == form[group])
        key[group] = group[complete_linkage(np.where(homonyms, -1.0, similarity), threshold)]
    return meanings.merged(key)


def _comparable(meanings: Meanings) -> Iterator[Ints]:
    """The named meanings of each topic with several, by id, so that the order of rows decides nothing."""
    rows = np.flatnonzero(meanings.may_merge & (meanings.names != ""))
    tie = pd.factorize(meanings.ids, sort=True)[0]
    rows = rows[np.lexsort([tie[rows], meanings.topic[rows]])]
    starts = np.flatnonzero(np.diff(meanings.topic[rows], prepend=-1))
    yield from (group for group in np.split(rows, starts[1:]) if len(group) > 1)


def embedded(embedder: Callable[[list[str]], Any]) -> Likeness:
    """Cosines of the vectors of names, each name embedded once."""

    def likeness(groups: list[list[str]]) -> Iterator[Floats]:
        names = sorted({name for group in groups for name in group})
        if not names:
            return
        vectors = np.asarray(embedder(names), dtype=np.float64)
        if vectors.shape[:1] != (len(names),) or vectors.ndim != 2 or not np.isfinite(vectors).all():  # noqa: PLR2004
            raise InputError(
                f"embedder: wanted finite vectors of shape ({len(names)}, d) for {len(names)} names, found shape "
                f"{vectors.shape}" + ("" if np.isfinite(vectors).all() else " with NaN or infinity")
            )
        place = {name: at for at, name in enumerate(names)}
        for group in groups:
            yield cosines(vectors[[place[name] for name in group]])

    return likeness


def judged(judge: Callable[[list[tuple[str, str]]], Any]) -> Likeness:
    """Confidences of a judge, asked once for each pair of different names."""

    def likeness(groups: list[list[str]]) -> Iterator[Floats]:
        pairs = {(min(pair), max(pair)) for group in groups for pair in combinations(group, 2)}
        asked = sorted((one, other) for one, other in pairs if one != other)
        found = np.asarray(judge(asked) if asked else [], dtype=np.float64)
        if found.shape != (len(asked),) or not ((found >= 0) & (found <= 1)).all():
            raise InputError(f"judge: wanted {len(asked)} confidences from 0 to 1, found {found!r}")
        known = dict(zip(asked, found.tolist(), strict=True))
        for group in groups:
            matrix = np.ones((len(group), len(group)))
            for i, j in combinations(range(len(group)), 2):
                pair = (min(group[i], group[j]), max(group[i], group[j]))
                matrix[i, j] = matrix[j, i] = known.get(pair, 1.0)
            yield matrix

    return likeness


def _codes(topic: Ints, other: Any) -> Ints:
    """One number for each pair of a topic and another value."""
    code, distinct = pd.factorize(other)
    return np.asarray(pd.factorize(topic * max(len(distinct), 1) + code)[0], dtype=np.int64)
