"""Builder of knowledge bases from a dump of Wikidata, one entity at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, InputError, ParameterError, excerpt, path_parameter, settings_parameter
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.id_spaces import WIKIDATA
from vbterrier.linking.kb.building import building
from vbterrier.linking.kb.files import EntityPriors, counted_entities, parse_json_line
from vbterrier.linking.kb.staging import numbered_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from vbterrier.annotations import StrPath
    from vbterrier.linking.kb.knowledge_base import KnowledgeBase
    from vbterrier.linking.kb.staging import Staging


_TIME = re.compile(r"([+-])(\d+)-\d\d-\d\dT.*")
# The precision of a date: 9 is a year, 8 a decade, 7 a century.
_YEAR_PRECISION = 9
# Wikimedia pages that are no entities: disambiguation page, human name disambiguation page, list article, category,
# template, duplicated page, project page.
NOT_ENTITIES = ("Q4167410", "Q22808320", "Q13406463", "Q4167836", "Q11266439", "Q17362920", "Q14204246")
_INSTANCE_OF = "P31"
_SITELINKS = "sitelinks"
_REMEDY = "; for other files use kb_from_file (--kind file)"


@dataclass(frozen=True, eq=False)
class WikidataOptions:
    """Items of a dump of Wikidata to keep, and data about them that the dump does not contain: ``options=``.

    Parameters
    ----------
    where
        A function that selects items by their JSON, such as ``lambda item: "P31" in item["claims"]``.
    excluded
        Items that are an instance (P31) of one of these ids are left out, by default pages that are no entities:
        disambiguation and list pages, categories, templates and duplicates.
    redirects
        A mapping or pairs of ids to the ids that they redirect to.
    aliases
        Further aliases: a frame (alias, entity_id or title), as from
        :func:`vbterrier.linking.read_mediawiki_aliases`, where titles are those of pages on ``site``. Rows of other
        pages are left out and counted.
    site
        The project of titles, as in the sitelinks of the dump.

    Raises
    ------
    ParameterError
        A value of another kind.

    Examples
    --------
    >>> WikidataOptions(redirects={"Q1": "Q90"}, site="dewiki").site
    'dewiki'
    """

    where: Callable[[dict[str, Any]], bool] | None = None
    excluded: Collection[str] = NOT_ENTITIES
    redirects: Mapping[str, str] | Iterable[tuple[str, str]] = ()
    aliases: Any = None
    site: str = "enwiki"

    def __post_init__(self) -> None:
        if self.where is not None and not callable(self.where):
            raise ParameterError(f"where={self.where!r}: wanted a function from an item to True or False")
        if isinstance(self.excluded, str) or not isinstance(self.excluded, Collection):
            raise ParameterError(f"excluded={self.excluded!r}: wanted a list of ids, such as ['Q4167410']")
        redirects: Any = self.redirects
        wrong = ParameterError(f"redirects={excerpt(redirects)}: wanted a mapping or pairs of ids")
        try:
            # Pairs may be an iterator, which has them once.
            pairs = list(redirects.items() if isinstance(redirects, Mapping) else redirects)
            object.__setattr__(self, "redirects", dict(pairs))
        except (TypeError, ValueError) as error:
            raise wrong from error
        # Python takes a text of two letters, such as Q1, for a pair.
        if isinstance(redirects, str) or any(isinstance(pair, str) for pair in pairs):
            raise wrong
        if not isinstance(self.site, str) or not self.site:
            raise ParameterError(f"site={self.site!r}: wanted the name of a project, such as 'enwiki'")


def kb_from_wikidata(
    path: StrPath,
    source: StrPath,
    *,
    languages: Sequence[str] = ("en",),
    properties: Mapping[str, str] | Sequence[str] = (),
    priors: EntityPriors | None = None,
    options: WikidataOptions | None = None,
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
    priors
        :class:`vbterrier.linking.EntityPriors`: by default from the number of sitelinks, pages of Wikimedia projects
        about the item, if the dump has any. In ``popularity``, entity_id is the id of an item or the title of its page
        on the ``site`` of the options.
    options
        :class:`vbterrier.linking.WikidataOptions`: the items to keep, redirects, and further aliases.
    max_bytes
        The maximum size when decompressed; no limit by default (the complete dump has over a terabyte).

    Returns
    -------
    KnowledgeBase
        The knowledge base, opened read-only.

    Raises
    ------
    FileError
        Invalid JSON, an invalid entity, or a truncated dump; names the line.

    Warns
    -----
    DegenerateWarning
        The number of items without label and alias in these languages, of pages that are no entities, of invalid
        aliases and of aliases of unknown pages, which are left out.

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

    _require_lists(languages, properties)
    priors = settings_parameter("priors", EntityPriors, priors)
    options = settings_parameter("options", WikidataOptions, options)
    source = path_parameter("source", source)
    names = dict(properties) if hasattr(properties, "keys") else {name: name for name in properties}
    lines = numbered_lines(source, max_bytes=max_bytes, progress=progress)

    def record_error(line: int, message: str) -> InputError:
        return FileError(source, message, line=line) if line else InputError(f"redirects: {message}")

    counts = list(counted_entities(priors.popularity))
    further = [] if options.aliases is None else _further(options.aliases)
    named = {name for _, name in further} | {entity for entity, _ in counts}
    by_sitelinks = priors.popularity is None
    reader = _Reader(languages, names, frozenset(options.excluded), options.site, named, counts_sitelinks=by_sitelinks)
    settings: dict[str, Any] = {"is_strict": False, "smoothing": priors.smoothing, "progress": progress}
    with building(path, WIKIDATA, record_error, **settings) as staging:
        for line, item in _items(source, lines):
            if options.where is None or options.where(item):
                try:
                    reader.stage(staging, line, item)
                except (AttributeError, TypeError, KeyError, IndexError) as error:
                    fault = "is not a Wikidata entity: labels, aliases or claims have another format"
                    raise FileError(source, fault + _REMEDY, line=line) from error
        for redirected, target in dict(options.redirects).items():
            staging.redirect(0, redirected, target)
        reader.stage_named(staging, further, counts)
    return KnowledgeBase(path)


def _require_lists(languages: Any, properties: Any) -> None:
    if isinstance(languages, str) or not languages:
        raise ParameterError(f"languages={excerpt(languages)}: wanted a list of codes, such as ['en', 'de']")
    if isinstance(properties, str):
        raise ParameterError(
            f"properties={excerpt(properties)}: wanted a list, or a mapping such as {{'P569': 'born'}}"
        )


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
        entity = parse_json_line(path, number, text.removesuffix(b","))
        if not isinstance(entity, dict) or not isinstance(entity.get("id"), str):
            raise FileError(path, f"is not a Wikidata entity: wanted an object with an id{_REMEDY}", line=number)
        if entity.get("type", "item") == "item":
            yield number, entity
    if is_list and not is_closed:
        raise FileError(path, "is truncated: its list has no end; download it again", line=number)


def _further(aliases: Any) -> list[tuple[str, str]]:
    """Return pairs of an alias and the id or the title of what it means."""
    frame = pandas_frame(aliases, "aliases")
    column = "title" if "title" in frame.columns else "entity_id"
    require(frame, ("alias", column), "aliases")
    return list(zip(frame["alias"].astype(str), frame[column].astype(str).str.replace("_", " "), strict=True))


@dataclass
class _Reader:
    """Stage items, and find those with the ``named`` ids and titles."""

    languages: Sequence[str]
    properties: Mapping[str, str]
    excluded: frozenset[str]
    site: str
    named: set[str]
    counts_sitelinks: bool
    items: dict[str, str] = field(default_factory=dict)  # the item of each id and title of ``named``

    def stage(self, staging: Staging, line: int, item: dict[str, Any]) -> None:
        """Stage an item with its names, attributes and count."""
        claims = item.get("claims") or {}
        if not self.excluded.isdisjoint(value for value, _ in _values(claims.get(_INSTANCE_OF, ()))):
            staging.leave_out("pages that are no entities, such as disambiguation and list pages")
            return
        # Some dumps have an empty list instead of an empty mapping.
        labels, aliases = item.get("labels") or {}, item.get("aliases") or {}
        names = [labels[code]["value"] for code in self.languages if code in labels]
        further = [alias["value"] for code in self.languages for alias in aliases.get(code, ())]
        if not names and not further:
            staging.leave_out("items without a label or alias in these languages")
            return
        staging.entity(line, item["id"], names[0] if names else "")
        for text in dict.fromkeys([*names, *further]):
            staging.alias(line, item["id"], text)
        for code, name in self.properties.items():
            for value, kind in dict.fromkeys(_values(claims.get(code, ()))):
                staging.attribute(line, item["id"], name, value, kind)
        sitelinks = item.get(_SITELINKS) or {}
        if self.counts_sitelinks and sitelinks:
            staging.popularity(line, item["id"], len(sitelinks))
        if self.named:
            title = sitelinks[self.site]["title"] if self.site in sitelinks else ""
            self.items |= {name: item["id"] for name in (item["id"], title) if name in self.named}

    def stage_named(
        self, staging: Staging, aliases: Iterable[tuple[str, str]], counts: Iterable[tuple[str, Any]]
    ) -> None:
        """Stage aliases and counts of items by their id or title."""
        for alias, name in aliases:
            if entity := self.items.get(name):
                staging.alias(0, entity, alias)
            else:
                staging.leave_out("aliases of pages that are no item of the dump")
        for name, count in counts:
            if entity := self.items.get(name):
                staging.popularity(0, entity, count)


def _values(statements: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the values of the statements of the best rank, with their types."""
    ranks = {statement.get("rank", "normal") for statement in statements}
    best = "preferred" if "preferred" in ranks else "normal"
    for statement in statements:
        snak = statement["mainsnak"]
        if statement.get("rank", "normal") == best and snak["snaktype"] == "value":
            yield _text_and_type(snak["datavalue"]["type"], snak["datavalue"]["value"])


def _text_and_type(kind: str, value: Any) -> tuple[str, str]:
    """Return a value of Wikidata as text, and its type."""
    if kind == "time":
        time = _TIME.fullmatch(value["time"])
        if time is None or value.get("precision", _YEAR_PRECISION) < _YEAR_PRECISION:
            return value["time"], "text"
        return time[1].strip("+") + (time[2].lstrip("0") or "0"), "year"
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
