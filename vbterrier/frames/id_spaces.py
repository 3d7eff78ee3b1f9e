"""Ids of entities as addresses and names, in the id spaces of Wikidata, DBpedia and Wikipedia."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt
from vbterrier.frames.contracts import frame_of, require

if TYPE_CHECKING:
    from collections.abc import Sequence


# The spaces of public linkers; an edition in another language is a space of its own, as "dbpedia:de".
WIKIDATA, DBPEDIA, TITLE, PAGE = "wikidata", "dbpedia", "wikipedia_title", "wikipedia_id"
SPACES = (WIKIDATA, DBPEDIA, TITLE, PAGE)
NIL = "NIL"
# NIL, and the numbered clusters of TAC.
NILS = re.compile(r"NIL\d*")
_EDITION = r"(?:(?P<edition>[a-z][a-z-]{1,11})\.)?"
_ADDRESSES = (
    (WIKIDATA, re.compile(r"(?:https?://(?:www\.|m\.)?wikidata\.org/(?:entity|wiki)/|wd:)(?P<name>Q[1-9]\d*)")),
    (DBPEDIA, re.compile(rf"(?:https?://{_EDITION}dbpedia\.org/(?:resource|page)/|dbr:|dbpedia:)(?P<name>.+)")),
    (PAGE, re.compile(rf"https?://{_EDITION}(?:m\.)?wikipedia\.org/(?:wiki/?|w/index\.php)\?curid=(?P<name>\d+)")),
    (TITLE, re.compile(rf"https?://{_EDITION}(?:m\.)?wikipedia\.org/wiki/(?P<name>[^?]+)")),
)
_PLAIN = {WIKIDATA: re.compile(r"Q[1-9]\d*"), PAGE: re.compile(r"[1-9]\d*")}


def place_of(entity: str, own: str = "") -> tuple[str, str]:
    """Return the id space of an entity, and its id there; ``own`` is the space of ids that are no addresses.

    Ids of Wikidata that are no addresses have that space if ``own`` is empty. Names of DBpedia and titles of Wikipedia
    are percent-decoded in addresses, and have underscores for blanks.

    >>> place_of("http://de.dbpedia.org/resource/Caf%C3%A9"), place_of("Michael Jordan", "wikipedia_title")
    (('dbpedia:de', 'Café'), ('wikipedia_title', 'Michael_Jordan'))
    """
    address = entity.removeprefix("<").removesuffix(">")
    for space, pattern in _ADDRESSES:
        if found := pattern.fullmatch(address):
            edition, name = found.groupdict().get("edition"), found["name"]
            if space in (DBPEDIA, TITLE):
                name = unquote(name).replace(" ", "_")
            return f"{space}:{edition}" if edition not in (None, "en", "www") else space, name
    if not own and _PLAIN[WIKIDATA].fullmatch(entity):
        own = WIKIDATA
    return own, entity.strip().replace(" ", "_") if own.partition(":")[0] in (DBPEDIA, TITLE) else entity


def normalised(
    ids: Sequence[str], own: Sequence[str], space: str, *, mapping: Any = None, redirects: Any = None, name: str = ""
) -> list[str]:
    """Return ids in one space; :func:`vbterrier.frames.read_entity_links` has the parameters.

    - ``ids``, ``own``: the ids, and the spaces of those that are no addresses, shape (n,)
    - ``name``: the frame or file, for messages
    """
    if not re.fullmatch(rf"(?:{'|'.join(SPACES)})(?::[a-z][a-z-]+)?", space):
        raise ParameterError(
            f"ids={excerpt(space)}: wanted one of {', '.join(SPACES)}, or the edition of a language, as 'dbpedia:de'"
        )
    table = {} if mapping is None else table_of(mapping, "mapping")
    form = _PLAIN.get(space)
    found: dict[tuple[str, str], str] = {}
    foreign: dict[str, str] = {}
    for entity, default in dict.fromkeys(zip(ids, own, strict=True)):
        if NILS.fullmatch(entity):
            found[entity, default] = entity
            continue
        where, plain = place_of(entity, default)
        mapped = table.get(entity, table.get(plain) if where else None)
        if mapped is not None:
            where, plain = place_of(mapped, space)
        if where not in ("", space) or (form is not None and not form.fullmatch(plain)):
            foreign[entity] = where or "an unknown id space"
        found[entity, default] = plain
    if foreign:
        first, where = next(iter(foreign.items()))
        n = f" ({len(foreign)} such entities)" if len(foreign) > 1 else ""
        raise InputError(
            f"{name}: entity {first!r} is of {where}, wanted {space}{n}; ids of different spaces are different "
            "entities unless mapping= relates them: a table of entity_id and target"
        )
    targets = {} if redirects is None else _followed(table_of(redirects, "redirects"), space)
    return [targets.get(found[key], found[key]) for key in zip(ids, own, strict=True)]


def table_of(given: Any, what: str) -> dict[str, str]:
    """Return a mapping of ids, from a mapping, or a frame with entity_id and target."""
    if isinstance(given, Mapping):
        given = pd.DataFrame({"entity_id": list(given), "target": list(given.values())}, dtype=object)
    frame = frame_of(given, what)
    require(frame, ("entity_id", "target"), what)
    missing = frame[["entity_id", "target"]].isna().any(axis=1).to_numpy()
    if missing.any():
        place = int(missing.argmax())
        entity = frame["entity_id"].iloc[place]
        raise InputError(f"{what}: row {place} ({entity}) lacks an id or its target; leave it out")
    frame = frame[["entity_id", "target"]].astype(str).drop_duplicates()
    twice = frame["entity_id"].duplicated()
    if twice.any():
        raise InputError(f"{what}: {frame['entity_id'][twice].iloc[0]!r} has two targets; keep one")
    return dict(zip(frame["entity_id"], frame["target"], strict=True))


def _followed(redirects: dict[str, str], space: str) -> dict[str, str]:
    """The last target of each redirect."""
    places = [place_of(entity, space) for entity in (*redirects, *redirects.values())]
    foreign = next((place for place in places if place[0] != space), None)
    if foreign is not None:
        raise InputError(f"redirects: {foreign[1]!r} is of {foreign[0]}, wanted ids of {space} alone; use mapping=")
    codes, names = pd.factorize(np.array([name for _, name in places], dtype=object))
    step = np.arange(len(names))
    step[codes[: len(redirects)]] = codes[len(redirects) :]
    target = step
    # Chains halve at each turn; those that have no end then are circles.
    for _ in range(len(names).bit_length()):
        target = target[target]
    circles = step[target] != target
    if circles.any():
        raise InputError(f"redirects: {examples(list(names[circles]))} lead in a circle; remove one of them")
    return dict(zip(names.tolist(), names[target].tolist(), strict=True))
