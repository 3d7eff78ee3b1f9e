"""Names of the codes that attributes of entities are often given as: "NY" for New York, "sen" for senator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    Spellings = Mapping[str, Mapping[str, Any]]

# Codes of the US Postal Service, and of territories as the biographical directory of the US Congress has them.
_STATES = """
AL Alabama, AK Alaska, AZ Arizona, AR Arkansas, CA California, CO Colorado, CT Connecticut, DE Delaware, FL Florida,
GA Georgia, HI Hawaii, ID Idaho, IL Illinois, IN Indiana, IA Iowa, KS Kansas, KY Kentucky, LA Louisiana, ME Maine,
MD Maryland, MA Massachusetts, MI Michigan, MN Minnesota, MS Mississippi, MO Missouri, MT Montana, NE Nebraska,
NV Nevada, NH New Hampshire, NJ New Jersey, NM New Mexico, NY New York, NC North Carolina, ND North Dakota, OH Ohio,
OK Oklahoma, OR Oregon, PA Pennsylvania, RI Rhode Island, SC South Carolina, SD South Dakota, TN Tennessee, TX Texas,
UT Utah, VT Vermont, VA Virginia, WA Washington, WV West Virginia, WI Wisconsin, WY Wyoming, DC District of Columbia,
AS American Samoa, GU Guam, MP Northern Mariana Islands, PR Puerto Rico, VI Virgin Islands, DK Dakota Territory,
OL Orleans Territory, PI Philippines
"""
_STATE_NAMES: dict[str, tuple[str, ...]] = {
    code: (name,) for code, _, name in (part.strip().partition(" ") for part in _STATES.split(","))
}
# By name of the attribute, in lower case.
_TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "state": _STATE_NAMES,
    "us_state": _STATE_NAMES,
    "chamber": {
        "sen": ("senator",),
        "rep": ("representative",),
        "S": ("senator",),
        "H": ("representative",),
        "senate": ("senator",),
        "house": ("representative",),
    },
    "party": {"D": ("Democrat", "Democratic"), "R": ("Republican",), "I": ("Independent",), "L": ("Libertarian",)},
}
ATTRIBUTES = tuple(_TABLES)
# Attributes with more distinct values that are no such codes have codes of another kind, such as states of Brazil.
_MIN_CODE_SHARE = 0.9


def known_names(attribute: str, values: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield attribute, value and name for the values of an attribute if at least 90 % of them are known codes.

    >>> list(known_names("state", ["NY", "OH"])), list(known_names("state", ["SP", "RJ", "PA"]))
    ([('state', 'NY', 'New York'), ('state', 'OH', 'Ohio')], [])
    """
    table = _TABLES.get(attribute.lower(), {})
    codes = [value for value in values if value in table]
    if values and len(codes) >= _MIN_CODE_SHARE * len(values):
        for value in codes:
            yield from ((attribute, value, name) for name in table[value])


def checked_spellings(spellings: Any) -> list[tuple[str, str, str]]:
    """Return rows of attribute, value and name from names by attribute and value, as ``{"state": {"NY": "New York"}}``.

    >>> checked_spellings({"state": {"NY": "New York", "OH": ["Ohio", "Buckeye State"]}})
    [('state', 'NY', 'New York'), ('state', 'OH', 'Ohio'), ('state', 'OH', 'Buckeye State')]
    """
    requirement = "wanted names by attribute and value, as {'state': {'NY': ['New York']}}"
    if not isinstance(spellings, Mapping):
        raise ParameterError(f"spellings={excerpt(spellings)}: {requirement}")
    rows = []
    for attribute, values in spellings.items():
        if not isinstance(values, Mapping):
            raise ParameterError(f"spellings: attribute {attribute!r} has {values!r:.80}, {requirement}")
        for value, names in values.items():
            for name in [names] if isinstance(names, str) else names:
                if not all(isinstance(text, str) and text.strip() for text in (attribute, value, name)):
                    raise ParameterError(f"spellings: {attribute!r}: {value!r} has the name {name!r}, wanted text")
                rows.append((attribute, value, name))
    return rows
