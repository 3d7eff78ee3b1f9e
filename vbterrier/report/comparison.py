"""Comparisons of systems and release gates as text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import ParameterError, choice, examples, nearest, printable
from vbterrier.evaluate.comparison import corrected_over
from vbterrier.evaluate.intent_notes import GUESSES
from vbterrier.evaluate.verdicts import FLAG_MARK, count_range_text
from vbterrier.frames.answer import FAIL, MARKS, UNKNOWN
from vbterrier.report import latex
from vbterrier.report.captions import best_rows, interval_methods, measures_sentence
from vbterrier.report.latex import MAX_MEAN_COLUMNS, brackets, by_measure, fixed_number
from vbterrier.report.tables import PAPERS, escape_for_style, format_table, interval_texts, joined_ends, with_caption

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.evaluate.release_decision import ReleaseGate
    from vbterrier.evaluate.scores import Scores


SIGNIFICANT = "*"
_EFFECT = "effect: mean of a - b divided by its standard deviation over topics; won/lost/tied: topics, for a"
# Documents to judge next that a terminal shows.
_MAX_JUDGE_ROWS = 5
# Short column names for papers.
_SHORT_HEADINGS = {"p adjusted": "p", "won/lost/tied": "w/l/t", "p equivalence": "p equiv."}
_SHORT_NOTE = "p: adjusted; w/l/t: won/lost/tied."
# Formats of release gates.
GATE_FORMATS = ("table", "markdown", "json", "junit")


def comparison_caption(result: Comparison) -> list[str]:
    """Caption of a table of means: topics, intervals, tests, marks and suspect runs."""
    systems, mean = result.systems, result.systems.iloc[0]
    what = f"Means over {count_range_text(systems['n_qids'], 'topic')}"
    sentences = measures_sentence(what, systems["measure"].unique(), computed=_are_computed(result))
    n_resamples = int(systems["n_resamples"].max())
    drawn = f", {n_resamples} resamples" if n_resamples else ""
    sentences.append(f"Intervals, {100 * mean['level']:g}%: {interval_methods(systems)}{drawn}, seed {mean['seed']}.")
    if best_rows(systems).any():
        sentences.append("The best mean of a measure is bold.")
    test = result.pairs["test"].iloc[0]
    sentences.append(f"Differences: {test}, {corrected_over(result.pairs)}, at the level {result.alpha:g}.")
    # With a baseline, means have stars; otherwise they have letters.
    stars = _star_note(result) if result.baseline is not None else ()
    return sentences + [f"{line}." for line in (*stars, *_mark_notes(result))]


def _are_computed(result: Comparison) -> bool:
    """Return True if values come from runs; numbers of missing topics are unknown for values of other programs."""
    return bool(result.flags["n_missing"].notna().all())


def _star_note(result: Comparison) -> Iterator[str]:
    if result.significant().any():
        starred = "differs significantly" + (f" from {' or '.join(result.baselines)}" if result.baselines else "")
        yield f"{SIGNIFICANT} {starred}: adjusted p at most {result.alpha:g}"


def _pair_notes(result: Comparison) -> Iterator[str]:
    """Notes on effects, tests of equivalence and stars."""
    yield _EFFECT
    if result.margin is not None:
        yield f"p equivalence: two one-sided tests that a and b differ by {result.margin:g} or more, not adjusted"
    yield from _star_note(result)


def _mark_notes(result: Comparison) -> Iterator[str]:
    """Notes on letters and daggers."""
    if result.baseline is None:
        yield "letters: systems that share a letter do not differ significantly"
    if result.guessed:
        yield f"{', '.join(result.guessed)}: {GUESSES}"
    for row in result.flags.drop_duplicates(["name", "flag"]).to_dict("records"):
        if row["flag"]:
            yield f"{FLAG_MARK} {row['name']} {row['flag']}; differences may not reflect its quality"
        elif not pd.isna(row["n_missing"]) and row["n_missing"]:
            topics = count_range_text(row["n_missing"], "topic")
            yield f"{row['name']} retrieved nothing for {topics}, scored as empty rankings"


def pairs_caption(result: Comparison, pairs: pd.DataFrame | None = None) -> list[str]:
    """Caption of a table of differences: measures, test, intervals; of some pairs if given."""
    pairs = result.pairs if pairs is None else pairs
    one = pairs.iloc[0]
    drawn = f"{one['n_resamples']} resamples, " if one["n_resamples"] else ""
    what = f"Differences of systems over {count_range_text(pairs['n_qids'], 'topic')}"
    return [
        *measures_sentence(what, pairs["measure"].unique(), computed=_are_computed(result)),
        f"Test: {one['test']}; {corrected_over(pairs)}; level {result.alpha:g}.",
        f"Intervals, {100 * one['level']:g}%: {interval_methods(pairs)}; {drawn}seed {one['seed']}.",
        *(f"{line}." for line in _pair_notes(result)),
    ]


# The columns of a table of segments, and their titles.
_SEGMENT_HEADINGS = {
    "segment": "segment",
    "weight": "traffic",
    "name": "run",
    "name_a": "a",
    "name_b": "b",
    "measure": "measure",
    "value": "mean",
    "diff": "a - b",
    "low": "low",
    "high": "high",
    "p_adjusted": "p",
    "n_qids": "queries",
}


def comparison_report(
    result: Comparison, style: str, *, systems: bool = False, compact: bool = False, **options: Any
) -> str:
    """Systems, pairs and notes as text, in papers below the verdicts; csv and json hold the frames with all digits.

    JSON is one object (verdict, systems, pairs, flags, caveats). ``systems``: for csv, which holds one frame: the
    systems, with counts of missing topics, instead of the pairs. ``compact``: :func:`compact_table`, with ``options``.
    """
    if compact:
        return compact_table(result, style, **options)
    means = result.systems.merge(result.flags.drop(columns="n_qids"), on=["name", "measure"], how="left", sort=False)
    if style == "csv":
        return format_table(means if systems else with_segments(result.pairs, result.segments), style)
    if style == "json":
        frames = {"systems": means, "pairs": result.pairs, "flags": result.flags}
        frames |= {"segments": result.segments} if len(result.segments) else {}
        parts: dict[str, Any] = {name: json.loads(format_table(frame, style)) for name, frame in frames.items()}
        parts["caveats"] = [one._asdict() for one in result.answer().caveats]
        return json.dumps({"verdict": verdicts(result), **parts}, indent=2, ensure_ascii=False)
    if style in PAPERS:
        return "\n\n".join(_for_papers(result, means, style))
    shown = (_systems(result, means), ("missing", "topics")), (_pairs(result), ("won/lost/tied", "effect"))
    tables = (format_table(table, style, drop=drop).strip("\n") for table, drop in shown)
    return "\n\n".join([*tables, *_segments(result, style), "\n".join(_notes(result))])


def with_segments(frame: pd.DataFrame, segments: pd.DataFrame) -> pd.DataFrame:
    """Rows of all queries, whose segment is empty, and those of segments; the frame itself without segments."""
    if not len(segments):
        return frame
    return pd.concat([frame.assign(segment="", weight=1.0), segments], ignore_index=True)[segments.columns]


def segment_rows(segments: pd.DataFrame) -> pd.DataFrame:
    """Segments as a table: the share of each as traffic, with joined limits."""
    kept = [name for name in _SEGMENT_HEADINGS if name in segments.columns]
    shown = segments[kept].assign(weight=segments["weight"].map("{:.1%}".format))
    return joined_ends(shown.rename(columns=_SEGMENT_HEADINGS))


def _segments(result: Comparison, style: str) -> Iterator[str]:
    if len(result.segments):
        n_parts = result.segments["segment"].nunique()
        yield f"Segments of queries; p and intervals are corrected for {n_parts} segments, too."
        yield format_table(segment_rows(result.segments), style).strip("\n")


def _for_papers(result: Comparison, means: pd.DataFrame, style: str) -> Iterator[str]:
    """Means and differences, each with its caption."""
    caption, label = comparison_caption(result), "tab:systems"
    best = best_rows(means)
    if style == "latex" and means["measure"].nunique() <= MAX_MEAN_COLUMNS:
        yield with_caption(_wide(result, best), style, caption, label)
    else:
        bold = [(int(row), "mean") for row in best[best].index]
        yield format_table(_systems(result, means), style, caption=caption, label=label, bold=bold)
    if style != "latex":
        yield format_table(_pairs(result), style, caption=pairs_caption(result))
        yield from _segments(result, style)
        return
    # A table for each measure: together they are too wide for a page.
    every = _pairs(result, one_table=False).groupby("measure", sort=False)
    for number, (measure, table) in enumerate(every, 1):
        shown = table.drop(columns="measure")
        shown.columns = pd.Index(
            [_SHORT_HEADINGS.get(name, name).replace(" - ", " − ") for name in map(str, shown.columns)]
        )
        sentences = [*pairs_caption(result, result.pairs[result.pairs["measure"] == measure]), _SHORT_NOTE]
        yield format_table(shown, "latex", caption=sentences, label=f"tab:pairs-{number}")
    yield from _segments(result, style)


def _wide(result: Comparison, best: pd.Series[bool]) -> str:
    """Means and their marks as LaTeX, one column for each measure."""
    frame = result.systems.reset_index(drop=True)
    marks = frame["letters"] if result.baseline is None else _stars(frame, result)
    cells = []
    for value, mark, is_best in zip(frame["value"], marks, best, strict=True):
        text = latex.number(fixed_number(value))
        raised = rf"\textsuperscript{{{latex.escaped_text(mark)}}}" if mark else ""
        cells.append((rf"\textbf{{{text}}}" if is_best else text) + raised)
    index = pd.MultiIndex.from_frame(frame[["name", "measure"]])
    ends = pd.Series(map(brackets, frame["low"], frame["high"]), index=index)
    flagged = set(result.flags.loc[result.flags["flag"] != "", "name"])
    shown = {
        name: latex.escaped_text(f"{name}{FLAG_MARK if name in flagged else ''}") for name in frame["name"].unique()
    }
    return by_measure(frame.assign(cell=cells), [(rf"{100 * frame['level'].iloc[0]:g}\%", ends)], shown)


def compact_table(
    result: Comparison,
    style: str,
    *,
    names: Mapping[str, str] | None = None,
    beside: Scores | None = None,
    order: Sequence[str] = (),
) -> str:
    """One table for a paper: a row for each system, a column for each measure, means with marks of significance.

    ``names``: names of systems as in the text of the paper. ``order``: the systems, in their order; others follow, the
    best first. ``beside``: scores of the same systems by measures that are
    not compared, as the share of unjudged documents. csv and json have a column of marks for each measure that is.
    """
    compared = dict.fromkeys(result.systems["name"])
    systems = dict.fromkeys([*(name for name in order if name in compared), *compared])
    if odd := [name for name in names or {} if name not in systems]:
        raise ParameterError(f"names: no system {odd[0]!r}, found {examples(systems, 6)}.{nearest(odd[0], systems)}")
    marks = result.systems["letters"] if result.baseline is None else _stars(result.systems, result)
    frame = result.systems.assign(mark=marks, best=best_rows(result.systems))[[*_CELL_COLUMNS, "mark", "best"]]
    frame["name"] = frame["name"].astype(str)
    if beside is not None:
        more = beside.intervals.drop_duplicates(["name", "measure"])[_CELL_COLUMNS].assign(mark="", best=False)
        frame = pd.concat([frame, more.assign(name=more["name"].astype(str))], ignore_index=True)
    places = {name: place for place, name in enumerate(map(str, systems))}
    frame = frame.sort_values("name", key=lambda column: column.map(places), kind="stable", ignore_index=True)
    flagged = set(result.flags.loc[result.flags["flag"] != "", "name"])
    shown = {
        name: f"{(names or {}).get(name, name)}{FLAG_MARK if name in flagged else ''}" for name in map(str, systems)
    }
    caption = _compact_caption(result, style, beside)
    if style == "latex":
        texts = frame["value"].map(lambda value: latex.number(fixed_number(value, 3)))
        texts = texts.where(~frame["best"], r"\textbf{" + texts + "}")
        raised = frame["mark"].map(lambda mark: rf"\textsuperscript{{{latex.escaped_text(mark)}}}" if mark else "")
        escaped_names = {name: latex.escaped_text(text) for name, text in shown.items()}
        body = by_measure(frame.assign(cell=texts + raised), [], escaped_names, head="system")
        return with_caption(body, style, caption, "tab:means")
    wide = pd.DataFrame({"system": list(shown.values())})
    bold: list[tuple[int, str]] = []
    for measure, part in frame.groupby("measure", sort=False):
        of_measure = part.set_index("name").reindex(list(shown))
        if style in ("csv", "json"):
            wide[measure] = of_measure["value"].to_numpy()
            if of_measure["mark"].ne("").any():
                wide[f"{measure} {'letters' if result.baseline is None else 'significant'}"] = of_measure[
                    "mark"
                ].to_numpy()
            continue
        means = of_measure["value"].map(lambda value: "" if pd.isna(value) else fixed_number(value, 3))
        wide[measure] = (means + " " + of_measure["mark"].fillna("")).str.rstrip().to_numpy()
        bold += [(row, str(measure)) for row, best in enumerate(of_measure["best"].eq(True)) if best]
    text = format_table(wide, style, caption=caption, label="tab:means", bold=bold)
    return "\n".join([text, *map(printable, caption)]) if style == "table" else text


_CELL_COLUMNS = ["name", "measure", "value"]


def _compact_caption(result: Comparison, style: str, beside: Scores | None) -> list[str]:
    """Caption of a compact table: topics and measures, the test and its marks, and columns without a test."""
    tested = list(result.systems["measure"].unique())
    sentences = measures_sentence(
        f"Means over {count_range_text(result.systems['n_qids'], 'topic')}", tested, computed=_are_computed(result)
    )
    test = f"{result.pairs['test'].iloc[0]}, {corrected_over(result.pairs)}, at the level {result.alpha:g}"
    mark = "Systems that share a letter do not differ significantly"
    if result.baseline is not None:
        mark = f"{SIGNIFICANT} differs" if result.significant().any() else "No system differs"
        mark += f" significantly from {' or '.join(result.baselines)}"
    sentences.append(f"{mark} ({test}).")
    if style != "table" and best_rows(result.systems).any():
        sentences.append("The best mean of a measure is bold.")
    if beside is not None:
        sentences.append(f"Without a test: {', '.join(beside.intervals['measure'].unique())}.")
    rows = result.flags.drop_duplicates(["name", "flag"]).to_dict("records")
    return sentences + [f"{FLAG_MARK} {row['name']} {row['flag']}." for row in rows if row["flag"]]


def _stars(frame: pd.DataFrame, result: Comparison) -> list[str]:
    significant = result.pairs[result.significant()].sort_values("flag", kind="stable")
    rows = significant[["name_a", "measure", "flag"]].to_numpy().tolist()
    marks = {(name, measure): SIGNIFICANT + FLAG_MARK * bool(flag) for name, measure, flag in rows}
    return [marks.get(key, "") for key in zip(frame["name"], frame["measure"], strict=True)]


def marked_names(result: Comparison, measures: str | pd.Series[str], names: Iterable[str]) -> list[str]:
    """Names of systems, with a dagger if a system is flagged by the measure (one for all names, or one for each)."""
    names, flags = list(names), result.flags[result.flags["flag"] != ""]
    flagged = set(zip(flags["measure"], flags["name"], strict=True))
    keys = zip([measures] * len(names) if isinstance(measures, str) else measures, names, strict=True)
    return [f"{name}{FLAG_MARK if (measure, name) in flagged else ''}" for measure, name in keys]


def _systems(result: Comparison, frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each system and measure."""
    means = frame["value"].map(fixed_number)
    if result.baseline is not None:
        means += _stars(frame, result)
    text = {"run": marked_names(result, frame["measure"], frame["name"]), "measure": frame["measure"], "mean": means}
    text[_title(frame, "means")] = interval_texts(frame)
    if result.baseline is None:
        text["letters"] = frame["letters"]
    text["topics"] = frame["n_qids"]
    if frame["n_missing"].notna().all():
        text["missing"] = frame["n_missing"]
    return _without_single_measure(pd.DataFrame(text))


def _title(frame: pd.DataFrame, quantity: str) -> str:
    return f"{100 * frame['level'].iloc[0]:g}% of {quantity}"


def _without_single_measure(table: pd.DataFrame) -> pd.DataFrame:
    """Drop the column of measures if there is only one, which the notes name."""
    return table if len(table["measure"].unique()) > 1 else table.drop(columns="measure")


def _pairs(result: Comparison, *, one_table: bool = True) -> pd.DataFrame:
    frame = result.pairs.reset_index(drop=True)
    flag = frame["flag"].map(lambda value: FLAG_MARK if value else "")
    star = (SIGNIFICANT + flag).where(result.significant().reset_index(drop=True), "")
    counts = frame[["wins", "losses", "ties"]].to_numpy().tolist()
    text = {
        "a": marked_names(result, frame["measure"], frame["name_a"]),
        "b": marked_names(result, frame["measure"], frame["name_b"]),
        "measure": frame["measure"],
        "a - b": frame["diff"],
        _title(frame, "a - b"): interval_texts(frame),
        "p adjusted": frame["p_adjusted"].map(_p) + star,
        "effect": frame["effect_size"],
        "won/lost/tied": ["" if pd.isna(row[0]) else "/".join(map(str, row)) for row in counts],
    }
    if result.margin is not None:
        text["p equivalence"] = frame["p_equivalence"].map(_p)
    table = pd.DataFrame(text)
    return _without_single_measure(table) if one_table else table


def _p(p: float) -> str:
    # Four decimals would show small p-values as 0, which no p-value of a resampling test is.
    return "" if pd.isna(p) else f"{p:.4f}" if p >= 0.0001 or p == 0 else f"{p:.1e}"  # noqa: PLR2004


def _notes(result: Comparison) -> Iterator[str]:
    """Notes on tests, intervals and marks, one line for each."""
    one = result.pairs.iloc[0]
    by_measure = result.pairs.drop_duplicates("measure")
    topics = ", ".join(
        f"{measure}: {count_range_text(n, 'topic')}"
        for measure, n in by_measure[["measure", "n_qids"]].to_numpy().tolist()
    )
    n_resamples = max(one["n_resamples"], int(result.systems["n_resamples"].max()))
    drawn = f"{n_resamples} resamples, " if n_resamples else ""
    yield f"{topics}; test: {one['test']}; {corrected_over(result.pairs)}"
    means, differences = interval_methods(result.systems), interval_methods(result.pairs)
    yield f"intervals: of means, {means}; of differences, {differences}; {drawn}seed {one['seed']}"
    yield from _pair_notes(result)
    yield from _mark_notes(result)


def verdicts(result: Comparison) -> list[str]:
    """Sentences on significant differences, one for each measure."""
    return list(result._verdict())  # noqa: SLF001 - the sentences of its answer


def gate_report(result: ReleaseGate, style: str) -> str:
    """The differences of a release gate, segments, queries that lose most, documents to judge next and exclusions.

    ``style``: ``"table"``, which the answer precedes; ``"markdown"`` (with the answer, for a pull request), ``"json"``
    (the answer and all columns), or ``"junit"`` (XML: a test for each baseline, which fails for FAIL and is skipped for
    UNKNOWN).
    """
    choice("format", style, GATE_FORMATS)
    if style == "json":
        names = ("pairs", "segments", "queries", "rankings", "judge", "excluded")
        parts = {name: json.loads(format_table(getattr(result, name), style)) for name in names}
        head = {"decision": result.decision, "exit_code": result.exit_code, "answer": result.answer().record()}
        return json.dumps({**head, **parts}, indent=2, ensure_ascii=False)
    if style == "junit":
        return _junit(result)
    blocks = [format_table(_gate_rows(result.pairs), style)]
    blocks += _of_sampling(result, style)
    if len(worst := _worst_rows(result)):
        blocks += ["Queries that lose most, and the grades of both rankings (? unjudged):", format_table(worst, style)]
    if len(result.judge):
        columns = [name for name in ("qid", "docno", "reason") if name in result.judge.columns]
        listed = result.judge[columns].head(_MAX_JUDGE_ROWS if style == "table" else len(result.judge))
        blocks += ["Judge next, in this order:", format_table(listed, style)]
        if len(listed) < len(result.judge):
            blocks.append(f"{len(result.judge) - len(listed)} more documents: --judge FILE writes all.")
    one = result.pairs.iloc[0]
    corrected = f", corrected for {one['n_tests']} baselines" if one["n_tests"] > 1 else ""
    if len(result.segments):
        corrected += f", segments for {count_range_text(result.segments['n_tests'].iloc[0], 'test')}"
    looks = f", look {one['look']}" if not pd.isna(one["look"]) else ""
    drawn = f", {one['n_resamples']} draws, seed {one['seed']}" if "bounded" in one["method"] else ""
    notes = f"Limits: {one['method']}{corrected}{looks}{drawn}. unjudged: documents of the new run / of the baseline."
    blocks.append(escape_for_style(notes, style))
    if style == "markdown":
        answer = result.answer()
        above = [
            f"## {MARKS[result.decision]} {escape_for_style(answer.verdict, style)}",
            escape_for_style(answer.reason, style),
        ]
        below = [f"- {escape_for_style(one.line(), style)}" for one in answer.caveats]
        following = [f"Next: `{printable(answer.next)}`"] if answer.next else []
        blocks = [*above, *blocks, *(["\n".join(below)] if below else []), *following]
    return "\n\n".join(part.strip("\n") for part in blocks)


def _of_sampling(result: ReleaseGate, style: str) -> Iterator[str]:
    """Texts and tables of a covariate and of segments."""
    if result.pairs["correlation"].notna().any():
        yield escape_for_style(_covariates(result.pairs), style)
    if len(result.segments):
        yield "Segments, which do not change the decision:"
        yield format_table(_gate_rows(result.segments), style)
        if len(set(result.segments["segment"])) > 1:
            yield escape_for_style(_equal_segments(result.segments), style)


def _covariates(pairs: pd.DataFrame) -> str:
    """Correlations of covariates with the differences, and the lower limits without them, by measure and baseline."""
    several = len(pairs) > 1
    parts = [
        f"correlation {row['correlation']:+.2f} with the differences; the lower limit is {row['low']:+.4f}, and "
        f"{row['low_without']:+.4f} without the covariate"
        + (f" ({row['measure']}, {row['baseline']})" if several else "")
        for row in pairs.to_dict("records")
    ]
    return f"Covariate: {'; '.join(parts)}."


def _equal_segments(segments: pd.DataFrame) -> str:
    """P-values of equal differences in all segments, by measure and baseline."""
    tests = segments.drop_duplicates(["measure", "baseline"])
    several = len(tests) > 1
    named = [
        f"{_p(row['p_equal']) or 'not tested'}" + (f" ({row['measure']}, {row['baseline']})" if several else "")
        for row in tests.to_dict("records")
    ]
    return f"Equal differences in all segments, Welch's test: p = {', '.join(named)}."


def _junit(result: ReleaseGate) -> str:
    """The answer as a test suite: a test for each baseline and measure, with the caveats in its message."""
    answer, pairs = result.answer(), result.pairs.to_dict("records")
    decisions = [row["decision"] for row in pairs]
    root = ET.Element("testsuites")
    counts = {"failures": str(decisions.count(FAIL)), "skipped": str(decisions.count(UNKNOWN))}
    about = {"name": "vbterrier gate", "tests": str(len(pairs)), "errors": "0"}
    suite = ET.SubElement(root, "testsuite", {**about, **counts})
    properties = ET.SubElement(suite, "properties")
    for name, value in (("decision", answer.decision), ("verdict", answer.verdict), ("made_by", answer.made_by)):
        ET.SubElement(properties, "property", name=name, value=printable(value))
    for row in pairs:
        title = f"{row['name']} is at most {row['margin']:g} below {row['baseline']} by {row['measure']}"
        case = ET.SubElement(suite, "testcase", classname="release_gate", name=printable(title))
        tag = {FAIL: "failure", UNKNOWN: "skipped"}.get(row["decision"])
        if tag is not None:
            message = f"{row['decision']}: {row['counted']:+.4f}, limits {row['low']:+.4f} to {row['high']:+.4f}"
            message_lines = [message, printable(row["advice"]), *(one.line() for one in answer.caveats)]
            problem = ET.SubElement(case, tag, message="; ".join(filter(None, message_lines)))
            problem.text = "\n".join(filter(None, [answer.head(), answer.foot()]))
    out = ET.SubElement(suite, "system-out")
    lines = [answer.head(), result.picture_text(), gate_report(result, "table"), answer.foot()]
    out.text = "\n".join(map(printable, "\n\n".join(filter(None, lines)).splitlines()))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'


def _worst_rows(result: ReleaseGate) -> pd.DataFrame:
    """The queries that lose most, with the grades of both rankings in order."""
    if not len(result.rankings):
        return pd.DataFrame()
    marks = result.rankings.assign(
        **{
            side: [
                "" if not docno else "?" if pd.isna(label) else str(label)
                for docno, label in zip(result.rankings[side], result.rankings[f"{side}_label"], strict=True)
            ]
            for side in ("new", "old")
        }
    )
    keys = ["baseline", "qid", "diff"]
    rows = pd.DataFrame(
        [
            (*key, " ".join(filter(None, part["new"])), " ".join(filter(None, part["old"])))
            for key, part in marks.groupby(keys, sort=False)
        ],
        columns=[*keys, "new", "old"],
    )
    titles = {"diff": "new - baseline", "new": "grades, new", "old": "grades, baseline"}
    shown = rows.sort_values("diff", kind="stable").rename(columns=titles).reset_index(drop=True)
    return shown if len(result.pairs["baseline"].unique()) > 1 else shown.drop(columns="baseline")


def _gate_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that readers compare."""
    text = {"segment": frame["segment"]} if "segment" in frame.columns else {}
    if len(set(frame["measure"])) > 1:
        text["measure"] = frame["measure"]
    text |= {"baseline": frame["baseline"], "decision": frame["decision"], "new - baseline": frame["diff"]}
    one = frame.iloc[0]
    if (frame["counted"] != frame["diff"]).any():
        text[f"losses cut at {one['worst_loss']:g}"] = frame["counted"]
    text |= {"limits": interval_texts(frame), "queries": frame["n_qids"]}
    if not pd.isna(one["max_share"]):
        of_losses = frame[["losses", "losses_high"]].map("{:.1%}".format)
        text[f"lose > {one['large_loss']:g}"] = of_losses["losses"] + ", up to " + of_losses["losses_high"]
    shares = frame[["unjudged", "unjudged_baseline"]].map("{:.1%}".format)
    text["unjudged"] = shares["unjudged"] + " / " + shares["unjudged_baseline"]
    if "weight" in frame.columns:
        text["traffic"] = frame["weight"].map("{:.1%}".format)
    return pd.DataFrame(text)
