"""Content of the page: tables of means and pairs, and the data of the topic explorer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from vbterrier.errors import printable
from vbterrier.evaluate.comparison import corrected_over
from vbterrier.frames.notebook import interval_bar
from vbterrier.report.captions import better
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.evaluated import rows_of, wide_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.report.page.evaluated import ReportNumbers
    from vbterrier.unjudged.distribution import BootstrapDistribution


_DECIMALS = 4
_LEAST = 0.0001
_RATIO = "ratio of means"
# Maximal length of an id (shortened in the middle) and of a query (at the end).
ID, QUERY = 80, 300
DIGITS = 5
# Number of bars of a distribution over 0 to 1, digits of their heights, and the level of the interval below them.
BARS, LEVEL = 40, 0.9
STEPS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Maximal numbers of unjudged documents and intents listed for a topic, and of characters of all listed documents.
MOST_DOCUMENTS, MOST_INTENTS, MOST_SIGNS = 200, 30, 900_000


class IntervalCell(NamedTuple):
    """The ends of an interval as text, and its drawing."""

    text: str
    bar: Markup


class Table(NamedTuple):
    """Rows with a caption, and notes on methods, a sentence each."""

    measure: str
    caption: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()


def means(found: ReportNumbers) -> list[Table]:
    """A table for each measure: highest mean first, intervals, and letters if all pairs were compared."""
    return [_means(found, measure) for measure in dict.fromkeys(found.scores.intervals["measure"])]


def _means(found: ReportNumbers, measure: str) -> Table:
    every = found.scores.intervals
    frame = every[every["measure"] == measure].astype({"name": str})
    methods = [str(method) for method in frame["method"].unique() if method != "none"]
    first = frame.drop_duplicates("name").sort_values("value", ascending=False, kind="stable")
    scale = frame[["value", "low", "high"]].min().min(), frame[["value", "low", "high"]].max().max()
    ends = {(row["name"], row["method"]): row for row in frame.to_dict("records")}
    letters: dict[str, str] = {}
    flags: dict[str, str] = {}
    if found.comparison is not None:
        marked = found.comparison.flags
        marked = marked[(marked["measure"] == measure) & (marked["flag"] != "")]
        flags = dict(zip(marked["name"].astype(str), marked["flag"], strict=True))
    if found.comparison is not None and found.comparison.baseline is None:
        systems = found.comparison.systems
        systems = systems[systems["measure"] == measure]
        letters = dict(zip(systems["name"].astype(str), systems["letters"], strict=True))
    missing = dict(zip(found.scores.missing["name"].astype(str), found.scores.missing["n_missing"], strict=True))
    rows = [
        {
            "name": printable(name),
            "flag": flags.get(name, ""),
            "mean": _number(value),
            "intervals": [_interval(ends.get((name, method)), *scale) for method in methods],
            "letters": letters.get(name, ""),
            "topics": n_qids,
            "missing": missing.get(name, 0),
        }
        for name, value, n_qids in rows_of(first, "name", "value", "n_qids")
    ]
    level = f"{100 * float(frame['level'].iloc[0]):g}%"
    columns = tuple(f"{level} over {_source(method)}" for method in methods)
    lower = ", lower is better" * (better(measure) == "lower")
    caption = f"Mean {measure}{lower}" if methods else f"{measure}{lower}"
    if any(method.endswith(_RATIO) for method in methods):
        caption = f"{measure}, {_RATIO}"
    return Table(measure, caption, columns, rows, tuple(_notes(frame, methods, letters, flags)))


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.{_DECIMALS}f}".replace("-", "−")


def _interval(
    row: Any, least: float, most: float, *, rule: float | None = None, of: str = "value"
) -> IntervalCell | None:
    if row is None or pd.isna(row["low"]):
        return None
    # Safe: the markup contains only numbers.
    bar = Markup(interval_bar(row[of], row["low"], row["high"], least, most, rule=rule))  # noqa: S704
    return IntervalCell(f"{_number(row['low'])} to {_number(row['high'])}", bar)


def _source(method: str) -> str:
    """Source of the uncertainty of an interval: topics or unjudged documents."""
    return method.partition(" (")[0]


def _notes(frame: pd.DataFrame, methods: list[str], letters: dict[str, str], flags: dict[str, str]) -> Iterator[str]:
    for method in methods:
        one = frame[frame["method"] == method].iloc[0]
        drawn = f" ({one['n_resamples']:,} resamples, seed {one['seed']})" if one["n_resamples"] else ""
        about = {
            "topics": "other topics from the same population",
            "unjudged": "the unjudged documents of these topics",
        }
        yield f"Intervals over {method} are about {about.get(_source(method), 'these topics')}{drawn}."
    if letters:
        yield "Systems that share a letter do not differ significantly."
    # Tooltips are not visible in print and on phones.
    for name, flag in flags.items():
        yield f"{FLAGGED} {printable(name)} {flag}: its numbers may not reflect its quality."


def notes(tables: list[Table]) -> str:
    """Notes of some tables without repetitions."""
    return " ".join(dict.fromkeys(note for table in tables for note in table.notes))


def pairs(found: ReportNumbers) -> list[Table]:
    """A table for each measure by which systems are compared."""
    if found.comparison is None:
        return []
    return [_pairs(found.comparison, measure) for measure in found.compared]


def _pairs(comparison: Comparison, measure: str) -> Table:
    of_measure = comparison.pairs["measure"] == measure
    frame = comparison.pairs[of_measure].assign(significant=comparison.significant()[of_measure])
    # Intervals without a limit cannot be drawn.
    endless = np.isinf(frame["low"]) | np.isinf(frame["high"])
    frame = frame.assign(low=frame["low"].mask(endless), high=frame["high"].mask(endless))
    numbers = frame[["diff", "low", "high"]]
    scale = min(numbers.min().min(), 0.0), max(numbers.max().max(), 0.0)
    rows = [
        {
            "a": printable(row["name_a"]),
            "b": printable(row["name_b"]),
            "diff": _number(row["diff"]),
            "interval": _interval(row, *scale, rule=0.0, of="diff"),
            "p": "" if pd.isna(p := row["p_adjusted"]) else f"{p:.4f}" if p >= _LEAST else f"< {_LEAST:g}",
            "significant": bool(row["significant"]),
            "effect": "" if pd.isna(row["effect_size"]) else f"{row['effect_size']:.2f}".replace("-", "−"),
            "won": f"{row['wins']}/{row['losses']}/{row['ties']}",
            "flag": row["flag"],
        }
        for row in frame.to_dict("records")
    ]
    one = frame.iloc[0]
    significant = int(frame["significant"].sum())
    caption = f"Differences of {measure}: {significant} of {len(frame)} significant"
    drawn = f", {one['n_resamples']:,} resamples, seed {one['seed']}" if one["n_resamples"] else ""
    tested = f"{one['n_qids']} topics; {one['test']}, {corrected_over(comparison.pairs)}"
    notes = (
        f"{tested}; intervals: {one['method']}{drawn}.",
        "Effect: the mean difference divided by its standard deviation over topics.",
        "Won/lost/tied: numbers of topics from the point of view of a.",
    )
    return Table(measure, caption, (f"{100 * one['level']:g}% interval",), rows, notes)


def page_data(found: ReportNumbers, queries: dict[str, str]) -> dict[str, Any]:
    """All data of the explorer, ready for JSON; topics, systems and measures are referred to by position."""
    topics, names = found.topics, found.names
    known = [queries.get(topic, "") for topic in topics]
    data: dict[str, Any] = {
        "topics": [cut(topic) for topic in topics],
        "queries": [printable(query)[:QUERY] for query in known] if any(known) else None,
        "systems": [cut(name) for name in names],
        "measures": [measure for measure in found.measures if measure in set(found.scores.values["measure"])],
        "cutoff": found.cutoff,
    }
    wides = [wide_of(found, measure) for measure in data["measures"]]
    data["values"] = [[_numbers(wide[name].to_numpy(dtype=np.float64)) for name in wide.columns] for wide in wides]
    if found.tops:
        data["unjudged"] = _unjudged(found)
    if found.distributions:
        data["distributions"] = _distributions(found)
    if found.covered:
        data["intents"] = _intents(found)
    return data


def _numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else _short(value) for value in values.tolist()]


def _short(value: float) -> float:
    rounded = round(value, DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


def _unjudged(found: ReportNumbers) -> dict[str, Any]:
    """Unjudged documents of each topic with the rank at which each system retrieves them, best ranks first."""
    ranks: list[dict[str, dict[int, int]]] = [{} for _ in found.topics]
    counts: list[list[int]] = []
    for system, top in enumerate(found.tops.values()):
        at = _positions(found, top.judgments.topics)
        counts.append([int(top.n_unjudged[place]) if place >= 0 else 0 for place in at])
        page = {place: topic for topic, place in enumerate(at)}
        where, rank = np.nonzero(top.unjudged)
        texts = top.run.docno.take(top.rows[where, rank]).text.to_pylist()
        for topic, place, docno in zip(where.tolist(), rank.tolist(), texts, strict=True):
            if topic in page:
                ranks[page[topic]].setdefault(docno, {})[system] = place + 1
    share = MOST_SIGNS // max(len(found.topics), 1)
    listed = [_listed(documents, share) for documents in ranks]
    return {
        "cutoff": found.cutoff,
        "counts": counts,
        "documents": [documents for documents, _ in listed],
        "ranks": [at for _, at in listed],
        "more": [len(documents) - len(shown) for documents, (shown, _) in zip(ranks, listed, strict=True)],
    }


def _positions(found: ReportNumbers, topics: list[str]) -> list[int]:
    """Positions of the page's topics in a list; -1 if missing."""
    place = {topic: at for at, topic in enumerate(topics)}
    return [place.get(topic, -1) for topic in found.topics]


def _listed(documents: dict[str, dict[int, int]], space: int) -> tuple[list[str], list[list[int]]]:
    """Documents and, for each, alternating systems and ranks, as many as fit the space."""
    order = sorted(documents, key=lambda docno: (min(documents[docno].values()), -len(documents[docno]), docno))
    shown: list[str] = []
    at: list[list[int]] = []
    for docno in order[:MOST_DOCUMENTS]:
        shown.append(cut(docno))
        at.append([number for pair in sorted(documents[docno].items()) for number in pair])
        space -= len(shown[-1]) + 5 * len(documents[docno])
        if space < 0:
            break
    return shown, at


def _distributions(found: ReportNumbers) -> dict[str, Any]:
    shapes: list[list[str]] = []
    lows: list[list[float | None]] = []
    highs: list[list[float | None]] = []
    for distribution in found.distributions.values():
        at = _positions(found, distribution.topics)
        low, high = distribution.interval(LEVEL)
        # Without unjudged documents there is no interval, unless the ideal ranking is uncertain.
        is_open = (distribution.n_unjudged > 0) | (high > low)
        shapes.append([_shape(distribution, place) if place >= 0 and is_open[place] else "" for place in at])
        open_ = np.where(is_open, 1.0, np.nan)
        for ends, column in ((low, lows), (high, highs)):
            column.append(_numbers(np.array([(ends * open_)[place] if place >= 0 else np.nan for place in at])))
    return {"measure": found.bootstrapped, "level": LEVEL, "bars": BARS, "shapes": shapes, "low": lows, "high": highs}


def _shape(distribution: BootstrapDistribution, topic: int) -> str:
    """Heights of the bars of a distribution, one character each."""
    below = [distribution.distributions[topic].cdf(edge) for edge in np.arange(1, BARS) / BARS]
    share = np.diff(np.array([0.0, *below, 1.0]))
    # Every possible score is visible.
    steps = np.where(share > 1e-9, np.ceil((len(STEPS) - 1) * share / share.max() - 1e-9), 0)  # noqa: PLR2004
    return "".join(STEPS[int(step)] for step in steps)


def _intents(found: ReportNumbers) -> dict[str, Any]:
    """Intents of each topic, most probable first, and the ranks at which each system covers them."""
    first = next(iter(found.covered.values())).intents
    rows: dict[str, list[int]] = {}
    for row, qid in enumerate(first["qid"].astype(str)):
        rows.setdefault(qid, []).append(row)
    prob, names = first["prob"].to_numpy(), first["entity_id"].tolist()
    by_topic: list[dict[str, Any]] = []
    for topic in found.topics:
        order = sorted(rows.get(topic, []), key=lambda row: -prob[row])
        shown = order[:MOST_INTENTS]
        left = order[MOST_INTENTS:]
        by_topic.append(
            {
                "names": [cut(names[row]) for row in shown],
                "prob": [_short(prob[row]) for row in shown],
                "ranks": [
                    ";".join(",".join(map(str, covered.ranks[row])) for row in shown)
                    for covered in found.covered.values()
                ],
                **({"more": len(left), "left": _short(float(prob[left].sum()))} if left else {}),
            }
        )
    return {"cutoff": found.cutoff, "topics": by_topic}


def script(data: dict[str, Any]) -> str:
    r"""Encode data as JSON that every HTML parser reads as text.

    >>> print(script({"id": "</script>"}))
    {"id":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    signs = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for sign, spelt in signs.items():
        text = text.replace(sign, spelt)
    return text


def cut(text: object, most: int = ID) -> str:
    """Text as it is shown, shortened in the middle."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[1 - most // 2 :]}"
