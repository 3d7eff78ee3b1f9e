"""nDCG@k of trec_eval, number for number, without a walk through dictionaries."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import ir_measures
    from numpy.typing import NDArray

    from vbterrier.frames.ranked import Run
    from vbterrier.judgments.pool import Judgments

    Floats = NDArray[np.float64]


def is_plain(measure: ir_measures.Measure) -> bool:
    """Whether a measure is nDCG@k as trec_eval has it: grades are gains, and all documents count."""
    given = {name for name, value in measure.params.items() if value is not False}
    if measure.NAME != "nDCG" or not {"cutoff", "dcg"}.issuperset(given):
        return False
    cutoff = measure.params.get("cutoff")
    return bool(measure["dcg"] == "log2" and type(cutoff) is int and cutoff > 0)


def ndcg(judgments: Judgments, run: Run, cutoff: int) -> Floats:
    """nDCG@k of each topic of the judgments, 0 where none of its documents is relevant, shape (n_topics,).

    Terms are added in trec_eval's order, from the first rank down, so that the numbers are the same to the last bit.
    """
    levels = judgments.judged(run, run.top(cutoff), cutoff).levels
    gain = judgments.grades.astype(np.float64)
    # The last two places are what levels of unjudged and missing documents index.
    return _over(_dcg(np.append(gain, [0.0, 0.0])[levels]), _dcg(gain[_best(judgments, cutoff)]))


def _best(judgments: Judgments, cutoff: int) -> NDArray[np.int64]:
    """The place of the grade at each rank of each topic's best ranking, shape (n_topics, at most cutoff)."""
    at_least = np.cumsum(judgments.counts[:, :0:-1], axis=1)
    width = min(cutoff, int(at_least.max(initial=0)))
    best: NDArray[np.int64] = (np.arange(width)[:, None] < at_least[:, None, :]).sum(axis=2)
    return best


def _dcg(gain: Floats) -> Floats:
    total = np.zeros(len(gain))
    for rank in range(gain.shape[1]):
        total += gain[:, rank] / log2(rank + 2)
    return total


def _over(found: Floats, ideal: Floats) -> Floats:
    return np.divide(found, ideal, out=np.zeros(len(found)), where=ideal > 0)
