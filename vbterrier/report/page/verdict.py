"""The verdict of a report: sentences about significant differences between systems."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import printable
from vbterrier.measures.unjudged import Bootstrapped
from vbterrier.report.captions import best_system, better, parsed, topics_of
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.evaluated import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.report.page.evaluated import ReportNumbers


_LISTED = 8
_LEAST = 0.0001
_CORRECTIONS = {
    "holm": "corrected for all {n} {of} (Holm)",
    "bh": "with the false discovery rate over all {n} {of} controlled (Benjamini-Hochberg)",
    "max-t": "corrected for all {n} {of} (max-T)",
    "none": "not corrected for the {n} {of}",
}


def sentences(found: ReportNumbers) -> list[str]:
    """A sentence for each measure by which systems are compared, and sentences on measures that disagree."""
    if found.comparison is None:
        return _means_only(found)
    said = [_verdict(found.comparison, measure, can=not has_no_power(found, measure)) for measure in found.compared]
    return said + _disagreements(found.comparison, found.compared)


def agreement(found: ReportNumbers) -> list[str]:
    """A sentence on the measures by which other pairs differ significantly than by the first one, if there are any."""
    if found.comparison is None or len(found.compared) == 1:
        return []
    pairs = found.comparison.pairs[found.comparison.significant()]
    # The order within a pair depends on the measure, so a pair is written with its better system first.
    differ = {measure: set[tuple[str, str]]() for measure in found.compared}
    for measure, a, b, diff in rows_of(pairs, "measure", "name_a", "name_b", "diff"):
        differ[measure].add((a, b) if (diff > 0) == (better(measure) != "lower") else (b, a))
    first, *others = found.compared
    same = [measure for measure in others if differ[measure] == differ[first]]
    reverse = {(b, a) for a, b in differ[first]}
    against = [measure for measure in others if differ[measure] & reverse]
    none = [measure for measure in others if not differ[measure] and measure not in same]
    rest = [measure for measure in others if measure not in same + against + none]
    which = "the same pairs differ significantly" if differ[first] else "no pair differs significantly either"
    said = [f"by {listed(same)}, {which}"] if same else []
    said += [f"by {listed(none)}, no pair differs significantly"] if none else []
    alone = [(measure, *next(iter(differ[measure]))) for measure in rest if len(differ[measure]) == 1]
    said += [f"by {measure}, {printable(a)} is significantly better than {printable(b)}" for measure, a, b in alone]
    many = [measure for measure in rest if len(differ[measure]) > 1]
    said += [f"by {listed(many)}, other pairs differ significantly"] if many else []
    said += [f"{listed(against)} {'contradict' + 's' * (len(against) == 1)} it"] if against else []
    text = "; ".join(said)
    return [f"{text[0].upper()}{text[1:]}."]


def _means_only(found: ReportNumbers) -> list[str]:
    """Means of a single system, or of measures by which systems are not compared."""
    table = found.scores.intervals.drop_duplicates(["name", "measure"])
    said = []
    for row in table.to_dict("records"):
        if math.isnan(row["value"]):
            said.append(f"{row['measure']} is undefined for all topics of {printable(row['name'])}.")
            continue
        ends = f" ({100 * row['level']:g}% interval {row['low']:.3f} to {row['high']:.3f})"
        said.append(
            f"{printable(row['name'])} scores {row['value']:.3f} by {row['measure']}"
            f"{'' if math.isnan(row['low']) else ends} over {topics_of([row['n_qids']])}."
        )
    return said


def _verdict(found: Comparison, measure: str, *, can: bool) -> str:
    of_measure = found.pairs["measure"] == measure
    pairs = found.pairs[of_measure].assign(significant=found.significant()[of_measure])
    means = found.systems[found.systems["measure"] == measure].set_index("name")["value"]
    if len(pairs) == 1:
        return _of_two(found, measure, pairs.iloc[0], means, can=can)
    if found.baseline is not None:
        return _of_baseline(found, measure, pairs, means)
    n_significant = int(pairs["significant"].sum())
    if not n_significant:
        high, low = means.index[0], means.index[-1]
        span = (
            f"the means range from {means[low]:.3f} ({_named(found, measure, low)}) to {means[high]:.3f} "
            f"({_named(found, measure, high)})"
        )
        systems = f"two of the {len(means)} systems"
        none = f"no {systems} differ significantly" if can else f"no {systems} can differ significantly in this test"
        return (
            f"{_by(measure)}, {none} over {_topics(pairs)}; "
            f"{span if means[high] > means[low] else f'all means are {means[high]:.3f}'}."
        )
    best, not_different = best_system(pairs, found.systems[found.systems["measure"] == measure])
    rivals = (
        f"does not differ significantly from {listed(not_different, 4)}"
        if not_different
        else "differs significantly from all others"
    )
    end = "lowest" if better(measure) == "lower" else "highest"
    differ = "differs" if n_significant == 1 else "differ"
    return (
        f"{_by(measure)}, {n_significant} of {len(pairs)} pairs of systems {differ} significantly over "
        f"{_topics(pairs)}: {_named(found, measure, best)} has the {end} mean, {means[best]:.3f}, and {rivals}."
    )


def _of_two(found: Comparison, measure: str, pair: pd.Series[Any], means: pd.Series[Any], *, can: bool) -> str:
    a, b = (_named(found, measure, pair[side]) for side in ("name_a", "name_b"))
    both = f"{means[pair['name_a']]:.3f} against {means[pair['name_b']]:.3f}"
    if pair["wins"] == pair["losses"] == 0:
        return f"{_by(measure)}, {a} and {b} score the same on each of {_topics(pair)}: {both}."
    ends = f"{100 * pair['level']:g}% interval {_signed(pair['low'])} to {_signed(pair['high'])}, "
    how = f"{ends if math.isfinite(pair['high'] - pair['low']) else ''}{of_p(pair['p_adjusted'])}, {_topics(pair)}"
    if pair["significant"]:
        more = "higher" if pair["diff"] > 0 else "lower"
        return f"{_by(measure)}, {a} scores {more} than {b}: {both}, a difference of {_signed(pair['diff'])} ({how})."
    differ = "are not distinguished with these topics" if can else "cannot differ significantly in this test"
    return f"{_by(measure)}, {a} and {b} {differ}: {both}, a difference of {_signed(pair['diff'])} ({how})."


def _named(found: Comparison, measure: str, name: object) -> str:
    flags = found.flags
    flagged = ((flags["measure"] == measure) & (flags["name"] == name) & (flags["flag"] != "")).any()
    return printable(name) + (FLAGGED if flagged else "")


def _by(measure: str) -> str:
    return f"By {measure}{' (lower is better)' * (better(measure) == 'lower')}"


def _topics(pairs: pd.DataFrame | pd.Series[Any]) -> str:
    return topics_of(pairs["n_qids"] if isinstance(pairs["n_qids"], pd.Series) else [pairs["n_qids"]])


def _signed(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")


def _of_baseline(found: Comparison, measure: str, pairs: pd.DataFrame, means: pd.Series[Any]) -> str:
    differ, rest = pairs[pairs["significant"]], pairs[~pairs["significant"]]
    groups = {"higher": differ[differ["diff"] > 0], "lower": differ[differ["diff"] < 0]}
    said = [
        f"{listed(_named(found, measure, name) for name in group['name_a'])} score{'s' * (len(group) == 1)} {what}"
        for what, group in groups.items()
        if len(group)
    ]
    if len(rest):
        names = listed(_named(found, measure, name) for name in rest["name_a"])
        said.append(f"{names} {'is' if len(rest) == 1 else 'are'} not distinguished from it with these topics")
    base = _named(found, measure, found.baseline)
    return f"{_by(measure)}, against {base} ({means[str(found.baseline)]:.3f}, {_topics(pairs)}): {'; '.join(said)}."


def _disagreements(found: Comparison, measures: Iterable[str]) -> list[str]:
    """Pairs that differ significantly by a bootstrapped measure or by its plain version, but not by both.

    The plain version, as nDCG of BNDCG, treats unjudged documents as non-relevant.
    """
    said = []
    for measure in measures:
        own = parsed(measure)
        if not isinstance(own, Bootstrapped):
            continue
        # The plain version of BNDCG@10 is nDCG@10, that of BRBP(p=0.8) is RBP(p=0.8).
        bare = measure.removeprefix("B").casefold()
        plain = next((other for other in measures if other.casefold() == bare), None)
        if plain is not None:
            said += _disagreement(found, measure, plain)
    return said


def _disagreement(found: Comparison, bootstrapped: str, plain: str) -> list[str]:
    wide = found.pairs.assign(significant=found.significant())
    # The order within a pair depends on the measure, so the sign of a difference is the better system's name.
    signs = {
        measure: {
            frozenset((a, b)): (a if diff > 0 else b) if significant else None
            for a, b, diff, significant in rows_of(
                wide[wide["measure"] == measure], "name_a", "name_b", "diff", "significant"
            )
        }
        for measure in (bootstrapped, plain)
    }
    both = [(signs[plain][pair], signs[bootstrapped].get(pair), pair) for pair in signs[plain]]
    gone = [_pair(pair) for one, other, pair in both if one is not None and other is None]
    new = [_pair(pair) for one, other, pair in both if one is None and other is not None]
    turned = [_pair(pair) for one, other, pair in both if None not in (one, other) and one != other]
    said = []
    if gone:
        said.append(
            f"By {plain}, but not by {bootstrapped}, these systems differ significantly: {listed(gone, 4)}. The "
            f"difference depends on unjudged documents, which {plain} treats as non-relevant."
        )
    if new:
        said.append(f"By {bootstrapped}, but not by {plain}, these systems differ significantly: {listed(new, 4)}.")
    if turned:
        both_ways = f"significant differences in opposite directions: {listed(turned, 4)}"
        said.append(f"{plain} and {bootstrapped} contradict each other, with {both_ways}.")
    return said


def _pair(pair: frozenset[str]) -> str:
    return " vs. ".join(sorted(pair))


def test_sentence(found: Comparison) -> str:
    """The test, its level and its correction in a sentence."""
    one = found.pairs.iloc[0]
    n, n_measures = int(one["n_tests"]), found.pairs["measure"].nunique()
    of = "pairs of a measure" if n < len(found.pairs) or n_measures == 1 else "tests of all measures"
    corrected = "" if n == 1 else ", " + _CORRECTIONS[str(one["correction"])].format(n=n, of=of)
    if n < len(found.pairs):
        corrected += f"; {len(found.pairs)} tests of {n_measures} measures in all"
    return f"A difference is significant if p is at most {found.alpha:g}; test over topics: {one['test']}{corrected}."


def listed(names: Iterable[object], most: int = _LISTED) -> str:
    """Join names in a sentence; names beyond the first few are counted.

    >>> listed(["a", "b", "c"]), listed("abcd", most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    every = [printable(name) for name in names]
    if len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most} more"
    return f"{', '.join(every[:-1])} and {every[-1]}" if len(every) > 1 else "".join(every)


def of_p(p: float) -> str:
    """Format a p-value.

    >>> of_p(0.0123), of_p(0.00002)
    ('p = 0.0123', 'p < 0.0001')
    """
    return f"p < {_LEAST:g}" if p < _LEAST else f"p = {p:.4f}"


def says_no_power(text: str) -> bool:
    """Return True if a warning says that no difference can be significant."""
    return "can be significant" in text


def has_no_power(found: ReportNumbers, measure: str) -> bool:
    """Return True if no difference of a measure can be significant: too few topics, or too few resamples."""
    external = tuple(f"{other}: " for other in found.compared if other != measure)
    return any(says_no_power(text) and not text.startswith(external) for text in found.messages)
