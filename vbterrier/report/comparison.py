"""Comparisons of systems as text: what can be told first, then the numbers, then how they came about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.report.tables import escaped, rendered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.evaluate.comparing import Comparison

SIGNIFICANT, FLAGGED = "*", "†"
_LISTED = 12


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

    >>> from vbterrier.evaluate.comparing import compare
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
    table, best = _systems(found)
    first = rendered(table, style, bold=best).strip("\n")
    second = rendered(_pairs(found), style).strip("\n")
    above, below = ([escaped(line, style) for line in lines] for lines in (verdicts(found), _notes(found)))
    if style == "latex":
        # Verdicts are for the author, notes for the reader.
        above, below = (
            [f"% {line}" for line in above],
            ["{\\footnotesize\\noindent", *(f"{line}." for line in below), "\\par}"],
        )
        return "\n".join([*above, first, "", "\\bigskip", "", second, "", *below])
    gap = "\n\n" if style == "markdown" else "\n"
    return "\n\n".join([gap.join(above), first, second, gap.join(below)])


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
        groups = {"higher": told[told["diff"] > 0], "lower": told[told["diff"] < 0], "not distinguishable": rest}
        parts = [f"{what}: {_listed(group['name_a'], marks)}" for what, group in groups.items() if len(group)]
        return f"{measure}, against {_listed([found.baseline], marks)} {at}: {'; '.join(parts)}"
    if len(pairs) == 1:
        one = pairs.iloc[0]
        a, b = (_listed([one[side]], marks) for side in ("name_a", "name_b"))
        if not one["significant"]:
            return f"{measure}: {a} and {b} are not distinguishable {at}"
        return f"{measure}: {a} and {b} are distinguishable {at}: {a} scores higher by {one['diff']:.4f}"
    best = found.systems.loc[found.systems["measure"] == measure, "name"].iloc[0]
    beside = pairs[~pairs["significant"] & (pairs["name_a"] == best)]
    rivals = (
        f"not distinguishable from it: {_listed(beside['name_b'], marks)}"
        if len(beside)
        else "distinguishable from all others"
    )
    return (
        f"{measure}: {int(pairs['significant'].sum())} of {len(pairs)} pairs of systems are distinguishable {at}; "
        f"{_listed([best], marks)} has the highest mean, {rivals}"
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


def _systems(found: Comparison) -> tuple[pd.DataFrame, set[tuple[int, str]]]:
    """A row a system and measure, and the cells with the highest means."""
    frame = _systems_of(found).reset_index(drop=True)
    text = {"run": _marked(frame, "name", found), "measure": frame["measure"], "mean": _means(frame, found)}
    text[_title(frame, "means")] = _range(frame)
    if found.baseline is None:
        text["letters"] = frame["letters"]
    text["topics"] = frame["n_qids"]
    if frame["n_missing"].notna().all():
        text["missing"] = frame["n_missing"]
    highest = frame["value"] == frame.groupby("measure")["value"].transform("max")
    return _one_measure_less(pd.DataFrame(text)), {(int(row), "mean") for row in highest[highest].index}


def _means(frame: pd.DataFrame, found: Comparison) -> pd.Series[str]:
    """Means, marked where they differ significantly from the baseline's."""
    means = frame["value"].map("{:.4f}".format)
    if found.baseline is None:
        return means
    told = found.pairs[found.significant()]
    marks = {
        (row.name_a, row.measure): SIGNIFICANT + (FLAGGED if row.flag else "") for row in told.itertuples(index=False)
    }
    return means + [marks.get(key, "") for key in zip(frame["name"], frame["measure"], strict=True)]


def _pairs(found: Comparison) -> pd.DataFrame:
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
    return _one_measure_less(pd.DataFrame(text))


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


def _notes(found: Comparison) -> Iterator[str]:
    one = found.pairs.iloc[0]
    by_measure = found.pairs.drop_duplicates("measure")
    topics = ", ".join(f"{row.measure}: {row.n_qids} topics" for row in by_measure.itertuples(index=False))
    drawn = f"{one['n_resamples']} resamples, " if one["n_resamples"] else ""
    yield f"{topics}; test: {one['test']}; correction over the pairs of a measure: {one['correction']}"
    yield f"intervals: {one['method']}; {drawn}seed {one['seed']}"
    yield "effect: mean of a - b over its standard deviation between topics; won/lost/tied: topics, as a has them"
    if found.significant().any():
        starred = "differs significantly" + (f" from {found.baseline}" if found.baseline is not None else "")
        yield f"{SIGNIFICANT} {starred}: adjusted p at most {found.alpha:g}"
    if found.baseline is None:
        yield "letters: systems that share one are not significantly different"
    if found.margin is not None:
        yield f"p equivalence: of two one-sided tests that a and b differ by {found.margin:g} or more, not adjusted"
    for row in found.flags.drop_duplicates(["name", "flag"]).to_dict("records"):
        if row["flag"]:
            yield f"{FLAGGED} {row['name']} {row['flag']}; differences may say nothing about its quality"
        elif not pd.isna(row["n_missing"]) and row["n_missing"]:
            yield f"{row['name']} retrieved nothing for {row['n_missing']} topics, which score as empty rankings"
