"""Runs and judgments of one topic, and values of measures."""

import math

import numpy as np
import pandas as pd

RENAMED = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


def topic_qrels(labels, qid="q"):
    """Judgments from {docno: label}."""
    return pd.DataFrame({"qid": qid, "docno": list(labels), "label": list(labels.values())})


def topic_run(documents, qid="q"):
    """A run from documents, best first."""
    return pd.DataFrame({"qid": qid, "docno": list(documents), "score": -np.arange(len(documents), dtype=float)})


def values(measure, target, run):
    """Values of one measure by topic, through ir_measures."""
    metrics = list(measure.iter_calc(target.rename(columns=RENAMED), run.rename(columns=RENAMED)))
    results = {metric.query_id: metric.value for metric in metrics}
    assert len(results) == len(metrics), "a topic came twice"
    return results


def one(measure, qrels, run):
    """The value of the only topic."""
    (value,) = values(measure, qrels, run).values()
    return value


def discounted(gains):
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))
