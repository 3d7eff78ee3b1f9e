"""Random removal of queries: precision, recall and F1 of the remaining set."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, number, whole
from vbterrier.frames.notebook import Panel, Shown, facts
from vbterrier.kernels import linking
from vbterrier.kernels.linking import N_CELLS, PLACES, SCORES, extremes, nested_draws, removed_queries, scores
from vbterrier.kernels.resample import stream
from vbterrier.linking.answers import NIL, Decisions, Gold, answers, decide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.notebook import Figures


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
        """The counts in the order of :mod:`vbterrier.kernels.linking`, shape (5,)."""
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


def decided(
    gold: Any, system: Any, *, nil: str = NIL, multiple_answers: str = "raise", unanswered: str = "nothing"
) -> Ints:
    """The cell of each query of the gold standard, from 0, shape (n,).

    Raises
    ------
    InputError
        Queries without an answer, of which two stages know nothing.
    """
    found = decide(
        answers(system, name="system"), Gold(gold, nil=nil, multiple_answers=multiple_answers), unanswered=unanswered
    )
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


N_DRAWS = 10_000
SOURCES = ("model", "queries")
# Two samples of one law are further apart in one of twenty cases.
_LIMIT = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class Removal(Shown):
    """Scores of what is left of a query set when queries are removed at random.

    Parameters
    ----------
    draws
        Columns source (``"model"``, and ``"queries"`` where single queries are known), measure (P, R, F1), value: a row
        a draw.
    counts
        The queries before any is removed.
    n_removed
        How many are.
    worst, best
        The lowest and the highest value of each measure that any removal of so many queries leaves.
    seed
        Decides the draws.

    Examples
    --------
    >>> found = removal(DecisionCounts(right=6, wrong=1, missed=1, recognised=7, taken=1), n_removed=2, n_draws=100)
    >>> found.summary()["measure"].tolist(), found.draws["source"].unique().tolist()
    (['P', 'R', 'F1'], ['model'])
    """

    draws: pd.DataFrame
    counts: DecisionCounts
    n_removed: int
    worst: dict[str, float]
    best: dict[str, float]
    seed: int

    def _line(self) -> str:
        f1 = self.draws.loc[(self.draws["measure"] == "F1") & (self.draws["source"] == "model"), "value"]
        return f"{self.n_removed} of {len(self.counts)} queries, F1 {f1.mean():.3f} ± {f1.std():.4f}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Scores of what is left", self.summary().rename(columns={"n_qids": "of"}), heads=2)

    def _figures(self) -> Figures:
        return {"removal_distributions": lambda: {"removal": self}}

    def summary(self) -> pd.DataFrame:
        """A row a measure and source.

        Columns measure, source, n_removed, n_qids (before), mean, std, min, max (of the draws), worst, best (of all
        removals there are), ks (two-sample Kolmogorov distance between model and queries; NaN without queries),
        n_draws, seed, ks_limit (what two samples of this size from one law stay below in 95 % of cases; in more, where
        they take few values).
        """
        rows = []
        for measure, drawn in self.draws.groupby("measure", sort=False):
            values = {str(source): part.to_numpy() for source, part in drawn.groupby("source", sort=False)["value"]}
            ks, limit = _distance(*values.values()) if len(values) > 1 else (np.nan, np.nan)
            for source, found in values.items():
                spread = (found.mean(), found.std(ddof=1) if len(found) > 1 else np.nan, found.min(), found.max())
                about = (measure, source, self.n_removed, len(self.counts))
                ends = (self.worst[str(measure)], self.best[str(measure)])
                rows.append((*about, *spread, *ends, ks, len(found), self.seed, limit))
        columns = ["measure", "source", "n_removed", "n_qids", "mean", "std", "min", "max", "worst", "best", "ks"]
        return pd.DataFrame(rows, columns=[*columns, "n_draws", "seed", "ks_limit"])


def simulate_query_removal(
    gold: Any,
    system: Any = None,
    *,
    n_removed: int | None = None,
    fraction: float | None = None,
    nil: str = NIL,
    multiple_answers: str = "raise",
    unanswered: str = "nothing",
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Removal:
    """How P, R and F1 of a system spread when some of its queries are removed at random.

    Of m queries removed, ``m_L ~ Hypergeometric(N, N_L, m)`` are gold links; of these b were resolved as links, of
    these again some were resolved right, and of the ``m - m_L`` gold NILs c were recognised: hypergeometric each, given
    the one before. If the set is a fair sample of its kind and m small, adding m queries moves the scores as far.

    Parameters
    ----------
    gold
        The right answers: columns qid, entity_id (NIL where there is none), or a path. Or :class:`DecisionCounts`,
        which give the model alone.
    system
        What the system answers: the same columns, or a run whose documents are entities, or a path.
    n_removed, fraction
        How many queries are removed, 1 to N - 1; or which share of them, rounded to such a number. One of the two.
    nil, multiple_answers, unanswered
        As of :data:`vbterrier.LinkP`; queries without an answer are refused unless they are ``"nil"``.
    n_draws
        Removals to draw from each source.
    seed
        Decides them.

    Returns
    -------
    Removal
        Draws of the model, and those of removing real queries beside them where these are known.

    Raises
    ------
    InputError
        Frames that are none, queries without an answer.
    ParameterError
        Both or none of ``n_removed`` and ``fraction``, or one out of range; fewer than two queries.

    Notes
    -----
    Decisions in two stages of any kind (detect, then classify) have this law. It is that of removing real queries too,
    which are drawn as a check: both are two samples of one law. Worst and best are exact over all removals of m
    queries, found in time that grows with the missed links that can be among them, times the NILs taken for links; the
    paper has them for given shares a, b, c instead. Drawing real queries takes ``n_draws * N`` random numbers, in
    blocks.

    With the counts that Tables 1 and 2 of the paper imply, its Table 3 is met: standard deviations of F1 are .0004,
    .0008, .0012 for 10, 50, 100 of 2,853 queries (printed .000, .001, .001), and .0010, .0024, .0035 of 1,000 (printed
    .001, .002, .003). Least and greatest of 10,000 draws depend on the draws: all that are printed lie where 95 % of
    such runs have them. Ranges that its text calls ".02" and ".08" are .002 and .008.

    References
    ----------
    Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 3.

    Examples
    --------
    >>> counts = DecisionCounts(right=1019, wrong=39, missed=231, recognised=1477, taken=87)
    >>> found = removal(counts, n_removed=100, seed=1).summary().set_index("measure")
    >>> found.loc["F1", ["mean", "std", "worst", "best"]].astype(float).round(4).tolist()
    [0.8755, 0.0012, 0.8707, 0.9113]
    """
    kind, counts = _known(gold, system, nil=nil, multiple_answers=multiple_answers, unanswered=unanswered)
    m = _number(n_removed, fraction, len(counts))
    n_draws = whole("n_draws", n_draws)
    gone = [nested_draws(counts.cells, m, n_draws, stream(seed, "removal", "model"))]
    if kind is not None:
        gone.append(removed_queries(kind, m, n_draws, stream(seed, "removal", "queries")))
    draws = [
        pd.DataFrame({"source": source, "measure": np.repeat(SCORES, n_draws), "value": left.T.ravel()})
        for source, left in zip(SOURCES, (scores(counts.cells - cells) for cells in gone), strict=False)
    ]
    worst, best = (dict(zip(SCORES, ends.tolist(), strict=True)) for ends in extremes(counts.cells, m))
    return Removal(pd.concat(draws, ignore_index=True), counts, m, worst, best, seed)


def _known(gold: Any, system: Any, **words: str) -> tuple[Any, DecisionCounts]:
    """The cell of each query, ``None`` where counts are all that is known; and the counts."""
    if isinstance(gold, DecisionCounts):
        if system is not None:
            raise ParameterError("gold holds counts of decisions: leave out system, whose answers they count")
        return None, gold
    if system is None:
        raise ParameterError("wanted the answers of a system beside gold, or DecisionCounts in place of both")
    # Sorted, so that draws do not depend on the order of the queries.
    kind = np.sort(decided(gold, system, **words))
    return kind, DecisionCounts(*np.bincount(kind, minlength=N_CELLS).tolist())


def _number(n_removed: int | None, fraction: float | None, n: int) -> int:
    if (n_removed is None) == (fraction is None):
        raise ParameterError("wanted either n_removed or fraction")
    if n < 2:  # noqa: PLR2004 - one is removed, one is left
        raise ParameterError(f"{n} queries: wanted two at least, of which one can be removed")
    if fraction is None:
        return whole("n_removed", n_removed, high=n - 1, meaning=f", of {n} queries")
    share = number("fraction", fraction, low=0, high=1, open_low=True, open_high=True)
    return min(max(round(share * n), 1), n - 1)


def _distance(model: Floats, queries: Floats) -> tuple[float, float]:
    """The Kolmogorov distance of two samples, and what that of two samples from one law stays below."""
    from scipy import stats

    # Sums in one order give equal floats, but not all of what counts make equal: no digit beyond these is one.
    distance = stats.ks_2samp(model.round(12), queries.round(12), method="asymp").statistic
    limit = stats.kstwobign.ppf(_LIMIT) * np.sqrt(1 / len(model) + 1 / len(queries))
    return float(distance), float(limit)
