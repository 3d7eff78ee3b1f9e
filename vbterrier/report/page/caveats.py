"""What stands beside a verdict: what nobody judged, what no tagger saw, ties, empty runs, the topics that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.errors import printable
from vbterrier.frames.ranking import TIES_WORTH_A_WARNING
from vbterrier.report.captions import better, topics_of
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.evaluated import rows_of, wide_of
from vbterrier.report.page.verdict import hopeless, is_hopeless, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.report.page.evaluated import ReportNumbers


# Shares from which on a caveat is a warning.
UNJUDGED, APART, TAGGED, MISSING = 0.2, 0.1, 0.5, 0.1
_SHOWN = 5
# Topics below which bootstrap intervals are known to cover less than they say.
_SHORT = 30


class Caveat(NamedTuple):
    """What it is about, what it says, and whether it may turn the verdict around."""

    about: str
    text: str
    grave: bool


def caveats(found: ReportNumbers) -> list[Caveat]:
    """All that is to be kept in mind, what may turn the verdict around first."""
    parts = (_missing, _unjudged, _tagging, _reach, _deciding, _ties, _powerless, _intervals)
    return sorted((caveat for part in parts for caveat in part(found)), key=lambda caveat: not caveat.grave)


def deciding(a: Floats, b: Floats) -> NDArray[np.int64]:
    """The fewest topics without which the mean of ``a`` would no longer be above that of ``b``; empty where it is not.

    >>> deciding(np.array([0.9, 0.5, 0.5]), np.array([0.1, 0.6, 0.5])).tolist()
    [0]
    """
    gain = a - b
    order = np.argsort(-gain, kind="stable")
    left = gain.sum() - np.cumsum(gain[order])
    if not gain.sum() > 0:
        return order[:0]
    # Rounding of sums must not call for a topic more.
    return order[: 1 + int(np.argmax(left <= np.abs(gain).sum() * 1e-12))]


def _missing(found: ReportNumbers) -> Iterator[Caveat]:
    flags = None if found.comparison is None else found.comparison.flags
    flagged = set() if flags is None else set(flags.loc[flags["flag"] != "", "name"].astype(str))
    for name, n_qids, n_missing in rows_of(found.scores.missing, "name", "n_qids", "n_missing"):
        if n_missing:
            text = (
                f"{printable(name)}{FLAGGED * (str(name) in flagged)} returned nothing for {n_missing} of {n_qids} "
                "topics, which score as empty rankings."
            )
            grave = n_missing > MISSING * n_qids
            more = (
                " Its differences may say that a file is incomplete, and nothing about a system: compare on the topics "
                "that all have, too."
            )
            yield Caveat("Empty topics", text + more * grave, grave)


def _unjudged(found: ReportNumbers) -> Iterator[Caveat]:
    if not found.tops:
        return
    shares = {name: float(top.unjudged_share().mean()) for name, top in found.tops.items()}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    where = f"the first {found.depth} documents"
    if not shares[high]:
        yield Caveat("Unjudged documents", f"None: all of {where} of all systems are judged.", grave=False)
        return
    if f"{shares[low]:.1%}" == f"{shares[high]:.1%}":
        of_all = " of all systems" * (len(shares) > 1)
        said = f"{shares[high]:.1%} of {where}{of_all} were never judged."
    else:
        said = (
            f"Of {where}, {shares[low]:.1%} ({printable(low)}) to {shares[high]:.1%} ({printable(high)}) were never "
            "judged."
        )
    apart = shares[high] - shares[low] > APART
    if apart:
        said += f" What takes them for not relevant favours {printable(low)}"
        said += "; look at a bootstrapped measure first." if found.laws else "."
    if found.laws and found.comparison is not None:
        said += (
            f" Tests are over topics and take the expected {found.law} for known; the command vbterrier rank --over "
            "both counts, too, that nobody knows what these documents are."
        )
    yield Caveat("Unjudged documents", said, apart or shares[high] > UNJUDGED)
    whole = {name: int((top.unjudged_share() == 1).sum()) for name, top in found.tops.items()}
    of = [f"{topics_of([n])} of {printable(name)}" for name, n in whole.items() if n]
    if of:
        worth = "are a guess from the prior" if found.laws else "say nothing of the documents"
        text = f"None of {where} is judged for {listed(of)}: scores there {worth}."
        yield Caveat("Topics without judgments", text, grave=True)


def _tagging(found: ReportNumbers) -> Iterator[Caveat]:
    if not found.covered:
        return
    tagged = {name: covered.tagged for name, covered in found.covered.items()}
    low, high = min(tagged, key=tagged.__getitem__), max(tagged, key=tagged.__getitem__)
    span = f"{tagged[low]:.1%}"
    if span != f"{tagged[high]:.1%}":
        span += f" ({printable(low)}) to {tagged[high]:.1%} ({printable(high)})"
    said = f"{span} of the first {found.depth} documents carry a tag."
    oracle = next(iter(found.covered.values())).oracle
    if not np.isnan(oracle):
        said += (
            f" The best ranking under the same tags would reach an expected success of {oracle:.3f}, no system more."
        )
    yield Caveat("Tags", said, tagged[low] < TAGGED)


def _reach(found: ReportNumbers) -> Iterator[Caveat]:
    if found.reach is None:
        return
    pool = found.reach.pool.to_dict("records")[0]
    said = (
        f"Of {pool['n_documents']:,} documents in the pool, {pool['share_unjudged']:.1%} were never judged and count "
        f"as not relevant; {pool['share_without_entities']:.1%} mention no entity, and no entity run reaches them."
    )
    yield Caveat(
        "The linked pool", said, pool["share_unjudged"] > UNJUDGED or pool["share_without_entities"] > UNJUDGED
    )


def _deciding(found: ReportNumbers) -> Iterator[Caveat]:
    if found.comparison is None:
        return
    measure = found.compared[0]
    wide = wide_of(found, measure).dropna()
    less = better(measure) == "lower"
    names = list(wide.mean().sort_values(ascending=less, kind="stable").index)
    baseline = found.comparison.baseline
    # The best against the baseline, or against the next.
    a, b = names[:2] if baseline in (None, names[0]) else (names[0], str(baseline))
    topics = (
        deciding(wide[b].to_numpy(), wide[a].to_numpy()) if less else deciding(wide[a].to_numpy(), wide[b].to_numpy())
    )
    where = "below" if less else "above"
    if not len(topics):
        return
    shown = [str(wide.index[place]) for place in topics]
    if len(topics) == len(wide):
        if len(wide) > 1:
            text = f"None in particular: by {measure}, {printable(a)} is {where} {printable(b)} on every topic."
            yield Caveat("Topics that decide", text, grave=False)
        return
    text = (
        f"Without {len(topics)} of {len(wide)} topics ({listed(shown, _SHOWN)}), the mean {measure} of {printable(a)} "
        f"would not be {where} that of {printable(b)}."
    )
    pairs = found.comparison.pairs
    told = pairs[found.comparison.significant() & (pairs["measure"] == measure)]
    grave = any({*pair} == {a, b} for pair in rows_of(told, "name_a", "name_b"))
    few = len(topics) <= max(1, len(wide) // 20)
    yield Caveat("Topics that decide", text, grave and few)


def _ties(found: ReportNumbers) -> Iterator[Caveat]:
    tied = {name: share for name, share in found.ties.items() if share > TIES_WORTH_A_WARNING}
    if tied:
        said = listed(f"{name} ({share:.0%})" for name, share in tied.items())
        text = (
            f"Scores of the first {found.depth} places are tied in {said}. Their order is trec_eval's, by docno; "
            "another would score differently."
        )
        yield Caveat("Tied scores", text, max(tied.values()) > UNJUDGED)


def _powerless(found: ReportNumbers) -> Iterator[Caveat]:
    """Tests that could say nothing, and those that would have said it of any two topics."""
    for text in found.said:
        if hopeless(text):
            yield Caveat("Few resamples" if "n_resamples=" in text else "Few topics", f"{text}.", grave=True)
        elif "t is infinite" in text:
            yield Caveat("Differences without spread", f"{text[0].upper()}{text[1:]}.", grave=True)


def _intervals(found: ReportNumbers) -> Iterator[Caveat]:
    """Differences whose interval and whose test say different things."""
    if found.comparison is None:
        return
    pairs = found.comparison.pairs
    without_zero = (pairs["low"] > 0) | (pairs["high"] < 0)
    # Where nothing can be significant this is said already.
    powerless = pairs["measure"].map(lambda measure: is_hopeless(found, str(measure))).astype(bool)
    apart = pairs[pairs["low"].notna() & ~powerless & (without_zero != found.comparison.significant())]
    if not len(apart):
        return
    rows = rows_of(apart, "name_a", "name_b", "measure")
    shown = listed((f"{printable(a)} less {printable(b)} by {measure}" for a, b, measure in rows), _SHOWN - 1)
    n_pairs, n_qids, one = len(pairs) // pairs["measure"].nunique(), int(pairs["n_qids"].min()), pairs.iloc[0]
    why = ["intervals are not corrected for the number of pairs"] * (n_pairs > 1 and one["correction"] != "none")
    if n_qids < _SHORT and any(name in one["method"] for name in ("percentile", "bca", "poisson")):
        why.append(f"bootstrap intervals of {n_qids} topics tend to be too short")
    text = (
        f"They disagree on {len(apart)} of {len(pairs)} differences: {shown}. The verdict is the test's; "
        f"{' and '.join(why) or 'the two are made in different ways'}."
    )
    yield Caveat("Intervals and tests", text, grave=False)
