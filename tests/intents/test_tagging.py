"""Tagging as a pipeline stage."""

import functools
import json
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vbterrier
from vbterrier import register_intents, register_tags
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.intents import taggers as texts
from vbterrier.intents.tagging import COLUMNS, TIE_COLUMNS, TagEntities, TagOptions
from vbterrier.intents.tagging_quality import tag_quality
from vbterrier.linking.links import Links, links_frame

TEXTS = ["Paris and Rome", "nothing", "Paris and Rome", "Rome, Rome"]
RUN = {"qid": ["q1", "q1", "q2", "q2"], "docno": ["d1", "d2", "d1", "d3"], "score": [2.0, 1.0] * 2, "rank": [0, 1] * 2}
RUN = pd.DataFrame({**RUN, "text": TEXTS}, index=[7, 3, 3, 0])
TOPICS = pd.DataFrame({"qid": ["q1", "q2"], "query": ["one", "two"]})
TAGS = pd.DataFrame({"docno": ["d1", "d1", "d3"], "entity_id": ["B", "A", "C"], "weight": [0.25, 0.75, 0.5]})
INTENTS = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "C", "B"], "prob": [0.5, 0.5, 1.0]})

# Rome has two best candidates; a separate test covers the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*tied best candidates:vbterrier.errors.DegenerateWarning")


class Words:
    """Links words to their candidates: {word: {entity: score}}."""

    id_space = "words"

    def __init__(self, candidates, scale="probability"):
        self.candidates, self.scale, self.seen = candidates, scale, []

    def link(self, texts):
        self.seen.extend(texts)
        rows = [
            (place, result.start(), result.end(), word, entity, score, "")
            for place, text in enumerate(texts)
            for word, candidates in self.candidates.items()
            for result in re.finditer(rf"\b{word}\b", text)
            for entity, score in candidates.items()
        ]
        return Links(links_frame(rows), self.id_space, self.scale)

    def __repr__(self):
        return f"Words({len(self.candidates)})"

    def __eq__(self, other):
        return isinstance(other, Words) and self.candidates == other.candidates

    __hash__ = None


CITIES = {"Paris": {"Q90": 0.75, "Q167646": 0.25}, "Rome": {"Q220": 0.5, "Q18": 0.5}}


def cities(text):
    return [name for name in ("Paris", "Rome") if name in text]


def lists(stage, run=RUN):
    tagged = stage.transform(run)
    added = tagged.columns.tolist()[len(run.columns) :]
    assert added in ([*COLUMNS], [*COLUMNS, *TIE_COLUMNS])
    pd.testing.assert_frame_equal(tagged[list(run.columns)], run)
    assert tagged["tagger"].eq(tagged["tagger"].iloc[0]).all()
    assert all(isinstance(value, list) for name in ("entity_id", "weight") for value in tagged[name])
    return [dict(zip(*row, strict=True)) for row in zip(tagged["entity_id"], tagged["weight"], strict=True)]


def test_documents_are_entities():
    assert lists(TagEntities("docno")) == [{"d1": 1.0}, {"d2": 1.0}, {"d1": 1.0}, {"d3": 1.0}]
    numbered = RUN.assign(docno=[1, 2, 1, 3])
    assert lists(TagEntities("docno"), numbered) == [{1: 1.0}, {2: 1.0}, {1: 1.0}, {3: 1.0}]
    assert lists(TagEntities("docno"), RUN.drop(columns="text"))[0] == {"d1": 1.0}


def test_the_best_candidate_of_every_mention_or_all_weighted():
    both = {"Q90": 1.0, "Q18": 1.0}
    assert lists(TagEntities(Words(CITIES))) == [both, {}, both, {"Q18": 1.0}], "ties broken by id"
    weighted = {"Q90": 0.75, "Q18": 0.5, "Q220": 0.5, "Q167646": 0.25}
    assert lists(TagEntities(Words(CITIES), options=TagOptions(weights="score"))) == [
        weighted,
        {},
        weighted,
        {"Q18": 0.5, "Q220": 0.5},
    ]


@pytest.mark.filterwarnings("error:.*tied best candidates:vbterrier.errors.DegenerateWarning")
def test_that_the_first_of_equals_is_taken_is_told_once():
    stage = TagEntities(Words(CITIES), cache=False)
    told = r"Words\(2\): 3 of 4 ambiguous mentions have tied best .* 'Rome', "
    with pytest.warns(DegenerateWarning, match=told) as record:
        stage.transform(pd.concat([stage.transform(RUN), stage.transform(RUN)])[RUN.columns])
    assert len(record) == 1
    lists(TagEntities(Words(CITIES), options=TagOptions(weights="score")))
    # Also if fewer than half of the mentions are tied.
    few = {"Rome": {"b": 0.5, "a": 0.5}, "and": {"a": 0.5, "b": 0.25}, "Paris": {"a": 1, "b": 0.5}}
    with pytest.warns(DegenerateWarning, match="1 of 3 ambiguous mentions have tied best candidates"):
        lists(TagEntities(Words(few)), RUN[:1])
    lists(TagEntities(Words(few), options=TagOptions(on_ties="drop")), RUN[:1])
    # Equals behind the best, and the best found twice, leave no choice.
    lists(TagEntities(Words({"Rome": {"a": 0.5, "b": 0.25, "c": 0.25}, "Paris": {"a": 0.5}})))


def test_ties_are_marked_or_dropped_and_counted():
    kept = TagEntities(Words(CITIES)).transform(RUN)
    assert kept["entity_id"].tolist() == [["Q90", "Q18"], [], ["Q90", "Q18"], ["Q18"]]
    assert kept["tied"].tolist() == [[False, True], [], [False, True], [True]]
    assert kept["n_abstained"].tolist() == [0, 0, 0, 0]
    stage = TagEntities(Words(CITIES), options=TagOptions(on_ties="drop"))
    dropped = stage.transform(RUN)
    assert dropped["entity_id"].tolist() == [["Q90"], [], ["Q90"], []]
    assert dropped["tied"].tolist() == [[False], [], [False], []]
    assert dropped["n_abstained"].tolist() == [1, 0, 1, 2], "mentions"
    rows = stage.tags(RUN)[["docno", "entity_id", "tied", "n_abstained"]].to_numpy().tolist()
    # The last document has no tag, and two abstentions.
    assert rows == [["d1", "Q90", False, 1], ["d3", "NIL", False, 2]]
    # An entity that another mention decides is no guess.
    sure = TagEntities(Words(CITIES | {"and": {"Q18": 0.25}})).transform(RUN[:1])
    assert dict(zip(sure["entity_id"][7], sure["tied"][7], strict=True)) == {"Q18": False, "Q90": False}


@pytest.mark.parametrize(("margin", "expected"), [(0.5, [False]), (0.500001, [True])])
def test_candidates_within_a_margin_are_tied(margin, expected):
    linker = Words({"Paris": {"Q90": 0.75, "Q167646": 0.25}})
    kept = TagEntities(linker, options=TagOptions(min_margin=margin)).transform(RUN[:1])
    assert (kept["entity_id"].item(), kept["tied"].item()) == (["Q90"], expected)
    dropped = TagEntities(linker, options=TagOptions(min_margin=margin, on_ties="drop")).transform(RUN[:1])
    assert dropped["n_abstained"].item() == sum(expected)
    assert dropped["entity_id"].item() == ["Q90"] * (not expected[0])


def test_tags_that_a_tie_keeps_below_a_cutoff_are_marked_or_dropped():
    stage = TagEntities(Words(CITIES), options=TagOptions(weights="score", cutoff=2))
    assert stage.transform(RUN[:1])["tied"].item() == [False, True]
    stage = TagEntities(TAGS.assign(weight=0.5), options=TagOptions(cutoff=1, on_ties="drop"))
    table = stage.transform(RUN)
    assert table["entity_id"].tolist() == [[], [], [], ["C"]]
    assert table["n_abstained"].tolist() == [1, 0, 1, 0]


def test_ties_travel_with_a_frame_and_a_file_of_tags(tmp_path):
    tags = TagEntities(Words(CITIES)).tags(RUN)
    vbterrier.frames.write_tags(tags, tmp_path / "tags.tsv")
    again = vbterrier.read_tags(tmp_path / "tags.tsv")
    for table in (tags, again, tmp_path / "tags.tsv"):
        result = TagEntities(table).transform(RUN)
        # Entities of equal weight are in the order of their ids.
        assert result["entity_id"].tolist() == [["Q18", "Q90"], [], ["Q18", "Q90"], ["Q18"]]
        assert result["tied"].tolist() == [[True, False], [], [True, False], [True]]
    with pytest.raises(InputError, match="tags column 'tied': row 1 holds 2, wanted 0 or 1"):
        TagEntities(tags.assign(tied=[0, 2, 1]))
    with pytest.raises(InputError, match="tags: row 0 has n_abstained -1, wanted a whole number of at least 0"):
        TagEntities(tags.assign(n_abstained=-1))


@pytest.mark.parametrize(
    ("tagger", "options", "message"),
    [
        ("docno", {"on_ties": "first"}, "on_ties='first': wanted one of 'smallest', 'drop'"),
        (Words(CITIES), {"min_margin": -0.1}, "min_margin=-0.1: wanted a number of at least 0"),
        ("docno", {"weights": "many"}, "weights='many': wanted 'binary', 'score' or None"),
        ("docno", {"cutoff": 0}, "cutoff=0: wanted a whole number of at least 1"),
        ("docno", {"cutoff": True}, "cutoff=True"),
        ("docno", {"min_weight": 1.5}, "min_weight=1.5: wanted a number of at least 0 and at most 1"),
        ("docno", {"min_weight": float("nan")}, "min_weight=nan"),
        (TAGS, {"min_margin": 0.1}, "a margin is one between candidates of a mention; wanted a linker"),
        (Words(CITIES), {"min_margin": 0.1, "weights": "score"}, "wanted a linker, and weights='binary'"),
    ],
)
def test_illegal_options_are_refused(tagger, options, message):
    with pytest.raises(ParameterError, match=message):
        TagEntities(tagger, options=TagOptions(**options))


def test_options_are_refused_as_another_object():
    with pytest.raises(ParameterError, match=r"options: wanted settings as TagOptions\(...\), found dict"):
        TagEntities("docno", options={"cutoff": 1})


def test_an_entity_found_several_times_has_its_largest_weight():
    linker = Words({"Paris": {"Q90": 0.25}, "and": {"Q90": 0.75}, "Rome": {"Q90": 0.5}})
    assert lists(TagEntities(linker, options=TagOptions(weights="score")))[0] == {"Q90": 0.75}
    twice = pd.concat([TAGS, TAGS.assign(weight=[0.5, 0.5, 0.75])])
    assert lists(TagEntities(twice)) == [{"A": 0.75, "B": 0.5}, {}, {"A": 0.75, "B": 0.5}, {"C": 0.75}]


def test_mentions_without_places_are_told_by_their_words():
    class Placeless(Words):
        def link(self, texts):
            links = super().link(texts)
            return Links(links.frame.assign(start=-1, end=-1), links.id_space, links.scale)

    assert lists(TagEntities(Placeless(CITIES)))[0] == {"Q90": 1.0, "Q18": 1.0}


def test_a_name_is_not_found_across_fields():
    run = RUN.assign(title=["New", "New York", "York", "New"], text=["York", "", "New", "York New"])
    stage = TagEntities(Words({"New York": {"NY": 1.0}, "York": {"Y": 1.0}}), fields=("title", "text"))
    assert lists(stage, run) == [{"Y": 1.0}, {"NY": 1.0, "Y": 1.0}, {"Y": 1.0}, {"Y": 1.0}]


def test_frames_names_and_files_of_tags(tmp_path):
    expected = [{"A": 0.75, "B": 0.25}, {}, {"A": 0.75, "B": 0.25}, {"C": 0.5}]
    register_tags("of the stage", TAGS, replace=True)
    path = tmp_path / "tags.tsv"
    TAGS.to_csv(path, sep="\t", index=False)
    for tags in (TAGS, "of the stage", path, str(path)):
        assert lists(TagEntities(tags)) == expected
    assert lists(TagEntities(TAGS, options=TagOptions(weights="binary")))[0] == {"A": 1.0, "B": 1.0}
    assert lists(TagEntities(TAGS.drop(columns="weight")))[0] == {"A": 1.0, "B": 1.0}
    assert lists(TagEntities(TAGS.assign(qid=["q1", "q2", "q9"]))) == [{"B": 0.25}, {}, {"A": 0.75}, {}], "of a query"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (cities, {"Paris": 1.0, "Rome": 1.0}),
        (lambda text: "NA" if "Paris" in text else None, {"NA": 1.0}),
        (lambda text: {"Paris": 0.5, "Oslo": 0.0} if "Paris" in text else {}, {"Paris": 0.5}),
        (lambda text: {"Rome"} if "Rome" in text else (), {"Rome": 1.0}),
    ],
)
def test_functions_of_a_text(answer, expected):
    result = lists(TagEntities(answer))
    assert result[0] == result[2] == expected
    assert result[1] == {}


def test_functions_of_a_frame_see_every_document_once_or_once_a_query():
    seen = []

    def tag(documents):
        seen.append(documents)
        kept = documents[documents["text"].str.contains("Rome")]
        return pd.DataFrame({"docno": kept["docno"], "entity_id": "Q220", "weight": 0.5})

    assert lists(TagEntities(tag, fields=None)) == [{"Q220": 0.5}, {}, {"Q220": 0.5}, {"Q220": 0.5}]
    assert seen[0].to_numpy().tolist() == [["d1", "Paris and Rome"], ["d2", "nothing"], ["d3", "Rome, Rome"]]

    def tag_by_query(documents):
        assert documents["query"].tolist() == ["one", "one", "two", "two"]
        return documents[["qid", "docno"]].assign(entity_id="about " + documents["query"])

    result = lists(TagEntities(tag_by_query, fields=None, per_query=True), RUN.merge(TOPICS, on="qid"))
    assert [list(entities) for entities in result] == [["about one"]] * 2 + [["about two"]] * 2


def test_top_keeps_the_heaviest_and_of_equals_the_first_id():
    assert lists(TagEntities(Words(CITIES), options=TagOptions(weights="score", cutoff=2)))[0] == {
        "Q90": 0.75,
        "Q18": 0.5,
    }
    assert lists(TagEntities(TAGS, options=TagOptions(cutoff=1, weights="binary")))[0] == {"A": 1.0}
    assert TagEntities(TAGS).transform(RUN)["entity_id"].iloc[0] == ["A", "B"], "by descending weight"


def test_light_tags_are_dropped_before_weights_are_made_one():
    assert lists(TagEntities(Words(CITIES), options=TagOptions(min_weight=0.6)))[0] == {"Q90": 1.0}
    assert lists(TagEntities(Words(CITIES), options=TagOptions(min_weight=0.5, weights="score")))[3] == {
        "Q18": 0.5,
        "Q220": 0.5,
    }
    assert lists(TagEntities(TAGS.assign(weight=[0.0, 0.5, 0.5])))[0] == {"A": 0.5}


@pytest.mark.parametrize("form", ["frame", "name", "file"])
def test_closed_tagging_keeps_the_candidates_of_the_query(form, tmp_path):
    register_intents("of the stage", INTENTS, replace=True)
    INTENTS.to_csv(tmp_path / "intents.tsv", sep="\t", index=False)
    intents = {"frame": INTENTS, "name": "of the stage", "file": tmp_path / "intents.tsv"}[form]
    assert lists(TagEntities(TAGS, intents=intents)) == [{"A": 0.75}, {}, {"B": 0.25}, {}]
    assert lists(TagEntities(TAGS, intents=intents, options=TagOptions(cutoff=1)))[2] == {"B": 0.25}, (
        "of the candidates"
    )


def test_mentions_are_linked_before_candidates_are_looked_at():
    intents = pd.DataFrame({"qid": ["q1", "q2"], "entity_id": ["Q167646", "Q18"]})
    assert lists(TagEntities(Words(CITIES), intents=intents)) == [{}, {}, {"Q18": 1.0}, {"Q18": 1.0}]


def test_queries_without_intents_get_no_tags_and_are_told():
    with pytest.warns(DegenerateWarning, match=r"1 of 2 queries have no intents.*\('q2'\)"):
        assert lists(TagEntities(TAGS, intents=INTENTS.iloc[:2])) == [{"A": 0.75}, {}, {}, {}]


def test_scores_of_another_scale_are_no_weights():
    scored = {"Paris": {"Q90": -3.0, "Q167646": -5.0}, "Rome": {"Q220": 40.0}}
    assert lists(TagEntities(Words(scored, scale="score")))[0] == {"Q220": 1.0, "Q90": 1.0}
    assert lists(TagEntities(Words(scored, scale="score"), options=TagOptions(cutoff=1)))[0] == {"Q220": 1.0}
    for options in ({"weights": "score"}, {"min_weight": 0.5}):
        with pytest.raises(ParameterError, match="have another scale; use weights='binary'"):
            TagEntities(Words(scored, scale="score"), options=TagOptions(**options))(RUN)


def test_a_text_is_read_once_whatever_documents_it_comes_with():
    linker = Words(CITIES)
    stage = TagEntities(linker)
    whole = stage.transform(RUN)
    assert sorted(linker.seen) == ["Paris and Rome", "Rome, Rome", "nothing"]
    again = stage.transform(RUN.assign(docno=["x", "y", "z", "w"], text=RUN["text"].replace("nothing", "new")))
    assert linker.seen[3:] == ["new"]
    assert again["entity_id"].tolist() == whole["entity_id"].tolist()
    forgetful = Words(CITIES)
    stage = TagEntities(forgetful, cache=False)
    stage.transform(RUN)
    stage.transform(RUN)
    assert len(forgetful.seen) == 6


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(0, 3), max_size=4, unique=True), max_size=4), st.integers(1, 3))
def test_batches_change_nothing(batches, n_texts):
    texts._BLOCK_TEXTS, before = n_texts, texts._BLOCK_TEXTS
    try:
        stage = TagEntities(Words(CITIES), options=TagOptions(weights="score"))
        whole = TagEntities(Words(CITIES), options=TagOptions(weights="score")).transform(RUN)
        for rows in batches:
            pd.testing.assert_frame_equal(stage.transform(RUN.iloc[rows]), whole.iloc[rows])
    finally:
        texts._BLOCK_TEXTS = before


def test_tags_of_a_run_are_a_frame_with_each_tag_once():
    expected = [("d1", "Q90", 0.75), ("d1", "Q18", 0.5), ("d1", "Q220", 0.5), ("d1", "Q167646", 0.25)]
    expected += [("d3", "Q18", 0.5), ("d3", "Q220", 0.5)]
    # A collection has no query.
    for documents in (RUN, RUN[["docno", "text"]].drop_duplicates()):
        made = TagEntities(Words(CITIES), options=TagOptions(weights="score")).tags(documents)
        assert made.columns.tolist() == ["docno", "entity_id", "weight"]
        assert list(made.itertuples(index=False, name=None)) == expected
    register_tags("made by the stage", made, replace=True)
    assert lists(TagEntities("made by the stage")) == lists(
        TagEntities(Words(CITIES), options=TagOptions(weights="score"))
    )


@pytest.mark.parametrize(
    ("tagger", "options"), [(TAGS, {"intents": INTENTS}), (TAGS, {"per_query": True}), (TAGS.assign(qid="q1"), {})]
)
def test_tags_that_differ_by_query_have_it(tagger, options):
    made = TagEntities(tagger, **options).tags(RUN)
    assert made.columns.tolist() == ["docno", "entity_id", "weight", "qid"]
    rows = TagEntities(tagger, **options).transform(RUN).explode(["entity_id", "weight"]).dropna(subset="entity_id")
    assert made.to_numpy().tolist() == rows[["docno", "entity_id", "weight", "qid"]].to_numpy().tolist()
    with pytest.raises(pt.validate.InputValidationError, match="qid"):
        TagEntities(tagger, **options).tags(RUN.drop(columns="qid"))


@pytest.mark.parametrize("other", ["Rome", "Paris, the place", "Paris, Rome"])
def test_a_document_with_two_texts_has_no_tags_of_its_own(other):
    run = RUN.assign(text=["Paris", "", other, ""])
    stage = TagEntities(cities)
    if cities(other) == ["Paris"]:
        assert stage.tags(run).to_numpy().tolist() == [["d1", "Paris", 1.0]]
    else:
        with pytest.raises(InputError, match=r"document 'd1' has several texts.*per_query=True"):
            stage.tags(run)
    kept = TagEntities(cities, per_query=True).tags(run)
    assert kept["qid"].tolist() == ["q1", *["q2"] * len(cities(other))]
    with pytest.raises(InputError, match="document 'd1' has two texts"):
        TagEntities(lambda documents: documents.assign(entity_id="E"), fields=None)(run)


def test_it_scores_in_a_plain_experiment_as_its_tags_given_apart():
    stage = TagEntities(TAGS)
    pipelines = [pt.Transformer.from_df(RUN.reset_index(drop=True)) >> stage, RUN.reset_index(drop=True)]
    register_tags("given apart", TAGS, replace=True)
    inside = pt.Experiment(pipelines[:1], TOPICS, INTENTS, [vbterrier.ES @ 1, vbterrier.ES @ 2], batch_size=1)
    bound = vbterrier.ES(tags="given apart")
    apart = pt.Experiment(pipelines[1:], TOPICS, INTENTS, [bound @ 1, bound @ 2])
    assert inside.iloc[0, 1:].tolist() == apart.iloc[0, 1:].tolist() == [0.5 * 0.75 / 2 + 0.25 / 2] * 2


def test_operators_that_blank_tags_are_seen_by_the_measures():
    run = RUN.reset_index(drop=True)
    left = pt.Transformer.from_df(run[run["docno"] != "d3"])
    right = pt.Transformer.from_df(run[run["docno"] != "d2"])
    blanked = (left >> TagEntities("docno")) + (right >> TagEntities("docno"))
    intents = pd.DataFrame({"qid": ["q1", "q2"], "entity_id": ["d1", "d3"], "prob": 1.0})
    with pytest.raises(InputError, match=r"run: 1 of 4 rows were never tagged \(query 'q2', document 'd3'\)"):
        pt.Experiment([blanked], TOPICS, intents, [vbterrier.ES @ 5])
    last = (left + right) >> TagEntities("docno")
    assert pt.Experiment([last], TOPICS, intents, [vbterrier.ES @ 5])["ES@5"].tolist() == [1.0]
    mixed = (left >> TagEntities("docno")) ^ (right >> TagEntities(TAGS))
    with pytest.raises(InputError, match=r"tagged by docno and by frame .*one tagger only"):
        pt.Experiment([mixed], TOPICS, intents, [vbterrier.ES @ 5])


def test_pyterrier_finds_out_what_goes_in_and_comes_out():
    stage = TagEntities(Words(CITIES), fields=("title", "text"))
    assert pt.inspect.transformer_inputs(stage) == [["qid", "docno", "title", "text"]]
    assert pt.inspect.transformer_inputs(TagEntities("docno")) == [["qid", "docno"]]
    columns = ["qid", "docno", "score", "title", "text"]
    assert pt.inspect.transformer_outputs(stage, columns) == [*columns, *COLUMNS, *TIE_COLUMNS]
    results = {attribute.name: attribute.value for attribute in pt.inspect.transformer_attributes(stage)}
    assert results["tagger"] is stage.tagger
    assert (results["fields"], results["options"], results["cache"]) == (("title", "text"), TagOptions(), True)
    few = TagOptions(cutoff=3)
    assert pt.inspect.transformer_apply_attributes(stage, options=few) == TagEntities(
        stage.tagger, fields=("title", "text"), options=few
    )


def test_equal_taggers_make_equal_stages():
    equal = [
        (TagEntities("docno"), TagEntities("docno", fields=["text"])),
        (TagEntities(Words(CITIES)), TagEntities(Words(dict(CITIES)))),
        (TagEntities(TAGS, intents=INTENTS), TagEntities(TAGS.copy(), intents=INTENTS.assign(prob=1))),
        (TagEntities(cities, options=TagOptions(cutoff=2)), TagEntities(cities, options=TagOptions(cutoff=2))),
    ]
    for one, other in equal:
        assert one == other
        assert hash(one) == hash(other)
        assert repr(one) == repr(other)
    frames = [TAGS, TAGS.assign(weight=0.5), TAGS.assign(qid="q1")]
    different = [TagEntities(tagger) for tagger in ("docno", cities, *frames)]
    different += [
        TagEntities(TAGS, **more)
        for more in ({"options": TagOptions(cutoff=1)}, {"intents": INTENTS}, {"intents": INTENTS[:2]})
    ]
    different += [
        TagEntities(cities, fields="title"),
        TagEntities(Words(CITIES), options=TagOptions(weights="score")),
        "docno",
    ]
    for place, one in enumerate(different):
        assert all(one != other for other in different[place + 1 :])
    labels = [repr(stage) for stage in different]
    assert len(set(labels)) == len(labels)


def test_its_repr_is_short_and_the_same_elsewhere():
    register_tags("wat", TAGS, replace=True)
    assert (
        repr(TagEntities("wat", options=TagOptions(cutoff=2, min_weight=0.5)))
        == "TagEntities(wat, cutoff=2, min_weight=0.5)"
    )
    assert repr(TagEntities(Words(CITIES), fields=("title",))) == "TagEntities(Words(2), fields=('title',))"
    assert repr(TagEntities(cities)) == "TagEntities(cities)"
    assert repr(TagEntities(TAGS)) == repr(TagEntities(TAGS.copy()))
    assert len(repr(TagEntities(TAGS))) < 30

    class Nameless(Words):
        __repr__ = object.__repr__

    assert repr(TagEntities(Nameless({}))) == "TagEntities(Nameless)"


def test_it_travels_to_other_processes_without_what_it_read():
    stage = TagEntities(cities)
    expected = stage.transform(RUN)
    copy = pickle.loads(pickle.dumps(stage))
    assert copy == stage
    assert not copy._finder._known
    pd.testing.assert_frame_equal(copy.transform(RUN), expected)


@pytest.mark.parametrize("tagger", ["docno", TAGS, cities, Words(CITIES)], ids=["docno", "frame", "function", "linker"])
def test_an_empty_run_stays_empty_with_the_columns(tagger):
    tagged = TagEntities(tagger, intents=INTENTS).transform(RUN.iloc[:0])
    of_ties = TIE_COLUMNS if isinstance(tagger, Words) else ()
    assert tagged.columns.tolist() == [*RUN.columns, *COLUMNS, *of_ties]
    assert len(tagged) == 0
    assert TagEntities(tagger).tags(RUN.iloc[:0]).columns.tolist() == ["docno", "entity_id", "weight", *of_ties]


def test_missing_texts_get_no_tags_and_one_warning():
    run = RUN.assign(text=pd.Series([None, "Paris", np.nan, "Rome"], index=RUN.index, dtype=object))
    with pytest.warns(DegenerateWarning, match=r"2 of 4 rows have no 'text' .*\(document 'd1'\)") as record:
        assert lists(TagEntities(cities), run) == [{}, {"Paris": 1.0}, {}, {"Rome": 1.0}]
    assert len(record) == 1
    with pytest.warns(DegenerateWarning, match="4 of 4 rows"):
        assert lists(TagEntities(cities), RUN.assign(text=None)) == [{}] * 4


def test_the_input_is_never_changed_and_frames_are_copied():
    run, tags, intents = RUN.copy(deep=True), TAGS.copy(deep=True), INTENTS.copy(deep=True)
    stage = TagEntities(tags, intents=intents)
    before = stage.transform(run)
    pd.testing.assert_frame_equal(run, RUN)
    tags.loc[:, "weight"] = 0.5
    intents.loc[:, "entity_id"] = "Z"
    pd.testing.assert_frame_equal(stage.transform(run), before)
    pd.testing.assert_frame_equal(pt.inspect.transformer_apply_attributes(stage, cache=False).transform(run), before)


def test_a_run_is_tagged_by_one_tagger_only():
    tagged = TagEntities("docno").transform(RUN)
    pd.testing.assert_frame_equal(TagEntities("docno").transform(tagged), tagged)
    with pytest.raises(InputError, match=r"the run is already tagged by 'docno'; use one tagger only.*replace=True"):
        TagEntities(TAGS).transform(tagged)
    with pytest.raises(InputError, match="a frame with the columns entity_id; use one tagger only"):
        TagEntities(TAGS).transform(RUN.assign(entity_id="E"))
    replaced = TagEntities(TAGS, replace=True).transform(tagged)
    pd.testing.assert_frame_equal(replaced, TagEntities(TAGS).transform(RUN))


def answering(entity):
    """Functions that tag every text with an entity, in each form that keeps the entity apart from the name."""

    def named(_text):
        return [entity]

    def constant(_text, entities):
        return entities

    places = pd.DataFrame({"name": range(3000), "entity_id": "E"})
    places.loc[1500, "entity_id"] = entity
    values = places["entity_id"].to_numpy()
    return {
        "function": named,
        "lambda": lambda _text: [entity],
        "default": lambda _text, entities=entity: [entities],
        "keyword": lambda _text, *, entities=entity: [entities],
        "partial": functools.partial(constant, entities=[entity]),
        "frame": lambda _text: places["entity_id"].iloc[[1500]],
        "array": lambda _text, entities=values: entities[[1500]],
        "nested": lambda _text, entities={"any": {"text": {entity, "E"}}}: entities["any"]["text"],
    }


@pytest.mark.parametrize("form", answering("A"))
def test_functions_of_one_name_are_distinct_taggers_and_an_equal_one_is_the_same(form):
    one, equal, other = (answering(entity)[form] for entity in "AAB")
    tagged = [TagEntities(tagger).transform(RUN.reset_index(drop=True)) for tagger in (one, equal, other)]
    assert tagged[0]["entity_id"].tolist() != tagged[2]["entity_id"].tolist()
    intents = INTENTS.assign(entity_id=["A", "B", "A"])
    averages = vbterrier.score({"one": tagged[0], "equal": tagged[1]}, intents=intents, measures=["ES@1"]).means()
    assert averages.loc["one"].tolist() == averages.loc["equal"].tolist()
    with pytest.raises(InputError, match="systems are compared under one tagger only"):
        vbterrier.score({"one": tagged[0], "other": tagged[2]}, intents=intents, measures=["ES@1"])


def test_functions_that_call_themselves_and_values_that_contain_themselves_have_labels():
    def endless():
        table = {}
        table["self"] = table
        again = lambda text: again(text) or table or later  # noqa: E731
        label = texts.source_name(again)
        later = None
        return label

    assert endless() == endless()


@pytest.mark.slow
def test_the_label_of_a_function_is_equal_in_every_process():
    function = "lambda t: t in {'a', 'b', 'c', 'dd', 'eee'}"
    code = f"from vbterrier.intents.taggers import source_name; print(source_name({function}))"
    made = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True
        )
        for seed in "123"
    ]
    assert len({one.stdout for one in made}) == 1


@pytest.mark.parametrize("missing", ["text", ["text", "docno"]], ids=str)
def test_a_run_without_the_text_is_refused_with_the_remedy(missing):
    with pytest.raises(pt.validate.InputValidationError, match=r"without column.*'text'.*pt.text.get_text.*fields="):
        TagEntities(cities).transform(RUN.drop(columns=missing))


@pytest.mark.parametrize(
    ("tagger", "options", "error", "message"),
    [
        (None, {}, ParameterError, "tagger=None: wanted 'docno', a linker, a frame or file of tags, or a function"),
        (7, {}, ParameterError, "tagger=7"),
        (cities, {"fields": ()}, ParameterError, r"fields=\(\): cities reads texts"),
        (Words(CITIES), {"fields": None}, ParameterError, r"fields=None: Words\(2\) reads texts"),
        (TAGS.assign(weight=[0.5, 1.5, 0]), {}, InputError, r"tags: row 1 \(document 'd1'\) has weight 1.5"),
        ("no such tags", {}, InputError, "tags='no such tags': no tags are registered under this name and no such"),
        (cities, {"intents": "no such intents"}, InputError, "intents='no such intents'"),
        (cities, {"intents": INTENTS[["entity_id"]]}, InputError, "intents: wanted columns qid, entity_id; missing"),
    ],
)
def test_stages_that_could_not_tag_are_refused_when_made(tagger, options, error, message):
    with pytest.raises(error, match=message):
        TagEntities(tagger, **options)


@pytest.mark.parametrize(
    ("tagger", "options", "message"),
    [
        (TAGS.assign(docno=[1, 2, 3]), {}, "tags column 'docno' holds integers, run column 'docno' holds text"),
        (TAGS.assign(qid=1), {}, "tags column 'qid' holds integers"),
        (TAGS.assign(entity_id=[1, 2, 3]), {"intents": INTENTS}, "entities that the tagger found holds integers"),
        (TAGS, {"intents": INTENTS.assign(qid=[1, 1, 2])}, "intents column 'qid' holds integers"),
        (lambda _text: [7], {}, "returned 7 with weight 1.0 for the text 'Paris and Rome'; wanted an id as text"),
        (lambda _text: {"E": 1.5}, {}, "returned 'E' with weight 1.5"),
        (lambda _text: {"E": "much"}, {}, "returned 'E' with weight 'much'"),
        (lambda _text: 3.5, {}, "returned 3.5 with weight 1.0"),
        (lambda _text: 0, {}, "returned 0 with weight 1.0"),
        (lambda _frame: ["E"], {"fields": None}, "the result of the tagger: wanted a data frame, found list"),
        (lambda frame: frame, {"fields": None}, "tags from the tagger: wanted columns docno, entity_id"),
        (lambda _: TAGS.assign(qid="q1"), {"fields": None}, "returned tags with qid; drop it, or pass per_query=True"),
    ],
)
def test_tags_that_are_none_are_refused(tagger, options, message):
    with pytest.raises(InputError, match=message):
        TagEntities(tagger, **options).transform(RUN)


def test_texts_that_are_none_are_refused():
    with pytest.raises(InputError, match=r"column 'rank': row 0 \(document 'd1'\) holds .*wanted text; pass other"):
        TagEntities(cities, fields="rank").transform(RUN)
    mixed = RUN.assign(text=pd.Series(["a", 7, "b", "c"], index=RUN.index, dtype=object))
    with pytest.raises(InputError, match=r"row 1 \(document 'd2'\) holds 7"):
        TagEntities(cities).transform(mixed)


def test_links_of_texts_that_were_not_given_are_refused():
    class Lost(Words):
        def link(self, texts):
            return Links(links_frame([(len(texts), 0, 1, "m", "E", 1.0, "")]), "words", "probability")

    with pytest.raises(InputError, match=r"Words\(0\): its links refer to more than the 3"):
        TagEntities(Lost({})).transform(RUN)


def test_tags_of_other_documents_are_warned_of():
    with pytest.warns(DegenerateWarning, match="no document has tags: 'D1', 'D1', 'D3' against 'd1', 'd2', 'd1', ..."):
        assert lists(TagEntities(TAGS.assign(docno=TAGS["docno"].str.upper()))) == [{}] * 4


def test_sentences_about_three_people_called_emerson(shared_data):
    lines = (shared_data / "kb_emerson" / "emerson_annotated_text.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    clues = {
        "Q312545": ("tennis", "Davis Cup", "Grand Slam", "slam", "Wimbledon", "Australian"),
        "Q48226": ("essay", "philosoph", "poet", "Transcendental", "lectur", "Harvard", "Nature"),
        "Q215952": ("football", "midfield", "Brazil", "Juventus", "Real Madrid", "Roma", "Ferreira"),
    }
    docnos = [f"s{n:02}" for n in range(len(entries))]
    sentences = pd.DataFrame({"docno": docnos, "text": [entry["text"] for entry in entries]})
    gold = pd.DataFrame({"docno": docnos, "entity_id": [entry["accept"][0] for entry in entries]})

    def about(text):
        return [entity for entity, words in clues.items() if any(word in text for word in words)]

    stage = TagEntities(about)
    made = stage.tags(sentences)
    expected = [(docno, entity) for docno, text in sentences.itertuples(index=False) for entity in sorted(about(text))]
    assert list(made[["docno", "entity_id"]].itertuples(index=False, name=None)) == expected
    right = set(gold.itertuples(index=False, name=None))
    quality = tag_quality(made, gold)
    assert quality.micro.precision == pytest.approx(len(right & set(expected)) / len(expected))
    assert quality.micro.recall == pytest.approx(len(right & set(expected)) / len(right))
    # One query, three intents of ten sentences each, the ranking as in the file.
    run = sentences.assign(qid="q", query="Emerson", score=-np.arange(len(sentences), dtype=float))
    intents = pd.DataFrame({"qid": "q", "entity_id": list(clues), "prob": 1 / 3})
    topics, measures = run[["qid", "query"]].drop_duplicates(), [vbterrier.ES @ k for k in (1, 3, 10, 30)]
    table = pt.Experiment([pt.Transformer.from_df(run) >> stage], topics, intents, measures)
    by_hand = [len({e for text in sentences["text"][:k] for e in about(text)}) / 3 for k in (1, 3, 10, 30)]
    assert [table[f"ES@{k}"].item() for k in (1, 3, 10, 30)] == pytest.approx(by_hand)
    assert sorted(gold["entity_id"].value_counts()) == [10, 10, 10]
