"""Names of entities by their words, in arrays that can be mapped from a file and shared by processes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vbterrier.errors import FileError
from vbterrier.frames.ids import release_unused
from vbterrier.kernels import rankings
from vbterrier.kernels.fingerprints import MARK_BITS, marks, mix, of_spans
from vbterrier.linking.aliases import Meanings, Vocabulary, meanings_of_columns
from vbterrier.linking.words import Words, batches, strip_accents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from vbterrier.annotations import AnyInts, Bools, Ints
    from vbterrier.annotations import Words as Fingerprints
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

_BLANK, _LINE_END = ord(" "), ord("\n")
# Names that are in memory as text at a time.
_BLOCK_NAMES = 10_000
# Bytes of candidate matches that are compared at a time.
_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True, eq=False)
class WordRuns:
    """The words of folded texts."""

    data: NDArray[np.uint8]  # the bytes of the folded texts, shape (n_bytes,)
    start: Ints  # start, end: the offsets of each word, shape (n_words,)
    end: Ints
    fingerprint: Fingerprints  # of each word, shape (n_words,)

    @classmethod
    def of(cls, data: NDArray[np.uint8]) -> WordRuns:
        """Find the words between blanks and line ends; the first and the last byte must be blank."""
        inside = (data != _BLANK) & (data != _LINE_END)
        edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        start, end = edges[::2], edges[1::2]
        # In pieces, because fingerprints take many times the memory of their words.
        cuts = np.searchsorted(start, np.arange(0, len(data), _BLOCK_BYTES // 4))
        cuts = np.unique(np.append(cuts, len(start))).tolist()
        size = end - start
        parts = [of_spans(data, start[low:high], size[low:high]) for low, high in pairwise(cuts)]
        return cls(data, start, end, np.concatenate([np.empty(0, np.uint64), *parts]))


@dataclass(frozen=True, eq=False)
class PhraseIndex:
    """Phrases, numbered in the order of the fingerprints of their words.

    Phrases are found by their fingerprints and compared byte by byte. ``mix(f) + w`` is the fingerprint of a phrase
    with the fingerprint f and one more word w.
    """

    # The distinct fingerprints of the first words, of the first two words, ... of the phrases, ascending.
    prefix: Fingerprints
    first: NDArray[np.integer[Any]]  # the first phrase with each fingerprint, and the number of phrases
    longer: Bools  # True for prefixes that continue in a phrase
    text: Any  # the phrases, an Arrow array of type ``string`` or ``large_string``: folded words between single blanks

    @classmethod
    def of(cls, phrases: Sequence[str] | Any) -> tuple[PhraseIndex, NDArray[np.int32]]:
        """Index phrases, equal ones once, and return the index and the number of each phrase in it.

        The phrases are a list or an Arrow array of chunks.

        >>> index, number = PhraseIndex.of(["york", "new york", "york"])
        >>> first, last, phrase = index.find(np.frombuffer(b" old new york ", dtype=np.uint8))
        >>> [index.text[place].as_py() for place in phrase.tolist()], first.tolist(), last.tolist()
        (['york', 'new york'], [2, 1], [2, 2])
        >>> [index.text[place].as_py() for place in number.tolist()]
        ['york', 'new york', 'york']
        """
        if not isinstance(phrases, pa.ChunkedArray):
            phrases = pa.chunked_array([pa.array(phrases, pa.large_string())])
        whole, prefix, longer = _fingerprints(phrases)
        text = phrases.combine_chunks()
        del phrases
        release_unused()
        order = np.argsort(whole, kind="stable").astype(np.int32)
        whole = whole[order]
        is_first = np.ones(len(order), bool)
        # Phrases with the fingerprint of the one before, of which nearly all are equal to it.
        again = 1 + np.flatnonzero(whole[1:] == whole[:-1])
        is_first[again] = _differ(text, order[again], order[again - 1])
        if is_first[again].any():
            # Equal ones must be adjacent.
            codes = text.dictionary_encode().indices.to_numpy()
            order = order[np.lexsort((codes[order], whole))]
            is_first[again] = _differ(text, order[again], order[again - 1])
        number = np.empty(len(order), np.int32)
        number[order] = np.cumsum(is_first, dtype=np.int32) - 1
        whole = whole[is_first]
        first = np.append(np.searchsorted(whole, prefix), len(whole)).astype(np.int32)
        text = text.take(pa.array(order[is_first]))
        release_unused()
        return cls(prefix, first, longer, text), number

    def find(self, data: NDArray[np.uint8]) -> tuple[Ints, Ints, Ints]:
        """Return the numbers of the first and the last word, and the phrase, of every occurrence in folded texts."""
        runs = WordRuns.of(data)
        follows = data[np.minimum(runs.end + 1, len(data) - 1)] != _LINE_END
        follows[-1:] = False
        first = last = np.arange(len(runs.start))
        digest = runs.fingerprint
        hits = [(np.empty(0, np.int64),) * 3]
        while len(digest):
            rows = self._rows(digest)
            is_phrase = rows >= 0
            rows, first, last, digest = rows[is_phrase], first[is_phrase], last[is_phrase], digest[is_phrase]
            match, phrase = rankings.spans(self.first[rows].astype(np.int64), self.first[rows + 1].astype(np.int64))
            hits.append((first[match], last[match], phrase))
            on = self.longer[rows] & follows[last]
            first, last = first[on], last[on] + 1
            digest = mix(digest[on]) + runs.fingerprint[last]
        first, last, phrase = (np.concatenate(parts) for parts in zip(*hits, strict=True))
        equal = self._equal(runs, first, last, phrase)
        return first[equal], last[equal], phrase[equal]

    def _rows(self, prints: Fingerprints) -> Ints:
        """Return the row of each fingerprint, -1 if it is unknown."""
        rows = np.full(len(prints), -1)
        if not len(self.prefix):
            return rows
        # Most words of a text are in no phrase.
        some = np.flatnonzero(self._used_marks[marks(prints)])
        # Ascending needles read the index in order, ten times as fast as random ones.
        some = some[np.argsort(prints[some])]
        places = np.searchsorted(self.prefix, prints[some])
        places[places == len(self.prefix)] = -1
        rows[some] = np.where(self.prefix[places] == prints[some], places, -1)
        return rows

    @cached_property
    def _used_marks(self) -> Bools:
        """True for the marks of the fingerprints of the index, which tell most others from them."""
        marked = np.zeros(1 << MARK_BITS, dtype=bool)
        marked[marks(self.prefix)] = True
        return marked

    def _equal(self, runs: WordRuns, first: Ints, last: Ints, phrase: Ints) -> Bools:
        """Return True for matches whose bytes are those of the phrase."""
        offsets, data = self._bytes
        start, length = runs.start[first], runs.end[last] - runs.start[first]
        at = offsets[phrase].astype(np.int64)
        equal: Bools = offsets[phrase + 1] - at == length
        rows = np.flatnonzero(equal)
        ends = np.cumsum(length[rows])
        for some in np.split(rows, np.searchsorted(ends, np.arange(_BLOCK_BYTES, ends[-1:].sum(), _BLOCK_BYTES))):
            match, place = rankings.spans(start[some], start[some] + length[some])
            differs = runs.data[place] != data[place + (at - start)[some][match]]
            equal[some[match[differs]]] = False
        return equal

    @property
    def _bytes(self) -> tuple[NDArray[np.integer[Any]], NDArray[np.uint8]]:
        """The offsets of the phrases and their bytes."""
        _, offsets, data = self.text.buffers()
        kind: Any = np.int64 if pa.types.is_large_string(self.text.type) else np.int32
        bounds = np.frombuffer(offsets, kind) if offsets is not None and offsets.size else np.zeros(1, kind)
        bounds = bounds[self.text.offset : self.text.offset + len(self.text) + 1]
        return bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _differ(text: Any, rows: AnyInts, others: AnyInts) -> Bools:
    """Return True for rows of an Arrow array with another text than other rows."""
    different: Bools = pc.not_equal(text.take(pa.array(rows)), text.take(pa.array(others))).to_numpy(
        zero_copy_only=False
    )
    return different


def _fingerprints(phrases: Any) -> tuple[Fingerprints, Fingerprints, Bools]:
    """Return the fingerprint of each phrase, and ``prefix`` and ``longer`` of their index."""
    whole, n = np.empty(len(phrases), np.uint64), 0
    prefixes, continued = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for chunk in phrases.chunks:
        whole[n : n + len(chunk)], some, longer = _phrase_fingerprints(chunk.to_pylist())
        prefixes.append(some)
        continued.append(longer)
        n += len(chunk)
    prefix = np.concatenate(prefixes)
    prefixes.clear()
    prefix = _sorted_distinct(prefix)
    continues = np.zeros(len(prefix), bool)
    for some in continued:
        continues[np.searchsorted(prefix, some)] = True
    return whole, prefix, continues


def _phrase_fingerprints(phrases: list[str]) -> tuple[Fingerprints, Fingerprints, Fingerprints]:
    """Return the fingerprints of some phrases, the distinct ones of their first words, and of those that continue."""
    if not phrases:
        return (np.empty(0, np.uint64),) * 3
    runs = WordRuns.of(np.frombuffer((" " + " \n ".join(phrases) + " ").encode(), np.uint8))
    # Words of the phrases before each; a line end separates two phrases.
    word = np.searchsorted(runs.start, np.flatnonzero(runs.data == _LINE_END))
    word = np.concatenate([[0], word, [len(runs.start)]])
    n_words = np.diff(word)
    row = np.arange(len(phrases))
    whole = prints = np.zeros(len(phrases), np.uint64)
    prefixes, continued = [], [np.empty(0, np.uint64)]
    for place in range(int(n_words.max())):
        step = runs.fingerprint[word[row] + place]
        prints = mix(prints) + step if place else step
        prefixes.append(prints)
        ends = n_words[row] == place + 1
        whole[row[ends]] = prints[ends]
        row, prints = row[~ends], prints[~ends]
        continued.append(prints)
    return whole, _sorted_distinct(np.concatenate(prefixes)), _sorted_distinct(np.concatenate(continued))


def _sorted_distinct(values: Fingerprints) -> Fingerprints:
    """Sort values in place, and return the distinct ones, in a fraction of the time and memory of ``np.unique``."""
    values.sort()
    is_first = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return values[is_first]


def _pieces(texts: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield lists of consecutive texts of a list or an Arrow array, and the index of the first text of each."""
    for begin in range(0, len(texts), _BLOCK_NAMES):
        some = texts[begin : begin + _BLOCK_NAMES]
        some = some if isinstance(some, list) else some.to_pylist()
        yield from ((begin + low, part) for low, part in batches(some))


def _level(name: str, form: str) -> int:
    """Return the first of ``MIXED``, ``CASELESS``, ``CAPITALS`` at which a mention matches this name."""
    if not name.isupper() or " " in form or sum(map(str.isalpha, form)) not in _ACRONYM:
        return MIXED
    return CAPITALS if form.casefold() in STOP_ALIASES else CASELESS


def _without_accents(aliases: Any, names: list[Any]) -> tuple[NDArray[np.int32], Any]:
    """Return the numbers of aliases with accents and their folded names without, unless a name is written so."""
    number, folded = [np.empty(0, np.int32)], [pa.array([], _TEXT)]
    for low, some in _pieces(aliases):
        places = [place for place, alias in enumerate(some) if not alias.isascii()]
        forms = Words.of([some[place] for place in places]).forms()
        pairs = [(place, form, strip_accents(form)) for place, form in zip(places, forms, strict=True)]
        pairs = [pair for pair in pairs if pair[1] != pair[2] and pair[2] not in STOP_ALIASES]
        number.append(low + np.array([place for place, *_ in pairs], np.int32))
        folded.append(pa.array([form for *_, form in pairs], _TEXT))
    numbers, unmarked = np.concatenate(number), pa.concat_arrays(folded)
    # The names are many, those without accents few.
    written = [chunk.filter(pc.is_in(chunk, value_set=unmarked)) for chunk in (names if len(numbers) else names[:1])]
    is_new = pc.invert(pc.is_in(unmarked, value_set=pa.concat_arrays(written)))
    return numbers[is_new.to_numpy(zero_copy_only=False).astype(bool)], unmarked.filter(is_new)


def _group_rows(
    alias: AnyInts, names: Sequence[NDArray[np.int32]], level: NDArray[np.int8], group: AnyInts, cased: Bools
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows of each group, and their groups: ``alias`` of rows, and the ``names`` of aliases, exact first.

    Aliases without a name have negative numbers.
    """
    exact, unmarked = names
    row = np.flatnonzero(unmarked[alias] >= 0).astype(np.int32)
    name = np.concatenate([exact[alias], unmarked[alias[row]]])
    row = np.concatenate([np.arange(len(alias), dtype=np.int32), row])
    low, is_cased = level[alias[row]], np.append(cased, [False, False])[name]
    rows, keys = [], []
    for case_level in (MIXED, CASELESS, CAPITALS):
        held = (low <= case_level) & is_cased if case_level else low == MIXED
        places = np.flatnonzero((name >= 0) & held)
        rows.append(row[places])
        keys.append((group[name[places]] + case_level).astype(np.int32))
    return np.concatenate(rows), np.concatenate(keys)


def _letters(names: Any) -> tuple[NDArray[np.int32], Bools]:
    """Return the number of letters, digits and symbols of each name, and True for those that consist of digits."""
    n_letters, numeric = np.zeros(len(names), np.int32), np.zeros(len(names), bool)
    for low, some in _pieces(names):
        letters = [name.replace(" ", "") for name in some]
        n_letters[low : low + len(some)] = list(map(len, letters))
        numeric[low : low + len(some)] = list(map(str.isdigit, letters))
    return n_letters, numeric


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The distinct folded names of aliases, and the candidate entities of each."""

    phrases: PhraseIndex
    group: AnyInts  # the first group of candidates of each name
    # True for names with three groups: of mentions in lower case, in texts of one case, and in capitals; the other
    # names have one.
    cased: Bools
    n_letters: AnyInts  # letters, digits and symbols of each name
    numeric: Bools  # True for names that consist of digits
    # True for titles such as "John Smith (senator)", which a text without the parenthesis does not mention.
    qualified: Bools
    name_of_alias: AnyInts  # -1 for aliases without words, -2 for function words
    meanings: Meanings  # the candidates of each group
    ids: Any  # ids, labels: id and name of each entity, Arrow arrays of text
    labels: Any
    aliases: Callable[[Ints], list[str]]  # a function from numbers of aliases to their texts
    over: Sequence[str] = ()  # aliases whose scores sum to more than 1

    @classmethod
    def of(cls, source: Aliases, *, case: str = "auto", stop: bool = True) -> Lexicon:
        """Return the lexicon of aliases, mapped from the file of a knowledge base if the parameters are those of it."""
        if (case, stop) == ("auto", True) and (lexicon := getattr(source, "lexicon", lambda: None)()) is not None:
            mapped: Lexicon = lexicon
            return mapped
        return cls.of_vocabulary(Vocabulary.of(source), case, stop=stop)

    @classmethod
    def of_vocabulary(cls, vocabulary: Vocabulary, case: str = "auto", *, stop: bool = True) -> Lexicon:
        """Return the lexicon of a vocabulary."""
        aliases = vocabulary.aliases
        left_out, stopped, plain = (np.zeros(len(aliases), bool) for _ in range(3))
        level = np.zeros(len(aliases), np.int8)
        texts = [pa.array([], _TEXT)]
        for low, some in _pieces(aliases):
            forms, at = Words.of(some).forms(case=case == "exact"), slice(low, low + len(some))
            if case != "ignore":
                level[at] = list(map(_level, some, forms))
            left_out[at] = [not form for form in forms]
            plain[at] = ["(" not in alias for alias in some]
            if stop:
                folded = forms if case != "exact" else [form.casefold() for form in forms]
                stopped[at] = [form in STOP_ALIASES for form in folded] & (level[at] != CAPITALS)
            texts.append(pa.array(forms, _TEXT).filter(pa.array(~left_out[at] & ~stopped[at])))
        if case == "exact":
            level[:] = MIXED
        kept = np.flatnonzero(~left_out & ~stopped).astype(np.int32)
        accents = np.empty(0, np.int32)
        if case != "exact":
            accents, folded = _without_accents(aliases, texts)
            texts.append(folded)
        # The list has the only reference to the texts, which are freed when they are sorted.
        texts = [pa.chunked_array(texts)]
        phrases, number = PhraseIndex.of(texts.pop())
        n_names = len(phrases.text)
        name_of_alias = np.where(stopped, np.int32(-2), np.int32(-1))
        name_of_alias[kept] = number[: len(kept)]
        unaccented_of_alias = np.full(len(aliases), -1, np.int32)
        unaccented_of_alias[accents] = number[len(kept) :]
        alias, number = np.concatenate([kept, accents]), number.copy()
        del left_out, stopped
        cased = np.zeros(n_names, bool)
        cased[number[level[alias] > MIXED]] = True
        n_own = np.where(cased, np.int8(3), np.int8(1))
        group = np.cumsum(n_own, dtype=np.int32) - n_own
        n_groups = n_names + 2 * int(cased.sum())
        of_row = vocabulary.rows["alias"].to_numpy()
        rows, key = _group_rows(of_row, (name_of_alias, unaccented_of_alias), level, group, cased)
        del of_row, unaccented_of_alias
        release_unused()
        columns = [vocabulary.rows[each].to_numpy() for each in ("alias", "entity", "score", "weight")]
        meanings = meanings_of_columns(key, rows, columns, n_groups, vocabulary)
        ids, labels, over = vocabulary.ids, vocabulary.labels, vocabulary.over
        # Frees the rows if the caller has no reference to them.
        del rows, key, columns, vocabulary
        release_unused()
        is_plain = np.zeros(n_names, bool)
        is_plain[number[plain[alias]]] = True
        del alias, number
        n_letters, numeric = _letters(phrases.text)
        return cls(
            phrases,
            group,
            cased,
            n_letters,
            numeric,
            ~is_plain,
            name_of_alias,
            meanings,
            ids,
            labels,
            lambda places: [aliases[place] for place in places.tolist()],
            over,
        )

    def save(self, path: Path, digest: str) -> None:
        """Write an Arrow file that :meth:`load` maps; ``digest`` is that of the knowledge base."""
        values: dict[str, Any] = vars(self.phrases) | vars(self.meanings) | vars(self)
        texts = [values[name] for name, kind in _KINDS.items() if kind == _TEXT]
        n_bytes = max(pc.sum(pc.binary_length(text)).as_py() or 0 for text in texts)
        text_type = _SHORT_TEXT if n_bytes <= _MAX_SHORT_BYTES else _TEXT
        columns = []
        for name, kind in _KINDS.items():
            # The cast copies offsets alone.
            array = values[name].cast(text_type) if kind == _TEXT else pa.array(values[name].astype(kind, copy=False))
            columns.append(pa.LargeListArray.from_arrays(pa.array([0, len(array)]), array))
        schema = _schema(text_type).with_metadata({_KIND: digest.encode()})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.record_batch(columns, schema=schema))

    @classmethod
    def load(cls, path: Path, digest: str, aliases: Callable[[Ints], list[str]], n_aliases: int) -> Lexicon:
        """Map the file of a knowledge base."""
        try:
            arrays_of_file = _map_arrays(path, digest)
            arrays = {name: arrays_of_file[name].to_numpy() for name, kind in _KINDS.items() if kind != _TEXT}
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FileError(path, f"is damaged ({error}); {_REMEDY}") from error
        sizes = {name: len(array) for name, array in arrays_of_file.items()}
        n_names, n_groups = sizes["text"], sizes["bounds"] - 1
        last_group = arrays["group"].astype(np.int64) + np.where(arrays["cased"], 3, 1)
        valid = (
            sizes["first"] == sizes["prefix"] + 1 == sizes["longer"] + 1
            and {sizes[name] for name in ("group", "cased", "n_letters", "numeric", "qualified")} == {n_names}
            and sizes["entity"] == sizes["score"]
            and sizes["ids"] == sizes["labels"]
            and sizes["name_of_alias"] == n_aliases
            and _ascends(arrays["first"], n_names, _MAX_SHARED_FINGERPRINT_NAMES)
            and _ascends(arrays["bounds"], sizes["entity"])
            and _within(arrays["entity"], 0, sizes["ids"])
            and _within(arrays["name_of_alias"], -2, n_names)
            and _ascends(np.append(arrays["group"], n_groups), n_groups)
            and bool((last_group <= n_groups).all())
            and bool(((arrays["score"] >= 0) & (arrays["score"] <= 1)).all())
        )
        if not valid:
            raise FileError(path, f"is damaged (an offset or a number is out of range); {_REMEDY}")
        flags = ("longer", "cased", "numeric", "qualified")
        if any(arrays[name].max(initial=0) > 1 for name in flags):
            raise FileError(path, f"is damaged (a flag is neither 0 nor 1); {_REMEDY}")
        arrays |= {name: arrays[name].view(bool) for name in flags}
        phrases = PhraseIndex(arrays["prefix"], arrays["first"], arrays["longer"], arrays_of_file["text"])
        meanings = Meanings(arrays["bounds"], arrays["entity"], arrays["score"])
        of_names = ("group", "cased", "n_letters", "numeric", "qualified", "name_of_alias")
        lexicon_arrays = {name: arrays[name] for name in of_names}
        return cls(
            phrases,
            meanings=meanings,
            ids=arrays_of_file["ids"],
            labels=arrays_of_file["labels"],
            aliases=aliases,
            **lexicon_arrays,
        )


_KIND = b"vbterrier lexicon 2"
# Texts in memory; in a file, their offsets have 32 bits if the texts of every array have at most so many bytes.
_TEXT, _SHORT_TEXT, _MAX_SHORT_BYTES = pa.large_string(), pa.string(), 2**31 - 1
# The arrays of a file, fields of a lexicon, of its phrases or of its meanings, and their types.
_KINDS: dict[str, Any] = (
    {"prefix": np.uint64, "first": np.int32, "longer": np.uint8, "text": _TEXT}
    | {"group": np.int32, "cased": np.uint8, "n_letters": np.int32, "numeric": np.uint8}
    | {"qualified": np.uint8, "name_of_alias": np.int32}
    | {"bounds": np.int32, "entity": np.int32, "score": np.float64, "ids": _TEXT, "labels": _TEXT}
)
# More names than this never share a fingerprint.
_MAX_SHARED_FINGERPRINT_NAMES = 100
_REMEDY = "delete it, and linkers build it in memory, or build the knowledge base again"


def _schema(text_type: Any) -> Any:
    """Return the schema of a file whose texts have an Arrow type."""
    kinds = {name: text_type if kind == _TEXT else pa.from_numpy_dtype(kind) for name, kind in _KINDS.items()}
    return pa.schema([pa.field(name, pa.large_list(kind)) for name, kind in kinds.items()])


def _map_arrays(path: Path, digest: str) -> dict[str, Any]:
    """Return the arrays of a file after checks of its types, offsets and encoding."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        is_current = any(reader.schema.equals(_schema(text_type)) for text_type in (_SHORT_TEXT, _TEXT))
        if not is_current or reader.num_record_batches != 1:
            raise ValueError("not a lexicon of this version")
        if (reader.schema.metadata or {}).get(_KIND) != digest.encode():
            raise ValueError("of another knowledge base")
        batch = reader.get_batch(0)
    batch.validate(full=True)
    if batch.num_rows != 1 or batch.nbytes > path.stat().st_size:
        raise ValueError("compressed, or not one row")
    arrays = {name: column.flatten() for name, column in zip(_KINDS, batch.columns, strict=True)}
    if any(column.null_count for column in (*batch.columns, *arrays.values())):
        raise ValueError("missing values")
    return arrays


def _ascends(offsets: NDArray[Any], end: int, most: int | None = None) -> bool:
    """Return True for offsets from 0 to ``end`` that never decrease, nor increase by more than ``most``."""
    steps = np.diff(offsets)
    return bool(
        offsets[0] == 0 and offsets[-1] == end and (steps >= 0).all() and (most is None or (steps <= most).all())
    )


def _within(numbers: NDArray[Any], low: int, high: int) -> bool:
    return bool(((numbers >= low) & (numbers < high)).all())
