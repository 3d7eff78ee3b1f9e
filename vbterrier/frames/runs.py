"""Named runs and flattened diversity qrels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require, systems_of
from vbterrier.frames.ids import ids_of, integers_of
from vbterrier.frames.ranking import Run, loaded_run

if TYPE_CHECKING:
    import pandas as pd


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
