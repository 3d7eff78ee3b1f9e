"""Assumptions about TrecTools: its classes, their attributes, and the columns of their frames."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any

import trectools
from trectools import TrecQrel, TrecRes, TrecRun

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.columns import QRELS, RUN
from vbterrier.frames.contracts import LabelFrame, pandas_frame, require
from vbterrier.frames.ids import require_same_kind
from vbterrier.frames.ranking import Run
from vbterrier.frames.systems import columns_of_systems
from vbterrier.frames.trectools import FROM_TRECTOOLS
from vbterrier.hosts import require_api

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable

    import pandas as pd

_TESTED = "0.0.50"
require_api(trectools, "trectools", _TESTED, ("TrecEval.get_unjudged", "TrecQrel", "TrecRes", "TrecRun"))
require_api(TrecRun(), "trectools", _TESTED, ("run_data", "filename"))
require_api(TrecQrel(), "trectools", _TESTED, ("qrels_data", "filename"))

TO_TRECTOOLS = {column: host for host, column in FROM_TRECTOOLS.items()}
# Columns that measures read besides those of TrecTools.
_EXTRA_RUN_COLUMNS, _EXTRA_QRELS_COLUMNS = ("entity_id", "grade_prob"), ("entity_id", "prob", "rank", "weight")


# Methods that look up the relevant documents of each topic of the run.
_NEED_JUDGMENTS = ("get_rprec", "evaluate_all")


def run_frame(run: Any) -> pd.DataFrame:
    """The columns of a ``TrecRun`` that measures read, named as in this package; a frame is returned unchanged."""
    frame = pandas_frame(run, "run", RUN)
    if not isinstance(run, TrecRun):
        return frame
    require(frame, ("qid", "docno", "score"), "run")
    systems = list(frame["name"].dropna().unique()) if "name" in frame.columns else []
    if len(systems) > 1:
        raise InputError(
            f"run: holds {len(systems)} systems ({examples(systems)}), whose rankings would be one; make a TrecRun of "
            "each"
        )
    # Ranks are compared with scores.
    table: pd.DataFrame = frame[
        ["qid", "docno", "score", *(name for name in ("rank", *_EXTRA_RUN_COLUMNS) if name in frame)]
    ]
    return table


def qrels_frame(qrels: TrecQrel) -> pd.DataFrame:
    """The frame of a ``TrecQrel``, with the columns of this package and labels below 0."""
    return pandas_frame(qrels, "qrels")


def trectools_run(data: Any, name: str) -> TrecRun:
    """Return a ``TrecRun``, or make one of a frame (qid, docno, score); ids stay text."""
    if isinstance(data, TrecRun):
        return data
    checked = Run(data)
    for column in columns_of_systems(checked.frame.columns, None):
        values = checked.frame[column].dropna().unique()
        if len(values) > 1:
            raise InputError(
                f"run: column {column!r} has {len(values)} values ({examples(values)}), and rankings of several "
                "systems would be one: give the rows of one system, or drop the column if the table is one run"
            )
    checked.warn_of_ranks()
    columns = [
        "qid",
        "iteration",
        "docno",
        "rank",
        "score",
        "system",
        *(run_column for run_column in _EXTRA_RUN_COLUMNS if run_column in checked.frame),
    ]
    ranked = checked.frame.assign(rank=checked.ranks() + 1, iteration="Q0", system=name)
    made = TrecRun()
    made.run_data = ranked[columns].rename(columns=TO_TRECTOOLS)
    made.filename = name
    return made


def trectools_qrels(data: Any, name: str) -> TrecQrel:
    """Return a ``TrecQrel``, or make one of a frame of judgments, of intents, or of the links of a pool."""
    if isinstance(data, TrecQrel):
        return data
    frame = pandas_frame(data, "qrels", QRELS)
    require(frame, ("qid", "entity_id") if "entity_id" in frame.columns else ("qid", "docno", "label"), "qrels")
    frame = frame if "iteration" in frame.columns else frame.assign(iteration="0")
    made = TrecQrel()
    kept = [
        column for column in ("qid", "iteration", "docno", "label", *_EXTRA_QRELS_COLUMNS) if column in frame.columns
    ]
    # Gaps in the index would mean rows that TrecTools dropped.
    made.qrels_data = frame[kept].rename(columns=TO_TRECTOOLS).reset_index(drop=True)
    made.filename = name
    return made


class EvaluationResult(TrecRes):  # type: ignore[misc]
    """A ``TrecRes``: metric, query, value, with the query "all" for means.

    ``notes`` are sentences about models of unjudged documents. TrecTools 0.0.50 writes no tables with pandas 2.
    """

    def __init__(self, values: pd.DataFrame, name: str, notes: Iterable[str] = ()) -> None:
        super().__init__()
        self.data, self.runid, self.notes = values, name, tuple(notes)

    def printresults(
        self, outputfilename: str | os.PathLike[str], outputformat: str = "csv", perquery: bool = False
    ) -> None:
        """Write a table with a row per query; other formats than csv are those of TrecTools."""
        if outputformat != "csv":
            super().printresults(outputfilename, outputformat, perquery)
        else:
            self.data.pivot(index="query", columns="metric", values="value").to_csv(outputfilename)


def check_run_topics(evaluation: Any, method: str, *, is_mean: bool = True) -> None:
    """Warn of a mean over topics of the run that differ from those of the qrels; refuse what TrecTools miscounts.

    TrecTools itself counts duplicate documents and repeated judgments several times, ranks a missing score last, and
    fails in pandas on ids of two types and on runs and qrels without a common topic.
    """
    data = evaluation.qrels.qrels_data
    if "entity_id" in data.columns:
        raise InputError(
            f"{method}: reads judgments of documents, and the qrels hold entities; use get(measure), as 'RelCov@20'"
        )
    checked, labels = Run(run_frame(evaluation.run)), LabelFrame(data.rename(columns=FROM_TRECTOOLS))
    if len(labels.label) < len(data):
        raise InputError(f"{method}: TrecTools counts repeated judgments several times; keep one a document")
    for column, left, right in (("query", labels.qid, checked.topic_ids), ("docid", labels.docno, checked.docno)):
        require_same_kind(left, right, f"qrels column {column!r}", f"run column {column!r}")
    run, judged = set(checked.topics), set(labels.topics)
    if not run & judged:
        raise InputError(
            f"{method}: no topic in common: the run has {examples(checked.topics)}; the qrels have "
            f"{examples(labels.topics)}; TrecTools has no mean over no topic"
        )
    if method == "evaluate_all":
        require(evaluation.run.run_data, ("system",), "run")
    if run - judged and method in _NEED_JUDGMENTS:
        raise InputError(
            f"{method}: TrecTools fails on topics of the run without judgments ({examples(sorted(run - judged))}); "
            "remove them from the run, or use get(measure), as 'Rprec'"
        )
    if run != judged and is_mean:
        warn(
            f"{method}: TrecTools averages over the {len(run)} topics of the run, of which {len(run & judged)} are "
            f"among the {len(judged)} topics of the qrels; get(measure) averages over those of the qrels"
        )


def over_run_topics(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ``TrecEval`` whose mean is over the topics of the run with :func:`check_run_topics`."""
    signature = inspect.signature(method)

    @wraps(method)
    def checked_method(self: Any, *arguments: Any, **options: Any) -> Any:
        per_query = signature.bind(self, *arguments, **options).arguments.get("per_query")
        check_run_topics(self, method.__name__, is_mean=not per_query)
        return method(self, *arguments, **options)

    # TrecTools' own text is not always valid reStructuredText.
    checked_method.__doc__ = f"``TrecEval.{method.__name__}`` of TrecTools, after a check of the run and the judgments."
    return checked_method
