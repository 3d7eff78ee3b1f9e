"""Named runs, common topics, and flattened diversity qrels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.contracts import frame_of, require, systems_of
from vbterrier.frames.files.reading import read_run
from vbterrier.frames.ids import ids_of, integers_of, require_same_kind
from vbterrier.frames.ranking import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from vbterrier.annotations import Ints
    from vbterrier.frames.ids import Ids


def places(wanted: Sequence[str], among: Sequence[str]) -> Ints:
    """Return the position of each wanted topic in another list, -1 if it is missing, shape (n_wanted,).

    >>> places(["q2", "q9"], ["q1", "q2"])
    array([ 1, -1])
    """
    index = {topic: place for place, topic in enumerate(among)}
    return np.array([index.get(topic, -1) for topic in wanted], dtype=np.int64)


def run_places(run: Run, topics: Sequence[str], qid: Ids, name: str) -> Ints:
    """Return the position of each topic of a run in the topics to evaluate, -1 for topics that are not evaluated.

    Parameters
    ----------
    run
        The run.
    topics, qid
        The topics to evaluate, and their column.
    name
        The name of their frame in messages.

    Raises
    ------
    InputError
        No topic to evaluate, no topic in common, or integers in one frame and text in the other.
    """
    if not topics:
        raise InputError(f"{name}: no rows; a run is evaluated over the topics of this frame")
    require_same_kind(qid, run.topic_ids, f"{name} column 'qid'", f"{run.name} column 'qid'")
    found = places(run.topics, topics)
    if not run.topics:
        warn(f"{run.name}: empty; all {len(topics)} topics score 0")
    elif (found < 0).all():
        raise InputError(
            f"no topic in common: {run.name} has {examples(run.topics)}; {name} has {examples(topics)}; "
            "look for other prefixes, leading zeros, trailing blanks or another Unicode form"
        )
    elif (found < 0).any():
        extra = [topic for topic, place in zip(run.topics, found, strict=True) if place < 0]
        warn(f"{run.name}: {len(extra)} topics are not in {name} and are left out ({examples(extra)})")
    return found


def loaded_run(name: str, run: Any, duplicates: str = "error") -> Run:
    """Return a run from a frame or a path."""
    frame = read_run(run) if isinstance(run, (str, os.PathLike)) else run
    return Run(frame, name=f"run {name!r}", duplicates=duplicates)


def runs_of(runs: Any) -> dict[str, Run]:
    """Return runs by name from a mapping of names to frames (qid, docno, score) or paths of TREC runs.

    Raises
    ------
    InputError
        No mapping, an empty one, or an invalid run.
    """
    if not hasattr(runs, "items") or hasattr(runs, "columns"):
        raise InputError(f"runs: wanted a mapping of name to run, found {type(runs).__name__}; pass {{'mine': run}}")
    loaded = {name: loaded_run(name, run) for name, run in systems_of(runs)}
    if not loaded:
        raise InputError("runs: none; name at least one run")
    return loaded


def flatten_qrels(qrels: Any, *, name: str = "qrels") -> pd.DataFrame:
    """Convert diversity qrels to adhoc qrels: the highest label of each document over all iterations.

    Parameters
    ----------
    qrels
        Columns qid, docno, label; a column ``iteration`` is ignored.
    name
        The name in messages.

    Returns
    -------
    pandas.DataFrame
        Columns qid, docno, label; one row per document, in order of appearance.

    Raises
    ------
    InputError
        A missing column or id, a label that is not an integer.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "1", "iteration": ["1", "2"], "docno": "d", "label": [0, 2]})
    >>> flatten_qrels(qrels).values.tolist()
    [['1', 'd', 2]]
    """
    frame = frame_of(qrels, name)
    require(frame, ("qid", "docno", "label"), name)
    for column in ("qid", "docno"):
        ids_of(frame[column], f"{name} column {column!r}")
    frame = frame.assign(label=integers_of(frame["label"], f"{name} column 'label'"))
    return frame.groupby(["qid", "docno"], sort=False, observed=True)["label"].max().reset_index()
