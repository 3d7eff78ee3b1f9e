"""Release gate: test that a new system is not inferior to its baselines."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    choice,
    examples,
    excerpt,
    number,
    whole,
)
from vbterrier.evaluate.inputs import (
    evaluation_target,
    is_path,
    named_runs,
    require_scale,
    require_spelling,
)
from vbterrier.evaluate.release_decision import N_WORST_QUERIES, RANKING_COLUMNS, ReleaseGate
from vbterrier.evaluate.release_scores import COVARIATES, ReleaseScores, pair_covariates
from vbterrier.evaluate.value_tables import require_means
from vbterrier.frames.answer import UNKNOWN
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import in_units, is_nested_table, pandas_frame, require
from vbterrier.frames.files.rated_lists import RatedList, read_rated_list
from vbterrier.frames.queries import queries_frame
from vbterrier.frames.ranges import require_difference, score_bounds
from vbterrier.frames.ranking import checked_run
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.frames.systems import named_once
from vbterrier.log import log_elapsed
from vbterrier.measures.target import align_topics
from vbterrier.measures.text import measures_from, require_proportional
from vbterrier.measures.unjudged import UnjudgedMeasure, require_use
from vbterrier.settings import Data, Inference, Options, with_defaults
from vbterrier.stats.inverted_intervals import spent_level
from vbterrier.stats.noninferiority import ANY, BOTH, GUARANTEES, Criteria
from vbterrier.unjudged.pool import machine_labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ir_measures

    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.judge_next import JudgingPlan


_LOG = logging.getLogger(__name__)
N_RESAMPLES = 10_000
_LEAST_QUERIES = 2


def _side_by_side(release: ReleaseScores, pair: tuple[str, str], worst: pd.DataFrame) -> pd.DataFrame:
    """Both rankings of some queries, a row per rank."""
    qids = worst["qid"].tolist()
    new, old = (release.tops(name, qids, release.depth).set_index(["qid", "rank"]) for name in pair)
    both = new.set_axis(["new", "new_label"], axis=1).join(old.set_axis(["old", "old_label"], axis=1), how="outer")
    table = both.reset_index().astype({"new_label": "Int64", "old_label": "Int64"})
    table = worst.merge(table, on="qid").assign(baseline=pair[1])
    return table.fillna({"new": "", "old": ""})[RANKING_COLUMNS]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GateOptions(Options):
    """Options of :func:`vbterrier.evaluate.release_gate`.

    Parameters
    ----------
    guarantee
        ``"mean+losses"``, the default: the criteria of the mean and of large losses; or ``"any"``, the mean alone, with
        limits that are valid for any distribution of differences within the range of the measure, and need more
        queries.
    worst_loss
        No query counts for a larger loss, in units of the measure, above ``margin``; by default the range of the
        measure. A smaller one changes the guarantee to the mean of losses cut at this value, needs fewer queries,
        and leaves larger losses to ``max_share`` alone. Needed for a measure without a known range.
    large_loss, max_share
        A query loses much if its difference is below ``-large_loss``, in units of the measure, by default .5; the
        acceptable share of such queries, by default .05, at most 1, which leaves this criterion out. With no such
        query, a sample of ``log(1 - level)/log(1 - max_share)`` queries passes this criterion, 59 by default; the mean
        needs more than ``log(1 - level)/log(1 - margin/worst_loss)``, 149 for a margin of .02 and 59 for .05.
    look
        The number of this inspection, from 1, if the gate is repeated with more queries or judgments until it passes or
        fails: limits have the level ``1 - 6 (1 - level)/(π look)²``.
    daily
        Use confidence sequences of both criteria instead, for any distribution: valid for any number of looks if
        ratings of further queries are appended to the file and those of previous queries, up to the cutoff complete, do
        not change. UNKNOWN while documents up to the cutoff are unjudged.
    covariate
        A covariate, chosen before the decision, that is known for more queries than are rated: the mean moves along its
        regression, and its variance is that of the residuals. ``"labels"``: the difference of the systems by the labels
        of ``data``, of one machine. ``"earlier"``: the column ``covariate`` of ``queries``, such as earlier scores of
        the baseline. Known for the rated queries alone, it has no use.
    guardrails
        Further measures and their margins, as ``{"RR@10": 0.05}``: the gate passes only if each passes, too, and fails
        if one fails. PASS needs no correction, since all measures must pass; the probability of a false FAIL is divided
        among the measures.

    Examples
    --------
    >>> GateOptions(max_share=0.1).max_share
    0.1
    """

    guarantee: str = BOTH
    worst_loss: float | None = None
    large_loss: float = 0.5
    max_share: float = 0.05
    look: int | None = None
    daily: bool = False
    covariate: str | None = None
    guardrails: Mapping[str, float] | None = None


@with_defaults
def release_gate(
    new: Any,
    qrels: Any,
    measure: str | ir_measures.Measure = "ENDCG@10",
    *,
    baseline: Any,
    margin: float,
    budget: int = 20,
    options: GateOptions = GateOptions(),
    data: Data = Data(
        labels=None, pool_cutoff=None, queries=None, duplicates="error", system=None, scale=None, unit=1.0
    ),
    inference: Inference = Inference(level=0.95, n_resamples=N_RESAMPLES, seed=0),
) -> ReleaseGate:
    r"""Decide if a new system is at most a margin worse than its baselines: PASS, FAIL or UNKNOWN.

    The queries are a sample of those that they represent, of which the weighted mean of new - baseline is
    :math:`\Delta = E[w d]/E[w]`, and the share with a large loss :math:`\pi = E[w 1(d < -large)]/E[w]`. By default, the
    decision is PASS if the lower one-sided limit of Δ is above ``-margin``, which accounts for queries that were not
    sampled and lose everything (:func:`vbterrier.kernels.mean_limits.lower_limit`), and the upper limit of π is at most
    ``max_share`` (Clopper and Pearson); FAIL if the upper limit of Δ is below ``-margin`` or the lower limit of π above
    ``max_share``; else UNKNOWN, with a reason. The nominal probability of a false PASS (:math:`\Delta \le -margin` or
    :math:`\pi > max\_share`) and that of a false FAIL (neither) are each ``1 - level``, for several baselines
    together and, with ``look`` or ``daily``, for all looks together. For false PASS, at most .063 was measured with
    independent queries of equal weight, .061 with samples by traffic, .056 with uniform samples of unequal weights if
    the weights of all queries are known, and .079 if they are not; see docs/how-to/release-gate.md.

    Parameters
    ----------
    new, baseline
        The new run and its baselines: a frame (qid, docno, score), a path that :func:`vbterrier.read_run`
        reads, or a mapping of names to these; several baselines may be a list of paths. Limits have the level
        ``1 - (1 - level)/k`` for k baselines (Bonferroni).
    qrels
        Ratings: a frame (qid, docno, label) or a path that :func:`vbterrier.frames.read_rated_list` reads.
    measure
        A measure whose value is a mean over queries. Measures of unjudged documents, such as ``ENDCG@10``, predict the
        ratings of unjudged documents, and their limits contain the error of the prediction; other measures treat
        unjudged documents as non-relevant, which is a disadvantage for a system that retrieves more of them.
    margin, budget
        The largest loss that is acceptable, in units of the measure, at least 0 and below its range; the number of
        documents to judge next, if the decision is UNKNOWN.
    options
        A :class:`vbterrier.evaluate.GateOptions`: ``guarantee``, ``worst_loss``, ``large_loss``, ``max_share``,
        ``look``, ``daily``, ``covariate``, ``guardrails``.
    data
        A :class:`vbterrier.Data`: ``labels``, ``pool_cutoff``, ``queries``, ``duplicates`` (``"error"``), ``system``,
        ``scale``, ``unit`` (1.0), for measures that are proportional to ratings. ``queries``: weights, clusters,
        segments, draws and a covariate of all rated queries. Queries of weight 0 are left out; clusters replace queries
        in all limits; with ``drawn``, of :func:`vbterrier.design.sample_by_traffic`, queries with an inclusion
        probability of 1 count as known, and all of them must be rated. Without ``drawn``, rows of unrated queries are
        the rest of the population, by whose weights the limits count what the sample may lack; without such rows,
        they are heavier than the heaviest rated one, by the tail of the rated weights
        (:func:`vbterrier.kernels.mean_limits.tail_index`). UNKNOWN for unequal weights with fewer than 8 degrees of
        freedom, and for fewer than 10 clusters.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``n_resamples`` (10,000), ``seed`` (0). The level is that of
        each one-sided limit, above .5; resamples are draws of bounded limits.

    Returns
    -------
    ReleaseGate
        ``decision``, ``exit_code``, and ``pairs``: a row per baseline.

    Raises
    ------
    InputError, ParameterError
        Files or frames that cannot be evaluated; a rating outside the scale; a query in two spellings; weights that
        are negative or all 0; a rated query without weight; fewer than two queries; invalid options; a measure without
        known range for ``guarantee="any"`` or ``daily``.

    Warns
    -----
    DegenerateWarning
        A measure treats unjudged documents as non-relevant; a run without judged documents; labels of larger shares of
        some runs' documents than of others'.

    Notes
    -----
    The error of predicted ratings is added to that of the sample of queries as independent errors are: the distance of
    a limit from the difference is ``√(a² + b²)``, with b the standard deviation of the weighted mean difference in
    joint draws of the grades of unjudged documents, times a normal quantile; likewise for π. With unequal weights, the
    number of queries in limits is ``(1 - ξ) Σw/max w``, with the index ξ of the tail of weights, or that at which as
    large a share of the known population has no sampled query
    (:meth:`vbterrier.kernels.mean_limits.SampledQueries.unseen_share`). Without any spread, limits of Δ are
    ``Δ ± B (1 - (1 - level)^(1/n))`` with the worst loss B: for two equal systems and the margin .02, PASS needs 149
    queries. FAIL has two tests, so its limits have the level ``1 - (1 - level)/2`` by default.

    Ratings are the reason of an UNKNOWN if those of all unjudged documents, drawn from the model, decide with a
    probability of at least .1; otherwise more queries are, if ten times as many, or 1,000, resampled from these, decide
    with a probability of .8. Simulated rates of decisions: tests/bench/decisions.py, docs/how-to/release-gate.md.

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
    >>> result = release_gate({"new": new}, qrels, "nDCG@2", baseline={"old": old}, margin=0.02)
    >>> result.decision, result.pairs[["diff", "low", "high"]].round(3).to_numpy().tolist()
    ('FAIL', [[-0.092, -0.126, -0.049]])
    """
    labels, pool_cutoff, duplicates = data.labels, data.pool_cutoff, data.duplicates
    scale, unit = data.scale, data.unit
    level, n_resamples, seed = inference.level, inference.n_resamples, inference.seed
    level = number("level", level, low=0.5, high=1, open_low=True, open_high=True)
    whole("budget", budget, low=0)
    main = measures_from(measure)[0]
    margins = {main: margin} | {measures_from(name)[0]: at for name, at in (options.guardrails or {}).items()}
    if len(margins) != 1 + len(options.guardrails or ()):
        raise ParameterError("guardrails=: wanted measures other than that of the decision, each once")
    criteria = {
        each: replace(
            _criteria(
                options, each, at, level, n_resamples, seed, "margin" if each == main else f"guardrails['{each}']"
            ),
            n_failures=len(margins),
        )
        for each, at in margins.items()
    }
    if unit != 1:
        require_proportional(list(margins))
    ratings = read_rated_list(qrels, scale=scale, unit=unit) if is_path(qrels) else _rated_list(qrels, scale, unit)
    newest, others = (
        list(named_runs(_wrap_single_run(runs, which), system=data.system, extra=False).items())
        for runs, which in ((new, "new"), (baseline, "baseline"))
    )
    if len(newest) != 1 or not others:
        raise ParameterError("new=, baseline=: wanted one new run, and at least one baseline")
    tables = named_once([*newest, *others])
    loaded = {name: checked_run(name, table, duplicates) for name, table in tables.items()}
    every = None if data.queries is None else queries_frame(data.queries).set_index("qid")
    rated = evaluation_target(ratings.labels, None, None)
    queries, notes = _queries(rated.topics, every, loaded)
    unrated = _unrated_queries(every, rated.topics)
    _check_sampling(options, queries)
    pairs = [(newest[0][0], name) for name, _ in others]
    covariates = {
        each: pair_covariates(options.covariate, pairs, tables, each, labels, every, queries) for each in margins
    }
    loaded = {name: run.only(set(queries.index)) for name, run in loaded.items()}
    # Scores of other measures come with the warnings of their own evaluation.
    target, loaded = align_topics(rated.only(queries.index), loaded, "all", warns=isinstance(main, UnjudgedMeasure))
    constants: dict[str, Any] = {"guarantee": options.guarantee, "look": options.look}
    constants |= {"n_resamples": n_resamples, "seed": seed, "level": level}
    with log_elapsed(_LOG, "decided on %s over %s queries", newest[0][0], len(queries)):
        # Labels are evidence about unjudged documents, or a covariate.
        evidence = machine_labels(labels) if options.covariate != "labels" else None
        releases = [
            ReleaseScores(
                target, loaded, each, queries, evidence, criteria[each], covariates[each], pool_cutoff, unrated
            )
            for each in margins
        ]
        require_use([each.complete or each.measure for each in releases], pool_cutoff=pool_cutoff)
        decided, single = _decide_gate(releases, pairs, target.topics, queries, constants, budget)
    notes.append(("segments with fewer than two queries, or draws, without limits", single))
    excluded = [(reason, len(ids), examples(ids)) for reason, ids in notes if ids]
    if ratings.n_unrated:
        excluded.append(("rows without a rating", ratings.n_unrated, ""))
    indexed = [run[["qid", "docno", "index"]] for run in tables.values() if "index" in getattr(run, "columns", ())]
    if indexed and len(decided.judge):
        documents = pd.concat(indexed).drop_duplicates(["qid", "docno"])
        decided = replace(decided, judge=decided.judge.merge(documents, on=["qid", "docno"], how="left"))
    left_out = pd.DataFrame(excluded, columns=["reason", "n", "examples"])
    return replace(decided, excluded=left_out, ratings=ratings)


def _criteria(
    options: GateOptions,
    measure: ir_measures.Measure,
    margin: float,
    level: float,
    n_resamples: int,
    seed: int,
    name: str,
) -> Criteria:
    """The criteria of one test of a measure; ``name``: the parameter of its margin."""
    guarantee, worst_loss, look = choice("guarantee", options.guarantee, GUARANTEES), options.worst_loss, options.look
    max_share = number("max_share", options.max_share, low=0, high=1, open_low=True)
    large_loss = number("large_loss", options.large_loss, low=0, open_low=True)
    margin = number(name, margin, low=0)
    if options.daily and look is not None:
        raise ParameterError("look= and daily=True: give one of them; daily limits are valid for any number of looks")
    require_means([str(measure)])
    refuse_ratios([str(measure)], "vbterrier.compare(margin=)")
    if getattr(measure, "better", "higher") != "higher":
        raise ParameterError(f"{measure}: wanted a measure of which higher values are better")
    require_difference(name, margin, str(measure))
    require_difference("large_loss", large_loss, str(measure))
    bounds = score_bounds(f"{measure} - ")
    is_bounded = bool(np.isfinite(bounds).all())
    if worst_loss is not None:
        worst_loss = number("worst_loss", worst_loss, low=0, high=bounds[1], open_low=True)
        if worst_loss <= margin:
            raise ParameterError(f"worst_loss={worst_loss:g}: wanted more than {name}={margin:g}")
    elif not is_bounded:
        raise ParameterError(
            f"{measure}: its range of scores is unknown, so that losses are not bounded; give worst_loss="
        )
    if not is_bounded and (options.daily or guarantee == ANY):
        raise ParameterError(
            f"{measure}: its range of scores is unknown; use guarantee={excerpt(BOTH)} without daily=True"
        )
    tail = 1 - (level if look is None else spent_level(level, look))
    return Criteria(
        margin, tail, guarantee, worst_loss, large_loss, max_share, options.daily, bounds, n_resamples, seed
    )


def _check_sampling(options: GateOptions, queries: pd.DataFrame) -> None:
    """Refuse columns and covariates that a guarantee has no limits for."""
    if options.covariate is not None:
        choice("covariate", options.covariate, COVARIATES)
    by = "daily=True" if options.daily else f"guarantee={ANY!r}" if options.guarantee == ANY else ""
    refused = ("cluster", "drawn") if options.daily else ("cluster",)
    for name in refused if by else ():
        if name in queries.columns:
            raise ParameterError(f"{by} has no limits for column {name!r} of queries; leave one of them out")
    if options.covariate is not None and (by or "drawn" in queries.columns):
        raise ParameterError(f"covariate={options.covariate!r} and {by or 'drawn queries'}: wanted one of them")


def _decide_gate(
    releases: list[ReleaseScores],
    names: list[tuple[str, str]],
    topics: list[str],
    queries: pd.DataFrame,
    constants: dict[str, Any],
    budget: int,
) -> tuple[ReleaseGate, list[str]]:
    """The decisions on all measures, baselines and segments, and the segments with one query."""
    groups = queries[queries["segment"] != ""].groupby("segment")
    # Queries that were taken for certain do not show how others of their segment vary.
    n_drawn = groups["drawn"].sum() if "drawn" in queries.columns else groups.size()
    parts = {str(part): rows["weight"] for part, rows in groups if n_drawn[part] >= _LEAST_QUERIES}
    rows, of_segments = [], []
    plans: list[pd.DataFrame] = []
    for release in releases:
        role = "decision" if release is releases[0] else "guardrail"
        for pair in names:
            row = {**release.row(*pair, topics, len(names)), "role": role, **constants}
            reason: tuple[str, str, float, JudgingPlan | None] = ("", "", np.nan, None)
            if row["decision"] == UNKNOWN:
                reason = release.explain_unknown(row, topics, budget)
            rows.append({**row, "reason": reason[0], "advice": reason[1], "n_needed": reason[2]})
            plans += [reason[3].documents] if reason[3] is not None and role == "decision" else []
            n_tests = len(names) * len(parts)
            shares = {part: weights.sum() / queries["weight"].sum() for part, weights in parts.items()}
            of_parts = [
                {"segment": part, **release.row(*pair, list(weights.index), n_tests, part), "role": role, **constants}
                for part, weights in parts.items()
            ]
            p_equal = release.p_equal(pair, {part: list(weights.index) for part, weights in parts.items()})
            of_segments += [{**each, "weight": shares[each["segment"]], "p_equal": p_equal} for each in of_parts]
    pairs = pd.DataFrame(rows)
    columns = ["segment", *pairs.columns.drop(["reason", "advice", "n_needed"]), "weight", "p_equal"]
    segments = pd.DataFrame(of_segments, columns=columns)
    nothing = pd.DataFrame(columns=["qid", "docno", "reason"])
    by_query, rankings = _losses(releases[0], names, queries)
    decided = ReleaseGate(pairs, segments, nothing, nothing, queries=by_query, rankings=rankings)
    if decided.decision == UNKNOWN and budget and plans:
        decided = replace(decided, judge=plans[0])
    return decided, [str(part) for part, _ in groups if part not in parts]


def _losses(
    release: ReleaseScores, names: list[tuple[str, str]], queries: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The differences of all queries by baseline, the largest losses first, and rankings of the queries lost most."""
    rows, tops = [], []
    for pair in names:
        qids = list(map(str, queries.index))
        table = pd.DataFrame({"baseline": pair[1], "qid": qids, "segment": queries["segment"].to_numpy()})
        table = table.assign(diff=release.by_query(pair, qids)).sort_values("diff", kind="stable")
        rows.append(table)
        worst = table[table["diff"] < 0].head(N_WORST_QUERIES)
        if len(worst):
            tops.append(_side_by_side(release, pair, worst[["qid", "diff"]]))
    every = pd.concat(rows).sort_values("diff", kind="stable", ignore_index=True)
    return every, pd.concat(tops, ignore_index=True) if tops else pd.DataFrame(columns=RANKING_COLUMNS)


def _wrap_single_run(runs: Any, name: str) -> Any:
    """Runs by name; a single frame has the name of its parameter."""
    return {name: runs} if hasattr(runs, "columns") or is_nested_table(runs) else runs


def _rated_list(qrels: Any, scale: tuple[int, int] | None, unit: float) -> RatedList:
    frame = pandas_frame(qrels, "qrels", QRELS)
    require(frame, ("qid", "docno", "label"), "qrels")
    require_scale(frame, scale, "qrels")
    require_spelling("qrels", frame["qid"].astype(str).unique())
    return RatedList(frame if unit == 1 else in_units(frame, unit))


def _unrated_queries(table: pd.DataFrame | None, rated: list[str]) -> pd.DataFrame | None:
    """Weights and segments of the queries that are not rated; ``None`` if their weights are unknown or all 0."""
    if table is None or "weight" not in table.columns or "drawn" in table.columns or "cluster" in table.columns:
        return None
    others = table[~table.index.isin(rated) & (table["weight"] > 0)]
    segments = others["segment"] if "segment" in table.columns else ""
    return pd.DataFrame({"weight": others["weight"]}).assign(segment=segments) if len(others) else None


def _queries(
    qids: list[str], table: pd.DataFrame | None, runs: Mapping[str, Run]
) -> tuple[pd.DataFrame, list[tuple[str, list[str]]]]:
    """The W frame of the rated queries, with weight and segment, and exclusions: a reason and its queries."""
    rated_queries, notes = set(qids), []
    weights = pd.DataFrame({"weight": 1.0, "segment": ""}, index=qids)
    if table is not None:
        if not len(table.columns):
            raise InputError("queries: wanted a column weight, cluster, segment, drawn or covariate; found qid alone")
        require_spelling("queries", table.index, rated_queries)
        lacking = [qid for qid in qids if qid not in table.index]
        if lacking:
            raise InputError(
                f"queries: no row for {len(lacking)} of {len(qids)} rated queries ({examples(lacking)}); add them, "
                "with weight 0 to leave them out"
            )
        unrated = [qid for qid in table.index if qid not in rated_queries]
        if "drawn" in table.columns and unrated:
            raise InputError(
                f"queries: {len(unrated)} of {len(table)} drawn queries are not rated ({examples(unrated)}); rate "
                "them, since the others alone are no sample by traffic"
            )
        weights = weights.assign(**{name: table.loc[qids, name] for name in table.columns})
        if "segment" in table.columns:
            notes.append(("queries without a segment", list(weights.index[weights["segment"] == ""])))
        # A covariate is known for more queries than are rated.
        if "covariate" not in table.columns:
            notes.append(("queries without ratings", unrated))
    none = weights["weight"] == 0
    notes.append(("queries of weight 0", list(weights.index[none])))
    weights = weights[~none]
    if len(weights) < _LEAST_QUERIES:
        raise InputError(f"wanted at least two rated queries with a weight above 0, found {len(weights)}")
    for name, run in runs.items():
        require_spelling(f"run {name!r}", run.topics, rated_queries)
        if not rated_queries.intersection(run.topics):
            raise InputError(
                f"run {name!r}: none of its queries ({examples(run.topics)}) is rated; rated are {examples(qids)}: use "
                "the same ids, or the same texts"
            )
        notes.append((f"queries of {name} without ratings", [qid for qid in run.topics if qid not in rated_queries]))
        empty = list(weights.index[~weights.index.isin(run.topics)])
        notes.append((f"queries for which {name} has no document, scored as empty rankings", empty))
    return weights, notes
