"""What a system made of a set of queries, as counts: links found and resolved, NILs recognised."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vbterrier.errors import InputError
from vbterrier.frames.parameters import number, whole
from vbterrier.frames.shown import Panel, Shown, facts
from vbterrier.kernels import linking
from vbterrier.kernels.removal import N_CELLS, PLACES, SCORES, scores
from vbterrier.linking.answers import NIL, Decisions, Gold, answers, decide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class DecisionCounts(Shown):
    """Queries by what is right for them and what a system decides in two stages: detect, then classify.

    For entity linking, whether a query has an entity (else NIL), then which; the same for any other classes of which
    one is "none of these".

    Parameters
    ----------
    right, wrong, missed
        Gold links that are resolved to the right entity, to a wrong one, and as NIL; at least 0.
    recognised, taken
        Gold NILs that are resolved as NIL, and those that are taken for a link; at least 0.

    Raises
    ------
    ParameterError
        A number that is not whole or below 0.

    Examples
    --------
    >>> counts = DecisionCounts(right=1019, wrong=39, missed=231, recognised=1477, taken=87)
    >>> len(counts), {score: round(value, 3) for score, value in counts.scores().items()}
    (2853, {'P': 0.876, 'R': 0.875, 'F1': 0.876})
    """

    right: int
    wrong: int
    missed: int
    recognised: int
    taken: int

    def __post_init__(self) -> None:
        for name, count in vars(self).items():
            object.__setattr__(self, name, whole(name, count, low=0))

    def __len__(self) -> int:
        return sum(astuple(self))

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Queries", facts({**asdict(self), **self.scores()}))

    @property
    def cells(self) -> Ints:
        """The counts in the order of :mod:`vbterrier.kernels.removal`, shape (5,)."""
        return np.array(astuple(self), dtype=np.int64)

    def scores(self) -> dict[str, float]:
        """P, R and F1 of all queries, as :data:`vbterrier.LinkingP`, ``LinkingR`` and ``LinkingF1`` have them."""
        return dict(zip(SCORES, scores(self.cells).tolist(), strict=True))

    @classmethod
    def from_rates(
        cls, n_links: int, n_nils: int, *, link_recall: float, link_precision: float, nil_recall: float
    ) -> DecisionCounts:
        """Counts from what papers print, each rounded to a whole number.

        ``right = R_L N_L``, ``recognised = R_N N_N``; the links that the system predicts are ``right/P_L``, of which
        those that are neither right nor gold NILs are wrong. NIL precision then follows: compare it with what is
        printed.

        Parameters
        ----------
        n_links, n_nils
            Gold links and gold NILs.
        link_recall, link_precision, nil_recall
            0 to 1, the precision above 0.

        Raises
        ------
        InputError
            Rates that no counts have.
        ParameterError
            A rate that is no share.

        Examples
        --------
        >>> DecisionCounts.from_rates(367, 133, link_recall=0.866, link_precision=0.911, nil_recall=0.842)
        DecisionCounts(right=318, wrong=10, missed=39, recognised=112, taken=21)
        """
        n_links, n_nils = whole("n_links", n_links, low=0), whole("n_nils", n_nils, low=0)
        right = round(number("link_recall", link_recall, low=0, high=1) * n_links)
        recognised = round(number("nil_recall", nil_recall, low=0, high=1) * n_nils)
        predicted = round(right / number("link_precision", link_precision, low=0, high=1, open_low=True))
        taken = n_nils - recognised
        wrong = predicted - right - taken
        if not 0 <= wrong <= n_links - right:
            raise InputError(
                f"no counts have these rates: they make {right} links right and {taken} NILs taken for links, which "
                f"leaves {wrong} of {predicted} predicted links for the {n_links - right} other gold links; look for a "
                "rate of another set"
            )
        return cls(right, wrong, n_links - right - wrong, recognised, taken)


def decided(gold: Any, system: Any, *, nil: str = NIL, several: str = "raise", unanswered: str = "nothing") -> Ints:
    """The cell of each query of the gold standard, from 0, shape (n,).

    Raises
    ------
    InputError
        Queries without an answer, of which two stages know nothing.
    """
    found = decide(answers(system, name="system"), Gold(gold, nil=nil, several=several), unanswered=unanswered)
    return cells_of(found)


def cells_of(decisions: Decisions) -> Ints:
    """The cell of each query, from 0, shape (n,).

    Raises
    ------
    InputError
        Queries without an answer.
    """
    silent = int((decisions.answer == linking.UNANSWERED).sum())
    if silent:
        raise InputError(
            f"system: {silent} of {len(decisions.answer)} queries have no answer, and decisions in two stages know "
            "links and NIL only; add the answers, or count these queries as NIL with unanswered='nil'"
        )
    cell_at = np.full(8, -1, dtype=np.int64)
    cell_at[PLACES] = np.arange(N_CELLS)
    cells: Ints = cell_at[4 * decisions.gold_nil + decisions.answer]
    return cells
