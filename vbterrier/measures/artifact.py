"""Intents and tags in a folder, with measures bound to them.

The module is part of this package because layers below the measures do not know them.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyterrier as pt

from vbterrier.errors import FileError, InputError, path_parameter
from vbterrier.frames.contracts import pandas_frame
from vbterrier.frames.files.source import MAX_BYTES, Source, is_folder, parse_json, read_content, require_regular
from vbterrier.frames.files.tables import parquet_table
from vbterrier.frames.files.writing import new_folder
from vbterrier.frames.ids import column_ids
from vbterrier.frames.named import SET_PREFIX, register_intents, register_tags
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.results import Shown
from vbterrier.hosts.pyterrier import META_FILE
from vbterrier.intents.coverage import Intents, Tags
from vbterrier.intents.parts import PARTS
from vbterrier.measures import intents as ambiguous

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import ir_measures

    from vbterrier.annotations import StrPath
    from vbterrier.frames.results import Figures


_INTENTS, _TAGS = "intents.parquet", "tags.parquet"
_TOPICS, _LABELS, _DATASHEET = "topics.parquet", "annotations.parquet", "datasheet.md"
_MAX_DATASHEET = 1 << 24
_IDS = ("qid", "docno", "entity_id")


class _Bound:
    """A measure over the intents and tags of a set, as an attribute of the set."""

    def __init__(self, measure: ir_measures.Measure) -> None:
        self._measure = measure

    def __get__(self, artifact: IntentSet | None, _owner: type) -> Any:
        return self._measure if artifact is None else self._measure(**artifact.names)


class IntentSet(Shown, pt.Artifact):  # type: ignore[misc]
    """Candidate intents of queries, and tags of documents, in a folder that PyTerrier saves, loads and shares.

    ``VB``, ``ES``, ``VarPenalty`` and ``TopIntent`` of the set are the measures of these names with its intents and
    tags: ``IntentSet(path).VB @ 10``. Without tags in the set, measures take them from the run. Further
    parameters are given in brackets: ``IntentSet(path).VB(alpha=0.5, nil="NIL") @ 10``.

    Parameters
    ----------
    path
        A folder created by :meth:`build`.

    Raises
    ------
    FileError
        A missing folder, or a folder with other content.

    Notes
    -----
    Bound measures refer to the data by a name derived from its content, so two measures are equal exactly when their
    parameters and data are, independently of the path and the order of rows. Like all measures they are plain text,
    which is valid in processes that have opened the set. Two sets are equal if they are the same folder.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pandas as pd
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [0.8, 0.2]})
    >>> tags = pd.DataFrame({"docno": ["d1"], "entity_id": ["A"]})
    >>> jordan = IntentSet.build(pathlib.Path(tempfile.mkdtemp(), "jordan"), intents, tags)
    >>> run = pd.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.0]})
    >>> qrels = pd.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "relevance": [1]})
    >>> (jordan.ES @ 10).calc_aggregate(qrels, run)
    0.8
    >>> IntentSet(jordan.path).VB @ 10 == jordan.VB(alpha=1) @ 10
    True
    """

    ARTIFACT_TYPE = "intent_set"
    ARTIFACT_FORMAT = "vbterrier"
    ARTIFACT_PACKAGE_HINT = "vbterrier"

    VB = _Bound(ambiguous.VB)
    ES = _Bound(ambiguous.ES)
    VarPenalty = _Bound(ambiguous.VarPenalty)
    TopIntent = _Bound(ambiguous.TopIntent)

    def __init__(self, path: StrPath) -> None:
        super().__init__(path_parameter("path", path))
        root, identity = self.path, {"type": self.ARTIFACT_TYPE, "format": self.ARTIFACT_FORMAT}
        require_regular(*(root / name for name in (META_FILE, _INTENTS, _TAGS, _TOPICS, _LABELS, _DATASHEET)))
        try:
            meta = parse_json(read_content(root / META_FILE, 1 << 16))
        except OSError as error:
            what = "is no IntentSet" if is_folder(root) else "is no folder"
            raise FileError(root, f"{what}: {META_FILE} cannot be read ({error.strerror or error})") from error
        except (ValueError, RecursionError) as error:
            raise FileError(root / META_FILE, f"is no JSON ({error}); build the set again") from error
        if not isinstance(meta, dict) or {name: meta.get(name) for name in identity} != identity:
            raise FileError(
                root / META_FILE, f"wanted {identity}, found {meta!r:.200}; pt.Artifact.load finds who reads it"
            )
        if not (root / _INTENTS).is_file():
            raise FileError(root / _INTENTS, "is missing; build the set again")

    @classmethod
    def build(
        cls,
        path: StrPath,
        intents: Any,
        tags: Any = None,
        *,
        topics: Any = None,
        annotations: Any = None,
        datasheet: str = "",
    ) -> IntentSet:
        """Save intents and tags, and what documents them, in a new folder.

        Parameters
        ----------
        path
            A folder that does not exist yet. It is created atomically.
        intents, tags
            Columns qid, entity_id, prob; columns docno, entity_id, and optionally weight and qid; and any others.
        topics, annotations, datasheet
            The queries, qid, query; the labels that the intents are based on, qid, entity_id and any others; and a
            description of the set in Markdown, see :func:`vbterrier.evaluate.annotate`.

        Raises
        ------
        InputError, FileError
            See the contracts of intents and tags; a column that Parquet cannot store; the path exists, or the folder
            cannot be written.
        """
        import pyarrow.parquet as pq

        path = path_parameter("path", path)
        Intents(intents, together=PARTS in pandas_frame(intents, "intents").columns)
        tables = {_INTENTS: _arrow_table(intents, "intents")}
        if tags is not None:
            Tags(tags)
            tables[_TAGS] = _arrow_table(tags, "tags")
        for name, frame, what in ((_TOPICS, topics, "topics"), (_LABELS, annotations, "annotations")):
            if frame is not None:
                tables[name] = _arrow_table(frame, what)
        meta = {"type": cls.ARTIFACT_TYPE, "format": cls.ARTIFACT_FORMAT, "package_hint": cls.ARTIFACT_PACKAGE_HINT}
        with new_folder(path) as part:
            for name, table in tables.items():
                pq.write_table(table, part / name)
            if datasheet:
                (part / _DATASHEET).write_text(datasheet, encoding="utf-8")
            (part / META_FILE).write_text(json.dumps(meta) + "\n", encoding="utf-8")
        return cls(path)

    def to_frame(self) -> pd.DataFrame:
        """Return the intents, an I frame."""
        return self.intents()

    def _panels(self) -> Iterator[Panel]:
        n_qids = self._intents["qid"].nunique()
        yield Panel(f"Intents of {count_text(n_qids, 'query')}", self._intents, heads=2)
        if self._tags is not None:
            yield Panel(f"Tags of {count_text(self._tags['docno'].nunique(), 'document')}", self._tags)

    def _figures(self) -> Figures:
        return {"coverage_map": lambda: {"intents": self._intents, "tags": self._tags}}

    def intents(self) -> pd.DataFrame:
        """The intents, with all their columns."""
        return self._intents.copy()

    def tags(self) -> pd.DataFrame | None:
        """The tags; ``None`` for a set without tags."""
        return None if self._tags is None else self._tags.copy()

    def topics(self) -> pd.DataFrame | None:
        """The queries; ``None`` for a set without queries."""
        path = self.path / _TOPICS
        return _frame(path, ("qid", "query")) if path.exists() else None

    def annotations(self) -> pd.DataFrame | None:
        """The labels that the intents are based on; ``None`` for a set without labels."""
        path = self.path / _LABELS
        return _frame(path, ("qid", "entity_id")) if path.exists() else None

    def datasheet(self) -> str:
        """The description of the set in Markdown; empty without one. Raises FileError: too large, or no UTF-8."""
        path = self.path / _DATASHEET
        if not path.exists():
            return ""
        try:
            return Source.at(path, _MAX_DATASHEET).text().decode()
        except UnicodeDecodeError as error:
            raise FileError(path, "is not UTF-8; build the set again") from error

    @property
    def digest(self) -> str:
        """SHA-256 of the intents: queries, entities and probabilities, in any order of rows."""
        return intents_digest(self._intents)

    @cached_property
    def _intents(self) -> pd.DataFrame:
        return _frame(self.path / _INTENTS, ("qid", "entity_id", "prob"), "prob")

    @cached_property
    def _tags(self) -> pd.DataFrame | None:
        path = self.path / _TAGS
        return _frame(path, ("docno", "entity_id"), "weight") if path.exists() else None

    @cached_property
    def names(self) -> dict[str, str]:
        """The parameters ``intents`` and ``tags`` of the bound measures."""
        intents = _content(self._intents, ["qid", "entity_id"], "prob")
        names = {"intents": _name(intents)}
        register_intents(names["intents"], intents)
        if self._tags is not None:
            keys = [name for name in ("qid", "docno", "entity_id") if name in self._tags.columns]
            tags = _content(self._tags, keys, "weight")
            names["tags"] = _name(tags)
            register_tags(names["tags"], tags)
        return names

    def __reduce__(self) -> tuple[type[IntentSet], tuple[Path]]:
        # The folder alone: registered names of this process are unknown where a copy is opened.
        return type(self), (self.path,)

    def __eq__(self, other: object) -> bool:
        return self.path.resolve() == other.path.resolve() if isinstance(other, IntentSet) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.path.resolve()))

    def __repr__(self) -> str:
        return f"IntentSet({str(self.path)!r})"


def _arrow_table(data: Any, what: str) -> pa.Table:
    """Convert a frame to Arrow, with ids as text."""
    frame = pandas_frame(data, what)
    frame = frame.assign(
        **{
            name: pd.Series(
                column_ids(frame[name], f"{what} column {name!r}").text.to_pylist(), index=frame.index, dtype="str"
            )
            for name in _IDS
            if name in frame.columns
        }
    )
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InputError(f"{what}: cannot be saved ({error}); drop or convert the column") from error


def _frame(path: Path, required: tuple[str, ...], *numbers: str) -> pd.DataFrame:
    """Read a saved frame, with lists as Python lists."""
    table = parquet_table(Source.at(path, MAX_BYTES), required, numbers)
    frame: pd.DataFrame = table.to_pandas()
    lists = [field.name for field in table.schema if pa.types.is_list(field.type) or pa.types.is_large_list(field.type)]
    return frame.assign(**{name: pd.Series(table[name].to_pylist(), dtype=object) for name in lists})


def _content(frame: pd.DataFrame, keys: list[str], number: str) -> pd.DataFrame:
    """The columns that measures read, in a canonical order."""
    value = frame[number].astype("float64") if number in frame.columns else 1.0
    content = frame[keys].assign(**{number: value})
    return content.sort_values([*keys, number], ignore_index=True)


def intents_digest(intents: pd.DataFrame) -> str:
    """SHA-256 of the columns qid, entity_id and prob of intents, in any order of rows."""
    return _digest(_content(intents, ["qid", "entity_id"], "prob"))


def _name(content: pd.DataFrame) -> str:
    """A name derived from the content."""
    return f"{SET_PREFIX}{_digest(content)[:16]}"


def _digest(content: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    for name in content.columns:
        column = content[name]
        is_number = pd.api.types.is_float_dtype(column)
        digest.update(column.to_numpy("<f8").tobytes() if is_number else json.dumps(column.tolist()).encode())
    return digest.hexdigest()
