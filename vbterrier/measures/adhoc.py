"""nDCG and ERR of ir_measures, computed from the judgments instead of by an engine."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import warn
from vbterrier.kernels import rankings
from vbterrier.unjudged.metrics import WEB_GRADE
from vbterrier.unjudged.pool import grade_gains

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
    given = {name for name, value in measure.params.items() if value is not False}
    cutoff = measure.params.get("cutoff")
    known = {"ERR": {"cutoff"}, "nDCG": {"cutoff", "dcg"}}.get(measure.NAME, set())
    return type(cutoff) is int and cutoff > 0 and given <= known


def values(
    measures: Sequence[ir_measures.Measure], judgments: Judgments, run: Run
) -> Iterator[tuple[ir_measures.Measure, Floats]]:
    """Yield each measure and its value for each topic of the judgments, shape (n_topics,)."""
    depth = max(measure["cutoff"] for measure in measures)
    judged = judgments.judged(run, run.top(depth), depth)
    for measure in measures:
        cut = judged.cut(measure["cutoff"])
        yield measure, err(cut) if measure.NAME == "ERR" else ndcg(cut, measure["dcg"])


def ndcg(judged: JudgedTop, dcg: str) -> Floats:
    """nDCG@k of each topic, 0 for topics without a relevant document, shape (n_topics,).

    Terms are added in the order of trec_eval, from the first rank down, so that values agree to the last bit.
    """
    gain = grade_gains(judged, dcg)
    # Levels of unjudged and missing documents, -1 and -2, index the last two positions.
    found = _dcg(np.append(gain, [0.0, 0.0])[judged.levels])
    # The level of the grade at each rank of the ideal ranking, shape (n_topics, at most cutoff).
    at_least = np.cumsum(judged.judgments.counts[:, :0:-1], axis=1)
    ideal_ranks = np.arange(min(judged.cutoff or 0, int(at_least.max(initial=0))))
    ideal = _dcg(gain[(ideal_ranks[:, None] < at_least[:, None, :]).sum(axis=2)])
    return np.divide(found, ideal, out=np.zeros(len(found)), where=ideal > 0)


def _dcg(gain: Floats) -> Floats:
    total = np.zeros(len(gain))
    for rank in range(gain.shape[1]):
        total += gain[:, rank] / log2(rank + 2)
    return total


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
