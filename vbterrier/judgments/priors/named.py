"""What an unjudged document may be worth: probabilities of the grades."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.judgments.priors.column import TOLERANCE, column_probabilities, shares
from vbterrier.judgments.priors.hierarchical import hierarchical
from vbterrier.judgments.priors.learned import learned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vbterrier.judgments.pool import JudgedTop
    from vbterrier.judgments.process import Process

    Floats = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

# Priors of the paper, and all that have a name: "column" is what a run brings for its documents.
PAPER = ("pool", "run", "pool+run")
OWN = "column"
PRIORS = (*PAPER, "learned", "hierarchical", OWN, "auto")
ALL_UNJUDGED = ("auto", "pool", "zero")
ECIR23_GRADES = (0, 1, 2, 3)
ECIR23_FLOOR = 1e-6


@dataclass(frozen=True)
class Prior:
    """What the unjudged documents of a run may be.

    Parameters
    ----------
    prob
        Probability of each grade, shape (n, 1, L); where documents have their own, (n, most unjudged, L) in the order
        of their ranks.
    strength
        How many documents the prior of each topic is worth, shape (n,); ``None`` where all are known exactly.
    """

    prob: Floats
    strength: Floats | None


def prior_of(judged: JudgedTop, process: Process) -> Prior:
    """The prior over grades for every topic, with how sure it is.

    ``learned``: see :func:`vbterrier.judgments.priors.learned.learned`; ``hierarchical``: the pool of this query shrunk
    to that of all; ``pool``: ``P_r = |J_r| / |J|`` of this query's judged documents; ``run``: the same share among the
    judged documents of the ranking's first k; ``pool+run``: their mean (Fröbe et al., ECIR 2023, section 3.2);
    ``column``: each document's own; or a mapping of grade to probability, the same for all topics. ``auto`` is
    ``learned``, or ``pool+run`` with the paper's code.

    Parameters
    ----------
    judged
        The cut run.
    process
        ``prior`` names it; ``prior_strength`` is the pseudo-count of each topic: ``"auto"`` takes what was learned, and
        all other priors for certain; ``all_unjudged`` says what the run prior is where none of the first k is judged:
        ``"auto"`` takes the pool's for ``pool+run`` and raises for ``run``, ``"pool"`` takes the pool's for both,
        ``"zero"`` makes every document grade 0 (the authors' choice) under any of the named priors.

    Raises
    ------
    InputError
        ``run`` on topics without a judged document in the cut; a mapping that is no distribution over the grades; see
        :func:`vbterrier.judgments.priors.column.column_probabilities`.
    """
    prior = process.chosen_prior
    if process.compat:
        return Prior(ecir23_probabilities(judged, str(prior)), None)
    given = _given_strength(judged, process)
    if prior == OWN:
        return Prior(column_probabilities(judged), given)
    if isinstance(prior, Mapping):
        return Prior(np.broadcast_to(_given(judged, prior), judged.judgments.counts.shape)[:, None], given)
    if prior in PAPER:
        prob, strength = _paper(judged, prior, process.all_unjudged), given
    elif prior == "hierarchical":
        prob, strength = hierarchical(judged.judgments.counts), given
    else:
        found = learned(judged)
        _LOG.info(
            "learned the prior of %s topics: unjudged at random with probability %.2f, median strength %.3g",
            len(found.prob),
            found.random,
            float(np.median(found.strength)) if len(found.strength) else float("nan"),
        )
        prob, strength = found.prob, found.strength if process.prior_strength == "auto" else given
    if process.all_unjudged == "zero":
        prob = np.where(_blind(judged)[:, None], np.eye(1, prob.shape[1]), prob)
    return Prior(prob[:, None], strength)


def _given_strength(judged: JudgedTop, process: Process) -> Floats | None:
    if process.prior_strength in ("auto", math.inf):
        return None
    return np.full(len(judged.judgments.topics), float(process.prior_strength))


def _blind(judged: JudgedTop) -> NDArray[np.bool_]:
    """Topics with unjudged documents in the cut, and no others."""
    return np.asarray((judged.counts.sum(axis=1) == 0) & (judged.n_unjudged > 0))


def _paper(judged: JudgedTop, prior: str, all_unjudged: str) -> Floats:
    """The priors of the paper, shape (n, L)."""
    pool, run = shares(judged.judgments.counts), shares(judged.counts)
    blind = _blind(judged)
    if prior == "run" and all_unjudged == "auto" and blind.any():
        topics = [judged.judgments.topics[place] for place in np.flatnonzero(blind)]
        raise InputError(
            f"{judged.run.name}: prior='run' has nothing to go by on {len(topics)} topics whose first documents are "
            f"all unjudged ({examples(topics)}); choose all_unjudged='pool' or 'zero', or prior='pool+run'"
        )
    # Without a judged document in the cut the pool speaks alone.
    nothing = judged.counts.sum(axis=1) == 0
    run = np.where(nothing[:, None], pool, run)
    return {"pool": pool, "run": run, "pool+run": (pool + run) / 2}[prior]


def ecir23_probabilities(judged: JudgedTop, prior: str) -> Floats:
    """The priors as the code behind the paper computes them, shape (n, 1, L).

    Grades 0 to 3 only; the pool is that of all topics together; every share is raised to 1e-6 at the least before
    the priors are averaged and normalised; where none of the cut is judged, every document has grade 0.
    """
    known = np.isin(judged.judgments.grades, ECIR23_GRADES)
    pool = shares((judged.judgments.counts * known).sum(axis=0, keepdims=True))
    run = shares(judged.counts * known)
    parts = {"pool": [pool], "run": [run], "pool+run": [pool, run]}[prior]
    prob = sum((np.where(known, np.maximum(part, ECIR23_FLOOR), 0.0) for part in parts), np.zeros((1, len(known))))
    prob = np.broadcast_to(prob / prob.sum(axis=1, keepdims=True), judged.counts.shape).copy()
    prob[judged.counts.sum(axis=1) == 0] = np.eye(1, prob.shape[1])
    return prob[:, None]


def _given(judged: JudgedTop, prior: Mapping[int, float]) -> Floats:
    grades = judged.judgments.grades.tolist()
    unknown = [grade for grade in prior if grade not in grades]
    if unknown:
        raise InputError(
            f"prior names grades that {judged.judgments.name} lacks: {examples(unknown)}; it has {examples(grades, 9)}"
        )
    prob = np.array([float(prior.get(grade, 0.0)) for grade in grades])
    if not (np.isfinite(prob).all() and (prob >= 0).all() and abs(prob.sum() - 1) <= TOLERANCE):
        raise InputError(
            f"prior {dict(prior)}: wanted probabilities of at least 0 that sum to 1, found a sum of {prob.sum():g}"
        )
    normalised: Floats = prob / prob.sum()
    return normalised


def check_prior(prior: str | Mapping[int, float]) -> None:
    """Refuse the name of a prior that does not exist.

    Raises
    ------
    ParameterError
        Names the legal values.
    """
    if not isinstance(prior, Mapping) and prior not in PRIORS:
        raise ParameterError(
            f"prior={prior!r}: wanted one of {', '.join(map(repr, PRIORS))}, or a mapping of grade to probability."
            f"{nearest(str(prior), PRIORS)}"
        )


def check_strength(strength: float | str) -> None:
    """Refuse a pseudo-count that is none.

    Raises
    ------
    ParameterError
        Anything but ``"auto"`` or a number above 0; infinity is one.
    """
    number = isinstance(strength, (int, float, np.number)) and not isinstance(strength, bool)
    if strength != "auto" and not (number and float(strength) > 0):
        raise ParameterError(
            f"prior_strength={strength!r}: wanted 'auto', or a number above 0, the documents that the prior is worth, "
            "or inf for a prior known exactly"
        )
