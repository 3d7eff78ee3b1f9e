"""The measures, each a declaration, and the border to ir_measures. Importing it registers them."""

import ir_measures

from vbterrier.measures import provider
from vbterrier.measures.ambiguous import ES, VB, TopIntent, VarPenalty
from vbterrier.measures.base import Measure
from vbterrier.measures.bootstrapped import BAP, BERR, BNDCG, BP, BQ, BRBP
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
from vbterrier.measures.text import enable_string_measures, measures_from
from vbterrier.measures.unjudged import NDCGBound, Unjudged

__all__ = [
    "BAP",
    "BERR",
    "BNDCG",
    "BP",
    "BQ",
    "BRBP",
    "ENTITY",
    "ES",
    "MEASURES",
    "OER",
    "VB",
    "BaitRate",
    "DiscRatio",
    "Measure",
    "NDCGBound",
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
MEASURES: tuple[Measure, ...] = (
    *(BNDCG, BRBP, BP, BAP, BERR, BQ),
    *(NDCGBound, Unjudged),
    *(ES, VB, VarPenalty, TopIntent),
    *ENTITY,
)

for _measure in MEASURES:
    # Registering a name twice is an assertion error there; a reload of this module finds its names taken.
    ir_measures.measures.registry[_measure.NAME] = type(_measure)
provider.install()
