"""Parts of captions and legends, and the checks of the frames that tables and figures show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, ParameterError, examples, excerpt, nearest, printable
from vbterrier.evaluate.verdicts import better, count_range_text, measure_from_name
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.ids import column_ids, column_integers
from vbterrier.measures.base import Measure
from vbterrier.measures.external import engine_description

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import ir_measures
    import pandas as pd


INTERVALS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")
# Parameters that name data: if all measures of a figure share them, they are in its caption.
_DATA = ("intents", "tags")
# Parameters that affect a value and that the text of a measure omits at their defaults.
_OMITTED_PARAMETERS = ("alpha", "tau", "prior")


def valid_intervals(data: Any) -> pd.DataFrame:
    """Validate a C frame; NaN is valid for values and intervals that do not exist.

    If the frame has a column ``mean``, over replicas, the value is that mean and ``replicated`` is True.
    """
    frame = pandas_frame(data, "intervals")
    require(frame, INTERVALS, "intervals")
    checked = frame[list(INTERVALS)].reset_index(drop=True)
    for columns, read in ((("name", "measure", "method"), texts), (("value", "low", "high", "level"), reals)):
        for column in columns:
            checked[column] = read(checked[column], f"intervals column {column!r}")
    mean = reals(frame["mean"], "intervals column 'mean'") if "mean" in frame.columns else np.full(len(frame), np.nan)
    checked["replicated"] = ~np.isnan(mean)
    checked["value"] = np.where(checked["replicated"], mean, checked["value"])
    for column in ("n_qids", "n_resamples"):
        checked[column] = column_integers(checked[column], f"intervals column {column!r}")
    bad = (checked["low"].isna() != checked["high"].isna()) | (checked["low"] > checked["high"])
    _refuse(checked, bad, "has the interval {low:g} to {high:g}; wanted two ends in order, or NaN for both")
    odd = checked["low"].notna() & ~checked["level"].between(0, 1, inclusive="neither")
    _refuse(checked, odd, "has the level {level:g}; wanted a number between 0 and 1, as 0.95")
    _refuse(checked, checked.duplicated(["name", "measure", "method"]), "is duplicated for one method; keep one row")
    return checked


def _refuse(frame: pd.DataFrame, bad: pd.Series[Any], why: str) -> None:
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        interval = frame.iloc[row]
        where = f"intervals: row {row} ({interval['name']!r}, {interval['measure']!r}) "
        raise InputError(where + why.format(**interval[["low", "high", "level"]]))


def texts(column: pd.Series[Any], where: str) -> list[str]:
    """Return a column of names as text; refuse missing names and numbers that are not integers."""
    names: list[str] = column_ids(column, where).text.to_pylist()
    return names


def reals(column: pd.Series[Any], where: str) -> Any:
    """Return a column as float64, NaN for missing numbers; refuse text and infinity."""
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: wanted numbers or NaN, found {column.dtype}; cast it at the source") from error
    if np.isinf(numbers).any():
        raise InputError(f"{where}: row {int(np.argmax(np.isinf(numbers)))} is infinite; wanted a number or NaN")
    return numbers


def only(frame: pd.DataFrame, column: str, selection: str | Iterable[str] | None, what: str) -> pd.DataFrame:
    """Return the rows whose column has one of the wanted values, of which each must exist; all rows for ``None``."""
    if selection is None:
        return frame
    names = [selection] if isinstance(selection, str) else [str(one) for one in selection]
    there = list(frame[column].unique())
    for one in names:
        if one not in there:
            raise ParameterError(f"{column}={excerpt(one)}: {what} has {examples(there, 6)}.{nearest(one, there)}")
    return frame[frame[column].isin(names)]


def parameter(measure: ir_measures.Measure | None, name: str) -> Any:
    """Value of a measure's parameter, or its default; ``None`` if the measure has no such parameter."""
    if measure is None or name not in measure.SUPPORTED_PARAMS:
        return None
    value = measure[name]
    return value if isinstance(value, (int, float, str)) else None


def without(measure: ir_measures.Measure, *names: str) -> ir_measures.Measure:
    """Return the measure without some parameters."""
    return type(measure)(**{key: value for key, value in measure.params.items() if key not in names})


def short(measures: Sequence[str]) -> tuple[list[str], str]:
    """Return names of measures without the data that all of them share, and a phrase that names these data.

    >>> short(["ES(intents='demo')@5", "VB(intents='demo')@5"])
    (['ES@5', 'VB@5'], "intents 'demo'")
    """
    read = [measure_from_name(text) for text in measures]
    values = {name: {parameter(one, name) for one in read} for name in _DATA}
    shared = [name for name, distinct in values.items() if len(distinct) == 1 and not distinct & {None, ""}]
    shared_text = ", ".join(f"{name} {parameter(read[0], name)!r}" for name in shared)
    if not shared:
        return list(measures), shared_text
    return [str(without(one, *shared)) for one in read if one is not None], shared_text


def provenance(intervals: pd.DataFrame) -> str:
    """Part of a caption: topics, replicas, level, method, resamples, seed of points and intervals."""
    kinds = intervals.loc[intervals["method"] != "none", ["level", "method", "n_resamples", "seed"]]
    ways: dict[Any, list[str]] = {}
    for level, method, n_resamples, seed in kinds.dropna(subset="level").drop_duplicates().to_numpy().tolist():
        drawn = f", {n_resamples:,} resamples, seed {seed}" if n_resamples else ""
        ways.setdefault(level, []).append(f"{method}{drawn}")
    interval_texts = [f"{100 * level:g}% intervals: {' and '.join(methods)}" for level, methods in ways.items()]
    replicated, points = intervals["replicated"], []
    if replicated.any():
        point_methods = "" if replicated.all() else " of " + " and ".join(intervals.loc[replicated, "method"].unique())
        points = [f"points{point_methods}: mean over replicas"]
    return "; ".join([count_range_text(intervals["n_qids"], "topic"), *points, *interval_texts])


def interval_methods(frame: pd.DataFrame) -> str:
    """The methods of intervals, those of scores that are equal on all topics last."""
    methods = frame["method"].astype(str).drop_duplicates()
    return " and ".join(sorted(methods, key=lambda method: "bounded" in method))


def origin(frame: pd.DataFrame) -> str:
    """Part of a caption: measures, topics, methods, draws and seed, as far as the frame has these columns."""
    parts = [str(value) for column in ("measure", "method") if column in frame for value in frame[column].unique()]
    if "n_qids" in frame:
        parts.insert(min(1, len(parts)), count_range_text(frame["n_qids"], "topic"))
    if {"n_draws", "seed"} <= set(frame):
        drawn = frame[["n_draws", "seed"]].drop_duplicates().to_numpy().tolist()
        parts += [f"{n_draws:,} draws, seed {seed}" for n_draws, seed in drawn]
    return ", ".join(parts)


def absent(values: pd.Series[float], low: pd.Series[float], look: str) -> str:
    """Part of a caption: the number of marks without an interval, which have another look, and of missing values."""
    lost, bare = int(values.isna().sum()), int((values.notna() & low.isna()).sum())
    notes = [f"{look}: no interval ({bare} of {len(values)})" if bare else "", f"no value: {lost}" if lost else ""]
    return "; ".join(filter(None, notes))


def measures_sentence(what: str, measures: Iterable[str], *, computed: bool = True) -> list[str]:
    """Return a sentence that names measures, and one with cutoffs, omitted defaults and engines of other packages.

    ``computed``: False for values that may come from other programs, whose engines are unknown.

    >>> measures_sentence("Means over 50 topics", ["VB@10", "nDCG@10"])
    ['Means over 50 topics: VB@10, nDCG@10.', 'Cutoff at rank 10; VB@10: alpha = 1.']
    """
    names = list(dict.fromkeys(map(printable, measures)))
    parsed_measures = {name: measure for name in names if (measure := measure_from_name(name)) is not None}
    cuts = sorted(
        {cutoff for measure in parsed_measures.values() if (cutoff := measure.params.get("cutoff")) is not None}
    )
    settings = [f"Cutoff at rank{'s' * (len(cuts) > 1)} {' and '.join(map(str, cuts))}"] if cuts else []
    by_setting: dict[str, list[str]] = {}
    for name, measure in parsed_measures.items():
        if computed and (engine := engine_versions([name])):
            by_setting.setdefault(f"computed by {engine}", []).append(name)
        for setting in _OMITTED_PARAMETERS:
            if setting in type(measure).SUPPORTED_PARAMS and f"{setting}=" not in str(measure):
                value = measure[setting]
                text = f"{value:g}" if isinstance(value, float) else str(value)
                if value is not None:
                    by_setting.setdefault(f"{setting} = {text}", []).append(name)
    settings += [
        setting if len(names) == 1 else f"{', '.join(setting_names)}: {setting}"
        for setting, setting_names in by_setting.items()
    ]
    return [f"{what}: {', '.join(names)}.", *([f"{'; '.join(settings)}."] if settings else [])]


def engine_versions(measures: Iterable[str]) -> str:
    """Return the packages that evaluate measures of ir_measures, with versions; empty if this package does."""
    parsed_measures = [of_text for measure in measures if (of_text := measure_from_name(measure)) is not None]
    engines = [engine_description(measure) for measure in parsed_measures if not isinstance(measure, Measure)]
    return ", ".join(filter(None, dict.fromkeys(engines)))


def best_rows(frame: pd.DataFrame, value: str = "value") -> pd.Series[bool]:
    """Return True for rows of a C frame with the best mean of their measure; ties are all best.

    Means over different numbers of topics are not compared: none of them is best.
    """
    sign = {"higher": 1.0, "lower": -1.0, None: float("nan")}
    signs = {measure: sign[better(str(measure))] for measure in frame["measure"].unique()}
    good = frame[value] * frame["measure"].map(signs).astype(float)
    groups = frame.groupby("measure")
    comparable = (groups["name"].transform("nunique") > 1) & (groups["n_qids"].transform("nunique") == 1)
    return (good == good.groupby(frame["measure"]).transform("max")) & comparable
