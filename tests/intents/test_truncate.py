import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import InputError, ParameterError
from vbterrier.intents.candidates import Truncate

INTENTS = pd.DataFrame(
    {
        "qid": ["b", "a", "b", "a", "b"],
        "entity_id": ["B1", "A1", "B2", "A2", "B3"],
        "prob": [0.04, 0.5, 0.56, 0.5, 0.4],
        "name": ["x", "y", "z", "u", "v"],
    }
)


def test_thresholds_keep_what_reaches_them():
    kept = Truncate(threshold=0.05)(INTENTS)
    assert kept["entity_id"].tolist() == ["A1", "B2", "A2", "B3"], "rows in input order"
    assert kept["prob"].tolist() == pytest.approx([0.5, 0.56 / 0.96, 0.5, 0.4 / 0.96])
    assert kept["name"].tolist() == ["y", "z", "u", "v"]
    assert Truncate(threshold=0.4)(INTENTS)["entity_id"].tolist() == ["A1", "B2", "A2", "B3"], "reaching is enough"


def test_the_most_probable_always_stays_and_of_equals_the_smallest_id():
    kept = Truncate(threshold=0.9)(INTENTS)
    assert kept[["qid", "entity_id", "prob"]].values.tolist() == [["a", "A1", 1.0], ["b", "B2", 1.0]]
    assert Truncate(cutoff=1)(INTENTS.iloc[::-1])["entity_id"].tolist() == ["B2", "A1"]


@pytest.mark.parametrize(("mass", "expected"), [(0.56, 1), (0.57, 2), (0.96, 2), (0.97, 3), (1.0, 3)])
def test_masses_keep_the_smallest_prefix_that_reaches_them(mass, expected):
    assert Truncate(mass=mass)(INTENTS)["qid"].eq("b").sum() == expected


def test_several_rules_keep_what_all_keep():
    assert Truncate(cutoff=2, threshold=0.05)(INTENTS)["entity_id"].tolist() == ["A1", "B2", "A2", "B3"]
    assert Truncate(cutoff=2, mass=0.5)(INTENTS)["entity_id"].tolist() == ["A1", "B2"]


def test_nil_keeps_its_mass_and_is_not_counted():
    with_nil = INTENTS.assign(prob=INTENTS["prob"] * 0.9)
    with_nil = pd.concat([with_nil, pd.DataFrame({"qid": ["a", "b"], "entity_id": "NIL", "prob": 0.1})])
    for options in ({"cutoff": 1}, {"threshold": 0.05}, {"mass": 0.95}):
        plain, kept = Truncate(**options)(INTENTS), Truncate(**options)(with_nil)
        nil = kept["entity_id"] == "NIL"
        assert kept[nil]["prob"].tolist() == pytest.approx([0.1, 0.1])
        assert kept[~nil]["entity_id"].tolist() == plain["entity_id"].tolist()
        assert kept[~nil]["prob"].tolist() == pytest.approx((plain["prob"] * 0.9).tolist())


def test_a_query_of_nil_alone_stays_as_it_is():
    alone = pd.DataFrame({"qid": ["a"], "entity_id": ["NIL"], "prob": [1.0]})
    assert Truncate(cutoff=1)(alone).values.tolist() == [["a", "NIL", 1.0]]


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5)), min_size=1, max_size=12),
    st.fixed_dictionaries({}, optional={"threshold": st.sampled_from([0.05, 0.3]), "cutoff": st.integers(1, 3)}),
    st.sampled_from([0.3, 0.95, 1.0]),
    st.randoms(use_true_random=False),
)
def test_order_of_rows_and_of_rules_decides_nothing(probs, rows, options, mass, random):
    frame = pd.DataFrame(rows, columns=["qid", "weight"])
    frame["entity_id"] = [f"E{i}" for i in range(len(frame))]
    frame["prob"] = frame["weight"] / frame.groupby("qid")["weight"].transform("sum")
    stage = Truncate(mass=mass, **options)
    kept = stage(frame)
    assert kept.groupby("qid")["prob"].sum().tolist() == pytest.approx([1.0] * frame["qid"].nunique())
    shuffled = frame.iloc[random.sample(range(len(frame)), len(frame))]
    assert probs(stage(shuffled)) == probs(kept)
    lost = frame[~frame["entity_id"].isin(kept["entity_id"])]
    for _, row in lost.iterrows():
        others = frame[frame["entity_id"].isin(kept["entity_id"]) & (frame["qid"] == row["qid"])]
        assert row["prob"] <= others["prob"].min() + 1e-12, "what is lost is no more probable than what stays"


def test_inputs_are_left_as_they_were():
    before = INTENTS.copy(deep=True)
    Truncate(cutoff=1)(INTENTS)
    pd.testing.assert_frame_equal(INTENTS, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prob": [0.04, 0.5, 0.56, 0.4, 0.4]}, r"query 'a' sum to 0.9 \(1 query is off\); wanted 1"),
        ({"prob": [-0.04, 0.5, 0.64, 0.5, 0.4]}, r"row 0 \(candidate 'B1' of query 'b'\) has probability -0.04"),
        ({"prob": [np.nan, 0.5, 0.56, 0.5, 0.4]}, r"row 0 holds nan \(candidate 'B1' of query 'b'\)"),
        ({"entity_id": ["B2", "A1", "B2", "A2", "B3"]}, "candidate 'B2' of query 'b' is in rows 0 and 2; keep one"),
    ],
)
def test_intents_that_are_none_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Truncate(cutoff=1)(INTENTS.assign(**changes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "wanted threshold=, cutoff= or mass="),
        ({"threshold": 1.5}, "threshold=1.5: wanted a number of at least 0 and at most 1"),
        ({"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        ({"cutoff": 2.0}, "cutoff=2.0"),
        ({"mass": 0}, "mass=0: wanted a number above 0 and at most 1"),
        ({"mass": float("nan")}, "mass=nan"),
    ],
)
def test_illegal_parameters_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        Truncate(**options)
