"""Runs and judgments of one topic, and the value of a measure on them."""

import math

import numpy as np
import pandas as pd

RENAMED = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


def qrels_of(labels, qid="q"):
    """Judgments from {docno: label}."""
    return pd.DataFrame({"qid": qid, "docno": list(labels), "label": list(labels.values())})


def run_of(documents, qid="q"):
    """A run from documents, best first."""
    return pd.DataFrame({"qid": qid, "docno": list(documents), "score": -np.arange(len(documents), dtype=float)})


def one(measure, qrels, run):
    """The value of the only topic."""
    (metric,) = measure.iter_calc(qrels.rename(columns=RENAMED), run.rename(columns=RENAMED))
    return metric.value


def discounted(gains):
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))
