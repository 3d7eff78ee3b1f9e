"""Judging: the documents to judge next, the quality of machine labels, and scores that human judgments correct."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    agreeing,
    examples,
    excerpt,
    nearest,
    number,
    warn,
    whole,
)
from vbterrier.evaluate.inputs import evaluation_target, fitted_runs, loaded_runs, measure_with_distribution, quietly
from vbterrier.evaluate.scores import scored_runs
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.results import Shown
from vbterrier.frames.systems import ONE
from vbterrier.log import tracked_items
from vbterrier.measures.target import Scoring
from vbterrier.measures.text import distinct_measures
from vbterrier.measures.unjudged import estimand
from vbterrier.settings import Data, Execution, Inference, with_defaults
from vbterrier.stats.agreement import share_interval
from vbterrier.stats.inverted_intervals import spent_level
from vbterrier.stats.kappa import cohen_kappa
from vbterrier.stats.powered_means import prediction_powered
from vbterrier.unjudged.judge_next import plan_judging
from vbterrier.unjudged.pool import MachineLabels, labelled_judgments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Floats, Ints
    from vbterrier.unjudged.judge_next import JudgingPlan
    from vbterrier.unjudged.pool import Judgments

_LOG = logging.getLogger(__name__)
# Parts of the topics for predictions of held-out judgments, and the most labels that are listed one by one.
_N_FOLDS, _MAX_LISTED_LABELS = 5, 12


@dataclass(frozen=True, eq=False)
class JudgingBudget:
    """The budget of :func:`vbterrier.judge_next` and :func:`vbterrier.evaluate.leaderboard`.

    Parameters
    ----------
    n
        The number of documents to judge or, with ``costs``, the sum of their costs.
    quota, costs
        The largest number of judgments of a topic, for all topics or by topic, and the cost of a judgment in each
        topic, above 0: documents are then selected by the variance that they remove per cost. For several collections,
        mappings of these by collection.

    Examples
    --------
    >>> JudgingBudget(20, quota=2).quota
    2
    """

    n: int
    quota: int | Mapping[str, Any] | None = None
    costs: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, budget: int | JudgingBudget) -> JudgingBudget:
        """The budget of a number of documents, or the budget itself."""
        return budget if isinstance(budget, JudgingBudget) else cls(budget)


@with_defaults
def judge_next(
    runs: Any,
    qrels: Any,
    measure: str | ir_measures.Measure = "ENDCG@10",
    *,
    budget: int | JudgingBudget,
    difference: tuple[str, str] | None = None,
    look: int | None = None,
    data: Data = Data(labels=None, model=None, pool_cutoff=None, on_topics="same", duplicates="error", system=None),
    inference: Inference = Inference(level=0.9),
    execution: Execution = Execution(progress=False),
) -> JudgingPlan:
    """Select the unjudged documents whose judgments are expected to narrow the interval of a mean most.

    For measures of the E family, variances and covariances of scores and gains are those of joint draws, in which the
    judgment of a document changes the ideal ranking, too. Judging d removes ``Cov(score, g_d)² / Var(g_d)``, the part
    of the variance that its gain explains linearly. Widths include the errors of the model that topics share, and
    exclude what judgments teach the model about other topics.

    For measures of the B family, the variance of a topic's score over the gains of its unjudged documents is
    ``Σ_i w_i² σ_i² + Σ_{i≠j} w_i w_j C_ij/(s + 1)``, where w is the score of one unit of gain at a document's rank, σ²
    the variance of its gain, C_ij the covariance of two gains whose grades are quantiles of the same number, and s the
    strength of the prior. Judging d removes ``Var(E[score | g_d])`` in expectation (total variance): the variance of
    the document and, for finite s, a part of that of the other documents of its topic. Documents are selected greedily;
    widths are ``2 z √(Σ_t remaining variance) / n_topics``.

    Parameters
    ----------
    runs, qrels
        As in :func:`vbterrier.score`. For several runs, the criterion is the mean of their variances, which favours
        documents that many runs retrieve.
    measure, budget
        A measure of the E or B family, whose ``stat`` is ignored; the number n of documents to judge, at least 1, or a
        :class:`vbterrier.evaluate.JudgingBudget` with a quota or costs.
    difference
        Names of two runs: narrow the interval of the difference between their means. A document that both retrieve has
        the difference between its two weights; other runs are ignored.
    look
        The number of this inspection, from 1, if judging continues until the interval allows a conclusion, for example
        until that of a difference excludes 0. The interval then has the
        level ``1 - 6 (1 - level)/(π look)²``, so that the intervals of all looks together have ``level``. Without it,
        the interval is valid for one look alone.
    data
        A :class:`vbterrier.Data`: ``system``, ``labels``, ``model``, ``pool_cutoff``, ``on_topics`` (``"same"``),
        ``duplicates`` (``"error"``).
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.9).
    execution
        An :class:`vbterrier.Execution`: ``progress`` (False).

    Returns
    -------
    JudgingPlan
        At most n documents, the most valuable first; ties in the order of the topics in the qrels, then by docno.
        Documents whose judgment removes no variance are left out.

    Raises
    ------
    InputError, ParameterError
        See :func:`vbterrier.score`; a measure without a distribution, an unknown run, a budget below 1; a topic without
        a quota or cost, or one that is not a number in range.

    Notes
    -----
    For one run with one prior per topic, the formula is exact and greedy selection is optimal: within a topic weights
    decrease with rank, and the remaining variance ``σ² s/(s+1) · (Σ w² + (Σ w)²/(s + m))`` after m judgments is convex
    in m. With independent documents (s = ∞) this extends to several runs and differences. Otherwise selection is a
    heuristic. If documents have different priors in several runs (their mean is used) or individual priors, the removed
    variance is that explained by the best linear prediction, a lower bound.
    For scores that are not sums (AP, ERR, Q), and for topics whose pool has too few documents of a grade, weights are
    those of the best linear fit, scaled to the variance of the score. The prior of a B measure and
    its ideal ranking are fixed; new judgments change both. Cost: n · u² for u unjudged documents in a topic.

    docs/explanation/statistics.md has the probability that ordinary and numbered looks exclude the final difference,
    docs/how-to/machine-labels.md where selection is no better than pooling order, on four collections.

    Source: Fröbe et al., ECIR 2023, section 3.2 (urn model); greedy A-optimal design.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "c", "d"], "label": [1, 0, 1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["new", "a", "late"], "score": [3.0, 2.0, 1.0]})
    >>> plan = judge_next({"mine": run}, qrels, "BNDCG(prior='pool')@3", budget=1)
    >>> plan.documents[["qid", "docno", "rank"]].values.tolist(), plan.documents["worth"].round(3).tolist()
    ([['q1', 'new', 1]], [0.86])
    >>> round(plan.width_before, 3), round(plan.width_after, 3)
    (0.905, 0.339)
    >>> plan.documents["reason"].item()
    'rank 1 of mine; relevant with probability 50%; narrows the interval by 62.54%'
    """
    level = inference.level
    progress = execution.progress
    target_measure, planned = measure_with_distribution(measure), JudgingBudget.of(budget)
    n = whole("budget", planned.n, meaning=": the documents that can be judged")
    each_level = level if look is None else spent_level(level, look)
    loaded = loaded_runs(runs, data.duplicates, data.system)
    if difference is not None:
        loaded = _pair(loaded, difference)
    judged = evaluation_target(qrels, None, None)
    evidence: dict[str, Any] = {"labels": data.labels, "model": data.model, "pool_cutoff": data.pool_cutoff}
    loaded, target, models = fitted_runs(loaded, judged, target_measure, data.on_topics, **evidence)
    options: dict[str, Any] = {"level": level, "look": look, "each_level": each_level}
    quota = planned.quota
    if isinstance(quota, int) and not isinstance(quota, bool):
        quota = dict.fromkeys(target.topics, quota)
    for name, value in (("quota", quota), ("costs", planned.costs)):
        options[name] = None if value is None else _of_topics(name, value, target.topics)
    distributions = {}
    for name, run in tracked_items(loaded.items(), "runs", shown=progress, total=len(loaded), unit="run"):
        distributions[name] = target_measure.distribution(Scoring(target, run, target_measure.cutoff, models))
    _LOG.info("planning the judgment of %d documents of %d runs, for %s", n, len(distributions), target_measure)
    plan = plan_judging(distributions, n, measure=str(target_measure), difference=difference, **options)
    return replace(plan, estimand=estimand(target_measure, models))


def _of_topics(name: str, by_topic: Any, topics: Sequence[str]) -> Mapping[str, float]:
    """A quota or a cost of each topic."""
    if not hasattr(by_topic, "items"):
        raise ParameterError(f"{name}={excerpt(by_topic)}: wanted a mapping of topics to numbers, as {{'q1': 2}}")
    numbers = {str(topic): value for topic, value in by_topic.items()}
    for topic in topics:
        if topic not in numbers:
            raise ParameterError(f"{name}: topic {topic!r} has none; give one for each of the {len(topics)} topics")
        if name == "quota":
            whole(f"quota[{topic!r}]", numbers[topic], low=0)
        else:
            number(f"costs[{topic!r}]", numbers[topic], low=0, open_low=True)
    return numbers


def _pair(named: Mapping[str, Any], difference: tuple[str, str]) -> dict[str, Any]:
    if isinstance(difference, str) or len(difference) != 2 or difference[0] == difference[1]:  # noqa: PLR2004 - a pair
        raise ParameterError(f"difference={excerpt(difference)}: wanted the names of two runs, as ('mine', 'baseline')")
    for name in difference:
        if name not in named:
            raise ParameterError(
                f"difference: no run is called {name!r}; found {examples(named)}.{nearest(name, named)}"
            )
    return {name: named[name] for name in difference}


@dataclass(frozen=True, eq=False, repr=False)
class LabelQuality(Shown):
    """Agreement of machine labels with human judgments; the result of :func:`label_quality`.

    - ``summary``: a row per labeller: name, n (documents that both labelled), n_labels, auc (the probability that a
      relevant document has a higher label than a non-relevant one of any topic), log_loss (of the calibrated label,
      predicted for held-out topics) and log_loss_rate (of the share of relevant documents), r2 (the part of the
      variance of relevance that the calibrated label predicts in held-out topics), worth (``1/(1 - r2)``: with machine
      labels of all documents, one human judgment determines the share of relevant documents as well as this many alone)
    - ``kappa``: name, threshold (``"all grades"``, or the lowest grade that counts as relevant), value (Cohen's kappa),
      low, high, level, agreement (share of equal labels), n. Empty for labels on another scale than the grades
    - ``confusion``: name, label, grade, n, share (of the documents with this label)
    - ``calibration``: name, label (the mean of a tenth of the documents, if there are many labels), n, relevant (share
      of relevant documents), low, high, level (Clopper-Pearson)
    """

    summary: pd.DataFrame
    kappa: pd.DataFrame
    confusion: pd.DataFrame
    calibration: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``summary``: a row per labeller."""
        return self.summary

    def _line(self) -> str:
        return f"{count_text(len(self.summary), 'labeller')}, {int(self.summary['n'].sum()):,} labelled judgments"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Machine labels and human judgments", self.summary)
        if len(self.kappa):
            yield Panel("Agreement beyond chance", self.kappa, value="value", heads=2)
        yield Panel("Relevant documents by label", self.calibration, value="relevant", heads=2)


@with_defaults
def label_quality(
    labels: Any,
    qrels: Any,
    *,
    inference: Inference = Inference(level=0.95),
) -> LabelQuality:
    """Compare the labels of machines, such as language models, with human judgments of the same documents.

    Parameters
    ----------
    labels, qrels
        A frame (qid, docno, label), a path, or a mapping of name to these; labels on the scale of the judgments or on
        any other, as probabilities. The human judgments, as in :func:`vbterrier.score`; grades above 0 are relevant.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95).

    Returns
    -------
    LabelQuality
        ``summary``: a row per labeller; ``kappa``, ``confusion`` and ``calibration`` by threshold and label.

    Raises
    ------
    ParameterError
        A level outside (0, 1).
    InputError
        No document with both a label and a judgment.

    Notes
    -----
    Predictions for held-out topics are those of an isotonic regression of relevance on the label in the other topics.
    Every fifth of the sorted topic ids is held out together (of one topic, every fifth docno), in any order of
    rows. Intervals treat documents as independent; labels of one topic usually are not, so that they are too narrow.

    Source: Cohen, Educational and Psychological Measurement 20, 1960. The effective number of judgments: Angelopoulos
    et al., Prediction-powered inference, Science 382, 2023, section 2.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": ["q1"] * 3 + ["q2"] * 3, "docno": [*"abcabc"], "label": [1, 0, 0, 1, 1, 0]})
    >>> result = label_quality({"llm": qrels.assign(label=[1, 0, 1, 1, 1, 0])}, qrels)
    >>> result.summary[["name", "n", "auc"]].round(2).values.tolist()
    [['llm', 6, 0.83]]
    >>> result.kappa[["threshold", "value"]].round(2).values.tolist()
    [['all grades', 0.67], ['1', 0.67]]
    """
    level = inference.level
    judgments = evaluation_target(qrels, None, None).judgments()
    machine = labels if isinstance(labels, MachineLabels) else MachineLabels(labels)
    machine.require_match(judgments)
    frame = labelled_judgments(machine, judgments)
    parts = [_quality(name, frame[frame[name].notna()], judgments, level) for name in machine.names]
    if not sum(len(part.confusion) for part in parts):
        raise InputError("labels: no document has both a label and a judgment; label judged documents to compare them")
    tables = zip(*((part.summary, part.kappa, part.confusion, part.calibration) for part in parts), strict=True)
    # Columns of tables without rows have no types.
    filled = ([table for table in of_kind if len(table)] or [of_kind[0]] for of_kind in tables)
    return LabelQuality(*(pd.concat(some, ignore_index=True) for some in filled))


def _quality(name: str, frame: pd.DataFrame, judgments: Judgments, level: float) -> LabelQuality:
    """The quality of one labeller, from the judged documents that it labelled."""
    from sklearn.metrics import roc_auc_score

    label, grade = frame[name].to_numpy(dtype=np.float64), frame["grade"].to_numpy(dtype=np.int64)
    relevant, n = grade > 0, len(frame)
    summary = {"name": name, "n": n, "n_labels": len(np.unique(label))}
    summary |= dict.fromkeys(("auc", "log_loss", "log_loss_rate", "r2", "worth"), np.nan)
    if n and relevant.any() and not relevant.all():
        predicted, rate = held_out(label, relevant, frame["qid"].factorize()[0]), relevant.mean()
        chance = np.clip(np.where(relevant, predicted, 1 - predicted), 1e-9, 1)
        r2 = max(1 - float(((relevant - predicted) ** 2).mean() / (rate * (1 - rate))), 0.0)
        summary |= {
            "auc": float(roc_auc_score(relevant, label)),
            "log_loss": float(-np.log(chance).mean()),
            "log_loss_rate": float(-(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))),
            "r2": r2,
            "worth": 1 / (1 - min(r2, 1 - 1e-9)),
        }
    pairs = pd.DataFrame({"label": label, "grade": grade})
    confusion = pairs.groupby(["label", "grade"]).size().rename("n").reset_index()
    confusion["share"] = confusion["n"] / confusion.groupby("label")["n"].transform("sum")
    bins = label if len(np.unique(label)) <= _MAX_LISTED_LABELS else pd.qcut(label, 10, labels=False, duplicates="drop")
    rows = []
    for part in np.unique(bins):
        of_bin = bins == part
        low, high = share_interval(int(relevant[of_bin].sum()), int(of_bin.sum()), level)
        rows.append((name, label[of_bin].mean(), int(of_bin.sum()), relevant[of_bin].mean(), low, high, level))
    calibration = pd.DataFrame(rows, columns=["name", "label", "n", "relevant", "low", "high", "level"])
    confusion.insert(0, "name", name)
    kappas = _kappas(name, label, grade, judgments.grades, level)
    return LabelQuality(pd.DataFrame([summary]), kappas, confusion, calibration)


def held_out(label: Floats, relevant: Any, topic: Ints) -> Floats:
    """The probability of relevance of each document by an isotonic regression on the labels of other topics."""
    from sklearn.isotonic import IsotonicRegression

    predicted = np.empty(len(label))
    fold = topic % min(_N_FOLDS, int(topic.max()) + 1) if topic.max() else np.arange(len(label)) % _N_FOLDS
    for part in np.unique(fold):
        out = fold == part
        training_part = label[~out], relevant[~out].astype(np.float64)
        least = 0.5 / (len(training_part[0]) + 1)
        rising = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
        predicted[out] = rising.fit(*training_part).predict(label[out]) if len(training_part[0]) else relevant.mean()
    return predicted


def _kappas(name: str, label: Floats, grade: Ints, grades: Ints, level: float) -> pd.DataFrame:
    """Cohen's kappa of all grades, and of relevance from each grade, for labels on the scale of the grades."""
    columns = ["name", "threshold", "value", "low", "high", "level", "agreement", "n"]
    if not len(label) or not ((label == np.round(label)) & (label <= grades[-1])).all() or len(grades) == 1:
        return pd.DataFrame(columns=columns)
    label = np.maximum(label, 0).astype(np.int64)
    pairs = {"all grades": (label, grade)}
    pairs |= {str(least): (label >= least, grade >= least) for least in grades[1:].tolist()}
    rows = []
    for threshold, (first, second) in pairs.items():
        # Limits that are missing in the table say so.
        kappa = quietly(cohen_kappa, first, second, level=level)
        rows.append((name, threshold, kappa.value, kappa.low, kappa.high, level, kappa.agreement, kappa.n_items))
    return pd.DataFrame(rows, columns=columns)


@with_defaults
def corrected_scores(
    runs: Any,
    qrels: Any,
    measures: Any = "nDCG@10",
    *,
    labels: Any,
    baseline: str | None = None,
    target: str = "population",
    data: Data = Data(duplicates="error", system=None),
    inference: Inference = Inference(level=0.95),
) -> pd.DataFrame:
    """Estimate mean scores of systems from machine labels of all topics and human judgments of a sample of them.

    The score of every topic by the machine labels, f, is corrected by the difference from the score by human judgments,
    Y, in the sample: ``mean_i [Y_i + λ (f̄ - f_i)]``, see :func:`vbterrier.stats.prediction_powered`. For documents that
    humans judged in part of each topic, give the labels as evidence instead, ``score(..., data=Data(labels=labels))``.

    Parameters
    ----------
    runs, measures
        See :func:`vbterrier.score`; the measures are evaluated by both kinds of labels.
    qrels, labels
        Human judgments of a random sample of the topics, complete to the cutoff: a frame (qid, docno, label) or a path;
        labels of one machine on the scale of the judgments, for all topics: whole numbers, as qrels.
    baseline, target
        As in :func:`vbterrier.stats.prediction_powered`.
    data
        A :class:`vbterrier.Data`: ``duplicates`` (``"error"``), ``system``.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95).

    Returns
    -------
    pandas.DataFrame
        See :func:`vbterrier.stats.prediction_powered`: name, measure, value, low, high, ..., labelled (the mean of the
        human judgments alone), predicted (that of the machine labels alone).

    Raises
    ------
    InputError, ParameterError
        Fewer than two judged topics; labels of several machines, or on another scale; judged topics without labels; an
        unknown baseline or target.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = pd.DataFrame({"qid": [f"q{i}" for i in range(60)], "docno": "a", "label": rng.integers(0, 2, 60)})
    >>> labels = truth.assign(label=np.where(rng.random(60) < 0.2, 1, truth["label"]))
    >>> run = truth[["qid", "docno"]].assign(score=1.0)
    >>> result = corrected_scores({"mine": run}, truth.sample(30, random_state=1), "P@1", labels=labels)
    >>> result[["name", "value", "n_labelled", "predicted"]].round(2).values.tolist()
    [['mine', 0.51, 30, 0.65]]
    """
    duplicates = data.duplicates
    level = inference.level
    machine = MachineLabels(labels)
    if len(machine) > 1:
        raise InputError(f"labels: {len(machine)} labellers ({examples(machine.names)}); give the labels of one")
    frame = machine.frame().rename(columns={"grade": "label"})
    odd = frame.loc[frame["label"] != frame["label"].round(), "label"]
    if len(odd):
        raise InputError(
            f"labels {machine.names[0]!r}: wanted grades, whole numbers as those of the judgments, found "
            f"{odd.iloc[0]:g}; round probabilities first, or give them as evidence, score(..., data=Data(labels=))"
        )
    frame = frame.astype({"label": np.int64})[["qid", "docno", "label"]]
    human = evaluation_target(qrels, None, None)
    judged = set(human.topics)
    unlabelled = sorted(judged - set(frame["qid"].unique()))
    if unlabelled:
        raise InputError(
            f"labels: {agreeing(len(unlabelled), 'topics have')} none ({examples(unlabelled)}); label all judged topics"
        )
    if len(judged) == frame["qid"].nunique():
        warn("all topics are judged by humans: machine labels add nothing to their judgments")
    loaded = loaded_runs(runs, duplicates, data.system)
    reported, evaluated = distinct_measures(measures), Data(on_topics="all", system=ONE)
    predicted = scored_runs(loaded, frame, reported, data=evaluated).table.frame()
    sample = {name: run.only(judged) for name, run in loaded.items()}
    labelled = scored_runs(sample, human, reported, data=evaluated).table.frame()
    return prediction_powered(predicted, labelled, baseline=baseline, target=target, level=level)
