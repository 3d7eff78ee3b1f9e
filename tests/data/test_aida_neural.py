"""AIDA-CoNLL: neural rerankers with the entity that each query means and gold links beat BM25 on all documents.

The text of a document is the sequence of its gold surface forms, since the text itself cannot be redistributed.
"""

from functools import cache

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP
from scipy.stats import ttest_rel

from vbterrier.entities import NeuralReranker, TokenVectors, link_pool

pytestmark = [pytest.mark.usefixtures("neural"), pytest.mark.nightly]


@pytest.fixture(scope="module")
def searched(aida):
    """The run with queries and texts, and the entities of the dominant intents."""
    meant = aida.intents.sort_values("p", ascending=False, kind="stable").drop_duplicates("qid")
    text = aida.links["gold"].groupby("docno")["surface"].agg(" ".join)
    run = aida.runs["bm25"].merge(aida.topics, on="qid")
    entities = meant.rename(columns={"entity_id": "docno"}).assign(score=1.0)[["qid", "docno", "score"]]
    return run.assign(text=run["docno"].map(text)), aida.qrels, entities


@pytest.fixture(scope="module")
def trained(aida, searched):
    """Train a model, and return its run; two processes of tests train different models."""
    run, qrels, entities = searched
    links = link_pool(run, aida.tags["gold"])
    table = pd.read_csv(aida.folder / "entities.tsv", sep="\t", dtype=str, keep_default_na=False)
    options = {
        "names": dict(zip(table["qid"], table["name"], strict=True)),
        "encoder": cache(TokenVectors(max_tokens=32)),
    }
    return lambda model: NeuralReranker(links, entities, model=model, **options).cross_validated(run, qrels)


@pytest.mark.parametrize("model", ["edrm-knrm", "duet", "esdrank", "dreq"])
def test_gold_query_entities_beat_bm25_in_the_open_world(trained, searched, model):
    run, qrels, _ = searched
    ours, first = (
        pd.DataFrame(pt.Evaluate(result, qrels, [AP], perquery=True)).T["AP"].sort_index()
        for result in (trained(model), run)
    )
    assert len(ours) == 199
    assert ttest_rel(ours, first, alternative="greater").pvalue < 0.001
    assert np.mean(ours - first) > 0.1
