"""Queries for test collections: which to draw from a corpus of mentions, what a sample holds, how many are needed."""

from vbterrier.queryset.estimates import horvitz_thompson
from vbterrier.queryset.profile import query_profile
from vbterrier.queryset.sampling import QuerySample, sample_queries

__all__ = ["QuerySample", "horvitz_thompson", "query_profile", "sample_queries"]
