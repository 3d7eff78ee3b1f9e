"""What every frame of candidate intents must hold: each candidate of a query once, probabilities that sum to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.ids import numbers_of, repeated_pairs
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# What rounding to six decimals may take from each probability, doubled.
ROUNDING = 1e-6


def require_once(topics: Sequence[str], topic: Ints, entity: Ids, name: str) -> None:
    """Refuse a candidate that stands twice in its query.

    Raises
    ------
    InputError
        Names the first such candidate and its rows.
    """
    twice = repeated_pairs(topic, entity)
    if len(twice):
        first, second = (int(row) for row in twice[:2])
        raise InputError(
            f"{name}: {owner(topics, topic, entity, first)} stands in rows {first} and {second}; keep one, or add up "
            "their probabilities, as Dedup() does"
        )


def probabilities_of(
    column: Any, topics: Sequence[str], topic: Ints, entity: Ids, name: str, *, normalise: bool = False
) -> tuple[Floats, Floats]:
    """Probabilities of candidates as they stand, shape (n,), and their sum over each query, shape (n_topics,).

    A sum may be off by 1e-6 for each candidate: what is left of probabilities that were rounded to six decimals.

    Parameters
    ----------
    column
        The probability of each candidate.
    topics, topic
        The queries, and the place of each candidate's query.
    entity
        The candidates.
    name
        What messages call the frame.
    normalise
        Take any weights of at least 0.

    Raises
    ------
    InputError
        A missing value, a value that is no probability, a sum that is not 1.
    """
    prob = numbers_of(column, f"{name} column 'prob'", lambda row: f" ({owner(topics, topic, entity, row)})")
    sizes = np.bincount(topic, minlength=len(topics))
    bad = (prob < 0) | (~np.isfinite(prob) if normalise else prob > 1 + ROUNDING)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name}: row {row} ({owner(topics, topic, entity, row)}) has probability {prob[row]:g}, wanted 0 to 1; "
            "make scores probabilities first, with a softmax as Calibrate() does"
        )
    total = per_topic(prob, topic, len(topics))
    off = ((total <= 0) & (sizes > 0)) if normalise else np.abs(total - 1) > ROUNDING * sizes
    if off.any():
        place = int(np.argmax(off))
        wanted = "more than 0" if normalise else "1: divide them by their sum, as normalise=True of a measure does"
        n_off = int(off.sum())
        raise InputError(
            f"{name}: the probabilities of query {topics[place]!r} sum to {total[place]:g} "
            f"({n_off} {'query is' if n_off == 1 else 'queries are'} off); wanted {wanted}"
        )
    return prob, total


def owner(topics: Sequence[str], topic: Ints, entity: Ids, row: int) -> str:
    """The candidate of a row and its query, for messages."""
    return f"candidate {entity.text[row].as_py()!r} of query {topics[topic[row]]!r}"
