"""Ways to evaluate a run: our measures, and what other packages have that comes nearest."""

import importlib.util
from dataclasses import dataclass
from functools import partial

from suite.engines import FROM_FILES, FROM_FRAMES, IR_MEASURES, OURS, SCORE

SOURCES = ("memory", "file")
# Our measures by the collections that they are for, each beside the measure of ir_measures that comes nearest.
MEASURES = {
    "judged": {
        "ENDCG@10": "nDCG@10",
        "BNDCG@10": "nDCG@10",
        "BNDCG(prior='pool')@10": "nDCG@10",
        "BNDCG(prior='run',all_unjudged='pool')@10": "nDCG@10",
        "BRBP@10": "nDCG@10",
        "BP@10": "P@10",
        "BAP@10": "AP@10",
        "BERR@10": "ERR@10",
        "BQ@10": "AP@10",
        "NDCGBound(max_grade=3)@10": "nDCG@10",
        "Unjudged@10": "Judged@10",
    },
    "intents": dict.fromkeys(("ES@10", "VB@10", "VarPenalty@10"), "alpha_nDCG@10") | {"TopIntent@10": "StRecall@10"},
    "entities": dict.fromkeys(
        ("RelCov@20", "DiscRatio(undefined='zero')@20", "OracleCov(undefined='zero')@20"), "R@20"
    ),
    "linking": {"LinkP": "SetP", "NilR": "SetR", "LinkingF1": "SetF"},
}
# Measures that ``score`` alone evaluates, since ir_measures may select topics: they depend on all runs, or all topics.
OF_SCORE = ("ENDCG", "LinkP", "NilR", "LinkingF1")
# Other engines, called as directly as they can be: the package of each, and what it computes on which collections.
PEERS = {
    "pytrec_eval": {"judged": "ndcg_cut_10"},
    "pyndeval": {"intents": "alpha-nDCG@10"},
    "ranx": {"judged": "ndcg@10"},
    "trectools": {"judged": "nDCG@10"},
}


@dataclass(frozen=True)
class Way:
    """One way to get a value for every query of a kind of collections.

    The tool is ``"vbterrier"`` (through ``ir_measures.calc_aggregate``), ``"vbterrier.score"`` or a peer; the measure
    is written in the tool's own words.
    """

    tool: str
    measure: str
    kind: str

    @property
    def name(self):
        """How tables call it."""
        return f"{self.tool} {self.measure}"

    @property
    def is_ours(self):
        """Whether this package does the work."""
        return self.tool in (OURS, SCORE)

    def missing(self):
        """What keeps it from being tried, or nothing."""
        if self.is_ours or self.tool == IR_MEASURES or importlib.util.find_spec(self.tool) is not None:
            return ""
        return f"{self.tool} is not installed"

    def ready(self, collection, source="memory"):
        """The call, with the frames or files that it starts from made before."""
        if source == "file":
            paths = collection.file("run"), collection.file("qrels")
            return partial(FROM_FILES[self.tool], self, *paths)
        frames = collection.as_theirs if self.tool in (OURS, IR_MEASURES) else collection.frames
        return partial(FROM_FRAMES[self.tool], self, frames["run"], frames["qrels"])


def ways(kind):
    """What is measured on collections of a kind: our measures, then the peers' nearest, each once."""
    results = [Way(OURS, text, kind) for text in MEASURES[kind] if bare(text) not in OF_SCORE]
    named = (*OF_SCORE, "BNDCG", "ES", "VB", "RelCov")
    results += [Way(SCORE, text, kind) for text in MEASURES[kind] if bare(text) in named]
    if kind == "judged":
        results.append(Way(SCORE, "nDCG@10", kind))
    theirs = [Way(IR_MEASURES, text, kind) for text in MEASURES[kind].values()]
    theirs += [Way(tool, of[kind], kind) for tool, of in PEERS.items() if kind in of]
    return [*results, *dict.fromkeys(theirs)]


def way_named(name):
    """The way that tables call so."""
    return next(way for kind in MEASURES for way in ways(kind) if way.name == name)


def bare(measure):
    """A measure's name without parameters and cutoff."""
    return measure.partition("(")[0].partition("@")[0]


def compared(way):
    """The peers' ways that one of ours stands beside: its nearest in ir_measures first."""
    theirs = MEASURES[way.kind].get(way.measure, way.measure)
    raw = [f"{tool} {of[way.kind]}" for tool, of in PEERS.items() if way.kind in of]
    return [f"{IR_MEASURES} {theirs}", *raw]
