"""Entity rankers beside a plain loop, and a graph that is made: ``pytest tests/bench --benchmark-only``.

25 topics of 1,000 documents with some 50 entities each. The others are timed on one topic and scaled up; speeds are
read from the table and from ``extra_info``, never asserted.
"""

import math
import time
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from vbterrier.entities.pool import LinkedPool
from vbterrier.entities.rankers.consensus import ConsensusEntities, PersonalisedPageRank

N_TOPICS, N_DOCUMENTS, N_ENTITIES = 25, 1000, 60


@pytest.fixture(scope="module")
def links():
    rng = np.random.default_rng(0)
    document = np.repeat(np.arange(N_TOPICS * N_DOCUMENTS), N_ENTITIES)
    topic = document // N_DOCUMENTS
    own = rng.random(len(document)) < 0.5
    entity = np.where(own, 20_000 + 8_000 * topic + rng.integers(0, 8_000, len(own)), rng.zipf(1.3, len(own)) % 20_000)
    frame = pd.DataFrame({"document": document, "entity": entity, "topic": topic}).drop_duplicates(ignore_index=True)
    return pd.DataFrame(
        {
            "qid": "q" + frame["topic"].astype(str),
            "docno": "d" + frame["document"].astype(str),
            "entity_id": "E" + frame["entity"].astype(str),
            "label": -1,
            "rank": frame["document"] % N_DOCUMENTS,
            "weight": rng.random(len(frame)),
        }
    )


@pytest.fixture(scope="module")
def pool(links):
    return LinkedPool.from_frame(links)


def consensus_by_loop(links):
    support, df = defaultdict(float), defaultdict(int)
    for entity, rank in zip(links["entity_id"], links["rank"], strict=True):
        support[entity] += 1 / math.log2(rank + 2)
        df[entity] += 1
    n = links["docno"].nunique()
    score = {e: support[e] * (math.log((n + 1) / (count + 1)) + 1) for e, count in df.items() if count > 1}
    return sorted(score, key=score.get, reverse=True)


def pagerank_on_the_graph(links, n_steps=118, damping=0.85):
    """The same walk, the graph of entities made first."""
    document, entity = (pd.factorize(links[name])[0] for name in ("docno", "entity_id"))
    holds = sparse.csr_array((np.ones(len(links)), (document, entity)))
    graph = (holds.T @ holds).tocsr()
    graph.setdiag(0)
    per_edge = 1 / np.maximum(graph.sum(axis=0), 1)
    restart = np.bincount(entity, 1 / np.log2(links["rank"] + 2))
    walk = restart = restart / restart.sum()
    for _ in range(n_steps):
        walk = damping * (graph @ (walk * per_edge)) + (1 - damping) * restart
    return walk


OTHERS = {
    "consensus": (ConsensusEntities, consensus_by_loop),
    "pagerank": (PersonalisedPageRank, pagerank_on_the_graph),
}


@pytest.mark.parametrize("ranker", OTHERS)
def test_entity_rankers(benchmark, links, pool, ranker):
    stage, other = OTHERS[ranker]
    topics = pd.DataFrame({"qid": pool.topics})
    assert pool.pair.size
    benchmark.pedantic(stage(pool, cutoff=100), args=(topics,), rounds=3)
    first = links[links["qid"] == "q0"]
    begin = time.perf_counter()
    other(first)
    taken = (time.perf_counter() - begin) * N_TOPICS
    if benchmark.stats:
        benchmark.extra_info["times faster"] = round(taken / benchmark.stats.stats.mean, 1)
