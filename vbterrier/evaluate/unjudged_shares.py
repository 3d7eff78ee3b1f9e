"""The caveat of scores that treat unjudged documents as non-relevant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vbterrier.errors import printable
from vbterrier.evaluate.default_measures import is_diversity
from vbterrier.evaluate.verdicts import better, count_range_text, name_list
from vbterrier.frames.answer import Caveat
from vbterrier.measures.base import Measure
from vbterrier.unjudged.model import is_identified

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import ir_measures

    from vbterrier.measures.target import EvaluationTarget

# The caveat is serious above this share of unjudged documents, and this difference between systems.
SERIOUS_UNJUDGED_SHARE, SERIOUS_SHARE_DIFFERENCE = 0.2, 0.1
# The measures of complete judgments that measures of the E family estimate.
ESTIMATED = {name: f"E{name.upper()}" for name in ("nDCG", "RBP", "P", "AP", "ERR")}
# The cutoff of the shares for measures without one.
DEFAULT_CUTOFF = 10


def share_range(shares: Mapping[str, float]) -> tuple[str, str, str]:
    """The systems with the smallest and the largest share, and the range of the shares as text.

    >>> share_range({"a": 0.25, "b": 0.0})
    ('b', 'a', '0.0% (b) to 25.0% (a)')
    """
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    least, most = f"{shares[low]:.1%}", f"{shares[high]:.1%}"
    return low, high, most if least == most else f"{least} ({printable(low)}) to {most} ({printable(high)})"


def unjudged_caveats(
    measures: Iterable[ir_measures.Measure], target: EvaluationTarget, runs: Mapping[str, Any]
) -> tuple[Caveat, ...]:
    """A caveat if many documents of a system are unjudged, and a measure treats them as non-relevant; or nothing."""
    plain = [
        measure
        for measure in measures
        if not isinstance(measure, Measure) and better(str(measure)) and not measure.params.get("judged_only")
    ]
    if not plain or not runs or not {"docno", "label"} <= target.columns or is_diversity(target):
        return ()
    cutoffs = [cutoff for measure in plain if (cutoff := measure.params.get("cutoff")) is not None]
    depth = max(cutoffs, default=DEFAULT_CUTOFF)
    judgments = target.judgments()
    shares = {name: float(judgments.unjudged_share(run, depth).mean()) for name, run in runs.items()}
    low, high, span = share_range(shares)
    apart = shares[high] - shares[low] > SERIOUS_SHARE_DIFFERENCE
    if not apart and shares[high] <= SERIOUS_UNJUDGED_SHARE:
        return ()
    names = list(dict.fromkeys(map(str, plain)))
    text = f"{span} of the first {count_range_text(depth, 'document')} are unjudged, and {name_list(names)} "
    text += f"{'treats' if len(names) == 1 else 'treat'} them as non-relevant"
    text += f", which favours {printable(low)}" if apart else ""
    estimates = [
        f"{ESTIMATED[measure.NAME]}{str(measure).removeprefix(measure.NAME)}"
        for measure in plain
        if measure.NAME in ESTIMATED
    ]
    if estimates and is_identified(judgments):
        text += f"; prefer {name_list(estimates)}"
    return (Caveat("Unjudged documents", f"{text}.", serious=True),)
