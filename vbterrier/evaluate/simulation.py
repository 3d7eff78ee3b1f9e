"""Simulation of estimators on reduced judgments."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, nearest, warn
from vbterrier.evaluate.inputs import evaluation_target, loaded_runs
from vbterrier.evaluate.simulated_runs import (
    LEVELS,
    STANDARD,
    TrueScores,
    parse_estimators,
    result_frames,
    simulated_run,
    true_scores,
)
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.results import Shown
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.kernels.tolerances import REPLICA_ROUNDING
from vbterrier.log import tracked_items
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import Estimated, evidence_models
from vbterrier.settings import Data, Execution, with_defaults
from vbterrier.stats.agreement import (
    Correlations,
    Errors,
    Preferences,
    bonferroni,
    error_statistics,
    paired_t,
    preferences,
    rank_correlations,
    share_interval,
)
from vbterrier.stats.comparisons import system_pairs
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF
from vbterrier.unjudged.pool import machine_labels
from vbterrier.unjudged.selection import pool_depth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.simulated_runs import ScoreEstimator
    from vbterrier.frames.results import Figures
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.fitted import EvidenceModel


# The level of a range that consists of the estimate alone.
POINT = 0.0
LOSSES: dict[str, Callable[[Any], Any]] = {"squared": np.square, "absolute": np.abs}
_ERRORS, _CORRELATIONS, _COUNTS = (
    tuple(field.name for field in fields(kind)) for kind in (Errors, Correlations, Preferences)
)
_COVERAGE = ("topics", "n", "covered", "covered_low", "covered_high", "width")
_QUALITIES = ("precision", "recall", "f1")
_PREFERENCES = (*_COUNTS, *_QUALITIES)
_TESTS = ("estimator_a", "estimator_b", "loss", "diff", "t", "p_value", "p_adjusted", "n_units")


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Shown):
    """Result of :func:`simulate`: estimates and true scores. Methods summarise them by group and estimator.

    Groups are columns of ``estimates``: ``simulation``, ``name`` (the run), ``qid``, ``n_unjudged``, ``n_unknown``, and
    those that :meth:`labelled` added; ``()`` for a single group.

    - ``estimates``: simulation, name, qid, n_unjudged, n_unknown, truth, estimator, estimate
    - ``intervals``: simulation, name, qid, n_unjudged, n_unknown, truth, estimator, level, low, high
    - ``truth``: name, qid, n_unknown, truth: true scores of all runs and topics
    - ``topics``: simulation, name, n_qids (with a true score), n_evaluated (with a remaining relevant document)
    """

    estimates: pd.DataFrame
    intervals: pd.DataFrame
    truth: pd.DataFrame
    topics: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``estimates``: a row per simulation, run, topic and estimator."""
        return self.estimates

    def _line(self) -> str:
        counts = ", ".join(
            count_text(self.estimates[column].nunique(), what)
            for column, what in (("simulation", "simulation"), ("name", "run"), ("qid", "topic"))
        )
        return f"{counts}: {', '.join(map(str, self.estimates['estimator'].unique()))}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Errors", self.errors())
        covered = self.coverage()
        frame = covered.rename(columns={"level": "nominal", "covered_low": "low", "covered_high": "high"})
        yield Panel("Coverage of intervals", frame, value="covered")

    def _figures(self) -> Figures:
        return {
            "interval_coverage": lambda: {"coverage": self.coverage()},
            "estimate_against_truth": lambda: {"estimates": self.estimates, "intervals": self.intervals},
        }

    def labelled(self, **labels: Callable[[str], Any]) -> Simulation:
        """Add columns to group by, computed from the names of simulations.

        Example: ``labelled(share=lambda name: name.split(" #")[0]).errors(by=["share"])`` for simulations such as
        ``"30 % #7"``.
        """
        frames = {name: getattr(self, name) for name in ("estimates", "intervals", "topics")}
        taken = {*_ERRORS, *_CORRELATIONS, *_COVERAGE, *_PREFERENCES, *_TESTS}.union(*frames.values())
        for new in taken.intersection(labels):
            raise ParameterError(f"{new!r} is already a column; choose another name for the label")
        for name, frame in frames.items():
            frames[name] = frame.assign(**{new: frame["simulation"].map(label) for new, label in labels.items()})
        return replace(self, **frames)

    def unjudged(self) -> Simulation:
        """Keep the topics with an unjudged document; all estimators are exact on other topics."""
        return self._where("n_unjudged > 0")

    def known(self) -> Simulation:
        """Keep the topics whose documents are all judged in the complete judgments."""
        return self._where("n_unknown == 0")

    def _where(self, condition: str) -> Simulation:
        estimates, intervals = (frame.query(condition) for frame in (self.estimates, self.intervals))
        return replace(self, estimates=estimates.reset_index(drop=True), intervals=intervals.reset_index(drop=True))

    def errors(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Errors of each estimator over run-topics: n, bias, mae, rmse, rmse_over, rmse_under.

        See :func:`vbterrier.stats.agreement.error_statistics`. Includes run-topics without unjudged documents.
        """
        columns = [*_column_names(by), "estimator"]
        rows = [
            {**key, **asdict(error_statistics(_floats(group, "truth"), _floats(group, "estimate")))}
            for key, group in _groups(self.estimates, columns)
        ]
        return pd.DataFrame(rows, columns=[*columns, *_ERRORS])

    def coverage(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Coverage of the true score by intervals, for each estimator and nominal level.

        Returns columns groups, estimator, level, topics (``"unjudged"``: run-topics with unjudged documents;
        ``"all"``), n, covered (the share), covered_low and covered_high (the exact 95 % interval of the share, as if
        run-topics were independent), width (mean width of the intervals). Coverage has a tolerance of 1e-9.
        """
        rows, columns = [], [*_column_names(by), "estimator", "level"]
        for key, group in _groups(self.intervals, columns):
            parts = {"unjudged": group[group["n_unjudged"] > 0], "all": group}
            rows += [{**key, "topics": topics, **_coverage(part)} for topics, part in parts.items()]
        return pd.DataFrame(rows, columns=[*columns, *_COVERAGE])

    def correlations(self, by: str | Sequence[str] = ("simulation",)) -> pd.DataFrame:
        """Rank correlation of systems by estimated and by true scores.

        The score of a system is the mean of its estimates in the group, over the topics that all systems of the group
        have. Use ``by=()`` if each simulation evaluates different runs, as with ``leave_group_out``.

        Returns columns groups, estimator, n_systems, n_qids, tau (Kendall's τ_b), rho (Spearman's ρ), tau_ap (see
        :func:`vbterrier.stats.agreement.tau_ap`); NaN if undefined. Raises InputError: systems of a group without a
        common topic.
        """
        rows, columns = [], [*_column_names(by), "estimator"]
        for key, group in _groups(self.estimates, columns):
            truth, estimate = (_common(group, column) for column in ("truth", "estimate"))
            correlation = rank_correlations(truth.mean(axis=1).to_numpy(), estimate.mean(axis=1).to_numpy())
            rows.append({**key, "n_systems": truth.shape[0], "n_qids": truth.shape[1], **asdict(correlation)})
        return pd.DataFrame(rows, columns=[*columns, "n_systems", "n_qids", *_CORRELATIONS])

    def preferences(self, by: str | Sequence[str] = ()) -> pd.DataFrame:
        """Preferences between systems on single topics, as stated by estimates and intervals (Table 6).

        A range strictly above another states a preference. In each simulation, the evaluated runs have their range
        (level 0: the estimate alone), and other runs have their true score, as if fully judged. Returns columns groups
        (each of whole simulations), estimator, level, n_true, n_stated, n_right, precision, recall, f1.
        """
        truth = self.truth.pivot(index="name", columns="qid", values="truth")
        points = self.estimates.assign(level=POINT, low=self.estimates["estimate"], high=self.estimates["estimate"])
        totals: dict[tuple[Any, ...], Preferences] = {}
        columns = [*_column_names(by), "estimator", "level"]
        # Concatenating an empty frame would change the column types.
        ranges = pd.concat([points, self.intervals]) if len(self.intervals) else points
        for key, group in _groups(ranges, [*columns, "simulation"]):
            place = tuple(key[column] for column in columns)
            totals[place] = totals.get(place, Preferences(0, 0, 0)) + _preferences(truth, group)
        rows = [(*place, *(getattr(total, name) for name in _PREFERENCES)) for place, total in totals.items()]
        return pd.DataFrame(rows, columns=[*columns, *_PREFERENCES])

    def preference_tests(self, score: str = "f1", *, level: float = POINT, baseline: str | None = None) -> pd.DataFrame:
        """Student's paired t-tests between estimators by the quality of their preferences (Table 6, significance).

        ``score``: ``"precision"``, ``"recall"`` or ``"f1"`` of the :meth:`preferences` of one simulation. ``level``:
        the level of the ranges; 0 for the estimates alone. ``baseline``: the estimator that all others are compared
        with; ``None`` for all pairs. Returns columns estimator_a, estimator_b, score, level, a, b (means over
        simulations), diff, t, p_value (two-sided), p_adjusted (Bonferroni), n_units (simulations in which both are
        defined).
        """
        choice("score", score, _QUALITIES)
        preferences = self.preferences("simulation")
        preferences = preferences[preferences["level"] == level]
        if not len(preferences):
            raise ParameterError(f"level={level}: no ranges of this level; wanted 0 or a level of the intervals")
        values = preferences.pivot(index="simulation", columns="estimator", values=score)
        table = _paired_tests(values[preferences["estimator"].unique()], baseline).assign(score=score, level=level)
        return table[[*_TESTS[:2], "score", "level", "a", "b", *_TESTS[3:]]]

    def tests(
        self,
        by: str | Sequence[str] = (),
        *,
        loss: str = "squared",
        baseline: str | None = None,
        unit: str | Sequence[str] = ("qid",),
    ) -> pd.DataFrame:
        """Student's paired t-tests between the losses of estimators.

        ``by``: columns of groups; Bonferroni's correction applies to the tests of a group. ``loss``: ``"squared"`` or
        ``"absolute"`` error. ``baseline``: see :meth:`preference_tests`. ``unit``: columns that identify independent
        units. Losses of a unit are averaged first: by default topics, because runs and simulations of one topic are
        dependent; ``("name", "qid")`` for run-topics, as in the paper. Returns columns groups, estimator_a,
        estimator_b, loss, diff (mean loss of a minus mean loss of b: below 0 if a is better), t, p_value (two-sided),
        p_adjusted, n_units.
        """
        choice("loss", loss, LOSSES)
        frame = self.estimates.assign(loss=LOSSES[loss](self.estimates["estimate"] - self.estimates["truth"]))
        by, unit = _column_names(by), _column_names(unit)
        _require_columns(frame, unit)
        columns, tables = [*by, *_TESTS], []
        for key, group in _groups(frame, by):
            losses = group.groupby([*unit, "estimator"], sort=False)["loss"].mean().unstack("estimator")
            tables.append(_paired_tests(losses[group["estimator"].unique()], baseline).assign(**key, loss=loss))
        return pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)


def _paired_tests(values: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """Student's paired t-tests between the columns, over the rows in which both are defined."""
    rows: list[tuple[Any, ...]] = []
    for a, b in system_pairs(list(values.columns), baseline):
        both = values[[a, b]].dropna()
        difference = (both[a] - both[b]).to_numpy()
        rows.append((a, b, both[a].mean(), both[b].mean(), difference.mean(), *paired_t(difference), len(both)))
    names = ["estimator_a", "estimator_b", "a", "b", "diff", "t", "p_value", "n_units"]
    table = pd.DataFrame(rows, columns=names)
    return table.assign(p_adjusted=bonferroni(table["p_value"].to_numpy(dtype=np.float64)))


def _floats(frame: pd.DataFrame, column: str) -> Floats:
    return frame[column].to_numpy(dtype=np.float64)


def _column_names(columns: str | Sequence[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _require_columns(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise ParameterError(
            f"no column {unknown[0]!r} to group by; found {', '.join(frame.columns)}."
            f"{nearest(str(unknown[0]), frame.columns)}"
        )


def _groups(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The groups in order of appearance, each with its key."""
    _require_columns(frame, by)
    if not by:
        yield {}, frame
        return
    for key, group in frame.groupby(by, sort=False):
        yield dict(zip(by, key, strict=True)), group


def _coverage(group: pd.DataFrame) -> Mapping[str, Any]:
    truth, low, high = (_floats(group, column) for column in ("truth", "low", "high"))
    covered = (low - REPLICA_ROUNDING <= truth) & (truth <= high + REPLICA_ROUNDING)
    n, n_held = len(covered), int(np.count_nonzero(covered))
    share, width = (n_held / n, float((high - low).mean())) if n else (float("nan"),) * 2
    ends = dict(zip(("covered_low", "covered_high"), share_interval(n_held, n), strict=True))
    return {"n": n, "covered": share, **ends, "width": width}


def _common(group: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row per system, one column per topic that all systems of the group have."""
    table = group.groupby(["name", "qid"], sort=False)[column].mean().unstack("qid").dropna(axis=1)
    if not table.shape[1]:
        raise InputError(
            f"the systems {examples(table.index)} have no topic in common: their means are not comparable; "
            "group by fewer columns"
        )
    return table


def _preferences(truth: pd.DataFrame, group: pd.DataFrame) -> Preferences:
    """Preferences in one simulation by one kind of range."""
    topics = group["qid"].unique()
    truth_values = truth[topics].to_numpy()
    low, high = truth_values.copy(), truth_values.copy()
    place = (truth.index.get_indexer(pd.Index(group["name"])), pd.Index(topics).get_indexer(pd.Index(group["qid"])))
    low[place], high[place] = _floats(group, "low"), _floats(group, "high")
    estimated = np.zeros(truth_values.shape, dtype=bool)
    estimated[place] = True
    return preferences(truth_values, low, high, estimated)


@with_defaults
def simulate(
    runs: Any,
    qrels: Any,
    measure: str | ir_measures.Measure = "nDCG@10",
    *,
    incomplete: Iterable[Any],
    estimators: Mapping[str, Any] = STANDARD,
    levels: Sequence[float] = LEVELS,
    data: Data = Data(labels=None, duplicates="error", system=None),
    execution: Execution = Execution(progress=False),
) -> Simulation:
    """Estimate scores from incomplete judgments, for comparison with scores from complete judgments.

    Parameters
    ----------
    runs, qrels
        See :func:`vbterrier.score`; ``qrels`` are the complete judgments.
    measure
        The true score is this measure on the complete judgments (ERR is not rounded to five digits as by gdeval). A
        warning lists estimators with another cutoff (``STANDARD`` has 10).
    incomplete
        ``(name, qrels)``, ``(name, qrels, names of the runs to evaluate)`` or ``(name, qrels, names, names of the runs
        that are evidence)`` for each simulation, ``None`` for all runs: frames or paths, as
        :func:`vbterrier.unjudged.incomplete.leave_group_out` yields. The iterable is consumed lazily and only once.
    estimators, levels
        A mapping of name to a measure, to ``(measure, low, high)`` with the measures of the ends of an interval, or to
        ``(measure, low, high, level)`` with its nominal level. The default level is that of ``stat='lo'`` and
        ``'hi'``, or 1 for bounds. A single measure with ``stat`` and ``level``, as ``BNDCG``, gets intervals at all
        ``levels``, each between 0 and 1.
    data
        A :class:`vbterrier.Data`: ``labels``, ``duplicates`` (``"error"``), ``system``.
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    Simulation
        Of topics with a relevant document in both sets of judgments and a retrieved document; ``topics`` has the number
        of topics before and after.

    Notes
    -----
    Models of unjudged documents are fitted to all evidence runs of a simulation, with the depth of the complete pool as
    ``pool_cutoff``: their ideal rankings refer to the same judgments as those of true scores. True scores treat
    documents without a complete judgment as non-relevant; ``n_unknown`` counts them, and a warning reports them. To
    avoid this, drop them from the runs first with :class:`vbterrier.Condense`. Each run and each set of judgments is
    prepared once.

    Source: Fröbe, Gienapp, Potthast, Hagen: Bootstrapped nDCG Estimation in the Presence of Unjudged Documents. ECIR
    2023, section 4.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 1, 0, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [1.0, 2.0]})
    >>> without_b = [("no b", qrels.drop(index=1))]
    >>> result = simulate({"mine": run}, qrels, incomplete=without_b, estimators={"lower": "nDCG@10"})
    >>> result.estimates[["truth", "estimate"]].round(3).values.tolist()
    [[1.0, 0.631]]
    """
    labels, duplicates = data.labels, data.duplicates
    progress = execution.progress
    (target_measure,) = measures_from(measure)
    chosen = parse_estimators(estimators, levels)
    refuse_ratios([str(target_measure), *(str(each.point) for each in chosen)], "vbterrier.score")
    other = [one for one in chosen if one.point.params.get("cutoff") != target_measure.params.get("cutoff")]
    if other:
        warn(
            f"{len(other)} estimators have another cutoff than the true score {target_measure}, such as "
            f"{other[0].name!r} ({other[0].point}): give them its cutoff"
        )
    complete = evaluation_target(qrels, None, None)
    truths = {
        name: true_scores(name, run, complete, target_measure)
        for name, run in loaded_runs(runs, duplicates, data.system).items()
    }
    simulated = [
        simulated_run(name, target, truths[run], chosen, target_measure, models)
        for name, target, run, models in tracked_items(
            _evaluations(incomplete, truths, chosen, _pool_cutoff(truths, complete, target_measure, chosen), labels),
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
    topics = pd.DataFrame(counts, columns=["simulation", "name", "n_qids", "n_evaluated"])
    return Simulation(*result_frames(simulated, truths.values(), chosen), topics)


def _pool_cutoff(
    truths: Mapping[str, TrueScores],
    complete: EvaluationTarget,
    measure: ir_measures.Measure,
    estimators: Sequence[ScoreEstimator],
) -> int | None:
    """The depth of the complete pool, to which the ideal rankings of true scores refer.

    At least the cutoffs of estimators; ``None`` for whole rankings.
    """
    cutoffs = [one.point.params.get("cutoff") for one in estimators if isinstance(one.point, Estimated)]
    cutoff = measure.params.get("cutoff")
    runs = {name: truth.run for name, truth in truths.items() if len(truth.run)}
    if cutoff is None or None in cutoffs or not runs:
        return None
    depth = pool_depth(collect_evidence(runs, complete.judgments(), cutoff, max(DEFAULT_POOL_CUTOFF, cutoff)))
    return max([depth, *map(int, cutoffs)])


def _evaluations(
    incomplete: Iterable[Any],
    truths: Mapping[str, TrueScores],
    estimators: Sequence[ScoreEstimator],
    pool_cutoff: int | None,
    labels: Any,
) -> Iterator[tuple[str, EvaluationTarget, str, Mapping[str, EvidenceModel]]]:
    """Name, judgments, run and models of each evaluation; judgments and models are prepared once for all runs."""
    measures = [one.point for one in estimators]
    seen: set[str] = set()
    runs, labels = list(truths), machine_labels(labels)
    for parts in incomplete:
        if not isinstance(parts, (tuple, list)) or len(parts) not in {2, 3, 4}:
            raise InputError(
                "incomplete: wanted (name, qrels) or (name, qrels, names of runs) for each simulation, found "
                f"{type(parts).__name__}"
            )
        name, qrels, *names = parts
        name = str(name)
        if name in seen:
            raise InputError(f"two simulations are called {name!r}; give them different names")
        seen.add(name)
        evaluated, evidence = (runs if part is None else list(part) for part in (*names, None, None)[:2])
        unknown = [run for run in (*evaluated, *evidence) if run not in runs]
        if unknown:
            raise ParameterError(
                f"simulation {name!r}: no run is called {unknown[0]!r}; found {examples(runs)}."
                f"{nearest(str(unknown[0]), runs)}"
            )
        target = evaluation_target(qrels, None, None)
        evidence_runs = {run: truths[run].run for run in evidence}
        # A simulation measures what warnings say.
        fit = partial(evidence_models, measures, target=target, labels=labels, pool_cutoff=pool_cutoff, cautious=False)
        shared = fit(evidence_runs) if evidence_runs and not set(evaluated).isdisjoint(evidence_runs) else {}
        for run in evaluated:
            # A model estimates scores of its own runs alone.
            yield name, target, run, shared if run in evidence_runs else fit({**evidence_runs, run: truths[run].run})


def _warn_of_unknown(truths: Iterable[TrueScores]) -> None:
    counts = {truth.name: int(truth.n_unknown.sum()) for truth in truths}
    unknown = {name: count for name, count in counts.items() if count}
    if unknown:
        shown = ", ".join(f"{count} of {name!r}" for name, count in islice(unknown.items(), 3))
        warn(
            f"the complete judgments lack documents that {len(unknown)} runs retrieved ({shown}): true scores treat "
            "them as non-relevant; drop them from the runs first with vbterrier.Condense, or see n_unknown"
        )
