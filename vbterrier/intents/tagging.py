"""Tagging of retrieved documents with entities, as a pipeline stage."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    choice,
    examples,
    number,
    settings_parameter,
    warn,
    whole_or_none,
)
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.ids import Lookup, column_ids, require_same_kind
from vbterrier.frames.named import named_frame
from vbterrier.frames.ranking import places
from vbterrier.hosts.pyterrier import Stage
from vbterrier.intents.taggers import ON_TIES, ByFunction, ByTable, ByText, make_tagger, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ids import Ids


class ClosedCandidates:
    """Candidate intents of queries, for closed tagging."""

    def __init__(self, intents: Any) -> None:
        frame = named_frame("intents", intents)
        require(frame, ("qid", "entity_id"), "intents")
        self.qid = column_ids(frame["qid"], "intents column 'qid'")
        self.entity = column_ids(frame["entity_id"], "intents column 'entity_id'")
        self.topics, topic = self.qid.codes()
        self._lookup = Lookup(topic, self.entity)

    def among(self, qid: Ids, row: Ints, entity: Ids) -> Bools:
        """Return True for tags, of a row of a run with these queries, that are candidates of their query."""
        require_same_kind(self.qid, qid, "intents column 'qid'", "run column 'qid'")
        require_same_kind(self.entity, entity, "intents column 'entity_id'", "entities that the tagger found")
        topics, code = qid.codes()
        here = places(topics, self.topics)
        if without := [topic for topic, place in zip(topics, here, strict=True) if place < 0]:
            message = f"{len(without)} of {len(topics)} queries have no intents, so their documents get no tags"
            warn(f"{message} ({examples(without)})")
        among = np.zeros(len(row), dtype=bool)
        among[self._lookup.find(here[code[row]], entity)[0]] = True
        return among

    @cached_property
    def digest(self) -> str:
        """A digest of the content, equal in every process."""
        content = self.qid.fingerprints.tobytes() + self.entity.fingerprints.tobytes()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


class RowTags(NamedTuple):
    """Distinct tags sorted by row."""

    row: Ints  # ascending, shape (n_tags,)
    entities: list[Any]
    weight: Floats  # in [0, 1], shape (n_tags,)
    tied: Bools  # True for tags that a tie decided, shape (n_tags,)

    def lists(self, n_rows: int) -> tuple[list[list[Any]], list[list[float]], list[list[bool]]]:
        """Return the entities, the weights and the ties of each row as lists."""
        stops = np.cumsum(np.bincount(self.row, minlength=n_rows)).tolist()
        bounds = list(zip([0, *stops[:-1]], stops, strict=True)) if stops else []
        columns = self.entities, self.weight.tolist(), self.tied.tolist()
        entities, weights, ties = ([column[a:b] for a, b in bounds] for column in columns)
        return entities, weights, ties


def row_tags(
    row: Ints, entity: Ids, score: Floats, *, cutoff: int | None, binary: bool, tied: Bools | None = None
) -> RowTags:
    """Merge repeated tags of a row to the largest score, and keep the first ``cutoff`` tags by score, then by id.

    If ``binary``, the tags that are kept get weight 1. A tag is tied if all its repetitions are, or if a tag with the
    same score is beyond the cutoff.
    """
    names, code = entity.codes()
    distinct, tie = np.unique(np.array(names, dtype=object), return_inverse=True)
    tags = pd.DataFrame({"row": row, "score": score, "id": tie[code], "tied": False if tied is None else tied})
    if tags["tied"].any():
        tags["tied"] = tags.groupby(["row", "id"])["tied"].transform("all")
    tags = tags.sort_values(["row", "score", "id"], ascending=[True, False, True]).drop_duplicates(["row", "id"])
    if cutoff is not None:
        place = tags.groupby("row", sort=False).cumcount()
        beyond = tags["row"].map(tags[place == cutoff].set_index("row")["score"])
        tags = tags.assign(tied=tags["tied"] | (tags["score"] == beyond))[place < cutoff]
    entities = distinct[tags["id"]].tolist()
    weight = np.ones(len(tags)) if binary else tags["score"].to_numpy()
    entities = [int(name) for name in entities] if entity.integers else entities
    return RowTags(tags["row"].to_numpy(), entities, weight, tags["tied"].to_numpy(dtype=bool))


COLUMNS = ("entity_id", "weight", "tagger")
# Columns about decisions by ties.
TIE_COLUMNS = ("tied", "n_abstained")
WEIGHTS = (None, "binary", "score")


@dataclass(frozen=True)
class TagOptions:
    """The tags that :class:`vbterrier.TagEntities` keeps, and their weights: the argument ``options=``.

    Parameters
    ----------
    cutoff, min_weight
        The number of tags of a document to keep, by weight and then by id, at least 1, ``None`` for all, and their
        smallest weight, from 0 to 1, before ``weights="binary"`` applies. Tags of weight 0 are always dropped.
    weights
        ``"binary"``: the best candidate of each mention, with weight 1. ``"score"``: all candidates of each
        mention with the weights of the tagger; a repeated entity gets its largest weight. ``None``: binary for linkers,
        the given weights for frames and functions.
    on_ties, min_margin
        For candidates of a mention with equal best scores, and for tags at the cutoff with equal weights:
        ``"smallest"`` keeps those of the smallest ids, which are guesses, ``"drop"`` keeps none. The best two
        candidates of a mention are also tied if their scores differ by less than ``min_margin``, at least 0, of which
        ``"smallest"`` keeps the best.

    Raises
    ------
    ParameterError
        An illegal word; a value outside its range.

    Examples
    --------
    >>> TagOptions(on_ties="drop", min_margin=0.1).on_ties
    'drop'
    """

    cutoff: int | None = None
    min_weight: float = 0.0
    weights: str | None = None
    on_ties: str = "smallest"
    min_margin: float = 0.0

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise ParameterError(f"weights={self.weights!r}: wanted 'binary', 'score' or None")
        whole_or_none("cutoff", self.cutoff)
        number("min_weight", self.min_weight, low=0, high=1)
        choice("on_ties", self.on_ties, ON_TIES)
        number("min_margin", self.min_margin, low=0)

    @property
    def changes(self) -> list[str]:
        """The settings that differ from their defaults, as text."""
        values = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return [f"{name}={value}" for name, value, default in values if value != default]


class TagEntities(Stage):
    """Tag retrieved documents with their entities: the ``φ(d)`` of Ding 2025, section 3.3.

    Adds three columns to a run: ``entity_id``, a list of ids by descending weight, empty for documents without
    entities; ``weight``, a list of their weights in [0, 1]; ``tagger``, a short name of the tagger. Taggers that select
    one candidate of each mention, or a number of tags, also add ``tied``, a list of True for tags that a tie decided,
    and ``n_abstained``, the number of mentions or tags left out because of a tie. Tag last in a
    pipeline, as in ``(bm25 + dph) >> TagEntities(...)``: the operators ``+``, ``|``, ``&`` and ``^`` blank or lose
    columns, and the measures raise an error if they detect it.

    Parameters
    ----------
    tagger
        ``"docno"``: every document is an entity. A linker (``.link(texts)``, see
        :class:`vbterrier.linking.links.Linker`). A frame of tags (docno, entity_id [, weight, qid]), the name of a
        registered frame, or a path. A function from one text to an id, ids, a mapping of ids to weights, or ``None``;
        or, with ``fields=None``, a function from a frame of documents to a frame of tags.
    fields
        The text columns for linkers and functions. Each is read separately, so that no mention spans two columns; a
        document gets the tags of all its fields.
    intents
        Closed tagging: keep only tags that are candidate intents of the row's query, after mentions are linked. A frame
        (qid, entity_id), a registered name or a path.
    per_query
        If True, tags may differ between queries: :meth:`tags` returns a column qid, and a function of frames receives a
        document once per query, with the columns of the query.
    options
        The tags to keep, and their weights: :class:`vbterrier.intents.TagOptions`.
    cache, replace
        Cache tags by text, so that a linker or function reads each text once; replace existing tags of the run.

    Raises
    ------
    ParameterError, InputError
        Not a tagger; weights from a linker whose scores are not weights; a margin without mentions; a run that is
        tagged already, unless ``replace``; illegal tags or texts.

    Warns
    -----
    DegenerateWarning
        More than 5 % of the mentions with several candidates have tied best ones.

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
        options: TagOptions = TagOptions(),
        cache: bool = True,
        replace: bool = False,
    ) -> None:
        super().__init__()
        settings_parameter("options", TagOptions, options)
        self.tagger, self.intents = _copy(tagger), _copy(intents)
        self.fields, self.per_query, self.options = fields, per_query, options
        self.cache, self.replace = cache, replace
        self._candidates = None if intents is None else ClosedCandidates(intents)
        names = (fields,) if isinstance(fields, str) else None if fields is None else tuple(fields)
        self._finder = make_tagger(
            tagger,
            fields=names,
            per_query=per_query,
            best=options.weights != "score",
            cache=cache,
            on_ties=options.on_ties,
            min_margin=options.min_margin,
        )
        self._label = self._name()
        # True if tags say which of them a tie decided.
        self._decides = self._finder.decides or options.cutoff is not None
        if options.min_margin > 0 and not (isinstance(self._finder, ByText) and self._finder.decides):
            raise ParameterError(
                f"{self!r}: a margin is one between candidates of a mention; wanted a linker, and weights='binary'"
            )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the tags of every row of a result frame."""
        self._validate(inp, ("qid", "docno"))
        there = [name for name in COLUMNS if name in inp.columns]
        by = inp["tagger"].unique().tolist() if there == list(COLUMNS) else []
        if there and len(inp) and not self.replace and by != [self._label]:
            whose = f"tagged by {examples(by)}" if by else f"a frame with the columns {', '.join(there)}"
            raise InputError(
                f"{self!r}: the run is already {whose}; use one tagger only: drop the other stage, or pass replace=True"
            )
        rows_of_tags, n_abstained = self._row_tags(inp)
        entities, weights, ties = rows_of_tags.lists(len(inp))
        made = inp.assign(
            entity_id=pd.Series(entities, index=inp.index, dtype=object),
            weight=pd.Series(weights, index=inp.index, dtype=object),
            tagger=pd.Series([self._label] * len(inp), index=inp.index, dtype=str),
        )
        if self._decides:
            return made.assign(tied=pd.Series(ties, index=inp.index, dtype=object), n_abstained=n_abstained)
        return made.drop(columns=[name for name in TIE_COLUMNS if name in made.columns])

    def without_cache(self) -> TagEntities | None:
        """Return this stage without a cache, so that each call asks the tagger; ``None`` if tags are given."""
        if not isinstance(self._finder, (ByText, ByFunction)):
            return None
        return TagEntities(
            self.tagger,
            fields=self.fields,
            intents=self.intents,
            per_query=self.per_query,
            options=self.options,
            cache=False,
        )

    def tags(self, results: Any) -> pd.DataFrame:
        """Return the tags of the documents of results or of a collection, for a file or the parameter ``tags``.

        Parameters
        ----------
        results
            Columns docno and the input columns of the tagger, and qid if tags may differ between queries: with
            ``intents``, ``per_query``, or given tags with qid.

        Returns
        -------
        pandas.DataFrame
            Distinct rows with columns docno, entity_id, weight, qid if tags may differ between queries, and tied and
            n_abstained (of the document) if the tagger selects; documents without tags, but with abstentions, have a
            row of weight 0 with the entity NIL. A document with two texts and different tags is an
            error without ``per_query``.
        """
        frame = pandas_frame(results, "results")
        by_query = self.per_query or self._finder.per_query or self._candidates is not None
        self._validate(frame, ("qid", "docno") if by_query else ("docno",))
        rows_of_tags, n_abstained = self._row_tags(frame)
        columns = (["qid"] if by_query else []) + ["docno"]
        made = frame[columns].iloc[rows_of_tags.row].reset_index(drop=True)
        made = made.assign(entity_id=rows_of_tags.entities, weight=rows_of_tags.weight)
        tags = [*columns, "entity_id", "weight"]
        if self._decides:
            made = made.assign(tied=rows_of_tags.tied, n_abstained=n_abstained[rows_of_tags.row])
        made = made.drop_duplicates(tags, ignore_index=True)
        # The rows of a document have equal tags if and only if each has as many tags as their union.
        per_row = np.bincount(rows_of_tags.row, minlength=len(frame))
        in_union = frame[columns].merge(made.groupby(columns, as_index=False).size(), how="left", on=columns)["size"]
        differs = per_row != in_union.fillna(0).to_numpy()
        if differs.any():
            raise InputError(
                f"document {frame['docno'].iloc[int(np.argmax(differs))]!r} has several texts with different tags; "
                "pass per_query=True, or keep one text"
            )
        if self._decides and not pd.api.types.is_integer_dtype(made["entity_id"].infer_objects()):
            made = pd.concat([made, _abstentions(frame[columns], per_row, n_abstained)], ignore_index=True)
        return made[["docno", "entity_id", "weight", *columns[:-1], *(TIE_COLUMNS if self._decides else ())]]

    def _row_tags(self, frame: pd.DataFrame) -> tuple[RowTags, Ints]:
        """The tags of each row, and its number of mentions or tags that a tie left out."""
        n_abstained = np.zeros(len(frame), dtype=np.int64)
        if not len(frame):
            return RowTags(np.empty(0, dtype=np.int64), [], np.empty(0), np.empty(0, dtype=bool)), n_abstained
        rows_of_tags = self._finder.find(frame)
        options = self.options
        binary = options.weights == "binary" or (options.weights is None and not self._finder.weighted)
        if not rows_of_tags.are_weights and not (binary and options.min_weight == 0):
            option = f"min_weight={options.min_weight:g}" if binary else "weights='score'"
            raise ParameterError(
                f"{self!r}: {option} needs weights in [0, 1], but the scores of this linker have another scale; use "
                "weights='binary' without min_weight, or a linker with scale 'probability'"
            )
        kept = np.ones(len(rows_of_tags.row), dtype=bool)
        if rows_of_tags.are_weights:
            kept = (rows_of_tags.score > 0) & (rows_of_tags.score >= options.min_weight)
        if self._candidates is not None:
            kept &= self._candidates.among(
                column_ids(frame["qid"], "run column 'qid'"), rows_of_tags.row, rows_of_tags.entity
            )
        rows = np.flatnonzero(kept)
        made = row_tags(
            rows_of_tags.row[rows],
            rows_of_tags.entity.take(rows),
            rows_of_tags.score[rows],
            cutoff=options.cutoff,
            binary=binary,
            tied=None if rows_of_tags.tied is None else rows_of_tags.tied[rows],
        )
        if rows_of_tags.n_abstained is not None:
            n_abstained = n_abstained + rows_of_tags.n_abstained
        if options.on_ties == "drop":
            n_abstained = n_abstained + np.bincount(made.row[made.tied], minlength=len(frame))
            kept = ~made.tied
            entities = [entity for entity, stays in zip(made.entities, kept.tolist(), strict=True) if stays]
            made = RowTags(made.row[kept], entities, made.weight[kept], made.tied[kept])
        return made, n_abstained

    def _validate(self, frame: pd.DataFrame, keys: Sequence[str]) -> None:
        self.require_columns(frame, *dict.fromkeys([*keys, *self._finder.columns]))

    def remedy(self, column: str) -> str:
        """Return how the input gets a column."""
        is_text = column in self._finder.columns and column != "docno"
        return "put pt.text.get_text(...) before it, or pass other fields=" if is_text else super().remedy(column)

    def _name(self) -> str:
        finder = self._finder
        if isinstance(self.tagger, (str, os.PathLike)):
            parts = [os.fspath(self.tagger)]
        else:
            parts = [f"frame {finder.table.digest[:8]}" if isinstance(finder, ByTable) else source_name(self.tagger)]
        if self.fields != ("text",) and self._finder.columns != ("docno",):
            parts.append(f"fields={self.fields!r}")
        if self._candidates is not None:
            intents = self.intents if isinstance(self.intents, (str, os.PathLike)) else self._candidates.digest[:8]
            parts.append(f"intents={os.fspath(intents)}")
        return ", ".join([*parts, *(["per_query=True"] if self.per_query else []), *self.options.changes])

    @property
    def _key(self) -> tuple[Any, ...]:
        columns = self.fields if isinstance(self.fields, str) or self.fields is None else tuple(self.fields)
        return (columns, self._candidates and self._candidates.digest, self.per_query, self.options, self.replace)

    def schematic(self, *, input_columns: Any) -> dict[str, Any]:
        """Return the schematic, with the name of the tagger."""
        return super().schematic(input_columns=input_columns) | {"settings": {"tagger": self._label}}

    def __repr__(self) -> str:
        return f"TagEntities({self._label})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TagEntities) or self._key != other._key:
            return False
        if isinstance(self._finder, ByTable) and isinstance(other._finder, ByTable):
            return self._finder.table.digest == other._finder.table.digest
        return type(self._finder) is type(other._finder) and bool(self.tagger == other.tagger)

    def __hash__(self) -> int:
        # Without the tagger, because linkers need not be hashable.
        return hash(self._key)


def _abstentions(keys: pd.DataFrame, n_tags: Ints, n_abstained: Ints) -> pd.DataFrame:
    """Rows of weight 0 that count the abstentions in documents without any tag; they tag nothing."""
    rows = np.flatnonzero((n_tags == 0) & (n_abstained > 0))
    silent = keys.iloc[rows].assign(entity_id=NIL, weight=0.0, tied=False, n_abstained=n_abstained[rows])
    return silent.drop_duplicates(list(keys.columns)).astype({"tied": bool})


def among_candidates(tags: pd.DataFrame, entities: Any) -> pd.DataFrame:
    """Return the tags with some entities; documents that lose all of theirs still count their abstentions."""
    kept = tags["entity_id"].isin(set(entities)) | (tags["weight"] == 0)
    if "n_abstained" not in tags.columns:
        return tags[kept].reset_index(drop=True)
    lost = tags[~tags["docno"].isin(tags["docno"][kept]) & (tags["n_abstained"] > 0)].drop_duplicates("docno")
    silent = lost.assign(entity_id=NIL, weight=0.0, tied=False)
    return pd.concat([tags[kept], silent], ignore_index=True)


def _copy(value: Any) -> Any:
    """Copy a frame, so that later changes by the caller have no effect."""
    return value.copy() if isinstance(value, pd.DataFrame) else value
