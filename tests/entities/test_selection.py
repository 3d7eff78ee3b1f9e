"""Entity runs on a pool, against dictionaries."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier import DegenerateWarning, InputError
from vbterrier.entities.coverage import NONE, UNKNOWN, Selection
from vbterrier.entities.pool import LinkedPool
from vbterrier.frames.ranking import Run
from vbterrier.kernels.coverage import NEVER, first_ranks

# Random entities may all be others than those of the documents.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*no document of the links mentions any:vbterrier.errors.DegenerateWarning"
)

DOCUMENTS = [("q1", "d1", "AB"), ("q1", "d2", ""), ("q1", "d3", "BC"), ("q2", "d1", "AB"), ("q3", "d9", "")]
ROWS = [
    (qid, docno, entity, 0, rank)
    for rank, (qid, docno, entities) in enumerate(DOCUMENTS)
    for entity in entities or [None]
]
POOL = LinkedPool.from_frame(
    pd.DataFrame(ROWS, columns=["qid", "docno", "entity_id", "label", "rank"]).assign(weight=1.0)
)
# C is linked for another topic than q2, X for none; D is not there at all.
RUNS = st.dictionaries(
    st.tuples(st.sampled_from(["q1", "q2", "q3"]), st.sampled_from("ABCX")),
    st.sampled_from([-1.0, 0.5, 0.5 + 1e-12, 2.0]),
    min_size=1,
)


def run_of(scores):
    return pd.DataFrame([(*key, score) for key, score in scores.items()], columns=["qid", "docno", "score"])


def ranking(scores, qid):
    """Best first; equal as 32-bit floats, the larger id first."""
    mine = {docno: np.float32(score) for (topic, docno), score in scores.items() if topic == qid}
    return sorted(sorted(mine, reverse=True), key=lambda docno: -mine[docno])


@given(RUNS, st.sampled_from([None, 1, 2, 9]))
def test_a_selection_is_what_plain_loops_select(scores, depth):
    selection = Selection(POOL, run_of(scores), depth)
    lists = [ranking(scores, qid)[:depth] for qid in POOL.topics]
    ids = POOL.entities.text.to_pylist()
    assert selection.depth == max(map(len, lists))
    for number, (qid, entities) in enumerate(zip(POOL.topics, lists, strict=True)):
        padding = selection.depth - len(entities)
        assert selection.entity[number].tolist() == [
            *(ids.index(entity) if entity in ids else UNKNOWN for entity in entities),
            *[NONE] * padding,
        ]
        np.testing.assert_array_equal(
            selection.score[number], [*(scores[qid, entity] for entity in entities), *[np.nan] * padding]
        )
        assert selection.n_entities[number] == len(entities)
    ranks = [
        lists[topic].index(ids[entity]) if ids[entity] in lists[topic] else NEVER
        for topic, entity in zip(POOL.topic[POOL.document], POOL.entity, strict=True)
    ]
    assert selection.link_ranks.tolist() == ranks
    assert selection.first.tolist() == first_ranks(np.array(ranks), POOL.starts).tolist()


def test_the_order_of_rows_and_a_prepared_run_change_nothing():
    frame = run_of({("q1", "C"): 1.0, ("q1", "A"): 1.0, ("q2", "B"): 0.0})
    one, other = Selection(POOL, frame), Selection(POOL, Run(frame.iloc[::-1]))
    assert one.entity.tolist() == other.entity.tolist() == [[2, 0], [1, NONE], [NONE, NONE]]


def test_topics_that_do_not_meet():
    with pytest.raises(InputError, match=r"no topic in common: run has 'other'; links has 'q1', 'q2', 'q3'"):
        Selection(POOL, run_of({("other", "A"): 1.0}))
    with pytest.warns(DegenerateWarning, match="1 topics are not in links"):
        assert Selection(POOL, run_of({("q1", "A"): 1.0, ("other", "A"): 1.0})).n_entities.tolist() == [1, 0, 0]
    with pytest.warns(DegenerateWarning, match="run: empty; all 3 topics score 0"):
        empty = Selection(POOL, run_of({("q1", "A"): 1.0}).iloc[:0])
    assert (empty.entity.shape, set(empty.first.tolist())) == ((3, 0), {NEVER})


def test_entities_as_integers_never_meet_those_of_the_links():
    run = pd.DataFrame({"qid": ["q1"], "docno": [7], "score": [1.0]})
    with pytest.raises(InputError, match="links column 'entity_id' holds text, run column 'docno' holds integers"):
        Selection(POOL, run)


@pytest.mark.filterwarnings("default:.*no document of the links mentions any:vbterrier.errors.DegenerateWarning")
def test_entities_of_another_space_of_ids_are_told_of():
    links = pd.DataFrame(
        {"qid": "q1", "docno": ["d1"], "entity_id": ["Paris"], "label": 1, "rank": 0, "weight": 1.0, "mentions": 1}
    )
    run = pd.DataFrame({"qid": "q1", "docno": ["Q90"], "score": [1.0]})
    with pytest.warns(DegenerateWarning, match=r"no document of the links mentions any of its 1 entities \(run: 'Q90'"):
        Selection(LinkedPool.from_frame(links), run)
