import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.intents.calibrate import Calibrate
from vbterrier.intents.candidates import CandidateIntents
from vbterrier.linking.links import Links, links_frame

COLUMNS = ["qid", "query", "entity_id", "prob", "score", "name", "mention", "source"]


class TopEntities:
    """A linker that knows the links of each text."""

    id_space = "test"

    def __init__(self, links, scale="probability"):
        self.links, self.scale, self.asked = links, scale, []

    def link(self, texts):
        self.asked.append(list(texts))
        rows = [(place, *link) for place, text in enumerate(texts) for link in self.links.get(text, [])]
        return Links(links_frame(rows), "test", self.scale)

    def __repr__(self):
        return "Listed()"


JORDAN = {
    "jordan": [(0, 6, "jordan", "country", 0.3, "Jordan"), (0, 6, "jordan", "athlete", 0.6, "Michael Jordan")],
    "air jordan": [
        (0, 10, "air jordan", "shoe", 0.9, "Air Jordan"),
        (0, 10, "air jordan", "athlete", 0.1, ""),
        (4, 10, "jordan", "athlete", 0.6, "Michael Jordan"),
        (4, 10, "jordan", "country", 0.3, "Jordan"),
    ],
}


def topics(*queries, **columns):
    return pd.DataFrame({"qid": [f"q{i}" for i in range(len(queries))], "query": list(queries), **columns})


def retriever(*rows, columns=("qid", "docno", "score")):
    frame = pd.DataFrame(rows, columns=list(columns))
    return pt.Transformer.from_df(frame.assign(rank=0))


def test_priors_are_divided_by_their_sum_and_columns_are_as_agreed():
    linker = TopEntities(JORDAN)
    found = CandidateIntents(linker)(topics("jordan", year=[1850]))
    assert found.columns.tolist() == [*COLUMNS, "year"]
    assert found["entity_id"].tolist() == ["athlete", "country"], "the most probable first"
    assert found["prob"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert found["score"].tolist() == [0.6, 0.3]
    assert found.iloc[0].to_dict() == {
        "qid": "q0",
        "query": "jordan",
        "entity_id": "athlete",
        "prob": pytest.approx(2 / 3),
        "score": 0.6,
        "name": "Michael Jordan",
        "mention": "jordan",
        "source": "Listed()",
        "year": 1850,
    }


def test_scores_that_are_no_probabilities_go_through_a_softmax():
    linker = TopEntities({"x": [(0, 1, "x", "A", 2.0, ""), (0, 1, "x", "B", 1.0, "")]}, scale="score")
    found = CandidateIntents(linker)(topics("x"))
    assert found["prob"].tolist() == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    with pytest.raises(
        InputError, match="candidate 'B' of query 'q0' has score -1, wanted at least 0 for a prior; use prob='softmax'"
    ):
        CandidateIntents(retriever(("q0", "A", 2.0), ("q0", "B", -1.0)), prob="prior")(topics("x"))


@pytest.mark.parametrize(("prob", "expected"), [("uniform", [0.5, 0.5]), ("softmax", [0.5744, 0.4256])])
def test_the_user_chooses_how_probabilities_are_made(prob, expected):
    found = CandidateIntents(TopEntities(JORDAN), prob=prob)(topics("jordan"))
    assert found["prob"].tolist() == pytest.approx(expected, abs=1e-4)


def test_candidates_of_several_mentions_score_their_mean_prior():
    found = CandidateIntents(TopEntities(JORDAN))(topics("air jordan")).set_index("entity_id")
    assert found["score"].to_dict() == pytest.approx({"shoe": 0.45, "athlete": 0.35, "country": 0.15})
    assert found["prob"].to_dict() == pytest.approx(
        {"shoe": 0.45 / 0.95, "athlete": 0.35 / 0.95, "country": 0.15 / 0.95}
    )
    assert found.loc["athlete", ["mention", "name"]].tolist() == ["jordan", "Michael Jordan"], "those of the best link"


def test_candidates_of_several_mentions_score_their_best_score():
    found = CandidateIntents(TopEntities(JORDAN, scale="score"))(topics("air jordan")).set_index("entity_id")
    assert found["score"].to_dict() == {"shoe": 0.9, "athlete": 0.6, "country": 0.3}


def test_a_candidate_that_a_mention_names_twice_counts_once_with_its_best_score_and_first_name():
    links = [(0, 1, "x", "A", 0.2, "worse"), (0, 1, "x", "A", 0.5, ""), (0, 1, "x", "B", 0.5, "b")]
    found = CandidateIntents(TopEntities({"x": links}))(topics("x"))
    assert found[["entity_id", "prob", "score", "name"]].values.tolist() == [
        ["A", 0.5, 0.5, "worse"],
        ["B", 0.5, 0.5, "b"],
    ]


def test_the_longest_mention_may_speak_alone():
    found = CandidateIntents(TopEntities(JORDAN), mentions="longest")(topics("air jordan"))
    assert found["entity_id"].tolist() == ["shoe", "athlete"]
    assert found["prob"].tolist() == pytest.approx([0.9, 0.1])
    links = [(7, 10, "bbb", "B", 1.0, ""), (0, 3, "aaa", "A", 1.0, ""), (4, 6, "cc", "C", 1.0, "")]
    found = CandidateIntents(TopEntities({"aaa cc bbb": links}), mentions="longest")(topics("aaa cc bbb"))
    assert found["entity_id"].tolist() == ["A"], "the first longest mention"


def test_depth_keeps_the_best_and_the_smallest_ids_among_equals():
    links = [(0, 1, "x", one, score, "") for one, score in [("c", 0.2), ("b", 0.2), ("a", 0.1), ("d", 0.5)]]
    found = CandidateIntents(TopEntities({"x": links}), cutoff=2)(topics("x"))
    assert found["entity_id"].tolist() == ["d", "b"]
    assert found["prob"].tolist() == pytest.approx([5 / 7, 2 / 7])


def test_the_order_of_links_decides_nothing():
    rng = np.random.default_rng(3)
    reference = CandidateIntents(TopEntities(JORDAN), cutoff=2)(topics("air jordan"))
    for _ in range(5):
        shuffled = {text: [links[i] for i in rng.permutation(len(links))] for text, links in JORDAN.items()}
        pd.testing.assert_frame_equal(
            CandidateIntents(TopEntities(shuffled), cutoff=2)(topics("air jordan")), reference
        )


def test_equal_queries_are_linked_once():
    linker = TopEntities(JORDAN)
    found = CandidateIntents(linker)(topics("jordan", "air jordan", "jordan"))
    assert linker.asked == [["jordan", "air jordan"]]
    assert found["qid"].value_counts().to_dict() == {"q0": 2, "q1": 3, "q2": 2}
    assert found["qid"].is_monotonic_increasing


def test_queries_without_candidates_are_absent_with_one_warning():
    queries = topics("jordan", "who", "what", "", "why")
    with pytest.warns(
        DegenerateWarning, match=r"4 queries \('q1', 'q2', 'q3', ...\) without candidates: left out"
    ) as seen:
        found = CandidateIntents(TopEntities(JORDAN))(queries)
    assert len(seen) == 1
    assert set(found["qid"]) == {"q0"}


def test_nil_has_its_mass_and_all_of_it_where_nothing_is_found():
    with pytest.warns(DegenerateWarning, match="NIL has probability 1"):
        found = CandidateIntents(TopEntities(JORDAN), nil=0.1)(topics("jordan", "who"))
    assert found[["qid", "entity_id", "prob"]].values.tolist() == [
        ["q0", "athlete", pytest.approx(0.6)],
        ["q0", "country", pytest.approx(0.3)],
        ["q0", "NIL", 0.1],
        ["q1", "NIL", 1.0],
    ]
    assert found["score"].isna().tolist() == [False, False, True, True]
    linker = TopEntities({"x": [(0, 1, "x", "NIL", 1.0, "")]})
    with pytest.raises(InputError, match=r"Listed\(\) returns 'NIL' as a candidate; use nil=0"):
        CandidateIntents(linker, nil=0.1)(topics("x"))


def test_priors_of_nothing_are_alike_with_a_warning():
    linker = TopEntities({"x": [(0, 1, "x", "A", 0.0, ""), (0, 1, "x", "B", 0.0, "")]})
    with pytest.warns(DegenerateWarning, match=r"1 query \('q0'\) with candidates of weight 0 only"):
        assert CandidateIntents(linker)(topics("x"))["prob"].tolist() == [0.5, 0.5]


def test_a_retriever_over_entities_is_a_source():
    source = retriever(("q0", "A", 1.0), ("q0", "B", 3.0), ("q1", "A", 0.0))
    found = CandidateIntents(source)(topics("red car", "blue", year=[1, 2]))
    assert found.columns.tolist() == [*COLUMNS, "year"]
    assert found[["qid", "entity_id", "mention", "year"]].values.tolist() == [
        ["q0", "B", "red car", 1],
        ["q0", "A", "red car", 1],
        ["q1", "A", "blue", 2],
    ]
    through = (source >> Calibrate())(topics("red car", "blue"))
    assert dict(zip(through["entity_id"] + through["qid"], through["prob"], strict=True)) == pytest.approx(
        dict(zip(found["entity_id"] + found["qid"], found["prob"], strict=True))
    )


def test_names_that_a_retriever_gives_are_kept():
    source = retriever(("q0", "A", 1.0, "Paris"), columns=("qid", "docno", "score", "name"))
    assert CandidateIntents(source)(topics("x"))["name"].tolist() == ["Paris"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("q0", "A", 1.0), ("q0", "A", 2.0)],
            "retrieved entities: candidate 'A' of query 'q0' is in rows 0 and 1",
        ),
        ([("q0", "A", np.inf)], "candidate 'A' of query 'q0'. has score inf, wanted finite"),
        ([("q0", "A", np.nan)], "retrieved entities column 'score': row 0 holds nan"),
        ([("q7", "A", 1.0)], "retrieved entities: query 'q7' is not among the topics"),
        ([(0, "A", 1.0)], "retrieved entities column 'qid' holds integers, topics column 'qid' holds text"),
    ],
)
def test_results_that_are_no_candidates_are_refused(rows, message):
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    source = pt.apply.generic(lambda _: frame, transform_outputs=lambda _: ["qid", "query", "docno", "score"])
    with pytest.raises(InputError, match=message):
        CandidateIntents(source)(topics("x"))


def test_a_retriever_that_finds_nothing_leaves_no_candidates():
    source = pt.apply.generic(lambda _: pd.DataFrame())
    with pytest.warns(DegenerateWarning, match="without candidates"):
        assert CandidateIntents(source)(topics("x")).columns.tolist() == COLUMNS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": ["jordan", None]}, r"topics: row 1 \(query 'q1'\) has (None|nan) as its text, wanted text"),
        ({"query": ["jordan", 1984]}, r"topics: row 1 \(query 'q1'\) has 1984 as its text"),
        ({"qid": ["q0", "q0"]}, "topics: query 'q0' is in rows 0 and 1; keep one"),
        ({"qid": ["q0", None]}, "topics column 'qid': row 1 has no id"),
        ({"score": [1, 2]}, "topics: column 'score' is an output column; rename or drop it"),
    ],
)
def test_topics_that_are_none_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        CandidateIntents(TopEntities(JORDAN))(topics("jordan", "air jordan").assign(**changes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prob": "sofmax"}, r"prob='sofmax': wanted one of .* Did you mean softmax\?"),
        ({"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        ({"cutoff": True}, "cutoff=True"),
        ({"mentions": "first"}, "mentions='first': wanted one of 'all', 'longest'"),
        ({"nil": 1}, "nil=1: wanted less than 1"),
        ({"nil": -0.1}, "nil=-0.1: wanted a number of at least 0 and at most 1"),
        ({"nil": "0.1"}, "nil='0.1'"),
    ],
)
def test_illegal_parameters_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        CandidateIntents(TopEntities(JORDAN), **options)


@pytest.mark.parametrize("source", [None, "wikipedia", dict])
def test_a_source_must_link_or_retrieve(source):
    with pytest.raises(ParameterError, match=r"wanted a linker \(with \.link\) or a PyTerrier retriever"):
        CandidateIntents(source)


def test_integer_topics_stay_integers():
    found = CandidateIntents(TopEntities(JORDAN))(pd.DataFrame({"qid": [7], "query": ["jordan"]}))
    assert found["qid"].tolist() == [7, 7]
