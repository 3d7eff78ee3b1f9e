"""Reading and writing of files, at Arrow's speed: every id stays the text that it is, every fault names its line.

A file's bytes come from ``source``, the layout of its fields from ``first_line`` and ``layout``, its columns from
``tables``.
"""

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
    write_queries,
)
from vbterrier.frames.files.writing import write_intents, write_qrels, write_run, write_tags

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
