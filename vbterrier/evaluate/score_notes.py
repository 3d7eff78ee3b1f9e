"""Notes on scores: what estimates are of, and how negative labels, missing topics and ratios were treated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import printable, warn
from vbterrier.frames.answer import EMPTY_TOPICS_NOTE, MODEL_NOTE, Note
from vbterrier.frames.ids import column_integers
from vbterrier.frames.ranges import is_ratio_of_means
from vbterrier.measures.bounds import Unjudged
from vbterrier.measures.external import external_values
from vbterrier.measures.target import EvaluationTarget, missing_text
from vbterrier.measures.unjudged import Estimated, variance_measure
from vbterrier.remedies import NEGATIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures
    import pandas as pd

    from vbterrier.frames.score_table import ScoreTable
    from vbterrier.unjudged.fitted import EvidenceModel


# Smaller differences between an estimate and the score of a fully judged run need no explanation.
_MIN_EXPLAINED_DIFFERENCE = 5e-4
# Runs that a note names.
_MAX_NAMED = 3


def notes_on_models(
    measures: Sequence[ir_measures.Measure],
    models: Mapping[str, EvidenceModel],
    table: ScoreTable,
) -> list[Note]:
    """Return a note for each model: what its measures estimate, its summary, and their largest Monte Carlo error.

    The standard error of independent draws: those of :class:`vbterrier.unjudged.draws.GradeDraws` have a smaller one.
    """
    notes = []
    for of_model, model in models.items():
        estimated = [one for one in measures if isinstance(one, Estimated) and one["model"] == of_model]
        errors = [0.0]
        for measure, variance in ((one, variance_measure(one)) for one in estimated):
            for name in table.names:
                parts = table.system_scores(name, str(variance))
                if len(parts):
                    errors.append(float(np.sqrt(max(parts.sum(), 0) / measure["n_draws"])) / len(parts))
        error = f"; Monte Carlo error of means at most {max(errors):.2g}" if max(errors) > 0 else ""
        estimands = "; ".join(f"{one} estimates {one.estimand(model)}" for one in estimated)
        notes.append(Note("; ".join(filter(None, [estimands, f"{model.summary}{error}"])), MODEL_NOTE))
        notes += [Note(text) for text in dict.fromkeys(model.caution(one.cutoff) for one in estimated) if text]
    return notes


def with_plain(measures: Iterable[ir_measures.Measure]) -> list[tuple[Estimated, ir_measures.Measure]]:
    """Means of the E family, each with the measure of the judgments that it estimates, if both are requested."""
    plain = {str(measure).casefold(): measure for measure in measures}
    pairs = []
    for measure in measures:
        if isinstance(measure, Estimated) and measure["stat"] == "mean" and measure.cutoff is not None:
            other = plain.get(f"{measure.NAME[1:]}@{measure.cutoff}".casefold())
            if other is not None:
                pairs.append((measure, other))
    return pairs


def differences_of_judged_runs(measures: Sequence[ir_measures.Measure], table: ScoreTable) -> list[str]:
    """Return why the estimates of fully judged runs differ from the same measures of the judgments.

    ``table`` has ``Unjudged`` at the cutoffs of the measures.
    """
    notes = []
    for measure, plain in with_plain(measures):
        measure_names = list(map(str, (Unjudged(cutoff=measure.cutoff), measure, plain)))
        values = {name: [table.system_scores(name, one) for one in measure_names] for name in table.names}
        means = {
            name: [float(each.mean()) for each in columns] for name, columns in values.items() if all(map(len, columns))
        }
        apart = {
            name: abs(estimated - plain_mean) for name, (share, estimated, plain_mean) in means.items() if share == 0
        }
        name = max(apart, key=apart.__getitem__, default=None)
        if name is not None and apart[name] > _MIN_EXPLAINED_DIFFERENCE:
            _, estimated, plain_mean = means[name]
            notes.append(
                f"{measure} is {estimated:.3f} and {plain} {plain_mean:.3f} although the first {measure.cutoff} "
                f"documents of {printable(name)} are all judged: {measure.NAME} estimates the score under complete "
                "judgments, which would contain more relevant documents, some of them retrieved by no run"
            )
    return notes


def negative_labels(qrels: pd.DataFrame) -> list[str]:
    """Return the treatment of labels below 0, if judgments have any."""
    if not {"docno", "label"} <= set(qrels.columns):
        return []
    # Labels may be text or categories.
    n_negative = int((column_integers(qrels["label"], "qrels column 'label'") < 0).sum())
    note = (
        f"{n_negative:,} of {len(qrels):,} labels are below 0 and count as judged and non-relevant in all measures but "
        f"infAP; where they mean 'not judged', drop them with {NEGATIVE.text()}"
    )
    return [note] if n_negative else []


def notes_on_ratios(measures: Iterable[ir_measures.Measure]) -> list[Note]:
    """Notes on measures of topics whose means are not the values of a collection."""
    return [
        Note(
            f"{measure}: the mean of the ratios of topics is a diagnostic; the ratio of a collection is mean RelCov "
            "over mean NonRelCov, see vbterrier.coverage_report"
        )
        for measure in measures
        if is_ratio_of_means(str(measure))
    ]


def notes_on_condensed(
    measures: Sequence[ir_measures.Measure], target: EvaluationTarget, runs: Mapping[str, Any]
) -> list[Note]:
    """Return the treatments of labels below 0 by condensed measures here and in ir_measures, with the means of runs."""
    condensed = [measure for measure in measures if measure.params.get("judged_only")]
    if not condensed or not {"docno", "label"} <= target.columns:
        return []
    is_negative = column_integers(target.frame["label"], "qrels column 'label'") < 0
    if not is_negative.any():
        return []
    targets = [target]
    if not is_negative.all():
        targets.append(EvaluationTarget(target.frame[~is_negative].reset_index(drop=True)))
    notes = []
    for measure in condensed:
        means = []
        for name, run in runs.items() if len(targets) > 1 else ():
            rows = [external_values([measure], each, run, warned=True) for each in targets]
            here, there = (np.sum([value for *_, value in each]) / len(target.topics) for each in rows)
            means.append(f"{here:.4f} and {there:.4f} of {printable(name)}")
        shown = f": {', '.join(means[:_MAX_NAMED])}{', ...' * (len(means) > _MAX_NAMED)}" if means else ""
        notes.append(
            Note(
                f"{measure}: documents with a label below 0 are judged and kept, while ir_measures and trec_eval -J "
                f"drop them as unjudged{shown}; where they mean 'not judged', drop them with {NEGATIVE.text()}"
            )
        )
    return notes


def missing_notes(missing: pd.DataFrame) -> list[Note]:
    """Return a note for each run that retrieved nothing for at least a tenth of five or more topics.

    ``missing``: the frame of :func:`missing_topics`. Empty runs have a warning of their own.
    """
    rows = zip(*(missing[column].tolist() for column in ("name", "n_missing", "n_qids")), strict=True)
    texts = {name: missing_text(f"run {name!r}", n_missing, n_topics) for name, n_missing, n_topics in rows}
    return [Note(text, EMPTY_TOPICS_NOTE, name) for name, text in texts.items() if text]


def warning_notes(notes: list[Note]) -> list[Note]:
    """Notes that are warnings, too."""
    for note in notes:
        warn(note)
    return notes
