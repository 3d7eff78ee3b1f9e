"""The column ``judgments`` of runs, which states how judgments of their topics entered their scores.

Trained stages and diagnostics write it, and trained stages read it. Rows without a value do not depend on judgments, as
far as is known: files of runs and stages of other packages lose the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.contracts import pandas_frame

if TYPE_CHECKING:
    from vbterrier.annotations import Bools


JUDGMENTS = "judgments"
# A model of other topics than those of the run; of other topics of the same run; of the topic itself. Each is stronger.
OTHER, CROSSED, OWN_TOPIC = VALUES = ("other topics", "cross-validated", "own topic")


def with_mark(run: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return a run with one value of the column for all rows."""
    return run.assign(**{JUDGMENTS: pd.Series(value, index=run.index, dtype="str")})


def of_fitted(run: pd.DataFrame, topics: frozenset[str], *sources: pd.DataFrame) -> pd.DataFrame:
    """Mark the run of a model that was fitted on some topics; its sources are its inputs."""
    of_same = run["qid"].astype(str).isin(topics)
    return with_strongest_mark(run, with_mark(run[of_same], OWN_TOPIC), with_mark(run[~of_same], OTHER), *sources)


def of_cross_validated(run: pd.DataFrame, *sources: pd.DataFrame) -> pd.DataFrame:
    """Mark the run of models of other topics of the same run; its sources are its inputs."""
    return with_strongest_mark(run, with_mark(run, CROSSED), *sources)


def without_mark(run: pd.DataFrame) -> pd.DataFrame:
    """Return a run without the column."""
    return run.drop(columns=JUDGMENTS, errors="ignore")


def with_strongest_mark(run: pd.DataFrame, *sources: pd.DataFrame) -> pd.DataFrame:
    """Mark each topic of a run with the strongest value that any of its sources has for the topic."""
    sources = tuple(source for source in sources if JUDGMENTS in source)
    if not sources:
        return run
    rows = pd.concat([source[["qid", JUDGMENTS]] for source in sources])
    strongest = rows[JUDGMENTS].map(VALUES.index, na_action="ignore").groupby(rows["qid"].astype(str)).max()
    values = strongest.map(dict(enumerate(VALUES))).to_dict()
    made = [values.get(qid) for qid in map(str, run["qid"])]
    # pandas infers the type of text, but not of an empty column.
    return run.assign(**{JUDGMENTS: pd.Series(made, run.index, dtype=None if made else "str")})


def require_independent(run: Any, name: str, *, folds: bool) -> None:
    """Refuse or report a run that depends on judgments, before a stage learns from it.

    A cross-validated run is refused in ``folds``: the ranking of each training topic depends on the judgments of test
    topics, which so reach the scores of the test topics. Elsewhere a warning reports it, as it does rankings that
    depend on the judgments of their own topics.
    """
    run = pandas_frame(run, name)
    if JUDGMENTS not in run:
        return

    def topics(rows: Bools) -> str:
        names = run.loc[rows, "qid"].astype(str).unique().tolist()
        return f"{len(names)} topics ({examples(names)})"

    crossed, of_same = ((run[JUDGMENTS] == value).to_numpy(dtype=bool) for value in (CROSSED, OWN_TOPIC))
    if crossed.any():
        problem = (
            f"{name}: column {JUDGMENTS!r} says that the rankings of {topics(crossed)} are cross-validated: through "
            "them, the judgments of a test topic would change its own scores"
        )
        remedy = "give the stage or pipeline that made them instead, which is then fitted again in each fold"
        if folds:
            raise InputError(f"{problem}; {remedy}")
        warn(f"{problem} if they include test topics; {remedy}")
    if of_same.any():
        warn(
            f"{name}: column {JUDGMENTS!r} says that the rankings of {topics(of_same)} depend on judgments of the same "
            "topics: scores of these topics do not evaluate a system"
        )
