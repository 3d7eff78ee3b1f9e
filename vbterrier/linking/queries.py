"""Linking of queries, in which names are seldom written in full: parts of names, misspellings and acronyms."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from vbterrier.errors import ParameterError, excerpt, module_of_extra
from vbterrier.kernels import rankings
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.linking.aliases import (
    Meanings,
    Mentions,
    Vocabulary,
    candidate_links,
    check_aliases,
    meanings_from_table,
)
from vbterrier.linking.dictionary import DictionaryLinker
from vbterrier.linking.kb.files import strip_qualifier
from vbterrier.linking.lexicon import STOP_ALIASES
from vbterrier.linking.links import BLOCK_CELLS, COLUMNS, Identified, Links, positive
from vbterrier.linking.words import Words, check_texts, strip_accents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints

# Titles and roles before a name, which are no part of it.
_TITLES = """
admiral archbishop baron baroness bishop brigadier captain cardinal chancellor colonel commander congressman
congresswoman count countess doctor dr duchess duke earl emperor empress general governor judge justice king lady
lieutenant lord madam major marshal mayor minister miss mr mrs ms officer pope president prince princess prof professor
queen rabbi representative secretary senator sergeant sir speaker
"""
TITLES = frozenset(_TITLES.split())
_LONGEST_ACRONYM = 6
_SPAN = ("text", "start", "end")
# "M.S." or "r.a", unless a name follows whose initials they are, as in "J.R. Smith"; and "PTs", the plural of "PT".
_DOTTED = re.compile(r"\b[^\W\d_](?:\.[^\W\d_])+\b(?!\.?\s+[^\W\d_a-z][^\W\d_A-Z])\.?|\b[A-Z]{2,5}s\b")
_NO_ACRONYMS = frozenset({"e.g.", "i.e.", "e.g", "i.e", "a.m.", "p.m.", "a.m", "p.m"})
# Words of fewer letters have too many neighbours.
_LEAST_RESPELT = 4
# A name that shares less of the weight of a query than this times the best name is left out.
_NEAR_BEST = 0.6
# The similarity of a word without accents, so that one written exactly so comes first.
_UNACCENTED = 0.99
# RapidFuzz rounds cutoffs: 0.8 - 1e-9 leaves out a similarity of 0.8.
_CUTOFF_TOLERANCE = 1e-5


class QueryLinker(Identified):
    """Link the names in queries, and where none is written in full, parts of names, misspellings and acronyms.

    Names that a query has in full are linked as by :class:`DictionaryLinker`; if the only one is a single word and the
    aliases have counts of entities, those of longer names with this word are candidates, too, as below: "clinton" is a
    town and Bill Clinton. In other queries each word that may be one of a name is looked up among the words of all
    names. With ``i_w = ln(n / n_w)`` for a word w in n_w of the n
    names, a name a of the words W_a shares ``m_a = Σ_{w in q and W_a} s_w i_w²``, and names with at least .6 of the
    largest m of the query are candidates: ``p(e|q) ∝ max_a c_a p(e|a) m_a / Σ_{w in W_a} i_w²``. ``s_w`` is the
    similarity of a respelt word, otherwise 1. ``c_a p(e|a)`` is the smoothed count of the name and the entity, or of
    the entity, if the aliases have counts; ``p(e|a)`` if they have probabilities; otherwise 1.

    Parameters
    ----------
    aliases, id_space
        As in :class:`DictionaryLinker`.
    min_similarity
        The smallest similarity (RapidFuzz's ``ratio``) of a word of at least four letters that is in no name and the
        words of names that replace it, in (0, 1]; ``None`` to replace none.
    acronyms
        Match a word of 2 to 6 capitals, or in a query of one case any word of this length in no name, with the initials
        of names. In queries without a full name, "M.S." and "r.a." are read as "MS" and "ra", "PTs" as "PT".
    limit
        The maximum number of candidates of a query without a full name, ties by id.

    Raises
    ------
    InputError, ParameterError
        As in :class:`DictionaryLinker`.
    ModuleNotFoundError
        ``min_similarity`` without the extra ``linkers``.

    Notes
    -----
    Words without the accents of a name match it with a similarity of .99. In a query of both cases, words of names
    begin with a capital or a digit. Function words and titles, such as "Senator", are no words of names. ``frame`` has
    a further column ``match``: ``"name"``, ``"part"``, ``"similar"`` or ``"acronym"``. On RAMDocs, with titles of pages
    as names, .98 of 500 questions have candidates, 2.0 on average, and .83 of the entities that are meant are among
    them; a dictionary finds candidates for .58, and .47 of the entities (``tests/data/test_ramdocs.py``).

    Examples
    --------
    >>> import pandas as pd
    >>> names = pd.DataFrame({"alias": ["Amy Klobuchar", "World Health Organization"], "entity_id": ["K1", "O1"]})
    >>> linker = QueryLinker(names, id_space="people")
    >>> result = linker.link(["Senator Klobuchar bill", "klobuhcar speech", "WHO report"]).frame
    >>> result[["entity_id", "match"]].values.tolist()
    [['K1', 'part'], ['K1', 'similar'], ['O1', 'acronym']]
    """

    def __init__(
        self,
        aliases: Any,
        *,
        id_space: str | None = None,
        min_similarity: float | None = 0.8,
        acronyms: bool = True,
        limit: int = 20,
    ) -> None:
        if min_similarity is not None and not 0 < min_similarity <= 1:
            raise ParameterError(
                f"min_similarity={excerpt(min_similarity)}: wanted a number above 0 and at most 1, or None"
            )
        self.min_similarity, self.acronyms = min_similarity, bool(acronyms)
        self.limit = positive("limit", limit)
        self.aliases = check_aliases(aliases, id_space)
        self.id_space = self.aliases.id_space
        self._dictionary = DictionaryLinker(self.aliases)

    def link(self, texts: Sequence[str]) -> Links:
        """Link the names in each text, the most probable candidate first; scale ``"probability"``."""
        texts = check_texts(texts)
        full = self._with_longer_names(self._dictionary.link(texts).frame.assign(match="name"))
        rest = np.setdiff1d(np.arange(len(texts)), full["text"].to_numpy(np.int64))
        # In texts without a name, acronyms are read without dots and as singulars.
        written, ends = list(texts), {}
        for place in rest.tolist():
            written[place], ends[place] = _plain_acronyms(texts[place]) if self.acronyms else (texts[place], {})
        dotted = np.array([place for place in rest.tolist() if ends[place]], np.int64)
        plain = self._dictionary.link([written[place] for place in dotted.tolist()]).frame.assign(match="name")
        plain["text"] = dotted[plain["text"].to_numpy(np.int64)]
        parts = self._in_part(written, np.setdiff1d(rest, plain["text"].to_numpy(np.int64)))
        read = pd.concat([plain, parts])
        offsets = zip(read["text"].tolist(), read["start"].tolist(), read["end"].tolist(), strict=True)
        spans = [(text, start, ends[text].get(end, end)) for text, start, end in offsets]
        read["end"] = np.array([end for *_, end in spans], np.int64)
        read["mention"] = pd.Series([texts[text][start:end] for text, start, end in spans], read.index, dtype="str")
        frame = pd.concat([full, read]).sort_values(["text", "start"], kind="stable", ignore_index=True)
        frame = frame.astype({"match": "str"})
        return Links(frame[[*COLUMNS, "match"]], self.id_space, "probability")

    def _with_longer_names(self, full: pd.DataFrame) -> pd.DataFrame:
        """Add the entities of longer names to the only mention of a text, if it is one word and entities have counts.

        "clinton" may be a town of this name, and Bill Clinton with more clicks.
        """
        if not getattr(self.aliases, "counts_are_of_entities", False) or not len(full):
            return full
        mentions = full.drop_duplicates(["text", "start", "end"])
        mentions = mentions[~mentions["text"].duplicated(keep=False)]
        words = Words.of(mentions["mention"].tolist())
        mentions = mentions[np.bincount(words.text, minlength=len(mentions)) == 1]
        parts = self._in_part(mentions["mention"].tolist(), np.arange(len(mentions)))
        place = parts["text"].to_numpy(np.int64)
        parts = parts.assign(**{column: mentions[column].to_numpy()[place] for column in (*_SPAN, "mention")})
        pairs = pd.MultiIndex.from_frame(full[["text", "entity_id"]])
        is_longer = ~pd.MultiIndex.from_frame(parts[["text", "entity_id"]]).isin(pairs)
        parts["match"] = np.where(is_longer, "part", "name")
        parts = parts[parts["text"].isin(parts["text"][is_longer].unique())]
        return pd.concat([full[~full["text"].isin(parts["text"].unique())], parts], ignore_index=True)

    @cached_property
    def _names(self) -> NameWords:
        return NameWords.of(Vocabulary.of(self.aliases))

    def _in_part(self, texts: list[str], rest: Ints) -> pd.DataFrame:
        """Return links of the texts with these indices, in which no name is written in full."""
        words = Words.of([texts[place] for place in rest.tolist()])
        names, matched = self._names, self._match_words(words)
        weight = matched["similarity"].to_numpy() * names.squared[matched["word"].to_numpy()]
        shape = len(rest), len(names.squared)
        of_texts = sparse.csr_array((weight, (matched["text"].to_numpy(), matched["word"].to_numpy())), shape=shape)
        shared = sparse.coo_array(of_texts @ names.matrix.T)
        text, name, mass = (np.asarray(part) for part in (*shared.coords, shared.data))
        table = pd.DataFrame({"text": text, "name": name, "mass": mass, "share": mass / names.total[name]})
        table = pd.concat([table, self._match_acronyms(words, matched)], ignore_index=True)
        best = table.groupby("text")["mass"].transform("max")
        table = table[table["mass"] >= _NEAR_BEST * best - REPLICA_ROUNDING]
        return self._links(texts, rest, words, matched, table)

    def _match_words(self, words: Words) -> pd.DataFrame:
        """Return the words of names in texts: text, place (of the word), word (of names), similarity; each once."""
        forms = np.array(words.folded_words().split(), dtype=object)
        may = _may_be_names(words, forms)
        places = np.flatnonzero(may)
        distinct, code = np.unique(forms[places], return_inverse=True)
        name_words = self._names.find(distinct)
        exact = np.flatnonzero(name_words[code] >= 0)
        rows = {"place": places[exact], "word": name_words[code][exact]}
        table = pd.DataFrame(rows | {"similarity": np.ones(len(exact))})
        accented, word = self._names.find_accented(distinct)
        near = pd.DataFrame({"code": accented, "word": word, "similarity": _UNACCENTED})
        candidates = pd.DataFrame({"code": code, "place": places}).merge(near, on="code")
        table = pd.concat([table, candidates[["place", "word", "similarity"]]], ignore_index=True)
        odd = np.setdiff1d(np.flatnonzero(name_words < 0), accented)
        if self.min_similarity is not None and len(odd):
            owner, word, similarity = self._names.similar(distinct[odd], self.min_similarity)
            near = pd.DataFrame({"code": odd[owner], "word": word, "similarity": similarity})
            candidates = pd.DataFrame({"code": code, "place": places}).merge(near, on="code")
            table = pd.concat([table, candidates[["place", "word", "similarity"]]], ignore_index=True)
        table["text"] = words.text[table["place"].to_numpy(np.int64)]
        # A repeated word counts once.
        table = table.sort_values(["text", "word", "similarity", "place"], ascending=[True, True, False, True])
        return table.drop_duplicates(["text", "word"], ignore_index=True)

    def _match_acronyms(self, words: Words, matched: pd.DataFrame) -> pd.DataFrame:
        """Return names whose initials are a word of a text: text, name, mass, share, place of the word."""
        columns = {"text": np.int64, "name": np.int64, "mass": np.float64, "share": np.float64, "place": np.float64}
        none = pd.DataFrame(columns=list(columns)).astype(columns)
        if not self.acronyms or not len(words.text):
            return none
        written = [words.texts[t][s:e] for t, s, e in zip(words.text, words.start, words.end, strict=True)]
        both = np.array([text not in {text.lower(), text.upper()} for text in words.texts], bool)[words.text]
        is_short = np.array([1 < len(one) <= _LONGEST_ACRONYM and one.isalpha() for one in written], bool)
        is_upper = np.array([one.isupper() for one in written], bool)
        is_known = np.isin(np.arange(len(written)), matched.loc[matched["similarity"] == 1, "place"])
        places = np.flatnonzero(is_short & np.where(both, is_upper, ~is_known))
        forms = pd.DataFrame({"form": [written[place].casefold() for place in places.tolist()], "place": places})
        forms["text"] = words.text[places]
        forms = forms.astype({"form": "str"})
        rows = forms[~forms["form"].isin(STOP_ALIASES) | is_upper[places]].merge(self._names.initials, on="form")
        # All letters of an acronym are those of the name.
        rows = rows.assign(mass=self._names.total[rows["name"].to_numpy(np.int64)], share=1.0)
        return rows[list(columns)].astype(columns) if len(rows) else none

    def _links(
        self, texts: list[str], rest: Ints, words: Words, matched: pd.DataFrame, table: pd.DataFrame
    ) -> pd.DataFrame:
        """Return links from names of texts: the candidates of a text share one mention, that of its best name."""
        names, vocabulary = self._names, self._names.vocabulary
        pair, rows = names.meanings.find(table["name"].to_numpy(np.int64))
        each = table.iloc[pair].assign(entity=names.meanings.entity[rows])
        each["score"] = each["share"].to_numpy() * names.meanings.score[rows] * names.count[each["name"].to_numpy()]
        each = each.sort_values(["text", "score", "entity", "name"], ascending=[True, False, True, True])
        each = each.drop_duplicates(["text", "entity"])
        each = each[each.groupby("text").cumcount() < self.limit].reset_index(drop=True)
        each["score"] /= each.groupby("text")["score"].transform("sum")
        best = each.drop_duplicates("text")
        spans = _spans(names, words, matched, best)
        each = each.merge(spans, on="text")
        mentions = Mentions(rest[each["text"].to_numpy(np.int64)], each["start"].to_numpy(), each["end"].to_numpy())
        numbers = each["entity"].to_numpy(np.int64), each["score"].to_numpy(np.float64)
        meanings = Meanings(np.arange(len(each) + 1), *numbers)
        links = candidate_links(texts, mentions, meanings, np.arange(len(each)), vocabulary.ids, vocabulary.labels)
        return links.assign(match=each["match"].to_numpy(dtype=object))


def _plain_acronyms(text: str) -> tuple[str, dict[int, int]]:
    """Return a text of equal length with acronyms without dots and plurals, and their ends there and in the text.

    >>> _plain_acronyms("R.A. and PTs of J.R. Smith")
    ('RA   and PT  of J.R. Smith', {2: 4, 11: 12})
    """
    parts, ends, done = [], {}, 0
    for match in _DOTTED.finditer(text):
        if match[0].casefold() in _NO_ACRONYMS:
            continue
        letters = match[0].replace(".", "") if "." in match[0] else match[0][:-1]
        parts += [text[done : match.start()], letters.ljust(len(match[0]))]
        ends[match.start() + len(letters)] = done = match.end()
    return "".join(parts) + text[done:], ends


def _may_be_names(words: Words, forms: NDArray[np.object_]) -> Bools:
    """Return True for words that may be part of a name: no function words or titles, in mixed case with a capital."""
    if not len(forms):
        return np.zeros(0, bool)
    both = np.array([text not in {text.lower(), text.upper()} for text in words.texts], bool)
    first = [words.texts[text][start] for text, start in zip(words.text, words.start, strict=True)]
    is_marked = np.array([one.isupper() or one.isdigit() or not one.isalpha() for one in first], bool)
    is_content = ~np.isin(forms, list(STOP_ALIASES | TITLES))
    # A query such as "Who was klobuchar" has a capital at its start alone.
    is_first = np.diff(words.text, prepend=-1) > 0
    has_marked = np.zeros(len(words.texts), bool)
    has_marked[words.text[is_marked & is_content & ~is_first]] = True
    has_marked[words.text[is_marked & is_content & is_first]] |= True
    may_be: Bools = is_content & (is_marked | ~(both & has_marked)[words.text])
    return may_be


def _spans(names: NameWords, words: Words, matched: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """Return the mention of each text, from the first to the last word of its best name: text, start, end, match."""
    rows = sparse.coo_array(names.matrix[best["name"].to_numpy(np.int64)])
    of_best = pd.DataFrame({"text": best["text"].to_numpy()[rows.coords[0]], "word": rows.coords[1]})
    of_best = of_best.merge(matched, on=["text", "word"])[["text", "place", "similarity"]]
    short = best.loc[best["place"].notna(), ["text", "place"]].astype("int64").assign(similarity=2.0)
    of_best = pd.concat([of_best[~of_best["text"].isin(short["text"].unique())], short])
    place = of_best["place"].to_numpy(np.int64)
    of_best = of_best.assign(start=words.start[place], end=words.end[place])
    spans = of_best.groupby("text").agg(
        start=("start", "min"), end=("end", "max"), low=("similarity", "min"), high=("similarity", "max")
    )
    match = np.where(spans["high"] > 1, "acronym", np.where(spans["low"] < 1, "similar", "part"))
    return spans.assign(match=match)[["start", "end", "match"]].reset_index()


class NameWords:
    """The words of all names, and the names that have them."""

    def __init__(self, vocabulary: Vocabulary, forms: NDArray[np.object_], meanings: Meanings, count: Floats) -> None:
        self.vocabulary, self.meanings, self.count = vocabulary, meanings, count
        split = [form.split() for form in forms.tolist()]
        owner = np.repeat(np.arange(len(split)), [len(words) for words in split])
        flat = np.array([word for words in split for word in words], dtype=object)
        self.words, code = np.unique(flat, return_inverse=True) if len(flat) else (flat, np.empty(0, np.int64))
        pairs = np.unique(owner * max(len(self.words), 1) + code)
        name, word = np.divmod(pairs, max(len(self.words), 1))
        n_having = np.bincount(word, minlength=len(self.words))
        # A name more, so that a word of all names counts.
        self.squared: Floats = np.log((len(split) + 1) / n_having) ** 2
        shape = len(split), len(self.words)
        self.matrix = sparse.csr_array((np.ones(len(name)), (name, word)), shape=shape)
        total = np.bincount(name, weights=self.squared[word], minlength=len(split))
        self.total: Floats = total.astype(np.float64, copy=False)
        letters = ["".join(word[0] for word in words if word not in STOP_ALIASES and word != "s") for words in split]
        every = ["".join(word[0] for word in words) for words in split]
        rows = pd.DataFrame({"form": [*letters, *every], "name": [*range(len(split))] * 2})
        rows = rows.astype({"form": "str"})
        self.initials = rows[rows["form"].str.len() > 1].drop_duplicates(ignore_index=True)

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> NameWords:
        """Index the names of a vocabulary, without qualifiers in parentheses; names without words are left out."""
        forms = np.array(Words.of([strip_qualifier(alias) for alias in vocabulary.aliases]).forms(), dtype=object)
        distinct, number = np.unique(forms, return_inverse=True)
        first = int(len(distinct) > 0 and not distinct[0])
        key = number[vocabulary.rows["alias"].to_numpy()] - first
        rows = vocabulary.rows.assign(key=key)[key >= 0]
        meanings = meanings_from_table(rows, len(distinct) - first, vocabulary)
        # The count of a name, so that those of different names can be compared.
        count = meanings.sizes.astype(np.float64)
        if vocabulary.counts_are_of_entities:
            mass = (rows["score"] * rows["weight"]).groupby([rows["key"], rows["entity"]]).max()
            count = mass.groupby(level="key").sum().to_numpy(np.float64)
        elif vocabulary.priors:
            count = rows.drop_duplicates(["key", "alias"]).groupby("key")["weight"].sum().to_numpy(np.float64)
        return cls(vocabulary, distinct[first:], meanings, count)

    def find(self, forms: NDArray[np.object_]) -> Ints:
        """Return the number of each word, -1 if it is in no name."""
        if not len(self.words):
            return np.full(len(forms), -1)
        at = np.minimum(np.searchsorted(self.words, forms), len(self.words) - 1)
        return np.where(self.words[at] == forms, at, -1)

    def find_accented(self, forms: NDArray[np.object_]) -> tuple[Ints, Ints]:
        """Return pairs of a word without accents and a word of names that has them."""
        form, number = self._unaccented_words
        low, high = np.searchsorted(form, forms), np.searchsorted(form, forms, side="right")
        owner, places = rankings.spans(low, high)
        return owner, number[places]

    @cached_property
    def _unaccented_words(self) -> tuple[NDArray[np.object_], Ints]:
        """Words of names with accents, without them and sorted, and their numbers."""
        number = np.array([place for place, word in enumerate(self.words) if not word.isascii()], np.int64)
        form = np.array([strip_accents(word) for word in self.words[number]], dtype=object)
        order = np.argsort(form, kind="stable")
        changed = order[form[order] != self.words[number[order]]]
        return form[changed], number[changed]

    def similar(self, forms: NDArray[np.object_], min_similarity: float) -> tuple[Ints, Ints, Floats]:
        """Return pairs of an unknown word and a similar word of names, and their similarities."""
        process = module_of_extra("rapidfuzz.process", "linkers")
        indel = module_of_extra("rapidfuzz.distance", "linkers").Indel
        is_long = np.array([len(form) >= _LEAST_RESPELT for form in forms], bool)
        long_words, words = np.flatnonzero(is_long), self.words.tolist()
        step = max(1, BLOCK_CELLS // max(len(words), 1))
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for begin in range(0, len(long_words), step):
            some = long_words[begin : begin + step]
            cells = process.cdist(
                forms[some].tolist(),
                words,
                scorer=indel.normalized_similarity,
                score_cutoff=max(min_similarity - _CUTOFF_TOLERANCE, 0.0),
                dtype=np.float64,
            )
            # Only the most similar words replace a word.
            best = cells.max(axis=1, keepdims=True, initial=0.0)
            row, word = np.nonzero((cells >= best - REPLICA_ROUNDING) & (cells >= min_similarity - REPLICA_ROUNDING))
            parts.append((some[row], word, cells[row, word]))
        owner, word, similarity = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return owner, word, similarity
