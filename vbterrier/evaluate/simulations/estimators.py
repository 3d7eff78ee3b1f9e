"""What estimates a score from incomplete judgments: measures, and the measures that give their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError
from vbterrier.measures import Measure, measures_from
from vbterrier.uncertainty.intervals import check_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ir_measures

LEVELS = (0.5, 0.8, 0.9, 0.95)
_LOWER, _UPPER = "nDCG@10", "NDCGBound(side='upper')@10"
_TRIPLE = "a measure, or (measure, low, high) with the measures of an interval's ends, or (measure, low, high, level)"

# The estimators that the paper compares, and ours. Condensed lists of trec_eval lack labels below 0, too.
STANDARD: dict[str, Any] = {
    "lower": _LOWER,
    "condensed": "nDCG(judged_only=True)@10",
    "naive upper": _UPPER,
    "mode, pool+run": "BNDCG(stat='mode',prior='pool+run')@10",
    "mean, pool": "BNDCG(prior='pool')@10",
    "mean, run": "BNDCG(prior='run',all_unjudged='pool')@10",
    "mean, pool+run": "BNDCG(prior='pool+run')@10",
    "mean, hierarchical": "BNDCG(prior='hierarchical')@10",
    "mean, learned": "BNDCG(prior='learned')@10",
}
# The ranges of the paper's Table 6, all from the naive lower bound up, each beside its estimate.
RANGES: dict[str, Any] = {
    "to naive upper": (_LOWER, _LOWER, _UPPER),
    "to condensed": ("nDCG(judged_only=True)@10", _LOWER, "nDCG(judged_only=True)@10"),
    **{
        f"to q{level}": (
            "BNDCG(stat='mode',prior='pool+run')@10",
            _LOWER,
            f"BNDCG(stat='q{level}',prior='pool+run')@10",
            level / 100,
        )
        for level in (75, 90, 95)
    },
}


@dataclass(frozen=True)
class Estimator:
    """A named estimate of a score, with its intervals.

    Parameters
    ----------
    name
        What tables call it.
    point
        The estimate.
    ends
        Level, low and high of each interval.
    """

    name: str
    point: ir_measures.Measure
    ends: tuple[tuple[float, ir_measures.Measure, ir_measures.Measure], ...] = ()

    @property
    def measures(self) -> list[ir_measures.Measure]:
        """All that it takes."""
        return [self.point, *(measure for _, low, high in self.ends for measure in (low, high))]


def estimators_of(given: Any, levels: Sequence[float]) -> list[Estimator]:
    """Estimators from what a user gives.

    Raises
    ------
    ParameterError
        No mapping; no estimator; one that reads otherwise than as a measure or its interval.
    """
    if not isinstance(given, Mapping) or not given:
        raise ParameterError(f"estimators: wanted a mapping of name to {_TRIPLE}; found {given!r}")
    for level in levels:
        check_level(level)
    return [_estimator(str(name), value, levels) for name, value in given.items()]


def _estimator(name: str, given: Any, levels: Sequence[float]) -> Estimator:
    if not isinstance(given, (tuple, list)):
        (point,) = measures_from(given)
        return Estimator(name, point, _own_ends(point, levels))
    if len(given) not in {3, 4}:
        raise ParameterError(f"estimator {name!r}: wanted {_TRIPLE}; found {len(given)} values")
    point, low, high = measures_from(*given[:3])
    return Estimator(name, point, ((_level(name, low, high, given[3:]), low, high),))


def _own_ends(
    point: ir_measures.Measure, levels: Sequence[float]
) -> tuple[tuple[float, ir_measures.Measure, ir_measures.Measure], ...]:
    """The intervals of a measure that is a statistic of a distribution."""
    if not _is_statistic(point):
        return ()
    return tuple((level, point(stat="lo", level=level), point(stat="hi", level=level)) for level in levels)


def _is_statistic(measure: ir_measures.Measure) -> bool:
    return isinstance(measure, Measure) and {"stat", "level"} <= set(measure.SUPPORTED_PARAMS)


def _level(name: str, low: ir_measures.Measure, high: ir_measures.Measure, given: Sequence[Any]) -> float:
    """The nominal level of an interval: as given, as its ends say, else 1, as of bounds."""
    if given:
        if given[0] != 1:
            check_level(given[0])
        return float(given[0])
    said = {float(end["level"]) for end in (low, high) if _is_statistic(end) and end["stat"] in {"lo", "hi"}}
    if len(said) > 1:
        raise ParameterError(f"estimator {name!r}: its ends have the levels {sorted(said)}; give both the same")
    return said.pop() if said else 1.0
