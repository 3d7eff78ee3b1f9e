"""Compact letter display of pairwise significance tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Bools


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters(different: Bools) -> list[str]:
    """The compact letter display: two systems share a letter exactly if they do not differ (Piepho 2004).

    A letter is a maximal set of systems that do not differ from each other. Sets are extended from pairs without a
    common letter, in the order of the systems, and redundant sets are removed. The display is exact, costs at most
    (pairs x systems), and has the smallest number of letters if differences are monotone in the order of systems.

    Parameters
    ----------
    different
        True if two systems differ, symmetric with ``False`` on the diagonal, shape (n, n); letters are assigned in
        the order of the systems.

    Returns
    -------
    list of str
        The letters of each system; after ``z`` come ``a1``, ``b1``, ....

    >>> letters(np.array([[False, False, True], [False, False, False], [True, False, False]]))
    ['a', 'ab', 'b']
    """
    alike = ~different
    groups = _cover(alike)
    counts = np.zeros(alike.shape, dtype=np.int64)
    for group in groups:
        counts += np.outer(group, group)
    # Redundant letters are removed from the last, so that the first systems keep their letters.
    for at in range(len(groups) - 1, -1, -1):
        own = np.outer(groups[at], groups[at])
        if (counts[own] > 1).all():
            counts -= own
            del groups[at]
    groups.sort(key=lambda group: np.flatnonzero(group).tolist())
    rounds = (divmod(at, len(_ALPHABET)) for at in range(len(groups)))
    signs = [_ALPHABET[letter] + (str(n) if n else "") for n, letter in rounds]
    return ["".join(sign for sign, group in zip(signs, groups, strict=True) if group[at]) for at in range(len(alike))]


def _cover(alike: Bools) -> list[Bools]:
    """Maximal sets of systems that do not differ, such that each pair that does not differ is in one set."""
    groups = []
    together = np.zeros_like(alike)
    for first, second in zip(*np.nonzero(np.triu(alike)), strict=True):
        if together[first, second]:
            continue
        group = np.zeros(len(alike), dtype=bool)
        group[[first, second]] = True
        fits = alike[first] & alike[second] & ~group
        while fits.any():
            added = int(np.argmax(fits))
            group[added] = True
            fits &= alike[added] & ~group
        together |= np.outer(group, group)
        groups.append(group)
    return groups
