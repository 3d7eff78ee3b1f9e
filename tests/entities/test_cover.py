"""The best entities of a pool, against all subsets."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier import InputError
from vbterrier.entities import coverage
from vbterrier.entities.coverage import Oracle
from vbterrier.entities.pool import LinkedPool
from vbterrier.kernels.coverage import greedy_cover

DOCUMENTS = st.lists(st.tuples(st.integers(0, 2), st.sets(st.sampled_from("ABCDEF"))), min_size=1, max_size=9)
WORLDS = st.lists(DOCUMENTS, min_size=1, max_size=3)


def pool_of(world):
    rows = [
        (f"q{number}", f"d{rank}", entity, label, rank, 1.0)
        for number, documents in enumerate(world)
        for rank, (label, entities) in enumerate(documents)
        for entity in (sorted(entities) or [None])
    ]
    return LinkedPool.from_frame(pd.DataFrame(rows, columns=["qid", "docno", "entity_id", "label", "rank", "weight"]))


def best(documents, k, rel):
    """The most relevant documents that k entities reach, by all sets of them."""
    relevant = [entities for label, entities in documents if label >= rel]
    every = sorted(set().union(*relevant)) if relevant else []
    return max(
        sum(bool(set(some) & entities) for entities in relevant) for some in combinations(every, min(k, len(every)))
    )


def greedy(documents, k, rel):
    """Entities one after the other, the first of equals; what they reach after each."""
    left = [entities for label, entities in documents if label >= rel]
    reached = [0]
    for _ in range(k):
        gains = {entity: sum(entity in entities for entities in left) for entity in "ABCDEF"}
        taken = max(gains, key=gains.get)
        left = [entities for entities in left if taken not in entities]
        reached.append(reached[-1] + gains[taken])
    return reached


@given(WORLDS, st.integers(1, 2), st.integers(1, 4))
@settings(max_examples=150)
def test_oracles_against_all_subsets(world, rel, k):
    oracle = Oracle(pool_of(world), rel, cutoff=4)
    exact, found = oracle.exact(k), oracle.greedy(k)
    assert exact.tolist() == [best(documents, k, rel) for documents in world]
    assert found.tolist() == [greedy(documents, k, rel)[k] for documents in world]
    assert (found <= exact).all()
    assert (found >= (1 - (1 - 1 / k) ** k) * exact - 1e-9).all()
    assert (oracle.greedy(None) >= found).all()
    everything = Oracle(pool_of(world), rel).greedy(None)
    assert everything.tolist() == [sum(label >= rel and bool(e) for label, e in documents) for documents in world]
    assert Oracle(pool_of(world), rel).exact(None).tolist() == everything.tolist()


def trap(size):
    """Two entities share the documents evenly; a third has a little more than half and takes greed in."""
    left, right = [{"L"} for _ in range(size)], [{"R"} for _ in range(size)]
    for side in (left, right):
        for place in range(size // 2 + 1):
            side[place].add("A")
    return [(1, entities) for entities in left + right]


def test_greed_falls_short_where_it_must_and_the_exact_cover_does_not():
    oracle = Oracle(pool_of([trap(10), [(0, {"A"})]]), cutoff=2)
    assert (oracle.greedy(2).tolist(), oracle.exact(2).tolist()) == ([16, 0], [20, 0])
    assert oracle.pair.tolist() == [[0, 1], [-1, -1]], "A first, then L of the equals L and R"


def test_a_cover_without_solution_within_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(coverage, "MOST_NODES", 0)
    rng = np.random.default_rng(1)
    documents = [(1, {f"e{e}" for e in rng.choice(30, 3)}) for _ in range(60)]
    with pytest.raises(InputError, match="query 'q0': found no best 6 of 30 entities for 60 relevant documents"):
        Oracle(pool_of([documents])).exact(6)


def test_larger_covers_are_settled_and_lie_between_their_bounds():
    rng = np.random.default_rng(0)
    world = [[(1, {f"e{e}" for e in rng.choice(30, 5)}) for _ in range(60)] for _ in range(3)]
    oracle = Oracle(pool_of(world), cutoff=6)
    found, exact = oracle.greedy(6), oracle.exact(6)
    assert (found <= exact).all()
    assert (exact <= found / (1 - 1 / math.e)).all()
    assert (found < exact).any()


def test_nothing_to_reach():
    pairs, n_reached = greedy_cover(np.array([], int), np.array([], int), np.array([0, 0, 0]), 0)
    assert (pairs.shape, n_reached.shape) == ((2, 0), (2, 0))
