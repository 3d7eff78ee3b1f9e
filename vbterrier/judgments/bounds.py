"""Bounds of nDCG@k for runs with unjudged documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import ParameterError
from vbterrier.judgments.pool import grade_gains
from vbterrier.kernels import bounds
from vbterrier.kernels.partly_judged import PartlyJudged

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vbterrier.judgments.pool import JudgedTop

    Floats = NDArray[np.float64]

SIDES = ("lower", "upper")
KINDS = ("naive", "rbp", "guaranteed", "posthoc")
# Grades that no judgment uses count as possible up to here; above, labels are weights rather than grades.
MOST_GRADES = 64

_BOUNDS: dict[tuple[str, str], Callable[[PartlyJudged], Floats]] = {
    ("lower", "naive"): bounds.naive_lower,
    ("upper", "naive"): bounds.naive_upper,
    ("lower", "rbp"): bounds.naive_lower,
    ("upper", "rbp"): bounds.rbp_upper,
    ("lower", "guaranteed"): bounds.guaranteed_lower,
    ("upper", "guaranteed"): bounds.guaranteed_upper,
    ("lower", "posthoc"): bounds.posthoc_lower,
    # Only retrieved documents enter the guaranteed upper bound, so judging just them changes nothing.
    ("upper", "posthoc"): bounds.guaranteed_upper,
}


def ndcg_bound(judged: JudgedTop, side: str, kind: str, *, dcg: str = "log2", max_grade: int | None = None) -> Floats:
    """A bound of nDCG@k for every topic, shape (n,) (Fröbe et al., ECIR 2023, section 3.3; ``posthoc`` is ours).

    Parameters
    ----------
    judged
        The cut run.
    side
        ``"lower"`` or ``"upper"``.
    kind
        ``"naive"``: unjudged documents are worth nothing, or the best grades that the pool still has outside the
        judged part, by rank, the ideal ranking fixed. ``"rbp"``: they are worth nothing, or all the top grade, the
        ideal ranking recomputed. ``"guaranteed"``: no judging of whatever documents can lead beyond it.
        ``"posthoc"``: no judging of the retrieved documents can.
    dcg
        ``"log2"`` (the gain is the grade) or ``"exp-log2"``.
    max_grade
        The highest grade that an unjudged document may have; ``None`` for the highest in the qrels.

    Raises
    ------
    ParameterError
        ``max_grade`` below a grade of the qrels.
    """
    highest = int(judged.judgments.grades[-1])
    top = highest if max_grade is None else max_grade
    if top < highest:
        raise ParameterError(f"max_grade={top}: {judged.judgments.name} hold grade {highest}; give at least that")
    judged = judged.regraded(np.append(np.arange(min(top, MOST_GRADES) + 1), top))
    grades = judged.judgments.grades
    gain = grade_gains(judged, dcg)
    return _BOUNDS[side, kind](
        PartlyJudged(judged.levels, judged.judgments.counts, gain, len(grades) - 1, judged.depth)
    )
