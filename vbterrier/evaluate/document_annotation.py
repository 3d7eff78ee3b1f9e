"""Annotation of a few documents of ambiguous queries, and scores under gold tags from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import (
    InputError,
    ParameterError,
    check_level,
    choice,
    whole,
)
from vbterrier.evaluate.ambiguous_documents import (
    DESIGNS,
    AmbiguousDocuments,
    ambiguous_documents,
    valid_cutoffs,
)
from vbterrier.evaluate.document_sheet import AnnotationSheet
from vbterrier.evaluate.sheets import write_sheet
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.results import Shown
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.vb import bernoulli_variance, lowest_point, vb
from vbterrier.stats.comparisons import adjusted_p_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from vbterrier.annotations import Bools, Floats, StrPath
    from vbterrier.kernels.annotated_coverage import Estimates


CUTOFFS = (3, 5)
#: The instructions that accompany a sheet.
INSTRUCTIONS = """\
Each row has a query and a document. Write into the column annotation which of the candidates the document is about:
its number, id or name. Several are separated by ";". NIL: none of the candidates.

- Annotate all rows. The documents were drawn at random: rows without an annotation make the scores less certain.
- The column source says who annotated: empty or person for people, model for a machine. Names may follow: model:NAME.
- Do not change the other columns. In a spreadsheet, import qid and docno as text: it would turn 007 into 7.
"""
GUESSES = "tags are mostly guesses: systems are not ordered"
# Weight of the given probabilities of intents, in documents: of 2, 4, 8 and 16, those of AMBIENT, AIDA and Congress are
# estimated best with 2 or 4 from 10, 20 or 30 % of the documents.
_PRIOR_DOCUMENTS = 4.0
_FEWEST_DEGREES = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class DocumentTask(Shown):
    """Documents to annotate; the result of :func:`annotate_documents`.

    - ``items``: qid, query, docno, text, candidates (numbered names and ids), annotation (empty for new documents),
      source, design (topics or documents), inclusion (the probability of the document to be drawn by now)
    - ``n_documents``, ``n_topics``: documents in the first ranks of some system, and their topics
    """

    items: pd.DataFrame
    n_documents: int
    n_topics: int

    def to_frame(self) -> pd.DataFrame:
        """Return ``items``: a row per document."""
        return self.items

    @property
    def n_new(self) -> int:
        """Number of documents without an annotation."""
        return int((self.items["annotation"] == "").sum())

    def _line(self) -> str:
        unit = "whole topics" if (self.items["design"] == "topics").all() else "single documents"
        topics = count_text(self.items["qid"].nunique(), "topic")
        return f"{self.n_new:,} of {self.n_documents:,} documents to annotate, of {topics} ({unit})"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Documents to annotate", self.items, heads=2)

    def write(self, path: StrPath) -> Path:
        """Write the sheet, and the instructions in a second file, whose path is returned.

        ``path``: a file that does not exist yet, .csv, .tsv or .jsonl; of ``sheet.csv``, the instructions are
        ``sheet.instructions.txt``. Raises InputError for an id that a spreadsheet would run as a formula.
        """
        rows = self.items.assign(inclusion=self.items["inclusion"].map("{:.6g}".format))
        return write_sheet(path, rows, ["qid", "docno"], ["query", "text", "candidates"], INSTRUCTIONS, "annotations")


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatedScores(Shown):
    """Scores under gold tags from annotated documents; the result of :func:`annotated_scores`.

    - ``intervals``: the C frame of ES and VB of each system and cutoff: name, measure, value, low, high, level, method,
      n_qids, n_annotated. Intervals refer to the scores of these queries if all documents were annotated; they are
      missing without a random sample that is large enough
    - ``comparisons``: the P frame of all pairs of systems; ``ordered`` if the interval of the difference excludes 0
    - ``tags``: docno, entity_id, weight, qid: the annotations, and the most probable candidate of other documents with
      its probability
    - ``intents``: qid, entity_id, prob (as given), estimate: ``(4 π + Σ_d p_d) / (4 + Σ_d Σ p_d)`` over the documents
      of the query, with p the annotation, or the probability by the model. From equal π, 20 % of the documents bring
      the estimate of AMBIENT from a total variation distance of .48 to one of .28, AIDA's from .25 to .16 (GENRE) and
      .18 (WAT); annotations alone, weighted by 1/w, to .37 and .21
    - ``n_annotated``, ``n_documents``: documents that people annotated, of those in the first ranks of some system
    - ``tags_right``: share of documents whose most probable candidate is right, estimated from annotated documents
      whose own annotation the model did not use; missing without any
    - ``reason``: the reason that there are no intervals; empty if there are
    """

    intervals: pd.DataFrame
    comparisons: pd.DataFrame
    tags: pd.DataFrame
    intents: pd.DataFrame
    n_annotated: int
    n_documents: int
    tags_right: float
    reason: str

    def to_frame(self) -> pd.DataFrame:
        """Return ``intervals``: a row per system and measure."""
        return self.intervals

    @property
    def ordered(self) -> pd.DataFrame:
        """Measure, n_ordered, n_pairs, and ranks: True if at least half of the pairs are ordered."""
        table = self.comparisons.groupby("measure", sort=False)["ordered"].agg(["sum", "size"]).reset_index()
        table = table.set_axis(["measure", "n_ordered", "n_pairs"], axis=1).astype({"n_ordered": "int64"})
        return table.assign(ranks=2 * table["n_ordered"] >= table["n_pairs"])

    def more(self, half_width: float) -> int:
        """Return the number of further documents to annotate for intervals of at most a half-width.

        ``n' = N / (1 + (N/n - 1) (r'/r)²)`` of N documents, with the largest half-width r of ES now, because the
        variance of a sample without replacement is proportional to ``N/n - 1``. 0 if intervals are narrow enough.
        """
        if self.reason:
            raise InputError(f"no intervals: {self.reason}")
        es = self.intervals[self.intervals["measure"].str.startswith("ES")]
        now = float((es["high"] - es["low"]).max() / 2)
        if not 0 < half_width < 1:
            raise ParameterError(f"half_width={half_width}: wanted a number between 0 and 1, such as 0.02")
        if now <= half_width:
            return 0
        total = self.n_documents / (1 + (self.n_documents / self.n_annotated - 1) * (half_width / now) ** 2)
        return int(np.ceil(total)) - self.n_annotated

    def _verdict(self) -> Iterator[str]:
        yield f"{self._line()}."
        if self.reason:
            yield f"Tags are mostly guesses: systems are not ordered ({self.reason}); annotate more documents."
        for row in self.ordered.to_dict("records"):
            if not row["ranks"] and not self.reason:
                yield f"{row['measure']}: fewer than half of the pairs are ordered: report no ranks."

    def _line(self) -> str:
        parts = [f"{self.n_annotated:,} of {self.n_documents:,} documents annotated"]
        if self.n_annotated and not np.isnan(self.tags_right):
            parts.append(f"tags right {self.tags_right:.2f}")
        if self.reason:
            return "; ".join([*parts, f"{GUESSES} ({self.reason})"])
        parts += [f"{row.measure}: {row.n_ordered} of {row.n_pairs} pairs ordered" for row in self.ordered.itertuples()]
        es = self.intervals[self.intervals["measure"].str.startswith("ES")]
        half = float((es["high"] - es["low"]).max() / 2)
        if half > 0 and self.n_annotated < self.n_documents:
            parts.append(f"{self.more(half / 2):,} more would narrow intervals from ±{half:.2g} to ±{half / 2:.2g}")
        return "; ".join(parts)

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Scores under gold tags", self.intervals, value="value", by="measure")
        if len(self.comparisons) and not self.reason:
            yield Panel("Differences", self.comparisons, value="diff", by="measure", rule=0, heads=2)


@with_usual_errors
def annotate_documents(
    runs: Any,
    topics: Any,
    *,
    intents: Any,
    documents: Any,
    tags: Any = None,
    n: int,
    annotations: Any = None,
    cutoff: Sequence[int] | int = CUTOFFS,
    design: str = "auto",
    seed: int = 0,
) -> DocumentTask:
    """Draw documents of ambiguous queries to annotate, so that ES and VB have intervals.

    Only documents in the first ranks of a system count. Whole topics are drawn at random with all their documents, or
    single documents with an inclusion probability w proportional to ``sqrt(share of systems that show the document)``.
    Neither depends on annotations or tags, so that further draws with the same seed extend the sample: its inclusion
    probabilities are those of one larger draw. Each topic has the inclusion probability m/Q; single documents are drawn
    by sequential Poisson sampling (Ohlsson 1998), whose inclusion probabilities approach w with n.

    Parameters
    ----------
    runs, topics, intents
        As in :func:`vbterrier.evaluate_intents`. Columns name and description of intents are shown to annotators.
    documents
        Texts of documents (docno, text); a frame or a path.
    tags
        Tags of a machine, as ``tagger`` in :func:`vbterrier.evaluate_intents`; they change no draw.
    n
        Number of documents to annotate, in addition to those in ``annotations``; with whole topics the number is that
        of the topics with n documents on average.
    annotations
        The sheet of earlier draws, whose rows are repeated. Runs, cutoffs and seed must be those of these draws.
    cutoff
        Cutoffs of the scores; documents down to the largest are drawn.
    design
        ``"topics"``, ``"documents"``, or ``"auto"``: topics if these have at most 15 documents on average, and n is
        enough for 8 topics.
    seed
        Seed of the draws, at least 0.

    Returns
    -------
    DocumentTask
        ``items``: a row per document; ``write`` writes a sheet, which :func:`annotated_scores` reads.

    Raises
    ------
    InputError
        No document to annotate is left; ``annotations`` are not the first documents of this draw.

    Examples
    --------
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["jordan"]})
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["athlete", "country"], "prob": [0.8, 0.2]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> documents = pd.DataFrame({"docno": ["d1", "d2"], "text": ["Chicago Bulls", "a kingdom"]})
    >>> task = annotate_documents({"mine": run}, topics, intents=intents, documents=documents, n=2)
    >>> task.items["candidates"].iloc[0]
    '1 = athlete; 2 = country'
    """
    whole("n", n, low=1)
    whole("seed", seed, low=0)
    choice("design", design, ("auto", *DESIGNS))
    ambiguous = ambiguous_documents(
        runs, topics, intents=intents, documents=documents, tags=tags, cutoffs=valid_cutoffs(cutoff)
    )
    sheet = None if annotations is None else AnnotationSheet.of(ambiguous, annotations)
    n_before = 0
    if sheet is not None:
        if sheet.design == "none":
            raise InputError(
                "annotations: no column design or inclusion, so that they are no random sample; draw a first sample "
                "without annotations="
            )
        if design not in ("auto", sheet.design):
            raise ParameterError(f"design={design!r}: the annotations are a sample of {sheet.design}; leave it out")
        design, n_before = sheet.design, int(sheet.is_drawn.sum())
    elif design == "auto":
        design = ambiguous.design(n)
    if sheet is not None:
        before = ambiguous.sample(design, sheet.n_units, seed, units=True)
        if (before.drawn & ~sheet.is_drawn).any() or (sheet.is_drawn & ~before.drawn).any():
            raise InputError(
                f"annotations: their {n_before} documents are not those of a draw with seed={seed} from these runs and "
                "cutoffs; give the runs, the cutoffs and the seed of that draw"
            )
    sample = ambiguous.sample(design, n_before + n, seed)
    drawn = sample.drawn if sheet is None else sample.drawn | sheet.is_drawn
    if not drawn.any():
        raise ParameterError(f"n={n}: wanted at least the documents of one topic, or design='documents'")
    if sheet is not None and drawn.sum() == n_before:
        raise InputError(
            f"annotations: no further document is drawn for n={n}; {ambiguous.n_documents} documents in all"
        )
    rows = np.flatnonzero(drawn)
    topic = ambiguous.table.topic[rows]
    items = pd.DataFrame(
        {
            "qid": [ambiguous.qids[one] for one in topic],
            "query": [ambiguous.queries[one] for one in topic],
            "docno": [ambiguous.docno[row] for row in rows],
            "text": [ambiguous.text[row] for row in rows],
            "candidates": [ambiguous.candidates[one] for one in topic],
            "annotation": [""] * len(rows) if sheet is None else sheet.annotation[rows],
            "source": [""] * len(rows) if sheet is None else sheet.source[rows],
            "design": design,
            "inclusion": sample.inclusion[rows],
        }
    )
    return DocumentTask(items, ambiguous.n_documents, len(ambiguous.qids))


@with_usual_errors
def annotated_scores(
    runs: Any,
    topics: Any,
    *,
    intents: Any,
    documents: Any = None,
    tags: Any = None,
    annotations: Any = None,
    cutoff: Sequence[int] | int = CUTOFFS,
    level: float = 0.95,
    seed: int = 0,
) -> AnnotatedScores:
    """Estimate ES and VB under gold tags from a few annotated documents.

    A conditional logit gives each document a probability of each candidate and of none, from the machine's tags,
    prior probabilities, similarities of texts, and the annotations of other documents. Scores are the expectations of
    this model plus an estimate of its error from the annotated documents, whose own annotation the model did not use:
    for whole topics the difference estimate with a fitted slope, for single documents the expansion to the second order
    in the annotations. Both are nearly unbiased however wrong the model is.

    Parameters
    ----------
    runs, topics, intents, documents, tags, cutoff
        As in :func:`annotate_documents`, for which they must be the same.
    annotations
        The annotated sheet of :func:`annotate_documents`, a frame or a path, or several of them. Only rows of people
        (``source`` is empty or person) are gold; those of a model are machine tags of their documents, and where both
        annotated a document, the row of the person counts. Without the columns design and inclusion, annotations train
        the model, and there are no intervals; neither are there any without annotations.
    level
        Nominal coverage of intervals, between 0 and 1.
    seed
        Seed of the draws of tags, at least 0.

    Returns
    -------
    AnnotatedScores
        ``intervals``, ``comparisons`` with the pairs of systems that are ordered, ``tags``, ``intents``; ``more`` gives
        the number of further documents for narrower intervals.

    Raises
    ------
    InputError
        An annotation that names no candidate, documents or inclusion probabilities of other runs, two annotations by
        people that differ.

    Notes
    -----
    Fewer than 60 annotated documents, or 8 whole topics, give no intervals. Coverage of 90 % intervals, measured with
    ``tests/bench/labels.py``, is on the page of ambiguous queries in the documentation. Intervals refer to these
    queries; for other queries, variation between queries is added.

    Examples
    --------
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["jordan"]})
    >>> intents = pd.DataFrame({"qid": "q1", "entity_id": ["athlete", "country"], "prob": [0.8, 0.2]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["athlete", "country"]})
    >>> result = annotated_scores({"mine": run}, topics, intents=intents, tags=tags)
    >>> result.reason
    'no annotations by people'
    """
    check_level(level)
    whole("seed", seed, low=0)
    ambiguous = ambiguous_documents(
        runs, topics, intents=intents, documents=documents, tags=tags, cutoffs=valid_cutoffs(cutoff)
    )
    sheet = AnnotationSheet.of(ambiguous, () if annotations is None else annotations)
    ambiguous = ambiguous.tagged_by(sheet.machine)
    reason, is_annotated = sheet.usable(ambiguous)
    share = np.where(is_annotated[ambiguous.table.document], sheet.share, 0.0)
    scale = len(ambiguous.qids) / ambiguous.n_queries
    if reason:
        # Annotations that are no sample train the model.
        by_people = sheet.is_annotated
        share = np.where(by_people[ambiguous.table.document], sheet.share, 0.0)
        prob = ambiguous.table.probabilities(share, by_people, ambiguous.constants.priors, by_topic=False)
        weight = np.where(by_people[ambiguous.table.document], share, prob)
        score, estimates = ambiguous.mean_expected_scores(weight, seed=seed) * scale, None
        is_annotated = by_people
    else:
        estimates, prob = ambiguous.estimates(
            sheet.design, share, is_annotated, sheet.adjusted_inclusion(is_annotated), seed=seed
        )
        score = estimates.score * scale
        weight = np.where(is_annotated[ambiguous.table.document], share, prob)
    return AnnotatedScores(
        _intervals(ambiguous, score, estimates, scale, level, int(is_annotated.sum()), sheet.design),
        _comparisons(ambiguous, score, estimates, scale, level),
        _tags(ambiguous, weight, is_annotated),
        intent_estimates(ambiguous, weight),
        int(is_annotated.sum()),
        ambiguous.n_documents,
        _tags_right(ambiguous, prob, share, is_annotated, sheet.inclusion),
        reason,
    )


def _measures(documents: AmbiguousDocuments) -> list[tuple[str, int, int]]:
    return [
        (f"{name}@{cutoff}", measure, place)
        for measure, name in enumerate(("ES", "VB"))
        for place, cutoff in enumerate(documents.cutoffs)
    ]


def _intervals(
    documents: AmbiguousDocuments,
    score: Floats,
    estimates: Estimates | None,
    scale: float,
    level: float,
    n_annotated: int,
    design: str,
) -> pd.DataFrame:
    from scipy.stats import t as student

    at_least = np.array(lowest_point(1.0))
    rows, lowest_vb = [], float(vb(at_least, bernoulli_variance(at_least), 1.0))
    for label, measure, place in _measures(documents):
        for system, name in enumerate(documents.systems):
            value, half = float(score[measure, place, system]), np.nan
            if estimates is not None:
                error = np.sqrt(estimates.covariance[measure, place, system, system]) * scale
                degrees = max(estimates.degrees[measure, place, system], _FEWEST_DEGREES)
                half = float(student.ppf((1 + level) / 2, degrees) * error)
            # Half-widths of t do not know the range of the measure.
            least = 0.0 if measure == 0 else lowest_vb
            low, high = np.clip([value - half, value + half], least, 1.0)
            method = "model" if estimates is None else f"annotated {design} (t)"
            row = (name, label, value, low, high, level, method, documents.n_queries, n_annotated)
            rows.append(row)
    columns = ["name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_annotated"]
    return pd.DataFrame(rows, columns=columns)


def _comparisons(
    documents: AmbiguousDocuments, score: Floats, estimates: Estimates | None, scale: float, level: float
) -> pd.DataFrame:
    """All pairs of systems; without estimates no pair has an interval, and none is ordered."""
    from scipy.stats import t as student

    a, b = np.triu_indices(len(documents.systems), 1)
    tables = []
    for label, measure, place in _measures(documents):
        diff = score[measure, place, a] - score[measure, place, b]
        error, degrees = np.full(len(a), np.nan), np.ones(len(a))
        if estimates is not None:
            covariance = estimates.covariance[measure, place]
            error = np.sqrt(np.maximum(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b], 0)) * scale
            degrees = np.maximum(np.minimum(*estimates.degrees[measure, place][[a, b]]), _FEWEST_DEGREES)
        half = student.ppf((1 + level) / 2, degrees) * error
        statistic = np.divide(np.abs(diff), error, out=np.where(diff == 0, 0.0, np.inf), where=error > 0)
        p_value = np.where(np.isnan(error), np.nan, 2 * student.sf(statistic, degrees))
        names = [[documents.systems[one] for one in side] for side in (a, b)]
        table = {"name_a": names[0], "name_b": names[1], "measure": label, "diff": diff}
        table |= {"low": diff - half, "high": diff + half, "p_value": p_value}
        table["p_adjusted"] = adjusted_p_values(p_value, "holm") if estimates is not None and len(a) else p_value
        table |= {"n_qids": documents.n_queries, "test": "annotations (t)", "ordered": np.abs(diff) > half}
        tables.append(pd.DataFrame(table))
    return pd.concat(tables, ignore_index=True)


def _tags(documents: AmbiguousDocuments, tag_weight: Floats, is_annotated: Bools) -> pd.DataFrame:
    """Annotations with weight 1, and the most probable candidate of other documents with its probability."""
    table = documents.table
    best = np.maximum.reduceat(tag_weight, table.starts[:-1])[table.document]
    first = np.flatnonzero(tag_weight == best)
    first = first[np.unique(table.document[first], return_index=True)[1]]
    kept = np.zeros(len(tag_weight), dtype=bool)
    kept[first] = True
    chosen = np.where(is_annotated[table.document], tag_weight > 0, kept) & ~table.is_nil
    rows = np.flatnonzero(chosen)
    document = table.document[rows]
    weight = np.where(is_annotated[document], 1.0, tag_weight[rows])
    return pd.DataFrame(
        {
            "docno": [documents.docno[one] for one in document],
            "entity_id": [
                documents.entities[table.topic[one]][place]
                for one, place in zip(document, table.place[rows], strict=True)
            ],
            "weight": weight,
            "qid": [documents.qids[table.topic[one]] for one in document],
        }
    )


def intent_estimates(documents: AmbiguousDocuments, weight: Floats) -> pd.DataFrame:
    """Probabilities of intents: as given, and the posterior mean with the documents as so many draws of an intent."""
    rows = []
    table = documents.table
    width = documents.rankings.prob.shape[1]
    counts = np.zeros((len(documents.qids), width))
    some = np.flatnonzero(~table.is_nil)
    np.add.at(counts, (table.topic[table.document[some]], table.place[some]), weight[some])
    for topic, qid in enumerate(documents.qids):
        n = len(documents.entities[topic])
        prior = documents.rankings.prob[topic, :n]
        estimate = (_PRIOR_DOCUMENTS * prior + counts[topic, :n]) / (_PRIOR_DOCUMENTS + counts[topic, :n].sum())
        rows += [(qid, *row) for row in zip(documents.entities[topic], prior.tolist(), estimate.tolist(), strict=True)]
    return pd.DataFrame(rows, columns=["qid", "entity_id", "prob", "estimate"])


def _tags_right(
    documents: AmbiguousDocuments, prob: Floats, share: Floats, is_annotated: Bools, inclusion: Floats
) -> float:
    """Share of documents whose most probable candidate is right; annotated documents count by 1/inclusion."""
    if not is_annotated.any():
        return float("nan")
    table = documents.table
    is_best = prob == np.maximum.reduceat(prob, table.starts[:-1])[table.document]
    right = np.bincount(table.document, is_best & (share > 0), documents.n_documents) > 0
    weight = np.where(is_annotated, 1 / inclusion, 0.0)
    return float(weight @ right / weight.sum())
