"""Documents that the first entities of a run reach."""

import warnings

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.entities.pool import link_pool
from vbterrier.entities.stage import EntityReachable
from vbterrier.errors import DegenerateWarning, InputError

RUN = pd.DataFrame(
    {
        "qid": ["q1"] * 4 + ["q2"] * 2,
        "query": ["rome"] * 4 + ["texas"] * 2,
        "docno": ["d1", "d2", "d3", "d4", "d1", "d5"],
        "score": [4.0, 3.0, 2.0, 1.0, 9.0, 8.0],
        "rank": [0, 1, 2, 3, 0, 1],
    }
)
TAGS = pd.DataFrame({"docno": ["d1", "d2", "d2", "d4", "d5"], "entity_id": ["Rome", "Italy", "Rome", "Italy", "Texas"]})
ENTITIES = pd.DataFrame({"qid": ["q1", "q1", "q2"], "docno": ["Italy", "Rome", "Texas"], "score": [2.0, 1.0, 1.0]})


def kept(frame):
    return frame[["qid", "docno", "rank"]].values.tolist()


def test_first_k_entities_decide_and_ranks_are_counted_anew():
    found = EntityReachable(TAGS, ENTITIES, cutoff=1).transform(RUN)
    assert kept(found) == [["q1", "d2", 0], ["q1", "d4", 1], ["q2", "d5", 0]]
    assert found["score"].tolist() == [3.0, 1.0, 8.0]
    assert found["query"].tolist() == ["rome", "rome", "texas"]
    assert kept(EntityReachable(TAGS, ENTITIES, cutoff=2).transform(RUN))[:3] == [
        ["q1", "d1", 0], ["q1", "d2", 1], ["q1", "d4", 2]
    ]  # fmt: skip


def test_tags_of_one_query_do_not_reach_for_another():
    tags = pd.DataFrame({"qid": ["q2"], "docno": ["d1"], "entity_id": ["Texas"]})
    entities = ENTITIES.assign(docno="Texas").drop_duplicates(["qid", "docno"])
    with pytest.warns(DegenerateWarning, match="1 of 2 topics have no reachable document"):
        assert kept(EntityReachable(tags, entities).transform(RUN)) == [["q2", "d1", 0]]


def test_topics_without_reachable_documents_are_absent_with_one_warning():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = EntityReachable(TAGS, ENTITIES[ENTITIES["qid"] == "q2"]).transform(RUN)
    assert kept(found) == [["q2", "d5", 0]]
    assert [str(one.message) for one in said] == ["run: 1 of 2 topics have no reachable document ('q1')"]


def test_documents_outside_the_linked_pool_are_not_reachable():
    pool = link_pool(RUN[RUN["docno"] != "d4"], TAGS)
    with pytest.warns(DegenerateWarning, match=r"1 documents are not in the pool of links .*'d4'"):
        found = EntityReachable(pool, ENTITIES, cutoff=1).transform(RUN)
    assert kept(found) == [["q1", "d2", 0], ["q2", "d5", 0]]


def test_batch_without_tagged_documents_comes_out_empty():
    batch = pd.DataFrame({"qid": ["q1"], "docno": ["new"], "score": [1.0], "rank": [0]})
    with pytest.warns(DegenerateWarning, match="1 of 1 topics"):
        found = EntityReachable(TAGS, ENTITIES).transform(batch)
    assert not len(found)
    assert list(found.columns) == list(batch.columns)


def test_stage_of_entities_is_run_on_what_comes_in():
    with_stage = EntityReachable(TAGS, pt.apply.generic(lambda inp: ENTITIES.merge(inp[["qid"]].drop_duplicates())))
    assert kept(with_stage.transform(RUN)) == kept(EntityReachable(TAGS, ENTITIES).transform(RUN))


def test_ids_that_never_meet_are_refused():
    with pytest.raises(InputError, match="can never match"):
        EntityReachable(TAGS, ENTITIES.assign(qid=[1, 1, 2])).transform(RUN)
    with pytest.raises(InputError, match="can never match"):
        EntityReachable(TAGS, ENTITIES.assign(docno=[1, 2, 3])).transform(RUN)
    with pytest.raises(InputError, match="can never match"):
        EntityReachable(TAGS.assign(docno=range(5)), ENTITIES).transform(RUN)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_loop_over_documents_says_the_same(seed, k):
    rng = np.random.default_rng(seed)
    n_topics, n_docs, n_entities = rng.integers(1, 4), 12, 6
    pairs = [(q, d) for q in range(n_topics) for d in range(n_docs) if rng.random() < 0.7]
    run = pd.DataFrame(pairs, columns=["qid", "docno"]).astype(str)
    run["score"] = rng.permutation(len(run)).astype(float)
    links = {d: {str(e) for e in range(n_entities) if rng.random() < 0.3} for d in map(str, range(n_docs))}
    tags = pd.DataFrame([(d, e) for d, own in links.items() for e in own], columns=["docno", "entity_id"], dtype=str)
    ranked = {str(q): [str(e) for e in rng.permutation(n_entities)[: rng.integers(1, 6)]] for q in range(n_topics)}
    entities = pd.DataFrame(
        [(q, e, -i) for q, own in ranked.items() for i, e in enumerate(own)], columns=["qid", "docno", "score"]
    )
    expected = []
    for qid in dict.fromkeys(run["qid"]):
        own = run[run["qid"] == qid].sort_values("score", ascending=False)
        reach = [d for d in own["docno"] if links[d] & set(ranked[qid][:k])]
        expected += [[qid, d, rank] for rank, d in enumerate(reach)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        assert kept(EntityReachable(tags, entities, cutoff=k).transform(run)) == expected
