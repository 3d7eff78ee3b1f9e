import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import (
    ConsensusEntities,
    LocalIDF,
    PersonalisedPageRank,
    personalised_pagerank,
    soft_support,
)
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames.ranking import ranked

SUPPORT = ["rank", "rho", "rho+rank"]


def by_loop(run, tags, support, *, least=2, depth=None):
    """Equation 11, document by document."""
    expected = {}
    for qid, documents in ranked(run, depth).groupby("qid"):
        total, df = defaultdict(float), defaultdict(int)
        for docno, rank in zip(documents["docno"], documents["rank"], strict=True):
            for entity, mentions in tags[tags["docno"] == docno].groupby("entity_id"):
                df[entity] += 1
                weight = mentions["weight"].max() if "rho" in support else 1.0
                total[entity] += weight / math.log2(rank + 2) if "rank" in support else weight
        for entity, count in df.items():
            if count >= least:
                expected[qid, entity] = total[entity] * (math.log((len(documents) + 1) / (count + 1)) + 1)
    return expected


@pytest.mark.parametrize("support", SUPPORT)
@pytest.mark.parametrize(("least", "depth"), [(2, None), (1, 5), (3, 100)])
def test_scores_are_those_of_the_equation(collection, scores_of, support, least, depth):
    data = collection(1)
    expected = by_loop(data["run"], data["tags"], support, least=least, depth=depth)
    stage = {"support": support, "min_documents": least, "pool_cutoff": depth}
    for links in (data["tags"], link_pool(data["run"], data["tags"]), link_pool(data["run"], data["tags"]).to_frame()):
        result = ConsensusEntities(links, **stage)(data["run"])
        assert scores_of(result) == pytest.approx(expected)
        assert_frame_equal(result, ranked(result)[result.columns.tolist()], check_dtype=False)


def test_top_cuts_and_ties_fall_as_in_trec_eval(collection):
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    tags = pd.DataFrame([(d, e) for d in ("d1", "d2") for e in ("A", "C", "B")], columns=["docno", "entity_id"])
    assert ConsensusEntities(tags)(run)["docno"].tolist() == ["C", "B", "A"]
    assert ConsensusEntities(tags, cutoff=2)(run)["docno"].tolist() == ["C", "B"]
    # What only double precision tells apart is a tie.
    barely = tags.assign(weight=tags["entity_id"].map({"A": 0.5 + 1e-12, "B": 0.5, "C": 0.5}))
    assert ConsensusEntities(barely, support="rho")(run)["docno"].tolist() == ["C", "B", "A"]
    data = collection(3)
    whole = ConsensusEntities(data["tags"])(data["run"])
    cut = ConsensusEntities(data["tags"], cutoff=3)(data["run"])
    assert_frame_equal(cut, whole[whole["rank"] < 3].reset_index(drop=True))


def test_topics_and_documents_without_entities_are_told_of(collection):
    data = collection(6)
    pool = link_pool(data["run"], data["tags"])
    with pytest.warns(DegenerateWarning, match="1 topic is not in links.*'new'"):
        result = ConsensusEntities(pool)(pd.DataFrame({"qid": ["new", "q1"], "query": "?"}))
    assert set(result["qid"]) == {"q1"}
    unknown = pd.DataFrame({"qid": ["new"], "docno": ["x"], "score": [1.0]})
    with pytest.warns(DegenerateWarning, match="none of its 1 documents has an entity"):
        assert len(ConsensusEntities(data["tags"])(unknown)) == 0
    with pytest.raises(InputError, match="never match"):
        ConsensusEntities(data["tags"])(unknown.assign(docno=[7]))


def dense(document, entity, restart, damping):
    """The stationary distribution as the eigenvector of the walk's matrix for the eigenvalue 1."""
    n = len(restart)
    holds = np.zeros((document.max() + 1, n))
    holds[document, entity] = 1
    shared = holds.T @ holds
    np.fill_diagonal(shared, 0)
    step = np.array([row / row.sum() if row.sum() else restart for row in shared])
    walk = damping * step + (1 - damping) * restart
    values, vectors = np.linalg.eig(walk.T)
    result = np.real(vectors[:, np.argmin(abs(values - 1))])
    return result / result.sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.85, 0.95]), st.booleans())
def test_pagerank_of_entities_is_the_eigenvector(seed, damping, few):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    holds = rng.random((int(rng.integers(1, 8)), n)) < rng.random()
    holds[rng.integers(len(holds), size=n), np.arange(n)] = True
    document, entity = np.nonzero(holds)
    restart = np.zeros(n)
    restart[: 1 if few else n] = rng.random(1 if few else n) + 0.1
    restart /= restart.sum()
    result = personalised_pagerank(document, entity, restart, damping=damping, tolerance=1e-10)
    assert np.abs(result - dense(document, entity, restart, damping)).sum() < 1e-9
    assert result.sum() == pytest.approx(1)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_the_tolerance_is_kept(tolerance):
    # Two entities that the walk swaps between converge as slowly as any.
    document, entity, restart = np.array([0, 0]), np.array([0, 1]), np.array([1.0, 0.0])
    result = personalised_pagerank(document, entity, restart, damping=0.9, tolerance=tolerance)
    error = np.abs(result - np.array([1, 0.9]) / 1.9).sum()
    assert tolerance / 100 < error <= tolerance


@pytest.mark.parametrize("restart", ["rank", "rho", "rho+rank", "uniform"])
def test_ranking_of_each_topic(collection, scores_of, restart):
    data = collection(3)
    pool = link_pool(data["run"], data["tags"])
    weight = np.ones(len(pool.pairs)) if restart == "uniform" else soft_support(pool, restart)
    expected = {}
    for number, qid in enumerate(pool.topics):
        pairs = np.flatnonzero(pool.pairs // len(pool.entities) == number)
        links = np.flatnonzero(pool.topic[pool.document] == number)
        document, entity = (each[links] - each[links].min() for each in (pool.document, pool.pair))
        walk = dense(document, entity, weight[pairs] / weight[pairs].sum(), 0.85)
        names = pool.entities.take(pool.pairs[pairs] % len(pool.entities)).text.to_pylist()
        expected.update({(qid, name): share for name, share in zip(names, walk, strict=True)})
    for links in (pool, data["tags"]):
        result = scores_of(PersonalisedPageRank(links, restart=restart)(data["run"]))
        assert result == pytest.approx(expected, abs=1e-8)


def test_restart_at_the_entities_of_the_query(collection):
    data = collection(4)
    pool = link_pool(data["run"], data["tags"])
    rows = [("q0", "E1", 3), ("q0", "E2", 1), ("q1", "E3", 1), ("q2", "gone", 1)]
    queries = pd.DataFrame(rows, columns=["qid", "entity_id", "prob"])
    stage = PersonalisedPageRank(pool, restart=queries, damping=0.01)
    with pytest.warns(DegenerateWarning, match="2 topics have no restart entity.*'q2', 'q3'"):
        result = stage(data["topics"])
    assert set(result["qid"]) == {"q0", "q1"}
    first = result[result["qid"] == "q0"].set_index("docno")["score"]
    assert first[["E1", "E2"]].tolist() == pytest.approx([0.75, 0.25], abs=0.02)
    assert result[result["qid"] == "q1"]["docno"].iloc[0] == "E3"


def test_what_the_walk_never_reaches_is_not_ranked():
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["A", "B", "C", "D"]})
    result = PersonalisedPageRank(tags, restart=pd.DataFrame({"qid": ["q1"], "entity_id": ["A"]}))(run)
    assert result["docno"].tolist() == ["A", "B"]
    assert result["score"].tolist() == pytest.approx([1 / 1.85, 0.85 / 1.85])


@pytest.fixture
def entity_run(collection):
    data = collection(1)
    run = ConsensusEntities(data["tags"], min_documents=1)(data["run"])
    strange = run.drop_duplicates("qid").iloc[[0, 2]].assign(docno="nobody", score=99.0)
    return pd.concat([run, strange], ignore_index=True).drop(columns="rank")


@pytest.mark.parametrize("depth", [None, 4])
def test_local_idf_is_that_of_the_equation(collection, entity_run, scores_of, depth):
    data = collection(1)
    pool = link_pool(data["run"], data["tags"])
    documents = pool.to_frame() if depth is None else pool.to_frame().query("rank < @depth")
    df = documents.dropna(subset="entity_id").groupby(["qid", "entity_id"])["docno"].nunique()
    n_documents = documents.groupby("qid")["docno"].nunique()
    expected = {}
    for qid, entity, score in zip(entity_run["qid"], entity_run["docno"], entity_run["score"], strict=True):
        count = df.get((qid, entity), 0)
        expected[qid, entity] = score * (math.log((n_documents[qid] + 1) / (count + 1)) + 1) if count else 0.0
    for links in (pool, pool.to_frame()):
        result = LocalIDF(links, pool_cutoff=depth)(entity_run)
        assert scores_of(result) == pytest.approx(expected)
        assert_frame_equal(result, ranked(result)[result.columns.tolist()], check_dtype=False)
    assert expected["q0", "nobody"] == 0


def test_local_idf_reports_scores_that_it_lowers_and_refuses_tags(collection, entity_run):
    data = collection(1)
    stage = LocalIDF(link_pool(data["run"], data["tags"]))
    with pytest.warns(DegenerateWarning, match="scores below 0"):
        stage(entity_run.assign(score=-1.0))
    with pytest.warns(DegenerateWarning, match=r"none of its 2 entities is in the pool of its topic \('nobody'"):
        assert (stage(entity_run[entity_run["docno"] == "nobody"])["score"] == 0).all()
    first = entity_run["docno"][0]
    with pytest.warns(DegenerateWarning, match="entity run: 1 entities differ from those of the links only in case"):
        stage(entity_run.replace({"docno": {first: f"{first}%20"}}))
    with pytest.raises(InputError, match="LocalIDF: links are tags without a pool"):
        LocalIDF(data["tags"])
