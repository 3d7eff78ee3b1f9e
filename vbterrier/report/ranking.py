"""Rankings of systems as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.report.captions import of_measures, topics_of
from vbterrier.report.tables import rendered

if TYPE_CHECKING:
    from vbterrier.evaluate.ranking import SystemRanking

_UNCERTAIN = {
    "unjudged": "these topics, whatever their unjudged documents are under the prior",
    "topics": "other topics of the kind, with expected scores",
    "unjudged and topics": "other topics of the kind, whatever their unjudged documents are under the prior",
}


def ranking_report(found: SystemRanking, style: str, *, pairs: bool = False) -> str:
    r"""Systems by expected rank, or each two of them; csv and json hold the frame itself.

    >>> from vbterrier.evaluate.ranking import rank_systems
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "score": [2, 1]})
    >>> found = rank_systems({"good": run, "bad": run.assign(score=[1, 2])}, qrels)
    >>> print("\n".join(ranking_report(found, "markdown").splitlines()[:7]))
    | run | mean | 90% of means | expected rank | 90% of ranks | p(best) | unjudged |
    |:---|---:|:---|---:|:---|---:|---:|
    | good | 1.000 | 1.000 to 1.000 | 1.000 | 1 to 1 | 1.000 | 0.000 |
    | bad | 0.631 | 0.631 to 0.631 | 2.000 | 2 to 2 | 0.000 | 0.000 |
    <BLANKLINE>
    Table: Expected ranks over 1 topic: BNDCG@10.
    k = 10; prior = auto.
    """
    frame = found.pairs if pairs else found.systems
    if style in ("csv", "json"):
        return rendered(frame, style)
    table, label = (_pairs(frame), "tab:beats") if pairs else (_systems(frame), "tab:ranks")
    text = rendered(table, style, digits=3, caption=ranking_caption(found, pairs=pairs), label=label)
    return f"{text}\n{_footing(found.systems)}" if style == "table" else text


def ranking_caption(found: SystemRanking, *, pairs: bool = False) -> list[str]:
    """What was ranked by what, and how the draws came about."""
    one = found.systems.iloc[0]
    what = "Who beats whom" if pairs else "Expected ranks"
    source, _, _ = one["method"].partition(" (")
    return [
        *of_measures(f"{what} over {topics_of([one['n_qids']])}", [one["measure"]]),
        f"Intervals, {100 * one['level']:g}%: {one['method']}, {one['n_draws']} draws, seed {one['seed']}.",
        f"Uncertain: {_UNCERTAIN[source]}.",
        "unjudged: mean share of the documents to the cut." if not pairs else "a beats b: ties count half.",
    ]


def _systems(frame: pd.DataFrame) -> pd.DataFrame:
    level = _level(frame)
    columns = {
        "run": frame["name"],
        "mean": frame["mean"],
        f"{level} of means": _range(frame["low"], frame["high"], "{:.3f}"),
        "expected rank": frame["expected_rank"],
        f"{level} of ranks": _range(frame["rank_low"], frame["rank_high"], "{:g}"),
        "p(best)": frame["p_best"],
        "unjudged": frame["n_unjudged_share"],
    }
    return pd.DataFrame(columns)


def _pairs(frame: pd.DataFrame) -> pd.DataFrame:
    columns = {
        "a": frame["name_a"],
        "b": frame["name_b"],
        "a - b": frame["diff"],
        f"{_level(frame)} of a - b": _range(frame["low"], frame["high"], "{:.3f}"),
        "p(a beats b)": frame["p_a_beats_b"],
    }
    return pd.DataFrame(columns)


def _level(frame: pd.DataFrame) -> str:
    return f"{100 * frame['level'].max():g}%" if len(frame) else "interval"


def _range(low: pd.Series[float], high: pd.Series[float], form: str) -> pd.Series[str]:
    return low.map(form.format) + " to " + high.map(form.format)


def _footing(systems: pd.DataFrame) -> str:
    """What was ranked by what, and how the draws came about, in one line."""
    one = systems.iloc[0]
    source, _, _ = one["method"].partition(" (")
    return (
        f"{one['measure']}, {one['n_qids']} topics; {one['method']}: {one['n_draws']} draws, seed {one['seed']}: "
        f"{_UNCERTAIN[source]}"
    )
