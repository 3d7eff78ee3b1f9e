"""Linking by exact and by approximate matches of dictionary names."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import InputError, ParameterError, choice, examples, excerpt, module_of_extra, warn
from vbterrier.linking.aliases import (
    Meanings,
    Mentions,
    Vocabulary,
    candidate_links,
    check_aliases,
    meanings_from_table,
    warn_of_overfull,
)
from vbterrier.linking.lexicon import CAPITALS, CASELESS, MIXED, STOP_ALIASES, Lexicon
from vbterrier.linking.links import BLOCK_CELLS, Identified, Links, positive
from vbterrier.linking.words import Words, batches, check_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats, Ints


REASONS = ("", "empty", "stop", "short", "numeric", "ambiguous")
KEPT, EMPTY, STOP, SHORT, NUMERIC, AMBIGUOUS = range(len(REASONS))

# Similarities are ratios of numbers of letters. A similarity equal to the minimum must pass, which RapidFuzz's own
# threshold does not guarantee.
_CUTOFF_TOLERANCE = 1e-6
_SIMILARITIES = {"indel": "Indel", "levenshtein": "Levenshtein", "jaro_winkler": "JaroWinkler"}


class AliasIndex:
    """The names of a lexicon that the parameters of a linker do not leave out, and their candidates by group."""

    def __init__(self, linker: DictionaryLinker) -> None:
        self.lexicon = Lexicon.of(linker.aliases, case=linker.case, stop=linker.stop_aliases is not None)
        self.meanings = self._limit_candidates(linker)
        reasons = self._reasons(linker)
        self._is_kept = (reasons == KEPT) | (reasons == AMBIGUOUS)
        # The last two reasons are those of aliases without a name, whose numbers are -1 and -2.
        of_aliases = np.concatenate([reasons, [STOP, EMPTY]]).astype(np.int8)[self.lexicon.name_of_alias]
        places = np.flatnonzero(of_aliases)
        words = np.array(REASONS, dtype=object)[of_aliases[places]]
        self.skipped = pd.DataFrame({"alias": self.lexicon.aliases(places), "reason": words})

    def _limit_candidates(self, linker: DictionaryLinker) -> Meanings:
        """Skip or truncate groups that are too ambiguous."""
        meanings, most = self.lexicon.meanings, linker.max_candidates
        if most is None or (meanings.sizes <= most).all():
            return meanings
        group, rows = meanings.find(np.arange(len(meanings.sizes)))
        is_skipping = linker.ambiguous == "skip"
        return meanings.keep((meanings.sizes <= most)[group] if is_skipping else rows - meanings.bounds[group] < most)

    def _reasons(self, linker: DictionaryLinker) -> NDArray[np.int8]:
        """Return the reason to leave out each name, a number of ``REASONS``; 0 to keep it."""
        lexicon = self.lexicon
        reasons = np.where(lexicon.numeric & (not linker.numeric), NUMERIC, KEPT).astype(np.int8)
        reasons[lexicon.n_letters < linker.min_length] = SHORT
        if linker.stop_aliases:
            plain = lexicon.phrases.text
            if linker.case == "exact":
                plain = pa.array([text.casefold() for text in plain.to_pylist()], plain.type)
            stop = pa.array(Words.of(list(linker.stop_aliases)).forms(), plain.type)
            reasons[pc.is_in(plain, value_set=stop).to_numpy(zero_copy_only=False)] = STOP
        if linker.max_candidates is not None:
            many = lexicon.meanings.sizes > linker.max_candidates
            # The groups of a name are adjacent.
            any_many = np.logical_or.reduceat(many, lexicon.group) if len(lexicon.group) else many
            reasons[any_many & (reasons == KEPT)] = AMBIGUOUS
        return reasons

    def find(self, words: Words, *, case: bool) -> tuple[Mentions, Ints]:
        """Return all mentions of names in texts in any order, and the group of each."""
        first, last, name = self.lexicon.phrases.find(np.frombuffer(words.utf8(case=case), np.uint8))
        kept = np.flatnonzero(self._is_kept[name])
        first, last, name = first[kept], last[kept], name[kept]
        mentions = Mentions(words.text[first], words.start[first], words.end[last])
        titles = np.flatnonzero(self.lexicon.qualified[name])
        if len(titles):
            written = mentions.take(titles).words(words.texts)
            is_written = np.ones(len(name), dtype=bool)
            is_written[titles] = ["(" in text for text in written]
            kept = np.flatnonzero(is_written)
            mentions, name = mentions.take(kept), name[kept]
        group = self.lexicon.group[name].astype(np.int64)
        cased = np.flatnonzero(self.lexicon.cased[name])
        group[cased] += _levels(words.texts, mentions.take(cased))
        with_meanings = np.flatnonzero(self.meanings.bounds[group + 1] > self.meanings.bounds[group])
        return mentions.take(with_meanings), group[with_meanings]


class DictionaryLinker(Identified):
    """Link exact matches of dictionary names in texts.

    Names and texts are compared by their words: NFC, casefolded, without punctuation ("St. Louis" matches "st louis"),
    also across it ("Paris. Texas" matches "Paris, Texas"). A name never matches part of a word, except in scripts
    without spaces (Han, kana, Thai, Lao, Khmer, Myanmar), where it matches its letters in sequence. Of overlapping
    names the leftmost is linked, and of names with the same start the longest (``longest=False`` links all).

    Parameters
    ----------
    aliases
        A knowledge base, or a frame alias, entity_id [, score or count, weight, name], where ``score`` is the
        probability of the entity given the alias, and ``count`` (or ``clicks``) that of both, of which ``p ∝ count +
        1``. Names with the same words share their candidates, weighted by ``weight`` (frequency).
        Without scores each of the n entities of a name has probability 1/n.
    id_space
        The name of the id space of a frame.
    longest
        Leave out names that overlap a name further left or longer.
    max_candidates, ambiguous
        The maximum number of entities of a name (``None`` for no limit), and the treatment of names with more:
        ``"skip"``, or ``"truncate"`` to the most probable entities (ties by id) with unchanged probabilities.
    min_length, numeric
        The minimum number of letters, digits and symbols of a name; include names without letters, such as "1984".
    stop_aliases
        Names to leave out, beside some 150 English function words ("it", "who"); ``None`` to leave out none.
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
    InputError, ParameterError
        Invalid aliases; an invalid parameter, or a frame without an id space.

    Notes
    -----
    A text takes time linear in its words and logarithmic in the number of names. A knowledge base of more than 100,000
    aliases has the index of names in a file, which linkers of any number of processes map instead of building it, if
    ``case="auto"`` and ``stop_aliases`` is not ``None``. Linkers are equal if their aliases and parameters are; these
    are pickled, and the index is opened or rebuilt on first use.

    Examples
    --------
    >>> import pandas as pd
    >>> names = pd.DataFrame({"alias": ["New York", "York"], "entity_id": ["Q60", "Q42462"]})
    >>> linker = DictionaryLinker(names, id_space="wikidata")
    >>> linker.link(["From York to NEW  YORK!"]).frame[["start", "end", "mention", "entity_id"]].values.tolist()
    [[5, 9, 'York', 'Q42462'], [13, 22, 'NEW  YORK', 'Q60']]
    """

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
            raise ParameterError(f"stop_aliases={excerpt(stop_aliases)}: wanted a list of names, or None")
        self.max_candidates = positive("max_candidates", max_candidates) if max_candidates is not None else None
        self.ambiguous = choice("ambiguous", ambiguous, ("skip", "truncate"))
        self.min_length = positive("min_length", min_length)
        self.case = choice("case", case, ("auto", "ignore", "exact"))
        self.longest, self.numeric = longest, numeric
        self.stop_aliases = None if stop_aliases is None else tuple(stop_aliases)
        self.aliases = check_aliases(aliases, id_space)
        self.id_space = self.aliases.id_space
        warn_of_overfull(self._index.lexicon.over)
        if len(self._index.skipped):
            reasons = self._index.skipped.groupby("reason", sort=True)["alias"]
            counts = ", ".join(f"{len(names)} {reason} ({examples(names)})" for reason, names in reasons)
            warn(
                f"dictionary: some of the {len(self._index.lexicon.name_of_alias)} aliases are left out or truncated: "
                f"{counts}; see stop_aliases, min_length, numeric and max_candidates, and the linker's .skipped"
            )

    def link(self, texts: Sequence[str]) -> Links:
        """Link the names in each text, from left to right, the most probable first; scale ``"probability"``."""
        texts = check_texts(texts)
        parts = [(np.empty(0, np.int64),) * 4, *(self._names_in(place, batch) for place, batch in batches(texts))]
        *offsets, groups = map(np.concatenate, zip(*parts, strict=True))
        mentions = Mentions(*offsets)
        lexicon = self._index.lexicon
        frame = candidate_links(texts, mentions, self._index.meanings, groups, lexicon.ids, lexicon.labels)
        return Links(frame, self.id_space, "probability")

    @property
    def skipped(self) -> pd.DataFrame:
        """The names that are left out or truncated, with the reason."""
        skipped: pd.DataFrame = self._index.skipped.copy()
        return skipped

    @cached_property
    def _index(self) -> AliasIndex:
        return AliasIndex(self)

    def _names_in(self, place: int, texts: list[str]) -> tuple[Ints, Ints, Ints, Ints]:
        """Return text, start, end and group of the names in texts, the first of which has index ``place``."""
        # One accent would make the batch take the slower way of all scripts, so that its texts are linked separately.
        plain = np.array([text.isascii() for text in texts], bool)
        parts = [rows for rows in (np.flatnonzero(plain), np.flatnonzero(~plain)) if len(rows)]
        parts_found = [self._mentions([texts[row] for row in rows.tolist()], rows + place) for rows in parts]
        if len(parts_found) == 1:
            return parts_found[0]
        text, start, end, group = map(np.concatenate, zip(*parts_found, strict=True))
        order = np.argsort(text, kind="stable")
        return text[order], start[order], end[order], group[order]

    def _mentions(self, texts: list[str], numbers: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Return text, start, end and group of the names in texts with these indices."""
        mentions, group = self._index.find(Words.of(texts), case=self.case == "exact")
        order = np.lexsort((-mentions.end, mentions.start, mentions.text))
        if self.longest:
            order = order[_non_overlapping(mentions.take(order))]
        text, start, end = mentions.take(order)
        return numbers[text], start, end, group[order]


def _levels(texts: list[str], mentions: Mentions) -> Ints:
    """Return the level of each mention, from the case of its text and, if the text has both cases, its own."""
    owner = mentions.text.tolist()
    both = {place: texts[place] not in {texts[place].lower(), texts[place].upper()} for place in set(owner)}
    level = [
        (CAPITALS if words.isupper() else MIXED) if both[place] else CASELESS
        for place, words in zip(owner, mentions.words(texts), strict=True)
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


class FuzzyLinker(Identified):
    """Link texts, or parts of short texts, to the most similar names.

    ``score = s(mention, name)``, the largest over the names of an entity, times the probability of the entity given the
    name if the aliases have priors. Mentions and names are compared as folded words (NFC, casefolded, no punctuation).

    Parameters
    ----------
    aliases, id_space
        As in :class:`DictionaryLinker`.
    min_similarity
        The minimum similarity, above 0, at most 1.
    max_words, min_length
        ``None`` if the whole text is the mention. A number compares every run of up to that many words of the text, for
        short texts such as queries, with at least ``min_length`` letters and not only function words, and links
        non-overlapping runs, the most similar first (ties: the longer, then the left one).
    limit
        The maximum number of candidates of a mention, ties by id.
    similarity
        ``"indel"`` (1 - insertions and deletions / letters of both; RapidFuzz's ``ratio``), ``"levenshtein"``, or
        ``"jaro_winkler"``.
    word_order
        Take the order of words into account; if False, "Smith, John" equals "John Smith".

    Raises
    ------
    InputError, ParameterError
        As in :class:`DictionaryLinker`; no alias with a letter or digit.
    ModuleNotFoundError
        The extra ``linkers`` is not installed.

    Notes
    -----
    Every distinct mention is compared with every name (some 10 to 100 million comparisons per second). For many texts
    and a large knowledge base use its look-up.

    Examples
    --------
    >>> import pandas as pd
    >>> names = pd.DataFrame({"alias": ["John Smith", "Joan Smyth"], "entity_id": ["S1", "S2"]})
    >>> linker = FuzzyLinker(names, id_space="people", min_similarity=0.8, max_words=3)
    >>> linker.link(["senator jon smith of ohio"]).frame[["mention", "entity_id", "score"]].round(3).values.tolist()
    [['jon smith', 'S1', 0.947], ['jon smith', 'S2', 0.842]]
    """

    def __init__(
        self,
        aliases: Any,
        *,
        id_space: str | None = None,
        min_similarity: float = 0.85,
        max_words: int | None = None,
        min_length: int = 3,
        limit: int = 10,
        similarity: str = "indel",
        word_order: bool = True,
    ) -> None:
        if not 0 < min_similarity <= 1:
            raise ParameterError(f"min_similarity={excerpt(min_similarity)}: wanted a number above 0 and at most 1")
        self.min_similarity, self.word_order = float(min_similarity), word_order
        self.max_words = None if max_words is None else positive("max_words", max_words)
        self.min_length, self.limit = positive("min_length", min_length), positive("limit", limit)
        self.similarity = choice("similarity", similarity, tuple(_SIMILARITIES))
        self.aliases = check_aliases(aliases, id_space)
        self.id_space = self.aliases.id_space
        warn_of_overfull(self._vocabulary.over)
        if not self._names[0]:
            raise InputError("aliases: none has a letter or digit; a linker needs at least one name")

    def link(self, texts: Sequence[str]) -> Links:
        """Link each text, or its parts, to the most similar names, the best first; scale ``"score"``, in [0, 1]."""
        texts = check_texts(texts)
        spans = [row for place, batch in batches(texts) for row in self._spans(place, batch)]
        mentions = Mentions(*np.array([row[:3] for row in spans], np.int64).reshape(-1, 3).T)
        distinct, number = np.unique(np.array([row[3] for row in spans], dtype=object), return_inverse=True)
        candidates, best = self._candidates(distinct.tolist())
        if self.max_words is not None:
            kept = _disjoint(mentions, best[number])
            mentions, number = mentions.take(kept), number[kept]
        vocabulary = self._vocabulary
        frame = candidate_links(texts, mentions, candidates, number, vocabulary.ids, vocabulary.labels)
        return Links(frame, self.id_space, "score")

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.aliases)

    @cached_property
    def _names(self) -> tuple[list[str], Meanings]:
        """The distinct folded names, and the candidate entities of each; aliases without words are left out."""
        vocabulary = self._vocabulary
        forms = list(map(self._sort_words, Words.of(vocabulary.aliases).forms()))
        distinct, number = np.unique(np.array(forms, dtype=object), return_inverse=True)
        first = int(not distinct[0])
        key = number[vocabulary.rows["alias"].to_numpy()] - first
        rows = vocabulary.rows.assign(key=key)[key >= 0]
        return distinct[first:].tolist(), meanings_from_table(rows, len(distinct) - first, vocabulary)

    def _sort_words(self, form: str) -> str:
        return form if self.word_order else " ".join(sorted(form.split(" ")))

    def _spans(self, place: int, texts: list[str]) -> Iterator[tuple[int, int, int, str]]:
        """Yield text, start, end and form of possible mentions; ``place`` is the index of the first text."""
        words = Words.of(texts)
        bounds = np.searchsorted(words.text, np.arange(len(texts) + 1)).tolist()
        for offset, form in enumerate(words.forms()):
            if self.max_words is None:
                if form:
                    yield place + offset, 0, len(texts[offset]), self._sort_words(form)
                continue
            words_of_text = slice(bounds[offset], bounds[offset + 1])
            starts, ends, folded = words.start[words_of_text].tolist(), words.end[words_of_text].tolist(), form.split()
            for first, start in enumerate(starts):
                for last in range(first, min(first + self.max_words, len(starts))):
                    run = folded[first : last + 1]
                    if sum(map(len, run)) >= self.min_length and not STOP_ALIASES.issuperset(run):
                        yield place + offset, start, ends[last], self._sort_words(" ".join(run))

    def _candidates(self, forms: list[str]) -> tuple[Meanings, Floats]:
        """Return the candidates of each form, and its similarity to the most similar name (0 if there is none)."""
        keys, meanings = self._names
        form, key, similarity = self._similar(forms, keys)
        best = np.zeros(len(forms))
        np.maximum.at(best, form, similarity)
        pair, rows = meanings.find(key)
        score = similarity[pair] * meanings.score[rows] if self._vocabulary.priors else similarity[pair]
        table = pd.DataFrame({"form": form[pair], "entity": meanings.entity[rows], "score": score})
        table = table.sort_values(["form", "score", "entity"], ascending=[True, False, True])
        table = table.drop_duplicates(["form", "entity"])
        owner, entity, score = (table[name].to_numpy() for name in ("form", "entity", "score"))
        senses = Meanings(np.searchsorted(owner, np.arange(len(forms) + 1)), entity, score)
        group, rows = senses.find(np.arange(len(forms)))
        return senses.keep(rows - senses.bounds[group] < self.limit), best

    def _similar(self, forms: list[str], keys: list[str]) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of a form and a key that are similar enough, and their similarities."""
        process = module_of_extra("rapidfuzz.process", "linkers")
        scorer = getattr(module_of_extra("rapidfuzz.distance", "linkers"), _SIMILARITIES[self.similarity])
        step = max(1, BLOCK_CELLS // len(keys))
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        options = {
            "scorer": scorer.normalized_similarity,
            "score_cutoff": max(self.min_similarity - _CUTOFF_TOLERANCE, 0.0),
        }
        for begin in range(0, len(forms), step):
            cells = process.cdist(forms[begin : begin + step], keys, dtype=np.float64, **options)
            form, key = np.nonzero(cells >= self.min_similarity - _CUTOFF_TOLERANCE / 1000)
            parts.append((form + begin, key, cells[form, key]))
        form, key, similarity = (np.concatenate(parts) for parts in zip(*parts, strict=True))
        return form, key, similarity


def _disjoint(mentions: Mentions, best: Floats) -> Ints:
    """Select mentions with a candidate that do not overlap: the most similar first, then the longest, the leftmost."""
    hits = np.flatnonzero(best > 0)
    text, start, end = mentions.take(hits)
    taken: dict[int, list[tuple[int, int]]] = {}
    kept = []
    for place in np.lexsort((start, start - end, -best[hits])):
        spans, low, high = taken.setdefault(int(text[place]), []), start[place], end[place]
        if all(high <= left or right <= low for left, right in spans):
            spans.append((low, high))
            kept.append(hits[place])
    return np.sort(np.array(kept, dtype=np.int64))
