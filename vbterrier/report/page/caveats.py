"""What stands beside a verdict: what nobody judged, what no tagger saw, ties, empty runs, the topics that decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vbterrier.errors import printable
from vbterrier.frames.ranked import TIES_WORTH_A_WARNING
from vbterrier.report.page.rows import rows_of, wide_of
from vbterrier.report.page.verdict import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from vbterrier.report.page.evaluated import Found

    Floats = NDArray[np.float64]

# Shares from which on a caveat is a warning.
UNJUDGED, APART, TAGGED, MISSING = 0.2, 0.1, 0.5, 0.1
_SHOWN = 5


class Caveat(NamedTuple):
    """What it is about, what it says, and whether it may turn the verdict around."""

    about: str
    text: str
    grave: bool


def caveats(found: Found) -> list[Caveat]:
    """All that is to be kept in mind, what may turn the verdict around first."""
    parts = (_missing, _unjudged, _tagging, _reach, _deciding, _ties, _few)
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


def _missing(found: Found) -> Iterator[Caveat]:
    for name, n_qids, n_missing in rows_of(found.scores.missing, "name", "n_qids", "n_missing"):
        if n_missing:
            text = (
                f"{printable(name)} returned nothing for {n_missing} of {n_qids} topics, which score as empty rankings."
            )
            grave = n_missing > MISSING * n_qids
            more = (
                " Its differences may say that a file is incomplete, and nothing about a system: compare on the topics "
                "that all have, too."
            )
            yield Caveat("Empty topics", text + more * grave, grave)


def _unjudged(found: Found) -> Iterator[Caveat]:
    if not found.tops:
        return
    shares = {name: float(top.unjudged_share().mean()) for name, top in found.tops.items()}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    where = f"the first {found.depth} documents"
    if not shares[high]:
        yield Caveat("Unjudged documents", f"None: all of {where} of all systems are judged.", grave=False)
        return
    if len(shares) == 1:
        said = f"{shares[high]:.1%} of {where} were never judged."
    else:
        said = (
            f"Of {where}, {shares[low]:.1%} ({printable(low)}) to {shares[high]:.1%} ({printable(high)}) were never "
            "judged."
        )
    apart = shares[high] - shares[low] > APART
    if apart:
        said += f" What takes them for not relevant favours {printable(low)}"
        said += "; look at a bootstrapped measure first." if found.laws else "."
    yield Caveat("Unjudged documents", said, apart or shares[high] > UNJUDGED)
    whole = {name: int((top.unjudged_share() == 1).sum()) for name, top in found.tops.items()}
    most = max(whole, key=whole.__getitem__)
    if whole[most]:
        n = f"{whole[most]} topic{'s' * (whole[most] > 1)}"
        worth = "are a guess from the prior" if found.laws else "say nothing of its documents"
        of = f"the first {found.depth} documents of {printable(most)}"
        text = f"For {n} none of {of} is judged: its scores there {worth}."
        yield Caveat("Topics without judgments", text, grave=True)


def _tagging(found: Found) -> Iterator[Caveat]:
    if not found.covered:
        return
    tagged = {name: covered.tagged for name, covered in found.covered.items()}
    low, high = min(tagged, key=tagged.__getitem__), max(tagged, key=tagged.__getitem__)
    span = f"{tagged[low]:.1%}" if low == high else f"{tagged[low]:.1%} ({printable(low)}) to {tagged[high]:.1%}"
    said = f"{span}{f' ({printable(high)})' if low != high else ''} of the first {found.depth} documents carry a tag."
    oracle = next(iter(found.covered.values())).oracle
    if not np.isnan(oracle):
        said += (
            f" The best ranking under the same tags would reach an expected success of {oracle:.3f}, no system more."
        )
    yield Caveat("Tags", said, tagged[low] < TAGGED)


def _reach(found: Found) -> Iterator[Caveat]:
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


def _deciding(found: Found) -> Iterator[Caveat]:
    if found.comparison is None:
        return
    measure = found.compared[0]
    wide = wide_of(found, measure).dropna()
    names = list(wide.mean().sort_values(ascending=False, kind="stable").index)
    baseline = found.comparison.baseline
    # The best against the baseline, or against the next.
    a, b = names[:2] if baseline in (None, names[0]) else (names[0], str(baseline))
    topics = deciding(wide[a].to_numpy(), wide[b].to_numpy())
    if not len(topics):
        return
    shown = [str(wide.index[place]) for place in topics]
    text = (
        f"Without {len(topics)} of {len(wide)} topics ({listed(shown, _SHOWN)}), the mean {measure} of {printable(a)} "
        f"would not be above that of {printable(b)}."
    )
    pairs = found.comparison.pairs
    told = pairs[found.comparison.significant() & (pairs["measure"] == measure)]
    grave = any({*pair} == {a, b} for pair in rows_of(told, "name_a", "name_b"))
    few = len(topics) <= max(1, len(wide) // 20)
    yield Caveat("Topics that decide", text, grave and few)


def _ties(found: Found) -> Iterator[Caveat]:
    tied = {name: share for name, share in found.ties.items() if share > TIES_WORTH_A_WARNING}
    if tied:
        said = listed(f"{name} ({share:.0%})" for name, share in tied.items())
        text = (
            f"Scores of the first {found.depth} places are tied in {said}. Their order is trec_eval's, by docno; "
            "another would score differently."
        )
        yield Caveat("Tied scores", text, max(tied.values()) > UNJUDGED)


def _few(found: Found) -> Iterator[Caveat]:
    told = [text for text in found.said if "can be significant" in text]
    for text in told:
        yield Caveat("Few topics", text[0].upper() + text[1:] + ".", grave=True)
