"""Audit of machines, such as language models, as judges: bias, corrected scores, and the human labels still needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, nearest, number, warn, whole
from vbterrier.evaluate.inputs import evaluation_target, is_path, loaded_runs, require_scale, require_spellings
from vbterrier.evaluate.judge_bias import agreement_on_common, bias_by_group, warn_of_copies, with_groups
from vbterrier.evaluate.judge_estimates import (
    BY_DOCUMENTS,
    AuditMaterial,
    estimates_alone,
    estimates_with_humans,
    score_correction,
)
from vbterrier.evaluate.judge_scores import (
    CORRECTED,
    DAWID_SKENE_ESTIMATE,
    JUDGE_ESTIMATE,
    KEY,
    dawid_skene_labels,
    scores_alone,
    topic_table,
)
from vbterrier.evaluate.judge_topics import judged_topics, labelled_topics
from vbterrier.evaluate.judge_verdict import MOST_REVERSED, NOT_TRUSTED, side_by_side, verdicts
from vbterrier.evaluate.judging import judge_next, label_quality
from vbterrier.evaluate.scores import scored_runs
from vbterrier.frames.answer import Caveat, sentence
from vbterrier.frames.contracts import in_units
from vbterrier.frames.files.reading import evaluated_qrels
from vbterrier.frames.notebook import Panel, count_text, reliability_diagrams
from vbterrier.frames.pictures import MAX_BARS, Bar, IntervalPicture, Rule
from vbterrier.frames.pipelines import pipeline_input
from vbterrier.frames.queries import require_unweighted
from vbterrier.frames.results import Shown, measure_text
from vbterrier.frames.systems import ONE
from vbterrier.kernels.rankings import MOST_RANKS
from vbterrier.measures.target import align_topics
from vbterrier.measures.text import measures_from
from vbterrier.settings import Data, Inference, with_defaults
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF
from vbterrier.unjudged.pool import MachineLabels, labelled_judgments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.evaluate.judging import LabelQuality
    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.remedies import Call
    from vbterrier.unjudged.judge_next import JudgingPlan

# Differences of shares of machine labels between systems that matter.
_UNEVEN = 0.05
# Arguments that a list of topics to judge has, too.
_NEXT_STEP_ARGUMENTS = ("runs", "qrels", "labels", "on_topics", "duplicates", "system")
# Columns that follow those of names: what a row is about comes before its numbers, and stays in sight on telephones.
_FIRST_COLUMNS = ("measure", "estimate", "judge")
# The methods of corrected scores by documents, in words.
_CORRECTION_TEXTS = {
    "unjudged (normal)": "a model of the grades of unjudged documents (normal)",
    "unjudged and residuals (normal)": "judged documents and a model of the other grades (normal)",
}


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAudit(Shown):
    """Result of :func:`audit_judge`.

    - ``verdicts``: a row per judge: judge, order and levels (each ``"TRUSTED"``, ``"NOT TRUSTED"`` or ``"UNKNOWN"``)
      with order_reason and levels_reason, findings (pairs that are shown reversed, families that it prefers, noisy
      labels, bias by grade), n_complete (topics that humans judged completely) of n_topics (with its labels), n_pairs,
      n_apart (pairs of systems that it separates by the margin), reversed (share of these that humans reverse by more
      than the margin in the complete topics) with its one-sided limits reversed_low and reversed_high, n_order and
      n_levels (complete topics that would decide, NaN if the verdict is known), shift and largest_shift (of scores by
      the judge from those by humans), half_width (of the shifts, all together), n (documents with a label and a
      judgment), auc, auc_low (its lower limit), n_with, n_without (as ``needed``), margin, level (of both verdicts)
    - ``comparison``: a row per system: name, corrected, low, high, humans alone, and a column for each judge alone
    - ``systems``: name, measure, estimate (``"judge alone"``, ``"humans alone"``, ``"corrected"``), judge (of ``"judge
      alone"``, and of ``"humans alone"`` on the topics of a judge that labelled some topics only), value, low, high,
      common (half width of the error that all systems share, mainly of the ideal ranking), level, method, n_qids,
      n_draws, seed. Corrected values are NaN where the method says why. Of three judges or more, also ``"judges
      without humans (Dawid-Skene)"``, from their labels alone, which is wrong if they share errors
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
    - ``plan``: the documents to judge next, see :func:`vbterrier.judge_next`; its ``estimand`` names the depth of the
      judgments that it and ``needed`` plan for
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
        """Both verdicts on each judge, the correction, and what its labels save, a line each."""
        lines = []
        for row in self.verdicts.to_dict("records"):
            lines += [sentence(_both(row, what)) for what in ("order", "levels")]
            lines += [f"{row['judge']}: {row['findings']}"] * bool(row["findings"])
        return [*lines, *self._rest()]

    def _rest(self) -> Iterator[str]:
        """The correction and its common error, and what the labels save."""
        corrected = self.systems[self.systems["estimate"] == CORRECTED].iloc[0]
        if np.isnan(corrected["value"]):
            yield f"Scores are not corrected: {corrected['method']}."
        else:
            how = _CORRECTION_TEXTS.get(corrected["method"], corrected["method"])
            yield (
                f"Scores are corrected by {how}. Prefer differences: all levels share an error of "
                f"±{corrected['common']:.3f}, mainly that of the ideal ranking."
            )
        yield _needed_sentence(self.needed, self.plan)

    def _verdict(self) -> Iterator[str]:
        for row in self.verdicts.to_dict("records"):
            for what in ("order", "levels"):
                yield sentence(_both(row, what))
        yield from self._rest()

    def _next(self, call: Call) -> str:
        rows = self.verdicts
        n_topics = float(np.nanmax([0.0, *rows["n_order"], *rows["n_levels"]]))
        if call.options is None or not n_topics:
            return ""
        judges = tuple("--labels" if word in {"--judge", "-j"} else word for word in call.words["judge"])
        same = replace(call, words={**call.words, "labels": judges})
        return same.next("judge", "", _NEXT_STEP_ARGUMENTS, complete=int(n_topics), output="judge.tsv")

    def _picture(self) -> IntervalPicture | None:
        corrected = self.systems[(self.systems["estimate"] == CORRECTED) & self.systems["value"].notna()]
        if not len(corrected):
            shares = self.verdicts[["judge", "reversed", "reversed_low", "reversed_high"]].dropna()
            bars = [Bar(*row) for row in shares.head(MAX_BARS).itertuples(index=False, name=None)]
            rule = Rule(MOST_REVERSED, "above it, NOT TRUSTED")
            return IntervalPicture("share of pairs of systems reversed", tuple(bars), (rule,)) if bars else None
        rows = corrected.sort_values("value", ascending=False, kind="stable").head(MAX_BARS)
        bars = [Bar(*row) for row in rows[["name", "value", "low", "high"]].itertuples(index=False, name=None)]
        level = f"{100 * rows['level'].iloc[0]:g}% intervals"
        return IntervalPicture(f"corrected {rows['measure'].iloc[0]}, {level}", tuple(bars))

    def _caveats(self) -> Iterator[Caveat]:
        for row in self.verdicts.to_dict("records"):
            for finding in filter(None, row["findings"].split("; ")):
                yield Caveat(row["judge"], f"{finding}.", serious=NOT_TRUSTED in (row["order"], row["levels"]))

    def to_frame(self) -> pd.DataFrame:
        """Return ``verdicts``: a row per judge."""
        return self.verdicts

    def _line(self) -> str:
        need = self.needed.set_index("labels").loc["with"].to_dict()
        n, more = need["n"], count_text(int(need["n_planned"]), "more human judgment")
        reached = f"{more} leave ±{need['width_after'] / 2:.3f}"
        if not np.isnan(n):
            reached = f"±{need['margin']:g} needs {count_text(int(n), 'more human judgment')}"
        systems, judges = self.systems["name"].nunique(), len(self.quality.summary)
        statements = [
            f"{row['judge']} order {row['order']}, levels {row['levels']}" for row in self.verdicts.to_dict("records")
        ]
        return f"{count_text(systems, 'system')}, {count_text(judges, 'judge')}; {', '.join(statements)}; {reached}"

    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        names = ("verdicts", "comparison", "systems", "pairs", "bias", "calibration", "agreement", "without_humans")
        tables = {name: getattr(self, name) for name in names}
        tables |= {"kappa": self.quality.kappa, "quality": self.quality.summary, "mixed": self.mixed}
        return tables | {"needed": self.needed, "plan": self.plan.documents}

    def _panels(self) -> Iterator[Panel]:
        columns = ["judge", "order", "order_reason", "levels", "levels_reason", "n_complete", "n_topics"]
        yield Panel("Verdicts", self.verdicts[columns].rename(columns=lambda name: name.replace("_", " ")), heads=1)
        corrected = self.pairs[self.pairs["estimate"] == CORRECTED]
        if corrected["diff"].notna().any():
            shown = corrected[["name_a", "name_b", "diff", "low", "high"]]
            yield Panel("Corrected differences a - b", shown, value="diff", rule=0, heads=2)
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
        method = np.where(estimate == JUDGE_ESTIMATE, "judge " + judge, estimate + topics)
        frame = self.systems.assign(method=method, n_resamples=0).dropna(subset=["value", "low", "high"])
        return {"forest": lambda: {"intervals": frame}, "reliability": lambda: {"bins": self.calibration}}


def _both(row: Mapping[Any, Any], what: str) -> str:
    """One verdict on a judge, with its reason."""
    about = "order of systems by" if what == "order" else "level of scores by"
    return f"the {about} {row['judge']} is {row[what]}: {row[f'{what}_reason']}"


def _needed_sentence(needed: pd.DataFrame, plan: JudgingPlan) -> str:
    """The human judgments that an interval of the margin takes, with and without labels."""
    rows: dict[str, Any] = {str(row["labels"]): row for row in needed.to_dict("records")}
    measure = measure_text(plan.measure, plan.estimand)
    margin, n_planned = f"±{rows['with']['margin']:g}", int(rows["with"]["n_planned"])
    n_with, n_without = (float(rows[word]["n"]) for word in ("with", "without"))
    more = f"more than {n_planned:,}"
    if np.isnan(n_with) and np.isnan(n_without):
        width = rows["with"]["width_after"] / 2
        return (
            f"{count_text(n_planned, 'more human judgment')} would narrow the interval of {measure} to "
            f"±{width:.3f}, not to {margin}."
        )
    texts = [more if np.isnan(n) else f"{int(n):,}" for n in (n_with, n_without)]
    return (
        f"An interval of {margin} of {measure} needs {texts[0]} more human judgments with these labels, and {texts[1]} "
        "without them."
    )


@with_defaults
def audit_judge(
    runs: Any,
    qrels: Any,
    *,
    labels: Any,
    cutoff: int = 10,
    margin: float = 0.02,
    budget: int = 1000,
    baseline: str | None = None,
    families: Mapping[str, str] | None = None,
    data: Data = Data(
        pool_cutoff=None,
        topics=None,
        documents=None,
        on_topics="same",
        duplicates="error",
        system=None,
        scale=None,
        unit=1.0,
    ),
    inference: Inference = Inference(level=0.9, n_draws=1000, seed=0),
) -> JudgeAudit:
    r"""Audit machines as judges: verdicts on the order of systems and on their scores, corrected scores, and bias.

    Both verdicts are from the topics that humans judged completely: all documents that a run retrieves up to the
    cutoff, and all that the judge labelled. :func:`vbterrier.evaluate.topics_to_judge` lists a random sample of them.

    - ``order``: pairs of systems that the judge separates by the margin at least. TRUSTED if the upper 95 % limit of
      the share that humans reverse by more than the margin is at most .10, NOT TRUSTED if its lower limit is above
      .10, otherwise UNKNOWN, with the number of complete topics that would decide; also below 10 complete topics, and
      where the judge separates no pair. ``vbterrier.stats.reversals.order_limits`` has the formulas.
    - ``levels``: TRUSTED if the shift of each score from that by humans is within twice the margin, with simultaneous
      95 % intervals (Bonferroni's t); NOT TRUSTED if one is beyond; otherwise UNKNOWN.

    Pairs that are shown reversed by more than the margin, families of systems that a judge prefers, and noisy labels
    are named under any verdict.

    Scores by judges are corrected with human judgments from 15 complete topics, or 20 judged documents in each other
    topic on; below, they are empty, and the method says why. Complete topics: the mean difference of human and judged
    scores is added. Documents: the corrected score of system s is cross-fitted: f_s, the mean over five models of
    grades, each without a fifth of the human judgments, with the labels as evidence, plus the errors of their
    predictions of these judgments. The residual of a judged document d is the difference between its contributions to
    the score under its grade and under its held-out prediction, and ``R_s = 1/T Σ_d (1/π_d - 4/5) residual_sd``, the
    prediction-powered correction, with the shares π of judged documents in strata of topic, cut and prediction. The
    estimate is ``f_s + R̄ + λ (R_s - R̄)``: the mean residual R̄ over systems corrects the errors that S systems share,
    and deviations are shrunk by the factor of James and Stein, ``λ = max(0, 1 - (S - 3)/(S - 1) Σ SE²(R_s - R̄) / Σ (R_s
    - R̄)²)``. Variances of differences are ``λ SE² + (1 - λ) V``, V the variance under the model of unjudged documents,
    and those of means add the variance of what all systems share.

    Parameters
    ----------
    runs, qrels, labels
        See :func:`vbterrier.score`. The human judgments are those of a random sample of the topics with labels, each
        judged completely, or of a random sample of the documents, which allows no verdict but bias and corrected
        scores. ``labels`` are those of one or more judges.
    cutoff
        The cutoff k of nDCG@k. The ideal ranking is that of all documents that a judge labelled, a human judged, or a
        run retrieves up to the cutoff.
    margin, budget
        The smallest difference that matters, which is half the width of the interval that more human judgments should
        reach; the most judgments to plan.
    baseline
        A system: pairs with this system alone.
    families
        The family of each system, such as the language model that it uses, by the system's name.
    data
        A :class:`vbterrier.Data`: ``system``, ``pool_cutoff``, ``topics``, ``documents``, ``on_topics`` (``"same"``),
        ``duplicates`` (``"error"``), ``scale``, ``unit`` (1.0). ``pool_cutoff`` is for the plan of judgments.
        ``documents`` are for bias by length, with ``topics`` also by the share of the query's words that a text
        contains. ``scale`` and ``unit`` are those of human judgments; labels may be on another scale.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.9), ``n_draws`` (1,000), ``seed`` (0).

    Returns
    -------
    JudgeAudit
        ``verdicts``: a row per judge; ``comparison``: scores of each system by judge, humans and both; further tables
        as attributes.

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
    Intervals are about these topics; those of ``"judge alone"`` are over topics, because the labels alone do not show
    their errors. If strata with unjudged documents have fewer than five judged ones, as in pools of a fixed depth,
    estimates and intervals are those of the model. Errors of the ideal ranking shift all corrected scores together
    (``common``): compare differences. Error rates of the verdicts and coverage with language models and simulated
    judges: docs/how-to/audit.md.

    References
    ----------
    Angelopoulos et al., Prediction-powered inference, Science 382, 2023. Zrnic and Candès, Cross-prediction-powered
    inference, PNAS 121, 2024. Fröbe et al., ECIR 2023. λ: Efron and Morris, JASA 68, 1973, with an unknown mean.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pool = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(40)], 20), "docno": [*map(str, range(20))] * 40})
    >>> truth = pool.assign(label=(rng.random(800) < 0.4).astype(int))
    >>> generous = truth.assign(label=np.where(rng.random(800) < 0.3, 1, truth["label"]))
    >>> runs = {"a": pool.assign(score=rng.random(800)), "b": truth.assign(score=truth["label"] + rng.random(800))}
    >>> human = truth[truth["qid"].isin(pool["qid"].unique()[:20])]
    >>> result = audit_judge(runs, human, labels={"llm": generous}, budget=100)
    >>> result.verdicts[["judge", "order", "levels", "n_complete"]].values.tolist()
    [['llm', 'TRUSTED', 'NOT TRUSTED', 20]]
    >>> result.systems[["name", "estimate", "value"]].round(1).values.tolist()[2:4]
    [['a', 'corrected', 0.5], ['b', 'corrected', 1.0]]
    """
    queries, documents, on_topics, duplicates, scale, unit = (
        data.topics,
        data.documents,
        data.on_topics,
        data.duplicates,
        data.scale,
        data.unit,
    )
    level, n_draws, seed = inference.level, inference.n_draws, inference.seed
    if queries is not None:
        queries = pipeline_input(queries)
        require_unweighted(queries, "audit_judge", "leave it out, topics of an audit count equally")
    number("margin", margin, low=0, high=1, open_high=True)
    whole("cutoff", cutoff, high=MOST_RANKS)
    for name, count, low in (("budget", budget, 1), ("n_draws", n_draws, 2)):
        whole(name, count, low=low)
    judges = MachineLabels(labels)
    judgments_of_humans = _human_judgments(qrels, scale, unit)
    every_run = loaded_runs(runs, duplicates, data.system)
    require_spellings(judgments_of_humans, every_run, judges)
    _require_runs(every_run, baseline=[baseline] if baseline else [], families=families or {})
    target, loaded = align_topics(judgments_of_humans, every_run, on_topics)
    quality = label_quality(judges, target, inference=Inference(level=level))
    depth, measure = max(DEFAULT_POOL_CUTOFF, cutoff), f"nDCG@{cutoff}"
    top = {name: _as_text(run.first(depth)) for name, run in every_run.items()}
    every_label, human = judges.frame().rename(columns={"grade": "label"}), _as_text(target.frame)
    judged = {
        str(judge): judged_topics(top, part, human, every_run, labelled_topics(part, every_run, on_topics), cutoff)
        for judge, part in every_label.groupby("name", sort=False)
    }
    judged_labels = every_label[every_label["qid"].isin(target.topics)]
    judgments = target.judgments()
    options: dict[str, Any] = {"level": level, "n_draws": n_draws, "seed": seed}
    material = AuditMaterial(target, judgments, loaded, top, every_label, human, judged, cutoff)
    correction = score_correction(material)
    tables = [
        *estimates_with_humans(material, judges, correction, baseline, options),
        *estimates_alone(material, correction, baseline, options),
    ]
    together, accuracy = dawid_skene_labels(judged_labels, human)
    if len(together):
        table = topic_table(together, loaded, measure)[1]
        tables.append(scores_alone("", list(loaded), table, level, seed, baseline, DAWID_SKENE_ESTIMATE))
    systems, pairs = (
        _reorder_columns(pd.concat(parts, ignore_index=True).assign(measure=measure, **options), place)
        for place, parts in enumerate(zip(*tables, strict=True), 1)
    )
    # Scores that complete topics correct are means over other topics than those of the filled judgments.
    corrected = systems[systems["estimate"] == CORRECTED].set_index("name")["value"]
    corrected = corrected if correction.kind == BY_DOCUMENTS else corrected * np.nan
    mixed = _label_sources(top, judged_labels, human, measure, corrected)
    _warn_of_mixture(mixed, margin)
    documented = with_groups(labelled_judgments(judges, judgments), top, cutoff, families, documents, queries)
    warn_of_copies(documented, judges.names)
    bias, calibration = bias_by_group(documented, judges.names, judgments, families, level)
    # Topics with labels that humans did not judge are expected.
    expected = set(every_label["qid"].unique()) - set(target.topics)
    judged_runs = {name: run.only(set(run.topics) - expected) for name, run in loaded.items()}
    read: dict[str, Any] = {"on_topics": on_topics, "duplicates": duplicates}
    plans = {
        word: judge_next(
            judged_runs,
            target,
            f"ENDCG@{cutoff}",
            budget=budget,
            data=Data(labels=used, pool_cutoff=data.pool_cutoff, **read),
            inference=Inference(level=level),
        )
        for word, used in (("without", None), ("with", judges))
    }
    agreement, needed = agreement_on_common(documented, judges.names, level), _needed_judgments(plans, margin)
    highest = max(int(judgments.grades[-1]), 1)
    rules: dict[str, Any] = {"highest": highest, "margin": margin, "level": level, "seed": seed}
    decided = verdicts(judged, list(loaded), bias, quality, needed, **rules)
    about_judges = (bias, calibration, agreement, mixed, needed, plans["with"], accuracy)
    return JudgeAudit(decided, systems, pairs, quality, *about_judges)


def _human_judgments(qrels: Any, scale: tuple[int, int] | None, unit: float) -> EvaluationTarget:
    """Human judgments, whose ratings are counted in steps of the scale."""
    if unit == 1:
        target = evaluation_target(qrels, None, None)
        require_scale(target.frame, scale, "qrels")
        return target
    target = evaluation_target(
        evaluated_qrels(qrels, unit=unit) if is_path(qrels) else in_units(qrels, unit), None, None
    )
    require_scale(target.frame.assign(label=target.frame["label"] * unit), scale, "qrels")
    return target


def _require_runs(loaded: Mapping[str, Run], **values: Any) -> None:
    for what, names in values.items():
        for name in names:
            if name not in loaded:
                raise ParameterError(f"{what}: no run is called {name!r}.{nearest(name, loaded)}")


def _reorder_columns(frame: pd.DataFrame, place: int) -> pd.DataFrame:
    """A table of estimates with its columns in the order of the documentation; ``place`` follows the names."""
    for column in reversed(_FIRST_COLUMNS):
        frame.insert(place, column, frame.pop(column))
    # After the level.
    frame.insert(frame.shape[1] - 3, "n_qids", frame.pop("n_qids"))
    return frame


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(qid=frame["qid"].astype(str), docno=frame["docno"].astype(str))


def _needed_judgments(plans: Mapping[str, JudgingPlan], margin: float) -> pd.DataFrame:
    """The judgments until an interval reaches the margin, with and without labels."""
    rows = []
    for word, plan in plans.items():
        narrow = np.flatnonzero(np.array([plan.width_before, *plan.documents["width_after"]]) <= 2 * margin)
        rows.append((word, plan.width_before, float(narrow[0]) if len(narrow) else np.nan, len(plan), plan.width_after))
    return pd.DataFrame(rows, columns=["labels", "width", "n", "n_planned", "width_after"]).assign(margin=margin)


def _label_sources(
    top: Mapping[str, pd.DataFrame], labelled: pd.DataFrame, human: pd.DataFrame, measure: str, corrected: Any
) -> pd.DataFrame:
    """The sources of the labels up to the cutoff, and nDCG with machine labels in the gaps."""
    cutoff = int(measure.partition("@")[2])
    cut = pd.concat([run[run["rank"] < cutoff].assign(name=name) for name, run in top.items()])
    cut = cut[cut["qid"].isin(human["qid"].unique())][["name", *KEY]]
    parts = []
    for judge, labels in labelled.groupby("name", sort=False):
        of_both = cut.merge(human[KEY].assign(human=1.0), how="left", on=KEY)
        of_both = of_both.merge(labels[KEY].assign(machine=1.0), how="left", on=KEY).fillna(0.0)
        of_both["machine"] *= 1 - of_both["human"]
        shares = of_both.groupby("name", sort=False)[["human", "machine"]].mean().reset_index()
        gaps = labels.merge(human[KEY], how="left", on=KEY, indicator=True).query("_merge == 'left_only'")
        filled = pd.Series(np.nan, corrected.index)
        if labels["label"].max() <= human["label"].max():
            rounded = gaps[KEY].assign(label=gaps["label"].round().astype(np.int64))
            both = pd.concat([human[[*KEY, "label"]], rounded])
            judged = {name: run[run["qid"].isin(both["qid"].unique())] for name, run in top.items()}
            table = scored_runs(judged, both, measures_from(measure), data=Data(on_topics="all", system=ONE)).table
            filled = pd.Series({name: table.system_scores(name, measure).mean() for name in table.names})
        values = shares["name"].map(filled)
        shift = values - shares["name"].map(corrected)
        neither = 1 - shares["human"] - shares["machine"]
        parts.append(shares.assign(neither=neither.round(12), filled=values, shift=shift, judge=judge))
    columns = ["name", "judge", "human", "machine", "neither", "filled", "shift"]
    return pd.concat(parts, ignore_index=True)[columns]


def _warn_of_mixture(mixed: pd.DataFrame, margin: float) -> None:
    for judge, part in mixed.groupby("judge", sort=False):
        least, most = part.sort_values("machine").iloc[[0, -1]].to_dict("records")
        unknown = part["shift"].isna().all()
        if most["machine"] - least["machine"] > _UNEVEN and (unknown or (part["shift"].abs() > margin).any()):
            texts = [
                f"{each['machine']:.0%} machine labels"
                + f" and a score {each['shift']:+.3f} from the corrected one" * (not unknown)
                for each in (most, least)
            ]
            warn(
                f"judge {judge!r}: do not fill the gaps of the judgments with its labels: {most['name']} would get "
                f"{texts[0]}, {least['name']} {texts[1]}; use corrected scores"
            )
        least, most = part.sort_values("neither").iloc[[0, -1]].to_dict("records")
        if most["neither"] - least["neither"] > _UNEVEN:
            warn(
                f"judge {judge!r}: {most['neither']:.0%} of the documents of {most['name']} up to the cutoff have "
                f"neither a label nor a judgment, and {least['neither']:.0%} of those of {least['name']}: scores by "
                "the judge alone treat them as non-relevant; label the documents of all systems"
            )
