"""Assumptions about TrecTools: its classes, their attributes, and the columns of their frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trectools
from trectools import TrecQrel, TrecRun

from vbterrier.errors import InputError
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ranking import Run
from vbterrier.hosts import require_api

if TYPE_CHECKING:
    import pandas as pd

_TESTED = "0.0.50"
require_api(trectools, "trectools", _TESTED, ("TrecEval.get_unjudged", "TrecQrel", "TrecRun"))
require_api(TrecRun(), "trectools", _TESTED, ("run_data", "filename"))
require_api(TrecQrel(), "trectools", _TESTED, ("qrels_data", "filename"))

TrecEval = trectools.TrecEval
# In TrecTools, q0 is the iteration of a judgment; in a run it is the constant "Q0".
FROM_TRECTOOLS = {"query": "qid", "docid": "docno", "rel": "label", "q0": "iteration"}
TO_TRECTOOLS = {column: host for host, column in FROM_TRECTOOLS.items()}
# Columns of runs that measures read, besides the score.
_EXTRA = ("entity_id", "grade_prob")


def frames_of(run: TrecRun, qrels: TrecQrel) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Frames of a ``TrecRun`` and a ``TrecQrel``, with the columns of this package."""
    frames = run.run_data, qrels.qrels_data
    if any(frame is None for frame in frames):
        raise InputError("run and qrels must hold data: read a file, or load a data frame, first")
    renamed = tuple(frame.rename(columns=FROM_TRECTOOLS) for frame in frames)
    return renamed[0], renamed[1]


def objects_of(run: pd.DataFrame, qrels: pd.DataFrame, name: str) -> tuple[TrecRun, TrecQrel]:
    """Return a ``TrecRun`` and a ``TrecQrel`` made of frames with the columns of this package."""
    checked, qrels = Run(run), frame_of(qrels, "qrels")
    require(qrels, ("qid", "docno", "label"), "qrels")
    ranked = checked.frame.assign(rank=checked.ranks() + 1, q0="Q0", system=name)
    iteration = qrels["iteration"] if "iteration" in qrels.columns else "0"
    columns = ["query", "q0", "docid", "rank", "score", "system", *(name for name in _EXTRA if name in ranked)]
    trec_run, trec_qrels = TrecRun(), TrecQrel()
    trec_run.run_data = ranked.rename(columns=TO_TRECTOOLS)[columns]
    trec_qrels.qrels_data = qrels.assign(iteration=iteration).rename(columns=TO_TRECTOOLS)[
        ["query", "q0", "docid", "rel"]
    ]
    trec_run.filename = trec_qrels.filename = name
    return trec_run, trec_qrels
