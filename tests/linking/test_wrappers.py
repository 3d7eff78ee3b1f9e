"""Retrievers over entities and spaCy pipelines as linkers."""

import json
import pickle
import random

import pandas as pd
import pyterrier as pt
import pytest

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.linking.links import COLUMNS, Linker, links_frame
from vbterrier.linking.wrappers import RetrieverLinker, SpacyLinker


class Fixed(pt.Transformer):
    """A retriever with fixed results, which records its queries."""

    def __init__(self, *rows, columns=("qid", "docno", "score")):
        self.frame, self.requests = pd.DataFrame(rows, columns=list(columns)), []

    def transform(self, inp):
        self.requests.append(inp.copy())
        return self.frame[self.frame["qid"].astype(str).isin(inp["qid"])]


def linker(*rows, columns=("qid", "docno", "score"), **options):
    return RetrieverLinker(Fixed(*rows, columns=columns), id_space="k", **options)


def test_results_become_links_of_their_text():
    results = [("2", "Q2", 1.0), ("0", "Q1", 0.5), ("0", "Q0", 3.5), ("2", "Q3", -2.0)]
    links = linker(*results).link(["jordan", "", "emerson, poet"])
    assert isinstance(linker(), Linker)
    assert (links.id_space, links.scale) == ("k", "score")
    assert tuple(links.frame.columns) == COLUMNS
    assert links.frame.values.tolist() == [
        [0, -1, -1, "jordan", "Q0", 3.5, ""],
        [0, -1, -1, "jordan", "Q1", 0.5, ""],
        [2, -1, -1, "emerson, poet", "Q2", 1.0, ""],
        [2, -1, -1, "emerson, poet", "Q3", -2.0, ""],
    ]


def test_texts_are_sent_as_they_are_and_blank_ones_not_at_all():
    linked = linker()
    linked.link(["Who's (X)? +y", " \t", "b"])
    (request,) = linked.retriever.requests
    assert request.values.tolist() == [["0", "Who's (X)? +y"], ["2", "b"]]
    linked.link(["", " "])
    linked.link([])
    assert len(linked.retriever.requests) == 1


def test_no_more_than_the_depth_is_kept_ties_as_trec_eval_does():
    rows = [("0", "a", 1.0), ("0", "c", 1.0), ("0", "b", 2.0), ("0", "d", 1.0)]
    assert linker(*rows, cutoff=3).link(["x"]).frame["entity_id"].tolist() == ["b", "d", "c"]
    assert linker(*rows).link(["x"]).frame["entity_id"].tolist() == ["b", "d", "c", "a"]


def test_names_come_from_the_column_that_holds_them():
    rows = [("0", "Q1", 2.0, "Jordan"), ("0", "Q2", 1.0, None)]
    named = linker(*rows, columns=("qid", "docno", "score", "title"), name_column="title")
    assert named.link(["x"]).frame["name"].tolist() == ["Jordan", ""]
    with pytest.raises(InputError, match="wanted columns qid, docno, score, label; missing label"):
        linker(*rows, columns=("qid", "docno", "score", "title"), name_column="label").link(["x"])


def test_nothing_found_is_an_empty_frame_whatever_its_columns():
    for result in (pd.DataFrame(), pd.DataFrame(columns=["qid", "docno", "score"])):
        links = RetrieverLinker(pt.apply.generic(lambda _, result=result: result), id_space="k").link(["x", ""])
        pd.testing.assert_frame_equal(links.frame, links_frame([]))


@pytest.mark.parametrize(("row", "entity"), [(("0", "007", 1), "007"), ((0, 7, 1.0), "7")])
def test_ids_are_text_and_frames_have_the_types_of_all_links(row, entity):
    frame = linker(row).link(["x"]).frame
    assert frame["entity_id"].tolist() == [entity]
    assert frame.dtypes.tolist() == links_frame([]).dtypes.tolist()


def test_linkers_are_what_their_parameters_are():
    retriever = Fixed()
    first = RetrieverLinker(retriever, id_space="k")
    assert first == RetrieverLinker(retriever, id_space="k")
    others = [RetrieverLinker(retriever, id_space="l"), RetrieverLinker(retriever, id_space="k", cutoff=5), linker()]
    assert len({first, *others}) == 4
    shown = repr(RetrieverLinker(retriever, id_space="k", cutoff=5))
    assert shown.startswith("RetrieverLinker(")
    assert shown.endswith("id_space='k', cutoff=5)")
    assert " at 0x" not in shown
    assert pickle.loads(pickle.dumps(first)).cutoff == 10


def test_a_lexical_index_of_entities_links_sentences(shared_data, tmp_path):
    pisa = pytest.importorskip("pyterrier_pisa")
    entities = pd.read_csv(shared_data / "kb_emerson" / "entities.csv", names=["docno", "name", "text"], dtype=str)
    index = pisa.PisaIndex(str(tmp_path / "entities"), text_field="text", stemmer="none")
    index.index(entities.assign(text=entities["name"] + " " + entities["text"]).to_dict("records"))
    names = pt.apply.name(lambda row: entities.set_index("docno")["name"][row["docno"]])
    linked = RetrieverLinker(index.bm25() >> names, id_space="wikidata", name_column="name", cutoff=2)
    links = linked.link(["emerson the tennis player", "", "nothing known", "ralph waldo"]).frame
    best = links.drop_duplicates("text")
    assert best[["text", "entity_id", "name"]].values.tolist() == [
        [0, "Q312545", "Roy Stanley Emerson"],
        [3, "Q48226", "Ralph Waldo Emerson"],
    ]
    assert (links["score"] > 0).all()


spacy = pytest.importorskip("spacy")

PATTERNS = [
    {"label": "PERSON", "pattern": "Emerson", "id": "Q48226"},
    {"label": "PERSON", "pattern": [{"LOWER": "ralph"}, {"LOWER": "waldo"}], "id": "Q1"},
    {"label": "GPE", "pattern": "Brazil"},
]


def ruled(*patterns):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(list(patterns))
    return nlp


def linked(aliases, *, patterns=PATTERNS, entities=("Q48226", "Q215952", "Q312545"), **config):
    """A pipeline whose EntityLinker uses only the priors of a knowledge base."""
    from spacy.kb import InMemoryLookupKB
    from spacy.training import Example

    nlp = ruled(*patterns)
    nlp.add_pipe("sentencizer", first=True)
    linker = nlp.add_pipe("entity_linker", config={"incl_context": False, **config})

    def knowledge(vocab):
        kb = InMemoryLookupKB(vocab, entity_vector_length=3)
        for entity in entities:
            kb.add_entity(entity, freq=1, entity_vector=[1, 1, 1])
        for alias, (ids, priors) in aliases.items():
            kb.add_alias(alias, ids, priors)
        return kb

    labels = {"entities": [(0, 7, "PERSON")], "links": {(0, 7): {"Q48226": 1.0}}, "sent_starts": [1, 0]}
    example = Example.from_dict(nlp.make_doc("Emerson wrote"), labels)
    linker.initialize(lambda: [example], nlp=nlp, kb_loader=knowledge)
    return nlp


def test_rules_with_ids_give_one_entity_each():
    linker = SpacyLinker(ruled(*PATTERNS), id_space="wikidata", batch_size=1)
    links = linker.link(["𝔘𝔫 café: ☕️ E\u0301 Emerson: RALPH waldo", "", "no one", "Emerson"])
    assert isinstance(linker, Linker)
    assert (links.id_space, links.scale) == ("wikidata", "probability")
    assert tuple(links.frame.columns) == COLUMNS
    assert links.frame.values.tolist() == [
        [0, 15, 22, "Emerson", "Q48226", 1.0, ""],
        [0, 24, 35, "RALPH waldo", "Q1", 1.0, ""],
        [3, 0, 7, "Emerson", "Q48226", 1.0, ""],
    ]


def test_mentions_without_an_id_are_counted():
    links = SpacyLinker(ruled(*PATTERNS), id_space="k").link(["Emerson of Brazil", "Brazil"])
    assert links.frame["entity_id"].tolist() == ["Q48226"]
    assert links.frame.attrs == {"n_nil": 0, "n_without_id": 2}
    linker = SpacyLinker(ruled(PATTERNS[2]), id_space="k")
    with pytest.warns(DegenerateWarning, match="spaCy: 2 mentions, none with an id; add an EntityLinker"):
        links = linker.link(["Brazil and Brazil"])
    pd.testing.assert_frame_equal(links.frame, links_frame([]))
    assert len(linker.link(["", "nothing"]).frame) == 0


ALIASES = {"Emerson": (["Q215952", "Q48226", "Q312545"], [0.2, 0.5, 0.2]), "waldo": (["Q48226"], [0.9])}
BARE = [{"label": "PERSON", "pattern": name} for name in ("Emerson", "waldo", "Brazil")]


@pytest.mark.parametrize("candidates", ["priors", "best"])
def test_candidates_come_with_their_priors_or_the_best_alone(candidates):
    linker = SpacyLinker(linked(ALIASES, patterns=BARE), id_space="wikidata", candidates=candidates)
    links = linker.link(["Emerson and waldo in Brazil."]).frame
    results = list(links[["mention", "entity_id", "score"]].itertuples(index=False, name=None))
    priors = [("Q48226", 0.5), ("Q215952", 0.2), ("Q312545", 0.2)] if candidates == "priors" else [("Q48226", 1.0)]
    last = ("waldo", "Q48226", 0.9 if candidates == "priors" else 1.0)
    expected = [*(("Emerson", entity, prior) for entity, prior in priors), last]
    assert results == [(mention, entity, pytest.approx(prior)) for mention, entity, prior in expected]
    # spaCy answers NIL if its knowledge base has nothing.
    assert links.attrs == {"n_nil": 1, "n_without_id": 0}


def test_answers_below_the_threshold_are_nil():
    linker = SpacyLinker(linked(ALIASES, patterns=BARE, threshold=0.6), id_space="k")
    links = linker.link(["Emerson and waldo"]).frame
    assert links["mention"].tolist() == ["waldo"]
    assert links.attrs == {"n_nil": 1, "n_without_id": 0}
    # NIL is an answer: mentions without an id give no warning then.
    linker.nlp.add_pipe("entity_ruler", name="late").add_patterns([{"label": "PERSON", "pattern": "Roy"}])
    assert linker.link(["Roy and Emerson"]).frame.attrs == {"n_nil": 1, "n_without_id": 1}


def test_rules_with_ids_hold_where_there_is_a_knowledge_base_too():
    # The EntityLinker comes before the ruler, so it does not link the ruler's entities.
    nlp = linked(ALIASES, patterns=BARE[:2])
    nlp.add_pipe("entity_ruler", name="late").add_patterns([{"label": "GPE", "pattern": "Brazil", "id": "Q155"}])
    links = SpacyLinker(nlp, id_space="wikidata").link(["Emerson in Brazil"]).frame
    assert links["entity_id"].tolist() == ["Q48226", "Q215952", "Q312545", "Q155"]


def test_the_answer_of_the_entity_linker_counts_before_the_id_of_a_rule():
    rules = [{"label": "PERSON", "pattern": name, "id": "Q999"} for name in ("Emerson", "Brazil")]
    linker = SpacyLinker(linked(ALIASES, patterns=rules), id_space="wikidata", candidates="best")
    links = linker.link(["Emerson, Brazil"])
    assert links.frame[["mention", "entity_id"]].values.tolist() == [["Emerson", "Q48226"]]
    assert links.frame.attrs == {"n_nil": 1, "n_without_id": 0}, "NIL is an answer too"


def test_priors_do_not_depend_on_the_dice_of_the_pipeline():
    even = {"Emerson": (["Q215952", "Q48226", "Q312545"], [0.3, 0.3, 0.3])}
    linker = SpacyLinker(linked(even, patterns=BARE), id_space="wikidata")
    seen = set()
    for seed in range(4):
        random.seed(seed)
        seen.add(tuple(linker.link(["Emerson", "Emerson"]).frame["entity_id"]))
    assert seen == {("Q215952", "Q312545", "Q48226") * 2}, "ties by id"


def test_texts_and_parameters_are_checked_and_identify_linkers():
    nlp = ruled(*PATTERNS)
    with pytest.raises(ParameterError, match="nlp: wanted a spaCy pipeline, found str"):
        SpacyLinker("en_core_web_sm", id_space="k")
    with pytest.raises(ParameterError, match="candidates='prior': wanted one of 'priors', 'best'"):
        SpacyLinker(nlp, id_space="k", candidates="prior")
    with pytest.raises(ParameterError, match="batch_size=0"):
        SpacyLinker(nlp, id_space="k", batch_size=0)
    first = SpacyLinker(nlp, id_space="k")
    with pytest.raises(InputError, match="found one text"):
        first.link("Emerson")
    others = [SpacyLinker(nlp, id_space="l"), SpacyLinker(nlp, id_space="k", candidates="best")]
    assert len({first, SpacyLinker(nlp, id_space="k"), *others, SpacyLinker(ruled(), id_space="k")}) == 4
    assert repr(first) == "SpacyLinker(en: entity_ruler, id_space='k')"
    nlp.max_length = 10
    with pytest.raises(InputError, match="11 characters in place 1, and the limit of the pipeline is 10; cut the text"):
        first.link(["a" * 10, "a" * 11])


def test_every_sentence_about_an_emerson_has_the_right_one_among_its_candidates(shared_data):
    folder = shared_data / "kb_emerson"
    lines = [json.loads(line) for line in (folder / "emerson_annotated_text.jsonl").read_text("utf-8").splitlines()]
    ids = pd.read_csv(folder / "entities.csv", names=["id", "name", "text"], dtype=str)["id"].tolist()
    assert len(lines) == 30
    nlp = linked({"Emerson": (ids, [1 / 3] * 3)}, patterns=BARE[:1], entities=ids)
    links = SpacyLinker(nlp, id_space="wikidata").link([line["text"] for line in lines]).frame
    for place, line in enumerate(lines):
        span = line["spans"][0]
        here = links[(links["text"] == place) & (links["start"] == span["start"])]
        assert here["end"].tolist() == [span["end"]] * 3
        assert here["entity_id"].tolist() == sorted(ids)
        assert line["accept"][0] in here["entity_id"].tolist()
    assert links["score"].tolist() == pytest.approx([1 / 3] * len(links))
