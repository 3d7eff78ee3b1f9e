"""What queries may mean and what documents are about, from whatever was given."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import DegenerateWarning, InputError, examples
from vbterrier.evaluate.inputs import is_pipeline, loaded_run
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.files import read_topics
from vbterrier.frames.named import named
from vbterrier.frames.ranked import Run
from vbterrier.intents.sources import from_run
from vbterrier.tags.stage import TagEntities
from vbterrier.tags.taggers import DOCNO

if TYPE_CHECKING:
    from collections.abc import Mapping

# The columns of a run that TagEntities writes.
TAGGED = ("entity_id", "weight", "tagger")


def topics_of(topics: Any) -> pd.DataFrame:
    """Queries as a frame with columns qid and query, from a frame or a path."""
    frame = read_topics(topics) if isinstance(topics, (str, os.PathLike)) else frame_of(topics, "topics")
    require(frame, ("qid", "query"), "topics")
    if not len(frame):
        raise InputError("topics: no rows; give at least one query")
    twice = frame["qid"].duplicated()
    if twice.any():
        raise InputError(f"topics: query {frame['qid'][twice].iloc[0]!r} stands twice; keep one row a query")
    return frame


def intents_of(intents: Any, topics: pd.DataFrame, undefined: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Candidate intents of the queries, and the queries to evaluate."""
    frame = intents.transform(topics) if is_pipeline(intents) else named("intents", intents)
    require(frame, ("qid", "entity_id", "prob"), "intents")
    wanted = topics["qid"].astype(str)
    frame = frame[frame["qid"].astype(str).isin(wanted)].reset_index(drop=True)
    without = ~wanted.isin(frame["qid"].astype(str))
    if without.all():
        raise InputError(f"intents: none of the {len(topics)} queries ({examples(wanted)}) has any candidate")
    if without.any():
        found = f"{int(without.sum())} of {len(topics)} queries have no candidate intents ({examples(wanted[without])})"
        if undefined == "raise":
            raise InputError(f"{found}; add candidates, or ask for undefined='skip' (leave them out) or 'zero'")
        if undefined == "skip":
            warnings.warn(f"{found} and are left out", DegenerateWarning, stacklevel=3)
            topics = topics[~without].reset_index(drop=True)
    return frame, topics


def run_of_system(name: str, system: Any, topics: pd.DataFrame) -> Run:
    """What a system retrieves for the queries: a pipeline is run, other queries of a run are left out."""
    if is_pipeline(system):
        system = system.transform(topics)
    return loaded_run(name, system, "error").only(set(topics["qid"].astype(str)))


def tags_of(tagger: Any, runs: Mapping[str, Run], depth: int | None) -> pd.DataFrame:
    """What the first documents of all systems are about: one T frame for all, so that all are judged alike.

    Raises
    ------
    InputError
        No tags, or documents that two systems tag in different ways.
    """
    if tagger is None:
        return _tags_of_runs(runs, depth)
    if isinstance(tagger, (pd.DataFrame, os.PathLike)) or hasattr(tagger, "__arrow_c_stream__"):
        return named("tags", tagger)
    if isinstance(tagger, str) and tagger != DOCNO:
        return named("tags", tagger)
    stage = tagger if isinstance(tagger, TagEntities) else TagEntities(tagger)
    # What results carry from elsewhere is not asked for where a tagger is given.
    shown = _shown(runs, depth)
    return stage.tags(shown.drop(columns=list(TAGGED), errors="ignore"))


def _shown(runs: Mapping[str, Run], depth: int | None) -> pd.DataFrame:
    """The first documents of all systems, each once a query."""
    return pd.concat([_first(run, depth) for run in runs.values()], ignore_index=True).drop_duplicates(
        ["qid", "docno"], ignore_index=True
    )


def _first(run: Run, depth: int | None) -> pd.DataFrame:
    rows = run.top(depth).rows
    return run.frame.iloc[rows[rows >= 0]]


def _tags_of_runs(runs: Mapping[str, Run], depth: int | None) -> pd.DataFrame:
    without = [name for name, run in runs.items() if len(run) and "entity_id" not in run.frame.columns]
    if without:
        raise InputError(
            f"no tags: run {without[0]!r} has no column entity_id; give a tagger, or tags as a frame (docno, entity_id)"
        )
    shown = [_first(run, depth)[["qid", "docno"]] for run in runs.values()]
    tags = pd.concat([from_run(Run(_first(run, depth), name=run.name)) for run in runs.values()], ignore_index=True)
    _require_agreement(tags, pd.concat(shown, ignore_index=True), list(runs))
    return tags.drop_duplicates(["qid", "docno", "entity_id"], ignore_index=True)


def _require_agreement(tags: pd.DataFrame, shown: pd.DataFrame, names: list[str]) -> None:
    """Refuse a document that some systems show with an entity and others without it."""
    document, tag = ["qid", "docno"], ["qid", "docno", "entity_id"]
    n_systems = shown.groupby(document, sort=False).size().rename("shown")
    n_tagging = tags.groupby(tag, sort=False).size().rename("tagged").reset_index()
    odd = n_tagging.join(n_systems, on=document).query("shown != tagged")
    if len(odd):
        first = odd.iloc[0]
        raise InputError(
            f"document {first['docno']!r} of query {first['qid']!r} carries entity {first['entity_id']!r} in "
            f"{first['tagged']} of the {first['shown']} systems that show it (systems: {', '.join(names)}): they are "
            "compared under one tagger only; tag all with the same one"
        )
