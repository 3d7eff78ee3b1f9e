"""Intents and tags that nobody gave as such: from diversity judgments, from a column of a run."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier import DegenerateWarning, InputError
from vbterrier.frames.ranking import Run
from vbterrier.intents.sources import from_diversity, from_run


def judgments(*rows, columns=("qid", "iteration", "docno", "label")):
    return pd.DataFrame(rows, columns=list(columns))


def rows_of(frame):
    return sorted(frame.itertuples(index=False, name=None))


rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("0123"), st.sampled_from("wxyz"), st.integers(-2, 3)),
    min_size=1,
    max_size=25,
    unique_by=lambda row: row[:3],
)


@settings(deadline=None)
@given(rows, st.sampled_from([1, 2]))
def test_intents_and_tags_are_those_of_a_plain_loop(rows, rel):
    intents = {}
    for qid, iteration, _, _ in rows:
        intents.setdefault(qid, set()).add(iteration)
    for found in intents.values():
        if len(found) > 1:
            found.discard("0")
    expected = sorted((qid, entity, 1 / len(found)) for qid, found in intents.items() for entity in found)
    covered = sorted((q, d, i) for q, i, d, label in rows if label >= rel and i in intents[q])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        made, tags = from_diversity(judgments(*rows), rel=rel)
    assert list(made.columns) == ["qid", "entity_id", "prob"]
    assert list(tags.columns) == ["qid", "docno", "entity_id"]
    assert rows_of(made) == [(q, e, pytest.approx(p, abs=1e-15)) for q, e, p in expected]
    assert rows_of(tags) == covered


def test_rows_that_repeat_name_an_intent_and_a_tag_once():
    qrels = judgments(*[("a", "1", "x", 1)] * 3, ("a", "2", "y", 0))
    intents, tags = from_diversity(qrels)
    assert rows_of(intents) == [("a", "1", 0.5), ("a", "2", 0.5)]
    assert rows_of(tags) == [("a", "x", "1")]


def test_probabilities_come_from_their_column():
    qrels = judgments(("a", "1", "x", 1), ("a", "1", "y", 0), ("a", "2", "z", 1)).assign(prob=[0.75, 0.75, 0.25])
    intents, tags = from_diversity(qrels)
    assert rows_of(intents) == [("a", "1", 0.75), ("a", "2", 0.25)]
    assert "prob" not in tags


def test_one_iteration_only_warns_that_nothing_is_ambiguous():
    with pytest.warns(DegenerateWarning, match="judgments: only one iteration, so no query is ambiguous"):
        from_diversity(judgments(("a", "0", "x", 1), ("b", "0", "y", 0)), name="judgments")
    from_diversity(judgments(("a", "1", "x", 1), ("b", "2", "y", 0)))


@pytest.mark.parametrize("kind", ["category", "string[pyarrow]", object, "int64"])
def test_iterations_of_any_type_are_text(kind):
    qrels = judgments(("a", "0", "x", 0), ("a", "1", "x", 1), ("a", "2", "y", 1))
    qrels = qrels.astype({"iteration": int}).astype({"iteration": kind})
    if kind != "int64":
        qrels = qrels.astype({"qid": kind})
    intents, tags = from_diversity(qrels)
    assert [entity for _, entity, _ in rows_of(intents)] == ["1", "2"]
    assert [row[1:] for row in rows_of(tags)] == [("x", "1"), ("y", "2")]


def test_labels_of_rows_that_repeat_do_not_matter():
    qrels = judgments(("a", "0", "v", 1), ("a", "1", "x", 1), ("a", "2", "y", 0), ("b", "1", "z", 1))
    expected = [rows_of(frame) for frame in from_diversity(qrels)]
    qrels.index = [7, 7, 0, 0]
    assert [rows_of(frame) for frame in from_diversity(qrels)] == expected


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        (judgments(("a", "1", "x", 1)).drop(columns="iteration"), "missing iteration"),
        (judgments(("a", "1", "x", 1.5)), "qrels column 'label': row 0 holds .*1.5.*, wanted a whole number"),
        (judgments(("a", "1", "x", None)), "qrels column 'label': row 0"),
        (iter([]), "found a generator"),
        ([("a", "1", "x", 1)], "wanted a data frame, found list"),
    ],
)
def test_what_is_no_diversity_judgment_is_refused(qrels, message):
    with pytest.raises(InputError, match=message):
        from_diversity(qrels)


def test_judgments_are_left_as_they_were():
    qrels = judgments(("a", "0", "v", 1), ("a", "1", "x", 1), ("a", "2", "y", 0))
    before = qrels.copy(deep=True)
    from_diversity(qrels)
    pd.testing.assert_frame_equal(qrels, before)


# Tags of a run


def run(entities, **columns):
    n = len(entities)
    made = {"qid": "a", "docno": [f"d{i}" for i in range(n)], "score": -np.arange(n, dtype=float)}
    return Run(pd.DataFrame({**made, "entity_id": pd.Series(list(entities), dtype=object), **columns}))


def test_one_entity_a_row_and_rows_without():
    tags = from_run(run(["A", None, "B", np.nan]))
    assert rows_of(tags) == [("a", "d0", "A"), ("a", "d2", "B")]


@pytest.mark.parametrize("form", [list, tuple, np.array, set])
def test_lists_of_entities_are_as_many_tags(form):
    tags = from_run(run([form(["A", "B"]), form([]), form(["A"])]))
    assert rows_of(tags) == [("a", "d0", "A"), ("a", "d0", "B"), ("a", "d2", "A")]
    assert rows_of(from_run(run([form(["A"]), "B"]))) == [("a", "d0", "A"), ("a", "d1", "B")]


def test_weights_go_with_their_entities():
    tags = from_run(run([["A", "B"], ["C"], []], weight=pd.Series([[0.25, 1.0], [0.5], []], dtype=object)))
    assert rows_of(tags) == [("a", "d0", "A", 0.25), ("a", "d0", "B", 1.0), ("a", "d1", "C", 0.5)]
    assert rows_of(from_run(run(["A", None], weight=[0.5, 1.0]))) == [("a", "d0", "A", 0.5)]
    assert rows_of(from_run(run([["A", "B"]], weight=[0.5]))) == [("a", "d0", "A", 0.5), ("a", "d0", "B", 0.5)]


def test_a_run_that_retrieved_nothing_has_no_tags():
    empty = Run(pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object))
    assert from_run(empty).columns.tolist() == ["qid", "docno", "entity_id"]
    assert len(from_run(empty)) == 0


def test_a_run_without_the_column_is_refused():
    with pytest.raises(InputError, match="run: wanted columns entity_id; missing entity_id"):
        from_run(Run(pd.DataFrame({"qid": ["a"], "docno": ["d"], "score": [1.0]})))


def test_rows_blanked_by_an_operator_are_refused_and_honest_emptiness_is_not():
    tagged = {"tagger": pd.Series(["wat", "wat", "wat"], dtype=object)}
    assert rows_of(from_run(run([["A"], [], None], **tagged))) == [("a", "d0", "A")]
    for missing in (None, np.nan):
        tagged["tagger"][1] = missing
        with pytest.raises(
            InputError, match=r"run: 1 of 3 rows were never tagged \(query 'a', document 'd1'\).*tag last"
        ):
            from_run(run([["A"], missing, []], **tagged))
    assert rows_of(from_run(run([["A"], None, []]))) == [("a", "d0", "A")], "nothing says that it was ever there"


def test_rows_of_several_taggers_are_refused():
    with pytest.raises(InputError, match="run: its rows are tagged by wat and by genre; use one tagger only"):
        from_run(run([["A"], ["B"]], tagger=["wat", "genre"]))
