"""Captions and legends of tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, ParameterError, examples, nearest, printable
from vbterrier.frames import notebook
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, integers_of
from vbterrier.measures.text import measures_from
from vbterrier.measures.base import Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import ir_measures
    import pandas as pd


INTERVALS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")
# Parameters that name data: the same for all measures of a figure, they stand in its caption.
_DATA = ("intents", "tags")


def intervals_of(data: Any) -> pd.DataFrame:
    """A C frame, its numbers checked; NaN stays, for values and intervals that do not exist.

    Where it has a column ``mean``, over replicas, the value is that, and ``replicated`` says so.

    Raises
    ------
    InputError
        A missing column, an infinite or half-given interval, ends in the wrong order, no level, a row given twice.
    """
    frame = frame_of(data, "intervals")
    require(frame, INTERVALS, "intervals")
    checked = frame[list(INTERVALS)].reset_index(drop=True)
    for columns, read in ((("name", "measure", "method"), texts), (("value", "low", "high", "level"), reals)):
        for column in columns:
            checked[column] = read(checked[column], f"intervals column {column!r}")
    mean = reals(frame["mean"], "intervals column 'mean'") if "mean" in frame.columns else np.full(len(frame), np.nan)
    checked["replicated"] = ~np.isnan(mean)
    checked["value"] = np.where(checked["replicated"], mean, checked["value"])
    for column in ("n_qids", "n_resamples"):
        checked[column] = integers_of(checked[column], f"intervals column {column!r}")
    bad = (checked["low"].isna() != checked["high"].isna()) | (checked["low"] > checked["high"])
    _refuse(checked, bad, "has the interval {low:g} to {high:g}; wanted two ends in order, or NaN for both")
    odd = checked["low"].notna() & ~checked["level"].between(0, 1, inclusive="neither")
    _refuse(checked, odd, "has the level {level:g}; wanted a number between 0 and 1, as 0.95")
    _refuse(checked, checked.duplicated(["name", "measure", "method"]), "stands twice with one method; keep one row")
    return checked


def _refuse(frame: pd.DataFrame, bad: pd.Series[Any], why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        found = frame.iloc[row]
        where = f"intervals: row {row} ({found['name']!r}, {found['measure']!r}) "
        raise InputError(where + why.format(**found[["low", "high", "level"]]))


def texts(column: pd.Series[Any], where: str) -> list[str]:
    """A column of names as text.

    Raises
    ------
    InputError
        A missing name, numbers that are not whole.
    """
    names: list[str] = ids_of(column, where).text.to_pylist()
    return names


def reals(column: pd.Series[Any], where: str) -> Any:
    """A column as float64, NaN where there is no number.

    Raises
    ------
    InputError
        Text that is no number, infinity.
    """
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: wanted numbers or NaN, found {column.dtype}; cast it at the source") from error
    if np.isinf(numbers).any():
        raise InputError(f"{where}: row {int(np.argmax(np.isinf(numbers)))} is infinite; wanted a number or NaN")
    return numbers


def only(frame: pd.DataFrame, column: str, wanted: str | Iterable[str] | None, what: str) -> pd.DataFrame:
    """The rows whose column has one of the wanted values; all rows for ``None``.

    Raises
    ------
    ParameterError
        A value that no row has.
    """
    if wanted is None:
        return frame
    asked = [wanted] if isinstance(wanted, str) else [str(one) for one in wanted]
    known = frame[column]
    for one in asked:
        if not (known == one).any():
            there = list(known.unique())
            raise ParameterError(f"{column}={one!r}: {what} has {examples(there, 6)}.{nearest(one, there)}")
    return frame[known.isin(asked)]


def parsed(text: str) -> ir_measures.Measure | None:
    """The measure of a text, ``None`` for text of other origin."""
    try:
        return measures_from(text)[0]
    except ParameterError:
        return None


def parameter(measure: ir_measures.Measure | None, name: str) -> Any:
    """A parameter of a measure, its default where it was not given; ``None`` where there is none."""
    if measure is None or name not in measure.SUPPORTED_PARAMS:
        return None
    value = measure[name]
    return value if isinstance(value, (int, float, str)) else None


def without(measure: ir_measures.Measure, *names: str) -> ir_measures.Measure:
    """The measure less some parameters."""
    return type(measure)(**{key: value for key, value in measure.params.items() if key not in names})


def short(measures: Sequence[str]) -> tuple[list[str], str]:
    """Names of measures without the data that all of them share, and a sentence that names the data.

    >>> short(["ES(intents='demo')@5", "VB(intents='demo')@5"])
    (['ES@5', 'VB@5'], "intents 'demo'")
    """
    read = [parsed(text) for text in measures]
    shared = [
        name
        for name in _DATA
        if len({parameter(one, name) for one in read}) == 1 and parameter(read[0], name) not in (None, "")
    ]
    said = ", ".join(f"{name} {parameter(read[0], name)!r}" for name in shared)
    return [
        text if one is None or not shared else str(without(one, *shared))
        for text, one in zip(measures, read, strict=True)
    ], said


def provenance(intervals: pd.DataFrame) -> str:
    """How points and intervals came about: topics, replicas, level, method, resamples, seed."""
    kinds = intervals.loc[intervals["method"] != "none", ["level", "method", "n_resamples", "seed"]]
    ways: dict[Any, list[str]] = {}
    for level, method, n_resamples, seed in kinds.dropna(subset="level").drop_duplicates().to_numpy().tolist():
        drawn = f", {n_resamples:,} resamples, seed {seed}" if n_resamples else ""
        ways.setdefault(level, []).append(f"{method}{drawn}")
    said = [f"{100 * level:g}% intervals: {' and '.join(those)}" for level, those in ways.items()]
    return "; ".join([counted(intervals["n_qids"], "topic"), *_of_replicas(intervals), *said])


def origin(frame: pd.DataFrame) -> str:
    """What was drawn of what, as far as columns measure, n_qids, method, n_draws and seed say so."""
    said = [str(value) for column in ("measure", "method") if column in frame for value in frame[column].unique()]
    if "n_qids" in frame:
        said.insert(min(1, len(said)), counted(frame["n_qids"], "topic"))
    if {"n_draws", "seed"} <= set(frame):
        drawn = frame[["n_draws", "seed"]].drop_duplicates().to_numpy().tolist()
        said += [f"{n_draws:,} draws, seed {seed}" for n_draws, seed in drawn]
    return ", ".join(said)


def _of_replicas(intervals: pd.DataFrame) -> list[str]:
    """Which points are means over replicas, where any are."""
    replicated = intervals["replicated"]
    if not replicated.any():
        return []
    methods = "" if replicated.all() else " of " + " and ".join(intervals.loc[replicated, "method"].unique())
    return [f"points{methods}: mean over replicas"]


def counted(column: pd.Series[Any], noun: str) -> str:
    """A count that rows share, or its range."""
    low, high = column.min(), column.max()
    return ("" if low == high else f"{low:,} to ") + notebook.counted(high, noun)


def absent(values: pd.Series[float], low: pd.Series[float], look: str) -> str:
    """How many marks lack an interval, which gives them another look, and how many rows lack a value."""
    lost, bare = int(values.isna().sum()), int((values.notna() & low.isna()).sum())
    said = [f"{look}: no interval ({bare} of {len(values)})" if bare else "", f"no value: {lost}" if lost else ""]
    return "; ".join(filter(None, said))


# Settings that decide a number and that the text of a measure leaves out where they are the default.
_HIDDEN = ("alpha", "tau", "prior")
# Of measures of others: counts, of which more is neither better nor worse.
_COUNTS = {"NumQ", "NumRel", "NumRet"}
_ONE = {"topics": "topic", "queries": "query"}


def of_measures(what: str, measures: Iterable[str]) -> list[str]:
    """A sentence that names measures, and one with their cutoffs and the defaults that their names leave out.

    >>> of_measures("Means over 50 topics", ["VB@10", "nDCG@10", "AP"])
    ['Means over 50 topics: VB@10, nDCG@10, AP.', 'k = 10; VB@10: alpha = 1.']
    """
    names = list(dict.fromkeys(map(printable, measures)))
    parsed = {name: measure for name in names if (measure := _parsed(name)) is not None}
    cuts = sorted({cutoff for measure in parsed.values() if (cutoff := measure.params.get("cutoff")) is not None})
    said = [f"k = {' and '.join(map(str, cuts))}"] if cuts else []
    by_setting: dict[str, list[str]] = {}
    for name, measure in parsed.items():
        for setting in _defaults(measure):
            by_setting.setdefault(setting, []).append(name)
    said += [setting if len(names) == 1 else f"{', '.join(of)}: {setting}" for setting, of in by_setting.items()]
    return [f"{what}: {', '.join(names)}.", *([f"{'; '.join(said)}."] if said else [])]


def better(measure: str) -> str | None:
    """Which values of a measure are better, ``"higher"`` or ``"lower"``; ``None`` where neither is.

    >>> better("nDCG@10"), better("NonRelCov@20"), better("Unjudged@10"), better("BNDCG(stat='std')@10")
    ('higher', 'lower', None, None)
    """
    found = _parsed(measure)
    if isinstance(found, Measure):
        return found.better
    return None if found is not None and found.NAME in _COUNTS else "higher"


def best_rows(frame: pd.DataFrame, value: str = "value") -> pd.Series[bool]:
    """Which rows of a C frame have the best mean of a measure that has a best; ties are all best."""
    sign = {"higher": 1.0, "lower": -1.0, None: float("nan")}
    signs = {measure: sign[better(str(measure))] for measure in frame["measure"].unique()}
    good = frame[value] * frame["measure"].map(signs).astype(float)
    of_measure = good.groupby(frame["measure"])
    return (good == of_measure.transform("max")) & (frame.groupby("measure")["name"].transform("nunique") > 1)


def best_and_beside(pairs: pd.DataFrame, systems: pd.DataFrame) -> tuple[str, list[str]]:
    """The system with the best mean of a measure, and those that are not distinguishable from it.

    Parameters
    ----------
    pairs, systems
        Those of the measure: name_a, name_b and significant; name, the one with the highest mean first.
    """
    names = systems["name"].tolist()
    best = names[-1 if better(str(systems["measure"].iloc[0])) == "lower" else 0]
    rest = pairs[~pairs["significant"]]
    others = zip(rest["name_a"], rest["name_b"], strict=True)
    return best, [b if a == best else a for a, b in others if best in (a, b)]


def topics_of(counts: Iterable[int], what: str = "topics") -> str:
    """Numbers of topics, in words.

    >>> topics_of([50, 50]), topics_of([48, 50]), topics_of([1])
    ('50 topics', '48 to 50 topics', '1 topic')
    """
    every = [int(count) for count in counts]
    low, high = (min(every), max(every)) if every else (0, 0)
    if low == high == 1:
        return f"1 {_ONE.get(what, what)}"
    return f"{low} {what}" if low == high else f"{low} to {high} {what}"


def _parsed(text: str) -> ir_measures.Measure | None:
    """The measure, or ``None``: values computed elsewhere may have any name."""
    try:
        (found,) = measures_from(text)
    except (ParameterError, ValueError):
        return None
    return found


def _defaults(measure: ir_measures.Measure) -> list[str]:
    declared = type(measure).SUPPORTED_PARAMS
    asked = [name for name in _HIDDEN if name in declared and f"{name}=" not in str(measure)]
    return [f"{name} = {_short(measure[name])}" for name in asked if measure[name] is not None]


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
