"""Planted collections whose documents have words, an encoder of words, and linked pools of them."""

from types import SimpleNamespace

import numpy as np
from planted import planted_collection

from vbterrier.entities import link_pool
from vbterrier.kernels.resample import stream

SIZE = 8


def encoder(text):
    """A vector of each word, whatever the other words are; shape (n_words, SIZE)."""
    vectors = [stream(0, "word", word).normal(size=SIZE) for word in text.split()]
    return np.stack(vectors) if vectors else np.zeros((0, SIZE))


def linked_collection(**sizes):
    """Run with query and text, linked pool, tags and qrels of a planted collection."""
    made = planted_collection(**sizes, n_entities={"sparse": 5})
    run = made.pool.assign(query="query " + made.pool["qid"])
    run["text"] = [f"w{at % 7} w{at % 5}" for at in range(len(run))]
    return SimpleNamespace(run=run, links=link_pool(run, made.tags), tags=made.tags, qrels=made.qrels)
