"""Tagging of retrieved documents with entities, as a pipeline stage."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import Lookup, ids_of, require_same_kind
from vbterrier.frames.named import named
from vbterrier.frames.ranking import places
from vbterrier.hosts.pyterrier import schematic_of
from vbterrier.intents.taggers import ByTable, label_of, tagger_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ids import Ids


class ClosedCandidates:
    """The candidate intents of queries.

    Parameters
    ----------
    intents
        Columns qid, entity_id; or a registered name, or a path.
    """

    def __init__(self, intents: Any) -> None:
        frame = named("intents", intents)
        require(frame, ("qid", "entity_id"), "intents")
        self.qid = ids_of(frame["qid"], "intents column 'qid'")
        self.entity = ids_of(frame["entity_id"], "intents column 'entity_id'")
        self.topics, topic = self.qid.codes()
        self._lookup = Lookup(topic, self.entity)

    def among(self, qid: Ids, row: Ints, entity: Ids) -> Bools:
        """Whether tags of rows are with candidates of the rows' queries, shape (n_tags,).

        Parameters
        ----------
        qid
            The query of each row of the run.
        row, entity
            The row and the entity of each tag.
        """
        require_same_kind(self.qid, qid, "intents column 'qid'", "run column 'qid'")
        require_same_kind(self.entity, entity, "intents column 'entity_id'", "entities that the tagger found")
        topics, code = qid.codes()
        here = places(topics, self.topics)
        if (here < 0).any():
            without = [topic for topic, place in zip(topics, here, strict=True) if place < 0]
            warn(
                f"{len(without)} of {len(topics)} queries have no intents, and their documents get no tags "
                f"({examples(without)})"
            )
        asked = here[code[row]]
        known = np.flatnonzero(asked >= 0)
        found, _ = self._lookup.find(asked[known], entity.take(known))
        among = np.zeros(len(row), dtype=bool)
        among[known[found]] = True
        return among

    @cached_property
    def digest(self) -> str:
        """What tells these intents from others, the same in every process."""
        content = self.qid.fingerprints.tobytes() + self.entity.fingerprints.tobytes()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class Settled:
    """Tags by row.

    Parameters
    ----------
    row
        The row of each tag, rising, shape (n_tags,).
    entities
        The entity of each tag.
    weight
        Its weight in [0, 1], shape (n_tags,).
    """

    row: Ints
    entities: list[Any]
    weight: Floats

    def lists(self, n_rows: int) -> tuple[list[list[Any]], list[list[float]]]:
        """The entities and the weights of each row, for columns of a frame."""
        stops = np.cumsum(np.bincount(self.row, minlength=n_rows)).tolist()
        bounds = list(zip([0, *stops[:-1]], stops, strict=True)) if stops else []
        weights = self.weight.tolist()
        return [self.entities[a:b] for a, b in bounds], [weights[a:b] for a, b in bounds]


def settled(row: Ints, entity: Ids, score: Floats, *, cutoff: int | None, binary: bool) -> Settled:
    """Keep each tag of a row once with its largest score, and of each row the first ``cutoff`` by score, then by id.

    Parameters
    ----------
    row, entity, score
        Tags in any order, each of shape (n_tags,).
    cutoff
        How many to keep a row; ``None`` for all.
    binary
        Whether tags then weigh 1.

    >>> import pandas as pd
    >>> from vbterrier.frames.ids import ids_of
    >>> entity = ids_of(pd.Series(["B", "A", "B"]), "tags")
    >>> settled(np.array([0, 0, 0]), entity, np.array([0.2, 0.5, 0.5]), cutoff=None, binary=False).entities
    ['A', 'B']
    """
    names, code = entity.codes()
    alphabetical = np.empty(len(names), dtype=np.int64)
    alphabetical[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    place = alphabetical[code]
    order = np.lexsort((-score, place, row))
    again = (row[order[1:]] == row[order[:-1]]) & (place[order[1:]] == place[order[:-1]])
    order = order[np.concatenate([[True], ~again])[: len(order)]]
    order = order[np.lexsort((place[order], -score[order], row[order]))]
    if cutoff is not None:
        starts = np.searchsorted(row[order], row[order], side="left")
        order = order[np.arange(len(order)) - starts < cutoff]
    entities = [names[number] for number in code[order]]
    weight = np.ones(len(order)) if binary else score[order]
    return Settled(row[order], [int(name) for name in entities] if entity.integers else entities, weight)


COLUMNS = ("entity_id", "weight", "tagger")
WEIGHTS = (None, "binary", "score")


class TagEntities(pt.Transformer):  # type: ignore[misc]
    """Tag retrieved documents with the entities that they are about: the ``φ(d)`` of Ding 2025, section 3.3.

    A run comes out with three columns more: ``entity_id``, a list of ids, the heaviest first; ``weight``, a list of
    their weights in [0, 1]; ``tagger``, what tagged, a function by its name. Documents without entities have empty
    lists. Tag last in a pipeline, as in ``(bm25 + dph) >> TagEntities(...)``: the operators ``+``, ``|``, ``&`` and
    ``^`` blank or lose columns, which the measures refuse where they see it.

    Parameters
    ----------
    tagger
        ``"docno"``: documents are entities, each its own. A linker (``.link(texts)``, see
        :class:`vbterrier.linking.links.Linker`). A frame of tags (docno, entity_id [, weight, qid]), the name of a
        registered one, or its file. A function of one text, which gives an id, several, a mapping of ids to weights, or
        ``None``; or, with ``fields=None``, a function of a frame of documents, which gives a frame of tags.
    fields
        The columns of text that linkers and functions read, each as a text of its own, so that no name is found across
        the border of two; a document's tags are those of all of its fields.
    intents
        Closed tagging: keep tags with candidate intents of the row's query alone. A frame (qid, entity_id), a
        registered name or a path. A mention is linked before its entity is looked for among the candidates.
    per_query
        Keep tags apart by query: :meth:`tags` has a column qid, and a function of frames sees a document once for every
        query, with the columns of the query.
    cutoff
        Keep at most so many tags of a document, the heaviest; equal ones by id.
    min_weight
        Drop tags of less weight, before ``weights`` makes them 1. Tags of weight 0 are always dropped.
    weights
        ``"binary"``: every tag weighs 1, and of a mention's candidates the best is taken, of equals the first id.
        ``"score"``: the weight that the tagger gave, for all candidates of a mention; an entity that is found several
        times has its largest. ``None``: binary for linkers, the given weights for frames and functions.
    cache
        Keep the tags of a text that was read, so that a linker or function of texts reads it once.
    replace
        Replace tags that the run carries already.

    Raises
    ------
    ParameterError
        No tagger; a ``cutoff`` or ``min_weight`` out of range; weights asked of a linker whose scores are none.
    InputError
        A run tagged by something else, unless ``replace``; tags or texts that are none.

    Examples
    --------
    >>> import pandas as pd
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0], "text": ["Paris, France", "?"]})
    >>> stage = TagEntities(lambda text: ["Q90"] if "Paris" in text else [])
    >>> stage(run)["entity_id"].tolist()
    [['Q90'], []]
    >>> stage.tags(run).values.tolist()
    [['d1', 'Q90', 1.0]]
    """

    def __init__(
        self,
        tagger: Any,
        *,
        fields: str | Sequence[str] | None = ("text",),
        intents: Any = None,
        per_query: bool = False,
        cutoff: int | None = None,
        min_weight: float = 0.0,
        weights: str | None = None,
        cache: bool = True,
        replace: bool = False,
    ) -> None:
        super().__init__()
        if weights not in WEIGHTS:
            raise ParameterError(f"weights={weights!r}: wanted 'binary', 'score' or None")
        if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int) or cutoff < 1):
            raise ParameterError(f"cutoff={cutoff!r}: wanted a whole number of at least 1, or None")
        if not isinstance(min_weight, (int, float)) or not 0 <= min_weight <= 1:
            raise ParameterError(f"min_weight={min_weight!r}: wanted a number from 0 to 1")
        self.tagger, self.intents = _own(tagger), _own(intents)
        self.fields, self.per_query = fields, per_query
        self.cutoff, self.min_weight, self.weights, self.cache, self.replace = (
            cutoff,
            min_weight,
            weights,
            cache,
            replace,
        )
        self._candidates = None if intents is None else ClosedCandidates(intents)
        names = (fields,) if isinstance(fields, str) else None if fields is None else tuple(fields)
        self._finder = tagger_of(tagger, fields=names, per_query=per_query, best=weights != "score", cache=cache)
        self._label = self._labelled()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the tags of every row of a result frame."""
        self._validate(inp, ("qid", "docno"))
        self._require_untagged(inp)
        entities, weights = self._settled(inp).lists(len(inp))
        return inp.assign(
            entity_id=pd.Series(entities, index=inp.index, dtype=object),
            weight=pd.Series(weights, index=inp.index, dtype=object),
            tagger=pd.Series([self._label] * len(inp), index=inp.index, dtype=str),
        )

    def tags(self, results: Any) -> pd.DataFrame:
        """The tags of the documents of a result frame or of a collection, for a file or for the parameter ``tags``.

        Parameters
        ----------
        results
            Columns docno and those that the tagger reads; qid only where tags differ by query.

        Returns
        -------
        pandas.DataFrame
            Columns docno, entity_id, weight, each tag once; with qid where tags may differ by query: ``intents``,
            ``per_query``, or tags that have it.

        Raises
        ------
        InputError
            A document with two texts that are tagged otherwise, without ``per_query``.
        """
        frame = frame_of(results, "results")
        apart = self.per_query or self._finder.per_query or self._candidates is not None
        self._validate(frame, ("qid", "docno") if apart else ("docno",))
        found = self._settled(frame)
        columns = (["qid"] if apart else []) + ["docno"]
        made = frame[columns].iloc[found.row].reset_index(drop=True)
        made["entity_id"] = found.entities
        made["weight"] = found.weight
        made = made.drop_duplicates(ignore_index=True)
        # The rows of a document have the same tags exactly when each has as many as all of them together.
        per_row = np.bincount(found.row, minlength=len(frame))
        together = frame[columns].merge(made.groupby(columns, as_index=False).size(), how="left", on=columns)["size"]
        differs = per_row != together.fillna(0).to_numpy()
        if differs.any():
            raise InputError(
                f"document {frame['docno'].iloc[int(np.argmax(differs))]!r} comes with several texts that are tagged "
                "otherwise; keep tags apart by query with per_query=True, or keep one text"
            )
        return made[["docno", "entity_id", "weight", *columns[:-1]]]

    def _settled(self, frame: pd.DataFrame) -> Settled:
        if not len(frame):
            return Settled(np.empty(0, dtype=np.int64), [], np.empty(0))
        found = self._finder.find(frame)
        binary = self.weights == "binary" or (self.weights is None and not self._finder.weighted)
        if not found.shares and not (binary and self.min_weight == 0):
            asked = f"min_weight={self.min_weight:g}" if binary else "weights='score'"
            raise ParameterError(
                f"{self!r}: {asked} needs weights in [0, 1], and the scores of this linker are of another scale; take "
                "weights='binary' without min_weight, or a linker with scale 'probability'"
            )
        kept = (found.score > 0) & (found.score >= self.min_weight) if found.shares else np.ones(len(found.row), bool)
        if self._candidates is not None:
            kept &= self._candidates.among(ids_of(frame["qid"], "run column 'qid'"), found.row, found.entity)
        rows = np.flatnonzero(kept)
        return settled(found.row[rows], found.entity.take(rows), found.score[rows], cutoff=self.cutoff, binary=binary)

    def _validate(self, frame: pd.DataFrame, keys: Sequence[str]) -> None:
        try:
            pt.validate.columns(frame, includes=list(dict.fromkeys([*keys, *self._finder.columns])))
        except pt.validate.InputValidationError as error:
            missing = [name for name in self._finder.columns if name not in (*keys, *frame.columns)]
            if missing and len(frame.columns):
                remedy = "put pt.text.get_text(...) before it, or name other fields="
                error.args = (f"{error.args[0]} {self!r} reads {', '.join(map(repr, missing))}: {remedy}.",)
            raise

    def _require_untagged(self, inp: pd.DataFrame) -> None:
        there = [name for name in COLUMNS if name in inp.columns]
        if self.replace or not there or not len(inp):
            return
        by = inp["tagger"].unique().tolist() if there == list(COLUMNS) else []
        if by != [self._label]:
            whose = f"tagged by {examples(by)}" if by else f"with the columns {', '.join(there)}"
            raise InputError(
                f"{self!r}: the run comes {whose}; one tagger only: drop the other stage, or pass replace=True"
            )

    def _labelled(self) -> str:
        finder = self._finder
        parts = [label_of(self.tagger)]
        if isinstance(finder, ByTable) and not isinstance(self.tagger, (str, os.PathLike)):
            parts = [f"frame {finder.table.digest[:8]}"]
        if self.fields != ("text",) and self._finder.columns != ("docno",):
            parts.append(f"fields={self.fields!r}")
        if self._candidates is not None:
            given = self.intents if isinstance(self.intents, (str, os.PathLike)) else self._candidates.digest[:8]
            parts.append(f"intents={os.fspath(given)}")
        defaults = {"per_query": False, "cutoff": None, "min_weight": 0.0, "weights": None}
        parts += [f"{name}={getattr(self, name)}" for name, usual in defaults.items() if getattr(self, name) != usual]
        return ", ".join(parts)

    @property
    def _key(self) -> tuple[Any, ...]:
        options = self.fields if isinstance(self.fields, str) or self.fields is None else tuple(self.fields)
        intents = self._candidates and self._candidates.digest
        return (options, intents, self.per_query, self.cutoff, self.min_weight, self.weights, self.replace)

    def schematic(self, *, input_columns: Any) -> dict[str, Any]:  # noqa: ARG002 - what PyTerrier hands over
        """How PyTerrier draws it: with what it tags by."""
        return schematic_of({"tagger": self._label})

    def __repr__(self) -> str:
        return f"TagEntities({self._label})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TagEntities) or self._key != other._key:
            return False
        if isinstance(self._finder, ByTable) and isinstance(other._finder, ByTable):
            return self._finder.table.digest == other._finder.table.digest
        return type(self._finder) is type(other._finder) and bool(self.tagger == other.tagger)

    def __hash__(self) -> int:
        # Without the tagger: linkers need not be hashable.
        return hash(self._key)


def _own(given: Any) -> Any:
    """A copy of a frame: what the caller does to it later changes neither results nor equality."""
    return given.copy() if isinstance(given, pd.DataFrame) else given
