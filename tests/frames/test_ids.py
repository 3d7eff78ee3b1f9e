"""Ids as text, numbers as numbers, and joins on pairs of ids: each against a plain loop."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import InputError
from vbterrier.frames import ids as ids_module
from vbterrier.frames.ids import (
    Ids,
    Lookup,
    column_ids,
    column_integers,
    column_keys,
    column_numbers,
    distinct_blocks,
    lazy_ids,
    near_matches,
    repeated_pairs,
    require_same_kind,
)
from vbterrier.kernels import fingerprints

WORDS = st.text(max_size=20)
WORD_LISTS = st.lists(WORDS, max_size=12)
PAIRS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", "aa", "", "é", "longer than eight"])), max_size=15
)


def ids(*words):
    return Ids(pa.array(words, pa.large_string()))


def texts(column):
    return column.text.to_pylist()


# Ids.

STORAGES = {
    "str": lambda words: pd.Series(words, dtype="str"),
    "object": lambda words: pd.Series(words, dtype=object),
    "categorical": lambda words: pd.Series(words, dtype="category"),
    "string of Python": lambda words: pd.Series(words, dtype="string[python]"),
    "string of Arrow": lambda words: pd.Series(words, dtype="string[pyarrow]"),
    "ArrowDtype": lambda words: pd.Series(words, dtype=pd.ArrowDtype(pa.string())),
    "ArrowDtype dictionary": lambda words: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(words).dictionary_encode())
    ),
    "chunks": lambda words: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(words[:1]), pa.array(words[1:])]))
    ),
}


@pytest.mark.parametrize("stored", STORAGES.values(), ids=STORAGES)
def test_text_of_every_storage_stays_as_it_is(stored):
    words = ["007", "7", "NA", "", " a ", "é", "e\u0301", "null", "7"]
    made = column_ids(stored(words), "run column 'qid'")
    assert texts(made) == words
    assert not made.integers
    assert len(made) == 9


@pytest.mark.parametrize("stored", STORAGES.values(), ids=STORAGES)
def test_empty_keys_are_refused_in_frames_as_in_files(stored):
    column = stored(["q1", "q2", "", ""])
    for read in (column_keys, distinct_blocks, lambda column, where: lazy_ids(column, where).text):
        with pytest.raises(InputError, match=r"^run column 'qid': row 2 is empty; give it an id, or remove the row$"):
            read(column, "run column 'qid'")


@pytest.mark.parametrize(
    "dtype", ["int64", "int8", "uint64", "Int64", "category", object, pd.ArrowDtype(pa.int32())], ids=str
)
def test_whole_numbers_become_text_and_are_remembered(dtype):
    made = column_ids(pd.Series([12, 3, 12], dtype=dtype), "run column 'qid'")
    taken = made.take(np.array([1, 0]))
    assert (texts(made), texts(taken)) == (["12", "3", "12"], ["3", "12"])
    assert made.integers
    assert taken.integers
    assert texts(column_ids(pd.Series([2**63 - 1, -(2**63)]), "x")) == ["9223372036854775807", "-9223372036854775808"]


@pytest.mark.parametrize("dtype", [object, "str", "int64", "Int64", "category"])
def test_an_empty_column_has_no_ids(dtype):
    made = column_ids(pd.Series([], dtype=dtype), "x")
    assert len(made) == 0
    assert made.codes()[0] == []
    assert (
        made.codes()[1].tolist() == made.fingerprints.tolist() == made.blocks().tolist() == made.ranks().tolist() == []
    )


@given(WORD_LISTS)
def test_codes_number_ids_by_first_appearance(words):
    distinct = list(dict.fromkeys(words))
    result, codes = ids(*words).codes()
    assert result == distinct
    assert codes.tolist() == [distinct.index(word) for word in words]


@given(WORD_LISTS)
def test_blocks_begin_where_neighbours_differ(words):
    expected = [i for i, word in enumerate(words) if i == 0 or word != words[i - 1]]
    assert ids(*words).blocks().tolist() == expected


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("length", [1, 2, 30])
def test_blocks_of_objects_are_the_same_whether_rows_share_them(length, stride):
    # The last block has the text of the block before, in another object.
    words = np.repeat(np.array(["é1", "a1", "a b", "a1", "b1", " b1".strip()], dtype=object), length)
    shared, copies = np.repeat(words, stride)[::stride], np.array(["".join(list(word)) for word in words], dtype=object)
    assert len({id(word) for word in copies}) == len(copies)
    for column in (shared, copies):
        blocks = distinct_blocks(pd.Series(column, dtype=object), "run, column 'qid'")
        assert blocks.starts.tolist() == [0, length, 2 * length, 3 * length, 4 * length]
        assert blocks.ids.text.to_pylist() == ["é1", "a1", "a b", "b1"]
        assert blocks.number.tolist() == [0, 1, 2, 1, 3]


@given(st.lists(WORDS, max_size=12, unique=True))
def test_ranks_are_places_in_the_order_of_bytes(words):
    ordered = sorted(words, key=str.encode)
    assert ids(*words).ranks().tolist() == [ordered.index(word) for word in words]


@given(
    st.lists(st.sampled_from(["a", "a\0", "", "\0", "longer than eight", "longer than nine", "é", "z", "Q10", "Q9"]))
)
def test_order_is_that_of_a_stable_sort_by_bytes(words):
    assert ids(*words).order().tolist() == sorted(range(len(words)), key=lambda place: words[place].encode())


@settings(max_examples=200)
@given(WORD_LISTS, st.integers(0, 12), st.integers(0, 12))
def test_fingerprints_are_equal_exactly_for_equal_ids_also_in_slices(words, start, size):
    whole = ids(*words)
    part = Ids(whole.text.slice(start, size))
    assert part.fingerprints.tolist() == whole.fingerprints[start : start + size].tolist()
    assert [[a == b for a in whole.fingerprints] for b in whole.fingerprints] == [
        [a == b for a in words] for b in words
    ]


def test_fingerprints_of_a_hundred_thousand_ids_that_differ_little_differ():
    words = [f"{stem}{number}" for number in range(20_000) for stem in ("d", "D", "doc-00000000", "\0", "a\0")]
    assert len(np.unique(ids(*words).fingerprints)) == len(words)


# Numbers.


@given(st.lists(st.floats(allow_nan=False), max_size=8), st.sampled_from(["float64", "text", "object", "Float64"]))
def test_numbers_stay_the_same_in_every_storage(values, storage):
    column = pd.Series(values, dtype="float64")
    if storage == "text":
        column = pd.Series([repr(value) for value in values], dtype="str")
    elif storage != "float64":
        column = column.astype(storage)
    made = column_numbers(column, "run column 'score'")
    assert made.dtype == np.float64
    assert made.tolist() == values


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([2, 0, -1]),
        pd.Series([2.0, 0.0, -1.0]),
        pd.Series(["2", "0", "-1"]),
        pd.Series(["2", "0", "-1"], dtype="category"),
        pd.Series([2, 0, -1], dtype="Int8"),
        pd.Series([2, 0, -1], dtype=pd.ArrowDtype(pa.int64())),
        pd.Series([2, "0", -1.0], dtype=object),
    ],
    ids=["int", "float", "text", "category", "Int8", "ArrowDtype", "object"],
)
def test_whole_labels_of_every_storage_are_integers(column):
    made = column_integers(column, "qrels column 'label'")
    assert made.dtype == np.int64
    assert made.tolist() == [2, 0, -1]


# Joins.


def test_integers_and_text_are_refused_with_both_types_and_the_cast():
    numbers, words = Ids(pa.array(["1"], pa.large_string()), integers=True), ids("1")
    with pytest.raises(InputError, match=r"a holds integers, b holds text: .*cast a with .astype\(str\)"):
        require_same_kind(numbers, words, "a", "b")
    with pytest.raises(InputError, match=r"a holds text, b holds integers: .*cast b with .astype\(str\)"):
        require_same_kind(words, numbers, "a", "b")
    for one, other in ((numbers, ids()), (ids(), numbers), (numbers, numbers)):
        require_same_kind(one, other, "a", "b")


def parts(pairs):
    return np.array([topic for topic, _ in pairs], dtype=np.int64), ids(*(word for _, word in pairs))


@pytest.mark.parametrize("few", [0, 1 << 14])
@settings(max_examples=200)
@given(PAIRS, PAIRS)
def test_lookup_finds_the_rows_of_each_pair_as_two_loops_do(few, rows, pairs):
    expected = [(i, j) for i, pair in enumerate(pairs) for j, row in enumerate(rows) if pair == row]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids_module, "MIN_INDEX_KEYS", few)
        result = Lookup(*parts(rows)).find(*parts(pairs))
    assert list(zip(*(array.tolist() for array in result), strict=True)) == expected


def test_ids_are_compared_some_matches_at_a_time(monkeypatch):
    monkeypatch.setattr(ids_module, "COMPARED", 100)
    sizes, take = [], Ids.take
    monkeypatch.setattr(Ids, "take", lambda self, rows: [sizes.append(len(rows)), take(self, rows)][1])
    ids = [(0, f"d{number}") for number in range(250)]
    assert Lookup(*parts(ids)).find_one(*parts(ids[::-1])).tolist() == list(range(249, -1, -1))
    assert sizes == [100, 100, 100, 100, 50, 50]


def test_first_searches_sort_few_keys_and_find_the_same_rows(monkeypatch):
    monkeypatch.setattr(ids_module, "MIN_INDEX_KEYS", 0)
    rows = [(topic, f"d{number}") for number in range(500) for topic in (0, 1, 0)]
    few, many = [(0, "d7"), (1, "d7"), (1, "missing")], [(0, f"d{number}") for number in range(500)]
    index, seldom = Lookup(*parts(rows)), Lookup(*parts(rows))
    for _ in range(20):
        assert [array.tolist() for array in index.find(*parts(few))] == [[0, 0, 1], [21, 23, 22]]
    seldom.find(*parts(few))
    # Later searches need no pass over all keys.
    assert ["_all" in vars(each) for each in (index, seldom)] == [True, False]
    assert seldom.find(*parts(many))[1].tolist() == [row for row in range(1500) if row % 3 != 1]


@pytest.mark.parametrize("has_topics", [True, False])
def test_long_searches_fingerprint_few_ids_and_find_the_same_rows(monkeypatch, has_topics):
    monkeypatch.setattr(ids_module, "MIN_INDEX_KEYS", 0)
    monkeypatch.setattr(ids_module, "COMPARED", 100)
    (topic, rows), (wanted_topic, pairs) = (
        parts([(number % 2, f"document-{number}") for number in numbers])
        for numbers in (range(7, 900, 99), range(1000))
    )
    index = Lookup(topic if has_topics else None, rows)
    result = index.find(wanted_topic if has_topics else None, pairs)
    assert [array.tolist() for array in result] == [list(range(7, 900, 99)), list(range(10))]
    assert "fingerprints" not in vars(pairs)


@given(PAIRS, PAIRS)
def test_lookup_of_ids_alone_finds_them_in_every_topic(rows, pairs):
    expected = [(i, j) for i, (_, word) in enumerate(pairs) for j, (_, row) in enumerate(rows) if word == row]
    result = Lookup(None, parts(rows)[1]).find(None, parts(pairs)[1])
    assert list(zip(*(array.tolist() for array in result), strict=True)) == expected


@given(PAIRS.map(lambda pairs: list(dict.fromkeys(pairs))), PAIRS)
def test_find_one_gives_the_row_or_minus_one(rows, pairs):
    expected = [rows.index(pair) if pair in rows else -1 for pair in pairs]
    assert Lookup(*parts(rows)).find_one(*parts(pairs)).tolist() == expected


@given(PAIRS)
def test_repeated_pairs_are_adjacent(pairs):
    values = repeated_pairs(*parts(pairs)).tolist()
    assert sorted(values) == [i for i, pair in enumerate(pairs) if pairs.count(pair) > 1]
    groups = [pairs[row] for row in values]
    starts = [group for place, group in enumerate(groups) if place == 0 or group != groups[place - 1]]
    assert len(starts) == len(set(starts))
    assert all(a < b for a, b in itertools.pairwise(values) if pairs[a] == pairs[b])


def same_prints(_data, start, _length):
    return np.ones(len(start), dtype=np.uint64)


def test_ids_with_one_fingerprint_are_refused_rather_than_joined_and_are_no_repeated_pairs(monkeypatch):
    endings = ids(*(f"{number}/index.html" for number in (1, 2, 1, 3)))
    assert repeated_pairs(np.array([0, 0, 0, 0]), endings).tolist() == [0, 2]
    assert repeated_pairs(np.array([0, 0, 1, 1]), endings).tolist() == []
    with monkeypatch.context() as patch:
        patch.setattr(fingerprints, "keys", lambda codes, _prints: np.zeros(len(codes), dtype=np.uint64))
        with pytest.raises(InputError, match="share a fingerprint"):
            Lookup(np.array([0]), ids("a")).find(np.array([1]), ids("a"))
    monkeypatch.setattr(fingerprints, "of_spans", same_prints)
    with pytest.raises(InputError, match="ids 'a' and 'b' share a fingerprint: rename one"):
        Lookup(None, ids("a")).find(None, ids("b"))
    with pytest.raises(InputError, match="ids 'a' and 'b' share a fingerprint"):
        Lookup(np.array([0]), ids("a")).find_one(np.array([0]), ids("b"))
    monkeypatch.setattr(fingerprints, "rough_keys", lambda codes, *_: np.zeros(len(codes), dtype=np.uint64))
    assert repeated_pairs(np.array([0, 0, 0]), ids("a", "b", "a")).tolist() == [0, 2]


SPELLINGS = ["New_York", "new york", "New%20York", " New York ", "New\u00a0York", "new\u200b york", "N\uff45w_york"]


@pytest.mark.parametrize("one", SPELLINGS)
@pytest.mark.parametrize("other", SPELLINGS)
def test_near_matches_are_spellings_of_one_id(one, other):
    result = near_matches(
        column_ids(pd.Series([one, "b", "Boston"]), "ids"), column_ids(pd.Series(["b", other, "B2"]), "known")
    )
    assert result == ([] if one == other else [(one, other)])


@pytest.mark.parametrize(("one", "other"), [("d_1_2", "d_12"), ("d 1", "d1"), ("caf\u00e9", "cafe"), ("50%", "50")])
def test_ids_of_other_letters_are_no_near_matches(one, other):
    assert near_matches(column_ids(pd.Series([one]), "ids"), column_ids(pd.Series([other]), "known")) == []


@pytest.mark.slow
def test_ids_without_characters_that_have_other_spellings_are_not_folded(monkeypatch):
    texts = pa.array([f"a{chr(code)}b" for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000], pa.large_string())
    changes = pc.not_equal(texts, ids_module._folded_text(texts)).to_numpy(zero_copy_only=False)
    folded = np.array([ids_module.Ids(texts.slice(row, 1)).folding == 0 for row in range(len(texts))])
    assert not (changes & folded).any()
    forms = [ids_module.Ids(texts.slice(row, 1)).folded_forms.to_pylist()[0] for row in range(0x100)]
    assert forms == ids_module._folded_text(texts).to_pylist()[:0x100]
    assert "".join(text[1] for text in texts.filter(pa.array(folded)).to_pylist()) == (
        "!\"#$&'()*+,-./0123456789:;<=>?@[\\]^`abcdefghijklmnopqrstuvwxyz{|}~"
    )
    monkeypatch.setattr(ids_module, "_folded_text", None)
    assert near_matches(ids("doc-1", "0042"), ids("doc-2", "42")) == []


def test_known_ids_are_folded_once_for_all_runs(monkeypatch):
    reference, folded, sizes = ids("Doc 1", "Doc 2", "Doc 3"), ids_module._folded_text, []
    monkeypatch.setattr(ids_module, "_folded_text", lambda text: sizes.append(len(text)) or folded(text))
    assert near_matches(ids("doc_1", "Doc 3", "x"), reference) == [("doc_1", "Doc 1")]
    assert near_matches(ids("Doc_3", "doc_2"), reference) == [("Doc_3", "Doc 3"), ("doc_2", "Doc 2")]
    assert sizes.count(3) == 1


def test_encoded_ids_are_decoded_as_utf8():
    reference = column_ids(pd.Series(["Caf\u00e9", "A/B"]), "known")
    assert near_matches(column_ids(pd.Series(["Caf%C3%A9", "A%2FB"]), "ids"), reference) == [
        ("Caf%C3%A9", "Caf\u00e9"),
        ("A%2FB", "A/B"),
    ]
