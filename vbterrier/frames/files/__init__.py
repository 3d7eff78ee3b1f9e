"""Readers and writers of files: ids stay text, and errors name their line."""

from vbterrier.frames.files.reading import (
    read_answers,
    read_documents,
    read_intents,
    read_mentions,
    read_qrels,
    read_run,
    read_tags,
    read_topics,
    read_values,
)
from vbterrier.frames.files.writing import write_intents, write_qrels, write_queries, write_run, write_tags

__all__ = [
    "read_answers",
    "read_documents",
    "read_intents",
    "read_mentions",
    "read_qrels",
    "read_run",
    "read_tags",
    "read_topics",
    "read_values",
    "write_intents",
    "write_qrels",
    "write_queries",
    "write_run",
    "write_tags",
]
