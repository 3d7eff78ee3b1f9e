"""Small linked collections drawn at random."""

import numpy as np
import pandas as pd
import pytest


def drawn(seed, *, topics=4, documents=12, entities=9, weights=True):
    """A run, tags of its documents with repeated mentions, and qrels; some documents have no entity, some no label."""
    rng = np.random.default_rng(seed)
    run = pd.DataFrame(
        [(f"q{q}", f"d{q}.{d}", float(rng.random())) for q in range(topics) for d in range(documents)],
        columns=["qid", "docno", "score"],
    )
    tags = [
        (docno, f"E{rng.integers(entities)}", round(float(rng.random()), 3) if weights else 1.0)
        for docno in run["docno"]
        for _ in range(rng.integers(0, 6))
    ]
    judged = run[rng.random(len(run)) < 0.8]
    qrels = judged[["qid", "docno"]].assign(label=rng.integers(0, 3, len(judged)))
    topics_of = run[["qid"]].drop_duplicates(ignore_index=True)
    return {
        "run": run.assign(query="query of " + run["qid"]),
        "tags": pd.DataFrame(tags, columns=["docno", "entity_id", "weight"]),
        "qrels": qrels.reset_index(drop=True),
        "topics": topics_of.assign(query="query of " + topics_of["qid"]),
    }


@pytest.fixture
def collection():
    return drawn


@pytest.fixture
def scores_of():
    """An entity run as a mapping, so that the order of its rows does not count."""
    return lambda run: {
        (qid, docno): score for qid, docno, score in zip(run["qid"], run["docno"], run["score"], strict=True)
    }
