"""Entity runs by the means of two measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.frames.contracts import frame_of, require
from vbterrier.report.plots import words
from vbterrier.uncertainty.frontier import undominated

# Measures of which less is better; of all others more is.
LOWER = ("NonRelCov", "BaitRate", "TopBait")
# Means this close are one mean: sums in another order.
DECIMALS = 9


def run_means(given: Any, x: str, y: str) -> tuple[pd.DataFrame, int, int]:
    """A row a run: name, x, y, on_front; the number of topics, and of those left out.

    Raises
    ------
    InputError
        A missing column; a value twice; no topic that has all values; a DiscRatio without bound.
    ParameterError
        A measure that the frame does not have.
    """
    values = frame_of(given, "values")
    require(values, ("name", "qid", "measure", "value"), "values")
    empty = pd.DataFrame({"name": [], "x": [], "y": [], "on_front": []})
    if not len(values):
        return empty, 0, 0
    needed = list(dict.fromkeys(source for measure in (x, y) for source in _sources(measure)))
    known = list(values["measure"].unique())
    for measure in needed:
        if measure not in known:
            raise ParameterError(f"values: no {measure}; found {examples(known, 6)}.{nearest(measure, known)}")
    columns = {name: words.texts(values[name], f"values column {name!r}") for name in ("name", "qid", "measure")}
    frame = pd.DataFrame({**columns, "value": words.reals(values["value"], "values column 'value'")})
    frame = frame[frame["measure"].isin(needed)]
    twice = frame.duplicated(["name", "qid", "measure"])
    if twice.any():
        name, qid, measure = frame.loc[twice, ["name", "qid", "measure"]].iloc[0]
        raise InputError(f"values: {measure!r} of run {name!r} and query {qid!r} stands twice; keep one row")
    names = list(frame["name"].unique())
    table = frame.pivot(index="qid", columns=["name", "measure"], values="value")
    table = table.reindex(columns=pd.MultiIndex.from_product([names, needed]))
    whole = table.dropna()
    if not len(whole):
        raise InputError(f"values: no topic has {' and '.join(needed)} of all {len(names)} runs")
    mean = whole.mean().unstack().loc[names]
    runs = pd.DataFrame({"name": names, "x": _of(mean, x), "y": _of(mean, y)})
    up, down = (runs[axis] * sign for axis, sign in (("y", -way(y)), ("x", way(x))))
    return runs.assign(on_front=undominated(_rounded(up), _rounded(down))), len(whole), len(table) - len(whole)


def _rounded(values: pd.Series[float]) -> Any:
    return values.to_numpy().round(DECIMALS)


def way(measure: str) -> int:
    """1 where less of a measure is better, -1 where more is."""
    return 1 if measure.startswith(LOWER) else -1


def _sources(measure: str) -> tuple[str, ...]:
    """What a measure of runs is made of."""
    if not measure.startswith("DiscRatio"):
        return (measure,)
    return measure.replace("DiscRatio", "RelCov", 1), measure.replace("DiscRatio", "NonRelCov", 1)


def _of(mean: pd.DataFrame, measure: str) -> Any:
    sources = _sources(measure)
    if len(sources) == 1:
        return mean[measure].to_numpy()
    above, below = (mean[source].to_numpy() for source in sources)
    if not (below > 0).all():
        name = mean.index[int(np.argmin(below > 0))]
        raise InputError(f"values: run {name!r} reaches no other document; its {measure} has no bound: leave it out")
    return above / below
