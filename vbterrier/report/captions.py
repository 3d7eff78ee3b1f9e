"""What stands under tables: measures with their settings, numbers of topics, methods, seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vbterrier.errors import ParameterError, printable
from vbterrier.measures import measures_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    import ir_measures
    import pandas as pd

# Settings that decide a number and that the text of a measure leaves out where they are the default.
_HIDDEN = ("alpha", "tau", "prior")
# More of them is neither better nor worse, or worse.
_NOT_BETTER = {"Unjudged", "VarPenalty", "NonRelCov", "BaitRate", "TopBait", "NDCGBound", "NumQ", "NumRel", "NumRet"}
_OF_SPREAD = {"std", "lo", "hi"}
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


def has_best(measure: str) -> bool:
    """Whether the highest mean of a measure is the best.

    >>> has_best("nDCG@10"), has_best("Unjudged@10"), has_best("BNDCG(stat='std')@10")
    (True, False, False)
    """
    found = _parsed(measure)
    return found is None or (found.NAME not in _NOT_BETTER and found.params.get("stat") not in _OF_SPREAD)


def best_rows(frame: pd.DataFrame, value: str = "value") -> pd.Series[bool]:
    """Which rows of a C frame have the highest mean of a measure that has a best; ties are all best."""
    highest = frame[value] == frame.groupby("measure")[value].transform("max")
    told = {measure: has_best(str(measure)) for measure in frame["measure"].unique()}
    alone = frame.groupby("measure")["name"].transform("nunique") == 1
    return highest & frame["measure"].map(told).astype(bool) & ~alone


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
