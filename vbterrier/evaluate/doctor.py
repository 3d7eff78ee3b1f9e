"""What runs and qrels hold, and what they can be evaluated for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, VBTerrierError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ids import ids_of, integers_of, repeated_pairs
from vbterrier.frames.ranking import TIES_WORTH_A_WARNING, Run
from vbterrier.frames.runs import flatten_qrels
from vbterrier.unjudged.pool import Judgments

if TYPE_CHECKING:
    from collections.abc import Mapping


DEPTHS = (5, 10, 20, 100)
TIE_DEPTH = 10


@dataclass(frozen=True)
class Support:
    """Whether some measures can be computed from the files, and why not."""

    measures: str
    possible: bool
    reason: str


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`diagnose` found.

    Parameters
    ----------
    qrels
        A row a fact: what, value.
    runs
        A row a run: name, topics, rows, depth (shortest to longest list), unjudged@5/10/20/100 (mean over the topics of
        the qrels), tied@10 (share of the first ten places that share their score), float32 (neighbours that only differ
        beyond 32-bit floats), duplicates (rows), missing and extra topics.
    support
        Which measures the files support.
    notes
        What deserves attention, in words.
    """

    qrels: pd.DataFrame
    runs: pd.DataFrame
    support: tuple[Support, ...]
    notes: tuple[str, ...] = field(default=())


def diagnose(runs: Mapping[str, Any], qrels: Any) -> Diagnosis:
    """Look at files before evaluating them; what would be an error elsewhere is a finding here.

    Parameters
    ----------
    runs
        Frames (qid, docno, score) by name.
    qrels
        Frame (qid, docno, label[, iteration]).

    Raises
    ------
    InputError
        A frame that lacks columns or ids: nothing can be said of it.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a"], "label": [1]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [2.0, 1.0]})
    >>> diagnose({"mine": run}, qrels).runs["unjudged@10"].tolist()
    [0.5]
    """
    if not runs:
        raise InputError("no runs; name at least one")
    notes: list[str] = []
    frame = frame_of(qrels, "qrels")
    require(frame, ("qid", "docno", "label"), "qrels")
    facts, judgments, diversity, conflict = _qrels_facts(frame, notes)
    rows = [_run_facts(name, run, judgments, notes) for name, run in runs.items()]
    table = pd.DataFrame(rows)
    notes += _differences(table)
    return Diagnosis(facts, table, tuple(_support(diversity, conflict, table)), tuple(notes))


def _qrels_facts(frame: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, Judgments, bool, bool]:
    label = integers_of(frame["label"], "qrels column 'label'")
    topics, topic = ids_of(frame["qid"], "qrels column 'qid'").codes()
    repeats = repeated_pairs(topic, ids_of(frame["docno"], "qrels column 'docno'"))
    iterations = frame["iteration"].nunique() if "iteration" in frame.columns else 1
    diversity = iterations > 1 and len(repeats) > 0
    negative = int((label < 0).sum())
    grades, counts = np.unique(label, return_counts=True)
    facts = [
        ("topics", f"{len(topics):,}"),
        ("judgments", f"{len(frame):,}"),
        ("labels", ", ".join(f"{grade}: {count:,}" for grade, count in zip(grades, counts, strict=True))),
        ("below 0", f"{negative:,} (count as 0)"),
        ("kind", f"diversity, {iterations} iterations" if diversity else "adhoc"),
    ]
    without = len(topics) - len(set(topic[label > 0].tolist()))
    if without:
        notes.append(f"qrels: {without} topics have no relevant document and score 0 whatever is retrieved")
    usable = flatten_qrels(frame) if diversity else frame
    conflict = False
    try:
        judgments = _quietly(Judgments, usable)
    except VBTerrierError as error:
        conflict = True
        notes.append(str(error))
        judgments = _quietly(Judgments, flatten_qrels(frame))
    if len(repeats) and not diversity:
        notes.append(f"qrels: {len(repeats)} rows judge a document that stands twice in its topic")
    return pd.DataFrame(facts, columns=["what", "value"]), judgments, diversity, conflict


def _quietly(make: Any, *arguments: Any, **options: Any) -> Any:
    """Call without the warnings: what they say is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        return make(*arguments, **options)


def _run_facts(name: str, frame: Any, judgments: Judgments, notes: list[str]) -> dict[str, Any]:
    run = _quietly(Run, frame, name=f"run {name!r}", duplicates="first")
    n_duplicates = len(frame) - len(run)
    known = set(judgments.topics)
    lengths = np.bincount(run.topic, minlength=len(run.topics)) if len(run) else np.zeros(1, dtype=int)
    facts: dict[str, Any] = {
        "name": name,
        "topics": len(run.topics),
        "rows": len(frame),
        "depth": f"{lengths.min()}-{lengths.max()}",
    }
    try:
        judged = _quietly(judgments.judge, run, max(DEPTHS))
        facts |= {f"unjudged@{depth}": float(judged.cut(depth).unjudged_share().mean()) for depth in DEPTHS}
    except VBTerrierError as error:
        notes.append(str(error))
        facts |= {f"unjudged@{depth}": float("nan") for depth in DEPTHS}
    top = run.top(TIE_DEPTH)
    if top.tied_share > TIES_WORTH_A_WARNING:
        notes.append(
            f"run {name!r}: {top.tied_share:.0%} of the first {TIE_DEPTH} places are tied; their order is trec_eval's, "
            "by docno"
        )
    facts |= {
        f"tied@{TIE_DEPTH}": top.tied_share,
        "float32": _equal_as_float32(run),
        "duplicates": n_duplicates,
        "missing": len(known.difference(run.topics)),
        "extra": len(set(run.topics).difference(known)),
    }
    if n_duplicates:
        notes.append(
            f"run {name!r}: {n_duplicates} rows repeat a document of their topic; scoring refuses them unless told "
            "duplicates='first'"
        )
    if facts["float32"]:
        notes.append(
            f"run {name!r}: {facts['float32']} neighbours differ only beyond 32-bit floats: ties, as in trec_eval"
        )
    return facts


def _equal_as_float32(run: Run) -> int:
    """Neighbours in the full order whose scores differ as 64-bit numbers only."""
    rows, _, _ = run.ordered()
    left, right = run.score[rows[:-1]], run.score[rows[1:]]
    with np.errstate(over="ignore"):
        same = left.astype(np.float32) == right.astype(np.float32)
    return int((same & (left != right) & (run.topic[rows[:-1]] == run.topic[rows[1:]])).sum())


def _differences(runs: pd.DataFrame) -> list[str]:
    notes = []
    if (runs["missing"] > 0).any():
        parts = ", ".join(
            f"{name} lacks {missing}" for name, missing in zip(runs["name"], runs["missing"], strict=True) if missing
        )
        notes.append(
            f"topics: {parts} of the judged topics; compare runs on the topics that all have (--topics common)"
        )
    if (runs["extra"] > 0).any():
        parts = ", ".join(f"{name} {extra}" for name, extra in zip(runs["name"], runs["extra"], strict=True) if extra)
        notes.append(f"topics without judgments are left out: {parts}")
    return notes


def _support(diversity: bool, conflict: bool, runs: pd.DataFrame) -> list[Support]:  # noqa: FBT001 - private
    unjudged = runs[f"unjudged@{TIE_DEPTH}"]
    some, joined = bool((unjudged > 0).any()), bool(unjudged.notna().any())
    if not joined:
        return [Support("all measures", possible=False, reason="runs and qrels share no topic or id")]
    if not runs["rows"].any():
        return [Support("all measures", possible=False, reason="the runs are empty: every topic scores 0")]
    if conflict:
        return [Support("all measures", possible=False, reason="documents have several labels; see the notes")]
    flat = "; flatten the subtopics first (vbterrier.frames.flatten_qrels)" if diversity else ""
    return [
        Support(
            "BNDCG, BRBP, BP, BAP, BERR, BQ, NDCGBound, Unjudged",
            possible=not diversity,
            reason=(
                "judged documents have one label a subtopic"
                if diversity
                else "documents are unjudged: prefer these to nDCG"
                if some
                else "nothing is unjudged: they equal nDCG"
            )
            + flat,
        ),
        Support(
            "nDCG, AP, P",
            possible=not diversity,
            reason=(
                "the last subtopic would win"
                if diversity
                else "unjudged documents count as not relevant"
                if some
                else "complete to depth 10"
            )
            + flat,
        ),
        Support(
            "VB, ES, VarPenalty, TopIntent",
            possible=diversity,
            reason="intents are the iterations of the qrels, uniform"
            if diversity
            else "no intents here; name files in the measure, VB(intents='...',tags='...')@10, or use diversity qrels",
        ),
        Support(
            "alpha_nDCG, ERR_IA, StRecall",
            possible=diversity,
            reason="subtopics are the iterations of the qrels" if diversity else "they need diversity qrels",
        ),
    ]
