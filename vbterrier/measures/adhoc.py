"""nDCG and ERR of ir_measures, computed from the judgments instead of by an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import warn
from vbterrier.kernels import rankings
from vbterrier.unjudged.metrics import NDCG, WEB_GRADE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.pool import JudgedTop, Judgments


def is_computed_here(measure: ir_measures.Measure) -> bool:
    """Return True for nDCG@k whose gains are those of its parameter ``dcg``, and for ERR@k.

    Converting runs to the dictionaries of trec_eval takes most of its time. gdeval, which ir_measures runs for ERR and
    ``dcg="exp-log2"``, needs Perl, fails for grades above 4 and topics that are text, drops topic ids up to their last
    hyphen, and rounds to five digits.
    """
    names = {name for name, value in measure.params.items() if value is not False}
    cutoff = measure.params.get("cutoff")
    supported = {"ERR": {"cutoff"}, "nDCG": {"cutoff", "dcg"}}.get(measure.NAME, set())
    return type(cutoff) is int and cutoff > 0 and names <= supported


def values(
    measures: Sequence[ir_measures.Measure], judgments: Judgments, run: Run
) -> Iterator[tuple[ir_measures.Measure, Floats]]:
    """Yield each measure and its value for each topic of the judgments, shape (n_topics,)."""
    depth = max(measure["cutoff"] for measure in measures)
    judged = judgments.judge(run, depth, checked=True)
    for measure in measures:
        cut = judged.cut(measure["cutoff"])
        yield measure, err(cut) if measure.NAME == "ERR" else NDCG(measure["dcg"]).of_judged(cut)


def highest_grade(judgments: Judgments) -> int:
    """The grade at which the scale of ERR ends: 4, as in gdeval, or the highest grade of the judgments above it."""
    return max(WEB_GRADE, int(judgments.grades[-1]))


def warn_of_scale(measures: Sequence[ir_measures.Measure], judgments: Judgments) -> None:
    """Warn if the scale of ERR ends at a grade that depends on the judgments."""
    top, asked = highest_grade(judgments), [str(measure) for measure in measures if measure.NAME == "ERR"]
    if asked and top > WEB_GRADE:
        warn(
            f"{', '.join(asked)}: {judgments.name} hold grade {top}, so a document of grade g satisfies a user with "
            f"probability (2^g - 1)/2^{top} instead of (2^g - 1)/2^{WEB_GRADE}, as for grades up to {WEB_GRADE} and in "
            f"gdeval; map grades to 0 to {WEB_GRADE} to compare scores across collections"
        )


def err(judged: JudgedTop) -> Floats:
    """ERR@k of each topic, shape (n_topics,).

    Without the largest grades, 2^grade would overflow: ``(2^g - 1)/2^max = 2^(g - max) - 2^-max``.
    """
    top = highest_grade(judged.judgments)
    stops = np.exp2(judged.judgments.grades - float(top)) - np.exp2(-float(top))
    return rankings.err(np.append(stops, [0.0, 0.0])[judged.levels])
