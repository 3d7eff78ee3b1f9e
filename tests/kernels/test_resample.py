"""Streams of random numbers: of seed and name, of nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier.kernels.resample import random_signs, resampled_means, resamples, stream

names = st.lists(st.text(max_size=6), max_size=3).map(tuple)


def first(seed, *what):
    return stream(seed, *what).random(4).tolist()


@given(st.integers(0, 2**200) | st.sampled_from([0, 2**32 - 1, 2**32, 2**128 - 1, 2**128]), names)
def test_a_stream_is_that_of_numpys_spawn_key(seed, what):
    key = [number for word in what for number in (len(word), *word.encode())]
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
    assert first(seed, *what) == expected.random(4).tolist()


@pytest.mark.parametrize(
    "group",
    [
        [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("a", "b", "c")],
        [("1",), ("11",), ("1", "1"), ("é",), ("e\u0301",), ("É",)],
        [(), ("",), ("", ""), ("\0",), ("\0", "\0"), ("\0\0",)],
    ],
)
def test_names_cut_otherwise_are_other_names(group):
    drawn = [tuple(first(3, *what)) for what in group]
    assert len(set(drawn)) == len(group)


def test_the_numbers_are_those_of_before():
    # NumPy promises the bits of PCG64 for good, not what a Generator makes of them.
    assert stream(0, "q1").bit_generator.random_raw(3).tolist() == [
        7608188247521556960,
        18245194547821072109,
        14452854046650137892,
    ]


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed=-1: wanted a whole number of at least 0"):
        stream(-1, "q1")


def test_resamples_are_counts_of_draws_however_they_are_cut_into_blocks(monkeypatch):
    whole = np.concatenate(list(resamples(7, 50, stream(1, "topics"))))
    drawn = stream(1, "topics").integers(7, size=(50, 7), dtype=np.int32)
    assert whole.tolist() == [[(row == unit).sum() for unit in range(7)] for row in drawn]
    monkeypatch.setattr("vbterrier.kernels.resample._BLOCK", 90)
    monkeypatch.setattr("vbterrier.kernels.resample._DRAWN", 30)
    blocks = list(resamples(7, 50, stream(1, "topics")))
    assert [len(block) for block in blocks] == [12, 12, 12, 12, 2]
    assert np.array_equal(np.concatenate(blocks), whole)


def test_means_over_resampled_rows_by_plain_loops():
    values = np.random.default_rng(5).random((6, 3))
    drawn = stream(2, "topics").integers(6, size=(20, 6), dtype=np.int32)
    expected = [values[rows].mean(axis=0) for rows in drawn]
    assert resampled_means(values, 20, stream(2, "topics")) == pytest.approx(np.array(expected))


def test_signs_have_even_chances_and_are_those_of_their_unit():
    signs = np.concatenate(list(random_signs(3, 20_000, stream(1, "signs"))))
    assert signs.shape == (20_000, 3)
    assert set(signs.ravel().tolist()) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(20_000)
    assert np.abs(np.corrcoef(signs.T)[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(20_000)
