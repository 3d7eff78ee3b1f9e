"""Queries for test collections: which to draw from a corpus of mentions, what a sample holds, how many are needed."""

from vbterrier.queryset.decisions import DecisionCounts
from vbterrier.queryset.discrimination import discriminative_power
from vbterrier.queryset.estimates import horvitz_thompson
from vbterrier.queryset.planning import QueryPlan, detectable_difference, queries_needed
from vbterrier.queryset.profile import query_profile
from vbterrier.queryset.removal import Removal
from vbterrier.queryset.sampling import QuerySample, sample_queries
from vbterrier.queryset.sizes import score_by_size
from vbterrier.queryset.widths import interval_width

__all__ = [
    "DecisionCounts",
    "QueryPlan",
    "QuerySample",
    "Removal",
    "detectable_difference",
    "discriminative_power",
    "horvitz_thompson",
    "interval_width",
    "queries_needed",
    "query_profile",
    "sample_queries",
    "score_by_size",
]
