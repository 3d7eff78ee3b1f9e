"""Queries drawn from AIDA-CoNLL: 11,533 gold mentions of 447 documents, 8,204 distinct queries, 4,834 mentions.

Mertens et al. found 54 % links under Random Document and 18 % under Random Mention in a year of news. Here, where the
collection is small and annotators knew Wikipedia, it is 76.2 % and 68.4 %; of the queries themselves 78.5 %.
"""

import gzip
import json
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from vbterrier.design.profile import query_profile
from vbterrier.design.sampling import horvitz_thompson, sample_queries

NIL = ("<NIL>", "<NO_MAPPING>")
# A surface form that is linked to two entities in one document is not unheard of.
pytestmark = pytest.mark.filterwarnings("ignore:.*repeat a docno and mention with another 'entity_id'")


@pytest.fixture(scope="module")
def corpus(shared_data):
    with gzip.open(shared_data / "aida_ambiguous_labels" / "links.gold.jsonl.gz", "rt", encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    rows = [(document["doc"], mention, entity) for document in documents for _, _, entity, mention in document["links"]]
    return pd.DataFrame(rows, columns=["docno", "mention", "entity_id"])


def share(profile, column, item="link"):
    return profile[profile["item"] == item][column].item()


def test_link_shares_of_both_methods(corpus):
    found = query_profile(corpus, corpus, nil=NIL)
    is_link = {}
    for row in corpus.itertuples():
        is_link.setdefault((row.docno, row.mention), row.entity_id not in NIL)
    for place, column in enumerate(("random_document", "random_mention")):
        groups = defaultdict(list)
        for pair, linked in is_link.items():
            groups[pair[place]].append(linked)
        assert share(found, column) == pytest.approx(np.mean([np.mean(group) for group in groups.values()]))
    assert [round(share(found, name), 3) for name in ("uniform", "random_document", "random_mention")] == [
        0.785,
        0.762,
        0.684,
    ]


def test_samples_agree_with_what_is_expected_of_their_method(corpus):
    for method in ("random-document", "random-mention"):
        sample = sample_queries(corpus, 400, method=method, seed=1)
        found = query_profile(sample, corpus, nil=NIL, level=0.999)
        shares = found[found["part"].isin(["entity", "frequency"])]
        expected = shares[method.replace("-", "_")]
        assert ((shares["low"] <= expected + 1e-12) & (expected <= shares["high"])).all()


def test_the_link_share_of_the_corpus_is_estimated_from_either(corpus):
    truth = share(query_profile(corpus, corpus, nil=NIL), "uniform")
    for method in ("random-document", "random-mention"):
        sample = sample_queries(corpus, 400, method=method, seed=2)
        linked = (~sample.frame["entity_id"].isin(NIL)).astype(float)
        found = horvitz_thompson(sample, sample.frame.assign(name="gold", measure="link", value=linked), level=0.99)
        assert found["low"].item() < truth < found["high"].item()
