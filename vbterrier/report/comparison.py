"""Comparisons of systems as text."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.report import latex
from vbterrier.report.captions import best_and_beside, best_rows, better, of_measures, topics_of
from vbterrier.report.latex import MOST, brackets, by_measure
from vbterrier.report.tables import captioned, escaped, rendered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.evaluate.comparison import Comparison


SIGNIFICANT, FLAGGED = "*", "†"
_EFFECT = "effect: mean of a - b over its standard deviation between topics; won/lost/tied: topics, as a has them"


def comparison_caption(found: Comparison) -> list[str]:
    """What the means are of, how they were compared, what marks mean, and whose runs are suspect."""
    one, systems = found.pairs.iloc[0], found.systems
    said = of_measures(f"Means over {topics_of(systems['n_qids'])}", systems["measure"].unique())
    drawn = f", {one['n_resamples']} resamples" if one["n_resamples"] else ""
    said.append(f"Intervals, {100 * one['level']:g}%: {one['method']}{drawn}, seed {one['seed']}.")
    if best_rows(systems).any():
        said.append("The best mean of a measure is bold.")
    said.append(
        f"Differences: {one['test']}, correction over the pairs of a measure: {one['correction']}, at the level "
        f"{found.alpha:g}."
    )
    # Means have stars where there is a baseline, letters otherwise.
    stars = _star_said(found) if found.baseline is not None else ()
    return said + [f"{line}." for line in (*stars, *_marks_said(found))]


def notes(found: Comparison) -> Iterator[str]:
    """How the numbers came about, a line for each part."""
    one = found.pairs.iloc[0]
    by_measure = found.pairs.drop_duplicates("measure")
    topics = ", ".join(f"{row.measure}: {row.n_qids} topics" for row in by_measure.itertuples(index=False))
    drawn = f"{one['n_resamples']} resamples, " if one["n_resamples"] else ""
    yield f"{topics}; test: {one['test']}; correction over the pairs of a measure: {one['correction']}"
    yield f"intervals: {one['method']}; {drawn}seed {one['seed']}"
    yield _EFFECT
    yield from _equivalence(found)
    yield from _star_said(found)
    yield from _marks_said(found)


def pairs_caption(found: Comparison, pairs: pd.DataFrame | None = None) -> list[str]:
    """What was compared, and how; of some pairs where they are given."""
    pairs = found.pairs if pairs is None else pairs
    one = pairs.iloc[0]
    drawn = f"{one['n_resamples']} resamples, " if one["n_resamples"] else ""
    return [
        *of_measures(f"Differences of systems over {topics_of(pairs['n_qids'])}", pairs["measure"].unique()),
        f"Test: {one['test']}; correction over the pairs of a measure: {one['correction']}; level {found.alpha:g}.",
        f"Intervals, {100 * one['level']:g}%: {one['method']}; {drawn}seed {one['seed']}.",
        *(f"{line}." for line in (_EFFECT, *_equivalence(found), *_star_said(found))),
    ]


def _equivalence(found: Comparison) -> Iterator[str]:
    if found.margin is not None:
        yield f"p equivalence: of two one-sided tests that a and b differ by {found.margin:g} or more, not adjusted"


def _star_said(found: Comparison) -> Iterator[str]:
    if found.significant().any():
        starred = "differs significantly" + (f" from {found.baseline}" if found.baseline is not None else "")
        yield f"{SIGNIFICANT} {starred}: adjusted p at most {found.alpha:g}"


def _marks_said(found: Comparison) -> Iterator[str]:
    """What letters and daggers mean."""
    if found.baseline is None:
        yield "letters: systems that share one are not significantly different"
    for row in found.flags.drop_duplicates(["name", "flag"]).to_dict("records"):
        if row["flag"]:
            yield f"{FLAGGED} {row['name']} {row['flag']}; differences may say nothing about its quality"
        elif not pd.isna(row["n_missing"]) and row["n_missing"]:
            yield f"{row['name']} retrieved nothing for {row['n_missing']} topics, which score as empty rankings"


_LISTED = 12
# Heads of columns in papers.
_SHORT = {"p adjusted": "p", "won/lost/tied": "w/l/t", "p equivalence": "p equiv."}
_SHORT_SAID = "p: adjusted; w/l/t: won/lost/tied."


def comparison_report(found: Comparison, style: str, *, systems: bool = False) -> str:
    """A verdict on each measure, systems, pairs, and what decided them; csv and json hold the frames with all digits.

    Parameters
    ----------
    found
        What was compared.
    style
        One of :data:`vbterrier.report.tables.FORMATS`. JSON is one object (verdict, systems, pairs, flags).
    systems
        In csv, which holds one frame, the systems in place of the pairs.

    >>> from vbterrier.evaluate.comparison import compare
    >>> new = [0.9, 0.8, 0.7, 0.6, 0.8, 0.9, 0.7, 0.8]
    >>> values = pd.DataFrame({"name": ["old"] * 8 + ["new"] * 8, "qid": [*"12345678"] * 2, "measure": "nDCG@10",
    ...                        "value": [value - 0.1 for value in new] + new})
    >>> print(comparison_report(compare(values), "table").splitlines()[0])
    nDCG@10: new and old are distinguishable at the level 0.05: new scores higher by 0.1000
    """
    if style == "csv":
        return rendered(_systems_of(found) if systems else found.pairs, style)
    if style == "json":
        frames = {"systems": _systems_of(found), "pairs": found.pairs, "flags": found.flags}
        parts = {name: json.loads(rendered(frame, style)) for name, frame in frames.items()}
        return json.dumps({"verdict": verdicts(found), **parts}, indent=2, ensure_ascii=False)
    above = [escaped(line, style) for line in verdicts(found)]
    if style == "latex":
        # Verdicts are for the author, captions for the reader.
        return "\n\n".join(["\n".join(f"% {line}" for line in above), *_for_papers(found, style)])
    if style == "markdown":
        return "\n\n".join([*above, *_for_papers(found, style)])
    tables = (rendered(table(found), style).strip("\n") for table in (_systems, _pairs))
    return "\n\n".join(["\n".join(above), *tables, "\n".join(notes(found))])


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


def _pairs_by_measure(found: Comparison) -> Iterator[str]:
    """A table a measure in LaTeX: all of them side by side do not fit a page."""
    every, labels = _pairs(found, one_table=False), itertools.count(1)
    for measure, table in every.groupby("measure", sort=False):
        of = found.pairs[found.pairs["measure"] == measure]
        shown = table.drop(columns="measure")
        shown.columns = pd.Index([_SHORT.get(name, name).replace(" - ", " − ") for name in map(str, shown.columns)])
        yield rendered(
            shown, "latex", caption=[*pairs_caption(found, of), _SHORT_SAID], label=f"tab:pairs-{next(labels)}"
        )


def verdicts(found: Comparison) -> list[str]:
    """One line a measure: which systems are distinguishable, and which are not."""
    return [_verdict(found, str(measure)) for measure in found.pairs["measure"].unique()]


def _verdict(found: Comparison, measure: str) -> str:
    of_measure = found.pairs["measure"] == measure
    pairs = found.pairs[of_measure].assign(significant=found.significant()[of_measure])
    marks = _marks(found, measure)
    at = f"at the level {found.alpha:g}"
    if found.baseline is not None:
        told, rest = pairs[pairs["significant"]], pairs[~pairs["significant"]]
        groups = {
            "higher": told[told["diff"] > 0],
            "lower": told[told["diff"] < 0],
            "not distinguishable": rest,
        }
        parts = [f"{what}: {_listed(group['name_a'], marks)}" for what, group in groups.items() if len(group)]
        return f"{measure}, against {_listed([found.baseline], marks)} {at}: {'; '.join(parts)}"
    if len(pairs) == 1:
        one = pairs.iloc[0]
        a, b = (_listed([one[side]], marks) for side in ("name_a", "name_b"))
        if not one["significant"]:
            return f"{measure}: {a} and {b} are not distinguishable {at}"
        return f"{measure}: {a} and {b} are distinguishable {at}: {a} scores higher by {one['diff']:.4f}"
    best, beside = best_and_beside(pairs, found.systems[found.systems["measure"] == measure])
    rivals = f"not distinguishable from it: {_listed(beside, marks)}" if beside else "distinguishable from all others"
    return (
        f"{measure}: {int(pairs['significant'].sum())} of {len(pairs)} pairs of systems are distinguishable {at}; "
        f"{_listed([best], marks)} has the {'lowest' if better(measure) == 'lower' else 'highest'} mean, {rivals}"
    )


def _listed(names: Iterable[str], marks: dict[str, str]) -> str:
    every = [f"{name}{marks.get(name, '')}" for name in names]
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more


def _marks(found: Comparison, measure: str) -> dict[str, str]:
    """The mark of each flagged system."""
    flags = found.flags
    said = flags[(flags["measure"] == measure) & (flags["flag"] != "")]
    return dict.fromkeys(said["name"], FLAGGED)


def _marked(frame: pd.DataFrame, side: str, found: Comparison) -> list[str]:
    by_measure = {measure: _marks(found, measure) for measure in frame["measure"].unique()}
    return [f"{name}{by_measure[m].get(name, '')}" for name, m in zip(frame[side], frame["measure"], strict=True)]


def _systems_of(found: Comparison) -> pd.DataFrame:
    """The systems with what is missing of them."""
    flags = found.flags.drop(columns="n_qids")
    return found.systems.merge(flags, on=["name", "measure"], how="left", sort=False)


def _systems(found: Comparison) -> pd.DataFrame:
    """A row a system and measure."""
    frame = _systems_of(found).reset_index(drop=True)
    text = {"run": _marked(frame, "name", found), "measure": frame["measure"], "mean": _means(frame, found)}
    text[_title(frame, "means")] = _range(frame)
    if found.baseline is None:
        text["letters"] = frame["letters"]
    text["topics"] = frame["n_qids"]
    if frame["n_missing"].notna().all():
        text["missing"] = frame["n_missing"]
    return _one_measure_less(pd.DataFrame(text))


def _best(found: Comparison) -> set[tuple[int, str]]:
    """The cells of the best means."""
    best = best_rows(found.systems.reset_index(drop=True))
    return {(int(row), "mean") for row in best[best].index}


def _wide(found: Comparison) -> str:
    """Means and their marks as LaTeX, a column a measure."""
    frame = found.systems.reset_index(drop=True)
    best = {row for row, _ in _best(found)}
    marks = frame["letters"] if found.baseline is None else _stars(frame, found)
    cells = []
    for row, (value, mark) in enumerate(zip(frame["value"], marks, strict=True)):
        text = latex.number(f"{value:.4f}")
        raised = rf"\textsuperscript{{{latex.escaped(mark)}}}" if mark else ""
        cells.append((rf"\textbf{{{text}}}" if row in best else text) + raised)
    index = pd.MultiIndex.from_frame(frame[["name", "measure"]])
    ends = pd.Series(map(brackets, frame["low"], frame["high"]), index=index)
    flagged = {name for measure in frame["measure"].unique() for name in _marks(found, measure)}
    shown = {name: latex.escaped(f"{name}{FLAGGED if name in flagged else ''}") for name in frame["name"].unique()}
    return by_measure(frame.assign(cell=cells), [(rf"{100 * frame['level'].iloc[0]:g}\%", ends)], shown)


def _means(frame: pd.DataFrame, found: Comparison) -> pd.Series[str]:
    """Means, marked where they differ significantly from the baseline's."""
    means = frame["value"].map("{:.4f}".format)
    return means if found.baseline is None else means + _stars(frame, found)


def _stars(frame: pd.DataFrame, found: Comparison) -> list[str]:
    told = found.pairs[found.significant()]
    marks = {
        (row.name_a, row.measure): SIGNIFICANT + (FLAGGED if row.flag else "") for row in told.itertuples(index=False)
    }
    return [marks.get(key, "") for key in zip(frame["name"], frame["measure"], strict=True)]


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
        "won/lost/tied": frame["wins"].astype(str)
        + "/"
        + frame["losses"].astype(str)
        + "/"
        + frame["ties"].astype(str),
    }
    if found.margin is not None:
        text["p equivalence"] = frame["p_equivalence"].map(_p)
    table = pd.DataFrame(text)
    return _one_measure_less(table) if one_table else table


def _one_measure_less(table: pd.DataFrame) -> pd.DataFrame:
    """The table without its column of measures where there is one measure, which the notes name."""
    return table if len(table["measure"].unique()) > 1 else table.drop(columns="measure")


def _title(frame: pd.DataFrame, of: str) -> str:
    return f"{100 * frame['level'].iloc[0]:g}% of {of}"


def _range(frame: pd.DataFrame) -> pd.Series[str]:
    both = frame["low"].map("{:.4f}".format) + " to " + frame["high"].map("{:.4f}".format)
    return both.where(frame["low"].notna(), "")


def _p(p: float) -> str:
    # Four digits would show the smallest as 0, which no p of a resampling test is.
    return "" if pd.isna(p) else f"{p:.4f}" if p >= 0.0001 or p == 0 else f"{p:.1e}"  # noqa: PLR2004
