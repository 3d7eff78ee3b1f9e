"""Coverage of intents by the first documents of a ranking."""

import numpy as np
import pandas as pd
import pytest

from vbterrier import DegenerateWarning, InputError
from vbterrier.frames.ranking import Run
from vbterrier.intents.coverage import Intents, Tags, cover

INTENTS = pd.DataFrame({"qid": ["a", "b", "a", "b"], "entity_id": ["A", "A", "B", "C"], "prob": [0.75, 0.5, 0.25, 0.5]})
RUN = pd.DataFrame(
    {
        "qid": ["b", "a", "a", "b", "a"],
        "docno": ["x", "x", "y", "y", "z"],
        "score": [2.0, 3.0, 2.0, 1.0, 1.0],
    }
)


def tags(*rows, columns=("docno", "entity_id"), **options):
    return Tags(pd.DataFrame(rows, columns=list(columns)), **options)


def covered(*rows, depth=None, **options):
    return cover(Run(RUN), Intents(INTENTS), tags(*rows, **options), depth)


def matches(coverage):
    topics, entities = coverage.intents.topics, coverage.intents.entity.text.to_pylist()
    return sorted(
        (topics[coverage.intents.topic[intent]], entities[intent], int(rank), float(weight))
        for intent, rank, weight in zip(coverage.intent, coverage.rank, coverage.weight, strict=True)
    )


# Intents


def test_intents_of_a_query_need_not_stand_together():
    intents = Intents(INTENTS)
    assert intents.topics == ["a", "b"]
    assert intents.topic.tolist() == [0, 1, 0, 1]
    assert intents.prob.tolist() == [0.75, 0.5, 0.25, 0.5]


def test_intents_are_made_to_sum_to_one_exactly():
    intents = Intents(INTENTS.assign(prob=[3, 1, 1, 3]), normalise=True)
    assert intents.prob.tolist() == [0.75, 0.25, 0.25, 0.75]
    near = Intents(INTENTS.assign(prob=[0.75 + 5e-7, 0.5, 0.25, 0.5]))
    assert near.prob[[0, 2]].sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prob": [0.75, 0.5, 0.2, 0.4]}, r"query 'a' sum to 0.95 \(2 queries are off\); wanted 1"),
        ({"prob": [0.75, -0.5, 0.25, 1.5]}, r"row 1 \(candidate 'A' of query 'b'\) has probability -0.5, wanted 0"),
        ({"prob": [0.75, None, 0.25, 0.5]}, "mine column 'prob': row 1 holds"),
        ({"entity_id": ["A", "A", "A", "C"]}, "candidate 'A' of query 'a' is in rows 0 and 2; .*add up"),
        ({"entity_id": ["A", None, "B", "C"]}, "mine column 'entity_id': row 1 has no id"),
        ({"qid": ["a", "b", None, "b"]}, "mine column 'qid': row 2 has no id"),
        ({"qid": [1.0, 2.0, 1.0, 2.0]}, "mine column 'qid': wanted ids as text, found float64"),
    ],
)
def test_intents_that_are_none_are_refused_with_their_row(changes, message):
    with pytest.raises(InputError, match=message):
        Intents(INTENTS.assign(**changes), name="mine")


@pytest.mark.parametrize("column", ["qid", "entity_id", "prob"])
def test_intents_and_tags_say_which_column_is_missing(column):
    with pytest.raises(InputError, match=f"intents: wanted columns qid, entity_id, prob; missing {column}"):
        Intents(INTENTS.drop(columns=column))
    if column != "prob":
        wanted = {"qid": "docno", "entity_id": "entity_id"}[column]
        with pytest.raises(InputError, match=f"tags: wanted columns docno, entity_id; missing {wanted}"):
            Tags(pd.DataFrame({"docno": ["x"], "entity_id": ["A"]}).drop(columns=wanted))


def test_frames_of_other_libraries_are_read():
    polars = pytest.importorskip("polars")
    assert Intents(polars.DataFrame(INTENTS.to_dict("list"))).prob.tolist() == [0.75, 0.5, 0.25, 0.5]
    with pytest.raises(InputError, match="intents: wanted a data frame, found dict"):
        Intents(INTENTS.to_dict("list"))


# Tags


@pytest.mark.parametrize("weight", [-0.1, 1.5, np.inf])
def test_weights_outside_the_unit_interval_are_refused(weight):
    with pytest.raises(InputError, match=r"tags: row 1 \(document 'y'\) has weight .*, wanted 0 to 1"):
        tags(("x", "A", 0.5), ("y", "A", weight), columns=("docno", "entity_id", "weight"))


def test_tags_for_all_queries_count_for_each_that_has_the_intent():
    assert matches(covered(("x", "A"), ("y", "C"), ("z", "B"), ("y", "nobody"))) == [
        ("a", "A", 0, 1.0),
        ("a", "B", 2, 1.0),
        ("b", "A", 0, 1.0),
        ("b", "C", 1, 1.0),
    ]


def test_tags_for_one_query_count_there_alone():
    rows = [("a", "x", "A"), ("b", "y", "C"), ("elsewhere", "x", "A")]
    coverage = covered(*rows, columns=("qid", "docno", "entity_id"))
    assert matches(coverage) == [("a", "A", 0, 1.0), ("b", "C", 1, 1.0)]
    assert coverage.known.tolist() == [1, 0, 0, 1]


def test_no_more_than_the_depth_is_looked_at():
    rows = [("x", "A"), ("y", "C"), ("z", "B")]
    assert matches(covered(*rows, depth=1)) == [("a", "A", 0, 1.0), ("b", "A", 0, 1.0)]
    assert covered(*rows, depth=50).depth == 50
    assert covered(*rows).depth == 3


def test_a_tag_given_twice_counts_with_the_larger_weight_and_one_document():
    rows = [("x", "A", 0.25), ("x", "A", 0.75), ("x", "A", 0.5)]
    coverage = covered(*rows, columns=("docno", "entity_id", "weight"))
    assert matches(coverage) == [("a", "A", 0, 0.75), ("b", "A", 0, 0.75)]
    assert coverage.known.tolist() == [1, 1, 0, 0]


def test_a_tag_of_no_weight_is_no_match_and_no_known_document():
    coverage = covered(("x", "A", 0.0), ("y", "A", 1.0), columns=("docno", "entity_id", "weight"))
    assert matches(coverage) == [("a", "A", 1, 1.0), ("b", "A", 1, 1.0)]
    assert coverage.known.tolist() == [1, 1, 0, 0]


def test_known_documents_are_counted_beyond_the_run_but_not_without_a_pool():
    rows = [("x", "A"), ("new 1", "A"), ("new 2", "A"), ("new 1", "B")]
    assert covered(*rows).known.tolist() == [3, 3, 1, 0]
    assert covered(*rows, pooled=False).known is None


def test_the_share_of_tagged_documents_counts_any_tag():
    coverage = covered(("x", "A"), ("x", "B"), ("y", "nobody"))
    assert coverage.tagged.tolist() == pytest.approx([2 / 3, 1.0])
    alone = cover(Run(RUN[RUN["qid"] == "a"]), Intents(INTENTS), tags(("x", "A")), 1)
    assert alone.tagged.tolist() == [1.0, 0.0], "nothing retrieved, nothing tagged"


def test_gains_are_cut_at_each_cutoff():
    coverage = covered(("x", "A"), ("y", "B"), ("z", "B"))
    assert coverage.gain(1, "binary").tolist() == [1.0, 1.0, 0.0, 0.0]
    assert coverage.gain(2, "binary").tolist() == [1.0, 1.0, 1.0, 0.0]
    ideal = 1 + 1 / np.log2(3)
    assert coverage.gain(2, "dcg").tolist() == pytest.approx([1.0, 1.0, (1 / np.log2(3)) / ideal, 0.0])
    assert coverage.success(coverage.gain(2, "binary")).tolist() == [1.0, 0.5]


def test_the_two_variances_are_equal_for_binary_gains_and_differ_for_others():
    coverage = covered(("x", "A", 0.5), ("y", "B", 1.0), columns=("docno", "entity_id", "weight"))
    whole, graded = np.array([1.0, 0.0, 0.0, 1.0]), coverage.gain(None, "binary")
    assert coverage.variance(whole, "intent") == pytest.approx(coverage.variance(whole, "bernoulli"), abs=1e-15)
    assert graded.tolist() == [0.5, 0.5, 1.0, 0.0]
    assert coverage.variance(graded, "bernoulli") == pytest.approx([0.625 * 0.375, 0.25 * 0.75])
    assert coverage.variance(graded, "intent") == pytest.approx([0.75 * 0.25 + 0.25 - 0.625**2, 0.125 - 0.0625])


def test_the_most_probable_intents_are_all_of_those_that_tie():
    coverage = covered(("x", "A"))
    assert coverage.most_probable.tolist() == [True, True, False, True]
    assert coverage.top_intent(np.array([1.0, 1.0, 0.0, 0.0])).tolist() == [1.0, 0.5]


# Topics


def test_topics_of_the_run_without_intents_are_left_out_with_a_warning():
    run = pd.concat([RUN, RUN.iloc[:1].assign(qid="extra")])
    with pytest.warns(DegenerateWarning, match=r"run: 1 topics are not in intents and are left out \('extra'\)"):
        coverage = cover(Run(run), Intents(INTENTS), tags(("x", "A")), None)
    assert matches(coverage) == [("a", "A", 0, 1.0), ("b", "A", 0, 1.0)]


def test_no_topic_in_common_is_an_error_with_ids_of_both_sides():
    run = RUN.assign(qid="0" + RUN["qid"])
    with pytest.raises(InputError, match="no topic in common: run has '0b', '0a'; intents has 'a', 'b'"):
        cover(Run(run), Intents(INTENTS), tags(("x", "A")), None)


@pytest.mark.parametrize(
    ("intents", "tagged", "message"),
    [
        ({"qid": [1, 2, 1, 2]}, {}, "intents column 'qid' holds integers, run column 'qid' holds text"),
        ({"entity_id": [1, 1, 2, 3]}, {}, "intents column 'entity_id' holds integers, tags column 'entity_id' holds"),
        ({}, {"entity_id": [1]}, "intents column 'entity_id' holds text, tags column 'entity_id' holds integers"),
        ({}, {"docno": [7]}, "tags column 'docno' holds integers, run column 'docno' holds text"),
    ],
)
def test_integers_never_meet_text_in_silence(intents, tagged, message):
    frame = pd.DataFrame({"docno": ["x"], "entity_id": ["A"]}).assign(**tagged)
    with pytest.raises(InputError, match=message):
        cover(Run(RUN), Intents(INTENTS.assign(**intents)), Tags(frame), None)


def test_an_empty_run_covers_nothing_with_a_warning():
    empty = Run(RUN.iloc[:0])
    with pytest.warns(DegenerateWarning, match="run: empty; all 2 topics score 0"):
        coverage = cover(empty, Intents(INTENTS), tags(("x", "A")), 5)
    assert coverage.gain(5, "dcg").tolist() == [0.0] * 4
    assert coverage.known.tolist() == [1, 1, 0, 0]


def test_inputs_are_left_as_they_were():
    intents, run = INTENTS.copy(deep=True), RUN.copy(deep=True)
    frame = pd.DataFrame({"docno": ["x", "x"], "entity_id": ["A", "A"], "weight": [0.25, 0.5]})
    before = frame.copy(deep=True)
    coverage = cover(Run(run), Intents(intents, normalise=True), Tags(frame), None)
    coverage.gain(1, "dcg")
    pd.testing.assert_frame_equal(intents, INTENTS)
    pd.testing.assert_frame_equal(run, RUN)
    pd.testing.assert_frame_equal(frame, before)


def test_tags_without_a_row_are_told():
    intents = Intents(pd.DataFrame({"qid": ["q"], "entity_id": ["A"], "prob": [1.0]}))
    run = Run(pd.DataFrame({"qid": ["q"], "docno": ["d"], "score": [1.0]}))
    nothing = Tags(pd.DataFrame({"docno": [], "entity_id": []}, dtype=str))
    with pytest.warns(DegenerateWarning, match="tags: no rows, so every topic scores 0"):
        found = cover(run, intents, nothing, 1)
    assert found.success(found.gain(1, "binary")).tolist() == [0.0]
