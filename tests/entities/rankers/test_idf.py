import math

import pandas as pd
import pytest

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities, LocalIDF
from vbterrier.errors import DegenerateWarning, InputError


@pytest.fixture
def entity_run(collection):
    data = collection(1)
    run = ConsensusEntities(data["tags"], min_documents=1)(data["run"])
    strange = pd.DataFrame(
        {"qid": ["q0", "q2"], "query": ["query of q0", "query of q2"], "docno": "nobody", "score": 99.0}
    )
    return pd.concat([run, strange], ignore_index=True).drop(columns="rank")


@pytest.mark.parametrize("depth", [None, 4])
def test_scores_are_those_of_the_equation(collection, entity_run, scores_of, depth):
    data = collection(1)
    pool = link_pool(data["run"], data["tags"])
    documents = pool.frame() if depth is None else pool.frame().query("rank < @depth")
    df = documents.dropna(subset="entity_id").groupby(["qid", "entity_id"])["docno"].nunique()
    n_documents = documents.groupby("qid")["docno"].nunique()
    expected = {}
    for qid, entity, score in zip(entity_run["qid"], entity_run["docno"], entity_run["score"], strict=True):
        count = df.get((qid, entity), 0)
        expected[qid, entity] = score * (math.log((n_documents[qid] + 1) / (count + 1)) + 1) if count else 0.0
    for links in (pool, pool.frame()):
        found = LocalIDF(links, pool_cutoff=depth)(entity_run)
        assert scores_of(found) == pytest.approx(expected)
        assert (found.groupby("qid")["score"].diff().dropna() <= 0).all()
        assert found["rank"].tolist() == found.groupby("qid").cumcount().tolist()
    assert expected["q0", "nobody"] == 0


def test_what_says_less_than_it_seems_to(collection, entity_run):
    data = collection(1)
    stage = LocalIDF(link_pool(data["run"], data["tags"]))
    with pytest.warns(DegenerateWarning, match="scores below 0"):
        stage(entity_run.assign(score=-1.0))
    with pytest.warns(DegenerateWarning, match=r"none of its 2 entities is in the pool of its topic \('nobody'"):
        assert (stage(entity_run[entity_run["docno"] == "nobody"])["score"] == 0).all()
    with pytest.warns(DegenerateWarning, match="none of its"):
        assert (stage(entity_run.assign(qid="other").drop_duplicates("docno"))["score"] == 0).all()


def test_tags_without_a_pool_are_refused(collection):
    data = collection(1)
    with pytest.raises(InputError, match="LocalIDF: links are tags without a pool"):
        LocalIDF(data["tags"])
