"""Scores of systems by the labels of judges, by human judgments, and by labels that human judgments correct."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.evaluate.scores import scored_runs
from vbterrier.frames.ranking import Run
from vbterrier.frames.systems import ONE
from vbterrier.kernels.dawid_skene import dawid_skene
from vbterrier.kernels.rankings import discounts, ideal_dcg
from vbterrier.measures.text import measures_from
from vbterrier.settings import Data
from vbterrier.stats.comparisons import system_pairs
from vbterrier.stats.topic_intervals import topics_intervals
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.model import Constants, fit_evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.unjudged.evidence import Evidence

# The estimate from the labels of several judges, which has no human judgments.
DAWID_SKENE_ESTIMATE = "judges without humans (Dawid-Skene)"
# The run of all labelled documents, whose name no system has, and the parts of the judgments that are held out.
_FRAME, _N_FOLDS, _HELD_OUT_DRAWS = "\0labelled", 5, 200
# The model of judgments that are a sample has none of the errors that selection causes.
_SAMPLED_CONSTANTS = Constants(call=0, topic=0, topic_higher=0, of_run=0, of_run_topic=0, inflation=1)
# Judged documents of a stratum that are enough to correct the others.
_MIN_STRATUM_DOCUMENTS = 5
# The estimates of an audit.
HUMANS, CORRECTED, JUDGE_ESTIMATE = "humans alone", "corrected", "judge alone"
KEY = ["qid", "docno"]
# The fewest judges whose grades can be estimated without humans, and the most grades.
_JUDGES, _MAX_GRADE = 3, 20


def evidence_runs(
    top: Mapping[str, pd.DataFrame], labelled: pd.DataFrame, human: pd.DataFrame, topics: list[str], cutoff: int
) -> tuple[dict[str, Run], int]:
    """The runs, and a run of all documents by their ranks in the runs, with the size of its largest topic."""
    every = pd.concat([run[["qid", "docno", "rank"]] for run in top.values()])
    parts = (every[every["rank"] < cutoff], labelled, human)
    documents = pd.concat([part[KEY] for part in parts]).drop_duplicates()
    documents = documents[documents["qid"].isin(topics)]
    fused = (1 / (60 + every["rank"])).groupby([every["qid"], every["docno"]]).sum().rename("score")
    runs = {name: Run(run.merge(documents, on=KEY), name=f"run {name!r}") for name, run in top.items()}
    whole_frame = documents.join(fused, on=KEY).fillna({"score": 0.0})
    return {**runs, _FRAME: Run(whole_frame)}, max(int(documents.groupby("qid").size().max()), cutoff)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means of each system over some topics, drawn by the model, shape (S, B), and by cross-fitted ones, (S, B')."""

    names: list[str]
    n_qids: int
    draws: Floats
    fitted: Floats | None = None
    parts: Floats | None = None  # corrections of the cross-fitted means by each judgment, shape (S, n)
    spread: Floats | None = None  # the factor of a judgment's part in the standard error, (n,)

    def tables(
        self, estimate: str, level: float, baseline: str | None, judge: str = ""
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Estimates and differences with normal intervals."""
        from scipy import special

        draws, value, errors, weight = self.draws, self.draws.mean(axis=1), np.zeros((len(self.names), 1)), 0.0
        shared, method = draws.mean(axis=0).var(), "unjudged (normal)"
        if self.fitted is not None and self.parts is not None and self.spread is not None:
            residual, errors = self.parts.sum(axis=1), self.parts * self.spread
            common, deviation = errors.mean(axis=0), residual - residual.mean()
            noise, total = float(((errors - common) ** 2).sum()), float((deviation**2).sum())
            n = len(self.names)
            # James and Stein's factor, (n - 3) noise/(n - 1), for an unknown mean.
            weight = max(1 - max(n - 3, 0) / max(n - 1, 1) * noise / total, 0.0) if total > 0 else 0.0
            value = self.fitted.mean(axis=1) + residual.mean() + weight * deviation
            shared, method = (common**2).sum() + self.fitted.mean(axis=0).var(), "unjudged and residuals (normal)"
        a, b = _places(self.names, baseline)

        def variance(drawn: Floats, parts: Floats) -> Floats:
            return np.asarray((1 - weight) * drawn.var(axis=1) + weight * (parts**2).sum(axis=1))

        of_errors = variance(draws - draws.mean(axis=0), errors - errors.mean(axis=0))
        half = np.sqrt(shared + of_errors) * special.ndtri((1 + level) / 2)
        reach = np.sqrt(variance(draws[a] - draws[b], errors[a] - errors[b])) * special.ndtri((1 + level) / 2)
        gap = value[a] - value[b]
        common = np.full(len(value), np.sqrt(shared) * special.ndtri((1 + level) / 2))
        means, gaps = (value, value - half, value + half, common), (gap, gap - reach, gap + reach)
        about: dict[str, Any] = {"estimate": estimate, "judge": judge, "method": method, "n_qids": self.n_qids}
        return _tables(self.names, baseline, means, gaps, **about)


def _places(names: list[str], baseline: str | None) -> Any:
    """The places of the two systems of each pair, shape (2, n_pairs)."""
    return (
        np.array([[names.index(name) for name in pair] for pair in system_pairs(names, baseline)], int).reshape(-1, 2).T
    )


def _tables(
    names: list[str], baseline: str | None, means: Any, gaps: Any, **about: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Estimates and differences with their limits; limits of estimates are scores.

    ``means``: value, low, high, and the half width of the error that all systems share.
    """
    systems = pd.DataFrame({"name": names, **dict(zip(("value", "low", "high", "common"), means, strict=True))})
    systems[["low", "high"]] = systems[["low", "high"]].clip(0, 1)
    pairs = pd.DataFrame(system_pairs(names, baseline), columns=["name_a", "name_b"])
    pairs = pairs.assign(**dict(zip(("diff", "low", "high"), gaps, strict=True)))
    return systems.assign(**about), pairs.assign(**about)


def cross_fitted_estimates(
    evidence: Evidence, grades: Any, names: list[str], n_draws: int, seed: int, topics: list[list[str]]
) -> list[Estimate]:
    """Draw the scores of all systems, and correct those of cross-fitted models by their errors.

    One model of all topics; its estimates of the means over each of some lists of ``topics``.
    """
    gain = np.asarray(grades, dtype=np.float64)
    weights: Floats = np.zeros((len(names), len(evidence)))
    for place, name in enumerate(names):
        in_part = np.flatnonzero(
            (evidence.run == evidence.distinct[evidence.names.index(name)]) & (evidence.rank <= evidence.cutoff)
        )
        weights[place, evidence.item[in_part]] = discounts(evidence.cutoff)[evidence.rank[in_part] - 1]
    parts_of_topics = [np.isin(evidence.topics, part) for part in topics]
    drawn = GradeDraws(fit_evidence(evidence), n_draws, seed)
    scores = _scores(drawn, _inverse(ideal_dcg(drawn.counts, gain, evidence.cutoff)), gain, weights)
    draws = [scores[:, :, part].mean(axis=2) for part in parts_of_topics]
    judged = np.flatnonzero(evidence.level >= 0)
    fold = evidence.folds(judged, _N_FOLDS)
    expected = drawn.shares @ gain
    fits = [_Fold(evidence, judged[fold == part], gain, weights, seed, parts_of_topics) for part in np.unique(fold)]
    predicted, parts = np.empty(len(judged)), np.empty((len(names), len(judged)))
    for part, fit in zip(np.unique(fold), fits, strict=True):
        predicted[fold == part], parts[:, fold == part] = fit.predicted, fit.parts
    weight = _excess_weights(evidence, judged, weights.any(axis=0), predicted, expected)
    if weight is None:
        return [Estimate(names, int(in_part.sum()), draw) for in_part, draw in zip(parts_of_topics, draws, strict=True)]
    # Judged documents of a fold represent those of the other documents, and themselves, which their model did not see.
    parts *= weight + 1 / len(fits)
    # The variance of a sum over a sample with inclusion probabilities 1/(1 + w) is the sum of w (1 + w) x².
    spread = np.sqrt(weight * (1 + weight)) / (weight + 1 / len(fits))
    estimates = []
    for place, (of_part, draw) in enumerate(zip(parts_of_topics, draws, strict=True)):
        rows, fitted = of_part[evidence.topic[judged]], np.mean([fit.scores[place] for fit in fits], axis=0)
        n = int(of_part.sum())
        estimates.append(Estimate(names, n, draw, fitted, parts[:, rows] / n, spread[rows]))
    return estimates


def _scores(drawn: GradeDraws, inverse: Floats, gain: Floats, weights: Floats) -> Floats:
    """Drawn nDCG of each system and topic, shape (S, B, T); ``inverse``: 1/IDCG, shape (B, T)."""
    evidence, n_draws = drawn.evidence, drawn.n_draws
    row = np.full(len(evidence), -1)
    row[evidence.unjudged_positions[drawn.documents]] = np.arange(len(drawn.documents))
    scores = np.zeros((len(weights), n_draws, inverse.shape[1]))
    for place, weight in enumerate(weights):
        item = np.flatnonzero(weight)
        grades = np.broadcast_to(gain[np.maximum(evidence.level[item], 0)], (n_draws, len(item))).copy()
        is_open = row[item] >= 0
        grades[:, is_open] = gain[drawn.levels[row[item[is_open]]].T]
        topics, starts = np.unique(evidence.topic[item], return_index=True)
        if len(item):
            scores[place][:, topics] = np.add.reduceat(grades * weight[item], starts, axis=1)
    return np.asarray(scores * inverse)


def _inverse(ideal: Floats) -> Floats:
    return np.divide(1, ideal, out=np.zeros_like(ideal), where=ideal > 0)


class _Fold:
    """Scores by a model without the judgments of a fold, and the errors of its predictions of them.

    Human judgments are taken as a sample: the model has exact intercepts and no shift of unjudged documents, and
    relevant documents outside of the evidence, of which no sample is judged, do not count.
    """

    def __init__(
        self, evidence: Evidence, rows: Any, gain: Floats, weights: Floats, seed: int, topics: list[NDArray[np.bool_]]
    ) -> None:
        n_levels, k = len(gain), evidence.cutoff
        judged, topic, level = evidence.level[rows], evidence.topic[rows], evidence.level.copy()
        cells = np.bincount(topic * n_levels + judged, minlength=evidence.counts.size)
        level[rows] = -1
        without = replace(evidence, level=level, counts=evidence.counts - cells.reshape(evidence.counts.shape))
        model = replace(fit_evidence(without, _SAMPLED_CONSTANTS, exact=True), sigma=0.0)
        drawn = GradeDraws(model, _HELD_OUT_DRAWS, seed)
        counts, at = drawn.counts - drawn.unseen_counts, np.searchsorted(without.unjudged_positions, rows)
        before = ideal_dcg(counts, gain, k)
        inverse = _inverse(before)
        scores, probability = _scores(drawn, inverse, gain, weights), drawn.shares[at]
        # The relative change of the ideal DCG by one more document of each level, shape (T, L).
        more = [ideal_dcg(counts + one, gain, k) - before for one in np.eye(n_levels, dtype=int)]
        ideal = (np.stack(more, axis=2) * inverse[:, :, None]).mean(axis=0)[topic]
        of_ideal = ideal[np.arange(len(rows)), judged] - (probability * ideal).sum(axis=1)
        # Means over each of some topics, shape (S, B), and the mean predicted grade of each judgment, (n,).
        self.scores, self.predicted = [scores[:, :, part].mean(axis=2) for part in topics], probability @ gain
        # The change of the summed scores if one document of the judgment's topic has the judged grade instead of the
        # predicted one, linear in its grade and in the ideal DCG, shape (S, n).
        of_gain = inverse.mean(axis=0)[topic] * (gain[judged] - self.predicted)
        self.parts = weights[:, rows] * of_gain - scores.mean(axis=1)[:, topic] * of_ideal


def _excess_weights(evidence: Evidence, judged: Any, in_cut: Any, held_out: Floats, expected: Floats) -> Floats | None:
    """``1/π - 1`` of judged documents, ``None`` if a stratum with unjudged documents has too few judged ones.

    Strata are thirds of the predicted grade within and outside of the cuts. Weights are the inverse share of judged
    documents of the topic, scaled to the size of each stratum.
    """
    predicted = np.empty(len(evidence))
    predicted[judged], predicted[evidence.unjudged_positions] = held_out, expected
    stratum = np.zeros(len(evidence), dtype=np.int64)
    for inside in (False, True):
        of_side = in_cut == inside
        if of_side.any():
            stratum[of_side] = 3 * inside + np.searchsorted(
                np.quantile(predicted[of_side], [1 / 3, 2 / 3]), predicted[of_side]
            )
    n, n_judged = np.bincount(stratum, minlength=6), np.bincount(stratum[judged], minlength=6)
    if not len(evidence.unjudged_positions) or ((n > n_judged) & (n_judged < _MIN_STRATUM_DOCUMENTS)).any():
        return None
    topic = evidence.topic
    share = np.bincount(topic) / np.maximum(np.bincount(topic[judged], minlength=int(topic.max()) + 1), 1)
    weight = share[topic[judged]]
    total = np.bincount(stratum[judged], weight, minlength=6)
    return np.asarray(np.maximum(weight * (n / np.maximum(total, 1e-9))[stratum[judged]] - 1, 0.0))


def topic_table(labelled: pd.DataFrame, runs: Mapping[str, Run], measure: str) -> tuple[list[str], Floats]:
    """The topics of some labels, sorted, and nDCG by these labels, shape (n_systems, n_topics).

    nDCG does not depend on the unit of the labels.
    """
    # Labels of judges have ids as text.
    parts = {system: run.only(set(labelled["qid"].unique())).frame for system, run in runs.items()}
    frames = {system: frame.astype({"qid": str, "docno": str}) for system, frame in parts.items()}
    label = labelled["label"].clip(lower=0)
    label = label if (label == label.round()).all() else (1000 / max(label.max(), 1e-9) * label).round()
    graded, parsed = labelled.assign(label=label.astype(np.int64)), measures_from(measure)
    table = scored_runs(frames, graded, parsed, data=Data(on_topics="all", system=ONE)).table
    topics = sorted(table.qids)
    return topics, table.rows(str(parsed[0]), list(frames), topics)


def scores_alone(
    name: str,
    names: list[str],
    table: Floats,
    level: float,
    seed: int,
    baseline: str | None,
    estimate: str = JUDGE_ESTIMATE,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores by the labels of one judge: ``table``, shape (n_systems, n_topics), of the systems called ``names``."""
    a, b = _places(names, baseline)
    gap = table[a] - table[b]
    of_means = topics_intervals(table.T, bounds=(0, 1), level=level, seed=seed)
    of_gaps = topics_intervals(gap.T, bounds=(-1, 1), level=level, seed=seed)
    unknown = np.full(len(names), np.nan)
    means = (table.mean(axis=1), of_means.low, of_means.high, unknown)
    gaps = (gap.mean(axis=1), of_gaps.low, of_gaps.high)
    about: dict[str, Any] = {"estimate": estimate, "judge": name, "method": "", "n_qids": table.shape[1]}
    systems, pairs = _tables(names, baseline, means, gaps, **about)
    systems["method"] = [of_means.interval_method(place) for place in range(len(systems))]
    pairs["method"] = [of_gaps.interval_method(place) for place in range(len(pairs))]
    return systems, pairs


def scores_of_topics(
    names: list[str], judge: Floats, corrections: Floats, level: float, baseline: str | None, estimate: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores by a judge on T topics plus the mean correction of k complete ones, with Student's intervals of these T.

    ``judge``: (n_systems, T); ``corrections``: human minus judged scores of complete topics, (n_systems, k).
    """
    from scipy import special

    a, b = _places(names, baseline)
    k, n_all = corrections.shape[1], judge.shape[1]
    factor = special.stdtrit(k - 1, (1 + level) / 2) * np.sqrt((1 - k / n_all) / k) if k < n_all else 0.0

    def limits(value: Floats, correction: Floats) -> tuple[Floats, ...]:
        half = factor * correction.std(axis=-1, ddof=1) if factor else np.zeros(len(value))
        mean = value.mean(axis=1) + correction.mean(axis=1)
        return mean, mean - half, mean + half

    shared = factor * corrections.mean(axis=0).std(ddof=1) if factor else 0.0
    means = (*limits(judge, corrections), np.full(len(names), shared))
    gaps = limits(judge[a] - judge[b], corrections[a] - corrections[b])
    about: dict[str, Any] = {"estimate": estimate, "judge": "", "method": "complete topics (t)", "n_qids": n_all}
    return _tables(names, baseline, means, gaps, **about)


def no_scores(
    names: list[str], baseline: str | None, estimate: str, reason: str, n_qids: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Empty estimates and differences, with the reason as their method."""
    nothing = np.full(len(names), np.nan)
    missing = np.full(len(system_pairs(names, baseline)), np.nan)
    about: dict[str, Any] = {"estimate": estimate, "judge": "", "method": reason, "n_qids": n_qids}
    return _tables(names, baseline, (nothing,) * 4, (missing,) * 3, **about)


def dawid_skene_labels(labelled: pd.DataFrame, human: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Expected grades from the labels of three or more judges (Dawid and Skene), and the accuracy of each judge.

    Empty for fewer judges, and for labels that are not whole numbers up to the highest grade.
    """
    wide = labelled.pivot(index=KEY, columns="name", values="label")
    highest = max(int(human["label"].max()), int(np.nanmax(wide.to_numpy())))
    columns = ["judge", "n", "accuracy", "agreement_with_humans"]
    whole_labels = (wide.fillna(0) % 1 == 0).all(axis=None) and highest <= _MAX_GRADE
    if wide.shape[1] < _JUDGES or not whole_labels:
        return pd.DataFrame(columns=[*KEY, "label"]), pd.DataFrame(columns=columns)
    labels = wide.clip(lower=0).fillna(-1).to_numpy().astype(np.int64)
    model = dawid_skene(labels, highest + 1)
    accuracy = np.einsum("g,jgg->j", model.prevalence, model.confusion)
    human_labels = human.set_index(KEY)["label"].reindex(wide.index)
    agreed = [(wide[name] == human_labels)[wide[name].notna() & human_labels.notna()].mean() for name in wide.columns]
    rows = {"judge": list(wide.columns), "n": wide.notna().sum().to_numpy(), "accuracy": accuracy}
    expected = wide.index.to_frame(index=False).assign(label=model.posterior @ np.arange(highest + 1.0))
    return expected, pd.DataFrame({**rows, "agreement_with_humans": agreed})
