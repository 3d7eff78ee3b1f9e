"""Unit vectors of entities, looked up or computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vbterrier.annotations import Floats


def name_of(entity_id: str) -> str:
    """Return the name of an entity according to its id.

    >>> name_of("New_York_City")
    'New York City'
    """
    return entity_id.replace("_", " ")


def unit(vectors: Floats) -> Floats:
    """Scale vectors to length 1; vectors of length 0 become NaN, shape (n, d)."""
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return vectors / np.where(length > 0, length, np.nan)[:, None]


class Vectors:
    """Vectors of entities by id; computed vectors are cached.

    Parameters
    ----------
    make
        A function from ids to vectors.
    given
        Vectors by id, used instead of ``make``.
    """

    def __init__(self, make: Callable[[list[str]], Any], given: Mapping[str, Any] | None) -> None:
        self._make, self._given = make, given
        self._made: dict[str, Floats] = {}

    def __call__(self, ids: list[str]) -> Floats:
        """Return unit vectors, NaN for ids without a vector, shape (n, d), or (n, 0) if no id has a vector.

        Raises
        ------
        InputError
            See :func:`table`.
        """
        if self._given is None:
            new = [each for each in dict.fromkeys(ids) if each not in self._made]
            if new:
                self._made.update(zip(new, table(self._make(new), new, "entities"), strict=True))
            return unit(np.stack([self._made[each] for each in ids]))
        found = np.array([each in self._given for each in ids], dtype=bool)
        known = [each for each, has in zip(ids, found.tolist(), strict=True) if has]
        if not known:
            return np.full((len(ids), 0), np.nan)
        vectors = table([self._given[each] for each in known], known, "entities")
        made = np.full((len(ids), vectors.shape[1]), np.nan)
        made[found] = unit(vectors)
        return made


def table(vectors: Any, of: list[str], what: str) -> Floats:
    """Return vectors as an array with one row for each id or text.

    Raises
    ------
    InputError
        Vectors of different lengths, too few or too many vectors, numbers that are not finite.

    >>> table([[1.0], [2.0]], ["Paris"], "entities")
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: vectors of 1 entities: wanted a table of shape (1, d), found (2, 1)
    """
    try:
        made = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"vectors of {len(of)} {what}: not a table of numbers; check that all have the same length ({error})"
        ) from error
    if made.ndim != 2 or len(made) != len(of) or not made.shape[1]:  # noqa: PLR2004 - a table has two dimensions
        raise InputError(f"vectors of {len(of)} {what}: wanted a table of shape ({len(of)}, d), found {made.shape}")
    bad = ~np.isfinite(made).all(axis=1)
    if bad.any():
        raise InputError(f"vectors of {what}: the vector of {of[int(np.argmax(bad))]!r} is not finite; leave it out")
    return made
