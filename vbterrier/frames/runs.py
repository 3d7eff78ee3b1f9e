"""Runs by name, topics that frames share, and flattened diversity qrels."""

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
    """A run, given as a frame or a path."""
    frame = read_run(run) if isinstance(run, (str, os.PathLike)) else run
    return Run(frame, name=f"run {name!r}", duplicates=duplicates)


def runs_of(runs: Any) -> dict[str, Run]:
    """Each run by its name, from a mapping of name to a frame (qid, docno, score) or the path of a TREC run.

    Raises
    ------
    InputError
        No mapping, or an empty one; see the contract of runs.
    """
    if not hasattr(runs, "items") or hasattr(runs, "columns"):
        raise InputError(f"runs: wanted a mapping of name to run, found {type(runs).__name__}; pass {{'mine': run}}")
    loaded = {name: loaded_run(name, run) for name, run in systems_of(runs)}
    if not loaded:
        raise InputError("runs: none; name at least one run")
    return loaded


def flatten_qrels(qrels: Any, *, name: str = "qrels") -> pd.DataFrame:
    """Adhoc judgments from diversity judgments: the highest label of each document over all iterations.

    Parameters
    ----------
    qrels
        Columns qid, docno, label; an iteration column is ignored.
    name
        What messages call it.

    Returns
    -------
    pandas.DataFrame
        qid, docno, label; one row a document, in order of appearance.

    Raises
    ------
    InputError
        A missing column or id, a label that is no whole number.

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
