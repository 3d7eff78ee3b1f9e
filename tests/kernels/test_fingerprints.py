"""Fingerprints and keys of ids compared with Python's own equality of strings."""

import string

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vbterrier.kernels import fingerprints

# Few letters and common beginnings, so that equal and nearly equal strings are frequent.
short = st.text(alphabet="ab\0", max_size=40).map(str.encode)
prefixed = st.tuples(st.sampled_from([b"", b"clueweb12-", b"d" * 8, b"x" * 31]), st.binary(max_size=9)).map(b"".join)
strings = st.lists(short | prefixed | st.binary(max_size=40), max_size=30)


def laid(words, before=b"", behind=b""):
    """Bytes end to end and where each begins."""
    data = np.frombuffer(before + b"".join(words) + behind, dtype=np.uint8)
    return data, len(before) + np.concatenate([[0], np.cumsum([len(word) for word in words], dtype=np.int64)])


def prints_of(words, **around):
    return fingerprints.fingerprints(*laid(words, **around)).tolist()


def test_fingerprints_are_computed_for_few_strings_at_a_time(monkeypatch):
    words = [b"x" * n for n in range(20)]
    plain = prints_of(words)
    sizes, of_spans = [], fingerprints.of_spans
    monkeypatch.setattr(fingerprints, "STRINGS", 8)
    monkeypatch.setattr(fingerprints, "of_spans", lambda *of: [sizes.append(len(of[1])), of_spans(*of)][1])
    assert prints_of(words) == plain
    assert sizes == [20, 8, 8, 4]
    assert prints_of([]) == []


def mixed(word):
    """The finaliser of splitmix64 in Python's integers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def fingerprint_of(string):
    digest = mixed((len(string) + 0x9E3779B97F4A7C15) % 2**64)
    for start in range(0, len(string), 8):
        digest = mixed(digest ^ int.from_bytes(string[start : start + 8], "little"))
    return digest


same_length = st.integers(0, 33).flatmap(lambda n: st.lists(st.binary(min_size=n, max_size=n), max_size=9))


@given(strings | same_length, st.binary(max_size=9), st.binary(max_size=9))
@example([b"exactly8", b"sixteen letters."], b"", b"")
@example([b"eight and more", b"short"], b"", b"")
def test_fingerprints_mix_the_words_of_a_string_in_order(words, before, behind):
    assert prints_of(words, before=before, behind=behind) == [fingerprint_of(word) for word in words]


# Ends of ids


one_length = st.integers(1, 20).flatmap(lambda n: st.lists(st.binary(min_size=n, max_size=n), max_size=9))


@given(strings | one_length, st.binary(max_size=9), st.binary(max_size=9))
@example([b"", b"abc", b"more than eight"], b"", b"")
def test_tails_are_the_last_eight_bytes(words, before, behind):
    values = fingerprints.tails(*laid(words, before, behind)).tolist()
    assert values == [int.from_bytes(word[-8:], "little") for word in words]


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([b"a", b"b", b"c" * 9])), max_size=20), st.booleans())
def test_pairs_that_repeat_are_found_in_blocks_of_any_size(pairs, together):
    pairs = sorted(pairs, key=lambda pair: pair[0]) if together else pairs
    codes = np.array([code for code, _ in pairs], dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprints, "_BLOCK_IDS", 3)
        values = fingerprints.roughly_repeated(codes, *laid([word for _, word in pairs])).tolist()
    assert sorted(values) == [place for place, pair in enumerate(pairs) if pairs.count(pair) > 1]


def test_halves_of_keys_find_what_whole_keys_find(monkeypatch):
    words = [str(number * 7).encode() for number in range(50_000)]
    words[40_000] = words[3]
    halves = fingerprints.roughly_repeated(np.zeros(len(words), dtype=np.int64), *laid(words)).tolist()
    monkeypatch.setattr(fingerprints, "_MAX_HALF_KEY_IDS", 0)
    assert fingerprints.roughly_repeated(np.zeros(len(words), dtype=np.int64), *laid(words)).tolist() == [3, 40_000]
    assert {3, 40_000} <= set(halves)
    assert len(halves) < 20


def test_rough_keys_tell_codes_and_words_apart():
    words = [str(number).encode() for number in range(20_000)]
    keys = fingerprints.rough_keys(np.repeat([0, 1, 70_000], 20_000), *laid(words * 3))
    assert len(np.unique(keys)) == 60_000
    assert fingerprints.rough_keys(np.array([1]), *laid(words[7:8])).tolist() == [keys[20_007].item()]


# Fingerprints


@settings(max_examples=300)
@given(strings)
def test_fingerprints_are_equal_exactly_where_strings_are(words):
    prints = prints_of(words)
    assert len(prints) == len(words)
    for one, of_one in zip(words, prints, strict=True):
        for other, of_other in zip(words, prints, strict=True):
            assert (of_one == of_other) == (one == other)


@given(strings, st.binary(max_size=20), st.binary(max_size=20))
def test_a_fingerprint_depends_on_its_string_alone(words, before, behind):
    expected = [prints_of([word])[0] for word in words]
    assert prints_of(words, before=before, behind=behind) == expected
    assert prints_of(words[::-1]) == expected[::-1]


@pytest.mark.parametrize("length", range(41))
def test_every_length_at_the_end_of_the_buffer(length):
    word = (string.ascii_lowercase * 2)[:length].encode()
    at_the_end = prints_of([b"z" * 11, word])[1]
    assert at_the_end == prints_of([word, b"z" * 11])[0] == prints_of([word])[0]
    if length:
        for changed in (word[:-1], word[:-1] + b"!", b"!" + word[1:], word + b"\0", b"\0" + word):
            assert prints_of([changed])[0] != at_the_end


LONG = b"x" * 10_000
SIMILAR = {
    "zero bytes": [b"\0" * n for n in range(30)] + [b"a" + b"\0" * n for n in range(30)],
    "a hundred thousand": [b"clueweb12-%04dwb-%02d-%05d" % (i % 10, i % 7, i) for i in range(100_000)],
    "ends of long ones": [b"d1", LONG, LONG + b"y", LONG + b"z", LONG[:-1] + b"y", b"", b"x" * 4096, b"x" * 4097],
}


@pytest.mark.parametrize("words", SIMILAR.values(), ids=SIMILAR)
def test_similar_strings_do_not_meet_and_do_not_depend_on_their_neighbours(words):
    prints = prints_of([*words, words[1]])
    assert len(set(prints)) == len(words)
    assert prints[-1] == prints[1]
    assert [prints_of([word])[0] for word in words[:60]] == prints[: min(60, len(words))]
    assert prints_of([]) == []


def test_mixing_is_the_finaliser_of_splitmix64():
    def by_hand(word):
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
        return word ^ (word >> 31)

    words = [0, 1, 2, 2**32, 2**63, 2**64 - 1, 123456789012345678]
    assert fingerprints.mix(np.array(words, dtype=np.uint64)).tolist() == [by_hand(word) for word in words]


def test_a_key_tells_apart_topics_and_ids():
    prints = fingerprints.fingerprints(*laid([b"d%d" % i for i in range(300)]))
    codes = np.arange(300)
    keys = fingerprints.keys(np.repeat(codes, 300), np.tile(prints, 300))
    assert len(np.unique(keys)) == 300 * 300
    assert fingerprints.keys(np.array([7]), prints[:1]).tolist() == [keys[7 * 300].item()]


# Repeats and ranges


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=40))
def test_repeated_keys_are_found_side_by_side_in_rising_order(numbers):
    values = fingerprints.repeated_keys(np.array(numbers, dtype=np.uint64)).tolist()
    assert sorted(values) == [place for place, number in enumerate(numbers) if numbers.count(number) > 1]
    met = [numbers[place] for place in values]
    for one, other, first, second in zip(met, met[1:], values, values[1:], strict=False):
        assert one <= other
        assert one != other or first < second


def test_one_id_of_many_megabytes_does_not_cost_a_pass_over_all_others_for_each_of_its_words():
    # Ten million bytes beside 100,000 ids: with a pass for each word, hours.
    texts = [b"%d" % n for n in range(100_000)] + [b"d" * 10_000_000]
    prints = prints_of(texts)
    assert len(set(prints)) == len(texts)
    assert prints[0] == prints_of([b"0"])[0]
