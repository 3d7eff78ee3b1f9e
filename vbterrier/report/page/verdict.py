"""What can be told, in plain sentences: who is distinguishable from whom, by which measure, and with what test."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import printable
from vbterrier.measures.unjudged import Bootstrapped
from vbterrier.report.captions import best_and_beside, better, parsed, topics_of
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.evaluated import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vbterrier.evaluate.comparison import Comparison
    from vbterrier.report.page.evaluated import ReportNumbers


_LISTED = 8
_LEAST = 0.0001
_CORRECTIONS = {
    "holm": "corrected for all {n} pairs of a measure (Holm)",
    "bh": "with the false discovery rate over all {n} pairs of a measure controlled (Benjamini-Hochberg)",
    "max-t": "corrected for all {n} pairs of a measure (max-T)",
    "none": "not corrected for the {n} pairs of a measure",
}


def sentences(found: ReportNumbers) -> list[str]:
    """The verdict: a sentence for each measure that systems are compared by, and how much to make of them together."""
    if found.comparison is None:
        return _alone(found)
    shared_caption = [
        _verdict(found.comparison, measure, can=not is_hopeless(found, measure)) for measure in found.compared
    ]
    return shared_caption + _disagreements(found.comparison, found.compared)


def test_sentence(found: Comparison) -> str:
    """What makes a difference significant."""
    one = found.pairs.iloc[0]
    n = len(found.pairs) // found.pairs["measure"].nunique()
    corrected = "" if n == 1 else ", " + _CORRECTIONS.get(str(one["correction"]), str(one["correction"])).format(n=n)
    return (
        f"Two systems are distinguishable where p is at most {found.alpha:g}; test, topic by topic: {one['test']}"
        f"{corrected}."
    )


def listed(names: Iterable[object], most: int = _LISTED) -> str:
    """Names in a sentence, the rest counted.

    >>> listed(["a", "b", "c"]), listed("abcd", most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    every = [printable(name) for name in names]
    if len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most} more"
    return f"{', '.join(every[:-1])} and {every[-1]}" if len(every) > 1 else "".join(every)


def of_p(p: float) -> str:
    """A p-value in a sentence.

    >>> of_p(0.0123), of_p(0.00002)
    ('p = 0.0123', 'p < 0.0001')
    """
    return f"p < {_LEAST:g}" if p < _LEAST else f"p = {p:.4f}"


def _alone(found: ReportNumbers) -> list[str]:
    """The means of a single system, or of measures that are compared by nothing."""
    table = found.scores.intervals.drop_duplicates(["name", "measure"])
    said = []
    for row in table.to_dict("records"):
        ends = f" ({100 * row['level']:g}% interval {row['low']:.3f} to {row['high']:.3f})"
        said.append(
            f"{printable(row['name'])} scores {row['value']:.3f} by {row['measure']}"
            f"{'' if math.isnan(row['low']) else ends} over {topics_of([row['n_qids']])}."
        )
    return said


def hopeless(text: str) -> bool:
    """Whether a warning says that no pair can be significant, whatever the systems score."""
    return "nothing can be significant" in text


def is_hopeless(found: ReportNumbers, measure: str) -> bool:
    """Whether no pair could be significant by a measure: too few topics, or too few resamples for so many pairs."""
    others = tuple(f"{other}: " for other in found.compared if other != measure)
    return any(hopeless(text) and not text.startswith(others) for text in found.said)


def _verdict(found: Comparison, measure: str, *, can: bool) -> str:
    of_measure = found.pairs["measure"] == measure
    pairs = found.pairs[of_measure].assign(significant=found.significant()[of_measure])
    means = found.systems[found.systems["measure"] == measure].set_index("name")["value"]
    if len(pairs) == 1:
        return _of_two(found, measure, pairs.iloc[0], means, can=can)
    if found.baseline is not None:
        return _of_baseline(found, measure, pairs, means)
    n_told = int(pairs["significant"].sum())
    if not n_told:
        high, low = means.index[0], means.index[-1]
        span = (
            f"the means go from {means[low]:.3f} ({_named(found, measure, low)}) to {means[high]:.3f} "
            f"({_named(found, measure, high)})"
        )
        none = (
            f"no two of the {len(means)} systems are distinguishable"
            if can
            else f"the test could tell no two of the {len(means)} systems apart, whatever they score"
        )
        return (
            f"{_by(measure)}, {none} over {_topics(pairs)}; "
            f"{span if means[high] > means[low] else f'all means are {means[high]:.3f}'}."
        )
    best, beside = best_and_beside(pairs, found.systems[found.systems["measure"] == measure])
    rivals = f"and is not distinguishable from {listed(beside)}" if beside else "and is distinguishable from all others"
    end = "lowest" if better(measure) == "lower" else "highest"
    are = "is" if n_told == 1 else "are"
    return (
        f"{_by(measure)}, {n_told} of {len(pairs)} pairs of systems {are} distinguishable over {_topics(pairs)}: "
        f"{_named(found, measure, best)} has the {end} mean, {means[best]:.3f}, {rivals}."
    )


def _of_two(found: Comparison, measure: str, pair: pd.Series[Any], means: pd.Series[Any], *, can: bool) -> str:
    a, b = (_named(found, measure, pair[side]) for side in ("name_a", "name_b"))
    both = f"{means[pair['name_a']]:.3f} against {means[pair['name_b']]:.3f}"
    if pair["wins"] == pair["losses"] == 0:
        return f"{_by(measure)}, {a} and {b} score the same on each of {_topics(pair)}: {both}."
    ends = f"{100 * pair['level']:g}% interval {_signed(pair['low'])} to {_signed(pair['high'])}, "
    how = f"{'' if math.isnan(pair['low']) else ends}{of_p(pair['p_adjusted'])}, {_topics(pair)}"
    if pair["significant"]:
        more = "higher" if pair["diff"] > 0 else "lower"
        return f"{_by(measure)}, {a} scores {more} than {b}: {both}, a difference of {_signed(pair['diff'])} ({how})."
    not_told = "does not" if can else "cannot"
    return f"{measure} {not_told} tell {a} and {b} apart: {both}, a difference of {_signed(pair['diff'])} ({how})."


def _of_baseline(found: Comparison, measure: str, pairs: pd.DataFrame, means: pd.Series[Any]) -> str:
    shared_caption, rest = pairs[pairs["significant"]], pairs[~pairs["significant"]]
    groups = {
        "higher": shared_caption[shared_caption["diff"] > 0],
        "lower": shared_caption[shared_caption["diff"] < 0],
    }
    said = [
        f"{listed(_named(found, measure, name) for name in group['name_a'])} score{'s' * (len(group) == 1)} {what}"
        for what, group in groups.items()
        if len(group)
    ]
    if len(rest):
        names = listed(_named(found, measure, name) for name in rest["name_a"])
        said.append(f"{names} {'is' if len(rest) == 1 else 'are'} not distinguishable from it")
    base = _named(found, measure, found.baseline)
    return f"{_by(measure)}, against {base} ({means[str(found.baseline)]:.3f}, {_topics(pairs)}): {'; '.join(said)}."


def _disagreements(found: Comparison, measures: Iterable[str]) -> list[str]:
    """Pairs that a measure tells apart which takes what is unjudged for not relevant, and a bootstrapped one does not.

    Of the same metric only: nDCG beside BNDCG.
    """
    said = []
    for measure in measures:
        own = parsed(measure)
        if not isinstance(own, Bootstrapped):
            continue
        # BNDCG@10 is of nDCG@10, BRBP(p=0.8) of RBP(p=0.8).
        bare = measure.removeprefix("B").casefold()
        plain = next((other for other in measures if other.casefold() == bare), None)
        if plain is not None:
            said += _disagreement(found, measure, plain)
    return said


def _disagreement(found: Comparison, bootstrapped: str, plain: str) -> list[str]:
    wide = found.pairs.assign(shared_caption=found.significant())
    # Which of a pair is called a depends on the means of a measure.
    signs = {
        measure: {
            frozenset((a, b)): (a if diff > 0 else b) if shared_caption else None
            for a, b, diff, shared_caption in rows_of(
                wide[wide["measure"] == measure], "name_a", "name_b", "diff", "told"
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
            f"{plain} tells {listed(gone, 4)}, and {bootstrapped} does not: what decides there are documents that "
            f"nobody judged, which {plain} takes for not relevant."
        )
    if new:
        said.append(f"{bootstrapped} tells {listed(new, 4)}, and {plain} does not.")
    if turned:
        said.append(f"{plain} and {bootstrapped} contradict each other: each tells {listed(turned, 4)}, the other way.")
    return said


def _pair(pair: frozenset[str]) -> str:
    return " from ".join(sorted(pair))


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
