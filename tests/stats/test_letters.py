"""Compact letter displays: exact for any pattern of differences, and short where a shortest is known."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vbterrier.stats.comparisons import letters


def signs(text):
    return set(re.findall(r"[a-z]\d*", text))


def matrix(n, pairs):
    different = np.zeros((n, n), dtype=bool)
    for a, b in pairs:
        different[a, b] = different[b, a] = True
    return different


@st.composite
def differences(draw, n_most=9):
    n = draw(st.integers(0, n_most))
    every = list(combinations(range(n), 2))
    return matrix(n, draw(st.lists(st.sampled_from(every), unique=True)) if every else [])


def maximal_cliques(alike):
    n = len(alike)
    sets = [
        set(chosen)
        for size in range(1, n + 1)
        for chosen in combinations(range(n), size)
        if all(alike[a, b] for a, b in combinations(chosen, 2))
    ]
    return [one for one in sets if not any(one < other for other in sets)]


@given(differences())
def test_systems_share_a_letter_exactly_when_they_are_not_different(different):
    found = [signs(text) for text in letters(different)]
    assert all(found)
    for a, b in combinations(range(len(different)), 2):
        assert bool(found[a] & found[b]) != different[a, b]


# Three sets that others make redundant; and a first one.
@example(matrix(6, [(0, 1), (2, 3), (4, 5)]))
@example(matrix(6, [(0, 3), (1, 5), (2, 4), (3, 4), (3, 5)]))
@given(differences(7))
def test_every_letter_is_a_maximal_set_and_none_can_be_left_out(different):
    found = [signs(text) for text in letters(different)]
    groups = {sign: {at for at, own in enumerate(found) if sign in own} for sign in set().union(*found)}
    cliques = maximal_cliques(~different)
    assert all(group in cliques for group in groups.values())
    in_order = [sorted(groups[sign]) for sign in sorted(groups)]
    assert in_order == sorted(in_order), "the best system has the first letter"
    for sign, group in groups.items():
        others = [other for name, other in groups.items() if name != sign]
        needed = [pair for pair in combinations(group, 2) if not any(set(pair) <= other for other in others)]
        alone = [at for at in group if not any(at in other for other in others)]
        assert needed or alone


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 10))
def test_where_only_distance_decides_letters_are_the_maximal_sets_in_order(scores, reach):
    scores = np.sort(scores)
    different = np.abs(scores[:, None] - scores) > reach
    found = [signs(text) for text in letters(different)]
    cliques = sorted(sorted(clique) for clique in maximal_cliques(~different))
    names = sorted(set().union(*found))
    assert [[at for at, own in enumerate(found) if name in own] for name in names] == cliques


@pytest.mark.parametrize(
    ("n", "pairs", "expected"),
    [
        (0, [], []),
        (1, [], ["a"]),
        (3, [], ["a", "a", "a"]),
        (3, [(0, 1), (0, 2), (1, 2)], ["a", "b", "c"]),
        (3, [(0, 2)], ["a", "ab", "b"]),
        # Differences need not follow the order of means.
        (4, [(0, 1), (2, 3)], ["ab", "cd", "ac", "bd"]),
    ],
)
def test_small_displays(n, pairs, expected):
    assert letters(matrix(n, pairs)) == expected


def test_letters_go_on_after_z():
    found = letters(~np.eye(60, dtype=bool))
    assert found[25:28] == ["z", "a1", "b1"]
    assert found[52] == "a2"
    assert len(set(found)) == 60
