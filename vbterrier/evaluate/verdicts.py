"""Sentences on significant differences of systems; ``result`` is a ``Comparison``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import ParameterError, printable
from vbterrier.frames import notebook
from vbterrier.frames.results import first_names
from vbterrier.measures.base import Measure
from vbterrier.measures.text import measures_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures


# Measures of ir_measures that are counts: neither more nor less is better.
_COUNTS = {"NumQ", "NumRel", "NumRet"}
# The mark of systems that retrieved nothing for most topics.
FLAG_MARK = "†"
_MAX_NAMED, MIN_PRINTED_P = 8, 0.0001
# Warnings say so if no difference can be significant.
NO_POWER = "can be significant"


def measure_from_name(text: str) -> ir_measures.Measure | None:
    """Parse the name of a measure; ``None`` if it is not one, since values of other programs may have any name."""
    try:
        (measure,) = measures_from(text)
    except (ParameterError, ValueError):
        return None
    return measure


def better(measure: str) -> str | None:
    """Return ``"higher"`` or ``"lower"``, the better values of a measure; ``None`` if neither is better.

    >>> better("nDCG@10"), better("NonRelCov@20"), better("Unjudged@10"), better("BNDCG(stat='std')@10")
    ('higher', 'lower', None, None)
    """
    parsed_measure = measure_from_name(measure)
    if isinstance(parsed_measure, Measure):
        return parsed_measure.better
    return None if parsed_measure is not None and parsed_measure.NAME in _COUNTS else "higher"


def best_system(pairs: pd.DataFrame, systems: pd.DataFrame) -> tuple[str, list[str]]:
    """Return the system with the best mean of a measure, and the systems that do not differ significantly from it.

    ``pairs``: name_a, name_b, significant. ``systems``: the systems, the highest mean first.
    """
    names = systems["name"].tolist()
    best = names[-1 if better(str(systems["measure"].iloc[0])) == "lower" else 0]
    rest = pairs[~pairs["significant"]]
    compared = zip(rest["name_a"], rest["name_b"], strict=True)
    return best, [b if a == best else a for a, b in compared if best in (a, b)]


def count_range_text(counts: Any, noun: str) -> str:
    """Return a count, or the range of several (a column or a list), with its noun.

    >>> count_range_text([50, 50], "topic"), count_range_text([48, 50], "topic"), count_range_text(1, "query")
    ('50 topics', '48 to 50 topics', '1 query')
    """
    every = [int(count) for count in np.ravel(counts)] or [0]
    low, high = min(every), max(every)
    return ("" if low == high else f"{low:,} to ") + notebook.count_text(high, noun)


def verdict_sentence(result: Any, measure: str, *, few: str = "") -> str:
    """The sentence about one measure of a comparison; ``few``: what no difference can be significant with."""
    of_measure = result.pairs["measure"] == measure
    pairs = result.pairs[of_measure].assign(significant=result.significant()[of_measure])
    means = result.systems[result.systems["measure"] == measure].set_index("name")["value"]
    if len(pairs) == 1:
        return _of_two(result, measure, pairs.iloc[0], means, few=few)
    if result.baselines:
        sentences = [_of_baseline(result, measure, pairs, means, base) for base in result.baselines]
        return " ".join(sentences)
    n_significant = int(pairs["significant"].sum())
    if not n_significant:
        high, low = means.index[0], means.index[-1]
        ends = [f"{means[name]:.3f} ({_flagged_name(result, measure, name)})" for name in (low, high)]
        span = f"the means range from {' to '.join(ends)}"
        systems = f"two of the {len(means)} systems"
        none = f"no {systems} differ significantly"
        if few:
            none = f"this test cannot find a difference between any {systems} with so few {few}"
        return (
            f"{_by(measure)}, {none} over {count_range_text(pairs['n_qids'], 'topic')}; "
            f"{span if means[high] > means[low] else f'all means are {means[high]:.3f}'}."
        )
    best, same = best_system(pairs, result.systems[result.systems["measure"] == measure])
    rivals = (
        f"does not differ significantly from {name_list(same, 4)}" if same else "differs significantly from all others"
    )
    end = "lowest" if better(measure) == "lower" else "highest"
    differ = "differs" if n_significant == 1 else "differ"
    topics = count_range_text(pairs["n_qids"], "topic")
    return (
        f"{_by(measure)}, {n_significant} of {len(pairs)} pairs of systems {differ} significantly over {topics}: "
        f"{_flagged_name(result, measure, best)} has the {end} mean, {means[best]:.3f}, and {rivals}."
    )


def _of_two(result: Any, measure: str, pair: pd.Series[Any], means: pd.Series[Any], *, few: str) -> str:
    a, b = (_flagged_name(result, measure, pair[side]) for side in ("name_a", "name_b"))
    both, topics = (
        f"{means[pair['name_a']]:.3f} against {means[pair['name_b']]:.3f}",
        count_range_text(pair["n_qids"], "topic"),
    )
    # Measures of linking count correct answers, which values alone do not tell.
    if pd.notna(pair["wins"]) and pair["wins"] == pair["losses"] == 0:
        return f"{_by(measure)}, {a} and {b} score the same on each of {topics}: {both}."
    ends = f"{100 * pair['level']:g}% interval {_signed_text(pair['low'])} to {_signed_text(pair['high'])}, "
    p_value = f"p < {MIN_PRINTED_P:g}" if pair["p_adjusted"] < MIN_PRINTED_P else f"p = {pair['p_adjusted']:.4f}"
    how = f"{ends if math.isfinite(pair['high'] - pair['low']) else ''}{p_value}, {topics}"
    if pair["significant"]:
        more = "higher" if pair["diff"] > 0 else "lower"
        return (
            f"{_by(measure)}, {a} scores {more} than {b}: {both}, a difference of {_signed_text(pair['diff'])} ({how})."
        )
    none = f"{a} and {b} do not differ significantly"
    if few:
        none = f"this test cannot find a difference between {a} and {b} with so few {few}"
    return f"{_by(measure)}, {none}: {both}, a difference of {_signed_text(pair['diff'])} ({how})."


def _flagged_name(result: Any, measure: str, name: object) -> str:
    flags = result.flags
    flagged = ((flags["measure"] == measure) & (flags["name"] == name) & (flags["flag"] != "")).any()
    return printable(name) + (FLAG_MARK if flagged else "")


def _by(measure: str) -> str:
    return f"By {measure}{' (lower is better)' * (better(measure) == 'lower')}"


def _signed_text(number: float) -> str:
    return f"{number:.3f}".replace("-", "−")


def _of_baseline(result: Any, measure: str, pairs: pd.DataFrame, means: pd.Series[Any], baseline: str) -> str:
    pairs = pairs[pairs["name_b"] == baseline]
    differ, rest = pairs[pairs["significant"]], pairs[~pairs["significant"]]
    groups = {"higher": differ[differ["diff"] > 0], "lower": differ[differ["diff"] < 0]}
    statements = [
        f"{name_list(_flagged_name(result, measure, name) for name in group['name_a'])} "
        f"score{'s' * (len(group) == 1)} {what}"
        for what, group in groups.items()
        if len(group)
    ]
    if len(rest):
        names = name_list(_flagged_name(result, measure, name) for name in rest["name_a"])
        statements.append(f"{names} {'does' if len(rest) == 1 else 'do'} not differ significantly from it")
    base, topics = _flagged_name(result, measure, baseline), count_range_text(pairs["n_qids"], "topic")
    return f"{_by(measure)}, against {base} ({means[baseline]:.3f}, {topics}): {'; '.join(statements)}."


def name_list(names: Iterable[object], most: int = _MAX_NAMED) -> str:
    """Join names in a sentence; names beyond the first few are counted."""
    every = [printable(name) for name in names]
    if len(every) > most:
        return first_names(every, most)
    return f"{', '.join(every[:-1])} and {every[-1]}" if len(every) > 1 else "".join(every)


def too_few(messages: Iterable[str], measure: str, measures: Sequence[str]) -> str:
    """Return what is too few for a significant difference of a measure: topics or resamples; empty for neither."""
    others = tuple(f"{other}: " for other in measures if other != measure)
    texts = [text for text in messages if NO_POWER in text and not text.startswith(others)]
    return "" if not texts else "resamples" if all("n_resamples=" in text for text in texts) else "topics"


def means_sentence(measure: str, rows: Sequence[Mapping[Any, Any]]) -> str:
    """A sentence on the means of systems by one measure, the best first; differences are not tested."""
    first, last = rows[0], rows[-1]
    topics = count_range_text([row["n_qids"] for row in rows], "topic")
    if math.isnan(first["value"]):
        return f"{measure} is undefined for all topics of {printable(first['name'])}."
    names = [printable(row["name"]) for row in (first, last)]
    level = f"{100 * first['level']:g}% interval "
    if len(rows) == 1:
        return f"{_by(measure)}, {names[0]} scores {_value(first, level)} over {topics}."
    if len(rows) == 2:  # noqa: PLR2004
        return f"{_by(measure)}, {names[0]} scores {_value(first, level)} and {names[1]} {_value(last)} over {topics}."
    ends = ("lowest", "highest") if better(measure) == "lower" else ("highest", "lowest")
    return (
        f"{_by(measure)}, the {ends[0]} of {len(rows)} means over {topics} is {_value(first, level)}, of {names[0]}, "
        f"and the {ends[1]} {_value(last)}, of {names[1]}."
    )


def _value(row: Mapping[Any, Any], level: str = "") -> str:
    ends = f" ({level}{row['low']:.3f} to {row['high']:.3f})" if math.isfinite(row["low"]) else ""
    return f"{row['value']:.3f}{ends}"
