"""Linking by exact matches of dictionary names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import ParameterError, choice, examples, warn
from vbterrier.linking.aliases import Meanings, Mentions, aliases_of
from vbterrier.linking.lexicon import CAPITALS, CASELESS, MIXED, Lexicon
from vbterrier.linking.links import Identified, Links, positive
from vbterrier.linking.words import Words, batches, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Ints


REASONS = ("", "empty", "stop", "short", "numeric", "ambiguous")
KEPT, EMPTY, STOP, SHORT, NUMERIC, AMBIGUOUS = range(len(REASONS))
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

    def reasons(self, lexicon: Lexicon) -> NDArray[np.int8]:
        """Return the reason to leave out each name, a number of ``REASONS``; 0 to keep it."""
        found = np.where(lexicon.numeric & (not self.numeric), NUMERIC, KEPT).astype(np.int8)
        found[lexicon.n_letters < self.min_length] = SHORT
        if self.stop_aliases:
            plain = lexicon.phrases.text
            if self.case == "exact":
                plain = pa.array([text.casefold() for text in plain.to_pylist()], plain.type)
            stop = pa.array(Words.of(list(self.stop_aliases)).forms(), plain.type)
            found[pc.is_in(plain, value_set=stop).to_numpy(zero_copy_only=False)] = STOP
        if self.max_candidates is not None:
            many = lexicon.meanings.sizes > self.max_candidates
            # The groups of a name are adjacent.
            any_many = np.logical_or.reduceat(many, lexicon.group) if len(lexicon.group) else many
            found[any_many & (found == KEPT)] = AMBIGUOUS
        return found

    def trim(self, meanings: Meanings) -> Meanings:
        """Skip or truncate groups that are too ambiguous."""
        if self.max_candidates is None or (meanings.sizes <= self.max_candidates).all():
            return meanings
        group, rows = meanings.find(np.arange(len(meanings.sizes)))
        if self.ambiguous == "truncate":
            return meanings.keep(rows - meanings.bounds[group] < self.max_candidates)
        return meanings.keep((meanings.sizes <= self.max_candidates)[group])


class AliasIndex:
    """The names of a lexicon that rules do not leave out.

    - ``guards``: the rules that leave out names
    - ``meanings``: the candidates of each group of the lexicon
    - ``skipped``: columns alias, reason
    """

    def __init__(self, lexicon: Lexicon, guards: Guards) -> None:
        self.lexicon, self.meanings = lexicon, guards.trim(lexicon.meanings)
        reasons = guards.reasons(lexicon)
        self._is_kept = (reasons == KEPT) | (reasons == AMBIGUOUS)
        # The last two reasons are those of aliases without a name, whose numbers are -1 and -2.
        of_aliases = np.concatenate([reasons, [STOP, EMPTY]]).astype(np.int8)[lexicon.name_of_alias]
        places = np.flatnonzero(of_aliases)
        words = np.array(REASONS, dtype=object)[of_aliases[places]]
        self.skipped = pd.DataFrame({"alias": lexicon.aliases(places), "reason": words})

    def find(self, words: Words, *, case: bool) -> tuple[Mentions, Ints]:
        """Return all mentions of names in texts in any order, and the group of each."""
        first, last, name = self.lexicon.phrases.find(np.frombuffer(words.utf8(case=case), np.uint8))
        kept = np.flatnonzero(self._is_kept[name])
        first, last, name = first[kept], last[kept], name[kept]
        mentions = Mentions(words.text[first], words.start[first], words.end[last])
        group = self.lexicon.group[name].astype(np.int64)
        cased = np.flatnonzero(self.lexicon.cased[name])
        group[cased] += _levels(words.texts, mentions.take(cased))
        known = np.flatnonzero(self.meanings.bounds[group + 1] > self.meanings.bounds[group])
        return mentions.take(known), group[known]


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

    Notes
    -----
    Names are found by 64-bit fingerprints of their first words, and then compared byte by byte: a text takes time
    linear in its words and logarithmic in the number of names. A knowledge base of more than 100,000 aliases has this
    index in a file, which linkers of any number of processes map instead of building it, if ``case="auto"`` and
    ``stop_aliases`` is not ``None``. Linkers are equal if their aliases and parameters are; these are pickled, and the
    index is opened or rebuilt on first use.

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
        self._index.lexicon.warn_of_overfull()
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
        frame = self._index.lexicon.links(texts, mentions, self._index.meanings, groups)
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
        return AliasIndex(Lexicon.of(self.aliases, case=self.case, stop=self.stop_aliases is not None), guards)

    def _found(self, place: int, texts: list[str]) -> tuple[Mentions, Ints]:
        """Return the names in consecutive texts, the first of which has index ``place``, and the group of each."""
        mentions, group = self._index.find(Words.of(texts), case=self.case == "exact")
        order = np.lexsort((-mentions.end, mentions.start, mentions.text))
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
            f"dictionary: some of the {len(self._index.lexicon.name_of_alias)} aliases are left out or truncated: "
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
