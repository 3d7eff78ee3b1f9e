"""What to judge next, for runs and qrels as they come."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from vbterrier.errors import ParameterError, examples, nearest
from vbterrier.evaluate.inputs import bootstrapped, named_runs, target_of
from vbterrier.evaluate.scores import TOPICS
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.parameters import choice, whole
from vbterrier.frames.runs import loaded_run
from vbterrier.log import tracked
from vbterrier.measures.target import Scoring, aligned
from vbterrier.stats.topic_intervals import check_level
from vbterrier.unjudged.judge_next import Cut, plan_judging

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ir_measures

    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.measures.unjudged import Bootstrapped
    from vbterrier.unjudged.judge_next import JudgingPlan

__all__ = ["judge_next"]


_LOG = logging.getLogger(__name__)


def judge_next(
    runs: Any,
    qrels: Any,
    n: int,
    measure: str | ir_measures.Measure = "BNDCG@10",
    *,
    difference: tuple[str, str] | None = None,
    level: float = 0.9,
    on_topics: str = "same",
    duplicates: str = "error",
    progress: bool = False,
) -> JudgingPlan:
    """The n unjudged documents whose judgment is expected to narrow the interval of a run's mean most.

    The variance of a topic's score over what its unjudged documents could be is
    ``Σ_i w_i² σ_i² + Σ_{i≠j} w_i w_j C_ij/(s + 1)``, w being the score of one unit of gain at a document's rank, σ² the
    variance of its gain, C_ij the covariance of two gains that read their grades off one number, and s the strength of
    the prior. Judging d removes ``Var(E[score | g_d])`` in expectation (law of total variance): its own part and, where
    s is finite, what it teaches about the others of its topic. Documents are chosen one after the other, each the one
    that removes most; the widths are those of ``2 z √(Σ_t variance left) / n_topics``.

    Parameters
    ----------
    runs
        A mapping of name to run; or one run, or several paths, which are named after their files. A run is a frame
        (qid, docno, score) or the path of a TREC run. Of several runs the mean of the variances counts, so that
        documents in many of them are worth more.
    qrels
        A frame (qid, docno, label) or the path of TREC qrels.
    n
        The budget: how many documents can be judged, at least 1.
    measure
        A bootstrapped measure with its prior; its ``stat`` counts for nothing.
    difference
        Two of the runs: narrow the interval of the difference of their means. A document that both retrieve counts with
        the difference of its weights; others of the runs count for nothing.
    level
        Nominal coverage of the interval, between 0 and 1.
    on_topics, duplicates
        As in :func:`vbterrier.score`.
    progress
        Show a progress bar over runs.

    Returns
    -------
    JudgingPlan
        At most n documents, the most valuable first; equals in the order of the qrels' topics, then by docno. What is
        worth nothing is left out.

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; runs with different topics.
    ParameterError
        A measure without a distribution, a run that is not there, a budget below 1, a level outside (0, 1).

    Notes
    -----
    For one run and one prior for all its documents of a topic what is stated is exact, and no other choice of n
    documents does better: within a topic weights fall with rank, and what is left,
    ``σ² s/(s+1) · (Σ w² + (Σ w)²/(s + m))`` after m judgments, is convex in m. With independent documents (s = ∞) the
    same holds for several runs and differences. Elsewhere the choice is greedy, and where a document has different
    priors in several runs (their mean is taken) or one of its own, what is removed is what the best linear prediction
    explains: at least that much goes.
    Scores that are no sums (AP, ERR, Q), and topics in which grades may run out, count with the weights of the line
    that fits them best, stretched to the variance that they have. The model takes ideal rankings and the prior as known
    today; new judgments move both. Cost: n · u² for u unjudged documents in a topic.

    Measured against judging all first ranks, then all second ones..., at 10, 25 and 50 % of the unjudged documents, one
    plan for the whole budget. Width, with priors taken for certain (pool+run): TREC Web 2012 without one run .96, .91,
    .80 of that order's, with half of the judgments gone .97, .94, .88; TREC-COVID, ANCE, 1.00, .99, .96, with half gone
    .99, .98, .98. With the learned prior: Web .95, .91, .82 and .96, .94, .92; ANCE .96, .91, .93, but 1.01, 1.01, 1.06
    with half gone, where the prior that is learned anew is far weaker than the one that was planned with (strength 3
    instead of 13) and intervals are half again as wide as expected. The error of the mean is no smaller than that
    order's throughout: it is now smaller, now larger (root mean squares .02 to 1.5 times that order's).

    References
    ----------
    The process is that of Fröbe et al., ECIR 2023, section 3.2, drawn from an urn; the choice is A-optimal design, done
    greedily.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["new", "a", "late"], "score": [3.0, 2.0, 1.0]})
    >>> plan = judge_next({"mine": run}, qrels, 1, "BNDCG(prior='pool')@3")
    >>> plan.frame[["qid", "docno", "rank"]].values.tolist(), plan.frame["worth"].round(3).tolist()
    ([['q1', 'new', 1]], [0.8])
    >>> round(plan.width_before, 3), round(plan.width_after, 3)
    (0.836, 0.374)
    >>> plan.frame["reason"].item()
    'rank 1 of mine; 50% likely relevant; narrows the interval by 55.28%'
    """
    asked = bootstrapped(measure)
    whole("n", n, meaning=": the documents that can be judged")
    check_level(level)
    choice("on_topics", on_topics, TOPICS)
    named = dict(systems_of(named_runs(runs)))
    if difference is not None:
        named = _pair(named, difference)
    judged = target_of(qrels, None, None)
    loaded = {name: loaded_run(name, run, duplicates) for name, run in named.items()}
    slot, loaded = aligned(judged, loaded, on_topics)
    cuts = [
        _cut(name, run, slot, asked)
        for name, run in tracked(loaded.items(), "runs", shown=progress, total=len(loaded), unit="run")
    ]
    _LOG.info("planning the judgment of %d documents of %d runs, for %s", n, len(cuts), asked)
    return plan_judging(cuts, int(n), level=level, measure=str(asked), difference=difference)


def _cut(name: str, run: Run, slot: EvaluationTarget, measure: Bootstrapped) -> Cut:
    scoring = Scoring(slot, run, measure.cutoff)
    return Cut(name, measure.judged(scoring), measure.distribution(scoring))


def _pair(named: Mapping[str, Any], difference: tuple[str, str]) -> dict[str, Any]:
    """The two runs, in the order of the difference."""
    if isinstance(difference, str) or len(difference) != 2 or difference[0] == difference[1]:  # noqa: PLR2004 - a pair
        raise ParameterError(f"difference={difference!r}: wanted the names of two runs, as ('mine', 'baseline')")
    for name in difference:
        if name not in named:
            raise ParameterError(
                f"difference: no run is called {name!r}; found {examples(named)}.{nearest(name, named)}"
            )
    return {name: named[name] for name in difference}
