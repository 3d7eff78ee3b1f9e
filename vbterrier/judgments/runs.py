"""Several named runs, from whatever holds them."""

from __future__ import annotations

import os
from typing import Any

from vbterrier.errors import InputError
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.files import read_run
from vbterrier.frames.ranked import Run


def runs_of(runs: Any) -> dict[str, Run]:
    """Each run by its name, from a mapping of name to a frame (qid, docno, score) or the path of a TREC run.

    Raises
    ------
    InputError
        No mapping, or an empty one; see the contract of runs.
    """
    if not hasattr(runs, "items") or hasattr(runs, "columns"):
        raise InputError(f"runs: wanted a mapping of name to run, found {type(runs).__name__}; pass {{'mine': run}}")
    loaded = {
        name: Run(read_run(run) if isinstance(run, (str, os.PathLike)) else run, name=f"run {name!r}")
        for name, run in systems_of(runs)
    }
    if not loaded:
        raise InputError("runs: none; name at least one run")
    return loaded
