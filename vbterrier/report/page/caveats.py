"""Caveats of a verdict: unjudged documents, tags, ties, empty and influential topics, weak tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.errors import printable
from vbterrier.frames.ranking import MAX_TIED_SHARE
from vbterrier.report.captions import better, topics_of
from vbterrier.report.comparison import FLAGGED
from vbterrier.report.page.evaluated import rows_of, wide_of
from vbterrier.report.page.verdict import listed, says_no_power

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.annotations import Floats
    from vbterrier.report.page.evaluated import ReportNumbers


# A caveat is serious above these shares.
UNJUDGED, APART, TAGGED, MISSING = 0.2, 0.1, 0.5, 0.1
_SHOWN = 5
# With fewer topics, bootstrap intervals are known to cover less than their level.


class Caveat(NamedTuple):
    """Subject and text of a caveat; serious if it may reverse the verdict."""

    about: str
    text: str
    serious: bool


def caveats(found: ReportNumbers) -> list[Caveat]:
    """All caveats of a verdict, serious ones first."""
    parts = (_judgments, _missing, _unjudged, _tagging, _reach, _influential, _ties, _powerless)
    return sorted((caveat for part in parts for caveat in part(found)), key=lambda caveat: not caveat.serious)


def _judgments(found: ReportNumbers) -> Iterator[Caveat]:
    for note in found.notes:
        yield Caveat("Judgments", f"{note.text[0].upper()}{note.text[1:]}.", note.serious)


def _missing(found: ReportNumbers) -> Iterator[Caveat]:
    flags = None if found.comparison is None else found.comparison.flags
    flagged = set() if flags is None else set(flags.loc[flags["flag"] != "", "name"].astype(str))
    for name, n_qids, n_missing in rows_of(found.scores.missing, "name", "n_qids", "n_missing"):
        if n_missing:
            text = (
                f"{printable(name)}{FLAGGED * (str(name) in flagged)} returned nothing for {n_missing} of {n_qids} "
                "topics; they score as empty rankings."
            )
            serious = n_missing > MISSING * n_qids
            more = " The file may be incomplete: compare the systems also on the topics that all of them have."
            yield Caveat("Empty topics", text + more * serious, serious)


def _unjudged(found: ReportNumbers) -> Iterator[Caveat]:
    if not found.tops:
        return
    shares = {name: float(top.unjudged_share().mean()) for name, top in found.tops.items()}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    where = f"the first {found.cutoff} documents"
    if not shares[high]:
        yield Caveat("Unjudged documents", f"None: all of {where} of all systems are judged.", serious=False)
        return
    if f"{shares[low]:.1%}" == f"{shares[high]:.1%}":
        of_all = " of all systems" * (len(shares) > 1)
        said = f"{shares[high]:.1%} of {where}{of_all} are unjudged."
    else:
        said = (
            f"Of {where}, {shares[low]:.1%} ({printable(low)}) to {shares[high]:.1%} ({printable(high)}) are unjudged."
        )
    apart = shares[high] - shares[low] > APART
    if apart:
        said += f" Measures that treat unjudged documents as non-relevant favour {printable(low)}"
        said += "; prefer a bootstrapped measure." if found.distributions else "."
    if found.distributions and found.comparison is not None:
        said += (
            f" The tests are over topics and treat the expected {found.bootstrapped} as exact; "
            '"vbterrier rank --over both" includes the uncertainty of unjudged documents.'
        )
    yield Caveat("Unjudged documents", said, apart or shares[high] > UNJUDGED)
    whole = {name: int((top.unjudged_share() == 1).sum()) for name, top in found.tops.items()}
    of = [f"{topics_of([n])} of {printable(name)}" for name, n in whole.items() if n]
    if of:
        effect = (
            "depend on the model of unjudged documents alone" if found.distributions else "are not evidence of quality"
        )
        text = f"None of {where} is judged for {listed(of)}: these scores {effect}."
        yield Caveat("Topics without judgments", text, serious=True)


def _tagging(found: ReportNumbers) -> Iterator[Caveat]:
    tagged = {name: covered.tagged for name, covered in found.covered.items() if not np.isnan(covered.tagged)}
    if not tagged:
        return
    low, high = min(tagged, key=tagged.__getitem__), max(tagged, key=tagged.__getitem__)
    span = f"{tagged[low]:.1%}"
    if span != f"{tagged[high]:.1%}":
        span += f" ({printable(low)}) to {tagged[high]:.1%} ({printable(high)})"
    said = f"{span} of the first {found.cutoff} documents have a tag."
    oracle = next(iter(found.covered.values())).oracle
    if not np.isnan(oracle):
        said += f" The best possible ranking under the same tags has an expected success of {oracle:.3f}."
    yield Caveat("Tags", said, tagged[low] < TAGGED)


def _reach(found: ReportNumbers) -> Iterator[Caveat]:
    if found.reach is None:
        return
    pool = found.reach.pool.to_dict("records")[0]
    said = (
        f"Of {pool['n_documents']:,} documents in the pool, {pool['share_unjudged']:.1%} are unjudged and treated as "
        f"non-relevant; {pool['share_without_entities']:.1%} mention no entity, so no entity run reaches them."
    )
    serious = pool["share_unjudged"] > UNJUDGED or pool["share_without_entities"] > UNJUDGED
    yield Caveat("The linked pool", said, serious)


def _influential(found: ReportNumbers) -> Iterator[Caveat]:
    if found.comparison is None:
        return
    measure = found.compared[0]
    wide = wide_of(found, measure).dropna()
    lower = better(measure) == "lower"
    names = list(wide.mean().sort_values(ascending=lower, kind="stable").index)
    baseline = found.comparison.baseline
    # The best system against the baseline, or against the second best.
    a, b = names[:2] if baseline in (None, names[0]) else (names[0], str(baseline))
    first, second = (wide[name].to_numpy() for name in ((b, a) if lower else (a, b)))
    topics = influential_topics(first, second)
    where = "below" if lower else "above"
    if not len(topics):
        return
    shown = [str(wide.index[place]) for place in topics]
    if len(topics) == len(wide):
        if len(wide) > 1:
            text = f"None in particular: by {measure}, {printable(a)} is {where} {printable(b)} on every topic."
            yield Caveat("Influential topics", text, serious=False)
        return
    text = (
        f"Without {len(topics)} of {len(wide)} topics ({listed(shown, _SHOWN)}), the mean {measure} of {printable(a)} "
        f"would not be {where} that of {printable(b)}."
    )
    pairs = found.comparison.pairs
    significant = pairs[found.comparison.significant() & (pairs["measure"] == measure)]
    differ = any({*pair} == {a, b} for pair in rows_of(significant, "name_a", "name_b"))
    few = len(topics) <= max(1, len(wide) // 20)
    yield Caveat("Influential topics", text, differ and few)


def _ties(found: ReportNumbers) -> Iterator[Caveat]:
    tied = {name: share for name, share in found.ties.items() if share > MAX_TIED_SHARE}
    if tied:
        said = listed(f"{name} ({share:.0%})" for name, share in tied.items())
        text = (
            f"Scores of the first {found.cutoff} documents are tied in {said}. Ties are broken by docno, as trec_eval "
            "does; another order would give other values."
        )
        yield Caveat("Tied scores", text, max(tied.values()) > UNJUDGED)


def _powerless(found: ReportNumbers) -> Iterator[Caveat]:
    """Tests that cannot find a difference, and tests with an infinite statistic."""
    for text in found.messages:
        if says_no_power(text):
            yield Caveat("Few resamples" if "n_resamples=" in text else "Few topics", f"{text}.", serious=True)
        elif "t is infinite" in text:
            yield Caveat("Differences without variance", f"{text[0].upper()}{text[1:]}.", serious=True)


def influential_topics(a: Floats, b: Floats) -> NDArray[np.int64]:
    """The fewest topics without which the mean of ``a`` is not above that of ``b``; empty if it is not above it.

    >>> influential_topics(np.array([0.9, 0.5, 0.5]), np.array([0.1, 0.6, 0.5])).tolist()
    [0]
    """
    gain = a - b
    order = np.argsort(-gain, kind="stable")
    left = gain.sum() - np.cumsum(gain[order])
    if not gain.sum() > 0:
        return order[:0]
    # Without the tolerance, rounding of sums could add one topic.
    return order[: 1 + int(np.argmax(left <= np.abs(gain).sum() * 1e-12))]
