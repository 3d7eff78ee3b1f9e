"""Pipelines as runs: topics, and what a retrieval pipeline returns for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from vbterrier.errors import InputError, printable
from vbterrier.frames.columns import TOPICS
from vbterrier.frames.contracts import pandas_frame, require, system_items
from vbterrier.frames.files.reading import read_topics
from vbterrier.frames.ids import column_ids
from vbterrier.remedies import TOPICS as QUERIES

if TYPE_CHECKING:
    import pandas as pd


def is_pipeline(source: Any) -> bool:
    """True for a stage or pipeline; data frames have a ``transform``, too."""
    return hasattr(source, "transform") and not hasattr(source, "columns")


def topics_frame(topics: Any) -> pd.DataFrame:
    """Queries (qid, query) from a frame or a path."""
    frame = pipeline_input(topics)
    require(frame, ("qid", "query"), "topics")
    require_topics_once(frame)
    return frame


def pipeline_input(topics: Any) -> pd.DataFrame:
    """The input of pipelines, from a frame with a column qid or a path.

    Rows with documents (docno), the input of rerankers, repeat their topic.
    """
    frame = read_topics(topics) if isinstance(topics, (str, os.PathLike)) else pandas_frame(topics, "topics", TOPICS)
    require(frame, ("qid",), "topics")
    if not len(frame):
        raise InputError("topics: no rows; give at least one query")
    column_ids(frame["qid"], "topics column 'qid'")
    if "docno" not in frame.columns:
        require_topics_once(frame)
    return frame


def require_topics_once(topics: pd.DataFrame) -> None:
    """Refuse topics with several rows."""
    twice = topics["qid"].duplicated()
    if twice.any():
        raise InputError(f"topics: query {topics['qid'][twice].iloc[0]!r} is duplicated; keep one row per query")


def retrieved_runs(systems: Any, topics: Any = None) -> dict[str, Any]:
    """Return runs by name: pipelines are run once on the topics, which they need; other runs stay as they are.

    ``systems``: a mapping of name to system, or pairs. ``topics``: see :func:`pipeline_input`.
    """
    named = dict(system_items(systems))
    frame = None if topics is None else pipeline_input(topics)
    return {
        name: pipeline_results(name, system, frame) if is_pipeline(system) else system for name, system in named.items()
    }


def pipeline_results(name: str, pipeline: Any, topics: pd.DataFrame | None) -> pd.DataFrame:
    """Return what a pipeline retrieves for topics; no topics, and no results for any topic, are errors."""
    if topics is None:
        remedy = QUERIES.available_text()
        queries = f"give {remedy}, a frame (qid, query) or a path, or " if remedy else "give "
        raise InputError(
            f"run {name!r}: found the pipeline {printable(pipeline)}, which needs queries: {queries}its results, as "
            f"{{{name!r}: pipeline(topics)}}"
        )
    return require_results(pipeline.transform(topics), name, topics)


def require_results(results: Any, name: str, topics: pd.DataFrame) -> pd.DataFrame:
    """Return the results of a pipeline as a frame; raise InputError if they are empty."""
    frame = pandas_frame(results, f"run {name!r}")
    if not len(frame):
        raise InputError(
            f"run {name!r}: the pipeline returned no results for {topics['qid'].nunique()} topics; look at its index "
            "and at the column query of the topics"
        )
    return frame
