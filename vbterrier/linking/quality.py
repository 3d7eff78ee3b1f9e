"""Linking quality of systems: counts of answers, and precision and recall with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, number, whole
from vbterrier.frames.contracts import systems_of
from vbterrier.frames.notebook import Panel, Shown, of_means, systems_line
from vbterrier.kernels import linking
from vbterrier.kernels.resample import stream
from vbterrier.linking.answers import NIL, Gold, answers, decide, warn_of_silence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.frames.notebook import Figures


ANSWERS = ("right_link", "wrong_link", "nil", "unanswered")


@dataclass(frozen=True, eq=False, repr=False)
class LinkingReport(Shown):
    """Answers and figures of systems, returned by :func:`linking_report`.

    Parameters
    ----------
    counts
        Two rows per system, for queries whose correct answer is a ``"link"`` and a ``"nil"``: name, gold, n_qids,
        right_link, wrong_link, nil, unanswered. A link is wrong if NIL is correct.
    intervals
        One row per system and figure: name, measure, value, low, high, level, method, n_qids, n_resamples, seed; NaN
        if a figure is undefined.
    """

    counts: pd.DataFrame
    intervals: pd.DataFrame

    def _line(self) -> str:
        return systems_line(self.intervals)

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Answers", self.counts, heads=2)
        yield from of_means(self.intervals, title="Figures")

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": self.intervals}}

    def figures(self) -> pd.DataFrame:
        """Return the figures with one row per system and one column per figure."""
        table = self.intervals.pivot(index="name", columns="measure", values="value")
        return table.loc[self.intervals["name"].unique(), list(linking.FIGURES)]


def linking_report(
    systems: Any,
    gold: Any,
    *,
    nil: str = NIL,
    unanswered: str = "nothing",
    multiple_answers: str = "raise",
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> LinkingReport:
    """Report counts of answers, precision and recall of links and NILs, their totals and F1, with intervals.

    ``R_L`` and ``P_L`` are the right links over gold links and over predicted links, ``R_N`` and ``P_N`` the same for
    NILs, R and P their means weighted by the numbers of gold links and NILs, and ``F1 = 2PR/(P + R)`` (Mertens et al.
    2014, section 2.2).

    Parameters
    ----------
    systems
        A mapping of name to answers: a frame (qid, entity_id), a run (qid, docno, score) whose best-ranked entity is
        the answer, or the path of either.
    gold
        A frame (qid, entity_id) with one row per query, or a path.
    nil
        The string that means no entity; ``"NIL"`` includes TAC's numbered clusters such as NIL0012.
    unanswered
        The treatment of a query without an answer: ``"nothing"``, neither link nor NIL; or ``"nil"``.
    multiple_answers
        ``"raise"`` refuses queries with several correct entities; ``"any"`` accepts any of them.
    level
        Nominal coverage of the intervals, 0 to 1.
    n_resamples
        Number of resamples of the queries.
    seed
        Seed of the resamples, which are the same for equal counts.

    Returns
    -------
    LinkingReport

    Raises
    ------
    InputError
        Invalid frames or files; two systems with the same name; no shared queries.
    ParameterError
        An unknown option.

    Notes
    -----
    The intervals are percentiles of the figures over resampled queries, so they stay in [0, 1]; those of
    :func:`vbterrier.score` over the measures are based on a linearisation. A resample is a draw of eight counts,
    independent of the number of queries; resamples in which a figure is undefined are left out for that figure.

    Coverage of nominal 95 % intervals for the population value, simulated with the counts of the paper's Random
    Document set (percentile, and Student's t over the measures' values): F1 with 25 queries .87 and .87, 50 queries .90
    and .92, 250 queries .94 and .94; link precision .72 and .73, .91 and .90, .93 and .94. Coverage is low because
    errors of one kind are few: of 25 queries some 12 have no entity, and often none of these is wrong.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014.

    Examples
    --------
    >>> import pandas as pd
    >>> gold = pd.DataFrame({"qid": ["q1", "q2", "q3"], "entity_id": ["Paris", "Rome", "NIL"]})
    >>> mine = pd.DataFrame({"qid": ["q1", "q2", "q3"], "entity_id": ["Paris", "Romeo", "NIL"]})
    >>> report = linking_report({"mine": mine}, gold)
    >>> report.counts.values.tolist()
    [['mine', 'link', 2, 1, 1, 0, 0], ['mine', 'nil', 1, 0, 0, 1, 0]]
    >>> report.figures().loc["mine", ["LinkP", "LinkingF1"]].round(3).tolist()
    [0.5, 0.667]
    """
    number("level", level, low=0, high=1, open_low=True, open_high=True)
    whole("n_resamples", n_resamples)
    whole("seed", seed, low=0)
    if not hasattr(systems, "items") or hasattr(systems, "columns"):
        raise InputError(f"systems: wanted a mapping of name to answers, found {type(systems).__name__}")
    correct = Gold(gold, nil=nil, multiple_answers=multiple_answers)
    counts, rows = [], []
    for name, system in systems_of(systems):
        found = decide(answers(system, name=f"system {name!r}"), correct, unanswered=unanswered)
        warn_of_silence(found, nil, f"system {name!r}")
        table = found.counts
        counts += [
            (name, kind, int(row.sum()), *row.tolist()) for kind, row in zip(("link", "nil"), table, strict=True)
        ]
        low, high = _limits(table, level, n_resamples, seed)
        for place, value in enumerate(linking.figures(table).tolist()):
            limits = low[place], high[place], level, "queries (percentile)", len(correct.topics), n_resamples, seed
            rows.append((name, linking.FIGURES[place], value, *limits))
    columns = ["name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed"]
    return LinkingReport(
        pd.DataFrame(counts, columns=["name", "gold", "n_qids", *ANSWERS]), pd.DataFrame(rows, columns=columns)
    )


def _limits(table: NDArray[np.int64], level: float, n_resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return the limits of the interval of each figure, shape (7,) each; NaN if it is never defined."""
    n = int(table.sum())
    drawn = stream(seed, "linking report").multinomial(n, table.ravel() / n, size=n_resamples)
    values = linking.figures(drawn.reshape(-1, 2, 4))
    limits = np.full((2, values.shape[1]), np.nan)
    known = ~np.isnan(values).all(axis=0) & ~np.isnan(linking.figures(table))
    limits[:, known] = np.nanquantile(values[:, known], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return limits[0], limits[1]
