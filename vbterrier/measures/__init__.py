"""The measures, each a declaration, and the border to ir_measures. Importing it registers them."""

import ir_measures

from vbterrier.hosts import ir_measures as provider
from vbterrier.hosts.ir_measures import enable_string_measures, measures_from
from vbterrier.measures.base import Measure
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
from vbterrier.measures.intents import ES, VB, TopIntent, VarPenalty
from vbterrier.measures.linking import LinkingF1, LinkingP, LinkingR, LinkP, LinkR, NilP, NilR
from vbterrier.measures.unjudged import BAP, BERR, BNDCG, BP, BQ, BRBP, NDCGBound, Unjudged

__all__ = [
    "BAP",
    "BERR",
    "BNDCG",
    "BP",
    "BQ",
    "BRBP",
    "ENTITY",
    "ES",
    "LINKING",
    "MEASURES",
    "OER",
    "VB",
    "BaitRate",
    "DiscRatio",
    "LinkP",
    "LinkR",
    "LinkingF1",
    "LinkingP",
    "LinkingR",
    "Measure",
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
    "enable_string_measures",
    "measures_from",
]


ENTITY: tuple[Measure, ...] = (
    RelCov,
    NonRelCov,
    DiscRatio,
    OER,
    SignalRate,
    BaitRate,
    TopBait,
    OERCorr,
    ObsCov,
    OracleCov,
)
LINKING: tuple[Measure, ...] = (LinkP, LinkR, NilP, NilR, LinkingP, LinkingR, LinkingF1)
MEASURES: tuple[Measure, ...] = (
    *(BNDCG, BRBP, BP, BAP, BERR, BQ),
    *(NDCGBound, Unjudged),
    *(ES, VB, VarPenalty, TopIntent),
    *ENTITY,
    *LINKING,
)

for _measure in MEASURES:
    # Registering a name twice is an assertion error there; a reload of this module finds its names taken.
    ir_measures.measures.registry[_measure.NAME] = type(_measure)
provider.install()
