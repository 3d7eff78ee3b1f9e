"""Diagnosis of runs and qrels before evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, VBTerrierError, agreeing, examples
from vbterrier.evaluate.inputs import intents_and_tags, is_path, named_runs, quietly, subtopic_frame
from vbterrier.evaluate.unjudged_shares import share_range
from vbterrier.frames.answer import Caveat, sentence
from vbterrier.frames.columns import QRELS
from vbterrier.frames.contracts import flatten_qrels, in_units, pandas_frame, require
from vbterrier.frames.files.reading import evaluated_qrels
from vbterrier.frames.ids import column_ids, column_integers, near_match_text, near_matches, repeated_pairs
from vbterrier.frames.labels import text_of_large_labels
from vbterrier.frames.named import named_frame
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.ranking import MAX_TIED_SHARE, Run, own_queries, text_of_own_queries
from vbterrier.frames.results import Shown
from vbterrier.intents.coverage import Intents, Tags, cover
from vbterrier.intents.sources import from_diversity, iteration_codes, names_subtopics, subtopic_gaps, unequal
from vbterrier.measures import BOOTSTRAPPED, ESTIMATED
from vbterrier.measures.target import EvaluationTarget, mismatch_text
from vbterrier.remedies import COMMON_TOPICS, FIRST_DUPLICATE, SUBTOPICS
from vbterrier.settings import with_defaults
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.model import is_identified
from vbterrier.unjudged.pool import Judgments
from vbterrier.unjudged.selection import judged_shares, pool_depth, selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vbterrier.remedies import Call


CUTOFFS = (5, 10, 20, 100)
TIE_CUTOFF = 10
# Signs of a pool with a fixed depth, of judgments that are missing at random, and of the end of a shallow pool.
LEAST_KS, LEAST_SIGMA, MIN_POOL_SHARE = 0.4, 0.2, 0.85
# Fewer topics do not show them.
MIN_TOPICS = 10
# Runs with a share of unjudged documents that is higher by this were not pooled.
FOREIGN_EXCESS = 0.1


_TAGS_PREFIX = "tags of "
# Titles of columns of runs.
RUN_TITLES = {
    "name": "system",
    "float32": "scores equal as float32",
    "missing": "topics missing",
    "extra": "topics not judged",
}


class Support(NamedTuple):
    """Support of some measures by the files, with the reason."""

    measures: str
    possible: bool
    reason: str


@dataclass(frozen=True, repr=False)
class Diagnosis(Shown):
    """Result of :func:`diagnose`.

    - ``qrels``: one row per fact: what, value
    - ``runs``: one row per run: name, topics, rows, depth (shortest to longest list), unjudged@5, unjudged@10,
      unjudged@20, unjudged@100 (means over the topics of the qrels), tied@10 (share of tied documents in the top ten),
      float32 (adjacent documents whose scores differ only beyond 32-bit precision), duplicates (rows), missing and
      extra topics
    - ``support``: measures that the files support
    - ``notes``: warnings as text
    - ``serious``: the notes of which measures are wrong without a correction
    - ``intents``: one row per fact about candidate intents and tags, empty without them: what, value
    - ``other_ids``: runs whose documents are hardly those of the judgments, as with ids of another spelling
    """

    qrels: pd.DataFrame
    runs: pd.DataFrame
    support: tuple[Support, ...]
    notes: tuple[str, ...] = field(default=())
    serious: tuple[str, ...] = field(default=())
    intents: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["what", "value"]))
    other_ids: tuple[str, ...] = field(default=())

    def to_frame(self) -> pd.DataFrame:
        """Return ``runs``: a row per run."""
        return self.runs

    def _line(self) -> str:
        return f"{count_text(len(self.runs), 'run')}, {count_text(len(self.notes), 'note')}"

    def _verdict(self) -> Iterator[str]:
        """Yield the runs to repair, the measures to use, and the topics and judgments that there are."""
        if self.other_ids:
            yield (
                f"Hardly a document of {examples(self.other_ids)} is judged, which no measure can make up for: give "
                "runs whose document ids are those of the judgments."
            )
            if len(self.other_ids) == len(self.runs):
                return
        usable = [item for item in self.support if item.possible]
        if not usable:
            yield f"These files support no measure: {self.support[0].reason}." if self.support else "No measure."
            return
        names, cut = ", ".join(item.measures for item in usable), f"@{TIE_CUTOFF}"
        comparable = self.runs[~self.runs["name"].isin(self.other_ids)]
        shares = {str(name): share for name, share in comparable.set_index("name")[f"unjudged{cut}"].dropna().items()}
        if "nDCG" not in names:
            yield f"{usable[0].measures} suit these files: {usable[0].reason}."
        elif not any(shares.values()):
            yield f"The first {TIE_CUTOFF} documents of all runs are judged: nDCG{cut} needs no estimate."
        elif "ENDCG" in names:
            yield (
                f"{share_range(shares)[2]} of the first {TIE_CUTOFF} documents are unjudged: compare by ENDCG{cut}, "
                f"with all runs in one call, and report BNDCG{cut} and Unjudged{cut} beside nDCG{cut}."
            )
        else:
            yield (
                f"{share_range(shares)[2]} of the first {TIE_CUTOFF} documents are unjudged, and their relevance "
                "cannot be estimated without judged non-relevant documents: report "
                f"RR{cut} and nDCG{cut} with NDCGBound{cut} and Unjudged{cut}."
            )

    def _caveats(self) -> Iterator[Caveat]:
        for note in self.notes:
            about, _, text = note.partition(": ")
            is_subject = about in {"judgments", "qrels", "intents", "tags"} or about.startswith("run ")
            subject, remark = (about, text) if is_subject else ("files", note)
            yield Caveat(f"{subject[:1].upper()}{subject[1:]}", sentence(remark), note in self.serious)

    def _next(self, call: Call) -> str:
        if self.other_ids or not any(item.possible for item in self.support) or "qrels" not in call.words:
            return ""
        return call.next("score", "score", ("runs", "qrels", "subtopics", "intents", "tags", "system", "unit"))

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Measures", pd.DataFrame(self.support, columns=["measures", "possible", "reason"]))
        yield Panel("Judgments", self.qrels)
        if len(self.intents):
            yield Panel("Intents", self.intents)
        yield Panel("Runs", self.runs.rename(columns=RUN_TITLES))


@with_defaults
def diagnose(
    runs: Any,
    qrels: Any,
    *,
    subtopics: Any = None,
    intents: Any = None,
    tags: Any = None,
    system: str | None = None,
    unit: float = 1.0,
) -> Diagnosis:
    """Diagnose files before an evaluation; report problems instead of raising.

    Parameters
    ----------
    runs, qrels, subtopics, intents, tags, system
        See :func:`vbterrier.score`; intents and tags are described, too.
    unit
        The step of a scale with fractions, as in :func:`vbterrier.read_qrels`.

    Returns
    -------
    Diagnosis
        ``runs``: a row per run; ``qrels`` and ``intents``: their contents; ``support``: the measures that they allow;
        ``notes``: warnings.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a"], "label": [1]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [2.0, 1.0]})
    >>> diagnose({"mine": run}, qrels).runs["unjudged@10"].tolist()
    [0.5]
    """
    runs = named_runs(runs, system=system, extra=False)
    if not runs:
        raise InputError("no runs; name at least one")
    notes: list[str] = []
    serious: list[str] = []
    frame = _judgments(qrels, unit)
    facts, judgments, has_subtopics, diversity, conflict = _qrels_facts(frame, notes)
    if has_subtopics:
        facts.append(("subtopics", _subtopics(frame, subtopics, notes)))
    elif subtopics is not None:
        raise InputError("qrels: documents are not judged for subtopics; leave subtopics out")
    loaded = {name: quietly(Run, run, name=f"run {name!r}", duplicates="first") for name, run in runs.items()}
    table = pd.DataFrame([_run_facts(name, run, loaded[name], judgments, frame, notes) for name, run in runs.items()])
    for column, each, text in (
        (
            "missing",
            "{} lacks {}",
            f"topics: {{}} of the judged topics; {COMMON_TOPICS.of('compare')} evaluates their common topics",
        ),
        ("extra", "{} {}", "topics without judgments are left out: {}"),
    ):
        parts = [each.format(name, n) for name, n in zip(table["name"], table[column], strict=True) if n]
        notes += [text.format(", ".join(parts))] * bool(parts)
    for kind, column in (("topics", "qid"), ("documents", "docno")):
        ids = column_ids(frame[column], f"qrels column {column!r}").distinct()[0]
        for name, run in runs.items():
            pairs = near_matches(column_ids(pandas_frame(run, f"run {name!r}")[column], f"run column {column!r}"), ids)
            if pairs:
                notes.append(f"run {name!r}: {near_match_text(pairs, kind, 'the qrels')}")
    target = EvaluationTarget(frame)
    of_other_ids = {name: text for name, run in loaded.items() if (text := mismatch_text(target, run))}
    for name, text in of_other_ids.items():
        notes.append(f"run {name!r}: {text}")
        serious.append(notes[-1])
    # Documents with other ids say nothing about the judgments.
    evidence = {name: run for name, run in loaded.items() if name not in of_other_ids}
    if evidence and table[f"unjudged@{TIE_CUTOFF}"].gt(0).any():
        of_judgments = judgment_notes(evidence, judgments, with_depth=True)
        notes += [f"judgments: {note.text}" for note in of_judgments]
        serious += [f"judgments: {note.text}" for note in of_judgments if note.serious]
    kinds: dict[str, Any] = {
        "has_subtopics": has_subtopics,
        "diversity": diversity,
        "conflict": conflict,
        "weighted": unequal(frame),
    }
    about = _intent_facts(loaded, *intents_and_tags(intents, tags), notes) if intents is not None else []
    kinds["covered"] = None if intents is None else any(what.startswith(_TAGS_PREFIX) for what, _ in about)
    # What is unjudged in runs of other ids says nothing about measures.
    described = table[~table["name"].isin(of_other_ids)] if len(of_other_ids) < len(table) else table
    support = _measure_support(described, **kinds, identified=is_identified(judgments))
    tables = (pd.DataFrame(rows, columns=["what", "value"]) for rows in (facts, about))
    return Diagnosis(
        next(tables), table, tuple(support), tuple(notes), tuple(serious), next(tables), other_ids=tuple(of_other_ids)
    )


def _judgments(qrels: Any, unit: float) -> pd.DataFrame:
    """The judgments of a frame or a file, in steps of their scale."""
    if is_path(qrels):
        return evaluated_qrels(qrels, unit=unit)
    frame = pandas_frame(qrels, "qrels", QRELS)
    require(frame, ("qid", "docno", "label"), "qrels")
    return frame if unit == 1 else in_units(frame, unit)


class JudgmentNote(NamedTuple):
    """The cause of unjudged documents, and its consequence; serious if measures are wrong without a correction."""

    text: str
    serious: bool


def judgment_notes(runs: Mapping[str, Run], judgments: Judgments, *, with_depth: bool = False) -> list[JudgmentNote]:
    """Signs of why documents are unjudged, in runs of which some documents are.

    Judgments of hardly any non-relevant document, a pool with a fixed depth, judgments that are missing at random, and
    runs that did not contribute to the pool. ``with_depth``: also the depth to which ENDCG@10 estimates judgments;
    results with an estimate state it beside the measure, at its own cutoff.
    """
    if not is_identified(judgments):
        text = (
            "nearly all judged documents are relevant, so the relevance of unjudged documents cannot be estimated: a "
            "run of invented documents would look as good as a real one. Use nDCG or RR, NDCGBound, an explicit "
            "prior=, or machine labels as qrels"
        )
        return [JudgmentNote(text, serious=True)]
    evidence = collect_evidence(runs, judgments, TIE_CUTOFF, max(CUTOFFS))
    if len(np.unique(evidence.topic)) < MIN_TOPICS:
        return []
    sigma, ks = selection(evidence)
    shares = judged_shares(evidence)
    shares_of_runs = evidence.n_unjudged.sum(axis=1) / evidence.n_cut.sum(axis=1)
    of_run = np.append(shares_of_runs, 0.0)[evidence.distinct]
    notes: list[JudgmentNote] = []
    if ks > LEAST_KS:
        top = shares[:TIE_CUTOFF]
        shallow, last = (
            int(np.argmax(np.append(top < MIN_POOL_SHARE * top[0], True))),
            np.flatnonzero(~np.isnan(top))[-1],
        )
        text = (
            f"{top[0]:.0%} of the documents at rank 1 are judged and {top[last]:.0%} of those at rank {last + 1}, and "
            f"the share falls after rank {shallow}; measures with larger cutoffs, and AP, depend on estimates"
        )
        notes.append(JudgmentNote(text, serious=True))
    elif sigma < LEAST_SIGMA:
        text = (
            f"{np.nanmean(shares[:TIE_CUTOFF]):.0%} of the first {TIE_CUTOFF} documents are judged, in about the same "
            "proportion at all ranks, topics and runs: judgments seem to be missing at random, so that estimates such "
            "as ENDCG can be trusted, and condensed lists and nDCG are biased"
        )
        notes.append(JudgmentNote(text, serious=False))
    foreign = [evidence.names[place] for place in np.flatnonzero(of_run > of_run.min() + FOREIGN_EXCESS)]
    if foreign:
        text = (
            f"{examples(foreign)} retrieved documents that were not in the pool, which nDCG treats as non-relevant; "
            "compare these runs by ENDCG, whose intervals are wide for them"
        )
        notes.append(JudgmentNote(text, serious=True))
    if with_depth:
        text = (
            f"ENDCG@{TIE_CUTOFF} estimates the nDCG@{TIE_CUTOFF} that judging these runs to rank "
            f"{pool_depth(evidence)} would give"
        )
        notes.append(JudgmentNote(text, serious=False))
    return notes


def _qrels_facts(frame: pd.DataFrame, notes: list[str]) -> tuple[list[tuple[str, str]], Judgments, bool, bool, bool]:
    """Facts, judgments, and True for subtopics, for documents judged once a subtopic, and for conflicting labels."""
    label = column_integers(frame["label"], "qrels column 'label'")
    topics, topic = column_ids(frame["qid"], "qrels column 'qid'").codes()
    repeats = repeated_pairs(topic, column_ids(frame["docno"], "qrels column 'docno'"))
    iterations = iteration_codes(frame) if "iteration" in frame.columns else None
    has_subtopics = iterations is not None and names_subtopics(iterations)
    diversity = has_subtopics and len(repeats) > 0
    grades, counts = np.unique(label, return_counts=True)
    facts = [
        ("topics", f"{len(topics):,}"),
        ("judgments", f"{len(frame):,}"),
        ("labels", ", ".join(f"{grade}: {count:,}" for grade, count in zip(grades, counts, strict=True))),
        ("labels below 0", f"{int((label < 0).sum()):,} (count as 0)"),
        ("kind", f"diversity, {len(iterations.entities)} iterations" if iterations and has_subtopics else "adhoc"),
    ]
    without = len(topics) - len(set(topic[label > 0].tolist()))
    if without:
        notes.append(f"qrels: {agreeing(without, 'topics have no relevant document and always score 0')}")
    if text := text_of_large_labels(label):
        notes.append(f"qrels: {text}")
    conflict = False
    try:
        judgments = quietly(Judgments, flatten_qrels(frame) if diversity else frame)
    except VBTerrierError as error:
        conflict = True
        notes.append(str(error))
        judgments = quietly(Judgments, flatten_qrels(frame))
    if len(repeats) and not diversity:
        notes.append(f"qrels: {agreeing(len(repeats), 'rows judge')} a document that is duplicated in its topic")
    return facts, judgments, has_subtopics, diversity, conflict


def _subtopics(frame: pd.DataFrame, subtopics: Any, notes: list[str]) -> str:
    """The number of subtopics; a note names topics with subtopics that have no judged document."""
    judged = quietly(from_diversity, frame)[0]
    if subtopics is None:
        value, gaps = f"{len(judged):,} with judged documents", subtopic_gaps(iteration_codes(frame))
        problem = f"the subtopic numbers of {len(gaps)} of {judged['qid'].nunique()} topics have gaps"
        topic_file = SUBTOPICS.text("topics.xml")
        remedy = f"do not count, nor do those after the last judged one: give the topic file with {topic_file}"
    else:
        listed = quietly(from_diversity, frame, subtopics=subtopic_frame(subtopics))[0]
        sizes = (one.groupby("qid", sort=False).size() for one in (listed, judged))
        missing = next(sizes).sub(next(sizes), fill_value=0)
        gaps = missing.index[missing > 0].astype(str).tolist()
        value = f"{len(listed):,}, {int(missing.clip(lower=0).sum()):,} without a judged document"
        problem = f"{len(gaps)} of {len(missing)} topics have subtopics without a judged document"
        remedy = f"count in ES and VB only with {SUBTOPICS.of('score')}"
    if gaps:
        notes.append(f"qrels: {problem} ({examples(gaps)}); these {remedy}")
    return value


def _intent_facts(runs: Mapping[str, Run], intents: Any, tags: Any, notes: list[str]) -> list[tuple[str, str]]:
    """Facts about candidate intents, and about the tags of the first documents of runs if there are tags."""
    try:
        candidates = quietly(Intents, named_frame("intents", intents), normalise=True)
        rows = quietly(Tags, named_frame("tags", tags)) if tags is not None else None
    except VBTerrierError as error:
        notes.append(str(error))
        return []
    sizes = np.bincount(candidates.topic, minlength=len(candidates.topics))
    best = np.zeros(len(candidates.topics))
    np.maximum.at(best, candidates.topic, candidates.prob)
    facts = [
        ("topics with intents", f"{len(sizes):,}"),
        ("candidate intents", f"{len(candidates.prob):,}, {sizes.mean():.1f} in a topic on average"),
        ("most probable intent", f"{best.mean():.3f} on average"),
    ]
    for name, run in runs.items():
        lacking = [qid for qid in run.topics if qid not in set(candidates.topics)]
        if lacking:
            some = f"{count_text(len(lacking), 'topic')} of {name} ({examples(lacking)})"
            notes.append(f"intents: none for {some}; measures such as VB leave them out")
        if rows is not None:
            try:
                covered = quietly(cover, run, candidates, rows, TIE_CUTOFF)
            except VBTerrierError as error:
                notes.append(str(error))
                continue
            share = np.nanmean(covered.tagged) if np.isfinite(covered.tagged).any() else 0.0
            facts.append((f"{_TAGS_PREFIX}{name}", f"{share:.1%} of the first {TIE_CUTOFF} documents have a tag"))
    return facts


def _run_facts(
    name: str, frame: Any, run: Run, judgments: Judgments, qrels: pd.DataFrame, notes: list[str]
) -> dict[str, Any]:
    lengths = np.bincount(run.topic, minlength=len(run.topics)) if len(run) else np.zeros(1, dtype=int)
    facts: dict[str, Any] = {
        "name": name,
        "topics": len(run.topics),
        "rows": len(frame),
        "depth": f"{lengths.min()}-{lengths.max()}",
        **{f"unjudged@{cutoff}": float("nan") for cutoff in CUTOFFS},
    }
    try:
        judged = quietly(judgments.judge, run, max(CUTOFFS))
        facts |= {f"unjudged@{cutoff}": float(judged.cut_to(cutoff).unjudged_share().mean()) for cutoff in CUTOFFS}
    except VBTerrierError as error:
        notes.append(str(error))
    top, reversed_topics = run.top(TIE_CUTOFF), run.reversed_topics()
    self_retrieved = own_queries(run, qrels)
    facts |= {
        f"tied@{TIE_CUTOFF}": top.tied_share,
        "float32": _equal_as_float32(run),
        "duplicates": len(frame) - len(run),
        "missing": len(set(judgments.topics).difference(run.topics)),
        "extra": len(set(run.topics).difference(judgments.topics)),
    }
    for count, text in (
        (
            top.tied_share > MAX_TIED_SHARE,
            f"{top.tied_share:.0%} of the top {TIE_CUTOFF} documents are tied; docno breaks ties, as in trec_eval",
        ),
        (reversed_topics, run.text_of_reversed(reversed_topics)),
        (self_retrieved, text_of_own_queries(run, self_retrieved)),
        (
            facts["duplicates"],
            (
                f"{agreeing(int(facts['duplicates']), 'rows repeat')} a document of their topic; score them with "
                f"{FIRST_DUPLICATE.of('score')}"
            ),
        ),
        (
            facts["float32"],
            f"{facts['float32']} adjacent scores differ only beyond 32-bit precision: ties, as in trec_eval",
        ),
    ):
        notes += [f"run {name!r}: {text}"] * bool(count)
    return facts


def _equal_as_float32(run: Run) -> int:
    """Number of adjacent documents whose scores differ as 64-bit numbers only."""
    rows, _, _ = run.ordered_rows()
    left, right = run.score[rows[:-1]], run.score[rows[1:]]
    with np.errstate(over="ignore"):
        same = left.astype(np.float32) == right.astype(np.float32)
    return int((same & (left != right) & (run.topic[rows[:-1]] == run.topic[rows[1:]])).sum())


def _measure_support(
    runs: pd.DataFrame,
    *,
    has_subtopics: bool,
    diversity: bool,
    conflict: bool,
    weighted: list[str],
    identified: bool,
    covered: bool | None,
) -> list[Support]:
    unjudged = runs[f"unjudged@{TIE_CUTOFF}"]
    some, nothing = bool((unjudged > 0).any()), ""
    if not unjudged.notna().any():
        nothing = "runs and qrels share no topic or id"
    elif not runs["rows"].any():
        nothing = "the runs are empty: every topic scores 0"
    elif conflict:
        nothing = "documents have several labels; see the notes"
    if nothing:
        return [Support("all measures", possible=False, reason=nothing)]
    rows = _of_judgments(some=some, diversity=diversity, identified=identified)
    uniform = "intents are the iterations of the qrels, " + ("with probabilities" if weighted else "uniform")
    files = "no intents; name files in the measure, VB(intents='...',tags='...')@10, or use diversity qrels"
    subtopics = "subtopics are the iterations of the qrels" if has_subtopics else "they need diversity qrels"
    if weighted:
        subtopics = "they ignore different probabilities: use WeightedAlphaNDCG, WeightedERRIA and ES"
    if covered is not None:
        files = "with these intents and tags" if covered else "tags of documents are missing too: add --tags"
    rows += [
        ("VB, ES, VarPenalty, TopIntent", bool(has_subtopics or covered), uniform if has_subtopics else files),
        ("alpha_nDCG, ERR_IA, StRecall", has_subtopics and not weighted, subtopics),
    ]
    return [Support(*row) for row in rows]


def _of_judgments(*, some: bool, diversity: bool, identified: bool) -> list[tuple[str, bool, str]]:
    """Measures of judgments, with ``some`` unjudged documents: names, True if they are possible, and the reason."""
    # Not BAP, whose error exceeds that of AP in most settings, see docs/explanation/evidence-measures.md.
    names = ", ".join(measure.NAME for measure in BOOTSTRAPPED if measure.NAME != "BAP")
    bootstrapped = names + ", NDCGBound, Unjudged" * identified
    estimated, plain = ", ".join(measure.NAME for measure in ESTIMATED), "nDCG, AP, P"
    if diversity:
        flat = "; flatten the subtopics first (vbterrier.frames.flatten_qrels)"
        return [
            (f"{bootstrapped}, {estimated}", False, "judged documents have one label a subtopic" + flat),
            (plain, False, "only the last subtopic would count" + flat),
        ]
    first, last = (
        "some documents are unjudged: report these measures beside nDCG",
        "unjudged documents count as non-relevant",
    )
    if not some:
        first, last = "no document is unjudged: they equal nDCG", "complete to depth 10"
    if identified:
        model = "they estimate the scores of complete judgments, with all runs in one call"
        return [(bootstrapped, True, first), (estimated, True, model), (plain, True, last)]
    lacking = "without judged non-relevant documents "
    return [
        (bootstrapped, not some, lacking + "they need an explicit prior=" if some else first),
        (estimated, False, lacking + "their model cannot be fitted"),
        ("RR, NDCGBound, Unjudged", True, "they estimate no relevance: use these"),
        (plain, True, last),
    ]
