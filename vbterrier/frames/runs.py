"""Runs by their names, from frames and files."""

from __future__ import annotations

import os
from typing import Any

from vbterrier.errors import InputError
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.files import read_run
from vbterrier.frames.ranked import Run


def loaded_run(name: str, run: Any, duplicates: str = "error") -> Run:
    """A run, given as a frame or a path."""
    frame = read_run(run) if isinstance(run, (str, os.PathLike)) else run
    return Run(frame, name=f"run {name!r}", duplicates=duplicates)


def runs_of(runs: Any) -> dict[str, Run]:
    """Each run by its name, from a mapping of name to a frame (qid, docno, score) or the path of a TREC run.

    Raises
    ------
    InputError
        No mapping, or an empty one; see the contract of runs.
    """
    if not hasattr(runs, "items") or hasattr(runs, "columns"):
        raise InputError(f"runs: wanted a mapping of name to run, found {type(runs).__name__}; pass {{'mine': run}}")
    loaded = {name: loaded_run(name, run) for name, run in systems_of(runs)}
    if not loaded:
        raise InputError("runs: none; name at least one run")
    return loaded
