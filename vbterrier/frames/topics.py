"""Which topics two frames share, and what to say when they share too few."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning, InputError, examples
from vbterrier.frames.ids import require_same_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vbterrier.frames.ids import Ids
    from vbterrier.frames.ranked import Run

    Ints = NDArray[np.int64]


def places(wanted: Sequence[str], among: Sequence[str]) -> Ints:
    """The place of each wanted topic among others, -1 where it is missing, shape (n_wanted,).

    >>> places(["q2", "q9"], ["q1", "q2"])
    array([ 1, -1])
    """
    index = {topic: place for place, topic in enumerate(among)}
    return np.array([index.get(topic, -1) for topic in wanted], dtype=np.int64)


def run_places(run: Run, topics: Sequence[str], qid: Ids, name: str) -> Ints:
    """The place of each topic of a run among the topics to evaluate, -1 for topics that are not evaluated.

    Parameters
    ----------
    run
        The run.
    topics, qid
        The topics to evaluate, and the column that they came from.
    name
        What messages call the frame of that column.

    Raises
    ------
    InputError
        No topic to evaluate, integers against text, or no topic in common.
    """
    if not topics:
        raise InputError(f"{name}: no rows; a run is evaluated over the topics that stand here")
    require_same_kind(qid, run.topic_ids, f"{name} column 'qid'", f"{run.name} column 'qid'")
    found = places(run.topics, topics)
    if not run.topics:
        warnings.warn(f"{run.name}: empty; all {len(topics)} topics score 0", DegenerateWarning, stacklevel=2)
    elif (found < 0).all():
        raise InputError(
            f"no topic in common: {run.name} has {examples(run.topics)}; {name} has {examples(topics)}; "
            "look for other prefixes, leading zeros, trailing blanks or another Unicode form"
        )
    elif (found < 0).any():
        extra = [topic for topic, place in zip(run.topics, found, strict=True) if place < 0]
        warnings.warn(
            f"{run.name}: {len(extra)} topics are not in {name} and are left out ({examples(extra)})",
            DegenerateWarning,
            stacklevel=2,
        )
    return found
