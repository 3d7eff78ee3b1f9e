import math

import numpy as np
import pandas as pd
import pytest

from vbterrier.errors import InputError
from vbterrier.frames.score_table import ScoreTable, by_mean, table_of_views

# Topics of b in another order; b has no P@5, and a no AP for q1.
ROWS = [
    ("a", "q3", "AP", 0.25),
    ("a", "q2", "AP", 0.5),
    ("a", "q3", "P@5", 1.0),
    ("b", "q1", "AP", 0.75),
    ("b", "q2", "AP", 1.0),
    ("b", "q3", "AP", 0.0),
]
FRAME = pd.DataFrame(ROWS, columns=["name", "qid", "measure", "value"])


@pytest.fixture
def table():
    return ScoreTable.of_rows(ROWS)


def test_values_have_the_place_of_measure_system_and_topic(table):
    assert (table.measures, table.names, table.qids) == (["AP", "P@5"], ["a", "b"], ["q3", "q2", "q1"])
    expected = [[[0.25, 0.5, np.nan], [0.0, 1.0, 0.75]], [[1.0, np.nan, np.nan], [np.nan] * 3]]
    np.testing.assert_array_equal(table.values, expected)
    of_frame = ScoreTable.of_frame(FRAME.sample(frac=1, random_state=1)).rows("AP", ["b", "a"], ["q1", "q2", "q3"])
    np.testing.assert_array_equal(of_frame, [[0.75, 1.0, 0.0], [np.nan, 0.5, 0.25]])


def test_the_frame_has_every_value_by_system_measure_and_topic(table):
    expected = FRAME.iloc[[0, 1, 2, 5, 4, 3]].reset_index(drop=True)
    pd.testing.assert_frame_equal(table.frame(), expected, check_dtype=False)


def test_no_rows_are_an_empty_table():
    empty = ScoreTable.of_rows([])
    assert empty.values.shape == (0, 0, 0)
    assert not len(empty.frame())
    assert empty.views() == list(empty.columns()) == []


def test_selections_keep_what_the_table_has(table):
    kept = table.of(["P@5", "nDCG", "P@5"]).on({"q2", "q3"})
    assert (kept.measures, kept.qids, kept.values.shape) == (["P@5"], ["q3", "q2"], (1, 2, 2))
    assert table.system_scores("b", "AP").tolist() == [0.0, 1.0, 0.75]
    assert [len(table.system_scores(*key)) for key in (("b", "P@5"), ("b", "RR"), ("c", "AP"))] == [0, 0, 0]
    assert np.isnan(table.rows("RR", ["a"], ["q1"])).all()
    np.testing.assert_array_equal(table.rows("AP", ["c", "a"], ["q2", "q9"]), [[np.nan] * 2, [0.5, np.nan]])


def test_views_are_of_systems_with_values_and_refuse_different_topics(table):
    message = "of AP, 'a' has 2 topics, 'b' has 3, and they differ in 'q1': .*0 where a run retrieved nothing"
    with pytest.raises(InputError, match=message):
        table.views()
    of_ap, of_p = table.views(common=True)
    assert (of_ap.names, of_ap.qids, of_ap.values.tolist()) == (["a", "b"], ["q2", "q3"], [[0.5, 1.0], [0.25, 0.0]])
    assert table.views(common=True, by_id=False)[0].qids == ["q3", "q2"]
    assert (of_p.names, of_p.qids) == (["a"], ["q3"])
    with pytest.raises(InputError, match="of P@5, no topic is common to all systems"):
        table.views(common=True, of_all=True)


def test_the_highest_mean_is_first_and_equal_ones_by_name():
    values = {"c": [0.1, 0.2], "a": [0.2, 0.1], "b": [0.3, 0.3]}
    rows = [
        (name, qid, "AP", value) for name, scores in values.items() for qid, value in zip("12", scores, strict=True)
    ]
    view = by_mean(ScoreTable.of_rows(rows).views()[0])
    assert view.names == ["b", "a", "c"]
    assert view.values.T.tolist() == [values[name] for name in view.names]


def test_columns_share_their_sorted_topics(table):
    groups = {tuple(each.qids): each for each in table.columns()}
    assert [*groups] == [("q2", "q3"), ("q3",), ("q1", "q2", "q3")]
    result = groups["q1", "q2", "q3"]
    assert (result.places.tolist(), result.values.tolist()) == ([[1, 0]], [[0.75], [1.0], [0.0]])


def test_a_table_of_views_has_their_values(table):
    views = [by_mean(view) for view in table.of(["AP"]).views(common=True)]
    again = table_of_views(views)
    assert (again.names, again.qids) == (["b", "a"], ["q2", "q3"])
    np.testing.assert_array_equal(again.rows("AP", ["a", "b"], ["q3", "q2"]), [[0.25, 0.5], [0.0, 1.0]])


def test_topics_of_joined_collections_are_different_topics(table):
    other = ScoreTable.of_rows([("c", "q1", "RR", 0.5), ("a", "q1", "AP", 0.125)])
    joined = ScoreTable.join_collections({"x": table, "y": other})
    assert (joined.measures, joined.names) == (["AP", "P@5", "RR"], ["a", "b", "c"])
    assert joined.qids == ["x/q3", "x/q2", "x/q1", "y/q1"]
    np.testing.assert_array_equal(joined.rows("AP", ["a"], joined.qids), [[0.25, 0.5, np.nan, 0.125]])
    np.testing.assert_array_equal(joined.rows("RR", ["a", "c"], ["y/q1"]), [[np.nan], [0.5]])
    assert ScoreTable.join_collections({"": table}) is table


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_finite_number_is_refused(value):
    with pytest.raises(InputError, match=rf"values: {value} \(system 'b', topic 'q9', RR\), wanted a finite number"):
        ScoreTable.of_rows([*ROWS, ("b", "q9", "RR", value)])
