"""Simulation of estimators on reduced judgments."""

from __future__ import annotations

from collections.abc import Sized
from itertools import islice
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, nearest, warn
from vbterrier.evaluate.inputs import named_runs, target_of
from vbterrier.evaluate.simulated_runs import (
    LEVELS,
    STANDARD,
    TrueScores,
    estimates_frame,
    estimators_of,
    intervals_frame,
    simulated_run,
    true_scores,
    truths_frame,
)
from vbterrier.evaluate.simulation_tables import Simulation
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.ranking import loaded_run
from vbterrier.log import tracked
from vbterrier.measures.text import measures_from
from vbterrier.unjudged.evidence import evidence_of, pool_depth
from vbterrier.unjudged.labels import labels_of
from vbterrier.unjudged.model import DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.measures.target import EvaluationTarget


def simulate(
    runs: Any,
    qrels: Any,
    incomplete: Iterable[Any],
    *,
    estimators: Mapping[str, Any] = STANDARD,
    measure: str | ir_measures.Measure = "nDCG@10",
    labels: Any = None,
    levels: Sequence[float] = LEVELS,
    duplicates: str = "error",
    progress: bool = False,
) -> Simulation:
    """Estimate scores from incomplete judgments, for comparison with scores from complete judgments.

    Parameters
    ----------
    runs
        See :func:`vbterrier.score`: a mapping of name to frame or path, or paths.
    qrels
        The complete judgments, a frame (qid, docno, label) or the path of TREC qrels.
    incomplete
        ``(name, qrels)``, ``(name, qrels, names of the runs to evaluate)`` or ``(name, qrels, names, names of the runs
        that are evidence)`` for each simulation, ``None`` for all runs: frames or paths, as
        :func:`vbterrier.unjudged.incomplete.leave_group_out` yields. The iterable is consumed lazily and only once.
    estimators
        A mapping of name to a measure, to ``(measure, low, high)`` with the measures of the ends of an interval, or to
        ``(measure, low, high, level)`` with its nominal level. The default level is that of ``stat='lo'`` and
        ``'hi'``, or 1 for bounds. A single measure with ``stat`` and ``level``, as ``BNDCG``, gets intervals at all
        ``levels``.
    labels
        Labels of machines, see :func:`vbterrier.score`.
    measure
        The true score is this measure on the complete judgments (ERR is not rounded to five digits as by gdeval). A
        warning lists estimators with another cutoff (``STANDARD`` has 10).
    levels
        Nominal levels, each between 0 and 1.
    duplicates
        ``"error"``, or ``"first"`` to keep the best rank of a duplicated document.
    progress
        Show a progress bar over simulations and runs.

    Returns
    -------
    Simulation
        One row per simulation, run, topic and estimator. Topics need a relevant document in both sets of judgments and
        a retrieved document; ``topics`` has the number of topics before and after.

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; duplicated names of simulations; nothing to evaluate.
    ParameterError
        Unknown measures or runs, invalid levels.

    Notes
    -----
    Models of unjudged documents are fitted to all evidence runs of a simulation, with the depth of the complete pool as
    their horizon: their ideal rankings refer to the same judgments as those of true scores. True scores treat documents
    without a complete judgment as non-relevant; ``n_unknown`` counts them, and a warning reports them. To avoid this,
    drop them from the runs first with :class:`vbterrier.Condense`. Each run and each set of judgments is prepared once.

    References
    ----------
    Fröbe, Gienapp, Potthast, Hagen: Bootstrapped nDCG Estimation in the Presence of Unjudged Documents. ECIR 2023,
    section 4.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [1.0, 2.0]})
    >>> found = simulate({"mine": run}, qrels, [("no b", qrels.drop(index=1))], estimators={"lower": "nDCG@10"})
    >>> found.estimates[["truth", "estimate"]].round(3).values.tolist()
    [[1.0, 0.631]]
    """
    (wanted,) = measures_from(measure)
    asked = estimators_of(estimators, levels)
    other = [one for one in asked if one.point.params.get("cutoff") != wanted.params.get("cutoff")]
    if other:
        warn(
            f"{len(other)} estimators have another cutoff than the true score, {wanted}, as {other[0].name!r}, "
            f"{other[0].point}: give them its cutoff"
        )
    complete = target_of(qrels, None, None)
    truths = {
        name: true_scores(name, loaded_run(name, run, duplicates), complete, wanted)
        for name, run in systems_of(named_runs(runs))
    }
    simulated = [
        simulated_run(name, target, truths[run], asked, wanted)
        for name, target, run in tracked(
            _taken(incomplete, truths, _horizon(truths, complete, wanted), labels),
            "simulations",
            shown=progress,
            total=len(incomplete) * len(truths) if isinstance(incomplete, Sized) else None,
            unit="run",
        )
    ]
    if not any(run.truth.topics for run in simulated):
        raise InputError(
            f"nothing to evaluate: no topic of {len(simulated)} runs has a relevant document in both "
            "the incomplete and the complete judgments"
        )
    _warn_of_unknown(truths.values())
    counts = [
        (run.simulation, run.truth.name, len(truths[run.truth.name].topics), len(run.truth.topics)) for run in simulated
    ]
    return Simulation(
        estimates_frame(simulated, asked),
        intervals_frame(simulated, asked),
        truths_frame(truths.values()),
        pd.DataFrame(counts, columns=["simulation", "name", "n_qids", "n_evaluated"]),
    )


def _horizon(truths: Mapping[str, TrueScores], complete: EvaluationTarget, measure: ir_measures.Measure) -> int:
    """The depth of the complete pool, to which the ideal rankings of true scores refer."""
    cutoff = measure.params.get("cutoff")
    runs = {name: truth.run for name, truth in truths.items() if len(truth.run)}
    if cutoff is None or not runs:
        return 0
    return pool_depth(evidence_of(runs, complete.judgments(), cutoff, max(DEPTH, cutoff)))


def _taken(
    incomplete: Iterable[Any], truths: Mapping[str, TrueScores], horizon: int, labels: Any
) -> Iterator[tuple[str, EvaluationTarget, str]]:
    """Name, judgments and run of each evaluation; judgments are prepared once for all runs."""
    seen: set[str] = set()
    runs, labels = list(truths), labels_of(labels)
    for given in incomplete:
        if not isinstance(given, (tuple, list)) or len(given) not in {2, 3, 4}:
            raise InputError(
                "incomplete: wanted (name, qrels) or (name, qrels, names of runs) for each simulation, found "
                f"{type(given).__name__}"
            )
        name, qrels, *names = given
        name = str(name)
        if name in seen:
            raise InputError(f"two simulations are called {name!r}; give them different names")
        seen.add(name)
        wanted, evidence = (runs if part is None else list(part) for part in (*names, None, None)[:2])
        unknown = [run for run in (*wanted, *evidence) if run not in runs]
        if unknown:
            raise ParameterError(
                f"simulation {name!r}: no run is called {unknown[0]!r}; found {examples(runs)}."
                f"{nearest(str(unknown[0]), runs)}"
            )
        target = target_of(qrels, None, None, labels=labels)
        target.horizon = horizon
        target.evidence = {run: truths[run].run for run in evidence}
        for run in wanted:
            yield name, target, run


def _warn_of_unknown(truths: Iterable[TrueScores]) -> None:
    counts = {truth.name: int(truth.n_unknown.sum()) for truth in truths}
    unknown = {name: count for name, count in counts.items() if count}
    if unknown:
        shown = ", ".join(f"{count} of {name!r}" for name, count in islice(unknown.items(), 3))
        warn(
            f"the complete judgments lack documents that {len(unknown)} runs retrieved ({shown}): true scores treat "
            "them as non-relevant; drop them from the runs first with vbterrier.Condense, or see n_unknown"
        )
