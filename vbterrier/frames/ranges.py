"""Ranges of the values of measures, by their text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from vbterrier.errors import ParameterError, warn

if TYPE_CHECKING:
    Bounds = tuple[float, float]

UNKNOWN: Bounds = (-np.inf, np.inf)
# Measures of ir_measures and of trec_eval whose scores are between 0 and 1.
_UNIT = frozenset(
    re.findall(
        r"\S+",
        """
        AP AP_IA Accuracy BPref Bpref Compat ERR ERR_IA IPrec Judged MAP MAP_IA MRR NDCG NERR8 NERR9 NERR10 NERR11 NRBP
        P P_IA Precision R RBP RPrec RR Recall Rprec SDCG SetAP SetF SetP SetR SetRelP StRecall Success alpha_nDCG infAP
        nDCG nERR_IA nNRBP α_nDCG 11pt_avg bpref gm_map iprec_at_recall map map_cut ndcg ndcg_cut recall recip_rank
        relative_P set_F set_P set_map set_recall success
        """,
    )
)


class OwnMeasure(Protocol):
    """The declarations of a measure of this package about its values."""

    IS_LINEARISED: ClassVar[bool]
    IS_RATIO_OF_MEANS: ClassVar[bool]

    @classmethod
    def score_range(cls, measure: str) -> Bounds:
        """The smallest and the largest possible score of a measure, given as text."""


# The measures of this package by name; :mod:`vbterrier.measures` registers them.
REGISTERED_MEASURES: dict[str, type[OwnMeasure]] = {}


def _measure_class(measure: str) -> type[OwnMeasure] | None:
    return REGISTERED_MEASURES.get(re.split(r"[(@]", measure, maxsplit=1)[0])


def score_bounds(measure: str) -> Bounds:
    """The smallest and the largest possible score of a measure, or of a gain over a system; infinite if unknown."""
    if " - " in measure:
        low, high = score_bounds(measure.split(" - ", maxsplit=1)[0])
        return low - high, high - low
    if (measure_class := _measure_class(measure)) is not None:
        return measure_class.score_range(measure)
    name = re.split(r"[(@]", measure, maxsplit=1)[0]
    if name in _UNIT or re.sub(r"_[\d.]+$", "", name) in _UNIT:
        return 0.0, 1.0
    if name == "Overlap":
        match = re.search(r"@(\d+)", measure)
        return 0.0, float(match[1]) if match else np.inf
    return UNKNOWN


def require_difference(name: str, value: float, measure: str) -> None:
    """Refuse a difference that no two means of a measure can have; ask about one of 1 or more."""
    low, high = mean_bounds(measure)
    largest = high - low
    suggestion = f"did you mean {value / 100:g}, {value:g} per cent of 1?"
    if abs(value) >= largest:
        hint = f"; {suggestion}" if abs(value) > 1 else ""
        raise ParameterError(f"{name}={value:g}: means of {measure} differ by at most {largest:g}; wanted less{hint}")
    if abs(value) >= 1:
        warn(f"{name}={value:g} is in units of {measure}; {suggestion}")


def is_linearised(measure: str) -> bool:
    """Return True for ratios whose values of topics are linearised, and may be outside the range of their mean."""
    measure_class = _measure_class(measure)
    return measure_class is not None and measure_class.IS_LINEARISED


def is_ratio_of_means(measure: str) -> bool:
    """Return True for measures whose value for a collection is a ratio of means, and no mean of those of topics."""
    measure_class = _measure_class(measure)
    return measure_class is not None and measure_class.IS_RATIO_OF_MEANS


def mean_bounds(measure: str) -> Bounds:
    """The smallest and the largest possible mean of a measure."""
    return (0.0, 1.0) if is_linearised(measure) else score_bounds(measure)
