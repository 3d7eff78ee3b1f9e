"""All measures, as ``vbterrier.measures.RelCov @ 20``; importing this package registers them with ir_measures."""

from vbterrier.frames.ranges import REGISTERED_MEASURES
from vbterrier.hosts.ir_measures import MEASURES as REGISTRY
from vbterrier.hosts.ir_measures import install
from vbterrier.measures.base import PROVIDER, Measure
from vbterrier.measures.bootstrapped import BAP, BERR, BNDCG, BP, BQ, BRBP
from vbterrier.measures.bounds import NDCGBound, Unjudged
from vbterrier.measures.entity import (
    OER,
    BaitRate,
    DiscRatio,
    NonRelCov,
    ObsCov,
    OERCorr,
    OracleCov,
    RelCov,
    SignalRate,
    TopBait,
)
from vbterrier.measures.estimated import EAP, EERR, ENDCG, EP, EQ, ERBP
from vbterrier.measures.intents import ES, VB, TopIntent, VarPenalty
from vbterrier.measures.linking import LinkF1, LinkingF1, LinkingP, LinkingR, LinkP, LinkR, NilP, NilR
from vbterrier.measures.ms_marco import MarcoRR
from vbterrier.measures.novelty import DNDCG, DSharpNDCG, IRec, WeightedAlphaNDCG, WeightedERRIA, WeightedNRBP

__all__ = [
    "BAP",
    "BERR",
    "BNDCG",
    "BP",
    "BQ",
    "BRBP",
    "DNDCG",
    "EAP",
    "EERR",
    "ENDCG",
    "EP",
    "EQ",
    "ERBP",
    "ES",
    "OER",
    "VB",
    "BaitRate",
    "DSharpNDCG",
    "DiscRatio",
    "IRec",
    "LinkF1",
    "LinkP",
    "LinkR",
    "LinkingF1",
    "LinkingP",
    "LinkingR",
    "MarcoRR",
    "NDCGBound",
    "NilP",
    "NilR",
    "NonRelCov",
    "OERCorr",
    "ObsCov",
    "OracleCov",
    "RelCov",
    "SignalRate",
    "TopBait",
    "TopIntent",
    "Unjudged",
    "VarPenalty",
    "WeightedAlphaNDCG",
    "WeightedERRIA",
    "WeightedNRBP",
]


ENTITY: tuple[Measure, ...] = (
    *(RelCov, NonRelCov, DiscRatio, OER, SignalRate, BaitRate),
    *(TopBait, OERCorr, ObsCov, OracleCov),
)
LINKING: tuple[Measure, ...] = (LinkP, LinkR, LinkF1, NilP, NilR, LinkingP, LinkingR, LinkingF1)
BOOTSTRAPPED: tuple[Measure, ...] = (BNDCG, BRBP, BP, BAP, BERR, BQ)
ESTIMATED: tuple[Measure, ...] = (ENDCG, ERBP, EP, EAP, EERR, EQ)
MEASURES: tuple[Measure, ...] = (
    *BOOTSTRAPPED,
    *ESTIMATED,
    *(NDCGBound, Unjudged, MarcoRR),
    *(ES, VB, VarPenalty, TopIntent),
    *(WeightedERRIA, WeightedAlphaNDCG, WeightedNRBP),
    *(DNDCG, DSharpNDCG, IRec),
    *ENTITY,
    *LINKING,
)

for _measure in MEASURES:
    # ir_measures.measures.register raises an assertion error for a name that is taken, as it is after a reload.
    REGISTRY[_measure.NAME] = REGISTERED_MEASURES[_measure.NAME] = type(_measure)
install(PROVIDER)
