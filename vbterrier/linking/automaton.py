"""The names of a dictionary made ready to be found: guarded, keyed by their words, in an automaton."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.linking.extras import module_of_extra
from vbterrier.linking.meanings import Meanings, Vocabulary, meanings_of
from vbterrier.linking.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.linking.aliases import Aliases

    Ints = NDArray[np.int64]

# English function words that are names of something in any large knowledge base.
_STOP_ALIASES = """
a about after again all also am an and any are as at away be because been before being below between both but by can
could did do does doing down during each every few first for from further had has have having he her here hers him his
how i if in into is it its just last like many may me might more most much must my near new no nor not now of off old on
once one only or other our out over own per same shall she should since so some such than that the their them then there
these they this those through to too two under until up upon us very was we were what when where which while who whom
whose why will with within without would yes yet you your
"""
STOP_ALIASES = frozenset(_STOP_ALIASES.split())
# How the case of a text decides what a name in it may mean. A mention of lower case in a text of both cases is of no
# acronym; in a text of one case it may be, but not of one spelt like a function word; a mention in capitals may be any.
MIXED, CASELESS, CAPITALS = range(3)
_ACRONYM = range(2, 6)


@dataclass(frozen=True)
class Guards:
    """Which names are looked for; see :class:`~vbterrier.linking.dictionary.DictionaryLinker`."""

    max_candidates: int | None
    ambiguous: str
    min_length: int
    numeric: bool
    stop_aliases: tuple[str, ...] | None
    case: str

    @cached_property
    def _users(self) -> frozenset[str]:
        return frozenset(Words.of(list(self.stop_aliases or ())).forms())

    def level(self, name: str, form: str) -> int:
        """The first of ``MIXED``, ``CASELESS``, ``CAPITALS`` at which a mention may be of this name."""
        if self.case == "ignore" or not name.isupper() or " " in form or sum(map(str.isalpha, form)) not in _ACRONYM:
            return MIXED
        return CAPITALS if form.casefold() in STOP_ALIASES else CASELESS

    def reason(self, form: str, level: int) -> str:
        """Why a name is not looked for; empty when it is."""
        signs, plain = form.replace(" ", ""), form.casefold()
        function_word = self.stop_aliases is not None and plain in STOP_ALIASES and level != CAPITALS
        if not signs:
            return "empty"
        if function_word or plain in self._users:
            return "stop"
        if len(signs) < self.min_length:
            return "short"
        return "numeric" if signs.isdigit() and not self.numeric else ""

    def over(self, sizes: Ints) -> NDArray[np.bool_]:
        """Which groups of so many candidates are too ambiguous."""
        return np.zeros(len(sizes), bool) if self.max_candidates is None else sizes > self.max_candidates

    def trim(self, meanings: Meanings) -> Meanings:
        """Skip or truncate groups that are too ambiguous."""
        over = self.over(meanings.sizes)
        group, rows = meanings.find(np.arange(len(over)))
        if self.ambiguous == "truncate" and self.max_candidates is not None:
            return meanings.keep(rows - meanings.bounds[group] < self.max_candidates)
        return meanings.keep(~over[group])


class AliasIndex:
    """Names by their words, and what each may mean.

    Parameters
    ----------
    source
        The aliases.
    guards
        What to leave out.

    Attributes
    ----------
    n_levels : int
        3 where the case of a text matters, else 1.
    meanings : Meanings
        Of the groups ``key * n_levels + level``.
    skipped : pandas.DataFrame
        Columns alias, reason.
    """

    def __init__(self, source: Aliases, guards: Guards) -> None:
        self.vocabulary = Vocabulary(source)
        names = self.vocabulary.aliases
        forms = Words.of(names).forms(case=guards.case == "exact")
        levels = list(map(guards.level, names, forms))
        reasons = np.array(list(map(guards.reason, forms, levels)), dtype=object)
        kept = ["" if why else form for form, why in zip(forms, reasons, strict=True)]
        keys, rows = self.vocabulary.keyed(kept)
        self.n_levels = 3 if guards.case == "auto" and any(levels) else 1
        meanings = self._levelled(rows, np.array(levels, np.int64), len(keys))
        over = np.unique(np.flatnonzero(guards.over(meanings.sizes)) // self.n_levels)
        reasons[np.isin(np.asarray(kept, dtype=object), [keys[key] for key in over])] = "ambiguous"
        self.meanings = guards.trim(meanings)
        self.skipped = pd.DataFrame({"alias": names, "reason": reasons})[reasons != ""].reset_index(drop=True)
        self.n_words = np.array([key.count(" ") + 1 for key in keys], np.int64)
        self.automaton = _automaton(keys)

    def _levelled(self, rows: pd.DataFrame, first: Ints, n_keys: int) -> Meanings:
        least, n = first[rows["alias"].to_numpy()], self.n_levels
        tables = [rows.assign(key=rows["key"] * n + level)[least <= level] for level in range(n)] if n > 1 else [rows]
        return meanings_of(pd.concat(tables), n_keys * n, priors=self.vocabulary.priors)

    def find(self, folded: str) -> tuple[Ints, Ints, Ints]:
        """Number of the first and of the last word, and key, of every name in folded words."""
        if not len(self.n_words):
            return (np.empty(0, np.int64),) * 3
        hits = np.array(list(self.automaton.iter(folded)), np.int64).reshape(-1, 2)
        stop, key = hits[:, 0], hits[:, 1]
        last = np.searchsorted(_ends(folded), stop)
        return last - self.n_words[key] + 1, last, key


def _ends(folded: str) -> Ints:
    """Where each word ends."""
    codes = np.frombuffer(folded.encode("utf-32-le"), np.uint32)
    blank = codes == ord(" ")
    return np.flatnonzero(blank[1:] & ~blank[:-1] & (codes[:-1] != ord("\n"))) + 1


def _automaton(keys: list[str]) -> Any:
    """Keys between blanks, so that whatever is met is made of whole words."""
    ahocorasick = module_of_extra("ahocorasick", "linkers")
    automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
    for number, key in enumerate(keys):
        automaton.add_word(f" {key} ", number)
    automaton.make_automaton()
    return automaton
