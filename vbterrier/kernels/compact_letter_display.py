"""Compact letter display of systems that do not differ significantly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vbterrier.annotations import Bools


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters(different: Bools) -> list[str]:
    """The compact letter display: two systems share a letter exactly when they are not different (Piepho 2004).

    A letter is a maximal set of systems that are not different from each other. Sets are grown from pairs that share
    no letter yet, in the order of the systems, and those that others make redundant are dropped: the display is exact,
    at a cost of at most (pairs x systems), and as short as can be where systems that differ lie on either side of
    those that do not.

    Parameters
    ----------
    different
        Whether two systems are different, symmetric with ``False`` on the diagonal, shape (n, n); systems in the order
        in which they should get their letters.

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
    # From the last: the letters of the best are kept.
    for at in range(len(groups) - 1, -1, -1):
        own = np.outer(groups[at], groups[at])
        if (counts[own] > 1).all():
            counts -= own
            del groups[at]
    groups.sort(key=lambda group: np.flatnonzero(group).tolist())
    signs = [_sign(at) for at in range(len(groups))]
    return ["".join(sign for sign, group in zip(signs, groups, strict=True) if group[at]) for at in range(len(alike))]


def _cover(alike: Bools) -> list[Bools]:
    """Maximal sets of systems that are alike, such that every two that are alike are together in one of them."""
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


def _sign(at: int) -> str:
    again, letter = divmod(at, len(_ALPHABET))
    return _ALPHABET[letter] + (str(again) if again else "")
