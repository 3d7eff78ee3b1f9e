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
    SimulatedRun,
    Truth,
    block_of,
    estimates_frame,
    estimators_of,
    intervals_frame,
    truth_of,
    truths_frame,
)
from vbterrier.evaluate.simulation_tables import Simulation
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.runs import loaded_run
from vbterrier.log import tracked
from vbterrier.measures.text import measures_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.evaluate.simulated_runs import Estimator
    from vbterrier.measures.target import EvaluationTarget


def simulate(
    runs: Any,
    qrels: Any,
    incomplete: Iterable[Any],
    *,
    estimators: Mapping[str, Any] = STANDARD,
    measure: str | ir_measures.Measure = "nDCG@10",
    levels: Sequence[float] = LEVELS,
    duplicates: str = "error",
    progress: bool = False,
) -> Simulation:
    """Estimate scores from incomplete judgments and keep them beside the truth.

    Parameters
    ----------
    runs
        What :func:`vbterrier.score` takes: a mapping of name to frame or path, or paths.
    qrels
        The complete judgments, a frame (qid, docno, label) or the path of TREC qrels.
    incomplete
        ``(name, qrels)``, or ``(name, qrels, names of the runs to evaluate)``, for each simulation: frames or paths, as
        :func:`vbterrier.unjudged.incomplete.leave_group_out` yields. They are taken one by one, and only once.
    estimators
        A mapping of name to a measure, or to ``(measure, low, high)`` with the measures of an interval's ends, or with
        its nominal level as a fourth. The level is otherwise that of ``stat='lo'`` and ``'hi'``, and 1 for bounds. A
        single measure with ``stat`` and ``level``, as ``BNDCG``, gets its intervals at all ``levels``.
    measure
        The truth: this measure on the complete judgments; ERR with all digits, of which gdeval gives five. Estimators
        with another cutoff, as ``STANDARD`` with all but @10, are told by a warning.
    levels
        Nominal levels, each between 0 and 1.
    duplicates
        ``"error"``, or ``"first"`` to keep the best rank of a document that stands twice.
    progress
        Show a progress bar over simulations and runs.

    Returns
    -------
    Simulation
        A row for each simulation, run, topic and estimator. The topics are those that the run and both judgments have
        and in which both know a relevant document; how many others there are is told in ``topics``.

    Raises
    ------
    InputError
        Frames or files that cannot be evaluated; two simulations of one name; nothing to evaluate.
    ParameterError
        Measures, levels or runs that do not exist.

    Notes
    -----
    The truth counts documents that the complete judgments lack as worth nothing; ``n_unknown`` says how many there are
    and a warning tells of them. Where it matters, drop them from the runs first, with :class:`vbterrier.Condense`.
    Each run and each of the qrels is prepared once.

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
    (target,) = measures_from(measure)
    asked = estimators_of(estimators, levels)
    _warn_of_cutoffs(asked, target)
    complete = target_of(qrels, None, None)
    truths = {
        name: truth_of(name, loaded_run(name, run, duplicates), complete, target)
        for name, run in systems_of(named_runs(runs))
    }
    blocks = [
        block_of(name, slot, truths[run], asked, target)
        for name, slot, run in tracked(
            _taken(incomplete, list(truths)),
            "simulations",
            shown=progress,
            total=_total(incomplete, truths),
            unit="run",
        )
    ]
    if not any(block.truth.topics for block in blocks):
        raise InputError(
            f"nothing to evaluate: in {len(blocks)} runs under incomplete judgments there is no topic for which both "
            "these and the complete judgments know a relevant document"
        )
    _warn_of_unknown(truths.values())
    return Simulation(
        estimates_frame(blocks, asked),
        intervals_frame(blocks, asked),
        truths_frame(truths.values()),
        _topics(blocks, truths),
    )


def _taken(incomplete: Iterable[Any], runs: Sequence[str]) -> Iterator[tuple[str, EvaluationTarget, str]]:
    """Name, judgments and run of each evaluation; judgments are prepared once for all runs."""
    seen: set[str] = set()
    for given in incomplete:
        if not isinstance(given, (tuple, list)) or len(given) not in {2, 3}:
            raise InputError(
                "incomplete: wanted (name, qrels) or (name, qrels, names of runs) for each simulation, found "
                f"{type(given).__name__}"
            )
        name, qrels, *names = given
        name = str(name)
        if name in seen:
            raise InputError(f"two simulations are called {name!r}; give each its own name")
        seen.add(name)
        wanted = runs if not names or names[0] is None else list(names[0])
        unknown = [run for run in wanted if run not in runs]
        if unknown:
            raise ParameterError(
                f"simulation {name!r}: no run is called {unknown[0]!r}; found {examples(runs)}."
                f"{nearest(str(unknown[0]), runs)}"
            )
        slot = target_of(qrels, None, None)
        for run in wanted:
            yield name, slot, run


def _total(incomplete: Iterable[Any], runs: Sized) -> int | None:
    """How many evaluations there will be, as far as one can know."""
    return len(incomplete) * len(runs) if isinstance(incomplete, Sized) else None


def _topics(blocks: Sequence[SimulatedRun], truths: Mapping[str, Truth]) -> pd.DataFrame:
    rows = [
        (block.simulation, name, len(truths[name].topics), len(block.truth.topics))
        for block in blocks
        for name in [block.truth.name]
    ]
    return pd.DataFrame(rows, columns=["simulation", "name", "n_qids", "n_evaluated"])


def _warn_of_cutoffs(asked: Sequence[Estimator], target: ir_measures.Measure) -> None:
    other = [one for one in asked if one.point.params.get("cutoff") != target.params.get("cutoff")]
    if other:
        warn(
            f"{len(other)} estimators look at other ranks than the truth, {target}, as {other[0].name!r}, "
            f"{other[0].point}: give them its cutoff"
        )


def _warn_of_unknown(truths: Iterable[Truth]) -> None:
    counts = {truth.name: int(truth.n_unknown.sum()) for truth in truths}
    unknown = {name: count for name, count in counts.items() if count}
    if unknown:
        shown = ", ".join(f"{count} of {name!r}" for name, count in islice(unknown.items(), 3))
        warn(
            f"the complete judgments lack documents that {len(unknown)} runs retrieved ({shown}): the truth counts "
            "them as worth nothing; drop them from the runs first with vbterrier.Condense, or look at n_unknown"
        )
