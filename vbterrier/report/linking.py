"""Entity linking as tables: the figures of systems with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vbterrier.report.captions import best_rows, topics_of
from vbterrier.report.tables import rendered

if TYPE_CHECKING:
    from vbterrier.linking.quality import LinkingReport


def linking_table(report: LinkingReport, style: str) -> str:
    r"""A row a system and figure: its value and interval; csv and json hold the frame.

    >>> import pandas as pd
    >>> from vbterrier.linking.quality import linking_report
    >>> gold = pd.DataFrame({"qid": ["q1", "q2"], "entity_id": ["Paris", "NIL"]})
    >>> report = linking_report({"mine": gold}, gold, n_resamples=20)
    >>> print("\n".join(linking_table(report, "markdown").splitlines()[:3]))
    | run | measure | value | 95% of value |
    |:---|:---|---:|:---|
    | mine | LinkP | 1.0000 | 1.0000 to 1.0000 |
    """
    frame = report.intervals
    if style in ("csv", "json"):
        return rendered(frame, style)
    one = frame.iloc[0]
    ends = frame["low"].map("{:.4f}".format) + " to " + frame["high"].map("{:.4f}".format)
    table = frame[["name", "measure", "value"]].rename(columns={"name": "run"})
    table[f"{100 * one['level']:g}% of value"] = ends.where(frame["low"].notna(), "")
    bold = {(row, "value") for row, best in enumerate(best_rows(frame)) if best}
    caption = linking_caption(report)
    text = rendered(table, style, caption=caption, label="tab:linking", bold=bold)
    return "\n".join([text, *caption]) if style == "table" else text


def linking_caption(report: LinkingReport) -> list[str]:
    """Of how many queries the figures are, and how intervals came about."""
    one = report.intervals.iloc[0]
    said = [
        f"Entity linking over {topics_of([one['n_qids']], 'queries')}.",
        f"Intervals, {100 * one['level']:g}%: {one['method']}, {one['n_resamples']} resamples, seed {one['seed']}.",
    ]
    return said + ["The best value of a measure is bold."] * int(best_rows(report.intervals).any())
