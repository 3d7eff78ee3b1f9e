"""What unjudged documents may be: probabilities of grades for a topic's documents together, or for each.

``named`` chooses; ``learned`` and ``hierarchical`` look at all topics; ``column`` reads what a run brings for its
documents, ``predicted`` makes such columns from what several runs retrieved.
"""

from vbterrier.judgments.priors.named import (
    ALL_UNJUDGED,
    ECIR23_GRADES,
    OWN,
    PAPER,
    PRIORS,
    Prior,
    check_prior,
    check_strength,
    prior_of,
)

__all__ = [
    "ALL_UNJUDGED",
    "ECIR23_GRADES",
    "OWN",
    "PAPER",
    "PRIORS",
    "Prior",
    "check_prior",
    "check_strength",
    "prior_of",
]
