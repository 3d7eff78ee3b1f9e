"""Content of the page: the matrix of means, tables of pairs, and the data of the topic explorer."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from vbterrier.errors import printable
from vbterrier.evaluate.comparison import corrected_over
from vbterrier.evaluate.verdicts import FLAG_MARK, MIN_PRINTED_P, best_system, better, count_range_text
from vbterrier.frames.ids import column_ids
from vbterrier.frames.notebook import interval_axis, interval_bar
from vbterrier.frames.pictures import limits
from vbterrier.frames.ranking import places
from vbterrier.kernels.tolerances import ROUNDING, WHOLE_ROUNDING
from vbterrier.report.captions import interval_methods
from vbterrier.report.page.evaluated import row_tuples, wide_values
from vbterrier.unjudged.distribution import DISPLAY_LEVEL
from vbterrier.unjudged.estimated import EstimatedDistribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vbterrier.annotations import Floats
    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.report.page.evaluated import Inputs, ReportNumbers
    from vbterrier.unjudged.distribution import ScoreDistributions


_DIFFERENCE_DECIMALS = 4
# The margin of bars, in their units, that of :func:`vbterrier.frames.notebook.interval_axis`: 4 of 120 pixels.
BAR_MARGIN_PERCENT = 25 / 7
# Maximal length of an id (shortened in the middle) and of a query (at the end).
MAX_ID_LENGTH, MAX_QUERY_LENGTH = 80, 300
N_DECIMALS = 5
# Number of bars of a distribution over 0 to 1, and digits of their heights.
BARS = 40
HEIGHT_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# Maximal numbers of intents listed for a topic, and of characters of a snippet, of all snippets, and of all rankings.
MOST_INTENTS, SNIPPET, MOST_TEXT, MOST_SIGNS = 30, 160, 350_000, 1_000_000


# Maximal numbers of pairs of a measure that are shown, and of pairs that are in the CSV alone.
MOST_PAIRS, MOST_REST = 190, 10_000


class Table(NamedTuple):
    """Rows with a caption, notes on methods, a sentence each, and the cells of rows that are in the CSV alone."""

    measure: str
    caption: str
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    rest: tuple[list[str], ...] = ()


def number(value: float, decimals: int = 3) -> str:
    """A number as the page shows it, empty if it is undefined."""
    return "" if pd.isna(value) else f"{value:.{decimals}f}".replace("-", "−")


def drawing(value: float, ends: list[tuple[float, float]], scale: tuple[float, float]) -> Markup:
    """A number and its intervals, below each other, on a scale."""

    def x(at: float) -> str:
        return f"{100 * (min(max(at, scale[0]), scale[1]) - scale[0]) / (scale[1] - scale[0] or 1):.1f}"

    lines = "".join(f'<path d="M{x(low)} {6 + 4 * place}H{x(high)}"/>' for place, (low, high) in enumerate(ends))
    # Safe: the markup contains only numbers.
    box = f"{-BAR_MARGIN_PERCENT:.3f} 0 {100 + 2 * BAR_MARGIN_PERCENT:.3f} 12"
    return Markup(  # noqa: S704
        f'<svg viewBox="{box}" preserveAspectRatio="none" aria-hidden="true">{lines}'
        f'<path class="mean" d="M{x(value)} 2V10"/></svg>'
    )


def between(low: float, high: float, decimals: int = 3) -> str:
    """The ends of an interval as text."""
    return f"{number(low, decimals)} to {number(high, decimals)}"


def notes(tables: list[Table]) -> str:
    """Notes of some tables without repetitions."""
    return " ".join(dict.fromkeys(note for table in tables for note in table.notes))


def pairs(numbers: ReportNumbers) -> list[Table]:
    """A table for each measure by which systems are compared; of many pairs, those of the best system are shown."""
    if numbers.comparison is None:
        return []
    return [
        _pairs_table(numbers.comparison, measure, MOST_REST // len(numbers.compared)) for measure in numbers.compared
    ]


def _p_text(p: Any) -> str:
    """A p-value with four decimals; empty if there is none."""
    if pd.isna(p):
        return ""
    return f"{p:.4f}" if p >= MIN_PRINTED_P else f"< {MIN_PRINTED_P:g}"


def _pairs_table(comparison: Comparison, measure: str, most: int) -> Table:
    of_measure = comparison.pairs["measure"] == measure
    frame = comparison.pairs[of_measure].assign(significant=comparison.significant()[of_measure])
    # Intervals without a limit cannot be drawn.
    endless = np.isinf(frame["low"]) | np.isinf(frame["high"])
    frame = frame.assign(low=frame["low"].mask(endless), high=frame["high"].mask(endless))
    numbers = frame[["diff", "low", "high"]].astype(float)
    scale = limits(numbers.itertuples(index=False, name=None), [0.0])
    rows = [
        {
            "a": printable(row["name_a"]),
            "b": printable(row["name_b"]),
            "diff": number(row["diff"], _DIFFERENCE_DECIMALS),
            "interval": "" if pd.isna(row["low"]) else between(row["low"], row["high"], _DIFFERENCE_DECIMALS),
            # Safe: the markup contains only numbers.
            "bar": ""
            if pd.isna(row["low"])
            else Markup(interval_bar(row["diff"], row["low"], row["high"], *scale, rule=0.0)),  # noqa: S704
            "p": _p_text(row["p_adjusted"]),
            "significant": bool(row["significant"]),
            "effect": "" if pd.isna(row["effect_size"]) else f"{row['effect_size']:.2f}".replace("-", "−"),
            "won": f"{row['wins']}/{row['losses']}/{row['ties']}",
            "flag": row["flag"],
        }
        for row in frame.to_dict("records")
    ]
    one, rest, reduced = frame.iloc[0], [], ""
    if len(rows) > MOST_PAIRS and comparison.baseline is None:
        best = printable(best_system(frame, comparison.systems[comparison.systems["measure"] == measure])[0])
        of_best = [best in (row["a"], row["b"]) for row in rows]
        rest = [_cells(row) for row, kept in zip(rows, of_best, strict=True) if not kept]
        rows = [row for row, kept in zip(rows, of_best, strict=True) if kept]
        where = "the CSV has all" if len(rest) <= most else f"`vbterrier compare -m '{measure}' -f csv` has all"
        rest = rest if len(rest) <= most else []
        reduced = f"By {measure}: {len(rows)} pairs, those of the best system, {best}; {where} {len(frame):,}."
    significant = int(frame["significant"].sum())
    caption = f"Differences of {measure}: {significant} of {len(frame)} significant"
    drawn = f", {one['n_resamples']:,} resamples, seed {one['seed']}" if one["n_resamples"] else ""
    tested = f"{count_range_text(one['n_qids'], 'topic')}; {one['test']}, {corrected_over(comparison.pairs)}"
    notes = (
        f"{tested}; intervals: {interval_methods(frame)}{drawn}.",
        "Effect: the mean difference divided by its standard deviation over topics.",
        "Won/lost/tied: numbers of topics from the point of view of a.",
        *[reduced] * bool(reduced),
    )
    axis = Markup(interval_axis(*scale, rule=0.0))  # noqa: S704 - numbers alone
    return Table(measure, caption, (f"{100 * one['level']:g}% interval", axis), rows, notes, tuple(rest))


def _cells(row: dict[str, Any]) -> list[str]:
    """The cells of a row as the page shows them."""
    yes = "yes" if row["significant"] else "no"
    interval, b = row["interval"] or "–", row["b"] + " †" * bool(row["flag"])
    return [row["a"], b, row["diff"], interval, row["p"], yes, row["effect"], row["won"]]


def page_data(numbers: ReportNumbers, inputs: Inputs, tables: Sequence[Table]) -> dict[str, Any]:
    """All data of the explorer, ready for JSON; topics, systems and measures are referred to by position."""
    topics, names = numbers.topics, numbers.names
    queries = [inputs.queries.get(topic, "") for topic in topics]
    data: dict[str, Any] = {
        "topics": [shortened_text(topic) for topic in topics],
        "queries": [printable(query)[:MAX_QUERY_LENGTH] for query in queries] if any(queries) else None,
        "systems": [shortened_text(name) for name in names],
        "measures": [measure for measure in numbers.measures if measure in set(numbers.scores.values["measure"])],
        "order": _order(numbers),
        "cutoff": numbers.cutoff,
    }
    if any(rest := [table.rest for table in tables]):
        data["rest"] = rest
    data["lower"] = [better(measure) == "lower" for measure in data["measures"]]
    wides = [wide_values(numbers, measure) for measure in data["measures"]]
    data["values"] = [[_numbers(wide[name].to_numpy(dtype=np.float64)) for name in wide.columns] for wide in wides]
    rows, depth = _run_rows(numbers)
    data["rankings"] = _rankings(numbers, rows, depth, inputs.documents)
    if numbers.tops:
        data["unjudged"] = [
            np.append(top.n_unjudged, 0)[places(numbers.topics, top.judgments.topics)].tolist()
            for top in numbers.tops.values()
        ]
    if numbers.distributions:
        shapes, lows, highs = list[list[str]](), list[list[float | None]](), list[list[float | None]]()
        for distribution in numbers.distributions.values():
            at = places(numbers.topics, distribution.topics)
            low, high = distribution.interval(DISPLAY_LEVEL)
            # Without unjudged documents there is no interval, unless the ideal ranking is uncertain.
            is_open = (distribution.n_unjudged > 0) | (high > low)
            shapes.append([_shape(distribution, place) if place >= 0 and is_open[place] else "" for place in at])
            open_ = np.where(is_open, 1.0, np.nan)
            for ends, column in ((low, lows), (high, highs)):
                column.append(_numbers(np.array([(ends * open_)[place] if place >= 0 else np.nan for place in at])))
        data["distributions"] = {
            "measure": numbers.bootstrapped,
            "level": DISPLAY_LEVEL,
            "bars": BARS,
            "shapes": shapes,
            "low": lows,
            "high": highs,
        }
    if numbers.covered:
        data["intents"] = _intents(numbers, depth)
    return data


def _order(numbers: ReportNumbers) -> list[int]:
    """Positions of systems: the reference (the baseline, or the second best), the best one, then the others."""
    if numbers.comparison is None:
        return list(range(len(numbers.names)))
    means = wide_values(numbers, numbers.compared[0]).mean()
    names = list(means.sort_values(ascending=better(numbers.compared[0]) == "lower", kind="stable").index)
    baseline = numbers.comparison.baseline
    reference = names[1] if baseline is None else str(baseline)
    best = names[0] if names[0] != reference else names[1]
    rest = [name for name in names if name not in (reference, best)]
    return [numbers.names.index(name) for name in (reference, best, *rest)]


def _numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else _short(value) for value in values.tolist()]


def _short(value: float) -> float:
    rounded = round(value, N_DECIMALS)
    return int(rounded) if rounded == int(rounded) else rounded


def _run_rows(numbers: ReportNumbers) -> tuple[pd.DataFrame, int]:
    """Rows of all runs (system, topic, rank from 0, docno), and the rank to which they fit the page."""
    parts = []
    for system, run in enumerate(numbers.runs.values()):
        top = run.top(numbers.cutoff)
        # The last row, of topics without documents, has no rank.
        table = np.vstack([top.rows, np.full((1, top.depth), -1)])[places(numbers.topics, run.topics)]
        topic, rank = np.nonzero(table >= 0)
        docno = pd.Series(run.docno.take(table[topic, rank]).text.to_pylist(), dtype=str)
        parts.append(pd.DataFrame({"system": system, "topic": topic, "rank": rank, "docno": docno}))
    rows = pd.concat(parts, ignore_index=True)
    first = rows.groupby(["topic", "docno"], sort=False)["rank"].min().reset_index()
    # A row takes some 4 characters, a document its id and some 12.
    length = 12 + first["docno"].str.len().clip(upper=MAX_ID_LENGTH)
    cutoff = numbers.cutoff
    size = 4 * np.bincount(rows["rank"], minlength=cutoff) + np.bincount(first["rank"], length, minlength=cutoff)
    depth = max(int((np.cumsum(size) <= MOST_SIGNS).sum()), 1)
    return rows[rows["rank"] < depth].copy(), depth


def _rankings(numbers: ReportNumbers, rows: pd.DataFrame, depth: int, texts: dict[str, str]) -> dict[str, Any]:
    """Documents of each topic with grades and probabilities, and the rankings, as positions in these documents."""
    rows["id"], ids = pd.factorize(rows["docno"])
    rows["item"] = rows.groupby(["topic", "id"]).ngroup()
    items = rows.groupby("item").agg(topic=("topic", "first"), id=("id", "first"), rank=("rank", "min"))
    bounds = np.searchsorted(items["topic"], np.arange(len(numbers.topics) + 1))
    rows["place"] = rows["item"] - bounds[rows["topic"]]
    lists = rows.sort_values(["topic", "system", "rank"]).groupby(["topic", "system"])["place"].agg(list).to_dict()
    columns: dict[str, list[Any]] = {"ids": items["id"].tolist()}
    labellers: list[str] = []
    if numbers.tops:
        judgments = next(iter(numbers.tops.values())).judgments
        topic = places(numbers.topics, judgments.topics)[items["topic"]]
        docno = column_ids(pd.Series(ids[items["id"]], dtype=str), "documents")
        at = judgments.lookup.find_one(topic, docno)
        columns["grades"] = np.append(np.maximum(judgments.label, 0), -1)[at].tolist()
        chances = _chances(numbers, rows, len(items))
        if not np.isnan(chances).all():
            columns["chances"] = [-1 if np.isnan(chance) else round(100 * chance) for chance in chances.tolist()]
        if numbers.labels is not None:
            labels = numbers.labels.lookup(judgments.topics, topic, docno)
            labellers = [shortened_text(name) for name in numbers.labels.names]
            columns |= {f"label{place}": _numbers(label) for place, label in enumerate(labels)}
    shown, left = dict.fromkeys(range(len(ids)), ""), MOST_TEXT
    for place in items.sort_values("rank", kind="stable")["id"].unique() if texts else ():
        text = printable(" ".join(texts.get(ids[place], "")[: 2 * SNIPPET].split()))[:SNIPPET]
        left -= len(text)
        if left < 0:
            break
        shown[place] = text
    return {
        "depth": depth,
        "ids": [shortened_text(docno) for docno in ids],
        "texts": list(shown.values()) if any(shown.values()) else None,
        "are_texts_cut": left < 0,
        "labellers": labellers,
        "topics": [
            {name: column[low:high] for name, column in columns.items()}
            | {"ranks": [lists.get((topic, system), []) for system in range(len(numbers.runs))]}
            for topic, (low, high) in enumerate(pairwise(bounds))
        ],
    }


def _chances(numbers: ReportNumbers, rows: pd.DataFrame, n_items: int) -> Floats:
    """The probability of relevance of unjudged documents under the model of all runs; NaN for other documents."""
    chances = np.full(n_items, np.nan)
    item = rows.set_index(["system", "topic", "rank"])["item"]
    for system, drawn in enumerate(numbers.distributions.values()):
        if isinstance(drawn, EstimatedDistribution) and drawn.n_unjudged.any():
            page = places(drawn.topics, numbers.topics)
            topic, rank, _ = drawn.documents
            keys = pd.MultiIndex.from_arrays([np.full(len(topic), system), page[topic], rank])
            at = item.reindex(keys).to_numpy(dtype=np.float64, na_value=np.nan)
            chance = drawn.probabilities[:, drawn.grades > 0].sum(axis=1)
            chances[at[~np.isnan(at)].astype(np.int64)] = chance[~np.isnan(at)]
    return chances


def _shape(distribution: ScoreDistributions, topic: int) -> str:
    """Heights of the bars of a distribution, one character each."""
    below = distribution.distributions[topic].cdf(np.arange(1, BARS) / BARS)
    share = np.diff(np.array([0.0, *below, 1.0]))
    # Every possible score is visible.
    heights = (len(HEIGHT_DIGITS) - 1) * share / share.max()
    steps = np.where(share > WHOLE_ROUNDING, np.ceil(heights - WHOLE_ROUNDING), 0)
    return "".join(HEIGHT_DIGITS[int(step)] for step in steps)


def _intents(numbers: ReportNumbers, depth: int) -> dict[str, Any]:
    """Intents of each topic, most probable first, and the ranks at which each system covers them."""
    first = next(iter(numbers.covered.values())).intents
    rows: dict[str, list[int]] = {}
    for row, qid in enumerate(first["qid"].astype(str)):
        rows.setdefault(qid, []).append(row)
    prob, names = first["prob"].to_numpy(), first["entity_id"].tolist()
    by_topic: list[dict[str, Any]] = []
    for topic in numbers.topics:
        order = sorted(rows.get(topic, []), key=lambda row: -prob[row])
        shown = order[:MOST_INTENTS]
        left = order[MOST_INTENTS:]
        by_topic.append(
            {
                "names": [shortened_text(numbers.intent_names.get((topic, names[row]), names[row])) for row in shown],
                "prob": [_short(prob[row]) for row in shown],
                "ranks": [
                    ";".join(",".join(str(rank) for rank in covered.ranks[row] if rank <= depth) for row in shown)
                    for covered in numbers.covered.values()
                ],
                **({"more": len(left), "left": _short(float(prob[left].sum()))} if left else {}),
            }
        )
    return {"cutoff": depth, "topics": by_topic}


def script(data: dict[str, Any]) -> str:
    """Encode data as JSON that every HTML parser reads as text."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    signs = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for sign, spelt in signs.items():
        text = text.replace(sign, spelt)
    return text


def shortened_text(text: object, most: int = MAX_ID_LENGTH) -> str:
    """Text as it is shown, shortened in the middle."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most // 2]}…{shown[1 - most // 2 :]}"


_RATIO = "ratio of means"
_POPULATION_TEXTS = {
    "topics": "other topics from the same population",
    "unjudged": "the unjudged documents of these topics",
}
HIGHER, LOWER = "▲", "▼"


class Cell(NamedTuple):
    """A mean, True if it is the best of its measure, a mark and its meaning, intervals and their drawing."""

    mean: str
    best: bool
    mark: str
    meaning: str
    intervals: list[str]
    bar: str


class SystemRow(NamedTuple):
    """A system: its name, the reason why its numbers may mislead, cells, and numbers of topics and empty topics."""

    name: str
    flag: str
    cells: list[Cell]
    topics: int
    missing: int


class Matrix(NamedTuple):
    """Columns (a measure, what is special about it, the axis of its bars), rows, the best system first, and notes."""

    columns: Sequence[tuple[str, str, str]]
    rows: list[SystemRow]
    notes: list[str]

    @property
    def shows_topics(self) -> bool:
        """True if the numbers of topics differ or topics are empty."""
        return len({row.topics for row in self.rows}) > 1 or any(row.missing for row in self.rows)


def matrix(numbers: ReportNumbers) -> Matrix:
    """The means of all systems by all measures."""
    frame = numbers.scores.intervals.astype({"name": str})
    measures = list(dict.fromkeys(frame["measure"]))
    first = numbers.compared[0] if numbers.compared else measures[0]
    values = frame[frame["measure"] == first].drop_duplicates("name")
    names = list(values.sort_values("value", ascending=better(first) == "lower", kind="stable")["name"])
    names += [name for name in numbers.names if name not in names]
    columns = {measure: _measure_cells(numbers, frame[frame["measure"] == measure], measure) for measure in measures}
    nothing = Cell("–", best=False, mark="", meaning="", intervals=[], bar="")
    counts = frame.groupby("name")["n_qids"].max().to_dict()
    missing = dict(row_tuples(numbers.scores.missing.astype({"name": str}), "name", "n_missing"))
    flags: dict[str, str] = {}
    if numbers.comparison is not None:
        marked = numbers.comparison.flags[numbers.comparison.flags["flag"] != ""]
        flags = {str(name): flag for name, flag in row_tuples(marked, "name", "flag")}
    rows = []
    for name in names:
        cells = [columns[measure].get(name, nothing) for measure in measures]
        about = printable(name), flags.get(name, ""), cells
        rows.append(SystemRow(*about, counts.get(name, 0), missing.get(name, 0)))
    ratios = set(frame.loc[frame["method"].astype(str).str.endswith(_RATIO), "measure"])
    heads = [[_RATIO] * (one in ratios) + ["lower is better"] * (better(one) == "lower") for one in measures]
    scales = [_bar_scale(frame[frame["measure"] == measure]) for measure in measures]
    heads_of_measures = [
        # Safe: the axis contains only numbers.
        (measure, ", ".join(words), Markup(interval_axis(*scale)))  # noqa: S704
        for measure, words, scale in zip(measures, heads, scales, strict=True)
    ]
    return Matrix(heads_of_measures, rows, list(_matrix_notes(numbers, frame, flags)))


def _bar_scale(frame: pd.DataFrame) -> tuple[float, float]:
    """The ends of the scale of a measure's bars."""
    return limits(frame[["value", "low", "high"]].astype(float).itertuples(index=False, name=None))


def _measure_cells(report: ReportNumbers, frame: pd.DataFrame, measure: str) -> dict[str, Cell]:
    """The cells of a measure by system."""
    scale = _bar_scale(frame)
    marks = _marks(report, measure)
    direction = better(measure)
    values = frame.drop_duplicates("name").set_index("name")["value"]
    best = values.min() if direction == "lower" else values.max()
    # Measures that describe runs, as the share of unjudged documents, have no best value.
    has_best = measure in report.compared and bool((values != values.iloc[0]).any())
    cells: dict[str, Cell] = {}
    for name, rows in frame.groupby("name"):
        value = float(values[name])
        with_interval = rows.dropna(subset="low")
        ends = row_tuples(with_interval, "low", "high", "method")
        # The source of the uncertainty: topics or unjudged documents.
        sources = [f" {method.partition(' (')[0]}" * (len(ends) > 1) for _, _, method in ends]
        texts = [between(low, high) + source for (low, high, _), source in zip(ends, sources, strict=True)]
        is_finite = bool(ends) and np.isfinite([value, *(end for low, high, _ in ends for end in (low, high))]).all()
        bar = drawing(value, [(low, high) for low, high, _ in ends], scale) if is_finite else ""
        is_best = bool(has_best and np.isclose(value, best, rtol=0, atol=ROUNDING))
        cells[str(name)] = Cell(number(value), is_best, *marks.get(str(name), ("", "")), texts, bar)
    return cells


def _marks(numbers: ReportNumbers, measure: str) -> dict[str, tuple[str, str]]:
    """Letters, or signs of significant differences from the baseline, with their meaning."""
    if numbers.comparison is None or measure not in numbers.compared:
        return {}
    if numbers.comparison.baseline is None:
        systems = numbers.comparison.systems[numbers.comparison.systems["measure"] == measure]
        return {str(name): (letters, "") for name, letters in row_tuples(systems, "name", "letters")}
    pairs = numbers.comparison.pairs[
        numbers.comparison.significant() & (numbers.comparison.pairs["measure"] == measure)
    ]
    base = printable(numbers.comparison.baseline)
    higher, lower = (HIGHER, f"significantly higher than {base}"), (LOWER, f"significantly lower than {base}")
    return {str(name): higher if diff > 0 else lower for name, diff in row_tuples(pairs, "name_a", "diff")}


def _matrix_notes(numbers: ReportNumbers, frame: pd.DataFrame, flags: dict[str, str]) -> Iterator[str]:
    level = f"{100 * float(frame['level'].iloc[0]):g}%"
    for method, rows in frame[frame["method"] != "none"].groupby("method", sort=False):
        one = rows.iloc[0]
        drawn = f" ({one['n_resamples']:,} resamples, seed {one['seed']})" if one["n_resamples"] else ""
        what = _POPULATION_TEXTS.get(str(method).partition(" (")[0], "these topics")
        yield f"{level} intervals over {method} describe {what}{drawn}."
    if len(numbers.names) > 1:
        yield "The best mean of a measure is bold."
    if numbers.comparison is not None:
        base = numbers.comparison.baseline
        yield (
            "Systems that share a letter do not differ significantly."
            if base is None
            else f"{HIGHER} and {LOWER}: significantly higher and lower than {printable(base)}."
        )
    # Tooltips are not visible in print and on phones.
    for name, flag in flags.items():
        yield f"{FLAG_MARK} {printable(name)} {flag}: its numbers may not reflect its quality."
