"""Answers of entity linking systems, and their precision and recall."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, printable
from vbterrier.frames.contracts import system_items
from vbterrier.frames.entity_answers import (
    Decisions,
    Gold,
    answers,
    decide,
    warn_of_silence,
)
from vbterrier.frames.id_spaces import NIL
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.pictures import Bar, IntervalPicture
from vbterrier.frames.results import Shown, of_means, systems_line
from vbterrier.kernels import linking
from vbterrier.kernels.resample import agreeing_limits, constant_limits, stream
from vbterrier.settings import Inference, with_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.frames.results import Figures
    from vbterrier.remedies import Call


# The figure of verdicts, and systems that they name.
_F1 = "LinkingF1"
_MAX_NAMED = 4


@dataclass(frozen=True, eq=False, repr=False)
class LinkingReport(Shown):
    """Answers and figures of systems, returned by :func:`linking_report`.

    - ``counts``: two rows per system, for queries whose correct answer is a ``"link"`` and a ``"nil"``: name, gold,
      n_qids, right_link, wrong_link, nil, unanswered. A link is wrong if NIL is correct
    - ``intervals``: one row per system and figure: name, measure, value, low, high, level, method, n_qids, n_resamples,
      seed; NaN if a figure is undefined
    - ``pairs``: one row per pair of systems and figure: name_a, name_b, measure, diff, low, high (by the delta method),
      p_value (of the swap test), p_delta (of the delta method), n_qids, wins, losses, ties (queries that a alone, b
      alone, and both or neither answer correctly), level, n_resamples (0 if all swaps are enumerated), seed. Tests are
      not corrected for the number of pairs
    - ``answers``: one row per system and query: name, qid, gold (link, nil), answer (right_link, wrong_link, nil,
      unanswered), for figures of other sets of queries, as :func:`vbterrier.design.score_by_size` computes them
    """

    counts: pd.DataFrame
    intervals: pd.DataFrame
    pairs: pd.DataFrame
    answers: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``intervals``: a row per system and measure."""
        return self.intervals

    def _line(self) -> str:
        return systems_line(self.intervals)

    def _verdict(self) -> Iterator[str]:
        rows = self.intervals[self.intervals["measure"] == _F1]
        ordered = rows.sort_values("value", ascending=False, kind="stable", na_position="last").to_dict("records")
        estimates = [f"{printable(row['name'])} {_estimate(row)}" for row in ordered]
        queries = count_text(int(ordered[0]["n_qids"]), "query")
        more = f", and {len(estimates) - _MAX_NAMED} more" if len(estimates) > _MAX_NAMED else ""
        yield f"{_F1} over {queries}: {'; '.join(estimates[:_MAX_NAMED])}{more}."
        pairs = self.pairs[self.pairs["measure"] == _F1] if len(self.pairs) else self.pairs
        for row in pairs.head(1).to_dict("records"):
            yield (
                f"{printable(row['name_a'])} - {printable(row['name_b'])}: {_estimate({**row, 'value': row['diff']})}, "
                f"p = {row['p_value']:.4f}, not corrected."
            )

    def _next(self, call: Call) -> str:
        several = len(self.pairs) > 0 and call.options is not None
        return call.again(pairs=True) if several and "pairs" not in call.words else ""

    def _picture(self) -> IntervalPicture:
        rows = self.intervals[self.intervals["measure"] == _F1][["name", "value", "low", "high"]]
        return IntervalPicture(_F1, tuple(Bar(*row) for row in rows.itertuples(index=False, name=None)))

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Answers", self.counts, heads=2)
        yield from of_means(self.intervals, title="Figures")
        if len(self.pairs):
            yield Panel("Differences a - b", self.pairs, value="diff", by="measure", rule=0, heads=2)

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": self.intervals}}

    def figures(self) -> pd.DataFrame:
        """Return the figures with one row per system and one column per figure."""
        table = self.intervals.pivot(index="name", columns="measure", values="value")
        return table.loc[self.intervals["name"].unique(), list(linking.FIGURES)]


def _estimate(row: Mapping[Any, Any]) -> str:
    """A value with its interval, if there is one."""
    return f"{row['value']:.3f}" + (f" ({row['low']:.3f} to {row['high']:.3f})" if row["low"] <= row["high"] else "")


@with_defaults
def linking_report(
    systems: Any,
    gold: Any,
    *,
    nil: str = NIL,
    unanswered: str = "nothing",
    multiple_answers: str = "raise",
    inference: Inference = Inference(level=0.95, n_resamples=2000, seed=0),
) -> LinkingReport:
    """Report counts of answers, precision and recall of links and NILs, their totals and F1, with intervals.

    ``R_L`` and ``P_L`` are the right links over gold links and over predicted links, ``LinkF1`` is their harmonic mean,
    ``R_N`` and ``P_N`` are the same for NILs, R and P their means weighted by the numbers of gold links and NILs, and
    ``F1 = 2PR/(P + R)`` (Mertens et al., *Entity Linking: Test Collections Revisited*, FIRE 2014, section 2.2).
    Predicted links are those of queries in the gold standard.

    Parameters
    ----------
    systems
        A mapping of name to answers: a frame (qid, entity_id), a run (qid, docno, score) whose best-ranked entity is
        the answer, or the path of either.
    gold, multiple_answers
        A frame (qid, entity_id), or a path. ``"raise"`` refuses queries with several correct entities; ``"any"``
        accepts any of them.
    nil, unanswered
        A further string that means no entity, beside those of every linker (NIL, NIL0012, <NIL>, --NME--, <unk_wiki>,
        notInWiki, empty text; among codes and addresses also null, NA and O), and the treatment of a query without an
        answer: ``"nothing"``, neither link nor NIL; or ``"nil"``. Addresses such as ``wd:Q42`` equal the names of their
        id space.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``n_resamples`` (2,000), ``seed`` (0). Resamples are those of
        the queries, the same for equal counts.

    Returns
    -------
    LinkingReport
        ``intervals``: a row per system and measure; ``pairs``: differences of systems; ``counts`` of right and wrong
        answers.

    Raises
    ------
    InputError, ParameterError
        Invalid frames or files; two systems with the same name; no shared queries; an unknown option.

    Notes
    -----
    The intervals are percentiles of the figures over resampled queries, so they stay in [0, 1]; those of
    :func:`vbterrier.score` over the measures are based on a linearisation. Resamples in which a figure is undefined
    are left out for that figure.

    Coverage of nominal 95 % intervals for the population value, simulated with the counts of the paper's Random
    Document set: F1 with 25 queries .87, 50 queries .90, 250 queries .94; link precision .72, .91, .93. It is low if
    errors of one kind are few: of 25 queries some 12 have no entity, and often none of these is wrong. If all or none
    are wrong, resamples do not differ: the limits are then those of Clopper and Pearson for the figure's denominator.

    Links that a system predicts for other mentions than those of the gold standard count neither as right nor as
    wrong, with a warning. Linkers that find mentions themselves are evaluated over all of their links by
    :func:`mention_report`.

    Pairs are tested by swapping the answers of both systems (:func:`vbterrier.kernels.linking.swap_p_values`), which is
    exact for any number of queries, and by Student's t over the linearised figures (the delta method). The interval is
    that of the delta method; it is extended to 0 if the swap test does not reject equality, and cut at 0 if it does.

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
    level, n_resamples, seed = inference.level, inference.n_resamples, inference.seed
    if not hasattr(systems, "items") or hasattr(systems, "columns"):
        raise InputError(f"systems: wanted a mapping of name to answers, found {type(systems).__name__}")
    correct = Gold(gold, nil=nil, multiple_answers=multiple_answers)
    counts, rows = [], []
    decisions: dict[str, Decisions] = {}
    for name, system in system_items(systems):
        decided = decisions[name] = decide(answers(system, name=f"system {name!r}"), correct, unanswered=unanswered)
        warn_of_silence(decided, nil, f"system {name!r}")
        table = decided.counts
        counts += [(name, kind, int(table[at].sum()), *table[at].tolist()) for at, kind in enumerate(("link", "nil"))]
        low, high = _limits(table, level, n_resamples, seed)
        for place, value in enumerate(linking.figures(table).tolist()):
            # Without errors of a kind, or without anything else, resamples do not differ.
            method, drawn = ("bounded", 0) if value in {0.0, 1.0} else ("percentile", n_resamples)
            limits = low[place], high[place], level, f"queries ({method})", len(correct.topics), drawn, seed
            rows.append((name, linking.FIGURES[place], value, *limits))
    compared = [
        row
        for (a, first), (b, second) in combinations(decisions.items(), 2)
        for row in _comparison_rows(a, first, b, second, level, n_resamples, seed)
    ]
    return LinkingReport(
        pd.DataFrame(counts, columns=list(_COUNTS)),
        pd.DataFrame(rows, columns=list(_INTERVALS)),
        pd.DataFrame(compared, columns=list(_PAIRS)),
        pd.concat(
            [pd.DataFrame(columns=["name", "qid", "gold", "answer"], dtype=object)] * (not decisions)
            + [_answer_table(name, correct, each) for name, each in decisions.items()],
            ignore_index=True,
        ),
    )


def _answer_table(name: str, gold: Gold, decided: Decisions) -> pd.DataFrame:
    kinds = np.array(linking.GOLD)[decided.gold_nil.astype(np.int64)]
    return pd.DataFrame(
        {"name": name, "qid": gold.topics, "gold": kinds, "answer": np.array(linking.ANSWERS)[decided.answer]}
    )


_COUNTS = ("name", "gold", "n_qids", *linking.ANSWERS)
_INTERVALS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")
_PAIRS = (
    *("name_a", "name_b", "measure", "diff", "low", "high", "p_value", "p_delta", "n_qids", "wins", "losses", "ties"),
    *("level", "n_resamples", "seed"),
)


def _comparison_rows(
    a: str, first: Decisions, b: str, second: Decisions, level: float, n_resamples: int, seed: int
) -> Iterator[tuple[Any, ...]]:
    """The rows of a pair of systems."""
    from scipy import special

    n = len(first.answer)
    both = np.zeros((2, 4, 4), dtype=np.int64)
    np.add.at(both, (first.gold_nil.astype(np.int64), first.answer, second.answer), 1)
    p_values, n_drawn = linking.swap_p_values(both, n_resamples, stream(seed, "swaps"))
    right = [each.answer == np.where(each.gold_nil, linking.NIL_ANSWER, linking.RIGHT_LINK) for each in (first, second)]
    won, lost = int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())
    change = first.influence() - second.influence()
    diff, error = (
        change.mean(axis=0),
        change.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(linking.FIGURES), np.nan),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        # Without spread, figures are equal or nothing is known of their difference.
        p_delta = np.where(error > 0, 2 * special.stdtr(n - 1, -np.abs(diff / error)), np.where(diff == 0, 1, np.nan))
    reach = special.stdtrit(n - 1, (1 + level) / 2) * np.where(error > 0, error, np.nan)
    ends = np.maximum(diff - reach, -1), np.minimum(diff + reach, 1)
    low, high = agreeing_limits(*ends, diff, p_values <= round(1 - level, 12))
    for place, measure in enumerate(linking.FIGURES):
        figures = diff[place], low[place], high[place], p_values[place], p_delta[place]
        yield a, b, measure, *map(float, figures), n, won, lost, n - won - lost, level, n_drawn, seed


def _limits(table: NDArray[np.int64], level: float, n_resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return the limits of the interval of each figure, shape (8,) each; NaN if it is never defined."""
    n = int(table.sum())
    drawn = stream(seed, "linking report").multinomial(n, table.ravel() / n, size=n_resamples)
    values = linking.figures(drawn.reshape(-1, 2, 4))
    limits = np.full((2, values.shape[1]), np.nan)
    defined = ~np.isnan(values).all(axis=0) & ~np.isnan(linking.figures(table))
    limits[:, defined] = np.nanquantile(values[:, defined], [(1 - level) / 2, (1 + level) / 2], axis=0)
    figures, (links, nils), predicted = linking.figures(table), table.sum(axis=1), table.sum(axis=0)
    n_links = predicted[:2].sum()
    either = links + table[1, : linking.NIL_ANSWER].sum()
    denominators = np.array([n_links, links, either, predicted[linking.NIL_ANSWER], nils, n, n, n])
    # Without errors of a kind, or without anything else, resamples do not differ.
    constant = constant_limits(figures, np.maximum(denominators, 1), (0, 1), [(1 - level) / 2, (1 + level) / 2])
    limits = np.where(defined & ((figures == 0) | (figures == 1)), constant, limits)
    return limits[0], limits[1]
