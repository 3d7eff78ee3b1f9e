"""Scores of a release and its baselines: limits of their differences, and the reasons of undecided ones."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, warn
from vbterrier.evaluate.inputs import require_spelling, warn_of_uneven_labels
from vbterrier.evaluate.ranking import system_distributions
from vbterrier.evaluate.scores import scored_runs
from vbterrier.evaluate.unjudged_shares import DEFAULT_CUTOFF, ESTIMATED
from vbterrier.frames.answer import FAIL, PASS, UNKNOWN
from vbterrier.frames.notebook import count_text
from vbterrier.frames.queries import sampled_queries
from vbterrier.frames.systems import ONE
from vbterrier.kernels.mean_limits import LEAST_CLUSTERS, LEAST_DF, Covariate, SampledQueries
from vbterrier.kernels.tolerances import ROUNDING
from vbterrier.measures.target import Scoring, warn_of_few_non_relevant
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, estimand, evidence_models
from vbterrier.remedies import sampling_by_traffic
from vbterrier.settings import Data
from vbterrier.stats.noninferiority import ANY, DECISION_PROBABILITY, Limits, SampledPair, decisions, n_unseen, welch_p
from vbterrier.unjudged.estimated import joint_distribution
from vbterrier.unjudged.judge_next import plan_judging
from vbterrier.unjudged.pool import machine_labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.stats.noninferiority import Criteria
    from vbterrier.unjudged.fitted import EvidenceModel
    from vbterrier.unjudged.judge_next import JudgingPlan
    from vbterrier.unjudged.pool import MachineLabels

COVARIATES = ("labels", "earlier")
# Reasons of UNKNOWN.
QUERIES, RATINGS, TOO_CLOSE = "more queries", "ratings", "too close"
# Draws of the scores of unjudged documents; sequences are slow.
_N_DRAWS, _FEW_DRAWS = 1000, 50
# Ratings are asked for if they decide with at least this probability; the share of predictions of a stated reach.
_LIKELY, _HALF_WIDTH_SHARE = 0.1, 0.95
_COMPLETE = {name.upper(): estimate for name, estimate in ESTIMATED.items()}


class ReleaseScores:
    """Scores of the new system and its baselines, and the distributions of measures of unjudged documents.

    ``queries`` is the W frame by id, with weights above 0; ``unrated`` that of all other queries, if their weights are
    known; ``criteria`` are those of one test, whose tail is divided by the number of tests; ``covariates`` are those of
    pairs, by query, if there are any.
    """

    def __init__(
        self,
        target: EvaluationTarget,
        runs: Mapping[str, Run],
        measure: ir_measures.Measure,
        queries: pd.DataFrame,
        labels: MachineLabels | None,
        criteria: Criteria,
        covariates: Mapping[tuple[str, str], pd.Series[float]] | None = None,
        pool_cutoff: int | None = None,
        unrated: pd.DataFrame | None = None,
    ) -> None:
        self.measure, self._criteria, self.estimand = measure, criteria, ""
        self._table, self._unrated, self._covariates = queries, unrated, covariates or {}
        self._target, self._runs, self._labels, self._pool_cutoff = target, runs, labels, pool_cutoff
        self._place = {qid: at for at, qid in enumerate(target.topics)}
        self._is_predicted = isinstance(measure, UnjudgedMeasure)
        if self._is_predicted:
            if measure["stat"] != "mean":
                raise ParameterError(f"{measure}: wanted the score itself; leave out stat={measure['stat']!r}")
            warn_of_few_non_relevant([measure], target)
            models = self._models(measure)
            self.estimand = estimand(measure, models)
            distributions = system_distributions(measure, runs, target, models)
            self._scores = {name: each.mean for name, each in distributions.items()}
            self._joint = joint_distribution(distributions)
        else:
            rated_scores = scored_runs(runs, target, [measure], data=Data(on_topics="all", system=ONE)).table
            self._scores = dict(zip(runs, rated_scores.rows(str(measure), list(runs), target.topics), strict=True))
        self.depth = depth = measure.params.get("cutoff", DEFAULT_CUTOFF)
        judged = {name: Scoring(target, run, depth).judged_top(depth) for name, run in runs.items()}
        self._shares = {name: cut.unjudged_share() for name, cut in judged.items()}
        if labels is not None:
            require_spelling("labels", labels.frame()["qid"].unique(), target.topics)
            warn_of_uneven_labels(labels, runs, depth)
        shares = {name: share.mean() for name, share in self._shares.items() if share.any()}
        if shares and not self._is_predicted:
            listed = ", ".join(f"{share:.1%} of {name}" for name, share in shares.items())
            warn(f"{measure} treats unjudged documents as non-relevant: {listed}; use ENDCG@{depth}, or judge them")

    def _models(self, measure: ir_measures.Measure) -> dict[str, EvidenceModel]:
        return evidence_models([measure], self._runs, self._target, labels=self._labels, pool_cutoff=self._pool_cutoff)

    @cached_property
    def complete(self) -> ir_measures.Measure | None:
        """The measure whose draws are scores under complete judgments, if there is one."""
        if self._is_predicted:
            return self.measure
        name, params = self.measure.NAME, str(self.measure).removeprefix(self.measure.NAME)
        try:
            return measures_from(f"{_COMPLETE[name.upper()]}{params}")[0]
        except (KeyError, ParameterError, InputError):
            return None

    def row(self, name: str, baseline: str, qids: list[str], n_tests: int, part: str = "") -> dict[str, Any]:
        """The difference of two systems over some queries, its limits and the decision."""
        criteria = replace(self._criteria, tail=self._criteria.tail / n_tests)
        systems, places, sample = (name, baseline), *self._queries(qids, (name, baseline) if not part else None, part)
        pair = self._pair(systems, places, sample, criteria)
        interval, differences = pair.limits(part), pair.differences
        diff = float(sample.estimate(differences[:, None])[0])
        method = "confidence sequence" if criteria.sequential else "t, unseen losses"
        method = "bounded" if criteria.guarantee == ANY and not criteria.sequential else method
        if pair.away[0] > 0 and criteria.sequential:
            # Predictions change with every judgment, for which the sequence is not valid.
            ends = np.array([*criteria.bounds, float(interval.share[0]), 0.0, 1.0])
            interval = Limits(interval.mean, *ends[:, None])
            method += ", withheld: unjudged documents"
        elif pair.away[0] > 0:
            interval = interval.with_added_errors(pair.away)
            method += " and prediction"
        correlation, without = np.nan, np.nan
        if sample.covariate is not None:
            correlation = float(np.corrcoef(np.ravel(sample.covariate.values), differences)[0, 1])
            without = float(replace(pair, sample=sample._replace(covariate=None)).limits().low[0])
            method += ", covariate"
        shares = [float(self._shares[each][places].mean()) for each in systems]
        decision = UNKNOWN if _shortage(pair) else interval.decisions(criteria)[0]
        withheld = (
            decision if not self._is_predicted and _depends_on_unjudged(decision, interval, shares, criteria) else ""
        )
        decision = UNKNOWN if withheld else decision
        large = criteria.counts_losses
        uncertain = sample.split_certain(differences[:, None])[2]
        return {
            "name": name, "baseline": baseline, "measure": str(self.measure), "estimand": self.estimand,
            "diff": float(diff), "counted": float(interval.mean[0]),
            "low": max(float(interval.low[0]), criteria.bounds[0]),
            "high": min(float(interval.high[0]), criteria.bounds[1]),
            "worst_loss": criteria.worst_loss, "low_full": _low_with_full_losses(pair),
            "correlation": correlation, "low_without": without,
            "misses_heavy": bool(sample.unsampled is None and np.ptp(sample.weights) > 0),
            "n_effective": float(sample.drawn_queries.moments(uncertain).n_effective[0]),
            "unseen": _unseen_share(pair),
            "decision": decision, "withheld": withheld, "margin": criteria.margin, "n_qids": len(places),
            "unjudged": shares[0], "unjudged_baseline": shares[1],
            "losses": float(interval.share[0]) if large else np.nan,
            "losses_low": float(interval.share_low[0]) if large else np.nan,
            "losses_high": float(interval.share_high[0]) if large else np.nan,
            "large_loss": criteria.large_loss if large else np.nan,
            "max_share": criteria.max_share if large else np.nan, "n_tests": n_tests, "method": f"one-sided, {method}",
        }  # fmt: skip

    def _queries(
        self, qids: list[str], systems: tuple[str, str] | None = None, segment: str = ""
    ) -> tuple[list[int], SampledQueries]:
        """The places of queries, whose order matters for sequences alone, and how they were sampled.

        ``systems``: with the covariate of this pair; ``segment``: that of the queries, if they are one.
        """
        order, others = qids if self._criteria.sequential else sorted(qids), None
        if self._unrated is not None and not self._criteria.sequential and self._criteria.guarantee != ANY:
            unrated = self._unrated[self._unrated["segment"] == segment] if segment else self._unrated
            others = unrated["weight"].to_numpy()
        sample = sampled_queries(self._table.loc[order], unsampled=others)
        covariate = self._covariates.get(systems) if systems is not None else None
        if covariate is not None:
            known_mean = self._known_covariate(covariate, order)
            sample = sample._replace(certain=None, covariate=known_mean)
        return [self._place[qid] for qid in order], sample

    def _known_covariate(self, values: pd.Series[float], qids: list[str]) -> Covariate:
        """A covariate of sampled queries, with its weighted mean over all queries for which it is known."""
        weights = self._table["weight"]
        if np.ptp(weights) > 0 or (self._unrated is not None and np.ptp(self._unrated["weight"]) > 0):
            weights = weights if self._unrated is None else pd.concat([weights, self._unrated["weight"]])
            lacking = values.index.difference(weights.index)
            if len(lacking):
                raise InputError(
                    f"covariate: known for {len(lacking)} queries without a weight ({examples(list(lacking))}); wanted "
                    "their rows, with weights, in queries"
                )
            weights = weights.loc[values.index]
            mean, n_all = np.average(values, weights=weights), float(weights.sum() ** 2 / (weights**2).sum())
        else:
            mean, n_all = values.mean(), len(values)
        return Covariate(np.asarray(values.loc[qids], dtype=np.float64), float(mean), n_all)

    def by_query(self, systems: tuple[str, str], qids: list[str]) -> Floats:
        """The difference of two systems on each query, in the given order."""
        return self._differences(systems, [self._place[qid] for qid in qids])

    def _differences(self, systems: tuple[str, str], places: Sequence[int]) -> Floats:
        return (self._scores[systems[0]] - self._scores[systems[1]])[places]

    def tops(self, name: str, qids: Sequence[str], depth: int) -> pd.DataFrame:
        """The first documents of a system for some queries: qid, rank from 1, docno, label (NaN if unjudged)."""
        first = self._runs[name].first(depth)[["qid", "docno", "rank"]].astype({"qid": str, "docno": str})
        first = first[first["qid"].isin(qids)]
        labels = self._target.frame[["qid", "docno", "label"]].astype({"qid": str, "docno": str})
        first = first.merge(labels.drop_duplicates(["qid", "docno"]), on=["qid", "docno"], how="left")
        return first.assign(rank=first["rank"] + 1)[["qid", "rank", "docno", "label"]]

    def p_equal(self, systems: tuple[str, str], parts: Mapping[str, list[str]]) -> float:
        """P-value of equal mean differences in all segments, by Welch's test; NaN for fewer than two segments."""
        moments = []
        for segment, qids in parts.items():
            places, sample = self._queries(qids, segment=segment)
            differences = self._differences(systems, places)[:, None]
            _, left, values = sample.split_certain(differences)
            drawn = sample.drawn_queries.moments(values)
            moments.append((float(sample.mean(differences)[0]), left**2 * float(drawn.variance[0]), float(drawn.df[0])))
        return welch_p(*np.array(moments).T) if len(moments) > 1 else np.nan

    def _pair(
        self, systems: tuple[str, str], places: list[int], sample: SampledQueries, criteria: Criteria
    ) -> SampledPair:
        """Differences of two systems, with probabilities of a large loss and the reaches of prediction errors."""
        differences = self._differences(systems, places)
        exact = SampledPair(criteria, differences, sample, (differences < -criteria.large_loss).astype(np.float64))
        if not self._is_predicted:
            return exact
        draws = self._draws(self._joint, systems, places)
        means = sample.mean(draws)
        # Equal draws differ by rounding errors.
        if np.ptp(means) <= ROUNDING:
            return exact
        from scipy import special

        losses = draws < -criteria.large_loss
        z, z_fail = (float(special.ndtri(1 - tail)) for tail in criteria.tails)
        spread, of_losses = float(means.std()), float(sample.mean(losses.astype(np.float64)).std())
        away = (z * spread, z_fail * spread, z_fail * of_losses, z * of_losses)
        return replace(exact, lost=losses.mean(axis=1), away=away)

    def _draws(self, joint: Any, systems: tuple[str, str], places: Sequence[int], n_draws: int = _N_DRAWS) -> Floats:
        """Differences of queries under drawn ratings of all unjudged documents, shape (n, n_draws)."""
        a, b = (joint.names.index(each) for each in systems)
        differences = np.empty((len(places), n_draws))
        for row, place in enumerate(places):
            scores = joint.scores(place, _N_DRAWS, self._criteria.seed)[:, :n_draws]
            differences[row] = scores[a] - scores[b]
        return differences

    def explain_unknown(
        self, row: Mapping[Any, Any], qids: list[str], budget: int
    ) -> tuple[str, str, float, JudgingPlan | None]:
        """The reason of an UNKNOWN, its text, the queries needed (NaN if unknown), and the plan if ratings decide."""
        systems = row["name"], row["baseline"]
        criteria = replace(self._criteria, tail=self._criteria.tail / row["n_tests"])
        places, sample = self._queries(qids, systems)
        rated, plan = "", None
        if row["unjudged"] + row["unjudged_baseline"] > 0:
            likely, rated, plan = self._if_rated(systems, places, sample, criteria, budget)
            if likely >= _LIKELY and not row["withheld"]:
                return RATINGS, f"ratings are needed: those {rated}", np.nan, plan
        if row["withheld"]:
            return RATINGS, f"{_withheld_text(row)}; the ratings {rated}", np.nan, plan
        pair = self._pair(systems, places, sample, criteria)
        if shortage := _shortage(pair):
            return QUERIES, shortage, np.nan, None
        is_equal = sample.unsampled is None and np.ptp(sample.weights) == 0
        if not is_equal and _is_decided_by_unseen(row, criteria):
            return QUERIES, *_if_drawn_by_traffic(row, pair), None
        needed = pair.number_that_decides()
        also = f"; the ratings {rated}" if rated else ""
        instead = _instead(row, pair)
        if needed is None:
            return TOO_CLOSE, f"{_too_close(row, criteria)}{instead}{also}", np.nan, None
        text = (
            f"more queries are needed: about {_rounded_count(needed)} such as these would give PASS or FAIL with "
            f"probability {DECISION_PROBABILITY:g} (now {len(places)})"
        )
        if criteria.sequential and rated:
            text += ", with all documents up to the cutoff rated"
        if criteria.counts_losses and row["low"] > -criteria.margin:
            losses = f"at most {100 * criteria.max_share:g}% of queries lose more than {criteria.large_loss:g}"
            text += f"; the mean passes, but it is not shown that {losses}"
        return QUERIES, f"{text}{instead}{also}", float(needed), None

    def _if_rated(
        self, systems: tuple[str, str], places: list[int], sample: SampledQueries, criteria: Criteria, budget: int
    ) -> tuple[float, str, JudgingPlan | None]:
        """The probability that the ratings of all unjudged documents decide, a text, and the documents to rate next."""
        if self.complete is None:
            return 0.0, f"of unjudged documents have an unknown effect on {self.measure}: use ENDCG", None
        try:
            runs = {name: self._runs[name] for name in systems}
            distributions = system_distributions(self.complete, runs, self._target, self._models(self.complete))
        except InputError as error:
            warn(f"no list of documents to judge next: {error}")
            return 0.0, "of unjudged documents cannot be predicted", None
        n_draws = _FEW_DRAWS if criteria.sequential else _N_DRAWS
        draws = self._draws(joint_distribution(distributions), systems, places, n_draws)
        decided = decisions(replace(criteria, n_resamples=1), draws, sample)
        passed, failed = decided.count(PASS) / n_draws, decided.count(FAIL) / n_draws
        means = sample.mean(draws)
        reach = float(np.quantile(np.abs(means - means.mean()), _HALF_WIDTH_SHARE))
        shares = np.asarray(self._table["weight"].reindex(self._target.topics).fillna(0.0), dtype=np.float64)
        about: dict[str, Any] = {"measure": str(self.complete), "difference": systems, "weights": shares}
        plan = plan_judging(distributions, budget, level=1 - self._criteria.tail, **about)
        text = (
            f"of {'all ' if plan.n_unjudged > 1 else ''}"
            f"{count_text(plan.n_unjudged, 'unjudged document')} would change the difference by up to {reach:.4f} "
            f"({_HALF_WIDTH_SHARE:.0%} of predictions) and give PASS or FAIL with probability {passed + failed:.0%}"
            + (f" (PASS {passed:.0%}, FAIL {failed:.0%})" if passed + failed >= _LIKELY else "")
        )
        return passed + failed, text, plan


def _depends_on_unjudged(decision: str, interval: Limits, shares: Sequence[float], criteria: Criteria) -> bool:
    """Return True if a decision may be due to unjudged documents, of which one of two systems has more.

    The measure treats them as non-relevant. If the surplus of the system at a disadvantage, ``u`` of its documents,
    were relevant, its mean could rise by about ``u`` of the range of the measure, and at most ``u/large`` of its
    queries could gain ``large`` or more (Markov's inequality).
    """
    surplus = (shares[0] - shares[1]) * (1 if decision == FAIL else -1)
    if decision == UNKNOWN or surplus <= 0:
        return False
    reach = surplus * (criteria.bounds[1] if np.isfinite(criteria.bounds[1]) else 1.0)
    if decision == PASS:
        return bool(interval.low[0] - reach <= -criteria.margin)
    fails_by_losses = (
        criteria.counts_losses and interval.share_low[0] - reach / criteria.large_loss > criteria.max_share
    )
    return bool(interval.high[0] + reach >= -criteria.margin and not fails_by_losses)


def _withheld_text(row: Mapping[Any, Any]) -> str:
    """The text for a decision that may be due to unjudged documents."""
    return (
        f"{row['unjudged']:.0%} of the documents of {row['name']} and {row['unjudged_baseline']:.0%} of those of "
        f"{row['baseline']} are unjudged, and {row['measure']} treats them as non-relevant: its {row['withheld']} may "
        "be due to that"
    )


def _low_with_full_losses(pair: SampledPair) -> float:
    """The lower limit if queries count for all that they lose, where losses are cut; else NaN."""
    worst, least = pair.criteria.worst, pair.criteria.bounds[0]
    if worst is None or worst == -least or not np.isfinite(least):
        return np.nan
    full = replace(pair, criteria=replace(pair.criteria, worst=None))
    return float(full.limits().with_added_errors(pair.away).low[0])


def _shortage(pair: SampledPair) -> str:
    """The reason why weights or clusters leave too few units for limits, as text; empty if they do not."""
    sample, n = pair.sample, len(pair.differences)
    if pair.criteria.sequential or pair.criteria.guarantee == ANY:
        return ""
    if sample.clusters is not None and (n_clusters := int(sample.clusters.max()) + 1) < LEAST_CLUSTERS:
        return f"more clusters are needed: at least {LEAST_CLUSTERS}, {n_clusters} now"
    if sample.unsampled is not None and (sample.weights <= sample.unsampled[0]).sum() < LEAST_DF:
        return (
            f"the rated queries weigh more than the {count_text(len(sample.unsampled), 'unrated query')} of the table: "
            f"rate a random sample of these as well, at least {LEAST_DF}"
        )
    if np.ptp(sample.drawn_queries.weights) > 0:
        moments = sample.drawn_queries.moments(sample.split_certain(pair.differences[:, None])[2])
        if moments.df[0] < LEAST_DF:
            worth = max(round(float(moments.n_effective[0])), 1)
            counts = f"by their weights, {count_text(n, 'query')} count as {worth}"
            return f"{counts}; sample by traffic ({sampling_by_traffic()})"
    return ""


def _unseen_share(pair: SampledPair) -> float:
    """The largest share of the weight without a sampled query, at the level of the limit; NaN for other guarantees."""
    criteria, sample = pair.criteria, pair.sample
    if criteria.sequential or criteria.guarantee == ANY:
        return np.nan
    rest, left = sample.drawn_queries, 1.0 if sample.certain is None else float(1 - sample.certain.sum())
    n = n_unseen(rest, rest.moments(np.zeros((len(rest.weights), 1))), criteria.tails[0])
    return float(left * (1 - criteria.tails[0] ** (1 / n[0])))


def _is_decided_by_unseen(row: Mapping[Any, Any], criteria: Criteria) -> bool:
    """Return True if queries without a sampled one prevent a PASS, for any spread of the others."""
    mean = row["counted"]
    return bool(mean > -criteria.margin >= mean - row["unseen"] * (mean + criteria.worst_loss))


def _if_drawn_by_traffic(row: Mapping[Any, Any], pair: SampledPair) -> tuple[str, float]:
    """The text for a sample that may lack too much of the traffic, and the number of queries to draw by traffic."""
    criteria, sample, n = pair.criteria, pair.sample, len(pair.differences)
    copies = sample.weights * n / sample.weights.sum()
    needed = replace(pair, sample=SampledQueries(np.ones(n), copies=copies)).number_that_decides()
    extrapolated = "heavier queries, by extrapolation of the weights,"
    which = extrapolated if sample.unsampled is None else "unrated queries of the table"
    text = (
        f"unequal weights: up to {row['unseen']:.1%} of the weight may be {which} without one among the "
        f"{count_text(n, 'query')}, and may lose {criteria.worst_loss:g}, where margin {criteria.margin:g} permits "
        f"{criteria.margin / criteria.worst_loss:.1%}; sample by traffic ({sampling_by_traffic()})"
    )
    if needed is not None:
        text += f": about {_rounded_count(needed)} queries decide with a probability of {DECISION_PROBABILITY:g}"
    if (head := _heaviest_to_rate(sample, criteria)) is not None and head <= n:
        text += f"; or rate the {count_text(head, 'heaviest unrated query')} as well"
    if (worst := pair.passing_worst_loss()) >= criteria.margin:
        text += f"; these queries pass with a worst loss up to {math.floor(worst * 1e3) / 1e3:g}"
    return text, np.nan if needed is None else float(needed)


def _heaviest_to_rate(sample: SampledQueries, criteria: Criteria) -> int | None:
    """The least number of the heaviest unsampled queries after which the unseen share is within the margin."""
    if sample.unsampled is None:
        return None
    n, weights = len(sample.weights), sample.unsampled
    number = min(math.ceil((1 - criteria.tails[0] ** (1 / n)) * (n + len(weights))), len(weights))
    mass = np.append(0.0, np.cumsum(weights)) / (sample.weights.sum() + weights.sum())
    heaviest = mass[number:] - mass[: len(mass) - number]
    return int(np.argmax(np.append(heaviest, 0.0) * criteria.worst_loss < criteria.margin))


def _plain(measure: ir_measures.Measure) -> str:
    """The measure of complete judgments that a measure of the E family estimates, or the measure itself."""
    params = str(measure).removeprefix(measure.NAME)
    return {estimate: f"{name}{params}" for name, estimate in ESTIMATED.items()}.get(measure.NAME, str(measure))


def pair_covariates(
    kind: str | None,
    pairs: list[tuple[str, str]],
    runs: Mapping[str, Any],
    measure: ir_measures.Measure,
    labels: Any,
    table: pd.DataFrame | None,
    rated: pd.DataFrame,
) -> dict[tuple[str, str], pd.Series[float]]:
    """The covariate of each pair by query: differences by machine labels, or a column of the queries."""
    if kind is None:
        return {}
    if kind == "earlier":
        if table is None or "covariate" not in table.columns:
            raise InputError("covariate='earlier': wanted a column covariate of queries")
        column = table["covariate"].dropna()
        columns = dict.fromkeys(pairs, column)
    else:
        judges = machine_labels(labels)
        if judges is None:
            raise InputError("covariate='labels': wanted labels of one machine, as Data(labels=...)")
        frame = judges.frame()
        if (frame["grade"] % 1 != 0).any():
            raise InputError("covariate='labels': wanted whole numbers, the grades of the ratings, as labels")
        frame = frame.astype({"grade": np.int64})
        if frame.duplicated(["qid", "docno"]).any():
            raise InputError("covariate='labels': several labels of a document; wanted those of one machine")
        plain = measures_from(_plain(measure))[0]
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        rated_scores = scored_runs(
            {name: runs[name] for name in names},
            frame.rename(columns={"grade": "label"})[["qid", "docno", "label"]],
            [plain],
            data=Data(on_topics="all"),
        ).table
        scores = dict(zip(names, rated_scores.rows(str(plain), names, rated_scores.qids), strict=True))
        columns = {
            (one, other): pd.Series(scores[one] - scores[other], index=rated_scores.qids) for one, other in pairs
        }
    for column in columns.values():
        lacking = [qid for qid in rated.index if qid not in column.index]
        if lacking:
            raise InputError(
                f"covariate={kind!r}: unknown for {len(lacking)} of {len(rated)} rated queries ({examples(lacking)}); "
                "wanted it for all of them, and for others"
            )
        if len(column) == len(rated):
            warn(
                f"covariate={kind!r} is known for the rated queries only, so that it adds nothing; give its values for "
                "other queries, too"
            )
    return columns


def _instead(row: Mapping[Any, Any], pair: SampledPair) -> str:
    """The margin and the worst loss with which these queries pass, as text."""
    criteria = pair.criteria
    if criteria.sequential or (criteria.counts_losses and not row["losses_high"] <= criteria.max_share):
        return ""
    margin = max(math.ceil(-row["low"] * 1e4 + ROUNDING) / 1e4, 0.0)
    text = f"; these queries pass with a margin above {margin:g}" if row["low"] <= -criteria.margin else ""
    worst = pair.passing_worst_loss() if criteria.guarantee != ANY else np.nan
    # A worst loss below that of large losses would leave losses without any limit.
    if worst >= criteria.margin and text:
        text += f", or with a worst loss up to {math.floor(worst * 1e3) / 1e3:g}"
    return text


def _too_close(row: Mapping[Any, Any], criteria: Criteria) -> str:
    """The text for releases whose difference is too close to the margin, or of too many large losses."""
    most = count_text(max(10 * row["n_qids"], 1000), "query")
    if criteria.counts_losses and row["low"] > -criteria.margin:
        return (
            f"too close: {row['losses']:.1%} of queries lose more than {criteria.large_loss:g}, and up to "
            f"{100 * criteria.max_share:g}% are accepted; {most} such as these would not decide"
        )
    return (
        f"the difference is too close to the margin to be seen: {row['diff']:+.4f}, margin {criteria.margin:g}, limits "
        f"{row['low']:+.4f} to {row['high']:+.4f}; {most} such as these would not decide"
    )


def _rounded_count(n: int) -> str:
    """A number of queries rounded up to two digits."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{math.ceil(n / unit) * unit:,}"
