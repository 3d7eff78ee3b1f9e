"""Builders of knowledge bases from records, JSON lines or tab-separated columns."""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from vbterrier.errors import (
    FileError,
    InputError,
    ParameterError,
    nearest,
    number,
    path_parameter,
    settings_parameter,
    warn,
)
from vbterrier.frames.columns import COUNTS, entity_columns, like_counts
from vbterrier.frames.contracts import near_miss, pandas_frame, require
from vbterrier.frames.files.reading import read_popularity
from vbterrier.frames.files.source import MAX_BYTES, RepeatedMemberError, Source, parse_json, refuse_constant
from vbterrier.frames.files.spreadsheets import workbook_as_csv
from vbterrier.frames.id_spaces import id_in
from vbterrier.linking.kb.building import building
from vbterrier.linking.kb.sqlite import TYPES
from vbterrier.linking.kb.staging import numbered_lines, quoted_text
from vbterrier.log import bar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.codes import Spellings
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase
    from vbterrier.linking.kb.staging import Staging


_KEYS = ("id", "label", "aliases", "attributes", "redirects")
_ALIAS_KEYS = {"alias", "prior", "count"}
# Columns of tables, which are no keys of entities.
_SINGULAR = {
    "alias": "aliases, a list of texts or of pairs [text, prior]",
    "prior": "aliases with their priors, a list of pairs [text, prior]",
    "redirect": "redirects, a list of ids",
}
_NO_ATTRIBUTES = frozenset((*_KEYS, *COUNTS))
# Types of values that are no empty cells, which is faster to see than that others are none.
_PRESENT = frozenset({str, int, bool, list, tuple, dict})
_PAIR_LENGTH = 2
_YEAR = re.compile(r"[+-]?\d{1,6}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?")
_PATTERNS = {"number": _NUMBER, "year": _YEAR}
_SLICE = 10_000
_SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}

_COLUMNS = ("label", "alias", "aliases", "prior", "redirect")


@dataclass(frozen=True, eq=False)
class EntityPriors:
    """Source and smoothing of the priors of candidates that a knowledge base computes from counts: ``priors=``.

    The prior of an entity e given its alias m is ``p(e|m) ∝ c + a``, from the counts c of m and e, or of e.

    Parameters
    ----------
    popularity
        Counts of entities, such as page views or numbers of links: a mapping of ids to numbers, a frame (entity_id,
        count), or the path of one (TSV, CSV, also .gz). They are added to those in the source of the knowledge base,
        except in :func:`vbterrier.linking.kb_from_wikidata`, where they replace the numbers of sitelinks; ``{}`` then
        stands for equal probabilities.
    smoothing
        a, at least 0. The default of 1 leaves entities without counts a small probability.

    Raises
    ------
    ParameterError
        ``smoothing`` below 0.

    Examples
    --------
    >>> EntityPriors({"Q90": 1200, "Q167646": 30}, smoothing=0.5).smoothing
    0.5
    """

    popularity: Any = None
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        number("smoothing", self.smoothing, low=0)


def build_kb(
    path: str | os.PathLike[str],
    entities: Iterable[Mapping[str, Any]] | Any,
    *,
    id_space: str,
    types: Mapping[str, str] | None = None,
    labels_are_aliases: bool = True,
    spellings: Spellings | None = None,
    priors: EntityPriors | None = None,
    progress: bool = True,
) -> KnowledgeBase:
    """Build a knowledge base from entities.

    Parameters
    ----------
    path
        The file; an existing one is replaced when the new one is complete.
    entities
        An iterable of mappings (a generator is read one item at a time), or a frame, with these keys or columns:

        - ``id``: text;
        - ``label``: the name, optional;
        - ``aliases``: a list of texts, pairs ``[text, prior]``, or mappings ``{"alias": text, "prior": prior}``. A
          prior is the probability of the entity given the alias, in [0, 1];
        - ``attributes``: a mapping of names to values: text, number, boolean, or a list of these; ``None`` is no value;
        - ``redirects``: a list of ids that redirect to this one;
        - ``count`` (or ``clicks``, ``views``, ``inlinks``, ``sitelinks``): how often the entity is meant, looked at or
          linked, at least 0. Aliases that are mappings may have a ``count`` of their own.

        Every other key is an attribute. The records of a repeated entity are merged, and its counts are added.
    id_space
        The name of the id space, such as ``"wikidata"``, or any other name.
    types
        The types of text attributes, such as ``{"born": "year"}``: text, number, year or boolean. Values are stored as
        text; numbers and booleans in JSON or Python have these types by default.
    labels_are_aliases
        Use labels as aliases, and labels such as "Mercury (planet)" also without their parenthesis.
    spellings
        Names of values of attributes, as ``{"state": {"NY": ["New York"]}}``, with which
        :class:`vbterrier.linking.ContextLinker` and :class:`vbterrier.RelaxConstraints` read codes. By default, if at
        least 90 % of the values of an attribute state, chamber or party are codes of the USA, their names; ``{}`` for
        none.
    priors
        :class:`vbterrier.linking.EntityPriors`: further counts of entities, and the smoothing of priors from counts.
    progress
        Show a progress bar for long builds on a terminal.

    Returns
    -------
    KnowledgeBase
        The knowledge base, opened read-only.

    Raises
    ------
    InputError
        An id or alias that is not text, blank, too long, or contains a NUL; a prior outside [0, 1], a count below 0;
        two labels of one id; a value that is not of its type. The error names the number of the entity, from 0.
    FileError
        The file cannot be written.

    Warns
    -----
    DegenerateWarning
        The number of aliases whose priors do not sum to 1 or are partly missing, and of cyclic redirects.

    Examples
    --------
    >>> import tempfile
    >>> foxes = [
    ...     {"id": "Q8331", "label": "red fox", "aliases": [["fox", 0.25]]},
    ...     {"id": "Q166419", "label": "Fox", "aliases": [["FOX", 1.0], ["fox", 0.75]]},
    ... ]
    >>> with build_kb(f"{tempfile.mkdtemp()}/foxes.kb", foxes, id_space="wikidata") as kb:
    ...     kb.lookup(["fox"], how="exact")[["entity_id", "score", "name"]].values.tolist()
    [['Q166419', 0.75, 'Fox'], ['Q8331', 0.25, 'red fox']]
    """
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    reader = Records(types, id_space, labels_are_aliases=labels_are_aliases)

    def record_error(row: int, message: str) -> InputError:
        return InputError(f"entities: number {row}: {message}")

    priors = settings_parameter("priors", EntityPriors, priors)
    options: dict[str, Any] = {"spellings": spellings, "smoothing": priors.smoothing, "progress": progress}
    with building(path, id_space, record_error, **options) as staging:
        records = bar(_entity_records(entities), "entities", unit="entity", shown=progress, delay=2)
        for row, record in enumerate(records):
            reader.stage(staging, row, record)
        for entity, count in counted_entities(priors.popularity):
            staging.popularity(0, reader.plain(staging, 0, entity), count)
    return KnowledgeBase(path)


class Records:
    """A reader of entities from mappings."""

    def __init__(self, types: Mapping[str, str] | None, id_space: str, *, labels_are_aliases: bool) -> None:
        self.types, self.id_space, self.labels_are_aliases = dict(types or {}), id_space, labels_are_aliases
        # The names of the keys of each kind of record.
        self._names: dict[tuple[Any, ...], list[Any]] = {}
        for name, kind in self.types.items():
            if kind not in TYPES:
                choices = ", ".join(map(repr, TYPES))
                raise ParameterError(
                    f"types: {name!r} is {kind!r}, wanted one of {choices}.{nearest(str(kind), TYPES)}"
                )

    def plain(self, staging: Staging, row: int, entity: Any) -> Any:
        """Return an id in the spelling of the id space; what is no text is refused when it is staged."""
        try:
            return id_in(entity, self.id_space) if isinstance(entity, str) and entity.strip() else entity
        except ValueError as error:
            raise staging.record_error(row, f"the id {quoted_text(entity)} {error}") from None

    def stage(self, staging: Staging, row: int, record: Any) -> None:
        """Stage one entity with its aliases, attributes and redirects."""
        # Abstract base classes are slow to compare with.
        if type(record) is not dict and not isinstance(record, Mapping):
            requirement = f"a mapping with the keys {', '.join(_KEYS)}"
            raise staging.record_error(row, f"is {type(record).__name__}, wanted {requirement}")
        record = self._rename_keys(record)
        entity = record.get("id")
        if entity is None:
            keys = ", ".join(map(str, list(record)[:9])) or "none"
            raise staging.record_error(row, f"has no id; wanted the keys {', '.join(_KEYS)}, found {keys}")
        if not _SINGULAR.keys().isdisjoint(record):
            name = next(name for name in _SINGULAR if name in record)
            raise staging.record_error(row, f"key {name!r} of {quoted_text(entity)}: wanted {_SINGULAR[name]}")
        entity = self.plain(staging, row, entity)
        label: Any = record.get("label")
        label = "" if _is_missing(label) else label
        staging.entity(row, entity, label)
        for text, prior, count in self._aliases(staging, row, entity, record.get("aliases")):
            staging.alias(row, entity, text, prior, count)
        for name in COUNTS:
            if name in record and not _is_missing(record[name]):
                staging.popularity(row, entity, record[name])
        # If a label is also an alias with a prior, the prior counts.
        if self.labels_are_aliases and label:
            staging.alias(row, entity, label)
            if label.endswith(")") and (name := strip_qualifier(label)) != label:
                staging.alias(row, entity, name)
        self._attributes(staging, row, entity, record)
        for source in _as_list(staging, row, entity, "redirects", record.get("redirects")):
            staging.redirect(row, self.plain(staging, row, source), entity)

    def _rename_keys(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a record with the names of this package for its keys."""
        keys = tuple(record)
        names = self._names.get(keys)
        if names is None:
            columns = entity_columns([str(key) for key in keys])
            # Keys of tables with a row for each alias have no meaning in a record.
            names = [key if name in _SINGULAR else name for key, name in zip(keys, columns, strict=True)]
            self._names[keys] = names
        return record if names == list(keys) else dict(zip(names, record.values(), strict=True))

    @staticmethod
    def _aliases(staging: Staging, row: int, entity: str, aliases: Any) -> Iterator[tuple[Any, Any, Any]]:
        for alias in _as_list(staging, row, entity, "aliases", aliases):
            if isinstance(alias, str):
                yield alias, None, None
            elif isinstance(alias, (list, tuple)) and len(alias) == _PAIR_LENGTH:
                yield alias[0], alias[1], None
            elif isinstance(alias, Mapping) and "alias" in alias and _ALIAS_KEYS.issuperset(alias):
                yield alias["alias"], alias.get("prior"), alias.get("count")
            else:
                requirement = 'text, [text, prior] or {"alias": text, "prior": prior}'
                raise staging.record_error(
                    row, f"alias {quoted_text(alias)} of {quoted_text(entity)}: wanted {requirement}"
                )

    def _attributes(self, staging: Staging, row: int, entity: str, record: Mapping[str, Any]) -> None:
        attributes = record.get("attributes")
        if attributes is not None and not _is_missing(attributes) and not isinstance(attributes, Mapping):
            fault = f"wanted a mapping of names to values, found {type(attributes).__name__}"
            raise staging.record_error(row, f"attributes of {quoted_text(entity)}: {fault}")
        further = [(name, value) for name, value in record.items() if name not in _NO_ATTRIBUTES]
        pairs = attributes.items() if attributes and isinstance(attributes, Mapping) else ()
        for name, value in (*pairs, *further):
            for one in value if isinstance(value, (list, tuple)) else (value,):
                if not _is_missing(one):
                    staging.attribute(row, entity, name, *self._check_value(staging, row, entity, name, one))

    def _check_value(self, staging: Staging, row: int, entity: str, name: str, value: Any) -> tuple[str, str]:
        """Return a value as text, and its type."""
        text, kind = text_and_type(value)
        declared = self.types.get(name, kind)
        if declared == kind == "text":
            return text, kind
        if declared == "boolean":
            valid = text.lower() in {"true", "false"}
        else:
            valid = declared == "text" or bool(_PATTERNS.get(declared, _YEAR).fullmatch(text.strip()))
        if not kind or not valid:
            what = f"a {declared}" if kind else "text, a number, a boolean, or a list of them"
            raise staging.record_error(
                row, f"{quoted_text(name)} of {quoted_text(entity)} is {quoted_text(value)}, wanted {what}"
            )
        return (text.lower() if declared == "boolean" else text), declared


def text_and_type(value: Any) -> tuple[str, str]:
    """Return a value as text, and its type; an empty type if it is neither text, number nor boolean."""
    if isinstance(value, str):
        return value, "text"
    if pd.api.types.is_bool(value):
        return str(bool(value)).lower(), "boolean"
    if pd.api.types.is_integer(value):
        return str(int(value)), "number"
    if pd.api.types.is_float(value) and math.isfinite(value):
        return repr(float(value)), "number"
    return "", ""


def strip_qualifier(label: str) -> str:
    """Return a title without its qualifier in parentheses.

    >>> strip_qualifier("Mercury (planet)"), strip_qualifier("(Sic)"), strip_qualifier("AC/DC")
    ('Mercury', '(Sic)', 'AC/DC')
    """
    return (label[: label.rindex("(")].strip() if label.endswith(")") and "(" in label else "") or label


def _is_missing(value: Any) -> bool:
    """Return True for an empty cell: None, NaN, NaT or NA."""
    if value is None or type(value) in _PRESENT or isinstance(value, Mapping):
        return value is None
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _as_list(staging: Staging, row: int, entity: str, what: str, values: Any) -> list[Any]:
    if values is None or _is_missing(values):
        return []
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        raise staging.record_error(
            row, f"{what} of {quoted_text(entity)}: wanted a list, found {type(values).__name__}"
        )
    return list(values)


def _entity_records(entities: Any) -> Iterable[Any]:
    if isinstance(entities, pd.DataFrame):
        slices = (entities.iloc[begin : begin + _SLICE] for begin in range(0, len(entities), _SLICE))
        return (row for part in slices for row in part.to_dict("records"))
    if hasattr(entities, "__arrow_c_stream__"):
        # Not through pandas, which does not support lists of polars strings.
        return (row for batch in pa.table(entities).to_batches(_SLICE) for row in batch.to_pylist())
    if isinstance(entities, (str, bytes, Mapping)) or not hasattr(entities, "__iter__"):
        raise InputError(f"entities: wanted an iterable of mappings or a frame, found {type(entities).__name__}")
    iterable: Iterable[Any] = entities
    return iterable


def kb_from_file(
    path: StrPath,
    source: StrPath,
    *,
    id_space: str,
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    labels_are_aliases: bool = True,
    spellings: Spellings | None = None,
    priors: EntityPriors | None = None,
    max_bytes: int | None = MAX_BYTES,
    progress: bool = True,
) -> KnowledgeBase:
    r"""Build a knowledge base from JSON lines or a table, plain, gzip or bzip2, or a spreadsheet.

    A file whose first line begins with ``{`` is read as JSON. The columns of a table are separated by tabs, or else by
    commas, semicolons or bars; of an .xlsx file (extra ``xlsx``) the first sheet is read.

    Parameters
    ----------
    path, id_space, types, labels_are_aliases, spellings, priors, progress
        As in :func:`build_kb`, with the same warnings.
    source
        JSON lines with one entity per line and the keys of :func:`build_kb`. Or a header line and rows with ``id`` and
        any of ``label``, ``alias`` (one), ``aliases`` (several, separated by ``|``), ``prior`` or ``score`` (the
        probability of the entity given the alias), ``count`` or ``clicks`` (of the alias if the row has one, and of the
        entity), and ``redirect`` (an id that redirects to this one); every other column is an attribute. Columns and
        keys are also known by other names in any case, as ``entity_id``, ``name``, ``title``, ``synonyms`` and
        ``popularity``, if there is no column of the first name. Cells may be
        empty, an id may have many rows, and in tab-separated files quotes and escapes have no meaning.
    columns
        The columns of a file without a header line.
    max_bytes
        The maximum size when decompressed; ``None`` for no limit.

    Returns
    -------
    KnowledgeBase
        The knowledge base, opened read-only.

    Raises
    ------
    FileError
        Invalid JSON, a wrong number of columns, or input that :func:`build_kb` refuses; names the line.

    Warns
    -----
    DegenerateWarning
        See :func:`build_kb`; also a table without names, or with an attribute whose name is like that of a count.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = ["id\tlabel\talias\tborn", "B1\tGeorge Bush\tBush\t1924", "B1\t\tBush Senior\t"]
    >>> rows += ["B2\tKate Bush\tBush\t1958"]
    >>> _ = (folder / "people.tsv").write_text("\n".join(rows))
    >>> with kb_from_file(folder / "people.kb", folder / "people.tsv", id_space="people", types={"born": "year"}) as kb:
    ...     kb.lookup(["bush", "bush senior"])[["text", "entity_id", "score"]].values.tolist()
    [[0, 'B1', 0.5], [0, 'B2', 0.5], [1, 'B1', 1.0]]
    """
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    source = path_parameter("source", source)
    reader = Records(types, id_space, labels_are_aliases=labels_are_aliases)
    lines = _sheet_lines(source, max_bytes) or numbered_lines(source, max_bytes=max_bytes, progress=progress)

    def record_error(line: int, message: str) -> FileError:
        return FileError(source, message, line=line)

    priors = settings_parameter("priors", EntityPriors, priors)
    options: dict[str, Any] = {"spellings": spellings, "smoothing": priors.smoothing, "progress": progress}
    with building(path, id_space, record_error, **options) as staging:
        filled = ((number, line) for number, line in lines if line.strip())
        for line, record in _records(source, filled, columns):
            reader.stage(staging, line, record)
        for entity, count in counted_entities(priors.popularity):
            staging.popularity(0, reader.plain(staging, 0, entity), count)
    return KnowledgeBase(path)


def _sheet_lines(path: Path, max_bytes: int | None) -> Iterator[tuple[int, bytes]] | None:
    """Return the lines of a spreadsheet as those of a CSV file; ``None`` for other files."""
    source = Source.at(path, max_bytes)
    if not source.is_workbook:
        return None
    return enumerate((workbook_as_csv(source).content or b"").splitlines(), 1)


def parse_json_line(path: Path, line: int, text: bytes) -> Any:
    """Parse the JSON of a line."""
    try:
        return parse_json(text, parse_constant=refuse_constant)
    except RepeatedMemberError as error:
        raise FileError(path, str(error), line=line) from error
    except RecursionError as error:
        raise FileError(path, "nests too deeply; wanted an entity", line=line) from error
    except ValueError as error:
        # Invalid JSON, invalid UTF-8, and numbers with thousands of digits.
        raise FileError(path, f"is not JSON in UTF-8 ({error}); wanted one entity per line", line=line) from error


def _records(
    path: Path, lines: Iterator[tuple[int, bytes]], columns: Sequence[str] | None
) -> Iterator[tuple[int, Any]]:
    first = next(lines, None)
    if first is None:
        raise FileError(path, "is empty; wanted one entity per line")
    if first[1].lstrip().startswith(b"{"):
        if columns is not None:
            raise ParameterError("columns: not used for JSON lines, whose keys name the columns; leave it out")
        return ((number, parse_json_line(path, number, line)) for number, line in chain([first], lines))
    # Quotes have a meaning in all tables but those separated by tabs.
    separator = (
        "\t" if b"\t" in first[1] else max(list(_SEPARATORS)[1:], key=lambda sign: first[1].count(sign.encode()))
    )
    if separator.encode() not in first[1]:
        separator = "\t"
    if columns is None:
        columns = _row_cells(path, *first, separator)
    else:
        lines = chain([first], lines)
    columns = _columns(path, columns)
    cells = ((number, _row_cells(path, number, line, separator)) for number, line in lines)
    separated = _SEPARATORS[separator]
    return _records_of_rows(path, columns, cells, separated)


def _columns(path: Path, header: Sequence[str]) -> list[str]:
    """Return the columns of a table with the names of this package, after checks."""
    columns = entity_columns(header)
    twice = [name for name, n in Counter(columns).items() if n > 1]
    if "id" not in columns or twice:
        fault = f"duplicate column {twice[0]!r}" if twice else f"no column 'id' among {', '.join(map(repr, header))}"
        requirement = (
            f"a tab-separated header line with id and any of {', '.join(_COLUMNS)}, or columns= with their names"
        )
        raise FileError(path, f"{fault}; wanted {requirement}.{nearest('id', header)}")
    if {"alias", "aliases"} & set(columns):
        if {"prior", "score"} <= set(columns):
            raise FileError(path, "has the columns prior and score, two probabilities of an alias; keep one")
        # A column of scores is one of probabilities.
        columns = ["prior" if name == "score" else name for name in columns]
        if message := near_miss(columns, ("prior",)):
            raise FileError(path, f"{message} or name it otherwise, to keep it as an attribute")
    elif not {"label", "prior", "redirect"} & set(columns):
        header_text = ", ".join(map(repr, header))
        warn(f"{path.name}: entities have no names; wanted a column 'label', 'alias' or 'aliases', found {header_text}")
    if counts := like_counts(columns):
        warn(
            f"{path.name}: column {counts[0]!r} is kept as an attribute; if it is a count, call it 'count' or 'clicks'"
        )
    return columns


def _row_cells(path: Path, number: int, line: bytes, separator: str) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise FileError(path, f"is not UTF-8 ({error.reason}); save the file as UTF-8", line=number) from error
    if separator == "\t":
        return text.split("\t")
    try:
        return next(csv.reader([text], delimiter=separator, strict=True))
    except csv.Error as error:
        raise FileError(
            path, f"cannot be split at its {_SEPARATORS[separator]}s ({error}); is a quote missing?", line=number
        ) from error


def _records_of_rows(
    path: Path, columns: Sequence[str], rows: Iterable[tuple[int, list[str]]], separated: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the numbers of lines, and their cells as records."""
    # A column that the table lacks is the empty cell behind the last one.
    place = dict.fromkeys(_COLUMNS, -1) | {name: at for at, name in enumerate(columns)}
    of_id, *others = (place.pop(name) for name in ("id", *_COLUMNS))
    of_label, of_alias, of_aliases, of_prior, of_redirect = others
    counts = [(name, place.pop(name)) for name in COUNTS if name in place]
    for line, cells in rows:
        if len(cells) != len(columns):
            fault = f"has {len(cells)} {separated}-separated cells, wanted {len(columns)}: {', '.join(columns)}"
            raise FileError(path, fault, line=line)
        cells.append("")
        alias, prior, aliases = cells[of_alias], cells[of_prior], cells[of_aliases]
        if prior and (not alias or aliases):
            raise FileError(path, "has a prior, wanted exactly one alias with it", line=line)
        counted = {name: cells[at] for name, at in counts if cells[at]}
        # The count of a row with one alias is also that of the alias.
        count = next(iter(counted.values()), None)
        one = [{"alias": alias, "prior": prior or None, "count": count}] if alias else []
        yield (
            line,
            {
                "id": cells[of_id],
                "label": cells[of_label] or None,
                "redirects": [cells[of_redirect]] if cells[of_redirect] else [],
                **counted,
                "aliases": [*one, *filter(None, aliases.split("|"))],
                "attributes": {name: cells[at] for name, at in place.items() if cells[at]},
            },
        )


def counted_entities(popularity: Any) -> Iterator[tuple[str, Any]]:
    """Yield ids and counts of a mapping, a frame (entity_id, count) or the path of one; nothing for ``None``."""
    if isinstance(popularity, Mapping):
        yield from popularity.items()
    elif popularity is not None:
        is_path = isinstance(popularity, (str, os.PathLike))
        frame = read_popularity(popularity) if is_path else pandas_frame(popularity, "popularity")
        require(frame, ("entity_id", "count"), "popularity")
        yield from zip(frame["entity_id"].astype(str), frame["count"].tolist(), strict=True)
