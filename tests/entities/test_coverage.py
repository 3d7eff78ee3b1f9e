"""Entities beside relevance, the first entities of runs, and the best entities of a pool, against plain loops."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.frames import entity_coverage as coverage
from vbterrier.frames.entity_coverage import NO_ENTITY, UNKNOWN_ENTITY, EntityTable, Oracle, Selection
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.ranking import Run
from vbterrier.kernels.coverage import (
    CLASSES,
    UNDEFINED,
    first_ranks,
    greedy_cover,
    observable_relevance,
    signal_classes,
)
from vbterrier.kernels.rankings import NO_RANK

# A pool: for each topic its documents, each a label and the entities that it mentions.
WORLDS = st.lists(
    st.lists(st.tuples(st.integers(-1, 2), st.sets(st.sampled_from("ABCDEF"))), min_size=1, max_size=9),
    min_size=1,
    max_size=3,
)


def pool_of(world):
    rows = [
        (f"q{number}", f"d{rank}", entity, label, rank, 1.0)
        for number, documents in enumerate(world)
        for rank, (label, entities) in enumerate(documents)
        for entity in (sorted(entities) or [None])
    ]
    return LinkedPool.from_frame(pd.DataFrame(rows, columns=["qid", "docno", "entity_id", "label", "rank", "weight"]))


def counts(world, rel):
    """(topic, entity) -> [df among relevant, df among other documents]."""
    results = {}
    for number, documents in enumerate(world):
        for label, entities in documents:
            for entity in entities:
                results.setdefault((number, entity), [0, 0])[label < rel] += 1
    return results


def class_of(oer, df_rel, df_other):
    """Section 2.5 as it is printed, in its order."""
    df = df_rel + df_other
    if df <= 2:
        return "sparse"
    if df_rel >= 2 and df_rel > df_other and oer >= 0.5:
        return "core"
    if oer > 0:
        return "conditional"
    if oer < 0 and df_other > df_rel:
        return "anti-signal"
    return "generic bait" if oer <= 0 and df >= 50 else "neutral"


@given(WORLDS, st.integers(1, 3), st.floats(0.01, 5), st.floats(0.1, 20))
def test_counts_and_relevance_are_those_of_plain_loops(world, rel, alpha, tau):
    table, expected = EntityTable(pool_of(world), rel), counts(world, rel)
    ids = table.pool.entities.text.to_pylist()
    pairs = [(topic, ids[entity]) for topic, entity in zip(table.topic.tolist(), table.entity.tolist(), strict=True)]
    assert pairs == sorted(expected)
    values = np.stack([table.df_relevant, table.df_other, table.df]).T.tolist()
    assert values == [[*expected[pair], sum(expected[pair])] for pair in pairs]
    assert table.n_relevant.tolist() == [sum(label >= rel for label, _ in docs) for docs in world]
    assert table.n_other.tolist() == [sum(label < rel for label, _ in docs) for docs in world]
    for (topic, entity), oer, code in zip(pairs, table.oer(alpha, tau), table.classes(alpha, tau), strict=True):
        df_rel, df_other = expected[topic, entity]
        n_rel, n_other = int(table.n_relevant[topic]), int(table.n_other[topic])
        if not (n_rel and n_other):
            assert math.isnan(oer)
            assert code == UNDEFINED
            continue
        p, r = (df_rel + alpha) / (n_rel + 2 * alpha), (df_other + alpha) / (n_other + 2 * alpha)
        exact = (1 - math.exp(-(df_rel + df_other) / tau)) * (math.log(p / (1 - p)) - math.log(r / (1 - r)))
        assert oer == pytest.approx(exact, abs=1e-9)
        if min(abs(oer), abs(oer - 0.5)) > 1e-9:
            assert CLASSES[code] == class_of(oer, df_rel, df_other)


EDGES = [
    (9.0, 2, 0, "sparse"), (0.5, 2, 1, "core"), (0.49, 2, 1, "conditional"), (0.6, 2, 2, "conditional"),
    (0.6, 1, 2, "conditional"), (0.0, 25, 25, "generic bait"), (-0.1, 25, 25, "generic bait"),
    (-0.1, 24, 26, "anti-signal"), (-0.1, 2, 1, "neutral"), (0.0, 20, 29, "neutral"), (np.nan, 30, 30, "undefined"),
]  # fmt: skip


def test_classes_at_their_edges():
    oer, df_rel, df_other, names = (np.array(column) for column in zip(*EDGES, strict=True))
    assert [(*CLASSES, "undefined")[code] for code in signal_classes(oer, df_rel, df_other)] == names.tolist()


def test_the_log_odds_by_hand():
    """4 of 5 relevant, none of 5 others: odds (4.5/1.5) / (0.5/5.5) = 33; 4 documents of support at tau = 5."""
    result = observable_relevance(*(np.array([n]) for n in (4, 0, 5, 5)), alpha=0.5, shrinkage=5.0)
    assert result[0] == pytest.approx((1 - math.exp(-0.8)) * math.log(33), rel=1e-14)


def test_equal_odds_are_zero_to_the_last_bit():
    """1 of 1 and 4 of 5 are odds of 3 either way: the sign of a rounding error would make a signal, or bait."""
    table = EntityTable(pool_of([[(1, {"A"}), *[(0, {"A"})] * 4, (0, set())]]))
    assert table.oer().tolist() == [0.0]
    assert CLASSES[table.classes()[0]] == "neutral"


# The first entities of a run

DOCUMENTS = [("q1", "d1", "AB"), ("q1", "d2", ""), ("q1", "d3", "BC"), ("q2", "d1", "AB"), ("q3", "d9", "")]
ROWS = [(q, d, e, 0, rank, 1.0) for rank, (q, d, entities) in enumerate(DOCUMENTS) for e in entities or [None]]
POOL = LinkedPool.from_frame(pd.DataFrame(ROWS, columns=["qid", "docno", "entity_id", "label", "rank", "weight"]))
# C is linked for another topic than q2, X for none.
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


# Random entities may all be others than those of the documents.
@pytest.mark.filterwarnings("ignore:.*no document of the links mentions any:vbterrier.errors.DegenerateWarning")
@given(RUNS, st.sampled_from([None, 1, 2, 9]), st.randoms())
def test_a_selection_equals_plain_loops_in_any_order_of_rows(scores, depth, random):
    selection = Selection(POOL, Run(run_of(scores).sample(frac=1, random_state=random.randrange(99))), depth)
    assert selection.entity.tolist() == Selection(POOL, run_of(scores), depth).entity.tolist()
    lists = [ranking(scores, qid)[:depth] for qid in POOL.topics]
    ids = POOL.entities.text.to_pylist()
    assert selection.depth == max(map(len, lists))
    assert selection.n_entities.tolist() == list(map(len, lists))
    for number, (qid, entities) in enumerate(zip(POOL.topics, lists, strict=True)):
        padding = selection.depth - len(entities)
        codes = [ids.index(entity) if entity in ids else UNKNOWN_ENTITY for entity in entities]
        assert selection.entity[number].tolist() == codes + [NO_ENTITY] * padding
        expected = [*(scores[qid, entity] for entity in entities), *[np.nan] * padding]
        np.testing.assert_array_equal(selection.score[number], expected)
    ranks = [
        lists[topic].index(ids[entity]) if ids[entity] in lists[topic] else NO_RANK
        for topic, entity in zip(POOL.topic[POOL.document], POOL.entity, strict=True)
    ]
    assert selection.link_ranks.tolist() == ranks
    assert selection.first.tolist() == first_ranks(np.array(ranks), POOL.starts).tolist()


def test_topics_and_ids_that_do_not_meet():
    with pytest.raises(InputError, match=r"no topic in common: run has 'other'; links has 'q1', 'q2', 'q3'"):
        Selection(POOL, run_of({("other", "A"): 1.0}))
    with pytest.warns(DegenerateWarning, match="1 topic is not in links"):
        assert Selection(POOL, run_of({("q1", "A"): 1.0, ("other", "A"): 1.0})).n_entities.tolist() == [1, 0, 0]
    with pytest.warns(DegenerateWarning, match="run: empty; all 3 topics score 0"):
        empty = Selection(POOL, run_of({("q1", "A"): 1.0}).iloc[:0])
    assert (empty.entity.shape, set(empty.first.tolist())) == ((3, 0), {NO_RANK})
    with pytest.raises(InputError, match="links column 'entity_id' holds text, run column 'docno' holds integers"):
        Selection(POOL, run_of({("q1", 7): 1.0}))
    with pytest.warns(DegenerateWarning, match=r"no document of the links mentions any of its 1 entities \(run: 'Q90'"):
        Selection(POOL, run_of({("q1", "Q90"): 1.0}))
    with pytest.warns(
        DegenerateWarning, match="run: 1 entities differ from those of the links only in case.*'a' and 'A'"
    ):
        Selection(POOL, run_of({("q1", "A"): 1.0, ("q1", "a"): 1.0, ("q1", "Q90"): 1.0}))


# The best entities


def best(documents, k, rel):
    """The most relevant documents that k entities reach, by all sets of them."""
    relevant = [entities for label, entities in documents if label >= rel]
    every = sorted(set().union(*relevant)) if relevant else []
    return max(
        sum(bool(set(some) & entities) for entities in relevant) for some in combinations(every, min(k, len(every)))
    )


def greedy(documents, k, rel):
    """The number of documents that k entities reach, chosen one after the other, the first of equals."""
    left, reached = [entities for label, entities in documents if label >= rel], 0
    for _ in range(k):
        gains = {entity: sum(entity in entities for entities in left) for entity in "ABCDEF"}
        taken = max(gains, key=gains.get)
        left = [entities for entities in left if taken not in entities]
        reached += gains[taken]
    return reached


@given(WORLDS, st.integers(1, 2), st.integers(1, 4))
@settings(max_examples=150)
def test_oracles_against_all_subsets(world, rel, k):
    oracle, unlimited = Oracle(pool_of(world), rel, cutoff=4), Oracle(pool_of(world), rel)
    exact, result = oracle.exact(k), oracle.greedy(k)
    assert exact.tolist() == [best(documents, k, rel) for documents in world]
    assert result.tolist() == [greedy(documents, k, rel) for documents in world]
    everything = [sum(label >= rel and bool(entities) for label, entities in documents) for documents in world]
    assert unlimited.greedy(None).tolist() == unlimited.exact(None).tolist() == everything
    assert oracle.greedy(None).tolist() == oracle.greedy(4).tolist()


def test_greed_falls_short_where_it_must_and_the_exact_cover_does_not():
    """Two entities share the documents evenly; a third has a little more than half and misleads the greedy choice."""
    misled = [(1, {entity, "A"} if place < 6 else {entity}) for entity in "LR" for place in range(10)]
    oracle = Oracle(pool_of([misled, [(0, {"A"})]]), cutoff=2)
    assert (oracle.greedy(2).tolist(), oracle.exact(2).tolist()) == ([16, 0], [20, 0])
    assert oracle.pair.tolist() == [[0, 1], [-1, -1]], "A first, then L of the equals L and R"


@pytest.mark.slow
def test_larger_covers_are_settled_and_without_a_solution_within_the_limit_refused(monkeypatch):
    rng = np.random.default_rng(0)
    oracle = Oracle(pool_of([[(1, {f"e{e}" for e in rng.choice(30, 5)}) for _ in range(60)] for _ in range(3)]))
    result, exact = oracle.greedy(6), oracle.exact(6)
    assert (result <= exact).all()
    assert (exact <= result / (1 - 1 / math.e)).all()
    assert (result < exact).any()
    monkeypatch.setattr(coverage, "MOST_NODES", 0)
    documents = [(1, {f"e{e}" for e in rng.choice(30, 3)}) for _ in range(60)]
    with pytest.raises(InputError, match="query 'q0': found no best 6 of 30 entities for 60 relevant documents"):
        Oracle(pool_of([documents])).exact(6)


def test_nothing_to_reach():
    pairs, n_reached = greedy_cover(np.array([], int), np.array([], int), np.array([0, 0, 0]), 0)
    assert (pairs.shape, n_reached.shape) == ((2, 0), (2, 0))
