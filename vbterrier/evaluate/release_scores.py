"""Scores of a release and its baselines: limits of their differences, and the reasons of undecided ones."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError, ParameterError, warn
from vbterrier.evaluate.inputs import require_spelling, warn_of_uneven_labels
from vbterrier.evaluate.ranking import distributions_of
from vbterrier.evaluate.scores import score
from vbterrier.frames.notebook import counted
from vbterrier.frames.systems import ONE
from vbterrier.kernels.mean_limits import SampledQueries
from vbterrier.measures.target import Scoring, warn_of_few_non_relevant
from vbterrier.measures.text import measures_from
from vbterrier.measures.unjudged import UnjudgedMeasure, models_of
from vbterrier.settings import Data, Inference
from vbterrier.stats.noninferiority import (
    ANY,
    FAIL,
    PASS,
    SURE,
    Limits,
    decisions,
    limits,
    passing_worst_loss,
    queries_needed,
)
from vbterrier.unjudged.estimated import joint_of
from vbterrier.unjudged.judge_next import plan_judging

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures
    import pandas as pd

    from vbterrier.annotations import Floats
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.stats.noninferiority import Criteria
    from vbterrier.unjudged.distribution import ScoreDistributions
    from vbterrier.unjudged.judge_next import JudgingPlan
    from vbterrier.unjudged.pool import MachineLabels

# Reasons of UNKNOWN.
QUERIES, RATINGS, TOO_CLOSE = "more queries", "ratings", "too close"
# Draws of the scores of unjudged documents; sequences are slow.
_N_DRAWS, _FEW_DRAWS = 1000, 50
_ROUNDING = 1e-12
# The cutoff for unjudged documents, for measures without one.
_CUTOFF = 10
# Ratings are asked for if they decide with at least this probability; the share of predictions of a stated reach.
_LIKELY, _REACH = 0.1, 0.95
# The measures of complete judgments that measures of the E family estimate.
_COMPLETE = {name.upper(): f"E{name.upper()}" for name in ("nDCG", "RBP", "P", "AP", "ERR")}


class ReleaseScores:
    """Scores of the new system and its baselines, and the distributions of measures of unjudged documents.

    ``weights`` are those of queries by id; ``criteria`` are those of one test, whose tail is divided by the number of
    tests.
    """

    def __init__(
        self,
        target: EvaluationTarget,
        runs: Mapping[str, Run],
        measure: ir_measures.Measure,
        weights: pd.Series[float],
        labels: MachineLabels | None,
        criteria: Criteria,
    ) -> None:
        self.measure, self._weights, self._criteria = measure, weights, criteria
        self._target, self._runs, self._labels = target, runs, labels
        self._place = {qid: at for at, qid in enumerate(target.topics)}
        self._is_predicted = isinstance(measure, UnjudgedMeasure)
        self._joints: dict[tuple[str, ...], Any] = {}
        if self._is_predicted:
            if measure["stat"] != "mean":
                raise ParameterError(f"{measure}: wanted the score itself; leave out stat={measure['stat']!r}")
            warn_of_few_non_relevant([measure], target)
            distributions = self._distributions(measure, runs)
            self._scores = {name: each.mean for name, each in distributions.items()}
            self._joint = joint_of(distributions)
        else:
            frames = {name: run.frame for name, run in runs.items()}
            values = score(
                frames,
                target.frame,
                [measure],
                data=Data(on_topics="all", system=ONE),
                inference=Inference(interval="normal"),
            ).values
            table = values.pivot(index="qid", columns="name", values="value").reindex(target.topics)
            self._scores = {name: table[name].to_numpy() for name in runs}
        depth = measure.params.get("cutoff", _CUTOFF)
        judged = {name: Scoring(target, run, depth).judged(depth) for name, run in runs.items()}
        self._shares = {name: cut.unjudged_share() for name, cut in judged.items()}
        if labels is not None:
            require_spelling("labels", labels.frame()["qid"].unique(), target.topics)
            warn_of_uneven_labels(labels, runs, depth)
        shares = {name: share.mean() for name, share in self._shares.items() if share.any()}
        if shares and not self._is_predicted:
            listed = ", ".join(f"{share:.1%} of {name}" for name, share in shares.items())
            warn(f"{measure} treats unjudged documents as non-relevant: {listed}; use ENDCG@{depth}, or judge them")

    def _distributions(self, measure: Any, names: Iterable[str]) -> dict[str, ScoreDistributions]:
        models = models_of([measure], self._runs, self._target, labels=self._labels)
        return distributions_of(measure, {name: self._runs[name] for name in names}, self._target, models)

    @cached_property
    def _complete(self) -> ir_measures.Measure | None:
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
        pair, places, sample = (name, baseline), *self._queries(qids)
        differences, lost, away = self._differences(pair, places, sample, criteria)
        interval = limits(criteria, differences[:, None], sample, lost[:, None], part)
        diff = float(sample.mean(differences[:, None])[0])
        method = "confidence sequence" if criteria.sequential else "t, unseen losses"
        method = "bounded" if criteria.guarantee == ANY and not criteria.sequential else method
        if away[0] > 0 and criteria.sequential:
            # Predictions change with every judgment, for which the sequence is not valid.
            interval = Limits(*np.array([*criteria.bounds, float(interval.share[0]), 0.0, 1.0])[:, None])
            method += ", withheld: unjudged documents"
        elif away[0] > 0:
            interval = interval.widened(np.array([diff]), away)
            method += " and prediction"
        full = self._with_full_losses(criteria, differences, sample, lost, away)
        shares = [float(self._shares[each][places].mean()) for each in pair]
        decision = interval.decisions(criteria)[0]
        large = criteria.counts_losses
        return {
            "name": name, "baseline": baseline, "measure": str(self.measure), "diff": float(diff),
            "low": max(float(interval.low[0]), criteria.bounds[0]),
            "high": min(float(interval.high[0]), criteria.bounds[1]),
            "worst_loss": criteria.worst_loss, "low_full": full,
            "decision": decision, "margin": criteria.margin, "n_qids": len(places),
            "unjudged": shares[0], "unjudged_baseline": shares[1],
            "losses": float(interval.share[0]) if large else np.nan,
            "losses_low": float(interval.share_low[0]) if large else np.nan,
            "losses_high": float(interval.share_high[0]) if large else np.nan,
            "large_loss": criteria.large_loss if large else np.nan,
            "max_share": criteria.max_share if large else np.nan, "n_tests": n_tests, "method": f"one-sided, {method}",
        }  # fmt: skip

    def _queries(self, qids: list[str]) -> tuple[list[int], SampledQueries]:
        """The places of queries, whose order matters for sequences alone, and how they were sampled."""
        order = qids if self._criteria.sequential else sorted(qids)
        return [self._place[qid] for qid in order], SampledQueries(np.array(self._weights.loc[order], dtype=np.float64))

    @staticmethod
    def _with_full_losses(
        criteria: Criteria,
        differences: Floats,
        sample: SampledQueries,
        lost: Floats,
        away: tuple[float, float, float, float],
    ) -> float:
        """The lower limit if queries count for all that they lose, where losses are cut; else NaN."""
        if criteria.worst is None or criteria.worst == -criteria.bounds[0] or not np.isfinite(criteria.bounds[0]):
            return np.nan
        interval = limits(replace(criteria, worst=None), differences[:, None], sample, lost[:, None])
        return float(interval.widened(sample.mean(differences[:, None]), away).low[0])

    def _differences(
        self, pair: tuple[str, str], places: list[int], sample: SampledQueries, criteria: Criteria
    ) -> tuple[Floats, Floats, tuple[float, float, float, float]]:
        """Differences of queries, their probabilities of a large loss, and the reaches of prediction errors."""
        differences = (self._scores[pair[0]] - self._scores[pair[1]])[places]
        lost = (differences < -criteria.large_loss).astype(np.float64)
        if not self._is_predicted:
            return differences, lost, (0.0,) * 4
        draws = self._draws(self._joint, pair, places)
        means = sample.mean(draws)
        # Equal draws differ by rounding errors.
        if np.ptp(means) <= _ROUNDING:
            return differences, lost, (0.0,) * 4
        from scipy import special

        losses = draws < -criteria.large_loss
        z, z_fail = (float(special.ndtri(1 - tail)) for tail in criteria.tails)
        spread, of_losses = float(means.std()), float(sample.mean(losses.astype(np.float64)).std())
        return differences, losses.mean(axis=1), (z * spread, z_fail * spread, z_fail * of_losses, z * of_losses)

    def _draws(self, joint: Any, pair: tuple[str, str], places: Sequence[int], n_draws: int = _N_DRAWS) -> Floats:
        """Differences of queries under drawn ratings of all unjudged documents, shape (n, n_draws)."""
        a, b = (joint.names.index(each) for each in pair)
        differences = np.empty((len(places), n_draws))
        for row, place in enumerate(places):
            scores = joint.scores(place, _N_DRAWS, self._criteria.seed)[:, :n_draws]
            differences[row] = scores[a] - scores[b]
        return differences

    def undecided(
        self, row: Mapping[Any, Any], qids: list[str], budget: int
    ) -> tuple[str, str, float, JudgingPlan | None]:
        """The reason of an UNKNOWN, its text, the queries needed (NaN if unknown), and the plan if ratings decide."""
        pair = row["name"], row["baseline"]
        criteria = replace(self._criteria, tail=self._criteria.tail / row["n_tests"])
        places, sample = self._queries(qids)
        rated, plan = "", None
        if row["unjudged"] + row["unjudged_baseline"] > 0:
            likely, rated, plan = self._if_rated(pair, places, sample, criteria, budget)
            if likely >= _LIKELY:
                return RATINGS, f"ratings are needed: those {rated}", np.nan, plan
        differences, lost, away = self._differences(pair, places, sample, criteria)
        needed = queries_needed(criteria, differences, sample, lost, away)
        also = f"; the ratings {rated}" if rated else ""
        instead = _instead(row, criteria, differences, sample, lost, away)
        if needed is None:
            return TOO_CLOSE, f"{_too_close(row, criteria)}{instead}{also}", np.nan, None
        text = (
            f"more queries are needed: about {_rounded(needed)} such as these decide with a probability of {SURE:g}, "
            f"{len(places)} now"
        )
        if criteria.sequential and rated:
            text += ", with all documents up to the cutoff rated"
        if criteria.counts_losses and row["low"] > -criteria.margin:
            text += f" (the mean is decided; not yet that at most {criteria.max_share:.1%} of queries lose more than "
            text += f"{criteria.large_loss:g})"
        return QUERIES, f"{text}{instead}{also}", float(needed), None

    def _if_rated(
        self, pair: tuple[str, str], places: list[int], sample: SampledQueries, criteria: Criteria, budget: int
    ) -> tuple[float, str, JudgingPlan | None]:
        """The probability that the ratings of all unjudged documents decide, a text, and the documents to rate next."""
        if self._complete is None:
            return 0.0, f"of unjudged documents have an unknown effect on {self.measure}: use ENDCG", None
        try:
            distributions = self._distributions(self._complete, pair)
        except InputError as error:
            warn(f"no list of documents to judge next: {error}")
            return 0.0, "of unjudged documents cannot be predicted", None
        n_draws = _FEW_DRAWS if criteria.sequential else _N_DRAWS
        draws = self._draws(joint_of(distributions), pair, places, n_draws)
        decided = decisions(replace(criteria, n_resamples=1), draws, sample)
        passed, failed = decided.count(PASS) / n_draws, decided.count(FAIL) / n_draws
        means = sample.mean(draws)
        reach = float(np.quantile(np.abs(means - means.mean()), _REACH))
        shares = np.asarray(self._weights.reindex(self._target.topics).fillna(0.0), dtype=np.float64)
        about: dict[str, Any] = {"measure": str(self._complete), "difference": pair, "weights": shares}
        plan = plan_judging(distributions, budget, level=1 - self._criteria.tail, **about)
        text = (
            f"of {'all ' if plan.n_unjudged > 1 else ''}"
            f"{counted(plan.n_unjudged, 'unjudged document')} move the difference by up to {reach:.4f} "
            f"({_REACH:.0%} of predictions) and decide with a probability of {passed + failed:.0%}"
            + (f" (PASS {passed:.0%}, FAIL {failed:.0%})" if passed + failed >= _LIKELY else "")
        )
        return passed + failed, text, plan


def _instead(
    row: Mapping[Any, Any],
    criteria: Criteria,
    differences: Floats,
    sample: SampledQueries,
    lost: Floats,
    away: tuple[float, float, float, float],
) -> str:
    """The margin and the worst loss with which these queries pass, as text."""
    if criteria.sequential or (criteria.counts_losses and not row["losses_high"] <= criteria.max_share):
        return ""
    margin = max(math.ceil(-row["low"] * 1e4 + _ROUNDING) / 1e4, 0.0)
    text = f"; these queries pass with a margin above {margin:g}" if row["low"] <= -criteria.margin else ""
    worst = passing_worst_loss(criteria, differences, sample, lost, away) if criteria.guarantee != ANY else np.nan
    # A worst loss below that of large losses would leave losses without any limit.
    if worst >= criteria.margin and text:
        text += f", or with a worst loss up to {math.floor(worst * 1e3) / 1e3:g}"
    return text


def _too_close(row: Mapping[Any, Any], criteria: Criteria) -> str:
    """The text for releases whose difference is too close to the margin, or of too many large losses."""
    most = counted(max(10 * row["n_qids"], 1000), "query")
    if criteria.counts_losses and row["low"] > -criteria.margin:
        return (
            f"too close: {row['losses']:.1%} of queries lose more than {criteria.large_loss:g}, and up to "
            f"{criteria.max_share:.1%} are accepted; {most} such as these would not decide"
        )
    return (
        f"the difference is too close to the margin to be seen: {row['diff']:+.4f}, margin {criteria.margin:g}, limits "
        f"{row['low']:+.4f} to {row['high']:+.4f}; {most} such as these would not decide"
    )


def _rounded(n: int) -> str:
    """A number of queries rounded up to two digits."""
    unit = 10 ** max(len(str(n)) - 2, 0)
    return f"{math.ceil(n / unit) * unit:,}"
