"""Probabilities of grades that a run brings for its documents: from a relevance predictor, or an LLM as judge."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import InputError
from vbterrier.frames.contracts import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.judgments.pool import JudgedTop

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

COLUMN = "grade_prob"
TOLERANCE = 1e-6


def shares(counts: Ints) -> Floats:
    """Each row divided by its sum; rows of zeros stay."""
    return np.asarray(counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1))


def column_probabilities(judged: JudgedTop) -> Floats:
    """The prior of each unjudged document of the cut, from column ``grade_prob`` of the run.

    A cell is a list of the probabilities of grade 0, 1, 2, ... (those left out at its end are 0), or one number: the
    probability of being relevant, shared among the grades above 0 as they share the relevant documents of the topic's
    pool, or of all pools where that has none. Cells of judged documents and beyond the cut are not read.

    Returns
    -------
    numpy.ndarray
        Documents in the order of their ranks, grade 0 behind the last, shape (n, most unjudged, L).

    Raises
    ------
    InputError
        No such column; a cell that is missing or neither list nor number; numbers that are no probabilities or do not
        sum to 1; a grade that the qrels do not hold with a probability above 0. Names query and document.
    """
    run, grades = judged.run, judged.judgments.grades
    if COLUMN not in run.frame.columns:
        raise InputError(
            f"{run.name}: prior='column' reads column {COLUMN!r}, found {', '.join(map(str, run.frame.columns))}; add "
            "it, or choose another prior"
        )
    require(run.frame, (COLUMN,), run.name)
    topic, rank = np.nonzero(judged.unjudged)
    rows = judged.rows[topic, rank]
    first = np.cumsum(judged.n_unjudged) - judged.n_unjudged
    prob = np.zeros((len(first), int(judged.n_unjudged.max(initial=0)), len(grades)))
    prob[:, :, 0] = 1.0
    prob[topic, np.arange(len(topic)) - first[topic]] = _read(judged, topic, rows)
    return prob


def _read(judged: JudgedTop, topic: Ints, rows: Ints) -> Floats:
    """The probabilities of the grades in some rows of the run, shape (m, L)."""
    is_number, number, others = _told_apart(judged.run.frame[COLUMN].iloc[rows])
    listed = np.flatnonzero(~is_number)
    _refuse(judged, rows, is_number & np.isnan(number), "no value")
    outside = is_number & ~((number >= 0) & (number <= 1))
    _refuse(judged, rows, outside, "a number outside [0, 1], wanted the probability of being relevant")
    prob = _of_relevance(judged, topic, number)
    if len(listed):
        prob[listed] = _of_grades(judged, rows[listed], others)
    return prob


def _told_apart(column: pd.Series[Any]) -> tuple[Bools, Floats, list[Any]]:
    """Which cells are numbers, the numbers (0 elsewhere), both of shape (m,), and the other cells."""
    kind = column.dtype
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return np.ones(len(column), dtype=bool), column.to_numpy(dtype=np.float64, na_value=np.nan), []
    cells = column.tolist()
    is_number = np.array([isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells], dtype=bool)
    number = np.zeros(len(cells))
    number[is_number] = [cell for cell, yes in zip(cells, is_number, strict=True) if yes]
    return is_number, number, [cell for cell, yes in zip(cells, is_number, strict=True) if not yes]


def _of_relevance(judged: JudgedTop, topic: Ints, chance: Floats) -> Floats:
    """Share a probability of being relevant among the grades above 0, shape (m, L)."""
    counts = judged.judgments.counts[:, 1:]
    relevant = np.where(counts.any(axis=1, keepdims=True), shares(counts), shares(counts.sum(axis=0)))
    above = chance[:, None] * relevant[topic]
    # Without any relevant document all falls to grade 0, as where grades have run out.
    return np.column_stack([1.0 - above.sum(axis=1), above])


def _of_grades(judged: JudgedTop, rows: Ints, cells: list[Any]) -> Floats:
    """Lists of the probabilities of grade 0, 1, 2, ... as shape (m, L)."""
    grades = judged.judgments.grades
    lists = _lists(judged, rows, cells)
    _refuse(judged, rows, lists.is_null().to_numpy(zero_copy_only=False), "no value")
    lengths = lists.value_lengths().to_numpy()
    chance = lists.flatten().to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(rows)), lengths)
    grade = np.arange(len(chance)) - np.repeat(np.cumsum(lengths) - lengths, lengths)

    def any_of(bad: Bools) -> Bools:
        return np.bincount(owner[bad], minlength=len(rows)) > 0

    _refuse(judged, rows, any_of(~(chance >= 0)), "a number below 0 or none at all, wanted probabilities")
    total = np.bincount(owner, weights=chance, minlength=len(rows))
    _refuse(judged, rows, ~(np.abs(total - 1) <= TOLERANCE), "probabilities that do not sum to 1")
    level = np.minimum(np.searchsorted(grades, grade), len(grades) - 1)
    known = grades[level] == grade
    strange = any_of(~known & (chance > 0))
    held = ", ".join(map(str, grades.tolist()))
    _refuse(judged, rows, strange, f"a grade that {judged.judgments.name} do not hold; they hold {held}")
    prob = np.zeros((len(rows), len(grades)))
    prob[owner[known], level[known]] = chance[known] / total[owner[known]]
    return prob


def _lists(judged: JudgedTop, rows: Ints, cells: list[Any]) -> Any:
    """Cells as an Arrow array of lists of numbers."""
    kind = pa.large_list(pa.float64())
    try:
        return pa.array(cells, type=kind, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        _refuse(judged, rows, np.array([not _is_list(cell, kind) for cell in cells]), "neither list nor number")
        raise


def _is_list(cell: Any, kind: Any) -> bool:
    try:
        pa.array([cell], type=kind, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return False
    return True


def _refuse(judged: JudgedTop, rows: Ints, bad: Bools, found: str) -> None:
    """Complain of the first bad cell, where there is one."""
    if not bad.any():
        return
    row, run = int(rows[int(np.argmax(bad))]), judged.run
    raise InputError(
        f"{run.name} column {COLUMN!r}: document {run.docno.text[row].as_py()!r} of query "
        f"{run.topics[run.topic[row]]!r} (row {row}) holds {found}; each unjudged document of the cut needs a list of "
        "the probabilities of grade 0, 1, 2, ..., or one number, its probability of being relevant"
        f" ({int(bad.sum())} of {len(bad)} documents)"
    )
