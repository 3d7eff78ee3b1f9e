"""Classic measures of ir_measures, computed on arrays instead of by an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import warn
from vbterrier.kernels import classic, rankings
from vbterrier.unjudged.metrics import NDCG, WEB_GRADE
from vbterrier.unjudged.pool import grade_gains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.pool import JudgedRanks, JudgedTop, Judgments

# Parameters of the measures that are computed here.
_REL, _RANKED_PARAMETERS = frozenset({"rel"}), frozenset({"rel", "cutoff", "judged_only"})
_PARAMETERS = {
    "ERR": frozenset({"cutoff"}),
    "nDCG": frozenset({"cutoff", "dcg", "judged_only"}),
    "Judged": frozenset({"cutoff"}),
    "Bpref": _REL,
    "SetR": _REL,
    "SetP": frozenset({"rel", "relative", "judged_only"}),
    "SetF": frozenset({"rel", "beta", "judged_only"}),
    "Rprec": frozenset({"rel", "judged_only"}),
    **dict.fromkeys(("AP", "P", "R", "RR", "Success"), _RANKED_PARAMETERS),
}
_WITH_CUTOFF = frozenset(("ERR", "P", "R", "Success"))
# Measures of the first documents that need a table of topics by ranks.
_TABLE_MEASURES = frozenset(("ERR", "nDCG"))


def is_computed_here(measure: ir_measures.Measure) -> bool:
    """Return True for the measures and parameters of this module.

    Converting runs to the dictionaries of trec_eval takes most of its time. gdeval, which ir_measures runs for ERR and
    ``dcg="exp-log2"``, needs Perl, fails for grades above 4 and topics that are text, drops topic ids up to their last
    hyphen, and rounds to five digits.
    """
    names = {name for name, value in measure.params.items() if value is not False}
    if measure.NAME not in _PARAMETERS or not names <= _PARAMETERS[measure.NAME]:
        return False
    cutoff, rel = measure.params.get("cutoff"), measure.params.get("rel", 1)
    if cutoff is None and measure.NAME in _WITH_CUTOFF:
        return False
    beta = measure.params.get("beta", 1)
    is_number = isinstance(beta, (int, float)) and not isinstance(beta, bool) and beta > 0
    return (cutoff is None or (type(cutoff) is int and cutoff > 0)) and type(rel) is int and rel > 0 and is_number


def n_decisive(measure: ir_measures.Measure) -> int | None:
    """The number of first documents that decide a measure of this module, ``None`` for the whole ranking."""
    cutoff: int | None = measure.params.get("cutoff")
    return None if measure.params.get("judged_only") else cutoff


def values(
    measures: Sequence[ir_measures.Measure], judgments: Judgments, run: Run
) -> Iterator[tuple[ir_measures.Measure, Floats]]:
    """Yield each measure and its value for each topic of the judgments, shape (n_topics,)."""
    cutoffs = [n_decisive(measure) for measure in measures]
    # Of whole rankings, a list of the judged documents takes less time than a table.
    cutoffs = [
        None if cutoff is not None and cutoff >= run.longest and measure.NAME not in _TABLE_MEASURES else cutoff
        for measure, cutoff in zip(measures, cutoffs, strict=True)
    ]
    finite = [cutoff for cutoff in cutoffs if cutoff is not None]
    top = judgments.judge(run, max(finite), checked=True) if finite else None
    # One list of judged documents serves the measures of whole rankings, another those of the first documents.
    whole = judgments.judged_ranks(run) if len(finite) < len(cutoffs) else None
    ranks = whole if whole is not None or top is None else top.ranks()
    for measure, cutoff in zip(measures, cutoffs, strict=True):
        if top is not None and cutoff is not None and measure.NAME in _TABLE_MEASURES:
            cut = top.cut_to(cutoff)
            yield measure, err(cut) if measure.NAME == "ERR" else NDCG(measure["dcg"]).of_judged(cut)
        elif ranks is not None:
            condensed = measure.params.get("judged_only")
            yield measure, _value(measure, ranks.condensed_list() if condensed else ranks)


def _value(measure: ir_measures.Measure, ranks: JudgedRanks) -> Floats:
    """The value of each topic, shape (n_topics,), of a measure that depends on the ranks of judged documents."""
    cutoff, topic, rank = measure.params.get("cutoff"), ranks.topic, ranks.rank
    judgments, n_topics = ranks.judgments, len(ranks.judgments.topics)
    shown = ranks.n_retrieved if cutoff is None else np.minimum(ranks.n_retrieved, cutoff)
    within = np.ones(len(topic), dtype=bool) if cutoff is None else rank < cutoff
    if measure.NAME == "nDCG":
        gain = grade_gains(ranks, measure["dcg"])
        dcg = classic.dcg(topic[within], rank[within], gain[ranks.level[within]], n_topics)
        return classic.ratio(dcg, rankings.ideal_dcg(judgments.counts, gain, cutoff))
    if measure.NAME == "Judged":
        return classic.ratio(classic.counts(topic, within, n_topics), shown)
    is_relevant = judgments.grades >= measure["rel"]
    relevant, n_relevant = is_relevant[ranks.level], judgments.counts[:, is_relevant].sum(axis=1)
    n_other = judgments.counts[:, ~is_relevant].sum(axis=1)
    hits = classic.counts(topic, relevant & within, n_topics)
    least = np.minimum(shown, n_relevant) if measure.params.get("relative") else shown
    values: dict[str, Callable[[], Floats]] = {
        "AP": lambda: classic.average_precision(topic, rank, relevant, n_relevant, cutoff),
        "Bpref": lambda: classic.bpref(topic, relevant, n_relevant, n_other),
        "P": lambda: hits / cutoff,
        "R": lambda: classic.ratio(hits, n_relevant),
        "RR": lambda: classic.reciprocal_rank(topic, rank, relevant & within, n_topics),
        "Rprec": lambda: classic.r_precision(topic, rank, relevant, n_relevant),
        "SetF": lambda: classic.f_measure(classic.ratio(hits, shown), classic.ratio(hits, n_relevant), measure["beta"]),
        "SetP": lambda: classic.ratio(hits, least),
        "SetR": lambda: classic.ratio(hits, n_relevant),
        "Success": lambda: (hits > 0).astype(np.float64),
    }
    return values[measure.NAME]()


def highest_grade(judgments: Judgments) -> int:
    """The grade at which the scale of ERR ends: 4, as in gdeval, or the highest grade of the judgments above it."""
    return max(WEB_GRADE, int(judgments.grades[-1]))


def warn_of_scale(measures: Sequence[ir_measures.Measure], judgments: Judgments) -> None:
    """Warn if the scale of ERR ends at a grade that depends on the judgments."""
    top, names = highest_grade(judgments), [str(measure) for measure in measures if measure.NAME == "ERR"]
    if names and top > WEB_GRADE:
        warn(
            f"{', '.join(names)}: {judgments.name} hold grade {top}, so a document of grade g satisfies a user with "
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
