"""Taggers: tag tables, linkers and functions."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Real
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, warn
from vbterrier.frames.contracts import is_frame, pandas_frame
from vbterrier.frames.entities import TagFrame
from vbterrier.frames.ids import Ids, column_ids, require_same_kind
from vbterrier.frames.named import named_frame
from vbterrier.frames.ranking import places
from vbterrier.kernels.rankings import spans
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.linking.links import Linker


class TagTable(TagFrame):
    """A table of document tags that can be joined with results."""

    def find(self, frame: pd.DataFrame) -> tuple[Ints, Ints]:
        """Return the tags of the documents of a frame: rows of the frame, and rows of the table."""
        docno = column_ids(frame["docno"], "run column 'docno'")
        require_same_kind(self.docno, docno, f"{self.name} column 'docno'", "run column 'docno'")
        if self.topics is None:
            return self._lookup.find(None, docno)
        qid = column_ids(frame["qid"], "run column 'qid'")
        require_same_kind(self.qid, qid, f"{self.name} column 'qid'", "run column 'qid'")
        topics, code = qid.codes()
        return self._lookup.find(places(topics, self.topics)[code], docno)

    @cached_property
    def digest(self) -> str:
        """A digest of the content, equal in every process."""
        columns = [self.docno.fingerprints, self.entity.fingerprints, self.weight]
        columns += [] if self.topics is None else [self.qid.fingerprints]
        kinds = bytes([self.docno.integers, self.entity.integers])
        return hashlib.blake2b(b"".join(column.tobytes() for column in columns) + kinds, digest_size=16).hexdigest()


DOCNO = "docno"
_LOG = logging.getLogger(__name__)
# Texts per call of a linker.
_BLOCK_TEXTS = 4096


# Decisions about mentions: by the score alone, by a tie, or none because of a tie.
CLEAR, TIED, ABSTAINED = range(3)
ON_TIES = ("smallest", "drop")
# The share of tags or mentions with ties that is reported.
MAX_TIED_TAG_SHARE = 0.05


class FoundTags(NamedTuple):
    """Tags of the rows of a frame: row, entity and score of each tag, each of shape (n_tags,)."""

    row: Ints
    entity: Ids
    score: Floats
    are_weights: bool = True  # False for scores of another scale than weights in [0, 1]
    tied: Bools | None = None  # True for tags that a tie decided, shape (n_tags,); None if there are no decisions
    n_abstained: Ints | None = None  # mentions without a tag because of a tie, shape (n_rows,)


@dataclass(eq=False)
class ByText:
    """Tags of texts; each distinct text is read once."""

    fields: tuple[str, ...]  # the text columns, each read separately, so that no mention spans two columns
    # A function from texts to the text index, entity, score and decision of every tag, and True if scores are weights.
    read: Callable[[Sequence[str]], tuple[Sequence[int], Sequence[str], Sequence[float], Sequence[int], bool]]
    weighted: bool  # True if tags are weighted by default
    cache: bool  # if True, keep tags between calls
    decides: bool  # True if it selects one candidate of each mention
    per_query: bool = field(default=False, init=False)
    _cached_tags: dict[bytes, tuple[tuple[str, float, int], ...]] = field(default_factory=dict, init=False)
    _are_weights: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.columns: tuple[str, ...] = (DOCNO, *self.fields)

    def __getstate__(self) -> dict[str, Any]:
        # The cache is not sent to other processes.
        return {**self.__dict__, "_known": {}}

    def find(self, frame: pd.DataFrame) -> FoundTags:
        """Return the tags of all texts of each row."""
        rows, entities, scores, decisions = [np.empty(0, dtype=np.int64)], list[str](), list[float](), list[int]()
        for name in self.fields:
            present = _present(frame, name)
            code, texts = pd.factorize(frame[name].iloc[present])
            tags = self._tags(list(texts))
            stops = np.cumsum([len(text_tags) for text_tags in tags], dtype=np.int64)
            starts = np.concatenate([[0], stops[:-1]]).astype(np.int64)
            owner, places = spans(starts[code], stops[code])
            flat = [tag for text_tags in tags for tag in text_tags]
            rows.append(present[owner])
            entities.extend(flat[place][0] for place in places)
            scores.extend(flat[place][1] for place in places)
            decisions.extend(flat[place][2] for place in places)
        entity = column_ids(pd.Series(entities, dtype=object), "entities that the tagger found")
        row, score, decision = np.concatenate(rows), np.array(scores, np.float64), np.array(decisions, np.int64)
        if not self.decides:
            return FoundTags(row, entity, score, self._are_weights)
        made = np.flatnonzero(decision != ABSTAINED)
        n_abstained = np.bincount(row[decision == ABSTAINED], minlength=len(frame))
        tied = decision[made] == TIED
        return FoundTags(row[made], entity.take(made), score[made], self._are_weights, tied, n_abstained)

    def _tags(self, texts: Sequence[str]) -> list[tuple[tuple[str, float, int], ...]]:
        """Return the tags of each text, reading only new texts."""
        cached = self._cached_tags if self.cache else {}
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        new = [place for place, key in enumerate(keys) if key not in cached]
        if new:
            _LOG.info("tagging %d texts; the tags of %d more are cached", len(new), len(keys) - len(new))
        for first in bar(range(0, len(new), _BLOCK_TEXTS), "tagging", unit=f"{_BLOCK_TEXTS} texts", delay=2):
            places = new[first : first + _BLOCK_TEXTS]
            owners, *tags, are_weights = self.read([texts[place] for place in places])
            self._are_weights &= are_weights
            tags_of_text: list[list[tuple[str, float, int]]] = [[] for _ in places]
            for place, *tag in zip(owners, *tags, strict=True):
                tags_of_text[place].append(tuple(tag))
            cached.update(zip((keys[place] for place in places), map(tuple, tags_of_text), strict=True))
        return [cached[key] for key in keys]


def _present(frame: pd.DataFrame, name: str) -> Ints:
    """Return the rows that have a text, with a warning if some have none."""
    column = frame[name]
    missing = column.isna().to_numpy()
    if missing.any():
        docno = frame["docno"].iloc[int(np.argmax(missing))]
        warn(f"{int(missing.sum())} of {len(frame)} rows have no {name!r} and get no tags from it (document {docno!r})")
    present = np.flatnonzero(~missing)
    if pd.api.types.infer_dtype(column.iloc[present]) not in {"string", "empty"}:
        row = next(row for row in present if not isinstance(column.iloc[row], str))
        raise InputError(
            f"column {name!r}: row {row} (document {frame['docno'].iloc[row]!r}) holds {column.iloc[row]!r}, wanted "
            "text; pass other fields="
        )
    return present


@dataclass(eq=False)
class Linked:
    """Entities that a linker finds in texts: all candidates of each mention, or the best.

    If the scores of the best two candidates are equal, or differ by less than ``min_margin``, the best one is tied:
    with ``on_ties="smallest"`` it is that of the smallest id among equal scores, with ``"drop"`` there is none. Nor is
    there one if the links have a column ``nil``, the probability that no candidate is meant, and it is larger than that
    of the best one. A warning reports, once, that many best candidates are tied, for example without priors.
    """

    linker: Linker
    best: bool
    on_ties: str = "smallest"
    min_margin: float = 0.0
    _warned: bool = field(default=False, init=False)

    def __call__(self, texts: Sequence[str]) -> tuple[list[int], list[str], list[float], list[int], bool]:
        """Return the text index, entity, score and decision of every tag, and True if scores are weights."""
        links = self.linker.link(texts)
        frame = links.frame
        if not frame["text"].between(0, len(texts) - 1).all():
            raise InputError(f"{source_name(self.linker)}: its links refer to more than the {len(texts)} given texts")
        decisions = np.full(len(frame), CLEAR)
        if self.best:
            frame, decisions = self._best_candidates(frame)
        tags = frame["text"].tolist(), frame["entity_id"].tolist(), frame["score"].tolist()
        return (*tags, decisions.tolist(), links.scale == "probability")

    def _best_candidates(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, Ints]:
        mention = ["text", "start", "end", "mention"]
        ordered = frame.sort_values([*mention, "score", "entity_id"], ascending=[True] * 4 + [False, True])
        ordered = ordered.drop_duplicates([*mention, "entity_id"])
        is_first = ~ordered.duplicated(mention).to_numpy()
        first, score = np.flatnonzero(is_first), ordered["score"].to_numpy(dtype=np.float64)
        # The second candidate of a mention follows the best one.
        is_ambiguous = ~np.append(is_first, True)[first + 1]
        gap = score[first[is_ambiguous]] - score[first[is_ambiguous] + 1]
        decisions = np.full(len(first), CLEAR)
        tied = ABSTAINED if self.on_ties == "drop" else TIED
        decisions[is_ambiguous] = np.where((gap <= 0) | (gap < self.min_margin), tied, CLEAR)
        if "nil" in ordered.columns:
            nil = ordered["nil"].to_numpy(dtype=np.float64)[first]
            decisions[nil > (1 - nil) * score[first]] = ABSTAINED
        n_tied = int((decisions == TIED).sum())
        if n_tied > MAX_TIED_TAG_SHARE * len(gap) and not self._warned:
            self._warned = True
            one = ordered.iloc[first[int(np.argmax(decisions == TIED))]]
            warn(
                f"{source_name(self.linker)}: {n_tied} of {len(gap)} ambiguous mentions have tied best candidates, the "
                f"first {one['mention']!r}, and are tagged with the smallest id, a guess; use a linker with priors, "
                "TagOptions(on_ties='drop') to leave them out, or weights='score' for all candidates"
            )
        return ordered.iloc[first], decisions


def read_by_function(
    function: Callable[[str], Any], texts: Iterable[str]
) -> tuple[list[int], list[str], list[float], list[int], bool]:
    """Return the entities from a function of one text, which returns an id, ids, weights by id, or ``None``."""
    places, entities, scores = list[int](), list[str](), list[float]()
    for place, text in enumerate(texts):
        answer = function(text)
        if answer is None:
            continue
        ids = answer if isinstance(answer, Iterable) and not isinstance(answer, str) else (answer,)
        pairs = ids.items() if isinstance(ids, Mapping) else ((entity, 1.0) for entity in ids)
        for entity, weight in pairs:
            if not isinstance(entity, str) or not isinstance(weight, Real) or not 0 <= float(weight) <= 1:
                raise InputError(
                    f"{source_name(function)}: returned {entity!r} with weight {weight!r} for the text {text[:40]!r}; "
                    "wanted an id as text, ids, weights in [0, 1] by id, or None; functions of frames need fields=None"
                )
            places.append(place)
            entities.append(entity)
            scores.append(float(weight))
    return places, entities, scores, [CLEAR] * len(places), True


def source_name(source: Any) -> str:
    """Return a short text of a linker, a pipeline or a callable that is equal in every process.

    Functions made inside others and anonymous ones, which share a name, and partial functions are distinguished by a
    digest of their code and of the values that they use; objects without a ``repr`` of their own by type only.

    >>> source_name(len), source_name(object()), source_name(lambda: 1) == source_name(lambda: 2)
    ('len', 'object', False)
    >>> source_name(partial(int, base=2)).split()[:2]
    ['partial', 'int']
    >>> source_name(partial(int, base=2)) == source_name(partial(int, base=8))
    False
    """
    return _label(source, ())


def _label(value: Any, inside: tuple[int, ...]) -> str:
    """Return the label of a value; ``inside`` are the ids of what it is part of, which may contain itself."""
    if isinstance(value, partial):
        values = [_value_text(one, inside) for one in (value.args, value.keywords)]
        return f"partial {_label(value.func, inside)} {_digest(*values)}"
    if isinstance(value, FunctionType) and "<" in value.__qualname__ and id(value) not in inside:
        return f"{value.__qualname__} {_code_digest(value, (*inside, id(value)))}"
    if hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    # The default repr contains the address.
    return type(value).__name__ if " at 0x" in repr(value) else repr(value)


def _code_digest(function: FunctionType, inside: tuple[int, ...]) -> str:
    """Return a digest of the code of a function, its defaults and the values of the names around it; 8 hex digits."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    around = {}
    for name, cell in cells.items():
        # A name that is not bound yet has an empty cell.
        with contextlib.suppress(ValueError):
            around[name] = cell.cell_contents
    values = function.__code__, function.__defaults__, function.__kwdefaults__, around
    return _digest(*(_value_text(one, inside) for one in values))


def _value_text(value: Any, inside: tuple[int, ...]) -> str:
    """Return a text of a value that functions use, in which order of sets and abbreviation play no part."""
    if isinstance(value, (str, int, float)) or value is None:
        return repr(value)
    if id(value) in inside:
        return "itself"
    if isinstance(value, CodeType):
        return repr((value.co_code, value.co_names, [_value_text(one, inside) for one in value.co_consts]))
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        inside = (*inside, id(value))
        parts = [_value_text(one, inside) for one in (value.items() if isinstance(value, dict) else value)]
        return type(value).__name__ + repr(sorted(parts) if isinstance(value, (set, frozenset)) else parts)
    if isinstance(value, (np.ndarray, pd.Series, pd.DataFrame)):
        frame = pd.DataFrame(np.ravel(value) if isinstance(value, np.ndarray) else value)
        hashes = pd.util.hash_pandas_object(frame.astype(str)).to_numpy()
        return f"{type(value).__name__} {np.shape(value)} {list(frame.columns)} {_digest(hashes.tobytes().hex())}"
    return _label(value, inside)


def _digest(*texts: str) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=4).hexdigest()


# Columns of results, not of documents.
_RESULT_COLUMNS = ("qid", "query", "score", "rank")


class Tagger(Protocol):
    """Protocol of taggers: find tags for the rows of a frame."""

    columns: tuple[str, ...]  # the input columns
    weighted: bool  # True if tags are weighted by default
    per_query: bool  # True if tags may differ between queries
    decides: bool  # True if tags say which of them a tie decided

    def find(self, frame: pd.DataFrame) -> FoundTags:
        """Return the tags of each row, in any order, possibly repeated."""


class ByDocno:
    """Tag every document with its id, for collections of entities."""

    columns: tuple[str, ...] = (DOCNO,)
    weighted, per_query, decides = False, False, False

    def find(self, frame: pd.DataFrame) -> FoundTags:
        """Return one tag for every row."""
        docno = column_ids(frame["docno"], "run column 'docno'")
        return FoundTags(np.arange(len(docno)), docno, np.ones(len(docno)))


class ByTable:
    """Tag documents from a table."""

    weighted = True

    def __init__(self, table: TagTable) -> None:
        self.table, self.decides = table, table.tied is not None
        self.per_query = table.topics is not None
        self.columns: tuple[str, ...] = ("qid", DOCNO) if self.per_query else (DOCNO,)

    def find(self, frame: pd.DataFrame) -> FoundTags:
        """Return the tags of each row's document, with a warning if no document has any."""
        row, place = self.table.find(frame)
        if len(frame) and not len(row) and len(self.table.docno):
            warn(
                f"no document has {self.table.name}: {examples(self.table.docno.text[:4].to_pylist())} against "
                f"{examples(frame['docno'].iloc[:4])}; check prefixes and ids"
            )
        tags = row, self.table.entity.take(place), self.table.weight[place]
        if self.table.tied is None:
            return FoundTags(*tags)
        n_abstained = np.zeros(len(frame), dtype=np.int64)
        if self.table.n_abstained is not None:
            np.maximum.at(n_abstained, row, self.table.n_abstained[place])
        return FoundTags(*tags, tied=self.table.tied[place], n_abstained=n_abstained)


class ByFunction:
    """Tag documents with a function from a frame of documents to a frame of tags."""

    weighted, decides = True, False

    def __init__(self, function: Callable[[pd.DataFrame], Any], *, per_query: bool) -> None:
        self.function, self.per_query = function, per_query
        self.columns: tuple[str, ...] = ("qid", DOCNO) if per_query else (DOCNO,)

    def find(self, frame: pd.DataFrame) -> FoundTags:
        """Request the tags of every document once, or once per query."""
        documents = frame.drop_duplicates(["qid", DOCNO]) if self.per_query else self._distinct_documents(frame)
        tags = pandas_frame(self.function(documents.reset_index(drop=True)), "the result of the tagger")
        table = TagTable(tags, name="tags from the tagger")
        if table.topics is not None and not self.per_query:
            raise InputError(f"{source_name(self.function)}: returned tags with qid; drop it, or pass per_query=True")
        return ByTable(table).find(frame)._replace(tied=None, n_abstained=None)

    @staticmethod
    def _distinct_documents(frame: pd.DataFrame) -> pd.DataFrame:
        inputs = frame.drop(columns=[name for name in _RESULT_COLUMNS if name in frame.columns])
        texts = [name for name in inputs.columns if pd.api.types.infer_dtype(inputs[name], skipna=True) == "string"]
        documents = inputs.drop_duplicates(DOCNO)
        with_texts = inputs[[DOCNO, *(name for name in texts if name != DOCNO)]].drop_duplicates()
        if len(with_texts) > len(documents):
            docno = with_texts.loc[with_texts.duplicated(DOCNO), DOCNO].iloc[0]
            raise InputError(
                f"document {docno!r} has two texts, but a function of frames tags documents; pass per_query=True, or "
                "drop the column that differs"
            )
        return documents


def make_tagger(
    source: Any,
    *,
    fields: tuple[str, ...] | None,
    per_query: bool,
    best: bool,
    cache: bool,
    on_ties: str,
    min_margin: float,
) -> Tagger:
    """Return the tagger of a user's parameter."""
    if isinstance(source, str) and source == DOCNO:
        return ByDocno()
    if isinstance(source, (str, os.PathLike)) or is_frame(source):
        return ByTable(TagTable(named_frame("tags", source)))
    is_linker = callable(getattr(source, "link", None))
    if not is_linker and not callable(source):
        raise ParameterError(
            f"tagger={excerpt(source)}: wanted 'docno', a linker, a frame or file of tags, or a "
            "function of a text or a frame"
        )
    if not is_linker and fields is None:
        return ByFunction(source, per_query=per_query)
    if not fields:
        raise ParameterError(f"fields={fields!r}: {source_name(source)} reads texts; pass their columns")
    read = Linked(source, best, on_ties, min_margin) if is_linker else partial(read_by_function, source)
    return ByText(fields, read, weighted=not is_linker, cache=cache, decides=is_linker and best)
