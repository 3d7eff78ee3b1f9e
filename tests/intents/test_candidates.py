import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.intents.calibrate import Calibrate
from vbterrier.intents.candidates import CandidateIntents
from vbterrier.intents.truncation import Truncate
from vbterrier.linking.links import Links, links_frame

COLUMNS = ["qid", "query", "entity_id", "prob", "score", "name", "mention", "source"]


class TopEntities:
    """A linker that knows the links of each text."""

    id_space = "test"

    def __init__(self, links, scale="probability"):
        self.links, self.scale, self.requests = links, scale, []

    def link(self, texts):
        self.requests.append(list(texts))
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
    result = CandidateIntents(linker)(topics("jordan", year=[1850]))
    assert result.columns.tolist() == [*COLUMNS, "year"]
    assert result.values.tolist() == [
        ["q0", "jordan", "athlete", pytest.approx(2 / 3), 0.6, "Michael Jordan", "jordan", "Listed(); prior", 1850],
        ["q0", "jordan", "country", pytest.approx(1 / 3), 0.3, "Jordan", "jordan", "Listed(); prior", 1850],
    ], "the most probable first"


def test_scores_that_are_no_probabilities_go_through_a_softmax():
    linker = TopEntities({"x": [(0, 1, "x", "A", 2.0, ""), (0, 1, "x", "B", 1.0, "")]}, scale="score")
    result = CandidateIntents(linker)(topics("x"))
    assert result["prob"].tolist() == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.e)])
    message = "candidate 'B' of query 'q0' has score -1, wanted at least 0 for a prior; use prob='softmax'"
    with pytest.raises(InputError, match=message):
        CandidateIntents(retriever(("q0", "A", 2.0), ("q0", "B", -1.0)), prob="prior")(topics("x"))


@pytest.mark.parametrize(("prob", "expected"), [("uniform", [0.5, 0.5]), ("softmax", [0.5744, 0.4256])])
def test_the_user_chooses_how_probabilities_are_made(prob, expected):
    result = CandidateIntents(TopEntities(JORDAN), prob=prob)(topics("jordan"))
    assert result["prob"].tolist() == pytest.approx(expected, abs=1e-4)


def test_candidates_of_several_mentions_score_their_mean_prior_or_their_best_score():
    table = CandidateIntents(TopEntities(JORDAN))(topics("air jordan")).set_index("entity_id")
    score = {"shoe": 0.45, "athlete": 0.35, "country": 0.15}
    assert table["score"].to_dict() == pytest.approx(score)
    assert table["prob"].to_dict() == pytest.approx({entity: one / 0.95 for entity, one in score.items()})
    assert table.loc["athlete", ["mention", "name"]].tolist() == ["jordan", "Michael Jordan"], "those of the best link"
    table = CandidateIntents(TopEntities(JORDAN, scale="score"))(topics("air jordan")).set_index("entity_id")
    assert table["score"].to_dict() == {"shoe": 0.9, "athlete": 0.6, "country": 0.3}


def test_a_candidate_that_a_mention_names_twice_counts_once_with_its_best_score_and_first_name():
    links = [(0, 1, "x", "A", 0.2, "worse"), (0, 1, "x", "A", 0.5, ""), (0, 1, "x", "B", 0.5, "b")]
    result = CandidateIntents(TopEntities({"x": links}))(topics("x"))
    expected = [["A", 0.5, 0.5, "worse"], ["B", 0.5, 0.5, "b"]]
    assert result[["entity_id", "prob", "score", "name"]].values.tolist() == expected


def test_the_longest_mention_may_speak_alone():
    result = CandidateIntents(TopEntities(JORDAN), mentions="longest")(topics("air jordan"))
    assert result["entity_id"].tolist() == ["shoe", "athlete"]
    assert result["prob"].tolist() == pytest.approx([0.9, 0.1])
    links = [(7, 10, "bbb", "B", 1.0, ""), (0, 3, "aaa", "A", 1.0, ""), (4, 6, "cc", "C", 1.0, "")]
    result = CandidateIntents(TopEntities({"aaa cc bbb": links}), mentions="longest")(topics("aaa cc bbb"))
    assert result["entity_id"].tolist() == ["A"], "the first longest mention"


def test_depth_keeps_the_best_and_the_smallest_ids_among_equals():
    links = [(0, 1, "x", one, score, "") for one, score in [("c", 0.2), ("b", 0.2), ("a", 0.1), ("d", 0.5)]]
    result = CandidateIntents(TopEntities({"x": links}), cutoff=2)(topics("x"))
    assert result["entity_id"].tolist() == ["d", "b"]
    assert result["prob"].tolist() == pytest.approx([5 / 7, 2 / 7])


def test_the_order_of_links_decides_nothing():
    rng = np.random.default_rng(3)
    reference = CandidateIntents(TopEntities(JORDAN), cutoff=2)(topics("air jordan"))
    for _ in range(5):
        shuffled = {text: [links[i] for i in rng.permutation(len(links))] for text, links in JORDAN.items()}
        result = CandidateIntents(TopEntities(shuffled), cutoff=2)(topics("air jordan"))
        pd.testing.assert_frame_equal(result, reference)


def test_equal_queries_are_linked_once():
    linker = TopEntities(JORDAN)
    result = CandidateIntents(linker)(topics("jordan", "air jordan", "jordan"))
    assert linker.requests == [["jordan", "air jordan"]]
    assert result["qid"].tolist() == ["q0"] * 2 + ["q1"] * 3 + ["q2"] * 2
    numbered = topics("jordan", "air jordan", "jordan").assign(qid=[7, 8, 9])
    assert CandidateIntents(linker)(numbered)["qid"].tolist() == [7] * 2 + [8] * 3 + [9] * 2


def test_queries_without_candidates_have_nil_with_one_warning():
    queries = topics("jordan", "who", "what", "", "why")
    message = r"4 queries \('q1', 'q2', 'q3', ...\) without candidates: NIL has probability 1"
    with pytest.warns(DegenerateWarning, match=message) as seen:
        result = CandidateIntents(TopEntities(JORDAN))(queries)
    assert len(seen) == 1
    assert result.loc[result["qid"] != "q0", ["qid", "entity_id", "prob"]].values.tolist() == [
        [qid, "NIL", 1.0] for qid in ("q1", "q2", "q3", "q4")
    ]
    assert "NIL" not in set(result.loc[result["qid"] == "q0", "entity_id"])


def test_nil_has_its_mass_and_all_of_it_where_nothing_is_found():
    with pytest.warns(DegenerateWarning, match="NIL has probability 1"):
        result = CandidateIntents(TopEntities(JORDAN), nil=0.1)(topics("jordan", "who"))
    assert result[["qid", "entity_id", "prob"]].values.tolist() == [
        ["q0", "athlete", pytest.approx(0.6)],
        ["q0", "country", pytest.approx(0.3)],
        ["q0", "NIL", 0.1],
        ["q1", "NIL", 1.0],
    ]
    assert result["score"].isna().tolist() == [False, False, True, True]
    linker = TopEntities({"x": [(0, 1, "x", "NIL", 1.0, "")]})
    with pytest.raises(InputError, match=r"Listed\(\) returns 'NIL' as a candidate; use nil=0"):
        CandidateIntents(linker, nil=0.1)(topics("x"))


def test_priors_of_nothing_are_alike_with_a_warning():
    linker = TopEntities({"x": [(0, 1, "x", "A", 0.0, ""), (0, 1, "x", "B", 0.0, "")]})
    with pytest.warns(DegenerateWarning, match=r"1 query \('q0'\) with candidates of weight 0 only"):
        assert CandidateIntents(linker)(topics("x"))["prob"].tolist() == [0.5, 0.5]


def test_a_retriever_over_entities_is_a_source(probs):
    rows = [("q0", "A", 1.0, "Paris"), ("q0", "B", 3.0, ""), ("q1", "A", 0.0, "Paris")]
    source = retriever(*rows, columns=("qid", "docno", "score", "name"))
    result = CandidateIntents(source)(topics("red car", "blue", year=[1, 2]))
    assert result.columns.tolist() == [*COLUMNS, "year"]
    assert result[["qid", "entity_id", "name", "mention", "year"]].values.tolist() == [
        ["q0", "B", "", "red car", 1],
        ["q0", "A", "Paris", "red car", 1],
        ["q1", "A", "Paris", "blue", 2],
    ]
    assert probs((source >> Calibrate())(topics("red car", "blue"))) == pytest.approx(probs(result))


def test_a_retriever_that_finds_nothing_leaves_no_candidates():
    source = pt.apply.generic(lambda _: pd.DataFrame())
    with pytest.warns(DegenerateWarning, match="without candidates"):
        assert CandidateIntents(source)(topics("x")).columns.tolist() == COLUMNS


INTENTS = pd.DataFrame({"qid": list("babab"), "entity_id": ["B1", "A1", "B2", "A2", "B3"], "name": list("xyzuv")})
INTENTS.insert(2, "prob", [0.04, 0.5, 0.56, 0.5, 0.4])


def test_thresholds_keep_what_reaches_them():
    kept = Truncate(threshold=0.05)(INTENTS)
    assert kept["entity_id"].tolist() == ["A1", "B2", "A2", "B3"], "rows in input order"
    assert kept["prob"].tolist() == pytest.approx([0.5, 0.56 / 0.96, 0.5, 0.4 / 0.96])
    assert kept["name"].tolist() == ["y", "z", "u", "v"]
    assert Truncate(threshold=0.4)(INTENTS)["entity_id"].tolist() == ["A1", "B2", "A2", "B3"], "reaching is enough"
    assert Truncate(cutoff=2, mass=0.5)(INTENTS)["entity_id"].tolist() == ["A1", "B2"], "the shortest prefix"


def test_the_most_probable_always_stays_and_of_equals_the_smallest_id():
    kept = Truncate(threshold=0.9)(INTENTS)
    assert kept[["qid", "entity_id", "prob"]].values.tolist() == [["a", "A1", 1.0], ["b", "B2", 1.0]]
    assert Truncate(cutoff=1)(INTENTS.iloc[::-1])["entity_id"].tolist() == ["B2", "A1"]


@pytest.mark.parametrize(("mass", "expected"), [(0.56, 1), (0.57, 2), (0.96, 2), (0.97, 3), (1.0, 3)])
def test_masses_keep_the_smallest_prefix_that_reaches_them(mass, expected):
    assert Truncate(mass=mass)(INTENTS)["qid"].eq("b").sum() == expected


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


LINKER, CUT = CandidateIntents(TopEntities(JORDAN)), Truncate(cutoff=1)


@pytest.mark.parametrize("batch_size", [1, 2, None])
def test_batches_without_candidates_count_as_in_one_batch(batch_size):
    queries = topics("jordan", "who", "what", "why")
    with pytest.warns(DegenerateWarning, match="NIL has probability 1"):
        intents = CandidateIntents(TopEntities(JORDAN), prob="uniform")(queries)
    run = pd.DataFrame({"qid": queries["qid"], "docno": "d", "score": 1.0, "rank": 0})
    vbterrier.register_tags("of the batch", pd.DataFrame({"docno": ["d"], "entity_id": ["country"]}))
    measure = vbterrier.ES(tags="of the batch") @ 1
    options = {"names": ["system"], "batch_size": batch_size}
    table = pt.Experiment([pt.Transformer.from_df(run)], queries, intents, [measure], **options)
    assert table.iloc[0, 1] == pytest.approx(0.5 / 4)


class OneDocument(pt.Transformer):
    """A system with a parameter."""

    def __init__(self, number):
        self.number = number

    def transform(self, inp):
        return inp.assign(docno=f"d{self.number}", score=1.0, rank=0)


def test_grid_search_takes_measures_as_text():
    queries = topics("jordan")
    intents = CandidateIntents(TopEntities(JORDAN))(queries)
    tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["country", "athlete"]})
    vbterrier.register_tags("of the grid", tags)
    measure = vbterrier.ES(tags="of the grid") @ 1
    system = OneDocument(1)
    vbterrier.enable_string_measures()
    try:
        best = pt.GridSearch(system, {system: {"number": [1, 2]}}, queries, intents, str(measure), verbose=False)
    finally:
        vbterrier.enable_string_measures(enabled=False)
    assert best.number == 2
