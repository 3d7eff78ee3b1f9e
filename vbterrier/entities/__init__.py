"""Entities between queries and documents: which documents they reach, and what they tell of relevance."""
