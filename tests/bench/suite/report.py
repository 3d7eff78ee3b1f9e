"""Benchmarks as Markdown: ratios, growth, and which targets are met."""

from typing import cast

import pandas as pd

from suite.timing import median, ratio
from suite.ways import Way, compared
from vbterrier.report.tables import escape_for_style, format_table

# What tells one collection from the others.
_COLLECTION = ["kind", "n_queries", "depth", "ids", "source"]
_INTRODUCTION = """Made by `python -m suite` in `tests/bench`; written from its JSON, not by hand. Other pages have \
[classic measures](classic.md) beside ranx, Polars and DuckDB, rows in any order, the calls that the README \
recommends and a file of seven million rows, and [growth](growth.md).

All evaluations alternate in one process. A ratio compares processor seconds of the same round; the median of the \
rounds is given, in the table of targets with the minimum and the maximum in parentheses. Calls of more than \
{patience:g} seconds, which are those of other packages, have one round. A ratio of 40 means that vbterrier needs one \
fortieth of the time. Memory is the peak above the frames (for files: above the interpreter), each in a separate \
process. `vbterrier` is the measure through `ir_measures.calc_aggregate`; `vbterrier.score` is the library's call, \
which also computes intervals over topics. Other measures of entities and links take about as long as those shown."""


def bench_report(results):
    """A page from the results of :func:`suite.suite.benchmark`."""
    parts = ["# Benchmarks", _INTRODUCTION.format(patience=results["options"]["patience"]), _made(results)]
    if results.get("note"):
        parts.append(results["note"])
    if results["targets"]:
        parts += ["## Targets", format_table(targets(results["targets"]), "markdown")]
    if results.get("bounds"):
        # Written into the JSON by hand: parts of calls were timed for the missed targets of these results alone.
        parts += [
            f"What bounds missed goals ({results['bounds_made']}):",
            "\n".join(f"- {one}" for one in results["bounds"]),
        ]
    for title, table in comparisons(results["timings"]):
        parts += [f"## {title}", format_table(table, "markdown")]
    if results["skipped"]:
        lines = (
            f"- {escape_for_style(one['way'], 'markdown')}: {escape_for_style(one['why'], 'markdown')}"
            for one in results["skipped"]
        )
        parts += ["## Left out", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _made(results):
    machine, options = results["machine"], results["options"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    what = f"{machine['n_processors']} x {machine['processor']}, {machine['memory_gib']} GiB, {machine['system']}"
    how = f"{options['rounds']} rounds, seed {options['seed']}"
    return escape_for_style(f"{results['made']}; {what}; {versions}; {how}.", "markdown")


def targets(records):
    """A row for each target: what is wanted, what was measured, whether it is met."""
    rows = [
        {
            "goal": one["goal"],
            "wanted": f"{'at least' if one['at_least'] else 'at most'} {one['wanted']:g} {one['unit']}",
            "measured": _spread(one["measured"]),
            "met": "yes" if one["met"] else "no",
        }
        for one in records
    ]
    return pd.DataFrame(rows, columns=["goal", "wanted", "measured", "met"])


def comparisons(timings):
    """A title and a table for each collection and source: every way of ours beside each peer's nearest."""
    if not timings:
        return
    for key, group in pd.DataFrame(timings).groupby(_COLLECTION, sort=False):
        kind, n_queries, depth, ids, source = cast("tuple[str, int, int, str, str]", key)
        records = {row["way"]: row for row in group.to_dict("records")}
        ways = {name: Way(row["tool"], row["measure"], kind) for name, row in records.items()}
        rows = [_row(way, records, ways) for way in ways.values()]
        title = f"{kind.capitalize()}, {n_queries:,} queries x {depth:,}, ids as {ids}, from {source}"
        yield title, pd.DataFrame(rows).fillna("")


def _row(way, records, ways):
    own = records[way.name]
    peak = own["peak_mib"]
    row = {
        "way": way.name,
        "CPU s": _short(median(own["cpu"])),
        "peak MiB": "" if peak is None or pd.isna(peak) else f"{peak:.0f}",
    }
    if way.is_ours:
        for theirs in compared(way):
            if theirs in records:
                times_faster = ratio(records[theirs]["cpu"], own["cpu"])
                row[f"times faster than {ways[theirs].tool}"] = _short(times_faster["median"])
                row.setdefault("nearest", ways[theirs].measure)
    return row


def _spread(measured):
    middle, low, high = (_short(measured[name]) for name in ("median", "low", "high"))
    return middle if low == high else f"{middle} ({low}–{high})"


def _short(value):
    """Two digits that say something, or all in front of the point."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
