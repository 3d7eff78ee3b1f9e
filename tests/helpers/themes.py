"""A linked pool whose entities texts tell apart: animals in relevant documents, machines in the others."""

import numpy as np
import pandas as pd

from vbterrier.entities import link_pool

ANIMALS = ("minke whale", "red fox", "brown bear", "house cat", "grey wolf", "field mouse", "barn owl", "wild horse",
           "river otter", "snow leopard", "honey bee", "king penguin")  # fmt: skip
MACHINES = ("steam engine", "fork lift", "jet turbine", "diesel truck", "laser printer", "washing machine",
            "power drill", "tower crane", "radio transmitter", "water pump", "sewing machine", "oil rig")  # fmt: skip


def themed_collection():
    """A linked pool, an entity run with random scores, and judgments of documents."""
    rows = []
    for q in range(14):
        for d in range(8):
            names = ANIMALS if d % 2 else MACHINES
            mentioned = (names[(q + d) % 12].replace(" ", "_"), names[(q + d + 3) % 12].replace(" ", "_"))
            rows += [(f"q{q}", f"topic {q}", f"d{q}.{d}", name, float(-d), d % 2) for name in mentioned]
    frame = pd.DataFrame(rows, columns=["qid", "query", "docno", "entity_id", "score", "label"])
    pool = frame.drop_duplicates("docno")
    entities = frame[["qid", "query", "entity_id"]].drop_duplicates().rename(columns={"entity_id": "docno"})
    rng = np.random.default_rng(0)
    return (
        link_pool(pool[["qid", "docno", "score"]], frame[["docno", "entity_id"]].drop_duplicates()),
        entities.assign(score=rng.normal(size=len(entities)), rank=0).reset_index(drop=True),
        pool[["qid", "docno", "label"]],
    )
