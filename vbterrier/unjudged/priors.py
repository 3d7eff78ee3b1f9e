"""Parameters of the model of unjudged documents, and its priors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import InputError, ParameterError, choice, examples, excerpt, nearest, number, whole
from vbterrier.frames.contracts import require
from vbterrier.kernels.grades.choice import METHODS
from vbterrier.kernels.tolerances import PROBABILITY_ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.unjudged.pool import JudgedTop


# Priors of the paper, the default last; individual priors from a column of the run; and all named priors.
PAPER = ("pool", "run", "pool+run")
DEFAULT_PRIOR = "pool+run"
COLUMN_PRIOR = "column"
PRIORS = (*PAPER, COLUMN_PRIOR)
# The pseudo-count in documents of the priors of the paper for intervals, see docs/explanation/evidence-one-run.md.
DEFAULT_STRENGTH = 2.0
ALL_UNJUDGED = ("auto", "pool", "zero")
COLUMN = "grade_prob"
COMPAT = ("", "ecir23")
ECIR23_GRADES = (0, 1, 2, 3)
ECIR23_FLOOR = 1e-6
N_DRAWS = 1000
MAX_DRAWS = 10_000_000


def shares(counts: Ints) -> Floats:
    """Each row divided by its sum; rows of zeros stay."""
    return np.asarray(counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1))


def column_probabilities(judged: JudgedTop) -> Floats:
    """The prior of each unjudged document of the cut, from column ``grade_prob`` of the run; other cells are ignored.

    Returns documents in the order of their ranks, padded with grade 0, shape (n, most unjudged, L).
    """
    run, grades = judged.run, judged.judgments.grades
    if COLUMN not in run.frame.columns:
        raise InputError(
            f"{run.name}: prior='column' needs column {COLUMN!r}, found {', '.join(map(str, run.frame.columns))}; add "
            "it, or choose another prior"
        )
    require(run.frame, (COLUMN,), run.name)
    topic, rank = np.nonzero(judged.unjudged_mask)
    rows = judged.rows[topic, rank]
    is_number, number, lists = _split_cells(run.frame[COLUMN].iloc[rows])
    listed = np.flatnonzero(~is_number)
    _refuse(judged, rows, is_number & np.isnan(number), "no value")
    outside = is_number & ~((number >= 0) & (number <= 1))
    _refuse(judged, rows, outside, "a number outside [0, 1], wanted the probability of relevance")
    counts = judged.judgments.counts[:, 1:]
    relevant = np.where(counts.any(axis=1, keepdims=True), shares(counts), shares(counts.sum(axis=0)))
    above = number[:, None] * relevant[topic]
    # Without any relevant document, grade 0 gets all probability.
    probabilities = np.column_stack([1.0 - above.sum(axis=1), above])
    if len(listed):
        probabilities[listed] = _of_grades(judged, rows[listed], lists)
    first = np.cumsum(judged.n_unjudged) - judged.n_unjudged
    prob = np.tile(np.eye(1, len(grades)), (len(first), int(judged.n_unjudged.max(initial=0)), 1))
    prob[topic, np.arange(len(topic)) - first[topic]] = probabilities
    return prob


def _split_cells(column: pd.Series[Any]) -> tuple[Bools, Floats, list[Any]]:
    """A mask of the cells that are numbers, the numbers (0 for other cells), both of shape (m,), and other cells."""
    kind = column.dtype
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return np.ones(len(column), dtype=bool), column.to_numpy(dtype=np.float64, na_value=np.nan), []
    cells = column.tolist()
    is_number = np.array([isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells], dtype=bool)
    number = np.zeros(len(cells))
    number[is_number] = [cell for cell, yes in zip(cells, is_number, strict=True) if yes]
    return is_number, number, [cell for cell, yes in zip(cells, is_number, strict=True) if not yes]


def _of_grades(judged: JudgedTop, rows: Ints, cells: list[Any]) -> Floats:
    """Convert lists of the probabilities of grade 0, 1, 2, ... to an array, shape (m, L)."""
    grades = judged.judgments.grades
    lists = _lists(cells)
    if lists is None:
        bad = np.array([_lists([cell]) is None for cell in cells])
        _refuse(judged, rows, bad, "neither list nor number")
    _refuse(judged, rows, lists.is_null().to_numpy(zero_copy_only=False), "no value")
    lengths = lists.value_lengths().to_numpy()
    chance = lists.flatten().to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(rows)), lengths)
    grade = np.arange(len(chance)) - np.repeat(np.cumsum(lengths) - lengths, lengths)

    def any_by_row(bad: Bools) -> Bools:
        return np.bincount(owner[bad], minlength=len(rows)) > 0

    _refuse(judged, rows, any_by_row(~(chance >= 0)), "a negative or missing number, wanted probabilities")
    total = np.bincount(owner, weights=chance, minlength=len(rows))
    _refuse(judged, rows, ~(np.abs(total - 1) <= PROBABILITY_ROUNDING), "probabilities that do not sum to 1")
    level = np.minimum(np.searchsorted(grades, grade), len(grades) - 1)
    matches = grades[level] == grade
    unknown = any_by_row(~matches & (chance > 0))
    held = ", ".join(map(str, grades.tolist()))
    _refuse(judged, rows, unknown, f"a grade that {judged.judgments.name} do not hold; they hold {held}")
    prob = np.zeros((len(rows), len(grades)))
    prob[owner[matches], level[matches]] = chance[matches] / total[owner[matches]]
    return prob


def _lists(cells: list[Any]) -> Any:
    """Cells as an Arrow array of lists of numbers; None if one is no such list."""
    try:
        return pa.array(cells, type=pa.large_list(pa.float64()), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return None


def _refuse(judged: JudgedTop, rows: Ints, bad: Bools, text: str) -> None:
    """Raise an error for the first bad cell, if any."""
    if not bad.any():
        return
    row, run = int(rows[int(np.argmax(bad))]), judged.run
    raise InputError(
        f"{run.name} column {COLUMN!r}: document {run.docno.text[row].as_py()!r} of query "
        f"{run.topics[run.topic[row]]!r} (row {row}) holds {text}; each unjudged document of the cut needs a list of "
        "the probabilities of grade 0, 1, 2, ..., or one number, its probability of relevance"
        f" ({int(bad.sum())} of {len(bad)} documents)"
    )


class Prior(NamedTuple):
    """The prior over grades of the unjudged documents of a run."""

    # Probability of each grade, shape (n, 1, L); for individual priors (n, most unjudged, L) in the order of ranks.
    prob: Floats
    # Pseudo-count of the prior of each topic, shape (n,); None if all priors are known exactly.
    strength: Floats | None


def grade_prior(judged: JudgedTop, process: Process) -> Prior:
    """The prior over grades of every topic, with its strength."""
    prior, strength = process.prior, process.strength
    if process.compat:
        return Prior(ecir23_probabilities(judged, str(prior)), None)
    strengths = None if strength == math.inf else np.full(len(judged.judgments.topics), strength)
    if prior == COLUMN_PRIOR:
        return Prior(column_probabilities(judged), strengths)
    if isinstance(prior, Mapping):
        return Prior(
            np.broadcast_to(_stated_probabilities(judged, prior), judged.judgments.counts.shape)[:, None], strengths
        )
    prob = _paper(judged, prior, process.all_unjudged)
    if process.all_unjudged == "zero":
        prob = np.where(_blind(judged)[:, None], np.eye(1, prob.shape[1]), prob)
    return Prior(prob[:, None], strengths)


def _blind(judged: JudgedTop) -> NDArray[np.bool_]:
    """Topics whose documents up to the cutoff are all unjudged, shape (n,)."""
    return np.asarray((judged.counts.sum(axis=1) == 0) & (judged.n_unjudged > 0))


def _paper(judged: JudgedTop, prior: str, all_unjudged: str) -> Floats:
    """The priors of the paper, shape (n, L)."""
    pool, run = shares(judged.judgments.counts), shares(judged.counts)
    blind = _blind(judged)
    if prior == "run" and all_unjudged == "auto" and blind.any():
        topics = [judged.judgments.topics[place] for place in np.flatnonzero(blind)]
        raise InputError(
            f"{judged.run.name}: prior='run' is undefined on {len(topics)} topics whose first documents are all "
            f"unjudged ({examples(topics)}); choose all_unjudged='pool' or 'zero', or prior='pool+run'"
        )
    # Without a judged document up to the cutoff, the prior is that of the pool.
    nothing = judged.counts.sum(axis=1) == 0
    run = np.where(nothing[:, None], pool, run)
    return {"pool": pool, "run": run, "pool+run": (pool + run) / 2}[prior]


def ecir23_probabilities(judged: JudgedTop, prior: str) -> Floats:
    """The priors as computed by the published code of the paper, shape (n, 1, L).

    Only grades 0 to 3 are used; the pool is the union over all topics; shares are at least 1e-6 before the priors are
    averaged and normalised; if all documents up to the cutoff are unjudged, they have grade 0.
    """
    in_paper = np.isin(judged.judgments.grades, ECIR23_GRADES)
    pool = shares((judged.judgments.counts * in_paper).sum(axis=0, keepdims=True))
    run = shares(judged.counts * in_paper)
    parts = {"pool": [pool], "run": [run], "pool+run": [pool, run]}[prior]
    prob = sum(
        (np.where(in_paper, np.maximum(part, ECIR23_FLOOR), 0.0) for part in parts), np.zeros((1, len(in_paper)))
    )
    prob = np.broadcast_to(prob / prob.sum(axis=1, keepdims=True), judged.counts.shape).copy()
    prob[judged.counts.sum(axis=1) == 0] = np.eye(1, prob.shape[1])
    return prob[:, None]


def _stated_probabilities(judged: JudgedTop, prior: Mapping[int, float]) -> Floats:
    grades = judged.judgments.grades.tolist()
    unknown = [grade for grade in prior if grade not in grades]
    if unknown:
        raise InputError(
            f"prior names grades that {judged.judgments.name} lacks: {examples(unknown)}; it has {examples(grades, 9)}"
        )
    prob = np.array([number(f"prior[{grade}]", prior.get(grade, 0.0), low=0, high=1) for grade in grades])
    if abs(prob.sum() - 1) > PROBABILITY_ROUNDING:
        raise InputError(f"prior {excerpt(dict(prior))}: wanted probabilities that sum to 1, found {prob.sum():g}")
    normalised: Floats = prob / prob.sum()
    return normalised


@dataclass(frozen=True)
class Process:
    """The parameters of the process of the paper, see :func:`vbterrier.unjudged.bootstrap_distribution`."""

    prior: str | Mapping[int, float] = DEFAULT_PRIOR
    method: str = "auto"
    compat: str = ""
    all_unjudged: str = "auto"
    n_draws: int = N_DRAWS
    seed: int = 0
    prior_strength: float | str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Mapping) and self.prior not in PRIORS:
            raise ParameterError(
                f"prior={self.prior!r}: wanted one of {', '.join(map(repr, PRIORS))}, or a mapping of grade to "
                f"probability.{nearest(str(self.prior), PRIORS)}"
            )
        for name, legal in (("method", METHODS), ("compat", COMPAT), ("all_unjudged", ALL_UNJUDGED)):
            choice(name, getattr(self, name), legal)
        if self.prior_strength == "inf":
            # As text, since parameters of measures cannot be infinite.
            object.__setattr__(self, "prior_strength", math.inf)
        strength = self.prior_strength
        number = isinstance(strength, (int, float, np.number)) and not isinstance(strength, bool)
        if strength != "auto" and not (number and float(strength) > 0):
            raise ParameterError(
                f"prior_strength={excerpt(strength)}: wanted 'auto', or a number above 0, the "
                "pseudo-count of the prior, or "
                "inf for a prior known exactly"
            )
        if self.compat and self.prior not in PAPER:
            raise ParameterError(f"compat={self.compat!r} needs one of the priors {', '.join(map(repr, PAPER))}")
        if self.compat and strength not in ("auto", math.inf):
            raise ParameterError(
                f"compat={self.compat!r} treats its prior as known exactly; remove prior_strength={strength}, or compat"
            )
        whole("n_draws", self.n_draws, high=MAX_DRAWS)
        whole("seed", self.seed, low=0)

    @property
    def strength(self) -> float:
        """The pseudo-count of the prior; ``"auto"`` is infinite, as in the paper: draws are independent."""
        return math.inf if self.prior_strength == "auto" else float(self.prior_strength)

    @property
    def interval_strength(self) -> float:
        """The pseudo-count of the prior for intervals; ``"auto"`` is finite for the priors of the paper."""
        if self.prior_strength == "auto" and self.prior in PAPER and not self.compat:
            return DEFAULT_STRENGTH
        return self.strength

    @property
    def summary(self) -> str:
        """The prior, and other parameters that differ from their defaults."""
        parts = [f"prior {self.prior if isinstance(self.prior, str) else dict(self.prior)}"]
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in ("prior", "method", "n_draws", "seed") and value != one.default:
                parts.append(f"{one.name} {value}")
        return ", ".join(parts)

    @property
    def drops_negative(self) -> bool:
        """True if labels below 0 count as unjudged."""
        return self.compat == "ecir23"
