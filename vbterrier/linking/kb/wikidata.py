"""Builder of knowledge bases from a dump of Wikidata, one entity at a time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, InputError, ParameterError
from vbterrier.linking.kb.building import building
from vbterrier.linking.kb.files import parsed
from vbterrier.linking.kb.staging import numbered_lines
from vbterrier.linking.links import WIKIDATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase
    from vbterrier.linking.kb.staging import Staging


_TIME = re.compile(r"([+-])0*(\d+)-\d\d-\d\dT.*")
# The precision of a date: 9 is a year, 8 a decade, 7 a century.
_YEAR_PRECISION = 9
_REMEDY = "; for other files use kb_from_file (--kind file)"


def kb_from_wikidata(
    path: StrPath,
    source: StrPath,
    *,
    languages: Sequence[str] = ("en",),
    properties: Mapping[str, str] | Sequence[str] = (),
    redirects: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    where: Callable[[dict[str, Any]], bool] | None = None,
    max_bytes: int | None = None,
    progress: bool = True,
) -> KnowledgeBase:
    r"""Build a knowledge base from a JSON dump of Wikidata, in constant memory and three times its disk space.

    The id space is ``"wikidata"``. Properties and lexemes are left out, and, with a warning, items without label and
    alias in the languages, and invalid aliases.

    Parameters
    ----------
    path, progress
        As in :func:`~vbterrier.linking.build_kb`.
    source
        The dump, plain, gzip or bzip2: a list with one entity per line, or JSON lines.
    languages
        The languages of labels and aliases; the name of an entity is its label in the first language that has one.
    properties
        The properties that become attributes, such as ``["P569"]``, or with names, such as ``{"P569": "born"}``. Only
        statements of the best rank with a value count. Items become ids, dates years (of type ``"year"``), quantities
        numbers without unit, and coordinates "latitude,longitude"; all other values, and dates less precise than a
        year, become text.
    redirects
        A mapping or pairs of ids to the ids that they redirect to, which the dump does not contain.
    where
        A function that selects items by their JSON, such as ``lambda item: "P31" in item["claims"]``.
    max_bytes
        The maximum size when decompressed; no limit by default (the complete dump has over a terabyte).

    Raises
    ------
    FileError
        Invalid JSON, an invalid entity, or a truncated dump; names the line.

    Warns
    -----
    DegenerateWarning
        The number of items without label and alias in these languages, and of invalid aliases, which are left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> paris = '{"type": "item", "id": "Q90", "labels": {"en": {"language": "en", "value": "Paris"}}, "aliases": {}}'
    >>> _ = (folder / "dump.json").write_text(f"[\n{paris}\n]\n")
    >>> with kb_from_wikidata(folder / "kb", folder / "dump.json") as kb:
    ...     kb.lookup(["paris"])[["entity_id", "name"]].values.tolist()
    [['Q90', 'Paris']]
    """
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase

    if isinstance(languages, str) or not languages:
        raise ParameterError(f"languages={languages!r}: wanted a list of codes, such as ['en', 'de']")
    if isinstance(properties, str):
        raise ParameterError(f"properties={properties!r}: wanted a list, or a mapping such as {{'P569': 'born'}}")
    source = Path(source)
    wanted = dict(properties) if hasattr(properties, "keys") else {name: name for name in properties}
    lines = numbered_lines(source, max_bytes=max_bytes, progress=progress)

    def record_error(line: int, message: str) -> InputError:
        return FileError(source, message, line=line) if line else InputError(f"redirects: {message}")

    with building(path, WIKIDATA, record_error, is_strict=False, progress=progress) as staging:
        for line, item in _items(source, lines):
            if where is None or where(item):
                try:
                    _stage(staging, line, item, languages, wanted)
                except (AttributeError, TypeError, KeyError, IndexError) as error:
                    fault = "is not a Wikidata entity: labels, aliases or claims have another format"
                    raise FileError(source, fault + _REMEDY, line=line) from error
        for redirected, target in dict(redirects).items():
            staging.redirect(0, redirected, target)
    return KnowledgeBase(path)


def _items(path: Path, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, dict[str, Any]]]:
    is_list = is_closed = False
    number = 0
    for number, line in lines:
        text = line.strip()
        if is_closed and text:
            raise FileError(path, "continues after the end of its list", line=number)
        if text in {b"[", b"]", b""}:
            is_list, is_closed = is_list or text == b"[", is_closed or text == b"]"
            continue
        entity = parsed(path, number, text.removesuffix(b","))
        if not isinstance(entity, dict) or not isinstance(entity.get("id"), str):
            raise FileError(path, f"is not a Wikidata entity: wanted an object with an id{_REMEDY}", line=number)
        if entity.get("type", "item") == "item":
            yield number, entity
    if is_list and not is_closed:
        raise FileError(path, "is truncated: its list has no end; download it again", line=number)


def _stage(
    staging: Staging, line: int, item: dict[str, Any], languages: Sequence[str], properties: Mapping[str, str]
) -> None:
    # Some dumps have an empty list instead of an empty mapping.
    labels, aliases = item.get("labels") or {}, item.get("aliases") or {}
    names = [labels[code]["value"] for code in languages if code in labels]
    further = [alias["value"] for code in languages for alias in aliases.get(code, ())]
    if not names and not further:
        staging.leave_out("items without a label or alias in these languages")
        return
    staging.entity(line, item["id"], names[0] if names else "")
    for text in dict.fromkeys([*names, *further]):
        staging.alias(line, item["id"], text)
    claims = item.get("claims") or {}
    for code, name in properties.items():
        for value, kind in dict.fromkeys(_values(claims.get(code, ()))):
            staging.attribute(line, item["id"], name, value, kind)


def _values(statements: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of the statements of the best rank, with their types."""
    ranks = {statement.get("rank", "normal") for statement in statements}
    best = "preferred" if "preferred" in ranks else "normal"
    for statement in statements:
        snak = statement["mainsnak"]
        if statement.get("rank", "normal") == best and snak["snaktype"] == "value":
            yield _typed(snak["datavalue"]["type"], snak["datavalue"]["value"])


def _typed(kind: str, value: Any) -> tuple[str, str]:
    """Return a value of Wikidata as text, and its type."""
    if kind == "time":
        time = _TIME.fullmatch(value["time"])
        if time is None or value.get("precision", _YEAR_PRECISION) < _YEAR_PRECISION:
            return value["time"], "text"
        return time[1].strip("+") + time[2], "year"
    if kind == "quantity":
        return str(value["amount"]).removeprefix("+"), "number"
    if kind == "wikibase-entityid":
        # Old dumps have only the number.
        text = value.get("id") or f"Q{value['numeric-id']}"
    elif kind == "globecoordinate":
        text = f"{value['latitude']},{value['longitude']}"
    elif kind == "monolingualtext":
        text = value["text"]
    else:
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text, "text"
