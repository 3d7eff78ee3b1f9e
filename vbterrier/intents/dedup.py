"""One candidate for each meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.parameters import number
from vbterrier.intents.frame import Candidates
from vbterrier.intents.meanings import Meanings, by_id, by_likeness, by_name, embedded, judged
from vbterrier.intents.stage import Stage, knowledge_base
from vbterrier.kernels import candidates as kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]


class Dedup(Stage):
    """Merge candidates of a query that are the same, and add up their probabilities: I -> I (Ding 2025, section 3.2).

    Three tests in this order: (i) equal ids, after ``aliases`` and the redirects of ``kb``; (ii) equal names in normal
    form, or a name that is an alias of one other candidate alone; (iii) names of like meaning, each pair of a group at
    least as similar as the threshold (complete linkage): A~B and B~C alone do not merge A with C.

    Parameters
    ----------
    kb
        A knowledge base (:mod:`vbterrier.linking.kb`): redirects, names where the frame has none, aliases. Entities
        that it knows as different stay apart in (ii), and in (iii) when their names are equal: they are the homonyms
        that make a query ambiguous.
    aliases
        Further ids: a mapping of entity_id to the id it stands for, or a frame with columns entity_id and canonical.
        Chains are followed.
    strings
        Whether to compare names (ii). Without a knowledge base all candidates of a name are one; where all of a query
        become one for it, a warning says so.
    embedder
        For (iii) a callable of a list of n names that gives their vectors, shape (n, d); such as
        :class:`vbterrier.intents.embed.MiniLM`.
    similarity
        Least cosine, or least confidence of the judge, in (0, 1]; the paper's 0.95.
    judge
        For (iii) instead of an embedder: a callable of a list of pairs of names that gives the confidence, in [0, 1],
        that each pair means the same.

    Raises
    ------
    ParameterError
        An illegal value; both an embedder and a judge.
    InputError
        Probabilities that do not sum to 1, aliases in a circle, vectors or confidences of another shape or not finite.

    Notes
    -----
    ``entity_id`` becomes the id after (i). The most probable of a group stands for it, among equals the smallest id,
    with its row and its columns; a name is taken from the next where it has none. ``merged`` lists the ids of the group
    as they came, most probable first. A candidate without a name takes part in (ii) with its id, in (iii) not at all.
    NIL is never merged.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["Q1", "Q2", "Q3"], "prob": [0.5, 0.3, 0.2],
    ...                         "name": ["Jordan (country)", "Michael Jordan", "jordan country"]})
    >>> Dedup()(intents)[["entity_id", "prob", "merged"]].values.tolist()
    [['Q1', 0.7, ['Q1', 'Q3']], ['Q2', 0.3, ['Q2']]]
    """

    def __init__(
        self,
        *,
        kb: Any = None,
        aliases: Mapping[str, str] | pd.DataFrame | None = None,
        strings: bool = True,
        embedder: Callable[[list[str]], Any] | None = None,
        similarity: float = 0.95,
        judge: Callable[[list[tuple[str, str]]], Any] | None = None,
    ) -> None:
        super().__init__()
        self.kb = None if kb is None else knowledge_base(kb, "resolve", "names", "lookup")
        self.aliases = None if aliases is None else _checked(aliases)
        self.strings = bool(strings)
        self.embedder, self.judge = embedder, judge
        self.similarity = number("similarity", similarity, low=0, high=1, open_low=True)
        if embedder is not None and judge is not None:
            raise ParameterError("wanted an embedder or a judge, found both")
        for name, value in (("embedder", embedder), ("judge", judge)):
            if value is not None and not callable(value):
                raise ParameterError(f"{name}={value!r}: wanted a callable")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """One row for each meaning, in the order of the rows that stand for them."""
        pt.validate.columns(inp, includes=["qid", "entity_id", "prob"])
        candidates = Candidates(inp, repeats=True)
        ids = self._canonical(candidates.entity.text.to_pylist())
        known, names = self._names(candidates, ids)
        meanings = by_id(candidates.topic, ids, candidates.prob, names, known)
        if self.strings:
            meanings = by_name(meanings, self.kb, candidates.topics)
        if self.embedder is not None:
            meanings = by_likeness(meanings, self.similarity, embedded(self.embedder))
        elif self.judge is not None:
            meanings = by_likeness(meanings, self.similarity, judged(self.judge))
        return _merged(candidates, meanings)

    def _canonical(self, ids: Sequence[str]) -> list[str]:
        """Ids after redirects and aliases, of equal ids looked up once."""
        distinct = list(dict.fromkeys(ids))
        resolved = list(distinct)
        for step in (self._resolve, self._alias, self._resolve):
            resolved = step(resolved)
        found = dict(zip(distinct, resolved, strict=True))
        return [found[one] for one in ids]

    def _resolve(self, ids: list[str]) -> list[str]:
        return ids if self.kb is None else list(self.kb.resolve(ids))

    def _alias(self, ids: list[str]) -> list[str]:
        aliases = self.aliases or {}
        for _ in range(len(aliases) + 1):
            after = [aliases.get(one, one) for one in ids]
            if after == ids:
                return ids
            ids = after
        looping = next(one for one in ids if one in aliases)
        raise InputError(f"aliases: {looping!r} stands for itself in a circle; break it")

    def _names(self, candidates: Candidates, ids: list[str]) -> tuple[Bools, list[str]]:
        """Which ids the knowledge base knows, and the name of each row, empty where there is none."""
        frame = candidates.frame
        names = frame["name"].fillna("").astype("str").tolist() if "name" in frame.columns else [""] * len(frame)
        if self.kb is None:
            return np.zeros(len(ids), dtype=bool), names
        known = self.kb.names(ids)
        return np.array(known, dtype=object) != "", [own or other for own, other in zip(names, known, strict=True)]


def _checked(aliases: Any) -> dict[str, str]:
    """Aliases as a mapping.

    Raises
    ------
    InputError
        Another table, an id with two canonical ones, or an id that is no text.
    """
    if isinstance(aliases, Mapping):
        pairs = list(aliases.items())
    else:
        frame = frame_of(aliases, "aliases")
        require(frame, ("entity_id", "canonical"), "aliases")
        pairs = list(zip(frame["entity_id"].tolist(), frame["canonical"].tolist(), strict=True))
    made: dict[str, str] = {}
    for one, other in pairs:
        if not (isinstance(one, str) and isinstance(other, str)):
            raise InputError(f"aliases: {one!r} stands for {other!r}; wanted ids as text")
        if made.setdefault(one, other) != other:
            raise InputError(f"aliases: {one!r} stands for {made[one]!r} and for {other!r}; keep one")
    return {one: other for one, other in made.items() if one != other}


def _merged(candidates: Candidates, meanings: Meanings) -> pd.DataFrame:
    """The rows that stand for the meanings, in their order."""
    order, members = np.argsort(meanings.row), _members(candidates, meanings)
    made = candidates.frame.iloc[meanings.row[order]].reset_index(drop=True)
    if "name" in made.columns:
        made["name"] = pd.Series(meanings.names[order], dtype="str")
    return made.assign(
        entity_id=pd.Series(meanings.ids[order], dtype="str"),
        prob=meanings.prob[order],
        merged=pd.Series([members[place] for place in order.tolist()], dtype=object),
    )


def _members(candidates: Candidates, meanings: Meanings) -> list[list[str]]:
    """The ids in each meaning as they came, most probable first."""
    group = meanings.of_row
    rank = kernels.ranks(np.round(candidates.prob, kernels.DIGITS), group, candidates.tie)
    order = np.lexsort([rank, group])
    ids = np.array(candidates.entity.text.to_pylist(), dtype=object)[order]
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return [part.tolist() for part in np.split(ids, starts[1:])]
