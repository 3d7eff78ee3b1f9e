"""Stages as PyTerrier draws them: columns in and out, what was set, nothing from the network."""

import inspect
import unittest

import pyterrier as pt
import pytest

import vbterrier
from vbterrier.demo import demo_folder

DEMO = demo_folder()
RUN = ["qid", "docno", "score"]
RANKED = [*RUN, "rank"]
INTENTS = ["qid", "entity_id", "prob"]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    path = tmp_path_factory.mktemp("kb") / "demo.kb"
    return vbterrier.linking.kb_from_file(path, DEMO / "entities.tsv", id_space="demo", progress=False)


@pytest.fixture(scope="module")
def stages(kb):
    linker = vbterrier.linking.DictionaryLinker(kb)
    intents = vbterrier.read_intents(DEMO / "intents.tsv")
    tags, qrels = vbterrier.read_tags(DEMO / "tags.tsv"), vbterrier.read_qrels(DEMO / "qrels.txt")
    links = vbterrier.entities.link_pool(vbterrier.read_run(DEMO / "lexical.run"), tags, qrels)
    consensus = vbterrier.entities.ConsensusEntities(links, cutoff=5)
    entities = consensus(vbterrier.read_topics(DEMO / "topics.tsv"))
    vectors = {entity: [1.0, float(at)] for at, entity in enumerate(tags["entity_id"].unique())}
    with pytest.warns(vbterrier.errors.DegenerateWarning, match="as a diagnostic, not as a system"):
        diagnostic = vbterrier.entities.OERFilter(links)
    found = [
        diagnostic,
        vbterrier.CandidateIntents(linker),
        vbterrier.Calibrate(temperature=2.0),
        vbterrier.Dedup(kb=kb),
        vbterrier.Truncate(mass=0.95),
        vbterrier.intents.GenerateIntents(str),
        vbterrier.intents.ModelProbabilities(str),
        vbterrier.intents.ParseConstraints(),
        vbterrier.intents.RelaxedQueries(most=2),
        vbterrier.RelaxConstraints(kb),
        vbterrier.TagEntities(linker),
        vbterrier.intents.SortByRank(),
        vbterrier.Condense(qrels),
        consensus,
        vbterrier.entities.LocalIDF(links),
        vbterrier.entities.PersonalisedPageRank(links),
        vbterrier.entities.EntitySimilarity(links, embeddings=vectors, query_entities=intents),
        vbterrier.entities.EntitySelector(links),
        vbterrier.entities.HybridEntities([consensus, vbterrier.entities.LocalIDF(links)]),
        vbterrier.entities.EntityReachable(links, entities),
        vbterrier.entities.OverlapReranker(links, entities, weight=0.7),
        vbterrier.entities.ExpansionReranker(entities),
        vbterrier.entities.ExpandByEntities(entities),
        vbterrier.entities.EmbeddingReranker(links, consensus, vectors),
        vbterrier.entities.PropagationReranker(links, entities),
        vbterrier.entities.SimilarityPropagationReranker(links, entities, vectors),
        vbterrier.entities.RandomEntities(),
        vbterrier.entities.NeuralReranker(links, entities),
        vbterrier.entities.NeuralEntityRanker(links),
        vbterrier.entities.LanguageModelEntities(str),
    ]
    return {type(stage).__name__: stage for stage in found}


# Columns in and out, and what is said to be set.
DRAWN = {
    "CandidateIntents": (["qid", "query"], [*INTENTS, "score", "name", "mention", "source"], {"source"}),
    "Calibrate": (["qid", "entity_id", "score"], ["prob"], {"temperature"}),
    "GenerateIntents": (["qid", "query"], INTENTS, {"ask"}),
    "ModelProbabilities": (["qid", "query", "entity_id", "prob"], INTENTS, {"ask"}),
    "Dedup": (INTENTS, ["merged"], {"kb"}),
    "Truncate": (INTENTS, INTENTS, {"mass"}),
    "ParseConstraints": (["qid", "query"], ["query_0", "constraints"], set()),
    "RelaxedQueries": (["qid", "query"], ["qid", "query"], {"most"}),
    "RelaxConstraints": ([*INTENTS, "constraints"], ["delta", "violations"], {"kb"}),
    "TagEntities": (["qid", "docno", "text"], ["entity_id", "weight", "tagger"], {"tagger"}),
    "SortByRank": (RUN, RANKED, set()),
    "Condense": (RUN, RANKED, {"qrels"}),
    "ConsensusEntities": (["qid"], RANKED, {"links", "cutoff"}),
    "LocalIDF": (RUN, RANKED, {"links"}),
    "PersonalisedPageRank": (["qid"], RANKED, {"links"}),
    "EntitySimilarity": (["qid"], RANKED, {"links", "embeddings", "query_entities"}),
    "OERFilter": (RUN, RANKED, {"links"}),
    "EntitySelector": ([*RUN, "query"], [*RANKED, "query", "judgments"], {"links"}),
    "HybridEntities": (RUN, RANKED, set()),
    "EntityReachable": (RUN, RANKED, {"links", "entities"}),
    "OverlapReranker": (RUN, RANKED, {"links", "entities", "weight"}),
    "ExpansionReranker": ([*RUN, "text"], RANKED, {"entities"}),
    "ExpandByEntities": (["qid", "query"], ["query_0", "query"], {"entities"}),
    "EmbeddingReranker": (RUN, RANKED, {"links", "embeddings"}),
    "PropagationReranker": (RUN, RANKED, {"links", "entities"}),
    "SimilarityPropagationReranker": (RUN, RANKED, {"links", "entities", "embeddings"}),
    "RandomEntities": (RUN, RANKED, set()),
    "NeuralReranker": ([*RUN, "query", "text"], [*RANKED, "query", "judgments"], {"links", "entities"}),
    "NeuralEntityRanker": ([*RUN, "query"], [*RANKED, "query", "judgments"], {"links"}),
    "LanguageModelEntities": ([*RUN, "query"], [*RANKED, "query"], {"ask"}),
}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """PyTerrier looks addresses up for stages of its own; for ours it must not."""

    def address(stage):
        assert not type(stage).__module__.startswith("vbterrier")

    monkeypatch.setattr(pt.documentation, "url_for_class", address)


def test_every_stage_is_drawn_here(stages):
    public = [getattr(vbterrier, name) for name in vbterrier.__all__]
    public += [getattr(space, name) for space in public if inspect.ismodule(space) for name in space.__all__]
    kinds = {one.__name__ for one in public if isinstance(one, type) and issubclass(one, pt.Transformer)}
    assert set(stages) == set(DRAWN) == kinds


@pytest.mark.parametrize("name", DRAWN)
def test_a_stage_says_what_it_takes_gives_and_was_told(name, stages):
    takes, gives, told = DRAWN[name]
    stage = stages[name]
    assert pt.inspect.transformer_inputs(stage)[0] == takes
    assert set(gives) <= set(pt.inspect.transformer_outputs(stage, takes))
    drawn = pt.schematic.transformer_schematic(stage)
    assert drawn["label"] == (name if len(name) <= 20 else f"{name[:19]}…")
    assert drawn["name"].endswith(f".{name}")
    assert "input_validation_error" not in drawn
    assert set(gives) <= set(drawn["output_columns"])
    assert set(drawn["settings"]) == told
    assert all(len(text) < 100 and "\n" not in text for text in drawn["settings"].values()), drawn["settings"]


@pytest.mark.parametrize("name", DRAWN)
def test_every_stage_passes_the_test_case_of_pyterrier(name, stages, monkeypatch):
    monkeypatch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")
    case = pt.testing.transformer_test_class(lambda: stages[name])
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun == 2
    assert not result.failures + result.errors, "".join(text for _, text in result.failures + result.errors)


def test_rankers_inside_a_stage_are_drawn_beside_it(stages):
    drawn = pt.schematic.transformer_schematic(stages["HybridEntities"])
    assert drawn["inner_pipelines_labels"] == ["rankers[0]", "rankers[1]"]
    assert "entities" in pt.inspect.subtransformers(stages["EmbeddingReranker"])


def test_a_pipeline_is_drawn_with_the_columns_between_its_stages(stages):
    pipeline = stages["CandidateIntents"] >> stages["Dedup"] >> stages["Truncate"]
    drawn = pt.schematic.transformer_schematic(pipeline)
    assert [one["label"] for one in drawn["transformers"]] == ["CandidateIntents", "Dedup", "Truncate"]
    assert "merged" in drawn["output_columns"]
    assert "error" not in str(drawn)
    page = pipeline._repr_html_()
    assert all(one["label"] in page for one in drawn["transformers"])


def test_odd_settings_are_not_markup():
    def odd(text):
        raise AssertionError(text)

    odd.__qualname__ = "<script>alert(1)</script>"
    page = pt.schematic.draw(vbterrier.TagEntities(odd))
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
