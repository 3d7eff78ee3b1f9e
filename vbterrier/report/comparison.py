"""Comparisons of systems and release gates as text."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.errors import choice, printable
from vbterrier.evaluate.comparison import corrected_over
from vbterrier.evaluate.release_gate import FAIL, UNKNOWN
from vbterrier.report import latex
from vbterrier.report.captions import best_rows, best_system, better, measures_sentence, topics_of
from vbterrier.report.latex import MOST, brackets, by_measure, fixed
from vbterrier.report.tables import captioned, escaped, rendered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.evaluate.release_gate import ReleaseGate


SIGNIFICANT, FLAGGED = "*", "†"
_EFFECT = "effect: mean of a - b divided by its standard deviation over topics; won/lost/tied: topics, for a"
_LISTED = 12
# Short column names for papers.
_SHORT = {"p adjusted": "p", "won/lost/tied": "w/l/t", "p equivalence": "p equiv."}
_SHORT_NOTE = "p: adjusted; w/l/t: won/lost/tied."
# Formats of release gates.
GATE_FORMATS = ("table", "markdown", "json", "junit")


def comparison_caption(found: Comparison) -> list[str]:
    """Caption of a table of means: topics, intervals, tests, marks and suspect runs."""
    systems, mean = found.systems, found.systems.iloc[0]
    said = measures_sentence(f"Means over {topics_of(systems['n_qids'])}", systems["measure"].unique())
    drawn = f", {mean['n_resamples']} resamples" if mean["n_resamples"] else ""
    said.append(f"Intervals, {100 * mean['level']:g}%: {mean['method']}{drawn}, seed {mean['seed']}.")
    if best_rows(systems).any():
        said.append("The best mean of a measure is bold.")
    test = found.pairs["test"].iloc[0]
    said.append(f"Differences: {test}, {corrected_over(found.pairs)}, at the level {found.alpha:g}.")
    # With a baseline, means have stars; otherwise they have letters.
    stars = _star_note(found) if found.baseline is not None else ()
    return said + [f"{line}." for line in (*stars, *_mark_notes(found))]


def _star_note(found: Comparison) -> Iterator[str]:
    if found.significant().any():
        starred = "differs significantly" + (f" from {' or '.join(found.baselines)}" if found.baselines else "")
        yield f"{SIGNIFICANT} {starred}: adjusted p at most {found.alpha:g}"


def _mark_notes(found: Comparison) -> Iterator[str]:
    """Notes on letters and daggers."""
    if found.baseline is None:
        yield "letters: systems that share a letter do not differ significantly"
    for row in found.flags.drop_duplicates(["name", "flag"]).to_dict("records"):
        if row["flag"]:
            yield f"{FLAGGED} {row['name']} {row['flag']}; differences may not reflect its quality"
        elif not pd.isna(row["n_missing"]) and row["n_missing"]:
            yield f"{row['name']} retrieved nothing for {row['n_missing']} topics, scored as empty rankings"


def pairs_caption(found: Comparison, pairs: pd.DataFrame | None = None) -> list[str]:
    """Caption of a table of differences: measures, test, intervals; of some pairs if given."""
    pairs = found.pairs if pairs is None else pairs
    one = pairs.iloc[0]
    drawn = f"{one['n_resamples']} resamples, " if one["n_resamples"] else ""
    return [
        *measures_sentence(f"Differences of systems over {topics_of(pairs['n_qids'])}", pairs["measure"].unique()),
        f"Test: {one['test']}; {corrected_over(pairs)}; level {found.alpha:g}.",
        f"Intervals, {100 * one['level']:g}%: {one['method']}; {drawn}seed {one['seed']}.",
        *(f"{line}." for line in (_EFFECT, *_equivalence(found), *_star_note(found))),
    ]


def _equivalence(found: Comparison) -> Iterator[str]:
    if found.margin is not None:
        yield f"p equivalence: two one-sided tests that a and b differ by {found.margin:g} or more, not adjusted"


def comparison_report(found: Comparison, style: str, *, systems: bool = False) -> str:
    """A verdict for each measure, systems, pairs and notes as text; csv and json hold the frames with all digits.

    ``found``: the comparison. ``style``: one of :data:`vbterrier.report.tables.FORMATS`. JSON is one object (verdict,
    systems, pairs, flags). ``systems``: for csv, which holds one frame: the systems instead of the pairs.
    """
    if style == "csv":
        return rendered(_systems_of(found) if systems else found.pairs, style)
    if style == "json":
        frames = {"systems": _systems_of(found), "pairs": found.pairs, "flags": found.flags}
        parts = {name: json.loads(rendered(frame, style)) for name, frame in frames.items()}
        return json.dumps({"verdict": verdicts(found), **parts}, indent=2, ensure_ascii=False)
    above = [escaped(line, style) for line in verdicts(found)]
    if style == "latex":
        # Verdicts are comments for the author, captions are for readers.
        return "\n\n".join(["\n".join(f"% {line}" for line in above), *_for_papers(found, style)])
    if style == "markdown":
        return "\n\n".join([*above, *_for_papers(found, style)])
    tables = (rendered(table(found), style).strip("\n") for table in (_systems, _pairs))
    return "\n\n".join(["\n".join(above), *tables, "\n".join(_notes(found))])


def _systems_of(found: Comparison) -> pd.DataFrame:
    """The systems with counts of missing topics."""
    flags = found.flags.drop(columns="n_qids")
    return found.systems.merge(flags, on=["name", "measure"], how="left", sort=False)


def _for_papers(found: Comparison, style: str) -> Iterator[str]:
    """Means and differences, each with its caption."""
    caption, label = comparison_caption(found), "tab:systems"
    n_measures = found.systems["measure"].nunique()
    if style == "latex" and n_measures <= MOST:
        yield captioned(_wide(found), style, caption, label)
    else:
        yield rendered(_systems(found), style, caption=caption, label=label, bold=_best(found))
    if style == "latex":
        yield from _pairs_by_measure(found)
    else:
        yield rendered(_pairs(found), style, caption=pairs_caption(found))


def _wide(found: Comparison) -> str:
    """Means and their marks as LaTeX, one column for each measure."""
    frame = found.systems.reset_index(drop=True)
    best = {row for row, _ in _best(found)}
    marks = frame["letters"] if found.baseline is None else _stars(frame, found)
    cells = []
    for row, (value, mark) in enumerate(zip(frame["value"], marks, strict=True)):
        text = latex.number(fixed(value))
        raised = rf"\textsuperscript{{{latex.escaped(mark)}}}" if mark else ""
        cells.append((rf"\textbf{{{text}}}" if row in best else text) + raised)
    index = pd.MultiIndex.from_frame(frame[["name", "measure"]])
    ends = pd.Series(map(brackets, frame["low"], frame["high"]), index=index)
    flagged = {name for measure in frame["measure"].unique() for name in _marks(found, measure)}
    shown = {name: latex.escaped(f"{name}{FLAGGED if name in flagged else ''}") for name in frame["name"].unique()}
    return by_measure(frame.assign(cell=cells), [(rf"{100 * frame['level'].iloc[0]:g}\%", ends)], shown)


def _best(found: Comparison) -> set[tuple[int, str]]:
    """Cells with the best means."""
    best = best_rows(found.systems.reset_index(drop=True))
    return {(int(row), "mean") for row in best[best].index}


def _stars(frame: pd.DataFrame, found: Comparison) -> list[str]:
    significant = found.pairs[found.significant()].sort_values("flag", kind="stable")
    marks = {
        (row.name_a, row.measure): SIGNIFICANT + (FLAGGED if row.flag else "")
        for row in significant.itertuples(index=False)
    }
    return [marks.get(key, "") for key in zip(frame["name"], frame["measure"], strict=True)]


def _marks(found: Comparison, measure: str) -> dict[str, str]:
    """Marks of flagged systems."""
    flags = found.flags
    said = flags[(flags["measure"] == measure) & (flags["flag"] != "")]
    return dict.fromkeys(said["name"], FLAGGED)


def _systems(found: Comparison) -> pd.DataFrame:
    """One row for each system and measure."""
    frame = _systems_of(found).reset_index(drop=True)
    means = frame["value"].map(fixed)
    if found.baseline is not None:
        means += _stars(frame, found)
    text = {"run": _marked(frame, "name", found), "measure": frame["measure"], "mean": means}
    text[_title(frame, "means")] = _range(frame)
    if found.baseline is None:
        text["letters"] = frame["letters"]
    text["topics"] = frame["n_qids"]
    if frame["n_missing"].notna().all():
        text["missing"] = frame["n_missing"]
    return _without_single_measure(pd.DataFrame(text))


def _marked(frame: pd.DataFrame, side: str, found: Comparison) -> list[str]:
    by_measure = {measure: _marks(found, measure) for measure in frame["measure"].unique()}
    return [f"{name}{by_measure[m].get(name, '')}" for name, m in zip(frame[side], frame["measure"], strict=True)]


def _title(frame: pd.DataFrame, of: str) -> str:
    return f"{100 * frame['level'].iloc[0]:g}% of {of}"


def _range(frame: pd.DataFrame) -> pd.Series[str]:
    both = frame["low"].map(fixed) + " to " + frame["high"].map(fixed)
    return both.where(frame["low"].notna(), "")


def _without_single_measure(table: pd.DataFrame) -> pd.DataFrame:
    """Drop the column of measures if there is only one, which the notes name."""
    return table if len(table["measure"].unique()) > 1 else table.drop(columns="measure")


def _pairs_by_measure(found: Comparison) -> Iterator[str]:
    """A LaTeX table for each measure: together they are too wide for a page."""
    every, labels = _pairs(found, one_table=False), itertools.count(1)
    for measure, table in every.groupby("measure", sort=False):
        of = found.pairs[found.pairs["measure"] == measure]
        shown = table.drop(columns="measure")
        shown.columns = pd.Index([_SHORT.get(name, name).replace(" - ", " − ") for name in map(str, shown.columns)])
        yield rendered(
            shown, "latex", caption=[*pairs_caption(found, of), _SHORT_NOTE], label=f"tab:pairs-{next(labels)}"
        )


def _pairs(found: Comparison, *, one_table: bool = True) -> pd.DataFrame:
    frame = found.pairs.reset_index(drop=True)
    flag = frame["flag"].map(lambda said: FLAGGED if said else "")
    star = (SIGNIFICANT + flag).where(found.significant().reset_index(drop=True), "")
    text = {
        "a": _marked(frame, "name_a", found),
        "b": _marked(frame, "name_b", found),
        "measure": frame["measure"],
        "a - b": frame["diff"],
        _title(frame, "a - b"): _range(frame),
        "p adjusted": frame["p_adjusted"].map(_p) + star,
        "effect": frame["effect_size"],
        "won/lost/tied": [
            "" if pd.isna(won) else f"{won}/{lost}/{tied}"
            for won, lost, tied in frame[["wins", "losses", "ties"]].to_numpy()
        ],
    }
    if found.margin is not None:
        text["p equivalence"] = frame["p_equivalence"].map(_p)
    table = pd.DataFrame(text)
    return _without_single_measure(table) if one_table else table


def _p(p: float) -> str:
    # Four decimals would show small p-values as 0, which no p-value of a resampling test is.
    return "" if pd.isna(p) else f"{p:.4f}" if p >= 0.0001 or p == 0 else f"{p:.1e}"  # noqa: PLR2004


def _notes(found: Comparison) -> Iterator[str]:
    """Notes on tests, intervals and marks, one line for each."""
    one = found.pairs.iloc[0]
    by_measure = found.pairs.drop_duplicates("measure")
    topics = ", ".join(f"{row.measure}: {row.n_qids} topics" for row in by_measure.itertuples(index=False))
    n_resamples = max(one["n_resamples"], found.systems["n_resamples"].iloc[0])
    drawn = f"{n_resamples} resamples, " if n_resamples else ""
    yield f"{topics}; test: {one['test']}; {corrected_over(found.pairs)}"
    means = found.systems["method"].iloc[0]
    yield f"intervals: of means, {means}; of differences, {one['method']}; {drawn}seed {one['seed']}"
    yield _EFFECT
    yield from _equivalence(found)
    yield from _star_note(found)
    yield from _mark_notes(found)


def verdicts(found: Comparison) -> list[str]:
    """Verdicts on significant differences, one line for each measure."""
    return [_verdict(found, str(measure)) for measure in found.pairs["measure"].unique()]


def _verdict(found: Comparison, measure: str) -> str:
    of_measure = found.pairs["measure"] == measure
    pairs = found.pairs[of_measure].assign(significant=found.significant()[of_measure])
    marks = _marks(found, measure)
    at = f"at the level {found.alpha:g}"
    if found.baselines:
        said = []
        for base in found.baselines:
            own = pairs[pairs["name_b"] == base]
            differ, rest = own[own["significant"]], own[~own["significant"]]
            groups = {
                "higher": differ[differ["diff"] > 0],
                "lower": differ[differ["diff"] < 0],
                "not significantly different": rest,
            }
            parts = [f"{what}: {_listed(group['name_a'], marks)}" for what, group in groups.items() if len(group)]
            said.append(f"against {_listed([base], marks)} {at}: {'; '.join(parts)}")
        return f"{measure}, {', '.join(said)}"
    if len(pairs) == 1:
        one = pairs.iloc[0]
        a, b = (_listed([one[side]], marks) for side in ("name_a", "name_b"))
        if not one["significant"]:
            return f"{measure}: {a} and {b} do not differ significantly {at}"
        return f"{measure}: {a} and {b} differ significantly {at}: {a} scores higher by {fixed(one['diff'])}"
    best, not_different = best_system(pairs, found.systems[found.systems["measure"] == measure])
    rivals = (
        f"not significantly different: {_listed(not_different, marks)}"
        if not_different
        else "significantly different from all"
    )
    return (
        f"{measure}: {int(pairs['significant'].sum())} of {len(pairs)} pairs of systems differ significantly {at}; "
        f"{_listed([best], marks)} has the {'lowest' if better(measure) == 'lower' else 'highest'} mean, {rivals}"
    )


def _listed(names: Iterable[str], marks: dict[str, str]) -> str:
    every = [f"{name}{marks.get(name, '')}" for name in names]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more


def gate_report(found: ReleaseGate, style: str) -> str:
    """The decision of a release gate with its differences, segments, documents to judge next and exclusions.

    ``found``: the result of :func:`vbterrier.evaluate.release_gate`. ``style``: ``"table"``, ``"markdown"`` (for a pull
    request), ``"json"`` (all columns), or ``"junit"`` (XML: a test for each baseline, which fails for FAIL and is
    skipped for UNKNOWN).
    """
    choice("format", style, GATE_FORMATS)
    frames = {"pairs": found.pairs, "segments": found.segments, "judge": found.judge, "excluded": found.excluded}
    if style == "json":
        parts = {name: json.loads(rendered(frame, style)) for name, frame in frames.items()}
        head = {"decision": found.decision, "exit_code": found.exit_code}
        return json.dumps({**head, **parts}, indent=2, ensure_ascii=False)
    if style == "junit":
        return _junit(found)
    above = escaped(found.summary(), style)
    said = [f"## {above}" if style == "markdown" else above, rendered(_gate_rows(found.pairs), style)]
    if len(found.segments):
        said += ["Segments, which do not change the decision:", rendered(_gate_rows(found.segments), style)]
    if len(found.judge):
        columns = [name for name in ("qid", "docno", "reason") if name in found.judge.columns]
        said += ["Judge next, in this order:", rendered(found.judge[columns], style)]
    elif found.decision == UNKNOWN:
        said.append("No document is listed to judge next: evaluate more queries.")
    said += [escaped(line, style) for line in _gate_notes(found)]
    return "\n\n".join(part.strip("\n") for part in said)


def _gate_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that readers compare."""
    text = {"segment": frame["segment"]} if "segment" in frame.columns else {}
    text |= {"baseline": frame["baseline"], "decision": frame["decision"], "new - baseline": frame["diff"]}
    text |= {f"limits, {100 * frame['level'].iloc[0]:g}% each": _range(frame), "queries": frame["n_qids"]}
    shares = frame[["unjudged", "unjudged_baseline"]].map("{:.1%}".format)
    text["unjudged"] = shares["unjudged"] + " / " + shares["unjudged_baseline"]
    if "weight" in frame.columns:
        text["traffic"] = frame["weight"].map("{:.1%}".format)
    return pd.DataFrame(text)


def _gate_notes(found: ReleaseGate) -> Iterator[str]:
    one = found.pairs.iloc[0]
    corrected = f", corrected for {one['n_tests']} baselines" if one["n_tests"] > 1 else ""
    if len(found.segments):
        corrected += f", segments for {found.segments['n_tests'].iloc[0]} tests"
    looks = f", look {one['look']}" if not pd.isna(one["look"]) else ""
    drawn = f", {one['n_resamples']} draws, seed {one['seed']}" if one["n_resamples"] else ""
    yield (
        f"PASS: the lower limit is above -{one['margin']:g}; FAIL: the upper limit is below. Limits: {one['method']}"
        f"{corrected}{looks}{drawn}. unjudged: documents of the new run / of the baseline."
    )
    for row in found.excluded.to_dict("records"):
        yield f"{row['n']} {row['reason']}" + (f" ({row['examples']})" if row["examples"] else "")


def _junit(found: ReleaseGate) -> str:
    """JUnit XML; control characters, which XML cannot hold, are spelled out."""
    pairs = found.pairs.to_dict("records")
    decisions = [row["decision"] for row in pairs]
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", name="vbterrier gate", tests=str(len(pairs)), errors="0")
    suite.set("failures", str(decisions.count(FAIL)))
    suite.set("skipped", str(decisions.count(UNKNOWN)))
    for row in pairs:
        title = f"{row['name']} is at most {row['margin']:g} below {row['baseline']} by {row['measure']}"
        case = ET.SubElement(suite, "testcase", classname="release_gate", name=printable(title))
        message = f"{row['decision']}: {row['diff']:+.4f}, limits {row['low']:+.4f} to {row['high']:+.4f}"
        tag = {FAIL: "failure", UNKNOWN: "skipped"}.get(row["decision"])
        if tag is not None:
            ET.SubElement(case, tag, message=message)
    out = ET.SubElement(suite, "system-out")
    out.text = "\n".join(map(printable, gate_report(found, "table").splitlines()))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}'
