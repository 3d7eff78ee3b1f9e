"""Non-inferiority of a release to its baselines: pass, fail, or unknown and the documents to judge next."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, examples, number, printable, warn, whole
from vbterrier.evaluate.inputs import (
    is_path,
    named_runs,
    require_scale,
    require_spelling,
    table_of,
    target_of,
    warn_of_uneven_labels,
)
from vbterrier.evaluate.ranking import distributions_of
from vbterrier.evaluate.scores import score
from vbterrier.evaluate.value_tables import require_means
from vbterrier.frames.contracts import (
    frame_of,
    refuse_near_misses,
    require,
    require_difference,
    score_bounds,
    systems_of,
)
from vbterrier.frames.files.rated_lists import RatedList, read_hits, read_rated_list, read_traffic, write_rated_list
from vbterrier.frames.ids import ids_of
from vbterrier.frames.notebook import Panel, Shown
from vbterrier.frames.ranking import Run, loaded_run
from vbterrier.kernels.resample import bounded_limits, stream
from vbterrier.log import timed
from vbterrier.measures.target import Scoring, aligned
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, models_of
from vbterrier.stats.inverted_intervals import confidence_sequence, spent_level
from vbterrier.stats.topic_intervals import topics_intervals
from vbterrier.unjudged.estimated import joint_of
from vbterrier.unjudged.judge_next import plan_judging
from vbterrier.unjudged.pool import labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats, StrPath
    from vbterrier.frames.contracts import Bounds
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.distribution import ScoreDistributions
    from vbterrier.unjudged.pool import MachineLabels


_LOG = logging.getLogger(__name__)
PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
EXIT_CODES = {PASS: 0, FAIL: 2, UNKNOWN: 3}
METHODS = {"bounded": "bounded", "normal": "Student's t", "sequence": "confidence sequence"}
N_RESAMPLES = 10_000
# Draws of bounded limits beyond the smallest tail, and draws of the scores of unjudged documents.
_BEYOND, _N_DRAWS = 20, 1000
_MOST_DRAWS = 10**8
_ROUNDING = 1e-12
_LEAST_QUERIES = 2
# The cutoff for unjudged documents, for measures without one.
_CUTOFF = 10


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseGate(Shown):
    """Result of :func:`release_gate`.

    - ``pairs``: a row per baseline: name, baseline, measure, diff (weighted mean of new - baseline), low, high (limits
      of one-sided intervals), decision, margin, level, n_qids, unjudged and unjudged_baseline (mean shares of unjudged
      documents up to the cutoff), n_tests (baselines corrected for), look, method, n_resamples, seed
    - ``segments``: a row per baseline and segment, with the same columns and ``segment``, ``weight`` (its share of the
      traffic); ``n_tests`` counts baselines and segments. Segments do not change the decision. Empty without segments
    - ``judge``: if the decision is UNKNOWN, the documents to judge next: qid, docno, rank, n_runs, worth, reason, ...;
      see :class:`vbterrier.unjudged.judge_next.JudgingPlan`. Empty if no document up to the cutoff is unjudged: then
      more queries are needed
    - ``excluded``: reason, n, examples: all that was left out, or scored as nothing
    - ``ratings``: the ratings and their format
    """

    pairs: pd.DataFrame
    segments: pd.DataFrame
    judge: pd.DataFrame
    excluded: pd.DataFrame
    ratings: RatedList = field(default_factory=lambda: RatedList(pd.DataFrame()))

    @property
    def decision(self) -> str:
        """FAIL if a baseline has FAIL, PASS if all have PASS, else UNKNOWN."""
        found = set(self.pairs["decision"])
        return FAIL if FAIL in found else PASS if found == {PASS} else UNKNOWN

    @property
    def exit_code(self) -> int:
        """0 for PASS, 2 for FAIL, 3 for UNKNOWN."""
        return EXIT_CODES[self.decision]

    def write_judging(self, path: StrPath) -> None:
        """Write the documents to judge next in the format of the ratings; an existing file is replaced."""
        write_rated_list(self.judge, path, self.ratings)

    def summary(self) -> str:
        """The decision in one line."""
        row = self.pairs.iloc[0]
        against = ", ".join(
            f"{row['name']} - {one['baseline']} {one['diff']:+.4f} ({one['low']:+.4f} to {one['high']:+.4f})"
            for one in self.pairs.to_dict("records")
        )
        return f"{self.decision}: {row['measure']}, {against}, margin {row['margin']:g}, {row['n_qids']} queries"

    _line = summary

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Differences from the baselines", self.pairs, value="diff", rule=-self.pairs["margin"].iloc[0])
        if len(self.segments):
            yield Panel("Segments", self.segments, value="diff", rule=-self.pairs["margin"].iloc[0], heads=2)
        if len(self.judge):
            yield Panel("Judge next, in this order", self.judge, heads=2)
        if len(self.excluded):
            yield Panel("Exclusions", self.excluded)


def decision_of(low: float, high: float, margin: float) -> str:
    """PASS if the lower limit is above ``-margin``, FAIL if the upper limit is below, else UNKNOWN."""
    return PASS if low > -margin else FAIL if high < -margin else UNKNOWN


def one_sided_limits(
    differences: Floats,
    weights: Floats,
    tail: float,
    bounds: Bounds,
    interval: str,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    name: str = "",
) -> tuple[float, float]:
    """Lower and upper one-sided limits of a weighted mean difference, each wrong with probability of at most ``tail``.

    ``"bounded"``: limits for any distribution within the bounds (Gaffke), from at least 20/tail draws. ``"normal"``:
    Student's t of the linearised weighted mean, ``D + w (d - D)/w̄``. ``"sequence"``: the last limits of a
    :func:`~vbterrier.stats.confidence_sequence` in the order of the differences.
    """
    if interval == "sequence":
        last = confidence_sequence(differences, level=1 - 2 * tail, bounds=bounds, weights=weights).iloc[-1]
        return float(last["low"]), float(last["high"])
    if interval == "bounded":
        if not tail * _MOST_DRAWS >= _BEYOND:
            raise ParameterError(
                f"limits that are wrong with probability {tail:.2g} need more than {_MOST_DRAWS:,} draws; use a "
                "smaller level= or look="
            )
        n_draws, draws = max(n_resamples, ceil(_BEYOND / tail)), stream(seed, "release gate", name)
        low, high = bounded_limits(differences[:, None], bounds, [tail, 1 - tail], n_draws, draws, weights)[:, 0]
        return float(low), float(high)
    mean = float(np.average(differences, weights=weights))
    linear = mean + weights / weights.mean() * (differences - mean)
    found = topics_intervals(linear[:, None], level=1 - 2 * tail, method="normal", bounds=bounds)
    return float(found.low[0]), float(found.high[0])


def release_gate(
    new: Any,
    baseline: Any,
    qrels: Any,
    measure: str | ir_measures.Measure = "ENDCG@10",
    *,
    margin: float,
    traffic: Any = None,
    interval: str = "bounded",
    level: float = 0.95,
    look: int | None = None,
    daily: bool = False,
    budget: int = 20,
    scale: tuple[int, int] | None = None,
    labels: Any = None,
    duplicates: str = "error",
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> ReleaseGate:
    r"""Decide if a new system is at most a margin worse than its baselines: PASS, FAIL or UNKNOWN.

    The queries are a sample. The difference of interest is the weighted mean of new - baseline over the queries that
    they represent, :math:`\Delta = E[w d]/E[w]`. The decision is PASS if the lower one-sided limit of Δ is above
    ``-margin``, FAIL if the upper one-sided limit is below ``-margin``, else UNKNOWN. The probability of a false PASS
    (for :math:`\Delta \le -margin`) and that of a false FAIL (for :math:`\Delta \ge -margin`) are each at most
    ``1 - level``, for several baselines together and, with ``look`` or ``daily``, for all looks together.

    Parameters
    ----------
    new, baseline
        The new run and its baselines: a frame (qid, docno, score), a path that :func:`vbterrier.frames.read_hits`
        reads, or a mapping of names to these; several baselines may be a list of paths. Limits have the level
        ``1 - (1 - level)/k`` for k baselines (Bonferroni).
    qrels, scale
        Ratings: a frame (qid, docno, label) or a path that :func:`vbterrier.frames.read_rated_list` reads; the smallest
        and the largest rating, by default any.
    measure
        A measure whose value is a mean over queries. Measures of unjudged documents, such as ``ENDCG@10``, predict the
        ratings of unjudged documents, and their limits contain the error of the prediction; other measures treat
        unjudged documents as non-relevant, which is a disadvantage for a system that retrieves more of them.
    margin, budget
        The largest loss that is acceptable, in units of the measure, at least 0 and below its range; the number of
        documents to judge next, if the decision is UNKNOWN.
    traffic
        Weights and segments of all rated queries: a frame (qid, and weight, segment or both) or the path of a table.
        Queries of weight 0 are left out.
    interval
        ``"bounded"``, limits that are valid for any distribution of differences within the range of the measure; or
        ``"normal"``, Student's t, which are narrower, and wrong more often than stated if a few queries lose much.
    level, look
        Confidence level of each one-sided limit, and the number of this inspection, from 1, if the gate is repeated
        with more queries or judgments until it passes or fails: limits have the level ``1 - 6 (1 - level)/(π look)²``.
    daily
        Use confidence sequences instead: valid for any number of looks if ratings of further queries are appended to
        the file and those of previous queries, up to the cutoff complete, do not change. UNKNOWN while documents up to
        the cutoff are unjudged.
    labels, duplicates, n_resamples, seed
        As in :func:`vbterrier.score`; the number of draws of bounded limits, and the seed of all draws.

    Raises
    ------
    InputError, ParameterError
        Files or frames that cannot be evaluated; a rating outside the scale; a query in two spellings; weights that
        are negative or all 0; a rated query without weight; fewer than two queries; invalid options; a measure without
        known range, unless ``interval="normal"``.

    Warns
    -----
    DegenerateWarning
        A measure treats unjudged documents as non-relevant; a run without judged documents; labels of larger shares of
        some runs' documents than of others'.

    Notes
    -----
    The error of predicted ratings is added to that of the sample of queries as independent errors are: the distance of
    a limit from the difference is ``√(a² + b²)``, with b the standard deviation of the weighted mean difference in
    joint draws of the grades of unjudged documents, times a normal quantile. With n queries and equal weights, bounded
    limits of two equal systems are ``±(1 - (1 - level)^(1/n))``: a margin of .01 at the level .95 takes 299 queries.
    Simulated rates of false decisions: tests/bench/release_gate.py, docs/how-to/release-gate.md.

    References
    ----------
    Gaffke 2005 (bounded limits); Waudby-Smith and Ramdas, JRSS B 86, 2024 (confidence sequences); non-inferiority
    tests: Wellek, Testing Statistical Hypotheses of Equivalence and Noninferiority, 2010.

    Examples
    --------
    >>> qrels = pd.DataFrame([(f"q{i}", d, int(d == "a")) for i in range(80) for d in "ab"],
    ...                      columns=["qid", "docno", "label"])
    >>> old = qrels.assign(score=[1.0, 0.0] * 80)
    >>> new = old.assign(score=[1.0, 0.0] * 60 + [0.0, 1.0] * 20)
    >>> found = release_gate({"new": new}, {"old": old}, qrels, "nDCG@2", margin=0.02)
    >>> found.decision, found.pairs[["diff", "low", "high"]].round(3).to_numpy().tolist()
    ('FAIL', [[-0.092, -0.14, -0.041]])
    """
    margin = number("margin", margin, low=0)
    level = number("level", level, low=0.5, high=1, open_low=True, open_high=True)
    choice("interval", interval, ("bounded", "normal"))
    whole("budget", budget, low=0)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)
    if daily and look is not None:
        raise ParameterError("look= and daily=True: give one of them; daily limits are valid for any number of looks")
    wanted = measures_from(measure)[0]
    require_means([str(wanted)])
    if getattr(wanted, "better", "higher") != "higher":
        raise ParameterError(f"{wanted}: wanted a measure of which higher values are better")
    require_difference("margin", margin, str(wanted))
    bounds = score_bounds(f"{wanted} - ")
    if not np.isfinite(bounds).all() and (daily or interval == "bounded"):
        raise ParameterError(f"{wanted}: its range of scores is unknown; use interval='normal' without daily=True")
    ratings = read_rated_list(qrels, scale=scale) if is_path(qrels) else _rated(frame_of(qrels, "qrels"), scale)
    newest, others = list(systems_of(_named(new, "new"))), _named(baseline, "baseline")
    runs = {name: read_hits(run) if is_path(run) else run for name, run in systems_of([*newest, *others])}
    if len(newest) != 1 or not others:
        raise ParameterError("new=, baseline=: wanted one new run, and at least one baseline")
    loaded = {name: loaded_run(name, run, duplicates) for name, run in runs.items()}
    queries, notes = _queries(ratings.frame, traffic, loaded)
    rated = ratings.frame[ratings.frame["qid"].astype(str).isin(queries.index)]
    loaded = {name: run.only(set(queries.index)) for name, run in loaded.items()}
    target, loaded = aligned(target_of(rated, None, None), loaded, "all")
    options = _Options(margin, level, look, "sequence" if daily else interval, bounds, n_resamples, seed)
    with timed(_LOG, "decided on %s over %s queries", newest[0][0], len(queries)):
        releases = _Releases(target, loaded, wanted, queries["weight"], labels_of(labels), options)
        names = [(newest[0][0], name) for name, _ in others]
        pairs = pd.DataFrame([releases.row(*pair, target.topics, len(names)) for pair in names])
        groups = queries[queries["segment"] != ""].groupby("segment")["weight"]
        parts = {str(part): weights for part, weights in groups if len(weights) >= _LEAST_QUERIES}
        rows = [
            {"segment": part, **releases.row(*pair, list(weights.index), len(names) * len(parts), part)}
            | {"weight": weights.sum() / queries["weight"].sum()}
            for pair in names
            for part, weights in parts.items()
        ]
    notes.append(("segments with one query, without limits", [str(part) for part, _ in groups if part not in parts]))
    excluded = [(reason, len(ids), examples(ids)) for reason, ids in notes if ids]
    if ratings.n_unrated:
        excluded.append(("rows without a rating", ratings.n_unrated, ""))
    found = ReleaseGate(
        pairs,
        pd.DataFrame(rows, columns=["segment", *pairs.columns, "weight"]),
        pd.DataFrame(columns=["qid", "docno", "reason"]),
        pd.DataFrame(excluded, columns=["reason", "n", "examples"]),
        ratings,
    )
    unknown = pairs.loc[pairs["decision"] == UNKNOWN, "baseline"]
    if found.decision == UNKNOWN and budget:
        listed = releases.judge_next((newest[0][0], unknown.iloc[0]), budget)
        indexed = [run[["qid", "docno", "index"]] for run in runs.values() if "index" in getattr(run, "columns", ())]
        if indexed and len(listed):
            known = pd.concat(indexed).drop_duplicates(["qid", "docno"])
            listed = listed.merge(known, on=["qid", "docno"], how="left")
        return replace(found, judge=listed)
    return found


@dataclass(frozen=True)
class _Options:
    """Options of the decisions."""

    margin: float
    level: float
    look: int | None
    interval: str
    bounds: Bounds
    n_resamples: int
    seed: int

    @property
    def tail(self) -> float:
        return 1 - (self.level if self.look is None else spent_level(self.level, self.look))


class _Releases:
    """Scores of the new system and its baselines, and the distributions of measures of unjudged documents."""

    def __init__(
        self,
        target: EvaluationTarget,
        runs: Mapping[str, Run],
        measure: ir_measures.Measure,
        weights: pd.Series[float],
        labels: MachineLabels | None,
        options: _Options,
    ) -> None:
        self.measure, self._weights, self._options = measure, weights, options
        self._target, self._runs, self._labels = target, runs, labels
        self._place = {qid: at for at, qid in enumerate(target.topics)}
        self._is_predicted = isinstance(measure, UnjudgedMeasure)
        if self._is_predicted:
            if measure["stat"] != "mean":
                raise ParameterError(f"{measure}: wanted the score itself; leave out stat={measure['stat']!r}")
            distributions = self._distributions(measure, runs)
            self._scores = {name: each.mean for name, each in distributions.items()}
            self._joint = joint_of(distributions)
        else:
            frames = {name: run.frame for name, run in runs.items()}
            values = score(frames, target.frame, [measure], on_topics="all", interval="normal").values
            table = values.pivot(index="qid", columns="name", values="value").reindex(target.topics)
            self._scores = {name: table[name].to_numpy() for name in runs}
        depth = measure.params.get("cutoff", _CUTOFF)
        judged = {name: Scoring(target, run, depth).judged(depth) for name, run in runs.items()}
        self._shares = {name: cut.unjudged_share() for name, cut in judged.items()}
        if labels is not None:
            require_spelling("labels", labels.frame()["qid"].unique(), target.topics)
            warn_of_uneven_labels(labels, runs, depth)
        self._like = measure if self._is_predicted else measures_from(f"ENDCG@{depth}")[0]
        found = {name: share.mean() for name, share in self._shares.items() if share.any()}
        if found and not self._is_predicted:
            told = ", ".join(f"{share:.1%} of {name}" for name, share in found.items())
            warn(f"{measure} treats unjudged documents as non-relevant: {told}; use ENDCG@{depth}, or judge them")

    def _distributions(self, measure: Any, names: Iterable[str]) -> dict[str, ScoreDistributions]:
        models = models_of([measure], self._runs, self._target, labels=self._labels)
        return distributions_of(measure, {name: self._runs[name] for name in names}, self._target, models)

    def row(self, name: str, baseline: str, qids: list[str], n_tests: int, part: str = "") -> dict[str, Any]:
        """The difference of two systems over some queries, its limits and the decision."""
        options = self._options
        # The order of queries matters for sequences alone.
        order = qids if options.interval == "sequence" else sorted(qids)
        places = [self._place[qid] for qid in order]
        weights: Floats = np.array(self._weights.loc[order], dtype=np.float64)
        differences = (self._scores[name] - self._scores[baseline])[places]
        diff, tail = float(np.average(differences, weights=weights)), options.tail / n_tests
        shares = [float(self._shares[each][places].mean()) for each in (name, baseline)]
        draws = {"n_resamples": options.n_resamples, "seed": options.seed}
        low, high = one_sided_limits(differences, weights, tail, options.bounds, options.interval, **draws, name=part)
        method = METHODS[options.interval]
        away = self._prediction_error(name, baseline, places, weights, tail) if self._is_predicted else 0.0
        if away > 0 and options.interval == "sequence":
            # Predictions change with every judgment, for which the sequence is not valid.
            low, high = options.bounds
            method += ", withheld: unjudged documents"
        elif away > 0:
            low, high = diff - float(np.hypot(diff - low, away)), diff + float(np.hypot(high - diff, away))
            method += " and prediction"
        low, high = max(low, options.bounds[0]), min(high, options.bounds[1])
        return {
            "name": name, "baseline": baseline, "measure": str(self.measure), "diff": diff, "low": low, "high": high,
            "decision": decision_of(low, high, options.margin), "margin": options.margin, "level": options.level,
            "n_qids": len(order), "unjudged": shares[0], "unjudged_baseline": shares[1], "n_tests": n_tests,
            "look": options.look, "method": f"one-sided, {method}",
            "n_resamples": options.n_resamples if options.interval == "bounded" else 0, "seed": options.seed,
        }  # fmt: skip

    def _prediction_error(self, name: str, baseline: str, places: Sequence[int], weights: Floats, tail: float) -> float:
        """The reach of the error of predicted ratings in the weighted mean difference."""
        from scipy import special

        a, b = (self._joint.names.index(each) for each in (name, baseline))
        draws = np.zeros(_N_DRAWS)
        for place, weight in zip(places, weights / weights.sum(), strict=True):
            scores = self._joint.scores(place, _N_DRAWS, self._options.seed)
            draws += weight * (scores[a] - scores[b])
        # Equal draws differ by rounding errors.
        return float(special.ndtri(1 - tail) * draws.std()) if np.ptp(draws) > _ROUNDING else 0.0

    def judge_next(self, pair: tuple[str, str], budget: int) -> pd.DataFrame:
        """The documents whose judgments narrow the interval of a weighted mean difference most."""
        try:
            distributions = self._distributions(self._like, pair)
        except InputError as error:
            warn(f"no list of documents to judge next: {error}")
            return pd.DataFrame(columns=["qid", "docno", "reason"])
        weights = np.asarray(self._weights.reindex(self._target.topics).fillna(0.0), dtype=np.float64)
        about: dict[str, Any] = {"measure": str(self._like), "difference": pair, "weights": weights}
        return plan_judging(distributions, budget, level=self._options.level, **about).frame


def _named(given: Any, name: str) -> list[tuple[str, Any]]:
    """Names and runs; a single frame has the name of its parameter."""
    found = {name: given} if hasattr(given, "columns") else named_runs(given)
    return list(found.items() if hasattr(found, "items") else found)


def _rated(frame: pd.DataFrame, scale: tuple[int, int] | None) -> RatedList:
    require(frame, ("qid", "docno", "label"), "qrels")
    require_scale(frame, scale, "qrels")
    require_spelling("qrels", frame["qid"].astype(str).unique())
    return RatedList(frame)


def _traffic_of(traffic: Any) -> pd.DataFrame:
    """Weights and segments of queries, by query."""
    table = table_of(traffic, "traffic", read_traffic, ("qid",))
    refuse_near_misses(table, ("weight",), "traffic")
    if not {"weight", "segment"} & set(table.columns):
        found = ", ".join(map(str, table.columns))
        raise InputError(f"traffic: wanted a column weight, a column segment, or both; found {found}")
    table = table.set_index(pd.Index(ids_of(table["qid"], "traffic column 'qid'").text.to_pylist()))
    if table.index.has_duplicates:
        twice = table.index[table.index.duplicated()][0]
        raise InputError(f"traffic: query {twice!r} is duplicated; keep one row per query")
    return table


def _queries(
    rated: pd.DataFrame, traffic: Any, runs: Mapping[str, Run]
) -> tuple[pd.DataFrame, list[tuple[str, list[str]]]]:
    """Weights and segments of the rated queries, and exclusions: a reason and its queries."""
    qids = ids_of(rated["qid"], "qrels column 'qid'").codes()[0]
    known, notes = set(qids), []
    found = pd.DataFrame({"weight": 1.0, "segment": ""}, index=qids)
    if traffic is not None:
        table = _traffic_of(traffic)
        require_spelling("traffic", table.index, known)
        lacking = [qid for qid in qids if qid not in table.index]
        if lacking:
            raise InputError(
                f"traffic: no row for {len(lacking)} of {len(qids)} rated queries ({examples(lacking)}); add them, "
                "with weight 0 to leave them out"
            )
        if "weight" in table.columns:
            found["weight"] = pd.to_numeric(table["weight"].loc[qids], errors="coerce").astype(float)
            odd = found.index[~(np.isfinite(found["weight"]) & (found["weight"] >= 0))]
            if len(odd):
                given = printable(table["weight"][odd[0]])
                raise InputError(f"traffic: the weight of {odd[0]!r} is {given}, wanted a number of at least 0")
        if "segment" in table.columns:
            found["segment"] = table["segment"].loc[qids].fillna("").astype(str)
            notes.append(("queries without a segment", list(found.index[found["segment"] == ""])))
        notes.append(("queries of traffic without ratings", [qid for qid in table.index if qid not in known]))
    none = found["weight"] == 0
    notes.append(("queries of weight 0", list(found.index[none])))
    found = found[~none]
    if len(found) < _LEAST_QUERIES:
        raise InputError(f"wanted at least two rated queries with a weight above 0, found {len(found)}")
    for name, run in runs.items():
        require_spelling(f"run {name!r}", run.topics, known)
        if not known.intersection(run.topics):
            raise InputError(
                f"run {name!r}: none of its queries ({examples(run.topics)}) is rated; rated are {examples(qids)}: use "
                "the same ids, or the same texts"
            )
        notes.append((f"queries of {name} without ratings", [qid for qid in run.topics if qid not in known]))
        empty = list(found.index[~found.index.isin(run.topics)])
        notes.append((f"queries for which {name} has no document, scored as empty rankings", empty))
    return found, notes
