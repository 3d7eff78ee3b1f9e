"""Benchmarks as Markdown: ratios, growth, and which targets are met."""

from typing import cast

import pandas as pd

from suite.timing import median, ratio
from suite.ways import Way, compared
from vbterrier.report.tables import escaped, rendered

# What tells one timing from the others.
_KEY = ("kind", "n_queries", "depth", "ids", "source", "way")
_INTRODUCTION = """Made by `python -m suite` in `tests/bench`; written from its JSON, not by hand.

All evaluations alternate in one process. A ratio compares processor seconds of the same round; the median of the \
rounds is given, with the minimum and the maximum in parentheses. A ratio of 40 means that vbterrier needs one \
fortieth of the time. Memory is the peak above the frames (for files: above the interpreter), each in a separate \
process. `vbterrier` is the measure through `ir_measures.calc_aggregate`; `vbterrier.score` is the library's call, \
which also computes an interval from 2,000 resamples."""


def bench_report(result):
    """A page from what :func:`suite.suite.benchmark` found."""
    parts = ["# Benchmarks", _INTRODUCTION, _made(result)]
    before = result.get("before") or {"timings": [], "targets": []}
    if before["timings"]:
        parts.append(f"Before: vbterrier {before['version']}, {before['made']}.")
    if result.get("note"):
        parts.append(result["note"])
    if result["targets"]:
        parts += ["## Targets", rendered(targets(result["targets"], before["targets"]), "markdown")]
    for title, table in comparisons(result["timings"], before["timings"]):
        parts += [f"## {title}", rendered(table, "markdown")]
    if result["growth"]:
        parts += [
            "## Growth",
            "Slopes of lines through logarithms of sizes and of median seconds on processors: 1 is linear.",
            rendered(grown(result["growth"]), "markdown"),
        ]
    if result["skipped"]:
        lines = (f"- {escaped(one['way'], 'markdown')}: {escaped(one['why'], 'markdown')}" for one in result["skipped"])
        parts += ["## Left out", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _made(result):
    machine, options = result["machine"], result["options"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    what = f"{machine['n_processors']} x {machine['processor']}, {machine['memory_gib']} GiB, {machine['system']}"
    how = f"{options['rounds']} rounds, seed {options['seed']}"
    return escaped(f"{result['made']}; {what}; {versions}; {how}.", "markdown")


def targets(records, before=()):
    """A row for each target: what is wanted, what was measured, now and before, whether it is met."""
    earlier = {one["goal"]: _spread(one["measured"]) for one in before}
    rows = [
        {
            "goal": one["goal"],
            "wanted": f"{'at least' if one['at_least'] else 'at most'} {one['wanted']:g} {one['unit']}",
            "measured": _spread(one["measured"]),
            **({"before": earlier.get(one["goal"], "")} if earlier else {}),
            "met": "yes" if one["met"] else "no",
        }
        for one in records
    ]
    columns = ["goal", "wanted", "measured", *(["before"] if earlier else []), "met"]
    return pd.DataFrame(rows, columns=columns)


def grown(records):
    """A row for each series."""
    rows = [
        {
            "measure": one["task"],
            "grows with": one["by"],
            "sizes": ", ".join(map(str, one["sizes"])),
            "seconds": ", ".join(_short(seconds) for seconds in one["cpu"]),
            "slope": f"{one['slope']:.2f}",
        }
        for one in records
    ]
    return pd.DataFrame(rows, columns=["measure", "grows with", "sizes", "seconds", "slope"])


def comparisons(timings, before=()):
    """A title and a table for each collection and source: every way of ours beside each peer's nearest."""
    if not timings:
        return
    frame = pd.DataFrame(timings)
    earlier = {tuple(row[name] for name in _KEY): row for row in before}
    for key, group in frame.groupby(list(_KEY[:-1]), sort=False):
        kind, n_queries, depth, ids, source = cast("tuple[str, int, int, str, str]", key)
        records = {row["way"]: row for row in group.to_dict("records")}
        ways = {name: Way(row["tool"], row["measure"], kind) for name, row in records.items()}
        former = {row[-1]: one for row, one in earlier.items() if row[:-1] == key}
        rows = [_row(way, records, ways, former) for way in ways.values()]
        title = f"{kind.capitalize()}, {n_queries:,} queries x {depth:,}, ids as {ids}, from {source}"
        yield title, pd.DataFrame(rows).fillna("")


def _row(way, records, ways, former):
    record = records[way.name]
    peak = record["peak_mib"]
    row = {
        "way": way.name,
        "CPU s": _short(median(record["cpu"])),
        "wall s": _short(median(record["wall"])),
        "peak MiB": "" if peak is None or pd.isna(peak) else f"{peak:.0f}",
    }
    if way.is_ours:
        for theirs in compared(way):
            if theirs in records:
                column = f"times faster than {ways[theirs].tool}"
                row[column] = _spread(ratio(records[theirs]["cpu"], record["cpu"]))
                row.setdefault("nearest", ways[theirs].measure)
                if former:
                    had = way.name in former and theirs in former
                    row[f"before{column.removeprefix('times faster than')}"] = (
                        _spread(ratio(former[theirs]["cpu"], former[way.name]["cpu"])) if had else ""
                    )
    return row


def _spread(measured):
    return f"{_short(measured['median'])} ({_short(measured['low'])}–{_short(measured['high'])})"


def _short(value):
    """Two digits that say something, or all in front of the point."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"
