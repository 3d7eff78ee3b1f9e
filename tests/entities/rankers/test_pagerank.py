import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import PersonalisedPageRank, personalised_pagerank, soft_support
from vbterrier.errors import DegenerateWarning


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
    found = np.real(vectors[:, np.argmin(abs(values - 1))])
    return found / found.sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.3, 0.85, 0.95]), st.booleans())
def test_it_is_the_eigenvector(seed, damping, few):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    holds = rng.random((int(rng.integers(1, 8)), n)) < rng.random()
    holds[rng.integers(len(holds), size=n), np.arange(n)] = True
    document, entity = np.nonzero(holds)
    restart = np.zeros(n)
    restart[: 1 if few else n] = rng.random(1 if few else n) + 0.1
    restart /= restart.sum()
    found = personalised_pagerank(document, entity, restart, damping=damping, tolerance=1e-10)
    assert np.abs(found - dense(document, entity, restart, damping)).sum() < 1e-9
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_the_tolerance_is_kept(tolerance):
    # Two entities that the walk swaps between converge as slowly as any.
    document, entity, restart = np.array([0, 0]), np.array([0, 1]), np.array([1.0, 0.0])
    found = personalised_pagerank(document, entity, restart, damping=0.9, tolerance=tolerance)
    error = np.abs(found - np.array([1, 0.9]) / 1.9).sum()
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
        place = {pair: each for each, pair in enumerate(pairs)}
        entity = np.array([place[pair] for pair in pool.pair[links]])
        walk = dense(
            pool.document[links] - pool.document[links].min(), entity, weight[pairs] / weight[pairs].sum(), 0.85
        )
        names = pool.entities.take(pool.pairs[pairs] % len(pool.entities)).text.to_pylist()
        expected.update({(qid, name): share for name, share in zip(names, walk, strict=True)})
    for links in (pool, data["tags"]):
        found = scores_of(PersonalisedPageRank(links, restart=restart)(data["run"]))
        assert found == pytest.approx(expected, abs=1e-8)


def test_restart_at_the_entities_of_the_query(collection):
    data = collection(4)
    pool = link_pool(data["run"], data["tags"])
    queries = pd.DataFrame(
        {"qid": ["q0", "q0", "q1", "q2"], "entity_id": ["E1", "E2", "E3", "gone"], "prob": [3, 1, 1, 1]}
    )
    stage = PersonalisedPageRank(pool, restart=queries, damping=0.01)
    with pytest.warns(DegenerateWarning, match="2 topics have no restart entity.*'q2', 'q3'"):
        found = stage(data["topics"])
    assert set(found["qid"]) == {"q0", "q1"}
    first = found[found["qid"] == "q0"].set_index("docno")["score"]
    assert first[["E1", "E2"]].tolist() == pytest.approx([0.75, 0.25], abs=0.02)
    assert found[found["qid"] == "q1"]["docno"].iloc[0] == "E3"


def test_what_the_walk_never_reaches_is_not_ranked():
    run = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    tags = pd.DataFrame({"docno": ["d1", "d1", "d2", "d2"], "entity_id": ["A", "B", "C", "D"]})
    found = PersonalisedPageRank(tags, restart=pd.DataFrame({"qid": ["q1"], "entity_id": ["A"]}))(run)
    assert found["docno"].tolist() == ["A", "B"]
    assert found["score"].tolist() == pytest.approx([1 / 1.85, 0.85 / 1.85])


def test_stages_restarted_alike_are_equal(collection):
    tags = collection(1)["tags"]
    queries = pd.DataFrame({"qid": ["q1"], "entity_id": ["E1"]})
    assert PersonalisedPageRank(tags, restart=queries) == PersonalisedPageRank(tags, restart=queries.copy())
    assert PersonalisedPageRank(tags, restart=queries) != PersonalisedPageRank(tags)
    assert repr(PersonalisedPageRank(tags, damping=0.5)) == f"PersonalisedPageRank({len(tags)} rows, damping=0.5)"
