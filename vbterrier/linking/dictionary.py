"""Linking by exact matches of dictionary names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, choice, examples, module_of_extra, warn
from vbterrier.linking.aliases import Meanings, Mentions, Vocabulary, aliases_of, meanings_of
from vbterrier.linking.links import Identified, Links, positive
from vbterrier.linking.words import Words, batches, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Ints
    from vbterrier.linking.aliases import Aliases


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
# The case of a text determines the names that a mention matches. A lower-case mention in a text of both cases matches
# no acronym; in a text of one case it matches acronyms other than function words; a mention in capitals matches any.
MIXED, CASELESS, CAPITALS = range(3)
_ACRONYM = range(2, 6)

_NO_MENTIONS = Mentions(*(np.empty(0, np.int64),) * 3)


@dataclass(frozen=True)
class Guards:
    """Rules that leave out names; see :class:`~vbterrier.linking.dictionary.DictionaryLinker`."""

    max_candidates: int | None
    ambiguous: str
    min_length: int
    numeric: bool
    stop_aliases: tuple[str, ...] | None
    case: str

    @cached_property
    def _stop_forms(self) -> frozenset[str]:
        return frozenset(Words.of(list(self.stop_aliases or ())).forms())

    def level(self, name: str, form: str) -> int:
        """Return the first of ``MIXED``, ``CASELESS``, ``CAPITALS`` at which a mention matches this name."""
        if self.case == "ignore" or not name.isupper() or " " in form or sum(map(str.isalpha, form)) not in _ACRONYM:
            return MIXED
        return CAPITALS if form.casefold() in STOP_ALIASES else CASELESS

    def reason(self, form: str, level: int) -> str:
        """Return the reason to leave out a name; empty to keep it."""
        characters, plain = form.replace(" ", ""), form.casefold()
        function_word = self.stop_aliases is not None and plain in STOP_ALIASES and level != CAPITALS
        if not characters:
            return "empty"
        if function_word or plain in self._stop_forms:
            return "stop"
        if len(characters) < self.min_length:
            return "short"
        return "numeric" if characters.isdigit() and not self.numeric else ""

    def too_ambiguous(self, sizes: Ints) -> NDArray[np.bool_]:
        """Return True for groups with more than ``max_candidates`` candidates."""
        return np.zeros(len(sizes), bool) if self.max_candidates is None else sizes > self.max_candidates

    def trim(self, meanings: Meanings) -> Meanings:
        """Skip or truncate groups that are too ambiguous."""
        too_ambiguous = self.too_ambiguous(meanings.sizes)
        group, rows = meanings.find(np.arange(len(too_ambiguous)))
        if self.ambiguous == "truncate" and self.max_candidates is not None:
            return meanings.keep(rows - meanings.bounds[group] < self.max_candidates)
        return meanings.keep(~too_ambiguous[group])


class AliasIndex:
    """An index of names by their words, with their candidate entities.

    Parameters
    ----------
    source
        The aliases.
    guards
        The rules that leave out names.

    Attributes
    ----------
    n_levels : int
        3 if the case of a text matters, else 1.
    meanings : Meanings
        The candidates of the groups ``key * n_levels + level``.
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
        first, n = np.array(levels, np.int64)[rows["alias"].to_numpy()], self.n_levels
        tables = [rows.assign(key=rows["key"] * n + level)[first <= level] for level in range(n)] if n > 1 else [rows]
        meanings = meanings_of(pd.concat(tables), len(keys) * n, priors=self.vocabulary.priors)
        ambiguous = np.unique(np.flatnonzero(guards.too_ambiguous(meanings.sizes)) // n)
        reasons[np.isin(np.asarray(kept, dtype=object), [keys[key] for key in ambiguous])] = "ambiguous"
        self.meanings = guards.trim(meanings)
        self.skipped = pd.DataFrame({"alias": names, "reason": reasons})[reasons != ""].reset_index(drop=True)
        self.n_words = np.array([key.count(" ") + 1 for key in keys], np.int64)
        ahocorasick = module_of_extra("ahocorasick", "linkers")
        self.automaton = ahocorasick.Automaton(ahocorasick.STORE_INTS)
        for number, key in enumerate(keys):
            # The blanks restrict matches to whole words.
            self.automaton.add_word(f" {key} ", number)
        self.automaton.make_automaton()

    def find(self, folded: str) -> tuple[Ints, Ints, Ints]:
        """Return the numbers of the first and the last word, and the key, of every name in folded words."""
        if not len(self.n_words):
            return (np.empty(0, np.int64),) * 3
        hits = np.array(list(self.automaton.iter(folded)), np.int64).reshape(-1, 2)
        stop, key = hits[:, 0], hits[:, 1]
        codes = np.frombuffer(folded.encode("utf-32-le"), np.uint32)
        blank = codes == ord(" ")
        word_ends = np.flatnonzero(blank[1:] & ~blank[:-1] & (codes[:-1] != ord("\n"))) + 1
        last = np.searchsorted(word_ends, stop)
        return last - self.n_words[key] + 1, last, key


class DictionaryLinker(Identified):
    """Link exact matches of dictionary names in texts.

    Names and texts are compared by their words: NFC, casefolded, without punctuation ("St. Louis" matches "st louis").
    A name never matches part of a word ("Paris" does not match "Parisian"). Of overlapping names the leftmost is
    linked, and of names with the same start the longest (``longest=False`` links all). A match may span punctuation:
    "Paris. Texas" matches "Paris, Texas". In scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) a name
    matches its letters in sequence, also within a longer word.

    Parameters
    ----------
    aliases
        A knowledge base, or a frame alias, entity_id [, score, weight, name], where ``score`` is the probability of the
        entity given the alias. Names with the same words share their candidates, weighted by ``weight`` (frequency).
        Without scores each of the n entities of a name has probability 1/n.
    id_space
        The name of the id space of a frame.
    longest
        Leave out names that overlap a name further left or longer.
    max_candidates
        The maximum number of entities of a name; names with more are too ambiguous. ``None`` for no limit.
    ambiguous
        The treatment of names that are too ambiguous: ``"skip"``, or ``"truncate"`` to the most probable entities (ties
        by id) with unchanged probabilities.
    min_length
        The minimum number of letters, digits and symbols of a name.
    numeric
        Include names without letters, such as "1984".
    stop_aliases
        Names to leave out, in addition to some 150 English function words ("it", "who"); ``None`` to leave out none.
    case
        ``"ignore"``; ``"exact"``; or ``"auto"``: a name of one word of 2 to 5 capitals ("US", "WHO") matches capitals
        only, unless the whole text is in one case. Function words in capitals are then not left out.

    Attributes
    ----------
    skipped : pandas.DataFrame
        Columns alias, reason (``"empty"``, ``"short"``, ``"numeric"``, ``"stop"``, ``"ambiguous"``): names that are
        left out or truncated. A ``DegenerateWarning`` gives the counts once, when the linker is constructed.

    Raises
    ------
    InputError
        See :class:`~vbterrier.linking.aliases.AliasFrame`.
    ParameterError
        An invalid parameter; a frame without an id space.
    ModuleNotFoundError
        The extra ``linkers`` is not installed.

    Notes
    -----
    The Aho-Corasick automaton over words takes time linear in the length of the text, independent of the number of
    names. Linkers are equal if their aliases and parameters are; these are pickled, and the index is rebuilt on first
    use.

    Aho, Corasick, *Efficient string matching: an aid to bibliographic search*, CACM 18(6), 1975.

    Examples
    --------
    >>> import pandas as pd
    >>> names = pd.DataFrame({"alias": ["New York", "York"], "entity_id": ["Q60", "Q42462"]})
    >>> linker = DictionaryLinker(names, id_space="wikidata")
    >>> linker.link(["From York to NEW  YORK!"]).frame[["start", "end", "mention", "entity_id"]].values.tolist()
    [[5, 9, 'York', 'Q42462'], [13, 22, 'NEW  YORK', 'Q60']]
    """

    _SUBJECT = "aliases"
    _DEFAULTS: ClassVar = {
        "longest": True,
        "max_candidates": None,
        "ambiguous": "skip",
        "min_length": 2,
        "numeric": False,
        "stop_aliases": (),
        "case": "auto",
    }
    _DERIVED = ("_index",)

    def __init__(
        self,
        aliases: Any,
        *,
        id_space: str | None = None,
        longest: bool = True,
        max_candidates: int | None = None,
        ambiguous: str = "skip",
        min_length: int = 2,
        numeric: bool = False,
        stop_aliases: Iterable[str] | None = (),
        case: str = "auto",
    ) -> None:
        if isinstance(stop_aliases, str):
            raise ParameterError(f"stop_aliases={stop_aliases!r}: wanted a list of names, or None")
        self.max_candidates = positive("max_candidates", max_candidates) if max_candidates is not None else None
        self.ambiguous = choice("ambiguous", ambiguous, ("skip", "truncate"))
        self.min_length = positive("min_length", min_length)
        self.case = choice("case", case, ("auto", "ignore", "exact"))
        self.longest, self.numeric = longest, numeric
        self.stop_aliases = None if stop_aliases is None else tuple(stop_aliases)
        self.aliases = aliases_of(aliases, id_space)
        self.id_space = self.aliases.id_space
        self._index.vocabulary.warn_of_overfull()
        self._warn_of_skipped()

    def link(self, texts: Sequence[str]) -> Links:
        """Link the names in each text, from left to right, with the most probable candidate first.

        Parameters
        ----------
        texts
            The texts. Offsets are in code points.

        Returns
        -------
        Links
            Scale ``"probability"``.
        """
        texts = texts_of(texts)
        found = [(_NO_MENTIONS, np.empty(0, np.int64))]
        found += [self._found(place, batch) for place, batch in batches(texts)]
        mentions = Mentions(*map(np.concatenate, zip(*(mentions for mentions, _ in found), strict=True)))
        groups = np.concatenate([groups for _, groups in found])
        frame = self._index.vocabulary.links(texts, mentions, self._index.meanings, groups)
        return Links(frame, self.id_space, "probability")

    @property
    def skipped(self) -> pd.DataFrame:
        """The names that are left out or truncated, with the reason."""
        skipped: pd.DataFrame = self._index.skipped.copy()
        return skipped

    @cached_property
    def _index(self) -> AliasIndex:
        guards = Guards(
            self.max_candidates, self.ambiguous, self.min_length, self.numeric, self.stop_aliases, self.case
        )
        return AliasIndex(self.aliases, guards)

    def _found(self, place: int, texts: list[str]) -> tuple[Mentions, Ints]:
        """Return the names in consecutive texts, the first of which has index ``place``, and the group of each."""
        index, words = self._index, Words.of(texts)
        first, last, key = index.find(words.folded(case=self.case == "exact"))
        mentions = Mentions(words.text[first], words.start[first], words.end[last])
        level = _levels(texts, mentions) if index.n_levels > 1 else np.zeros(len(key), np.int64)
        group = key * index.n_levels + level
        known = np.flatnonzero(index.meanings.sizes[group])
        order = known[np.lexsort((-mentions.end[known], mentions.start[known], mentions.text[known]))]
        if self.longest:
            order = order[_non_overlapping(mentions.take(order))]
        text, start, end = mentions.take(order)
        return Mentions(text + place, start, end), group[order]

    def _warn_of_skipped(self) -> None:
        reasons = self._index.skipped.groupby("reason", sort=True)["alias"]
        if not len(self._index.skipped):
            return
        counts = ", ".join(f"{len(names)} {reason} ({examples(names)})" for reason, names in reasons)
        warn(
            f"dictionary: some of the {len(self._index.vocabulary.aliases)} aliases are left out or truncated: "
            f"{counts}; see stop_aliases, min_length, numeric and max_candidates, and the linker's .skipped"
        )


def _levels(texts: list[str], mentions: Mentions) -> Ints:
    """Return the level of each mention, from the case of its text and, if the text has both cases, its own."""
    both = {
        place: texts[place] not in {texts[place].lower(), texts[place].upper()} for place in set(mentions.text.tolist())
    }
    level = [
        (CAPITALS if words.isupper() else MIXED) if both[place] else CASELESS
        for place, words in zip(mentions.text.tolist(), mentions.words(texts), strict=True)
    ]
    return np.array(level, np.int64)


def _non_overlapping(mentions: Mentions) -> Ints:
    """Return the places of mentions that overlap no kept mention before them."""
    kept, last_end, last_text = [], 0, -1
    for place, (text, start, end) in enumerate(zip(*(column.tolist() for column in mentions), strict=True)):
        if text != last_text or start >= last_end:
            kept.append(place)
            last_text, last_end = text, end
    return np.array(kept, np.int64)
