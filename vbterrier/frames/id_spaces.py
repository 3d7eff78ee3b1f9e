"""Ids of entities as addresses and names, in the id spaces of Wikidata, DBpedia and Wikipedia."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, examples, excerpt
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import Ids

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from vbterrier.annotations import Bools


# The spaces of public linkers; an edition in another language is a separate space, as "dbpedia:de".
WIKIDATA, DBPEDIA, WIKIPEDIA_TITLE, WIKIPEDIA_ID = "wikidata", "dbpedia", "wikipedia_title", "wikipedia_id"
SPACES = (WIKIDATA, DBPEDIA, WIKIPEDIA_TITLE, WIKIPEDIA_ID)
# The answer or intent that none of the candidates is meant. Stages of intents do not change its probability.
NIL = "NIL"
# NIL, and the numbered clusters of TAC.
NILS = re.compile(r"NIL\d*")
_EDITION = r"(?:(?P<edition>[a-z][a-z-]{1,11})\.)?"
_SCHEME = r"(?:(?:(?i:https?):)?//)?"
# Addresses of a version or a section of a page are those of its entity; in titles, "?" and "#" are percent-encoded.
_PAGE_SUFFIX = r"(?:\?\w+=[^#]*)?(?:#.*)?"
_ITEM = rf"{_SCHEME}(?i:(?:www\.|m\.)?wikidata\.org)/(?:entity/|wiki/(?:Item:|Special:Entity(?:Page|Data)/)?)"
_WIKIPEDIA = rf"{_SCHEME}{_EDITION}(?:m\.)?(?i:wikipedia\.org)/"
_ADDRESSES = (
    (WIKIDATA, re.compile(rf"(?:{_ITEM}|(?i:wd|wikidata):)(?P<name>[Qq][1-9]\d*)(?:/|\.[a-z]+)?{_PAGE_SUFFIX}")),
    (
        DBPEDIA,
        re.compile(rf"(?:{_SCHEME}{_EDITION}(?i:dbpedia\.org)/(?:resource|page)/|(?i:dbr|dbpedia):)(?P<name>.+)"),
    ),
    (WIKIPEDIA_ID, re.compile(rf"{_WIKIPEDIA}(?:wiki/?|w/index\.php)?\?curid=(?P<name>\d+)")),
    (WIKIPEDIA_TITLE, re.compile(rf"{_WIKIPEDIA}w/index\.php\?title=(?P<name>[^&#]+)(?:[&#].*)?")),
    (WIKIPEDIA_TITLE, re.compile(rf"{_WIKIPEDIA}wiki/(?P<name>[^#]+?){_PAGE_SUFFIX}")),
)
# The linkers' placeholders for no entity, which are no names in any knowledge base: TAC and neleval, ReFinED, AIDA,
# BLINK, ELEVANT, GERBIL; and empty text.
_NEVER_NAMES = (
    r"NIL\d*|<(?i:nil)>|--(?:NME|OOE)--|<unk_wiki>|<NO_MAPPING>|(?:<?https?://(?:www\.)?aksw\.org/)?notInWiki(?:/.*)?|"
)
# Placeholders that are also names (HIPE, CoNLL, JSON, CSV, ELEVANT): no entity among codes and addresses alone.
_PLACEHOLDERS = "(?i:null|none|nil|na|nan|o|_|-)"
_SOMETIMES_NAMES = rf"{_PLACEHOLDERS}|Unknown.*"
_ADDRESS = (
    r"^<?(?:(?i:https?://|wd:|wikidata:|dbr:|dbpedia:)|(?://)?(?:[a-z-]+\.){0,2}(?:wikidata|dbpedia|wikipedia)\.org/)"
)
_CODE = r"^\s*[Qq][1-9][0-9]*\s*$"
_PLAIN = {WIKIDATA: re.compile(r"Q[1-9]\d*"), WIKIPEDIA_ID: re.compile(r"[1-9]\d*")}


def space_and_id(entity: str, default: str = "") -> tuple[str, str]:
    """Return the id space of an entity, and its id there; ``default`` is the space of ids that are no addresses.

    Ids of Wikidata that are no addresses have that space if ``default`` is empty. Names of DBpedia and titles of
    Wikipedia are percent-decoded in addresses, and have underscores for blanks.

    >>> space_and_id("http://de.dbpedia.org/resource/Caf%C3%A9"), space_and_id("Michael Jordan", "wikipedia_title")
    (('dbpedia:de', 'Café'), ('wikipedia_title', 'Michael_Jordan'))
    """
    address = entity.removeprefix("<").removesuffix(">")
    for space, pattern in _ADDRESSES:
        if match := pattern.fullmatch(address):
            edition, name = match.groupdict().get("edition"), match["name"]
            if space in (DBPEDIA, WIKIPEDIA_TITLE):
                name = unquote(name).replace(" ", "_")
            elif space == WIKIDATA:
                name = name.upper()
            return f"{space}:{edition}" if edition not in (None, "en", "www") else space, name
    if not default and _PLAIN[WIKIDATA].fullmatch(entity):
        default = WIKIDATA
    is_title = default.partition(":")[0] in (DBPEDIA, WIKIPEDIA_TITLE)
    return default, entity.strip().replace(" ", "_") if is_title else entity


class EntityIds(NamedTuple):
    """A column of ids of entities in one spelling."""

    ids: Ids
    is_nil: Bools  # True for ids that mean no entity, shape (n,)
    space: str  # the id space, empty if neither an address nor the form of the ids says it


def entity_ids(ids: Ids, name: str, *, space: str = "") -> EntityIds:
    """Return ids of entities in the spelling of their id space, and those that mean no entity.

    An address says its space; ids that are all codes of Wikidata are of that space, other ids of the one space of the
    addresses beside them, or of ``space``. In a known space, an address and its name are one id, and so are upper and
    lower case of codes, blanks and underscores, and percent-encoded names of DBpedia and Wikipedia. Ids of an unknown
    space are kept as they are.

    NIL, NIL0012, <NIL>, --NME--, <unk_wiki>, <NO_MAPPING>, notInWiki and empty text mean no entity. Null, none, NA, O,
    _ and - are names, too: they mean no entity only in a column whose other ids are all codes or addresses.

    - ``name``: the frame and its column, for messages
    - ``space``: the space of the ids that these are compared with, empty if unknown

    Raises InputError: addresses of two spaces, or of another one than ``space``.

    >>> from vbterrier.frames.ids import column_ids
    >>> ids = column_ids(pd.Series(["http://www.wikidata.org/entity/Q42", "wd:Q42", "Q5", "null"]), "tags")
    >>> plain = entity_ids(ids, "tags")
    >>> plain.ids.text.to_pylist()[:3], plain.is_nil.tolist(), plain.space
    (['Q42', 'Q42', 'Q5'], [False, False, False, True], 'wikidata')
    """
    if ids.integers or not len(ids):
        return EntityIds(ids, np.zeros(len(ids), dtype=bool), space)
    encoded = ids.text.dictionary_encode()
    distinct, rows = encoded.dictionary, encoded.indices.to_numpy()
    is_nil, may_be_nil = (_matches(distinct, f"^(?:{form})$") for form in (_NEVER_NAMES, _SOMETIMES_NAMES))
    is_address = _matches(distinct, _ADDRESS) & ~is_nil
    addresses = distinct.filter(pa.array(is_address)).to_pylist()
    places = [space_and_id(address) for address in addresses]
    spaces = {where: address for (where, _), address in zip(places, addresses, strict=True) if where}
    is_plain = ~(is_nil | may_be_nil | is_address)
    has_codes, has_names = bool(is_plain.any() and _matches(distinct, _CODE)[is_plain].all()), bool(is_plain.any())
    if has_codes and (WIKIDATA in {space, *spaces} or _matches(distinct, "^Q")[is_plain].any()):
        spaces.setdefault(WIKIDATA, distinct.filter(pa.array(is_plain))[0].as_py())
        has_names = False
    _require_one_space(spaces, space, name)
    plain_space = next(iter(spaces), space)
    if not has_names and (spaces or plain_space in _PLAIN):
        is_nil |= may_be_nil
    changed = _in_space(distinct, plain_space)
    names = [plain if where else address for (where, plain), address in zip(places, addresses, strict=True)]
    changed = pc.replace_with_mask(changed, pa.array(is_address), pa.array(names, pa.large_string()))
    if changed.equals(distinct):
        return EntityIds(ids, is_nil[rows], plain_space)
    return EntityIds(Ids(changed.take(encoded.indices)), is_nil[rows], plain_space)


_NEVER_NAME, _SOMETIMES_NAME, _AT_ADDRESS = map(re.compile, (_NEVER_NAMES, _SOMETIMES_NAMES, _ADDRESS))
# Ids that are no addresses, no NIL, and in the spelling of their space, for any space.
_USUAL_ID = re.compile(r"Q[1-9]\d*|(?![qQ]\d)[^\W_]+")


def resembles_nil(ids: EntityIds) -> Bools:
    """Return True for entities that are spellings of no entity among codes and addresses, such as null, shape (n,)."""
    if ids.ids.integers or not len(ids.ids):
        return np.zeros(len(ids.ids), dtype=bool)
    return _matches(ids.ids.text, f"^(?:{_PLACEHOLDERS})$") & ~ids.is_nil


def is_no_entity(entity: str) -> bool:
    """Return True for the linkers' spellings of no entity, which are no names in any knowledge base.

    >>> is_no_entity("<NIL>"), is_no_entity("NIL0012"), is_no_entity("null")
    (True, True, False)
    """
    return _NEVER_NAME.fullmatch(entity) is not None


def id_in(entity: str, space: str) -> str:
    """Return an id in the spelling of an id space; ids of a space of another name are unchanged.

    Raises ValueError, with the fault, for an id of another space and for NIL.

    >>> id_in("wd:Q42", "wikidata"), id_in("New York", "wikipedia_title"), id_in("wd:Q42", "people")
    ('Q42', 'New_York', 'wd:Q42')
    """
    if _NEVER_NAME.fullmatch(entity):
        raise ValueError("means no entity, of which no text is the name; leave it out")
    if _USUAL_ID.fullmatch(entity) or not is_known(space):
        return entity
    id_space, plain = space_and_id(entity, space)
    if id_space != space:
        raise ValueError(f"is of {id_space}, wanted ids of {space}; ids of different spaces are different entities")
    if _AT_ADDRESS.match(entity):
        return plain
    plain = plain.strip()
    if space == WIKIDATA:
        return plain[0].upper() + plain[1:] if re.fullmatch(r"[Qq][1-9]\d*", plain) else plain
    # As in addresses, but for pages, whose ids are numbers.
    return unquote(plain).replace(" ", "_") if "%" in plain and space != WIKIPEDIA_ID else plain


def is_known(space: str) -> bool:
    """Return True for the id spaces of Wikidata, DBpedia and Wikipedia, whose addresses are known."""
    return space.partition(":")[0] in SPACES


# The prefixes of addresses, by id space.
_PREFIXES = {
    WIKIDATA: (
        *("wd:", "http://www.wikidata.org/entity/", "https://www.wikidata.org/wiki/"),
        *("wikidata:", "https://www.wikidata.org/entity/", "https://m.wikidata.org/wiki/"),
    ),
    DBPEDIA: ("dbr:", "dbpedia:", "http://dbpedia.org/resource/", "https://dbpedia.org/page/"),
    WIKIPEDIA_TITLE: ("https://en.wikipedia.org/wiki/", "http://en.wikipedia.org/wiki/"),
}


def keys_in(table: Container[str], ids: Sequence[str]) -> list[str]:
    """Return the key of each id in a table of entities: the id, or else its address or name if the table has that one.

    >>> keys_in({"http://www.wikidata.org/entity/Q42": 1, "Q5": 2}, ["Q42", "wd:Q5", "Q6"])
    ['http://www.wikidata.org/entity/Q42', 'Q5', 'Q6']
    """
    return [each if each in table else next((key for key in _spellings(each) if key in table), each) for each in ids]


def _spellings(entity: str) -> Iterator[str]:
    """The name of an address, and the addresses of a name."""
    space, name = space_and_id(entity)
    if space:
        yield name
    if space == WIKIDATA:
        yield name.lower()
    else:
        blanks = name.replace("_", " ")
        yield from (blanks, quote(name), quote(blanks))
    for prefix in _PREFIXES.get(space, ()) if space else (*_PREFIXES[DBPEDIA], *_PREFIXES[WIKIPEDIA_TITLE]):
        address = prefix + quote(name, safe="/(),'!*:@&=+$;")
        yield from (prefix + name, address, f"<{address}>", prefix + quote(name.replace("_", " ")))


def _matches(text: Any, pattern: str) -> Bools:
    matches: Bools = pc.match_substring_regex(text, pattern).to_numpy(zero_copy_only=False).astype(bool)
    return matches


def _in_space(text: Any, space: str) -> Any:
    """Return ids that are no addresses in the spelling of their space."""
    kind = space.partition(":")[0]
    if kind == WIKIDATA:
        return pc.replace_substring_regex(text, r"^\s*[Qq]([1-9][0-9]*)\s*$", r"Q\1")
    if kind not in (DBPEDIA, WIKIPEDIA_TITLE):
        return text
    encoded = pc.match_substring_regex(text, "%[0-9A-Fa-f]{2}")
    decoded = pa.array([unquote(each) for each in text.filter(encoded).to_pylist()], text.type)
    return pc.replace_substring(pc.utf8_trim_whitespace(pc.replace_with_mask(text, encoded, decoded)), " ", "_")


def _require_one_space(spaces: dict[str, str], space: str, name: str) -> None:
    """Refuse ids of two spaces; ``spaces`` has an id of each, and ``space`` is that of the other frame of a join."""
    foreign = [each for each in spaces if each != space] if space else list(spaces)[1:]
    if foreign:
        one = space or next(iter(spaces))
        other = f"{spaces[one]!r} is of {one}" if one in spaces else f"wanted ids of {one}"
        raise InputError(
            f"{name}: entity {spaces[foreign[0]]!r} is of {foreign[0]}, {other}: ids of different spaces are different "
            f"entities; bring both to one space with {conversion(one)}"
        )


def conversion(space: str) -> str:
    """Return the commands that bring a file to an id space, for messages."""
    return (
        f"`vbterrier convert IN --kind links --to tags --ids {space} --mapping TABLE --output OUT` (or --to answers) "
        "or read_entity_links(ids=, mapping=)"
    )


def normalised_ids(
    ids: Sequence[str], spaces: Sequence[str], space: str, *, mapping: Any = None, redirects: Any = None, name: str = ""
) -> list[str]:
    """Return ids in one space; :func:`vbterrier.frames.read_entity_links` has the parameters.

    - ``ids``, ``spaces``: the ids, and the spaces of those that are no addresses, shape (n,)
    - ``name``: the frame or file, for messages
    """
    if not re.fullmatch(rf"(?:{'|'.join(SPACES)})(?::[a-z][a-z-]+)?", space):
        raise ParameterError(
            f"ids={excerpt(space)}: wanted one of {', '.join(SPACES)}, or the edition of a language, as 'dbpedia:de'"
        )
    table = {} if mapping is None else id_mapping(mapping, "mapping")
    form = _PLAIN.get(space)
    plain_ids: dict[tuple[str, str], str] = {}
    foreign: dict[str, str] = {}
    for entity, default in dict.fromkeys(zip(ids, spaces, strict=True)):
        is_sometimes_nil = form is not None and _SOMETIMES_NAME.fullmatch(entity) and entity not in table
        if is_no_entity(entity) or is_sometimes_nil:
            plain_ids[entity, default] = entity if NILS.fullmatch(entity) else NIL
            continue
        where, plain = space_and_id(entity, default)
        mapped = table.get(entity, table.get(plain) if where else None)
        if mapped is not None:
            where, plain = space_and_id(mapped, space)
        elif where in ("", space):
            plain = id_in(entity, space)
        if where not in ("", space) or (form is not None and not form.fullmatch(plain)):
            foreign[entity] = where or "an unknown id space"
        plain_ids[entity, default] = plain
    if foreign:
        first, where = next(iter(foreign.items()))
        n = f" ({len(foreign)} such entities)" if len(foreign) > 1 else ""
        raise InputError(
            f"{name}: entity {first!r} is of {where}, wanted {space}{n}; ids of different spaces are different "
            "entities unless mapping= relates them: a table of entity_id and target"
        )
    targets = {} if redirects is None else _redirect_targets(id_mapping(redirects, "redirects"), space)
    return [targets.get(plain_ids[key], plain_ids[key]) for key in zip(ids, spaces, strict=True)]


def id_mapping(table: Any, what: str) -> dict[str, str]:
    """Return a mapping of ids, from a mapping, or a frame with entity_id and target."""
    if isinstance(table, Mapping):
        table = pd.DataFrame({"entity_id": list(table), "target": list(table.values())}, dtype=object)
    frame = pandas_frame(table, what)
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


def _redirect_targets(redirects: dict[str, str], space: str) -> dict[str, str]:
    """The last target of each redirect."""
    places = [space_and_id(entity, space) for entity in (*redirects, *redirects.values())]
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
