"""Runs and judgments of TrecTools as frames; TrecTools itself is not imported."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, printable, warn
from vbterrier.frames.labels import text_of_padded_labels

# In TrecTools, q0 is the iteration of a judgment; in a run it is the constant "Q0".
FROM_TRECTOOLS = {"query": "qid", "docid": "docno", "rel": "label", "q0": "iteration"}
_RUN_FROM_TRECTOOLS = {"query": "qid", "docid": "docno", "system": "name"}
_NO_DATA = "run and qrels must hold data: read a file, or load a data frame, first"


def is_trectools(data: Any) -> bool:
    """Return True for a ``TrecRun`` or a ``TrecQrel``."""
    return not hasattr(data, "columns") and (hasattr(data, "run_data") or hasattr(data, "qrels_data"))


def frame_of_trectools(data: Any, what: str) -> pd.DataFrame:
    """Return the frame of a ``TrecRun`` (qid, docno, score, rank, name) or of a ``TrecQrel`` (with labels below 0)."""
    is_run = hasattr(data, "run_data")
    table = data.run_data if is_run else data.qrels_data
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"{what}: {_NO_DATA}")
    if is_run:
        return table.drop(columns="q0", errors="ignore").rename(columns=_RUN_FROM_TRECTOOLS)
    return _with_dropped(data, table, what).rename(columns=FROM_TRECTOOLS)


def name_of_trectools(run: Any) -> str:
    """The name of the system of a ``TrecRun``, or that of its file."""
    data = run.run_data
    has_systems = isinstance(data, pd.DataFrame) and "system" in data.columns
    systems = [str(name) for name in data["system"].dropna().unique()] if has_systems else []
    return systems[0] if systems else os.path.basename(run.filename) if run.filename else "run"  # noqa: PTH119


def _with_dropped(qrels: Any, table: pd.DataFrame, what: str) -> pd.DataFrame:
    """The judgments with those below 0, which TrecTools drops when it reads a file.

    The file is read again as TrecTools does, so that ids are spelt alike. Judgments that were changed since are kept
    as they are, and a warning counts those that are missing.
    """
    if qrels.filename is None or "rel" not in table.columns:
        return table
    dropped = "labels below 0, which TrecTools drops when it reads"
    remedy, padded = "use vbterrier.read_qrels, which keeps them", ""
    try:
        names = list(table.columns)
        is_file = os.path.isfile(qrels.filename)  # noqa: PTH113
        file = pd.read_csv(qrels.filename, sep=r"\s+", names=names, dtype={"rel": str}) if is_file else None
        is_negative = None
        if file is not None:
            padded = text_of_padded_labels(file["rel"].unique())
            file["rel"] = pd.to_numeric(file["rel"])
            is_negative = file["rel"].to_numpy() < 0
    except (OSError, ValueError):
        file = is_negative = None
    if file is None or is_negative is None:
        # Dropped rows leave gaps in the index.
        if not np.array_equal(table.index, np.arange(len(table))):
            warn(f"{what}: {printable(qrels.filename)} cannot be read again for {dropped}; {remedy}")
        return table
    if padded:
        warn(f"{what}: {padded}")
    if not is_negative.any():
        return table
    as_text = dict.fromkeys([name for name in ("query", "q0", "docid") if name in names], str)
    file = file.astype(as_text)
    if file[~is_negative].equals(table.astype(as_text)):
        return file
    if not (table["rel"] < 0).any():
        warn(
            f"{what}: the data differ from those of {printable(qrels.filename)}, whose {int(is_negative.sum())} "
            f"{dropped}, are missing; {remedy}"
        )
    return table
