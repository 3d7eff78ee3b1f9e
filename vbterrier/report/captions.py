"""What stands under tables: measures with their settings, numbers of topics, methods, seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vbterrier.errors import ParameterError, printable
from vbterrier.measures import Measure, measures_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    import ir_measures
    import pandas as pd

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
