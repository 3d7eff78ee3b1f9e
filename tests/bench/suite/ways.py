"""Ways to evaluate a run: our measures, and what other packages have that comes nearest."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from suite.engines import FROM_FILES, FROM_FRAMES, IR_MEASURES, OURS, SCORE
from vbterrier.errors import ParameterError, choice, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from suite.synthetic import Collection

    Call = Callable[[], object]

SOURCES = ("memory", "file")
# Our measures by the collections that they are for, each beside the measure of ir_measures that comes nearest.
MEASURES = {
    "judged": {
        "BNDCG@10": "nDCG@10",
        "BNDCG(prior='pool')@10": "nDCG@10",
        "BNDCG(prior='learned')@10": "nDCG@10",
        "BRBP(prior='pool')@10": "nDCG@10",
        "BP(prior='pool')@10": "P@10",
        "BAP(prior='pool')@10": "AP@10",
        "BERR(prior='pool')@10": "ERR@10",
        "BQ(prior='pool')@10": "AP@10",
        "NDCGBound@10": "nDCG@10",
        "Unjudged@10": "Judged@10",
    },
    "intents": dict.fromkeys(("ES@10", "VB@10", "VarPenalty@10"), "alpha_nDCG@10") | {"TopIntent@10": "StRecall@10"},
    "entities": dict.fromkeys(
        (
            "RelCov@20",
            "NonRelCov(undefined='zero')@20",
            "DiscRatio(undefined='zero')@20",
            "OER(undefined='zero')@20",
            "SignalRate(undefined='zero')@20",
            "BaitRate(undefined='zero')@20",
            "TopBait(undefined='zero')",
            "OERCorr(undefined='zero')@20",
            "ObsCov(undefined='zero')",
            "OracleCov(undefined='zero')@20",
        ),
        "R@20",
    ),
    "linking": dict.fromkeys(("LinkP", "NilP", "LinkingP"), "SetP")
    | dict.fromkeys(("LinkR", "NilR", "LinkingR"), "SetR")
    | {"LinkingF1": "SetF"},
}
# Other engines, called as directly as they can be: the package of each, and what it computes on which collections.
PEERS = {
    "pytrec_eval": {"judged": "ndcg_cut_10"},
    "pyndeval": {"intents": "alpha-nDCG@10"},
    "ranx": {"judged": "ndcg@10"},
    "trectools": {"judged": "nDCG@10"},
}


@dataclass(frozen=True)
class Way:
    """One way to get a value for every query.

    Parameters
    ----------
    tool
        Who does it: ``"vbterrier"`` (through ``ir_measures.calc_aggregate``), ``"vbterrier.score"``, or a peer.
    measure
        What is computed, in the tool's own words.
    kind
        The collections that it is for.
    """

    tool: str
    measure: str
    kind: str

    @property
    def name(self) -> str:
        """How tables call it."""
        return f"{self.tool} {self.measure}"

    @property
    def is_ours(self) -> bool:
        """Whether this package does the work."""
        return self.tool in (OURS, SCORE)

    def missing(self) -> str:
        """What keeps it from being tried, or nothing."""
        if self.is_ours or self.tool == IR_MEASURES or importlib.util.find_spec(self.tool) is not None:
            return ""
        return f"{self.tool} is not installed"

    def ready(self, collection: Collection, source: str = "memory") -> Call:
        """The call, with the frames or files that it starts from made before.

        Raises
        ------
        ParameterError
            Another source than ``"memory"`` and ``"file"``.
        """
        choice("source", source, SOURCES)
        if source == "file":
            paths = collection.file("run"), collection.file("qrels")
            return partial(FROM_FILES[self.tool], self, *paths)
        frames = collection.as_theirs if self.tool in (OURS, IR_MEASURES) else collection.frames
        return partial(FROM_FRAMES[self.tool], self, frames["run"], frames["qrels"])


def ways(kind: str) -> list[Way]:
    """What is measured on collections of a kind: our measures, then the peers' nearest, each once."""
    found = [Way(OURS, text, kind) for text in MEASURES[kind]]
    if kind != "linking":
        found += [Way(SCORE, text, kind) for text in MEASURES[kind] if bare(text) in ("BNDCG", "ES", "VB", "RelCov")]
    if kind == "judged":
        found.append(Way(SCORE, "nDCG@10", kind))
    theirs = [Way(IR_MEASURES, text, kind) for text in MEASURES[kind].values()]
    theirs += [Way(tool, of[kind], kind) for tool, of in PEERS.items() if kind in of]
    return [*found, *dict.fromkeys(theirs)]


def way_named(name: str) -> Way:
    """The way that tables call so.

    Raises
    ------
    ParameterError
        There is none.
    """
    every = {way.name: way for kind in MEASURES for way in ways(kind)}
    if name not in every:
        raise ParameterError(f"no way {name!r}; wanted one of those in the table.{nearest(name, every)}")
    return every[name]


def bare(measure: str) -> str:
    """A measure's name without parameters and cutoff.

    >>> bare("OER(undefined='zero')@20")
    'OER'
    """
    return measure.partition("(")[0].partition("@")[0]


def compared(way: Way) -> list[str]:
    """The peers' ways that one of ours stands beside: its nearest in ir_measures first."""
    theirs = MEASURES[way.kind].get(way.measure, way.measure)
    raw = [f"{tool} {of[way.kind]}" for tool, of in PEERS.items() if way.kind in of]
    return [f"{IR_MEASURES} {theirs}", *raw]
