"""Entities beside relevance, against counting by hand, and the signal classes of the paper."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vbterrier import ParameterError
from vbterrier.entities.coverage import EntityTable
from vbterrier.entities.pool import LinkedPool
from vbterrier.kernels.coverage import CLASSES, observable_relevance, signal_classes

# A pool: for each topic its documents, each a label and the entities that it mentions.
WORLDS = st.lists(
    st.lists(st.tuples(st.integers(-1, 2), st.sets(st.sampled_from("ABCDE"))), min_size=1, max_size=8),
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
    """(topic, entity) -> (df among relevant, df among other documents)."""
    found = {}
    for number, documents in enumerate(world):
        for label, entities in documents:
            for entity in entities:
                hits = found.setdefault((number, entity), [0, 0])
                hits[label < rel] += 1
    return found


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
    if oer <= 0 and df >= 50:
        return "generic bait"
    return "neutral"


@given(WORLDS, st.integers(1, 3), st.floats(0.01, 5), st.floats(0.1, 20))
def test_counts_and_relevance_are_those_of_plain_loops(world, rel, alpha, tau):
    table, wanted = EntityTable(pool_of(world), rel), counts(world, rel)
    ids = table.pool.entities.text.to_pylist()
    pairs = [(topic, ids[entity]) for topic, entity in zip(table.topic.tolist(), table.entity.tolist(), strict=True)]
    assert pairs == sorted(wanted)
    assert table.df_relevant.tolist() == [wanted[pair][0] for pair in pairs]
    assert table.df_other.tolist() == [wanted[pair][1] for pair in pairs]
    assert table.df.tolist() == [sum(wanted[pair]) for pair in pairs]
    assert table.n_relevant.tolist() == [sum(label >= rel for label, _ in docs) for docs in world]
    assert table.n_other.tolist() == [sum(label < rel for label, _ in docs) for docs in world]
    for (topic, entity), oer, code in zip(pairs, table.oer(alpha, tau), table.classes(alpha, tau), strict=True):
        df_rel, df_other = wanted[topic, entity]
        n_rel, n_other = int(table.n_relevant[topic]), int(table.n_other[topic])
        if not (n_rel and n_other):
            assert math.isnan(oer)
            assert CLASSES[code] == ("sparse" if df_rel + df_other <= 2 else "neutral")
            continue
        p, r = (df_rel + alpha) / (n_rel + 2 * alpha), (df_other + alpha) / (n_other + 2 * alpha)
        exact = (1 - math.exp(-(df_rel + df_other) / tau)) * (math.log(p / (1 - p)) - math.log(r / (1 - r)))
        assert oer == pytest.approx(exact, abs=1e-9)
        if min(abs(oer), abs(oer - 0.5)) > 1e-9:
            assert CLASSES[code] == class_of(oer, df_rel, df_other)


@given(
    st.lists(
        st.tuples(st.sampled_from([-1.0, -1e-9, 0.0, 0.3, 0.5, 2.0]), st.integers(0, 60), st.integers(0, 60)),
        min_size=1,
    )
)
def test_classes_follow_the_order_of_the_paper(entities):
    found = signal_classes(*map(np.array, zip(*entities, strict=True)))
    assert [CLASSES[code] for code in found] == [class_of(*entity) for entity in entities]


@pytest.mark.parametrize(
    ("oer", "df_rel", "df_other", "name"),
    [
        (9.0, 2, 0, "sparse"),
        (0.5, 2, 1, "core"),
        (0.49, 2, 1, "conditional"),
        (0.6, 2, 2, "conditional"),
        (0.6, 1, 2, "conditional"),
        (0.0, 25, 25, "generic bait"),
        (-0.1, 25, 25, "generic bait"),
        (-0.1, 24, 26, "anti-signal"),
        (-0.1, 2, 1, "neutral"),
        (0.0, 20, 29, "neutral"),
        (np.nan, 30, 30, "neutral"),
    ],
)
def test_a_class_at_its_edges(oer, df_rel, df_other, name):
    assert [CLASSES[c] for c in signal_classes(np.array([oer]), np.array([df_rel]), np.array([df_other]))] == [name]


def test_the_log_odds_by_hand():
    """4 of 5 relevant, none of 5 others: odds (4.5/1.5) / (0.5/5.5) = 33; 4 documents of support at tau = 5."""
    found = observable_relevance(*(np.array([n]) for n in (4, 0, 5, 5)), alpha=0.5, shrinkage=5.0)
    odds = Fraction(9, 3) / Fraction(1, 11)
    assert odds == 33
    assert found[0] == pytest.approx((1 - math.exp(-0.8)) * math.log(33), rel=1e-14)


def test_equal_odds_are_zero_to_the_last_bit():
    """1 of 1 and 4 of 5 are odds of 3 either way: what the sign of a rounding says would make a signal, or bait."""
    table = EntityTable(pool_of([[(1, {"A"}), *[(0, {"A"})] * 4, (0, set())]]))
    assert table.oer().tolist() == [0.0]
    assert CLASSES[table.classes()[0]] == "neutral"


@given(WORLDS)
def test_swapping_relevant_and_other_documents_turns_the_sign(world):
    swapped = [[(int(label < 1), entities) for label, entities in docs] for docs in world]
    np.testing.assert_allclose(EntityTable(pool_of(swapped)).oer(), -EntityTable(pool_of(world)).oer(), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda pool: EntityTable(pool, 0), "rel=0: wanted a whole number of at least 1"),
        (lambda pool: EntityTable(pool, True), "rel=True"),
        (lambda pool: EntityTable(pool).oer(alpha=0), "alpha=0: wanted a number above 0"),
        (lambda pool: EntityTable(pool).oer(shrinkage=float("nan")), "shrinkage=nan"),
        (lambda pool: EntityTable(pool).classes(shrinkage=float("inf")), "shrinkage=inf"),
    ],
)
def test_parameters_without_a_meaning_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make(pool_of([[(1, {"A"})]]))
