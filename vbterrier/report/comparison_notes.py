"""What is said under comparisons: how they came about, and what marks mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from vbterrier.report.captions import best_rows, of_measures, topics_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.evaluate.comparing import Comparison

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
