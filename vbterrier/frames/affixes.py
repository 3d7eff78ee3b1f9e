"""Prefixes and suffixes that distinguish two spellings of ids, such as passages D7#2 of the document D7."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Ids of each side that are compared, and the longest ones.
_MAX_IDS, _MAX_ID_LENGTH = 2_000, 100
# Ids that must agree, and their share: fewer agree by chance.
_MIN_AGREEING_IDS, _SHARE = 2, 0.1
_DIGIT_PATTERN = re.compile(r"\d+")
# Signs that tools write around ids.
_QUOTES = "\"'`"


def affix_text(groups: Sequence[tuple[Sequence[str], Sequence[str]]], name_a: str, name_b: str) -> str:
    """Return the prefix or suffix without which most ids of one side are ids of the other one; empty if none is.

    - ``groups``: ids of both sides that may be the same, as the documents of each topic
    - ``name_a, name_b``: the names of the sides

    The cost is linear in the ids, of which at most 2,000 a side of at most 100 characters are read.

    >>> affix_text([(["D7#2", "D9#0"], ["D7", "D9"])], "the run", "the qrels")
    "without suffixes such as '#2', 2 of 2 ids of the run would be in the qrels ('D7#2' is 'D7')"
    """
    if quoted := _quote_text(groups, name_a, name_b):
        return quoted
    best, most = "", 0.0
    for name, reference, sides in ((name_a, name_b, groups), (name_b, name_a, [(b, a) for a, b in groups])):
        counts: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], tuple[str, str, str]] = {}
        n_ids, room = 0, _MAX_IDS
        for ids, others in sides:
            reference_ids, some = set(others), ids[:room]
            room -= len(some)
            n_ids += len(some)
            for one in some:
                for kind, affix, rest in _cuts(one[:_MAX_ID_LENGTH]):
                    if rest in reference_ids:
                        key = kind, affix if kind == "prefix" else _DIGIT_PATTERN.sub("0", affix)
                        counts[key] += 1
                        first.setdefault(key, (affix, one, rest))
        for key, n in counts.most_common(1):
            if n >= _MIN_AGREEING_IDS and n >= _SHARE * n_ids and n / n_ids > most:
                affix, one, rest = first[key]
                what = f"the prefix {affix!r}" if key[0] == "prefix" else f"suffixes such as {affix!r}"
                share = f"{n:,} of {n_ids:,} ids of {name} would be in {reference} ({one!r} is {rest!r})"
                best, most = f"without {what}, {share}", n / n_ids
    return best


def _quote_text(groups: Sequence[tuple[Sequence[str], Sequence[str]]], name_a: str, name_b: str) -> str:
    """Return that most ids of one side are ids of the other one in quotes; empty if they are not."""
    for name, reference, sides in ((name_a, name_b, groups), (name_b, name_a, [(b, a) for a, b in groups])):
        n_ids, quoted = 0, list[tuple[str, str]]()
        for ids, others in sides:
            reference_ids, some = set(others), ids[: _MAX_IDS - n_ids]
            n_ids += len(some)
            bare = ((one, one.strip(_QUOTES)) for one in some)
            quoted += [(one, text) for one, text in bare if one != text and text in reference_ids]
        if len(quoted) >= _MIN_AGREEING_IDS and len(quoted) >= _SHARE * n_ids:
            one, text = quoted[0]
            return (
                f"ids of {name} are quoted: without quotes, {len(quoted):,} of {n_ids:,} would be in {reference} "
                f"({one!r} is {text!r}); remove the quotes"
            )
    return ""


def _cuts(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield prefixes and suffixes, each with the rest, where the kind of character changes."""
    kinds = ["d" if one.isdigit() else "a" if one.isalpha() else "" for one in text]
    for place in range(1, len(text)):
        before, after = kinds[place - 1], kinds[place]
        if not before or before != after or not text[:place].strip("0"):
            yield "prefix", text[:place], text[place:]
        if not after or before != after:
            yield "suffix", text[place:], text[:place]
