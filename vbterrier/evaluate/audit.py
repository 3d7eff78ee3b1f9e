"""Audit of machines, such as language models, as judges: bias, corrected scores, and the human labels still needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, examples, nearest, number, warn, whole
from vbterrier.evaluate.inputs import is_path, loaded_runs, require_scale, require_spellings, target_of
from vbterrier.evaluate.judge_bias import agreement_on_common, bias_by_group, warn_of_copies, with_groups
from vbterrier.evaluate.judge_scores import (
    KEY,
    TOGETHER,
    cross_fitted_estimates,
    dawid_skene_labels,
    evidence_runs,
    scores_alone,
)
from vbterrier.evaluate.judge_verdict import ALONE, CORRECTED, HUMANS, NOT_TRUSTED, side_by_side, verdicts
from vbterrier.evaluate.judging import judge_next, label_quality
from vbterrier.evaluate.scores import score
from vbterrier.frames.contracts import in_units
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.notebook import Panel, counted, reliability_diagrams
from vbterrier.frames.ranking import Run, ranked
from vbterrier.frames.results import Caveat, Shown
from vbterrier.kernels.rankings import MOST_RANKS
from vbterrier.measures.target import aligned
from vbterrier.settings import Data, Inference, with_defaults
from vbterrier.unjudged.evidence import evidence_of
from vbterrier.unjudged.model import DEPTH
from vbterrier.unjudged.pool import MachineLabels, frames_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.evaluate.judging import LabelQuality
    from vbterrier.frames.results import Figures
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.judge_next import JudgingPlan

# Differences of shares of machine labels between systems that matter.
_UNEVEN = 0.05
# Columns that follow those of names: what a row is about comes before its numbers, and stays in sight on telephones.
_FIRST = ("measure", "estimate", "judge")


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


@with_defaults
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
    data: Data = Data(topics=None, documents=None, on_topics="same", duplicates="error", scale=None, unit=1.0),
    inference: Inference = Inference(level=0.9, n_draws=1000, seed=0),
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
    docs/how-to/audit.md.

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
    [['humans alone', 0.44], ['corrected', 0.44], ['judge alone', 0.57]]
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
    human = _as_text(target.frame)
    every = evidence_runs(top, judged_labels, human, target.topics, cutoff)
    judgments = target.judgments()
    labelled = {str(judge): part for judge, part in judged_labels.groupby("name", sort=False)}
    topics = [target.topics, *(sorted(part["qid"].unique()) for part in labelled.values())]
    estimates = {}
    for name, used in ((HUMANS, None), (CORRECTED, judges)):
        evidence = evidence_of(every[0], judgments, cutoff, every[1], used)
        estimates[name] = cross_fitted_estimates(evidence, judgments.grades, list(loaded), n_draws, seed, topics)
    measure, options = f"nDCG@{cutoff}", {"level": level, "seed": seed}
    tables = [estimates[name][0].tables(name, level, baseline) for name in (HUMANS, CORRECTED)]
    for (judge, part), humans in zip(labelled.items(), estimates[HUMANS][1:], strict=True):
        if humans.n_qids < len(target.topics):
            _warn_of_lacking_topics(judge, part, target)
            tables.append(humans.tables(HUMANS, level, baseline, judge))
        tables.append(scores_alone(judge, part, loaded, measure, options, baseline))
    together, accuracy = dawid_skene_labels(judged_labels, human)
    if len(together):
        tables.append(scores_alone("", together, loaded, measure, options, baseline, TOGETHER))
    about: dict[str, Any] = {"measure": measure, "level": level, "n_draws": n_draws, "seed": seed}
    systems, pairs = (
        _ordered(pd.concat(parts, ignore_index=True).assign(**about), place)
        for place, parts in enumerate(zip(*tables, strict=True), 1)
    )
    corrected = systems[systems["estimate"] == CORRECTED].set_index("name")["value"]
    mixed = _mixed(top, judged_labels, human, measure, corrected)
    _warn_of_mixture(mixed, margin)
    documented = with_groups(frames_of(judges, judgments), top, cutoff, families, documents, queries)
    warn_of_copies(documented, judges.names)
    bias, calibration = bias_by_group(documented, judges.names, judgments, families, level)
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
    agreement, needed = agreement_on_common(documented, judges.names, level), _needed(plans, margin)
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


def _warn_of_lacking_topics(judge: str, labels: pd.DataFrame, target: EvaluationTarget) -> None:
    own = set(labels["qid"].unique())
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
