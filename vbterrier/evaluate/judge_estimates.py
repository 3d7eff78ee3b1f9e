"""Estimates of an audit: scores by humans alone, by judges alone, and by judges that human judgments correct."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vbterrier.errors import examples, warn
from vbterrier.evaluate.judge_scores import (
    CORRECTED,
    HUMANS,
    cross_fitted_estimates,
    evidence_runs,
    no_scores,
    scores_alone,
    scores_of_topics,
)
from vbterrier.evaluate.judge_topics import JudgedTopics, open_documents
from vbterrier.unjudged.evidence import collect_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from vbterrier.evaluate.judge_scores import Estimate
    from vbterrier.frames.ranking import Run
    from vbterrier.measures.target import EvaluationTarget
    from vbterrier.unjudged.pool import Judgments, MachineLabels

# The fewest complete topics, or judged documents of each other topic, from which scores are corrected.
_MIN_TOPICS, _LEAST_DOCUMENTS = 15, 20
BY_DOCUMENTS, BY_TOPICS = "judged documents", "complete topics"


class AuditMaterial(NamedTuple):
    """Inputs that all estimates of an audit share; ``judged``: the scores of each judge."""

    target: EvaluationTarget
    judgments: Judgments
    runs: Mapping[str, Run]
    top: Mapping[str, pd.DataFrame]
    labels: pd.DataFrame
    human: pd.DataFrame
    judged: Mapping[str, JudgedTopics]
    cutoff: int


class Correction(NamedTuple):
    """Correction of the scores by judges with human judgments.

    ``kind``: by documents, by topics, or the reason why they do not; ``judged``: the means over all judges that
    complete topics correct.
    """

    kind: str
    judged: JudgedTopics | None = None


def score_correction(material: AuditMaterial) -> Correction:
    """The correction that the judgments allow.

    Judged documents correct the scores if each topic that is not complete has enough of them on average; otherwise
    complete topics do if there are enough.
    """
    judged, topics = material.judged.values(), material.target.topics
    shared = sorted(set.intersection(*(set(each.topics) for each in judged)))
    every = sorted({*shared, *topics})
    lacking = set(open_documents(material.top, material.labels, material.human, every, material.cutoff)["qid"].unique())
    sizes = material.human.groupby("qid").size()
    n_judged = sizes.reindex(sorted(lacking), fill_value=0).mean() if lacking else np.inf
    if n_judged >= _LEAST_DOCUMENTS:
        return Correction(BY_DOCUMENTS)
    complete = [topic for topic in shared if topic not in lacking]
    if len(complete) < _MIN_TOPICS:
        return Correction(
            f"a correction needs {_MIN_TOPICS} complete topics (now {len(complete)}), or {_LEAST_DOCUMENTS} judged "
            f"documents in each other topic (now {n_judged:.1f})"
        )
    scores = np.mean([each.scores[:, np.searchsorted(each.topics, shared)] for each in judged], axis=0)
    corrections = [each.corrections[:, np.searchsorted(each.complete, complete)] for each in judged]
    return Correction(BY_TOPICS, JudgedTopics(shared, scores, complete, np.mean(corrections, axis=0)))


def estimates_with_humans(
    material: AuditMaterial,
    judges: MachineLabels,
    correction: Correction,
    baseline: str | None,
    options: Mapping[str, Any],
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Estimates by humans alone, on the topics of each judge, too, and corrected ones."""
    names, cutoff, level = list(material.runs), material.cutoff, options["level"]
    labels = material.labels[material.labels["qid"].isin(material.target.topics)]
    every = evidence_runs(material.top, labels, material.human, material.target.topics, cutoff)
    parts = {str(judge): part for judge, part in labels.groupby("name", sort=False)}
    topics = [material.target.topics, *(sorted(part["qid"].unique()) for part in parts.values())]

    def estimates(used: MachineLabels | None) -> list[Estimate]:
        evidence = collect_evidence(every[0], material.judgments, cutoff, every[1], used)
        return cross_fitted_estimates(
            evidence, material.judgments.grades, names, options["n_draws"], options["seed"], topics
        )

    all_topics, *of_judges = estimates(None)
    yield all_topics.tables(HUMANS, level, baseline)
    if correction.judged is not None:
        scores, corrections = correction.judged.scores, correction.judged.corrections
        yield scores_of_topics(names, scores, corrections, level, baseline, CORRECTED)
    elif correction.kind == BY_DOCUMENTS:
        yield estimates(judges)[0].tables(CORRECTED, level, baseline)
    else:
        yield no_scores(names, baseline, CORRECTED, correction.kind, len(material.target.topics))
    for (judge, part), humans in zip(parts.items(), of_judges, strict=True):
        if humans.n_qids < len(material.target.topics):
            _warn_of_lacking_topics(judge, part, material.target)
            yield humans.tables(HUMANS, level, baseline, judge)


def estimates_alone(
    material: AuditMaterial, correction: Correction, baseline: str | None, options: Mapping[str, Any]
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Estimates by each judge alone, on the topics of the corrected scores."""
    with_humans = set(material.target.topics)
    for judge, judged in material.judged.items():
        shown = [correction.judged is not None or topic in with_humans for topic in judged.topics]
        table, level = judged.scores[:, shown], options["level"]
        yield scores_alone(judge, list(material.runs), table, level, options["seed"], baseline)


def _warn_of_lacking_topics(judge: str, labels: pd.DataFrame, target: EvaluationTarget) -> None:
    labelled = set(labels["qid"].unique())
    lacking = [topic for topic in target.topics if topic not in labelled]
    warn(
        f"judge {judge!r}: no label for {len(lacking)} of {len(target.topics)} topics ({examples(lacking)}): its "
        f"scores are means over the other {len(labelled)}, as are those of humans alone in rows of this judge"
    )
