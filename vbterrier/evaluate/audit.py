"""Audit of machines, such as language models, as judges: bias, corrected scores, and the human labels still needed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, chosen, examples, nearest, number, warn, whole
from vbterrier.evaluate.inputs import is_path, loaded_runs, require_scale, require_spellings, target_of
from vbterrier.evaluate.judge_verdict import ALONE, CORRECTED, HUMANS, NOT_TRUSTED, side_by_side, verdicts
from vbterrier.evaluate.judging import held_out, judge_next, label_quality
from vbterrier.evaluate.scores import score
from vbterrier.frames.columns import DOCUMENTS
from vbterrier.frames.contracts import frame_of, in_units, require
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.notebook import Caveat, Panel, Shown, counted, reliability_diagrams
from vbterrier.frames.ranking import Run, ranked
from vbterrier.kernels.dawid_skene import dawid_skene
from vbterrier.kernels.rankings import MOST_RANKS, discounts, ideal_dcg
from vbterrier.measures.target import aligned
from vbterrier.settings import Data, Inference
from vbterrier.stats.comparisons import pairs_of
from vbterrier.stats.kappa import judge_agreement
from vbterrier.stats.topic_intervals import topics_intervals
from vbterrier.unjudged.draws import GradeDraws
from vbterrier.unjudged.evidence import evidence_of
from vbterrier.unjudged.model import DEPTH, Constants, fit_evidence
from vbterrier.unjudged.pool import MachineLabels, frames_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.judging import LabelQuality
    from vbterrier.frames.notebook import Figures
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.evidence import Evidence
    from vbterrier.unjudged.judge_next import JudgingPlan
    from vbterrier.unjudged.pool import Judgments

# The estimate from the labels of several judges, which has no human judgments.
TOGETHER = "judges without humans (Dawid-Skene)"
# The run of all labelled documents, whose name no system has, and the parts of the judgments that are held out.
_FRAME, _FOLDS, _HELD_OUT_DRAWS = "\0labelled", 5, 200
# The model of judgments that are a sample has none of the errors that selection causes.
_SAMPLED = Constants(call=0, topic=0, topic_higher=0, of_run=0, of_run_topic=0, inflation=1)
# Judged documents of a stratum that are enough to correct the others.
_ENOUGH = 5
_RANKS = ((1, 3), (4, 10), (11, 30), (31, 100))
# Differences of shares of machine labels between systems that matter, and agreement that people do not reach.
_UNEVEN, _COPIED, _FEW = 0.05, 0.995, 20
_UNLIKELY = 0.001
_KEY = ["qid", "docno"]
# The fewest judges whose grades can be estimated without humans, and the most grades.
_JUDGES, _MOST_GRADES = 3, 20
# Columns that follow those of names: what a row is about comes before its numbers, and stays in sight on telephones.
_FIRST = ("measure", "estimate", "judge")
# Documents up to the cutoff that one other family retrieves.
_OTHERS = "\0others"


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAudit(Shown):
    """Result of :func:`audit_judge`.

    - ``verdicts``: a row per judge: judge, verdict (``"TRUSTED"``, ``"CALIBRATE FIRST"``, ``"NOT TRUSTED"``), reasons
      (text), n (documents with a label and a judgment), auc, auc_low (its lower limit), shift, largest_shift (of scores
      by the judge alone from those with human judgments), n_pairs, n_reversed (pairs of systems in the reverse order),
      half_width (of the scores with human judgments), n_more (human judgments until that is at most twice the margin,
      by the square root of their number), n_with, n_without (as ``needed``), margin, level
    - ``comparison``: a row per system: name, corrected, low, high, humans alone, and a column for each judge alone
    - ``systems``: name, measure, estimate (``"judge alone"``, ``"humans alone"``, ``"corrected"``), judge (of ``"judge
      alone"``, and of ``"humans alone"`` on the topics of a judge that labelled some topics only), value, low, high,
      level, method, n_qids, n_draws, seed. Of three judges or more, also ``"judges without humans (Dawid-Skene)"``,
      from their labels alone, which is wrong if they share errors
    - ``pairs``: differences of two systems under each estimate: name_a, name_b, measure, estimate, judge, diff, low,
      high, ...
    - ``quality``: agreement, confusion and calibration of each judge, see :func:`label_quality`
    - ``bias``: judge, by (grade, rank, length, overlap or family), group, n, bias (mean of label - grade; NaN for
      labels on another scale), residual (mean of the grade that the label predicts, calibrated on other topics, minus
      the grade: above 0 where the judge overrates; of documents that one family alone retrieves up to the cutoff, minus
      that of documents of one other family or system: above 0 if the judge prefers the family), low, high (of the
      residual; topics are independent), level
    - ``calibration``: method (the judge), predicted, observed (grades, divided by the highest, by tenths), n
    - ``without_humans``: judge, n, accuracy (estimated from the labels of three or more judges alone),
      agreement_with_humans (share of equal labels)
    - ``agreement``: of humans and all judges on the documents that all of them labelled, see
      :func:`vbterrier.stats.judge_agreement`; empty for labels on another scale
    - ``mixed``: name, judge, human, machine, neither (shares of the documents up to the cutoff, by the source of their
      label), filled (nDCG if labels of the judge fill the gaps of the judgments), shift (filled - corrected). Do not
      report filled: it has more of the judge's bias the more gaps a system has
    - ``needed``: labels (with or without), width (of the interval of a mean by the model, averaged over systems), n
      (human judgments until it is at most twice the margin; NaN if the plan does not reach it), n_planned and
      width_after (the length of the plan, at most the budget, and the width after all of it), margin
    - ``plan``: the documents to judge next, see :func:`vbterrier.judge_next`
    """

    verdicts: pd.DataFrame
    systems: pd.DataFrame
    pairs: pd.DataFrame
    quality: LabelQuality
    bias: pd.DataFrame
    calibration: pd.DataFrame
    agreement: pd.DataFrame
    mixed: pd.DataFrame
    needed: pd.DataFrame
    plan: JudgingPlan
    without_humans: pd.DataFrame

    @property
    def comparison(self) -> pd.DataFrame:
        """Scores of systems corrected, by humans alone and by each judge alone, side by side."""
        return side_by_side(self.systems)

    def summary(self) -> list[str]:
        """The verdict on each judge, and what its labels save, one line each."""
        lines = [f"{row['judge']}: {row['verdict']}: {row['reasons']}" for row in self.verdicts.to_dict("records")]
        counts = {
            row["labels"]: f"more than {row['n_planned']:,}" if np.isnan(row["n"]) else f"{int(row['n']):,}"
            for row in self.needed.to_dict("records")
        }
        saved = f"{counts['with']} more human judgments with labels, {counts['without']} without"
        return [*lines, f"±{self.needed['margin'].iloc[0]:g} takes {saved}"]

    def _verdict(self) -> Iterator[str]:
        # The reasons of judges that are not trusted are serious caveats.
        for row in self.verdicts.to_dict("records"):
            reasons = "" if row["verdict"] == NOT_TRUSTED else f": {row['reasons']}"
            yield f"{row['judge']}: {row['verdict']}{reasons}"
        yield self.summary()[-1]

    def _caveats(self) -> Iterator[Caveat]:
        for row in self.verdicts[self.verdicts["verdict"] == NOT_TRUSTED].to_dict("records"):
            for reason in row["reasons"].split("; "):
                yield Caveat(row["judge"], reason, serious=True)

    def to_frame(self) -> pd.DataFrame:
        """Return ``verdicts``: a row per judge."""
        return self.verdicts

    def _line(self) -> str:
        need = self.needed.set_index("labels").loc["with"].to_dict()
        n, more = need["n"], counted(int(need["n_planned"]), "more human judgment")
        reached = f"{more} leave ±{need['width_after'] / 2:.3f}"
        if not np.isnan(n):
            reached = f"±{need['margin']:g} needs {counted(int(n), 'more human judgment')}"
        systems, judges = self.systems["name"].nunique(), len(self.quality.summary)
        reached = f"{', '.join(self.verdicts['judge'] + ' ' + self.verdicts['verdict'])}; {reached}"
        return f"{counted(systems, 'system')}, {counted(judges, 'judge')}; {reached}"

    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        names = ("verdicts", "comparison", "systems", "pairs", "bias", "calibration", "agreement", "without_humans")
        tables = {name: getattr(self, name) for name in names}
        tables |= {"kappa": self.quality.kappa, "quality": self.quality.summary, "mixed": self.mixed}
        return tables | {"needed": self.needed, "plan": self.plan.documents}

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Verdicts", self.verdicts[["judge", "verdict", "reasons"]], heads=2)
        yield Panel("Systems: corrected scores, and others beside them", self.comparison, value=CORRECTED)
        yield Panel("Human judgments needed", self.needed.astype({"n": "Int64"}))
        yield Panel("Systems", self.systems, value="value", heads=3, folded=True)
        yield Panel("Differences a - b", self.pairs, value="diff", rule=0, heads=3, folded=True)
        yield Panel("Agreement beyond chance", self.quality.kappa, value="value", heads=2, folded=True)
        yield Panel("Relevant documents by label", self.quality.calibration, value="relevant", heads=2, folded=True)
        drawn = reliability_diagrams(self.calibration)
        title = "Calibration: grades as shares of the highest"
        yield Panel(title, self.calibration, heads=0, figure=drawn, folded=True)
        yield Panel("Bias of the judge", self.bias, value="residual", rule=0, heads=3, folded=True)
        yield Panel("Agreement of humans and judges", self.agreement, value="value", folded=True)
        if len(self.without_humans):
            yield Panel("Accuracy of judges without humans (Dawid-Skene)", self.without_humans, folded=True)
        yield Panel("Sources of labels", self.mixed, folded=True)
        yield Panel("Judge next, in this order", self.plan.documents, heads=2, folded=True)

    def _figures(self) -> Figures:
        estimate, judge = self.systems["estimate"], self.systems["judge"]
        topics = (", topics of " + judge).where(judge != "", "")
        method = np.where(estimate == ALONE, "judge " + judge, estimate + topics)
        frame = self.systems.assign(method=method, n_resamples=0)
        return {"forest": lambda: {"intervals": frame}, "reliability": lambda: {"bins": self.calibration}}


def audit_judge(
    runs: Any,
    qrels: Any,
    labels: Any,
    *,
    cutoff: int = 10,
    margin: float = 0.02,
    budget: int = 1000,
    baseline: str | None = None,
    families: Mapping[str, str] | None = None,
    data: Data | None = None,
    inference: Inference | None = None,
) -> JudgeAudit:
    r"""Audit machines as judges: nDCG by judge, by humans and corrected, bias, agreement, human labels needed.

    The corrected score of system s is cross-fitted: f_s, the mean over five models of grades, each without a fifth of
    the human judgments, with the labels as evidence, plus the errors of their predictions of these judgments. The
    residual of a judged document d is the difference between its contributions to the score under its grade and under
    its held-out prediction, and ``R_s = 1/T Σ_d (1/π_d - 4/5) residual_sd``, the prediction-powered correction, with
    the shares π of judged documents in strata of topic, cut and prediction. The estimate is ``f_s + R̄ + λ (R_s - R̄)``:
    the mean residual R̄ over systems corrects the errors that S systems share, and deviations are shrunk by the factor
    of James and Stein, ``λ = max(0, 1 - (S - 3)/(S - 1) Σ SE²(R_s - R̄) / Σ (R_s - R̄)²)``. Variances of differences are
    ``λ SE² + (1 - λ) V``, V the variance under the model of unjudged documents, and those of means add the
    variance of what all systems share.

    Parameters
    ----------
    runs, qrels, labels
        See :func:`vbterrier.score`. The human judgments are ideally of a random sample of the documents; ``labels`` are
        those of one or more judges.
    cutoff
        The cutoff k of nDCG@k. The ideal ranking is that of all documents that a judge labelled, a human judged, or a
        run retrieves up to the cutoff.
    margin, budget
        Half the width of the interval that more human judgments should reach, and the most judgments to plan.
    baseline
        A system: pairs with this system alone.
    families
        The family of each system, such as the language model that it uses, by the system's name.
    data
        A :class:`vbterrier.Data`: ``topics``, ``documents``, ``on_topics`` (``"same"``), ``duplicates`` (``"error"``),
        ``scale``, ``unit`` (1.0). ``documents`` are for bias by length, with ``topics`` also by the share of the
        query's words that a text contains. ``scale`` and ``unit`` are those of human judgments; labels may be on
        another scale.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.9), ``n_draws`` (1,000), ``seed`` (0).

    Raises
    ------
    InputError, ParameterError
        Frames that cannot be evaluated; no document with both a label and a judgment; a grade outside the scale; a
        topic in two spellings; a family or a baseline of an unknown system; options outside their range.

    Warns
    -----
    DegenerateWarning
        Judges that labelled more of some systems' documents than of others', or some topics only; judgments that seem
        to be machine labels; gaps that, filled with machine labels, would move systems by more than the margin.

    Notes
    -----
    Rules of the verdict, in this order. NOT TRUSTED: the lower limit of the AUC of its labels is not above .5; it
    overrates or underrates the documents of a family by more than .05 of the highest grade; or it reverses a pair of
    systems of which both differences are significant (both at the level .99). CALIBRATE FIRST, that is, use its labels
    as evidence beside human judgments: the lower limit of the AUC is below .75; scores or differences by its labels
    alone are off by more than the margin and outside of the interval with human judgments; or these intervals are wider
    than ± twice the margin, so that errors would not show. Otherwise TRUSTED: its labels alone compare these systems.
    Limits are simultaneous over systems, pairs and families (Bonferroni).

    Intervals are of these topics; those of ``"judge alone"`` are of other topics, because the labels alone do not show
    their errors. If strata with unjudged documents have fewer than five judged ones, as in pools of a fixed depth,
    estimates and intervals are those of the model. Coverage and errors with language models and simulated judges:
    docs/how-to/machine-labels.md.

    References
    ----------
    Angelopoulos et al., Prediction-powered inference, Science 382, 2023. Zrnic and Candès, Cross-prediction-powered
    inference, PNAS 121, 2024. Fröbe et al., ECIR 2023. λ: Efron and Morris, JASA 68, 1973, with an unknown mean.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pool = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(30)], 20), "docno": [*map(str, range(20))] * 30})
    >>> truth = pool.assign(label=(rng.random(600) < 0.4).astype(int))
    >>> generous = truth.assign(label=np.where(rng.random(600) < 0.3, 1, truth["label"]))
    >>> run = pool.assign(score=rng.random(600))
    >>> found = audit_judge({"mine": run}, truth.sample(480, random_state=0), {"llm": generous}, budget=100)
    >>> found.systems[["estimate", "value"]].round(2).values.tolist()
    [['humans alone', 0.45], ['corrected', 0.45], ['judge alone', 0.57]]
    """
    queries, documents, on_topics, duplicates, scale, unit = chosen(
        "audit_judge",
        Data,
        data,
        topics=None,
        documents=None,
        on_topics="same",
        duplicates="error",
        scale=None,
        unit=1.0,
    )
    level, n_draws, seed = chosen("audit_judge", Inference, inference, level=0.9, n_draws=1000, seed=0)
    number("margin", margin, low=0, high=1, open_high=True)
    whole("cutoff", cutoff, high=MOST_RANKS)
    for name, count, low in (("budget", budget, 1), ("n_draws", n_draws, 2)):
        whole(name, count, low=low)
    judges = MachineLabels(labels)
    judged = _judged(qrels, scale, unit)
    loaded = loaded_runs(runs, duplicates)
    require_spellings(judged, loaded, judges)
    _require_runs(loaded, baseline=[baseline] if baseline else [], families=families or {})
    target, loaded = aligned(judged, loaded, on_topics)
    quality = label_quality(judges, target.frame, inference=Inference(level=level))
    top = {name: _as_text(ranked(run.frame, max(DEPTH, cutoff), duplicates=duplicates)) for name, run in loaded.items()}
    judged_labels = judges.frame().rename(columns={"grade": "label"})
    judged_labels = judged_labels[judged_labels["qid"].isin(target.topics)]
    every = _evidence_runs(top, judged_labels, target, cutoff)
    judgments = target.judgments()
    labelled = {str(judge): part for judge, part in judged_labels.groupby("name", sort=False)}
    topics = [target.topics, *(sorted(set(part["qid"])) for part in labelled.values())]
    estimates = {}
    for name, used in ((HUMANS, None), (CORRECTED, judges)):
        evidence = evidence_of(every[0], judgments, cutoff, every[1], used)
        estimates[name] = _estimated(evidence, judgments.grades, list(loaded), n_draws, seed, topics)
    measure, options = f"nDCG@{cutoff}", {"level": level, "seed": seed}
    tables = [estimates[name][0].tables(name, level, baseline) for name in (HUMANS, CORRECTED)]
    for (judge, part), humans in zip(labelled.items(), estimates[HUMANS][1:], strict=True):
        if humans.n_qids < len(target.topics):
            _warn_of_lacking_topics(judge, part, target)
            tables.append(humans.tables(HUMANS, level, baseline, judge))
        tables.append(_alone(judge, part, loaded, measure, options, baseline))
    together, accuracy = _without_humans(judged_labels, target.frame)
    if len(together):
        tables.append(_alone("", together, loaded, measure, options, baseline, TOGETHER))
    about: dict[str, Any] = {"measure": measure, "level": level, "n_draws": n_draws, "seed": seed}
    systems, pairs = (
        _ordered(pd.concat(parts, ignore_index=True).assign(**about), place)
        for place, parts in enumerate(zip(*tables, strict=True), 1)
    )
    corrected = systems[systems["estimate"] == CORRECTED].set_index("name")["value"]
    mixed = _mixed(top, judged_labels, target, measure, corrected)
    _warn_of_mixture(mixed, margin)
    documented = _described(frames_of(judges, judgments), top, cutoff, families, documents, queries)
    _warn_of_copies(documented, judges.names)
    bias, calibration = _bias(documented, judges.names, judgments, families, level)
    frames = {name: run.frame for name, run in loaded.items()}
    read: dict[str, Any] = {"on_topics": on_topics, "duplicates": duplicates}
    plans = {
        word: judge_next(
            frames,
            target.frame,
            budget,
            f"ENDCG@{cutoff}",
            data=Data(labels=used, **read),
            inference=Inference(level=level),
        )
        for word, used in (("without", None), ("with", judges))
    }
    agreement, needed = _agreement(documented, judges.names, level), _needed(plans, margin)
    highest, n_human = max(int(judgments.grades[-1]), 1), len(target.frame)
    rules: dict[str, Any] = {"n_human": n_human, "highest": highest, "margin": margin, "level": level}
    decided = verdicts(systems, pairs, bias, quality, needed, **rules)
    about_judges = (bias, calibration, agreement, mixed, needed, plans["with"], accuracy)
    return JudgeAudit(decided, systems, pairs, quality, *about_judges)


def _judged(qrels: Any, scale: tuple[int, int] | None, unit: float) -> EvaluationTarget:
    """Human judgments, whose ratings are counted in steps of the scale."""
    if unit == 1:
        target = target_of(qrels, None, None)
        require_scale(target.frame, scale, "qrels")
        return target
    target = target_of(read_qrels(qrels, unit=unit) if is_path(qrels) else in_units(qrels, unit), None, None)
    require_scale(target.frame.assign(label=target.frame["label"] * unit), scale, "qrels")
    return target


def _require_runs(loaded: Mapping[str, Run], **values: Any) -> None:
    for what, names in values.items():
        for name in names:
            if name not in loaded:
                raise ParameterError(f"{what}: no run is called {name!r}.{nearest(name, loaded)}")


def _ordered(frame: pd.DataFrame, place: int) -> pd.DataFrame:
    """A table of estimates with its columns in the order of the documentation; ``place`` follows the names."""
    for column in reversed(_FIRST):
        frame.insert(place, column, frame.pop(column))
    # After the level.
    frame.insert(frame.shape[1] - 3, "n_qids", frame.pop("n_qids"))
    return frame


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(qid=frame["qid"].astype(str), docno=frame["docno"].astype(str))


def _evidence_runs(
    top: Mapping[str, pd.DataFrame], labelled: pd.DataFrame, target: EvaluationTarget, cutoff: int
) -> tuple[dict[str, Run], int]:
    """The runs, and a run of all documents by their ranks in the runs, with the size of its largest topic."""
    every = pd.concat([run[["qid", "docno", "rank"]] for run in top.values()])
    parts = (every[every["rank"] < cutoff], labelled, _as_text(target.frame))
    documents = pd.concat([part[_KEY] for part in parts]).drop_duplicates()
    documents = documents[documents["qid"].isin(target.topics)]
    fused = (1 / (60 + every["rank"])).groupby([every["qid"], every["docno"]]).sum().rename("score")
    runs = {name: Run(run.merge(documents, on=_KEY), name=f"run {name!r}") for name, run in top.items()}
    whole_frame = documents.join(fused, on=_KEY).fillna({"score": 0.0})
    return {**runs, _FRAME: Run(whole_frame)}, max(int(documents.groupby("qid").size().max()), cutoff)


@dataclass(frozen=True, eq=False)
class _Estimate:
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

        own = variance(draws - draws.mean(axis=0), errors - errors.mean(axis=0))
        half = np.sqrt(shared + own) * special.ndtri((1 + level) / 2)
        reach = np.sqrt(variance(draws[a] - draws[b], errors[a] - errors[b])) * special.ndtri((1 + level) / 2)
        gap = value[a] - value[b]
        means, gaps = (value, value - half, value + half), (gap, gap - reach, gap + reach)
        about: dict[str, Any] = {"estimate": estimate, "judge": judge, "method": method, "n_qids": self.n_qids}
        return _tables(self.names, baseline, means, gaps, **about)


def _places(names: list[str], baseline: str | None) -> Any:
    """The places of the two systems of each pair, shape (2, n_pairs)."""
    return np.array([[names.index(name) for name in pair] for pair in pairs_of(names, baseline)], int).reshape(-1, 2).T


def _tables(
    names: list[str], baseline: str | None, means: Any, gaps: Any, **about: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Estimates and differences with their limits; limits of estimates are scores."""
    systems = pd.DataFrame({"name": names, **dict(zip(("value", "low", "high"), means, strict=True))})
    systems[["low", "high"]] = systems[["low", "high"]].clip(0, 1)
    pairs = pd.DataFrame(pairs_of(names, baseline), columns=["name_a", "name_b"])
    pairs = pairs.assign(**dict(zip(("diff", "low", "high"), gaps, strict=True)))
    return systems.assign(**about), pairs.assign(**about)


def _estimated(
    evidence: Evidence, grades: Any, names: list[str], n_draws: int, seed: int, topics: list[list[str]]
) -> list[_Estimate]:
    """Draw the scores of all systems, and correct those of cross-fitted models by their errors.

    One model of all topics; its estimates of the means over each of some lists of ``topics``.
    """
    gain = np.asarray(grades, dtype=np.float64)
    weights: Floats = np.zeros((len(names), len(evidence)))
    for place, name in enumerate(names):
        own = np.flatnonzero((evidence.run == evidence.names.index(name)) & (evidence.rank <= evidence.cutoff))
        weights[place, evidence.item[own]] = discounts(evidence.cutoff)[evidence.rank[own] - 1]
    parts_of_topics = [np.isin(evidence.topics, part) for part in topics]
    drawn = GradeDraws(fit_evidence(evidence), n_draws, seed)
    scores = _scores(drawn, _inverse(ideal_dcg(drawn.counts, gain, evidence.cutoff)), gain, weights)
    draws = [scores[:, :, part].mean(axis=2) for part in parts_of_topics]
    judged = np.flatnonzero(evidence.level >= 0)
    fold = (evidence.keys[judged] % np.uint64(_FOLDS)).astype(np.int64)
    expected = drawn.shares @ gain
    fits = [_Fold(evidence, judged[fold == part], gain, weights, seed, parts_of_topics) for part in np.unique(fold)]
    predicted, parts = np.empty(len(judged)), np.empty((len(names), len(judged)))
    for part, fit in zip(np.unique(fold), fits, strict=True):
        predicted[fold == part], parts[:, fold == part] = fit.predicted, fit.parts
    weight = _excess_weights(evidence, judged, weights.any(axis=0), predicted, expected)
    if weight is None:
        return [_Estimate(names, int(own.sum()), draw) for own, draw in zip(parts_of_topics, draws, strict=True)]
    # Judged documents of a fold represent those of the other documents, and themselves, which their model did not see.
    parts *= weight + 1 / len(fits)
    # The variance of a sum over a sample with inclusion probabilities 1/(1 + w) is the sum of w (1 + w) x².
    spread = np.sqrt(weight * (1 + weight)) / (weight + 1 / len(fits))
    estimates = []
    for place, (of_part, draw) in enumerate(zip(parts_of_topics, draws, strict=True)):
        rows, fitted = of_part[evidence.topic[judged]], np.mean([fit.scores[place] for fit in fits], axis=0)
        n = int(of_part.sum())
        estimates.append(_Estimate(names, n, draw, fitted, parts[:, rows] / n, spread[rows]))
    return estimates


def _scores(drawn: GradeDraws, inverse: Floats, gain: Floats, weights: Floats) -> Floats:
    """Drawn nDCG of each system and topic, shape (S, B, T); ``inverse``: 1/IDCG, shape (B, T)."""
    evidence, n_draws = drawn.evidence, drawn.n_draws
    row = np.full(len(evidence), -1)
    row[evidence.unjudged[drawn.documents]] = np.arange(len(drawn.documents))
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
        model = replace(fit_evidence(without, _SAMPLED, exact=True), sigma=0.0)
        drawn = GradeDraws(model, _HELD_OUT_DRAWS, seed)
        counts, at = drawn.counts - drawn.unseen, np.searchsorted(without.unjudged, rows)
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
    predicted[judged], predicted[evidence.unjudged] = held_out, expected
    stratum = np.zeros(len(evidence), dtype=np.int64)
    for inside in (False, True):
        own = in_cut == inside
        if own.any():
            stratum[own] = 3 * inside + np.searchsorted(np.quantile(predicted[own], [1 / 3, 2 / 3]), predicted[own])
    n, n_judged = np.bincount(stratum, minlength=6), np.bincount(stratum[judged], minlength=6)
    if not len(evidence.unjudged) or ((n > n_judged) & (n_judged < _ENOUGH)).any():
        return None
    topic = evidence.topic
    share = np.bincount(topic) / np.maximum(np.bincount(topic[judged], minlength=int(topic.max()) + 1), 1)
    weight = share[topic[judged]]
    total = np.bincount(stratum[judged], weight, minlength=6)
    return np.asarray(np.maximum(weight * (n / np.maximum(total, 1e-9))[stratum[judged]] - 1, 0.0))


def _alone(
    name: str,
    labelled: pd.DataFrame,
    runs: Mapping[str, Run],
    measure: str,
    options: Any,
    baseline: str | None,
    estimate: str = ALONE,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores by the labels of one judge on its topics; nDCG does not depend on the unit of the labels."""
    frames = {system: run.only(set(labelled["qid"])).frame for system, run in runs.items()}
    label = labelled["label"].clip(lower=0)
    label = label if (label == label.round()).all() else (1000 / max(label.max(), 1e-9) * label).round()
    values = score(
        frames,
        labelled.assign(label=label.astype(np.int64)),
        [measure],
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=2),
    ).values
    table = values.pivot(index="qid", columns="name", values="value")[list(frames)].to_numpy()
    a, b = _places(list(frames), baseline)
    gap = table[:, a] - table[:, b]
    of_means = topics_intervals(table, bounds=(0, 1), **options)
    of_gaps = topics_intervals(gap, bounds=(-1, 1), **options)
    means, gaps = (table.mean(axis=0), of_means.low, of_means.high), (gap.mean(axis=0), of_gaps.low, of_gaps.high)
    about: dict[str, Any] = {"estimate": estimate, "judge": name, "method": "", "n_qids": len(table)}
    systems, pairs = _tables(list(frames), baseline, means, gaps, **about)
    systems["method"] = [of_means.method_of(place) for place in range(len(systems))]
    pairs["method"] = [of_gaps.method_of(place) for place in range(len(pairs))]
    return systems, pairs


def _without_humans(labelled: pd.DataFrame, human: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Expected grades from the labels of three or more judges (Dawid and Skene), and the accuracy of each judge.

    Empty for fewer judges, and for labels that are not whole numbers up to the highest grade.
    """
    wide = labelled.pivot(index=_KEY, columns="name", values="label")
    highest = max(int(human["label"].max()), int(np.nanmax(wide.to_numpy())))
    columns = ["judge", "n", "accuracy", "agreement_with_humans"]
    whole_labels = (wide.fillna(0) % 1 == 0).all(axis=None) and highest <= _MOST_GRADES
    if wide.shape[1] < _JUDGES or not whole_labels:
        return pd.DataFrame(columns=[*_KEY, "label"]), pd.DataFrame(columns=columns)
    labels = wide.clip(lower=0).fillna(-1).to_numpy().astype(np.int64)
    model = dawid_skene(labels, highest + 1)
    accuracy = np.einsum("g,jgg->j", model.prevalence, model.confusion)
    human_labels = _as_text(human).set_index(_KEY)["label"].reindex(wide.index)
    agreed = [(wide[name] == human_labels)[wide[name].notna() & human_labels.notna()].mean() for name in wide.columns]
    rows = {"judge": list(wide.columns), "n": wide.notna().sum().to_numpy(), "accuracy": accuracy}
    expected = wide.index.to_frame(index=False).assign(label=model.posterior @ np.arange(highest + 1.0))
    return expected, pd.DataFrame({**rows, "agreement_with_humans": agreed})


def _warn_of_lacking_topics(judge: str, labels: pd.DataFrame, target: EvaluationTarget) -> None:
    own = set(labels["qid"])
    lacking = [topic for topic in target.topics if topic not in own]
    warn(
        f"judge {judge!r}: no label for {len(lacking)} of {len(target.topics)} topics ({examples(lacking)}): its "
        f"scores are means over the other {len(own)}, as are those of humans alone in rows of this judge"
    )


def _needed(plans: Mapping[str, JudgingPlan], margin: float) -> pd.DataFrame:
    """The judgments until an interval reaches the margin, with and without labels."""
    rows = []
    for word, plan in plans.items():
        narrow = np.flatnonzero(np.array([plan.width_before, *plan.documents["width_after"]]) <= 2 * margin)
        rows.append((word, plan.width_before, float(narrow[0]) if len(narrow) else np.nan, len(plan), plan.width_after))
    return pd.DataFrame(rows, columns=["labels", "width", "n", "n_planned", "width_after"]).assign(margin=margin)


def _mixed(
    top: Mapping[str, pd.DataFrame], labelled: pd.DataFrame, target: EvaluationTarget, measure: str, corrected: Any
) -> pd.DataFrame:
    """The sources of the labels up to the cutoff, and nDCG with machine labels in the gaps."""
    cutoff = int(measure.partition("@")[2])
    cut = pd.concat([run[run["rank"] < cutoff].assign(name=name) for name, run in top.items()])
    cut = cut[cut["qid"].isin(target.topics)][["name", *_KEY]]
    human = _as_text(target.frame)
    parts = []
    for judge, labels in labelled.groupby("name", sort=False):
        of_both = cut.merge(human[_KEY].assign(human=1.0), how="left", on=_KEY)
        of_both = of_both.merge(labels[_KEY].assign(machine=1.0), how="left", on=_KEY).fillna(0.0)
        of_both["machine"] *= 1 - of_both["human"]
        shares = of_both.groupby("name", sort=False)[["human", "machine"]].mean().reset_index()
        gaps = labels.merge(human[_KEY], how="left", on=_KEY, indicator=True).query("_merge == 'left_only'")
        filled = pd.Series(np.nan, corrected.index)
        if labels["label"].max() <= human["label"].max():
            rounded = gaps[_KEY].assign(label=gaps["label"].round().astype(np.int64))
            both = pd.concat([human[[*_KEY, "label"]], rounded])
            filled = score(
                top, both, [measure], data=Data(on_topics="all"), inference=Inference(n_resamples=2)
            ).means()[measure]
        values = shares["name"].map(filled)
        shift = values - shares["name"].map(corrected)
        neither = 1 - shares["human"] - shares["machine"]
        parts.append(shares.assign(neither=neither.round(12), filled=values, shift=shift, judge=judge))
    columns = ["name", "judge", "human", "machine", "neither", "filled", "shift"]
    return pd.concat(parts, ignore_index=True)[columns]


def _warn_of_mixture(mixed: pd.DataFrame, margin: float) -> None:
    for judge, part in mixed.groupby("judge", sort=False):
        least, most = part.sort_values("machine").iloc[[0, -1]].to_dict("records")
        if most["machine"] - least["machine"] > _UNEVEN and (part["shift"].abs() > margin).any():
            warn(
                f"judge {judge!r}: do not fill the gaps of the judgments with its labels: {most['name']} would get "
                f"{most['machine']:.0%} machine labels and a score {most['shift']:+.3f} from the corrected one, "
                f"{least['name']} {least['machine']:.0%} and {least['shift']:+.3f}; use the corrected scores"
            )
        least, most = part.sort_values("neither").iloc[[0, -1]].to_dict("records")
        if most["neither"] - least["neither"] > _UNEVEN:
            warn(
                f"judge {judge!r}: {most['neither']:.0%} of the documents of {most['name']} up to the cutoff have "
                f"neither a label nor a judgment, of {least['name']} {least['neither']:.0%}: the judge alone treats "
                "them as non-relevant; label the documents of all systems"
            )


def _described(
    frame: pd.DataFrame, top: Mapping[str, pd.DataFrame], cutoff: int, families: Any, documents: Any, queries: Any
) -> pd.DataFrame:
    """Judged documents with their best rank, the only run that has them in its cut, length, and families."""
    every = pd.concat([run[[*_KEY, "rank"]].assign(name=name) for name, run in top.items()])
    frame = frame.join(every.groupby(_KEY)["rank"].min() + 1, on=_KEY)
    cut = every[every["rank"] < cutoff]
    of_document = cut.groupby(_KEY)["name"].agg(["size", "first"])
    owner = of_document["first"].where(of_document["size"] == 1, "").rename("owner")
    frame = frame.join(owner, on=_KEY)
    if documents is not None:
        texts = frame_of(documents, "documents", DOCUMENTS)
        require(texts, ("docno", "text"), "documents")
        length = pd.Series([len(str(text).split()) for text in texts["text"]], texts["docno"].astype(str))
        words = frame["docno"].map(length[~length.index.duplicated()])
        if words.isna().all():
            raise InputError(f"documents: no text of a judged document, as {examples(frame['docno'])}; check the ids")
        quarters = pd.qcut(words, 4, duplicates="drop")
        frame["length"] = quarters.map(lambda part: f"{part.left:.0f} to {part.right:.0f} words", na_action="ignore")
        if queries is not None:
            frame["overlap"] = _overlap(frame, texts, queries)
    # Documents of several families are better than others, whatever the judge.
    cut = cut.assign(family=cut["name"].map({name: (families or {}).get(name, f"\0{name}") for name in top}))
    of_document = cut.groupby(_KEY)["family"].agg(["nunique", "first"])
    return frame.join(of_document["first"].where(of_document["nunique"] == 1).rename("family"), on=_KEY)


def _overlap(frame: pd.DataFrame, texts: pd.DataFrame, queries: Any) -> pd.Series[Any]:
    """Quarters of the documents by the share of the words of their query that they contain."""
    asked = frame_of(queries, "queries")
    require(asked, ("qid", "query"), "queries")
    words = [
        {str(key): set(str(text).lower().split()) for key, text in zip(part.iloc[:, 0], part.iloc[:, 1], strict=True)}
        for part in (asked[["qid", "query"]], texts[["docno", "text"]])
    ]
    shares = [
        len(words[0][qid] & words[1][docno]) / len(words[0][qid]) if words[0].get(qid) and docno in words[1] else np.nan
        for qid, docno in zip(frame["qid"], frame["docno"], strict=True)
    ]
    if np.isnan(shares).all():
        raise InputError(f"queries: no query of a judged topic, as {examples(frame['qid'])}; check the ids")
    quarters = [f"{low}% to {low + 25}% of the query's words" for low in (0, 25, 50, 75)]
    return pd.cut(pd.Series(shares, frame.index), [-0.01, 0.25, 0.5, 0.75, 1], labels=quarters).astype(object)


def _warn_of_copies(frame: pd.DataFrame, judges: list[str]) -> None:
    """Warn of judgments that were filled with machine labels: of one system's documents, all are the judge's."""
    for judge in judges:
        both = frame[frame[judge].notna()]
        same = both[judge] == both["grade"]
        of_run = same[both["owner"] != ""].groupby(both["owner"]).agg(["mean", "size"])
        of_run = of_run[(of_run["size"] >= _FEW) & (of_run["mean"] >= _COPIED)]
        # More equal labels than those of all documents explain.
        of_run = of_run[same.mean() ** of_run["size"] < _UNLIKELY]
        if len(of_run) and same.mean() < _COPIED:
            warn(
                f"judge {judge!r}: all {of_run['size'].iloc[0]} judgments of documents that only {of_run.index[0]} "
                f"retrieves equal its labels, of all judgments {same.mean():.0%}: gaps seem to be filled with machine "
                "labels; give human judgments alone"
            )
        elif len(both) >= _FEW and same.all():
            warn(f"judge {judge!r}: its labels equal all human judgments; are these its own labels?")


def _bias(
    frame: pd.DataFrame, judges: list[str], judgments: Judgments, families: Any, level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The bias of each judge by group, and its calibration."""
    ranks = pd.Series("not retrieved", frame.index)
    for low, high in _RANKS:
        ranks[frame["rank"].between(low, high)] = f"{low} to {high}"
    groups = [("grade", frame["grade"].astype(str)), ("rank", ranks)]
    if "length" in frame:
        groups.append(("length", frame["length"].astype(object)))
    if "overlap" in frame:
        groups.append(("overlap", frame["overlap"]))
    sole, family_names = frame["family"], sorted(set((families or {}).values()))
    groups += [("family", sole.mask(sole.notna() & (sole != family), _OTHERS)) for family in family_names]
    rows, bins = [], []
    most = max(int(judgments.grades[-1]), 1)
    for judge in judges:
        both = frame[frame[judge].notna()]
        label, grade = (both[column].to_numpy(dtype=np.float64) for column in (judge, "grade"))
        if not len(both) or np.ptp(grade) == 0:
            continue
        topic = both["qid"].factorize(sort=True)[0]
        predicted = held_out(label, grade / most, topic)
        table = pd.DataFrame({"predicted": predicted, "observed": grade / most})
        by_tenth = table.groupby(np.minimum((predicted * 10).astype(np.int64), 9))
        bins.append(by_tenth.mean().assign(n=by_tenth.size(), method=judge))
        on_scale = 1 < label.max() <= most or set(np.unique(label)) <= {0.0, 1.0}
        error, bias = most * predicted - grade, label - grade if on_scale else np.full(len(both), np.nan)
        for by, every_group in groups:
            group = every_group[both.index]
            names = sorted(set(group.dropna()) - {_OTHERS})
            # By the number that they begin with; the others follow.
            for name in sorted(
                names, key=lambda name: int(found[0]) if (found := re.match(r"\d+", name)) else math.inf
            ):
                own = (group == name).to_numpy()
                mean = _mean(error, own, (group == _OTHERS).to_numpy(), topic, level)
                rows.append((judge, by, name, int(own.sum()), bias[own].mean(), *mean, level))
    columns = ["judge", "by", "group", "n", "bias", "residual", "low", "high", "level"]
    empty = pd.DataFrame(columns=["predicted", "observed", "n", "method"])
    return pd.DataFrame(rows, columns=columns), pd.concat(bins or [empty], ignore_index=True)


def _mean(error: Floats, own: Any, others: Any, topic: Any, level: float) -> tuple[float, float, float]:
    """The mean error of a group, less that of others if there are any, with Student's interval over topics."""
    from scipy import special

    value, part, sizes = 0.0, np.zeros(len(error)), []
    for sign, group in ((1, own), (-1, others)):
        if group.any():
            value += sign * error[group].mean()
            part[group] = sign * (error[group] - error[group].mean()) / group.sum()
            sizes.append(len(np.unique(topic[group])))
    n = min(sizes)
    if n < 2:  # noqa: PLR2004 - a standard deviation needs two topics
        return value, np.nan, np.nan
    half = special.stdtrit(n - 1, (1 + level) / 2) * np.sqrt(n / (n - 1) * (np.bincount(topic, part) ** 2).sum())
    return value, value - half, value + half


def _agreement(frame: pd.DataFrame, judges: list[str], level: float) -> pd.DataFrame:
    whole_labels = [name for name in judges if (frame[name].dropna() % 1 == 0).all()]
    common = frame[["grade", *whole_labels]].dropna().astype(np.int64).rename(columns={"grade": "humans"})
    if not whole_labels or not len(common):
        return pd.DataFrame(columns=["judges", "statistic", "value", "low", "high", "level", "method", "n_items"])
    return judge_agreement(common, level=level, n_resamples=500)
