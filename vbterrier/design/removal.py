"""Random removal of queries: precision, recall and F1 of the remaining set."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, number, whole
from vbterrier.frames.entity_answers import Gold, answers, decide
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown, facts
from vbterrier.kernels import linking
from vbterrier.kernels.floats import with_usual_errors
from vbterrier.kernels.linking import CELL_PLACES, N_CELLS, SCORES, extremes, nested_draws, removed_queries, scores
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats, Ints
    from vbterrier.frames.results import Figures

N_DRAWS = 10_000
SOURCES = ("model", "queries")
# Level of the limit of the Kolmogorov distance.
_KOLMOGOROV_LEVEL = 0.95


@dataclass(frozen=True)
class DecisionCounts(Shown):
    """Confusion counts of decisions in two stages: detect, then classify, as links and NIL in entity linking.

    Parameters
    ----------
    right, wrong, missed
        Gold links resolved to the right entity, to a wrong entity, and to NIL; whole numbers of at least 0.
    recognised, taken
        Gold NILs resolved to NIL and to an entity.

    Raises
    ------
    ParameterError
        A count that is not a whole number of at least 0.

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
        for name, count in ((one.name, getattr(self, one.name)) for one in fields(self)):
            object.__setattr__(self, name, whole(name, count, low=0))

    def __len__(self) -> int:
        return sum(astuple(self))

    def to_frame(self) -> pd.DataFrame:
        """Return one row: the counts, and P, R and F1."""
        return pd.DataFrame([{**asdict(self), **self.scores()}])

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Queries", facts({**asdict(self), **self.scores()}))

    @property
    def cells(self) -> Ints:
        """The counts in the order of :mod:`vbterrier.kernels.linking`, shape (5,)."""
        return np.array(astuple(self), dtype=np.int64)

    def scores(self) -> dict[str, float]:
        """P, R and F1 of all queries: :data:`vbterrier.LinkingP`, ``LinkingR`` and ``LinkingF1``."""
        return dict(zip(SCORES, scores(self.cells).tolist(), strict=True))

    @classmethod
    def from_rates(
        cls, n_links: int, n_nils: int, *, link_recall: float, link_precision: float, nil_recall: float
    ) -> DecisionCounts:
        """Counts from published rates between 0 and 1, rounded to whole numbers.

        ``right = R_L N_L``, ``recognised = R_N N_N``; the system predicts ``right/P_L`` links, of which those that are
        neither right nor gold NILs are wrong. NIL precision follows: compare it with the published value.

        Raises
        ------
        InputError, ParameterError
            Rates without corresponding counts, or outside [0, 1].

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
                f"no counts have these rates: {right} right links and {taken} NILs resolved to entities leave "
                f"{wrong} of {predicted} predicted links for the {n_links - right} other gold links; check that all "
                "rates are of the same set"
            )
        return cls(right, wrong, n_links - right - wrong, recognised, taken)


@dataclass(frozen=True, eq=False, repr=False)
class Removal(Shown):
    """Scores of a query set after random removal of queries.

    ``draws``: source (``"model"``, and ``"queries"`` if single queries are known), measure (P, R, F1), value: one row
    per draw. ``counts``: before removal. ``worst, best``: the lowest and the highest value of each measure over all
    removals of this size.
    """

    draws: pd.DataFrame
    counts: DecisionCounts
    n_removed: int
    worst: dict[str, float]
    best: dict[str, float]
    seed: int

    def to_frame(self) -> pd.DataFrame:
        """Return ``draws``: a row per draw, source and measure."""
        return self.draws

    def _line(self) -> str:
        f1 = self.draws.loc[(self.draws["measure"] == "F1") & (self.draws["source"] == "model"), "value"]
        return f"{self.n_removed} of {len(self.counts)} queries, F1 {f1.mean():.3f} ± {f1.std():.4f}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Scores after removal", self.summary().rename(columns={"n_qids": "of"}), heads=2)

    def _figures(self) -> Figures:
        return {"removal_distributions": lambda: {"removal": self}}

    def summary(self) -> pd.DataFrame:
        """One row per measure and source.

        Columns measure, source, n_removed, n_qids (before removal), mean, std, min, max (of the draws), worst, best (of
        all removals), ks (two-sample Kolmogorov distance between model and queries; NaN without queries), n_draws,
        seed, ks_limit (95 % quantile of this distance for samples of these sizes from the same distribution;
        conservative for discrete values).
        """
        rows = []
        for measure, drawn in self.draws.groupby("measure", sort=False):
            values = {str(source): part.to_numpy() for source, part in drawn.groupby("source", sort=False)["value"]}
            ks, limit = _distance(*values.values()) if len(values) > 1 else (np.nan, np.nan)
            for source, scores_left in values.items():
                moments = (
                    scores_left.mean(),
                    scores_left.std(ddof=1) if len(scores_left) > 1 else np.nan,
                    scores_left.min(),
                    scores_left.max(),
                )
                about = (measure, source, self.n_removed, len(self.counts))
                ends = (self.worst[str(measure)], self.best[str(measure)])
                rows.append((*about, *moments, *ends, ks, len(scores_left), self.seed, limit))
        columns = ["measure", "source", "n_removed", "n_qids", "mean", "std", "min", "max", "worst", "best", "ks"]
        return pd.DataFrame(rows, columns=[*columns, "n_draws", "seed", "ks_limit"])


@with_usual_errors
def simulate_query_removal(
    gold: Any,
    system: Any = None,
    *,
    n_removed: int | None = None,
    fraction: float | None = None,
    shares: tuple[float, float, float] | None = None,
    nil: str = NIL,
    multiple_answers: str = "raise",
    unanswered: str = "nothing",
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Removal:
    """Simulate the distribution of P, R and F1 when queries are removed at random.

    Of m removed queries, ``m_L ~ Hypergeometric(N, N_L, m)`` are gold links. The removed links that were resolved to an
    entity, the right ones among them, and the recognised NILs among the ``m - m_L`` removed NILs are conditionally
    hypergeometric. For a representative sample and small m, adding m queries changes the scores as much.

    Parameters
    ----------
    gold, system
        The right answers and those of a system: columns qid, entity_id (NIL without an entity), or a path; the system
        also as a run whose documents are entities. Or :class:`DecisionCounts` as gold alone, for the model alone.
    n_removed, fraction
        Number of queries to remove, 1 to N - 1; or their share, rounded to such a number. Give one of the two.
    shares
        The shares (a, b, c) of section 3: the removed queries that are gold links, of these the ones that the system
        resolved to an entity, and of the removed NILs the recognised ones; each times its total is rounded to a number
        of queries. Only the right ones among the resolved links are then random (hypergeometric), none in the best case
        and all in the worst; as many as possible if there are too few of either.
    nil, multiple_answers, unanswered
        See :data:`vbterrier.LinkP`; queries without an answer raise unless ``unanswered="nil"``.
    n_draws, seed
        Number of removals to draw from each source, and their seed.

    Returns
    -------
    Removal
        Draws of the model and, if single queries are known and ``shares`` are not given, of removing these queries.

    Raises
    ------
    InputError
        Invalid frames, queries without an answer.
    ParameterError
        Both or none of ``n_removed`` and ``fraction``; a number or share out of range; fewer than two queries.

    Notes
    -----
    The model applies to any decisions in two stages. It has the same distribution as removing real queries, which are
    drawn as a check. Worst and best are exact over all removals of m queries; their cost is proportional to the
    possible numbers of missed links times those of NILs resolved to entities. With ``shares``, they are those of the
    paper.

    Source: Mertens, Demeester, Deleu, Feys, Develder: Entity Linking: Test Collections Revisited, FIRE 2014, section 3.
    The counts that its Tables 1 and 2 imply reproduce its Table 3. The ranges ".02" and ".08" in its text are .002 and
    .008.

    Examples
    --------
    >>> counts = DecisionCounts(right=1019, wrong=39, missed=231, recognised=1477, taken=87)
    >>> result = simulate_query_removal(counts, n_removed=100, seed=1).summary().set_index("measure")
    >>> result.loc["F1", ["mean", "std", "worst", "best"]].astype(float).round(4).tolist()
    [0.8755, 0.0012, 0.8707, 0.9113]
    """
    kind, counts = _decision_cells(gold, system, nil=nil, multiple_answers=multiple_answers, unanswered=unanswered)
    n = len(counts)
    if (n_removed is None) == (fraction is None):
        raise ParameterError("wanted either n_removed or fraction")
    if n < 2:  # noqa: PLR2004 - one is removed, one is left
        raise ParameterError(f"{n} queries: wanted at least two, to remove one")
    if fraction is None:
        m = whole("n_removed", n_removed, high=n - 1, meaning=f", of {n} queries")
    else:
        share = number("fraction", fraction, low=0, high=1, open_low=True, open_high=True)
        m = min(max(round(share * n), 1), n - 1)
    n_draws = whole("n_draws", n_draws)
    ends: Any
    if shares is None:
        gone = [nested_draws(counts.cells, m, n_draws, stream(seed, "removal", "model"))]
        ends = extremes(counts.cells, m)
    else:
        drawn, limits = _with_shares(counts, m, shares, n_draws, stream(seed, "removal", "shares"))
        gone, kind = [drawn], None
        ends = np.sort(scores(counts.cells - limits), axis=0)
    if kind is not None:
        gone.append(removed_queries(kind, m, n_draws, stream(seed, "removal", "queries")))
    draws = [
        pd.DataFrame({"source": source, "measure": np.repeat(SCORES, n_draws), "value": left.T.ravel()})
        for source, left in zip(SOURCES, (scores(counts.cells - cells) for cells in gone), strict=False)
    ]
    worst, best = (dict(zip(SCORES, end.tolist(), strict=True)) for end in ends)
    return Removal(pd.concat(draws, ignore_index=True), counts, m, worst, best, seed)


def _with_shares(
    counts: DecisionCounts, m: int, shares: tuple[float, float, float], n_draws: int, draws: np.random.Generator
) -> tuple[Ints, Ints]:
    """Numbers of removed queries of each cell, shape (n_draws, 5), and with all or no resolved links right, (2, 5)."""
    a, b, c = (number(f"shares: {name}", share, low=0, high=1) for name, share in zip("abc", shares, strict=True))
    n_links = round(a * m)
    n_resolved, n_recognised = round(b * n_links), round(c * (m - n_links))
    for what, n_removed, available in (
        ("gold links that were resolved to an entity", n_resolved, counts.right + counts.wrong),
        ("gold links that were resolved to NIL", n_links - n_resolved, counts.missed),
        ("recognised NILs", n_recognised, counts.recognised),
        ("NILs that were resolved to an entity", m - n_links - n_recognised, counts.taken),
    ):
        if n_removed > available:
            raise ParameterError(f"shares={shares}: {n_removed} {what} cannot be removed, there are {available}")
    fewest, most = max(n_resolved - counts.wrong, 0), min(n_resolved, counts.right)
    right = np.append(draws.hypergeometric(counts.right, counts.wrong, n_resolved, n_draws), [fewest, most])
    fixed = np.array([0, n_resolved, n_links - n_resolved, n_recognised, m - n_links - n_recognised])
    gone = fixed + right[:, None] * np.array([1, -1, 0, 0, 0])
    return gone[:-2], gone[-2:]


@with_usual_errors
def simulate_query_addition(
    gold: Any,
    system: Any = None,
    *,
    n_added: int,
    nil: str = NIL,
    multiple_answers: str = "raise",
    unanswered: str = "nothing",
    level: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate the distribution of P, R and F1 when queries from the same population are added.

    The numbers of added gold links, of resolved and right links among them, and of recognised NILs are binomial with
    the observed proportions, the approximation that section 3 of the source of :func:`simulate_query_removal` names.

    Parameters
    ----------
    n_added
        Number of further queries, at least 1.
    level
        Probability that a score is between low and high. Other parameters as in :func:`simulate_query_removal`.

    Returns
    -------
    pandas.DataFrame
        One row per measure: measure, n_added, n_qids (before), value (before), mean, std, low, high, level, n_draws,
        seed.

    Raises
    ------
    InputError, ParameterError
        See :func:`simulate_query_removal`.

    Notes
    -----
    The observed proportions are estimates, too: low and high exclude their error, so that they are limits of the scores
    of a larger set whose proportions are the observed ones.

    Examples
    --------
    >>> counts = DecisionCounts(right=1019, wrong=39, missed=231, recognised=1477, taken=87)
    >>> result = simulate_query_addition(counts, n_added=100, seed=1).set_index("measure")
    >>> result.loc["F1", ["value", "mean", "std", "low", "high"]].astype(float).round(4).tolist()
    [0.8755, 0.8755, 0.0011, 0.8733, 0.8776]
    """
    _, counts = _decision_cells(gold, system, nil=nil, multiple_answers=multiple_answers, unanswered=unanswered)
    n_added, n_draws, n = whole("n_added", n_added), whole("n_draws", n_draws), len(counts)
    level = number("level", level, low=0, high=1, open_low=True, open_high=True)
    if not n:
        raise ParameterError("0 queries: wanted at least one, to know the proportions of answers")
    added = stream(seed, "addition").multinomial(n_added, counts.cells / n, size=n_draws)
    drawn = scores(counts.cells + added)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    summary = pd.DataFrame({"measure": SCORES, "n_added": n_added, "n_qids": n, "value": scores(counts.cells)})
    summary = summary.assign(mean=drawn.mean(axis=0), std=drawn.std(axis=0, ddof=1) if n_draws > 1 else np.nan)
    return summary.assign(low=low, high=high, level=level, n_draws=n_draws, seed=seed)


def _decision_cells(
    gold: Any, system: Any, *, nil: str, multiple_answers: str, unanswered: str
) -> tuple[Ints | None, DecisionCounts]:
    """The cell of each query, from 0 (``None`` if only counts are known), and the counts."""
    if isinstance(gold, DecisionCounts):
        if system is not None:
            raise ParameterError("gold contains counts of decisions: leave out system")
        return None, gold
    if system is None:
        raise ParameterError("wanted the answers of a system with gold, or DecisionCounts instead of both")
    right = Gold(gold, nil=nil, multiple_answers=multiple_answers)
    decisions = decide(answers(system, name="system"), right, unanswered=unanswered)
    if silent := int((decisions.answer == linking.NO_ANSWER).sum()):
        raise InputError(
            f"system: {silent} of {len(decisions.answer)} queries have no answer, but decisions in two stages are "
            "links or NIL; add the answers, or count these queries as NIL with unanswered='nil'"
        )
    cell_at = np.full(8, -1, dtype=np.int64)
    cell_at[CELL_PLACES] = np.arange(N_CELLS)
    # Sorted, so that draws do not depend on the order of the queries.
    kind = np.sort(cell_at[4 * decisions.gold_nil + decisions.answer])
    return kind, DecisionCounts(*np.bincount(kind, minlength=N_CELLS).tolist())


def _distance(model: Floats, queries: Floats) -> tuple[float, float]:
    """The Kolmogorov distance of two samples, and its 95 % quantile for samples from the same distribution."""
    from scipy import stats

    # Rounded, because equal scores may differ by rounding errors.
    distance = stats.ks_2samp(model.round(12), queries.round(12), method="asymp").statistic
    limit = stats.kstwobign.ppf(_KOLMOGOROV_LEVEL) * np.sqrt(1 / len(model) + 1 / len(queries))
    return float(distance), float(limit)
