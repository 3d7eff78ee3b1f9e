"""Linking by approximate matches of dictionary names."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, module_of_extra
from vbterrier.linking.aliases import Meanings, Mentions, Vocabulary, aliases_of, meanings_of
from vbterrier.linking.lexicon import STOP_ALIASES
from vbterrier.linking.links import Identified, Links, positive
from vbterrier.linking.words import Words, batches, texts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Floats, Ints


# Similarities in memory at a time: 64 MB.
_CELLS = 2**23
# Similarities are ratios of numbers of letters. A similarity equal to the minimum must pass, which RapidFuzz's own
# threshold does not guarantee.
_ROUNDING = 1e-6
_SIMILARITIES = {"indel": "Indel", "levenshtein": "Levenshtein", "jaro_winkler": "JaroWinkler"}


class FuzzyLinker(Identified):
    """Link texts, or parts of short texts, to the most similar names.

    ``score = s(mention, name)``, the largest over the names of an entity, times the probability of the entity given the
    name if the aliases have priors. Mentions and names are compared as folded words (NFC, casefolded, no punctuation).

    Parameters
    ----------
    aliases
        A knowledge base, or a frame alias, entity_id [, score, weight, name].
    id_space
        The name of the id space of a frame.
    min_similarity
        The minimum similarity, above 0, at most 1.
    max_words
        ``None`` if the whole text is the mention. A number compares every run of up to that many words of the text and
        links non-overlapping runs, the most similar first (ties: the longer, then the left one). This is for short
        texts such as queries: the cost grows with the number of words times ``max_words``.
    min_length
        The minimum number of letters of such a run; runs of function words are left out.
    limit
        The maximum number of candidates of a mention, ties by id.
    similarity
        ``"indel"`` (1 - insertions and deletions / letters of both; RapidFuzz's ``ratio``), ``"levenshtein"``, or
        ``"jaro_winkler"``.
    word_order
        Take the order of words into account; if False, "Smith, John" equals "John Smith".

    Raises
    ------
    InputError
        See :class:`~vbterrier.linking.aliases.AliasFrame`; no alias with a letter or digit.
    ParameterError
        An invalid parameter; a frame without an id space.
    ModuleNotFoundError
        The extra ``linkers`` is not installed.

    Notes
    -----
    Every distinct mention is compared with every name. Time grows with the product of their numbers (some 10 to 100
    million comparisons per second), memory does not. For many texts and a large knowledge base use its look-up.

    Examples
    --------
    >>> import pandas as pd
    >>> names = pd.DataFrame({"alias": ["John Smith", "Joan Smyth"], "entity_id": ["S1", "S2"]})
    >>> linker = FuzzyLinker(names, id_space="people", min_similarity=0.8, max_words=3)
    >>> linker.link(["senator jon smith of ohio"]).frame[["mention", "entity_id", "score"]].round(3).values.tolist()
    [['jon smith', 'S1', 0.947], ['jon smith', 'S2', 0.842]]
    """

    _SUBJECT = "aliases"
    _DEFAULTS: ClassVar = {
        "min_similarity": 0.85,
        "max_words": None,
        "min_length": 3,
        "limit": 10,
        "similarity": "indel",
        "word_order": True,
    }
    _DERIVED = ("_vocabulary", "_names")

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
            raise ParameterError(f"min_similarity={min_similarity!r}: wanted a number above 0 and at most 1")
        self.min_similarity, self.word_order = float(min_similarity), word_order
        self.max_words = None if max_words is None else positive("max_words", max_words)
        self.min_length, self.limit = positive("min_length", min_length), positive("limit", limit)
        self.similarity = choice("similarity", similarity, tuple(_SIMILARITIES))
        self.aliases = aliases_of(aliases, id_space)
        self.id_space = self.aliases.id_space
        self._vocabulary.warn_of_overfull()
        if not self._names[0]:
            raise InputError("aliases: none has a letter or digit; a linker needs at least one name")

    def link(self, texts: Sequence[str]) -> Links:
        """Link each text, or its parts, to the most similar names, the best first.

        Parameters
        ----------
        texts
            The texts. Offsets are in code points.

        Returns
        -------
        Links
            Scale ``"score"``, in [0, 1].
        """
        texts = texts_of(texts)
        spans = [row for place, batch in batches(texts) for row in self._spans(place, batch)]
        mentions = Mentions(*np.array([row[:3] for row in spans], np.int64).reshape(-1, 3).T)
        distinct, number = np.unique(np.array([row[3] for row in spans], dtype=object), return_inverse=True)
        candidates, best = self._candidates(distinct.tolist())
        if self.max_words is not None:
            kept = _non_overlapping(mentions, best[number])
            mentions, number = mentions.take(kept), number[kept]
        frame = self._vocabulary.links(texts, mentions, candidates, number)
        return Links(frame, self.id_space, "score")

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.aliases)

    @cached_property
    def _names(self) -> tuple[list[str], Meanings]:
        """The distinct folded names, and the candidate entities of each."""
        vocabulary = self._vocabulary
        keys, rows = vocabulary.keyed(list(map(self._ordered, Words.of(vocabulary.aliases).forms())))
        return keys, meanings_of(rows, len(keys), priors=vocabulary.priors)

    def _ordered(self, form: str) -> str:
        return form if self.word_order else " ".join(sorted(form.split(" ")))

    def _spans(self, place: int, texts: list[str]) -> Iterator[tuple[int, int, int, str]]:
        """Yield text, start, end and form of possible mentions; ``place`` is the index of the first text."""
        words = Words.of(texts)
        bounds = np.searchsorted(words.text, np.arange(len(texts) + 1)).tolist()
        for offset, form in enumerate(words.forms()):
            if self.max_words is None:
                if form:
                    yield place + offset, 0, len(texts[offset]), self._ordered(form)
                continue
            own = slice(bounds[offset], bounds[offset + 1])
            starts, ends, folded = words.start[own].tolist(), words.end[own].tolist(), form.split()
            for first, start in enumerate(starts):
                for last in range(first, min(first + self.max_words, len(starts))):
                    run = folded[first : last + 1]
                    if sum(map(len, run)) >= self.min_length and not STOP_ALIASES.issuperset(run):
                        yield place + offset, start, ends[last], self._ordered(" ".join(run))

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
        found = Meanings(np.searchsorted(owner, np.arange(len(forms) + 1)), entity, score)
        group, rows = found.find(np.arange(len(forms)))
        return found.keep(rows - found.bounds[group] < self.limit), best

    def _similar(self, forms: list[str], keys: list[str]) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of a form and a key that are similar enough, and their similarities."""
        process = module_of_extra("rapidfuzz.process", "linkers")
        scorer = getattr(module_of_extra("rapidfuzz.distance", "linkers"), _SIMILARITIES[self.similarity])
        step = max(1, _CELLS // len(keys))
        found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for begin in range(0, len(forms), step):
            cells = process.cdist(
                forms[begin : begin + step],
                keys,
                scorer=scorer.normalized_similarity,
                score_cutoff=max(self.min_similarity - _ROUNDING, 0.0),
                dtype=np.float64,
            )
            form, key = np.nonzero(cells >= self.min_similarity - _ROUNDING / 1000)
            found.append((form + begin, key, cells[form, key]))
        form, key, similarity = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return form, key, similarity


def _non_overlapping(mentions: Mentions, best: Floats) -> Ints:
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
