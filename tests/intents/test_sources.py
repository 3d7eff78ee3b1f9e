"""Intents and tags that nobody gave as such: from diversity judgments, from a column of a run."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.ranking import Run
from vbterrier.intents.coverage import Intents
from vbterrier.intents.parts import tags_of_parts
from vbterrier.intents.similarities import neighbour_pairs, similarities_from
from vbterrier.intents.sources import (
    from_diversity,
    from_run,
    iteration_codes,
    subtopic_gaps,
)


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
    for result in intents.values():
        if len(result) > 1:
            result.discard("0")
    expected = sorted((qid, entity, 1 / len(ids)) for qid, ids in intents.items() for entity in ids)
    covered = sorted((q, d, i) for q, i, d, label in rows if label >= rel and i in intents[q])
    qrels = judgments(*rows).set_axis([7] * len(rows))
    before = qrels.copy(deep=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        made, tags = from_diversity(qrels, rel=rel)
    pd.testing.assert_frame_equal(qrels, before)
    assert list(made.columns) == ["qid", "entity_id", "prob"]
    assert list(tags.columns) == ["qid", "docno", "entity_id"]
    assert rows_of(made) == [(q, e, pytest.approx(p, abs=1e-15)) for q, e, p in expected]
    assert rows_of(tags) == covered


def test_rows_that_repeat_count_once_and_probabilities_come_from_their_column():
    intents, tags = from_diversity(judgments(*[("a", "1", "x", 1)] * 3, ("a", "2", "y", 0)))
    assert rows_of(intents) == [("a", "1", 0.5), ("a", "2", 0.5)]
    assert rows_of(tags) == [("a", "x", "1")]
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


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        (judgments(("a", "1", "x", 1)).drop(columns="iteration"), "missing iteration"),
        (judgments(("a", "1", "x", 1.5)), "qrels column 'label': row 0 holds .*1.5.*, wanted a whole number"),
        (judgments(("a", "1", "x", None)), "qrels column 'label': row 0"),
    ],
)
def test_what_is_no_diversity_judgment_is_refused(qrels, message):
    with pytest.raises(InputError, match=message):
        from_diversity(qrels)


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


def test_a_run_that_retrieved_nothing_has_no_tags_and_one_without_the_column_is_refused():
    empty = from_run(Run(pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object)))
    assert (empty.columns.tolist(), len(empty)) == (["qid", "docno", "entity_id"], 0)
    with pytest.raises(InputError, match="run: wanted columns entity_id; missing entity_id"):
        from_run(Run(pd.DataFrame({"qid": ["a"], "docno": ["d"], "score": [1.0]})))


def test_rows_blanked_by_an_operator_are_refused_and_honest_emptiness_is_not():
    tagged = {"tagger": pd.Series(["wat", "wat", "wat"], dtype=object)}
    assert rows_of(from_run(run([["A"], [], None], **tagged))) == [("a", "d0", "A")]
    for missing in (None, np.nan):
        tagged["tagger"][1] = missing
        message = r"run: 1 of 3 rows were never tagged \(query 'a', document 'd1'\).*tag last"
        with pytest.raises(InputError, match=message):
            from_run(run([["A"], missing, []], **tagged))
    assert rows_of(from_run(run([["A"], None, []]))) == [("a", "d0", "A")], "nothing says that it was ever there"


def test_rows_of_several_taggers_are_refused():
    with pytest.raises(InputError, match="run: its rows are tagged by wat and by genre; use one tagger only"):
        from_run(run([["A"], ["B"]], tagger=["wat", "genre"]))


ABC = pd.DataFrame({"qid": ["q", "q", "p", "p"], "entity_id": ["A", "B", "B", "C"], "prob": 0.5})


def pairs(*rows):
    return pd.DataFrame(rows, columns=["qid", "entity_id", "other_id", "similarity"])


def found_pairs(frame):
    return sorted(zip(*(part.tolist() for part in neighbour_pairs(frame, Intents(ABC))), strict=True))


def test_pairs_hold_in_both_directions_for_the_intents_of_a_query():
    similarities = pairs(("q", "B", "A", 0.5), ("q", "A", "C", 0.9), ("z", "A", "B", 0.1), ("p", "C", "B", 0.0))
    assert found_pairs(similarities) == [(0, 1, 0.5), (1, 0, 0.5)]
    assert found_pairs(pd.concat([similarities, pairs(("q", "A", "B", 0.5))])) == [(0, 1, 0.5), (1, 0, 0.5)]
    everywhere = similarities.iloc[:1].drop(columns="qid")
    both = pd.concat([everywhere, pd.DataFrame([("B", "C", 0.25)], columns=everywhere.columns)])
    assert found_pairs(both) == [(0, 1, 0.5), (1, 0, 0.5), (2, 3, 0.25), (3, 2, 0.25)]
    assert found_pairs(similarities.iloc[:0]) == []
    with pytest.warns(DegenerateWarning, match=r"no pair has two intents of a query: 'x' against 'A'"):
        assert found_pairs(pairs(("q", "x", "y", 1.0))) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("q", "A", "B", 1.5)], r"row 0 \('A' and 'B'\) has similarity 1.5, wanted 0 to 1"),
        ([("q", "A", "A", 0.5)], r"wanted 1 of an entity with itself"),
        ([("q", "A", "B", 0.5), ("q", "B", "A", 0.4)], r"rows 0 and 1 \('B' and 'A'\) have two similarities"),
        ([("q", "A", "B", float("nan"))], r"row 0 holds .*nan"),
    ],
)
def test_similarities_that_contradict_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        found_pairs(pairs(*rows))


def test_similarities_of_vectors_are_cosines_above_a_floor():
    rng = np.random.default_rng(3)
    vectors = {name: rng.normal(size=5) for name in "ABCDEFGH"}
    rows = [(qid, name, 1.0) for qid in ("1", "2") for name in rng.permutation(list(vectors))[:6]]
    intents = pd.DataFrame([*rows, ("1", "NIL", 0.0)], columns=["qid", "entity_id", "prob"])
    result = similarities_from(intents, vectors, floor=0.1)
    seen = {(row.qid, frozenset((row.entity_id, row.other_id))): row.similarity for row in result.itertuples()}
    assert len(seen) == len(result)
    expected = {}
    for qid, group in intents[intents["entity_id"] != "NIL"].groupby("qid"):
        for one, other in itertools.combinations(group["entity_id"], 2):
            a, b = vectors[one], vectors[other]
            cosine = a @ b / np.sqrt((a @ a) * (b @ b))
            if cosine > 0.1:
                expected[qid, frozenset((one, other))] = (cosine - 0.1) / 0.9
    assert seen == pytest.approx(expected)
    again = similarities_from(intents.iloc[::-1], vectors, floor=0.1)
    assert rows_of(again) == rows_of(result), "to the last digit"
    assert not len(similarities_from(intents[intents["entity_id"] == "NIL"], {}))
    for bad, message in (
        ({**vectors, "A": [1.0]}, r"vector of shape"),
        ({**vectors, "A": np.zeros(5)}, r"not all 0"),
        ({}, r"no vector of \d intents"),
    ):
        with pytest.raises(InputError, match=message):
            similarities_from(intents, bad)
    with pytest.raises(ParameterError, match="floor=1"):
        similarities_from(intents, vectors, floor=1)


SPARSE = judgments(("a", "0", "v", 0), ("a", "1", "x", 1), ("a", "4", "y", 1), ("b", "0", "v", 0), ("c", "1", "x", 1))


def listed(*rows, columns=("qid", "entity_id")):
    return pd.DataFrame(rows, columns=list(columns))


@settings(deadline=None)
@given(rows)
def test_gaps_are_numbers_below_the_largest_that_no_row_has(rows):
    numbers = {}
    for qid, iteration, _, _ in rows:
        numbers.setdefault(qid, set()).add(int(iteration))
    expected = [qid for qid, result in numbers.items() if not result >= set(range(1, max(result) + 1))]
    assert subtopic_gaps(iteration_codes(judgments(*rows))) == expected


@pytest.mark.parametrize("iteration", ["x", "101", "12345", "٣"])
def test_ids_of_entities_are_no_numbers_of_subtopics(iteration):
    assert subtopic_gaps(iteration_codes(SPARSE)) == ["a"]
    assert subtopic_gaps(iteration_codes(pd.concat([SPARSE, judgments(("d", iteration, "x", 1))]))) == []


def test_all_listed_subtopics_are_intents():
    every = listed(*[("a", str(n)) for n in (4, 3, 2, 1)], ("b", "1"), ("b", "2"), ("c", "1"), ("z", "1"))
    intents, tags = from_diversity(SPARSE, subtopics=every)
    assert rows_of(intents) == [*[("a", n, 0.25) for n in "1234"], ("b", "1", 0.5), ("b", "2", 0.5), ("c", "1", 1.0)]
    assert rows_of(tags) == rows_of(from_diversity(SPARSE)[1])
    assert intents["qid"].unique().tolist() == ["a", "b", "c"]
    # A topic without subtopics, as those of the type single, keeps its only iteration.
    assert ("b", "0", 1.0) in rows_of(from_diversity(SPARSE, subtopics=every[every["qid"] != "b"])[0])
    stated = every.assign(prob=[0.7, 0.1, 0.1, 0.1, 0.5, 0.5, 1.0, 1.0])
    assert rows_of(from_diversity(SPARSE, subtopics=stated)[0])[:2] == [("a", "1", 0.1), ("a", "2", 0.1)]


@pytest.mark.parametrize(
    ("subtopics", "message"),
    [
        (listed(("a", "1"), ("c", "1")), r"1 subtopics of the qrels are missing \(query 'a', subtopic '4'\)"),
        (listed(("a", "1"), ("a", "4")), r"1 subtopics of the qrels are missing \(query 'c'"),
        (listed(("x", "1")), "no topic of the qrels: they have 'x'; qrels 'a'"),
        (listed(("a", "1"), ("a", "1"), ("a", "4"), ("c", "1")), "candidate '1' of query 'a' is in rows 0 and 1"),
        (listed((1, "1")), "they can never match"),
        (listed(("a", "1"), columns=("qid", "number")), "wanted columns qid, entity_id"),
    ],
)
def test_subtopics_that_do_not_fit_the_judgments_are_refused(subtopics, message):
    with pytest.raises(InputError, match=message):
        from_diversity(SPARSE, subtopics=subtopics)
    # Probabilities of judged subtopics alone are not those of all.
    with pytest.raises(InputError, match="qrels have a column prob, subtopics have none"):
        from_diversity(SPARSE[SPARSE["qid"] == "c"].assign(prob=1.0), subtopics=listed(("c", "1"), ("c", "2")))


PARTS = [["Smith", "CPS", "wages"], ["Jones", "CPS"], ["Jones"]]
WHOLE = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["p1", "p2", "p1"], "prob": [0.5, 0.5, 1]})
WHOLE["parts"] = PARTS
OF_PARTS = pd.DataFrame({"docno": ["d1"] * 3 + ["d2"] * 3 + ["d3"], "weight": [1.0, 0.5, 0.75, 0.5, 0.25, 1.0, 1.0]})
OF_PARTS = OF_PARTS.assign(entity_id=["Smith", "CPS", "wages", "CPS", "Jones", "Jones", "x"])


@pytest.mark.parametrize("gain", ["all", "part"])
@pytest.mark.parametrize("of_queries", [False, True])
def test_intents_of_several_ids_by_a_loop(gain, of_queries):
    tags = OF_PARTS.assign(qid=["q1", "q1", "q1", "q1", "q1", "q2", "q1"]) if of_queries else OF_PARTS
    expected = []
    for intent in WHOLE.itertuples():
        for docno in ("d1", "d2", "d3"):
            tags_of_document = tags[tags["docno"] == docno]
            tags_of_document = (
                tags_of_document[tags_of_document["qid"] == intent.qid] if of_queries else tags_of_document
            )
            weights = [
                tags_of_document.loc[tags_of_document["entity_id"] == part, "weight"].max() for part in intent.parts
            ]
            weights = [0.0 if pd.isna(weight) else weight for weight in weights]
            weight = min(weights) if gain == "all" else sum(weights) / len(weights)
            if weight:
                expected.append((docno, intent.entity_id, weight, intent.qid))
    for parts in (WHOLE["parts"], WHOLE["parts"].map(" | ".join), WHOLE["parts"].map(tuple)):
        result = tags_of_parts(WHOLE.assign(parts=parts), tags.sample(frac=1, random_state=3), gain=gain)
        assert list(result) == ["docno", "entity_id", "weight", "qid"]
        rows = sorted(result.itertuples(index=False, name=None))
        assert [row[:2] + row[3:] for row in rows] == [row[:2] + row[3:] for row in sorted(expected)]
        assert [row[2] for row in rows] == pytest.approx([row[2] for row in sorted(expected)])


def test_parts_that_are_none():
    for parts in ([], None, ["a", "a"], ["a", ""], [1], "a||b"):
        with pytest.raises(InputError, match=r"row 2 \(query 'q2', 'p1'\) has the parts .* a list of distinct ids"):
            tags_of_parts(WHOLE.assign(parts=[["a"], ["b"], parts]), OF_PARTS)
    with pytest.raises(InputError, match="'p1' of query 'q1' has two lists of parts"):
        tags_of_parts(WHOLE.assign(qid="q1"), OF_PARTS)
    with pytest.raises(ParameterError, match="gain='some': wanted one of 'all', 'part'"):
        tags_of_parts(WHOLE, OF_PARTS, gain="some")
    empty = tags_of_parts(WHOLE, OF_PARTS[:0])
    assert empty.columns.tolist() == ["docno", "entity_id", "weight", "qid"]
    assert not len(empty)
    whole = tags_of_parts(WHOLE, OF_PARTS.assign(docno=[1, 1, 1, 2, 2, 2, 3]))
    assert whole["docno"].tolist() == [1, 2, 2]


@pytest.mark.parametrize("iteration", [[1, 2, 2], ["1", "2", "2"], [1, "2", 2], pd.Categorical(["1", "2", "2"])])
@pytest.mark.parametrize("kind", [object, "str", int])
def test_iterations_of_any_type_are_text_and_other_ids_keep_their_kind(iteration, kind):
    ids = {"qid": ["7", "7", "7"], "docno": ["3", "4", "5"]}
    qrels = pd.DataFrame(ids | {"label": [1, 1, 0]}).astype({"qid": kind, "docno": kind})
    intents, tags = from_diversity(qrels.assign(iteration=pd.Series(iteration)))
    assert intents[["entity_id", "prob"]].values.tolist() == [["1", 0.5], ["2", 0.5]]
    expected = kind if kind is int else str
    assert tags.values.tolist() == [[expected(7), expected(3), "1"], [expected(7), expected(4), "2"]]
    assert intents["qid"].tolist() == [expected(7)] * 2
