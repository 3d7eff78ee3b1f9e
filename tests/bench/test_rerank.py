"""Rerankers beside a plain loop over documents: ``pytest tests/bench --benchmark-only``.

25 topics of 1,000 documents with some 50 entities each; the loop is timed on one topic and scaled up. Speeds are read
from the table and from ``extra_info``, never asserted.
"""

import time

import numpy as np
import pandas as pd
import pytest

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rerank.embedding import EmbeddingReranker
from vbterrier.entities.rerank.overlap import OverlapReranker, PropagationReranker

N_TOPICS, N_DOCUMENTS, N_ENTITIES, K = 25, 1000, 60, 20


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    n = N_TOPICS * N_DOCUMENTS
    run = pd.DataFrame(
        {
            "qid": np.repeat([f"q{q}" for q in range(N_TOPICS)], N_DOCUMENTS),
            "docno": [f"d{d}" for d in range(n)],
            "score": rng.random(n),
        }
    )
    names = [f"E{e}" for e in range(20_000)]
    tags = pd.DataFrame({"docno": np.repeat(run["docno"], N_ENTITIES), "entity_id": rng.choice(names, n * N_ENTITIES)})
    entities = pd.DataFrame(
        [(f"q{q}", e, -rank) for q in range(N_TOPICS) for rank, e in enumerate(rng.choice(names, K, replace=False))],
        columns=["qid", "docno", "score"],
    )  # fmt: skip
    return run, tags, entities, dict(zip(names, rng.normal(size=(len(names), 100)), strict=True))


def overlap_by_loop(run, tags, listed):
    own = tags.groupby("docno")["entity_id"].agg(set)
    count = [len(own[docno] & listed) for docno in run["docno"]]
    low, high = run["score"].min(), run["score"].max()
    score = (run["score"] - low) / (high - low) + np.array(count) / max(*count, 1)
    return run.assign(score=score).sort_values("score", ascending=False)


@pytest.mark.parametrize("family", [OverlapReranker, PropagationReranker, EmbeddingReranker])
def test_rerankers(benchmark, world, family):
    run, tags, entities, vectors = world
    stage = family(link_pool(run, tags), entities, *([vectors] if family is EmbeddingReranker else []), cutoff=K)
    found = benchmark(stage.transform, run)
    assert len(found) == len(run)
    first = run["qid"] == "q0"
    own = tags[tags["docno"].isin(run["docno"][first])]
    start = time.perf_counter()
    overlap_by_loop(run[first], own, set(entities["docno"][entities["qid"] == "q0"]))
    benchmark.extra_info["seconds of an overlap by a loop"] = N_TOPICS * (time.perf_counter() - start)
