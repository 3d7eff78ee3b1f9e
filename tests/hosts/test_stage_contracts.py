"""The contract of every public stage: columns, empty input, order, batches, text, copies, parameters, operators.

A stage that is not in the table ``CONTRACTS`` fails the first test.
"""

import inspect
import pickle
import unittest
import warnings
from dataclasses import dataclass

import pandas as pd
import pyterrier as pt
import pytest
from pandas.testing import assert_frame_equal
from words import encoder

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")

DEMO = demo_folder()
TOPIC = ["qid", "query"]
RUN = ["qid", "docno", "score"]
RANKED = [*RUN, "rank"]
INTENTS = ["qid", "entity_id", "prob"]
# What a stage does with the rows of its input, and with columns that it does not know.
ROWS = ("adds", "kept in order", "ranked by topic")


@dataclass(frozen=True)
class Contract:
    """The frame that a stage gets, the columns that it needs and adds, and what it does with rows."""

    inp: str  # the name of a frame of the demo
    needs: tuple[str, ...]
    gives: tuple[str, ...]
    settings: frozenset[str]  # parameters other than defaults, which drawings show
    rows: str
    parameter: tuple[str, object] | None  # another value of a parameter, for pt.GridSearch
    illegal: object = None  # a value of that parameter that the constructor refuses
    keeps_columns: bool = True  # False if columns of documents are dropped, because rows become entities


def contract(inp, needs, gives, settings, rows, parameter=None, illegal=None, **options):
    return Contract(inp, tuple(needs), tuple(gives), frozenset(settings), rows, parameter, illegal, **options)


# Stages whose rows become entities keep the columns of queries alone.
ENTITIES = {"keeps_columns": False}
CONTRACTS = {
    "CandidateIntents": contract(
        "topics", TOPIC, [*INTENTS, "score", "name", "mention", "source"], {"source"}, "adds", ("cutoff", 1), 0
    ),
    "Calibrate": contract(
        "intents", ["qid", "entity_id", "score"], ["prob"], {"temperature"}, "kept in order", ("temperature", 0.5), 0
    ),
    "GenerateIntents": contract("topics", TOPIC, INTENTS, {"ask"}, "adds", ("cutoff", 1), 0),
    "ModelProbabilities": contract(
        "intents", ["qid", "query", "entity_id", "prob"], INTENTS, {"ask"}, "kept in order",
        ("prompt", "{query} {candidates}"), "{a}",
    ),
    "Dedup": contract("intents", INTENTS, ["merged"], {"kb"}, "kept in order", ("similarity", 0.5), 2),
    "Truncate": contract("intents", INTENTS, INTENTS, {"mass"}, "kept in order", ("mass", 0.5), 0),
    "ParseConstraints": contract(
        "topics", TOPIC, ["query_0", "constraints"], (), "kept in order", ("names", ("kind",))
    ),
    "RelaxedQueries": contract("topics", TOPIC, TOPIC, {"most"}, "adds", ("most", 1), 0),
    "RelaxConstraints": contract(
        "intents", [*INTENTS, "constraints"], ["delta", "violations"], {"kb"}, "kept in order", ("strict", True)
    ),
    "TagEntities": contract(
        "run", ["qid", "docno", "text"], ["entity_id", "weight", "tagger"], {"tagger"}, "kept in order",
        ("per_query", True),
    ),
    "SortByRank": contract("run", RUN, RANKED, (), "ranked by topic"),
    "Condense": contract("run", RUN, RANKED, {"qrels"}, "ranked by topic"),
    "ConsensusEntities": contract(
        "run", ["qid"], RANKED, {"links", "cutoff"}, "ranked by topic", ("pool_cutoff", 4), 0, **ENTITIES
    ),
    "LocalIDF": contract("entities", RUN, RANKED, {"links"}, "ranked by topic", ("pool_cutoff", 3), 0),
    "PersonalisedPageRank": contract(
        "run", ["qid"], RANKED, {"links"}, "ranked by topic", ("restart", "uniform"), "none", **ENTITIES
    ),
    "EntitySimilarity": contract(
        "run", ["qid"], RANKED, {"links", "embeddings", "query_entities"}, "ranked by topic", ("idf", True), **ENTITIES
    ),
    "OERFilter": contract("entities", RUN, RANKED, {"links"}, "ranked by topic", ("rel", 2), 0),
    "EntitySelector": contract(
        "entities", [*RUN, "query"], [*RANKED, "judgments"], {"links", "rounds", "parameters"}, "ranked by topic",
        ("rounds", 3), 0,
    ),
    "HybridEntities": contract("entities", RUN, RANKED, (), "ranked by topic", ("k", 1), -1, **ENTITIES),
    "EntityReachable": contract("run", RUN, RANKED, {"links", "entities"}, "ranked by topic", ("cutoff", 1), 0),
    "OverlapReranker": contract(
        "run", RUN, RANKED, {"links", "entities", "weight"}, "ranked by topic", ("weight", 0.2), 2
    ),
    "ExpansionReranker": contract("run", [*RUN, "text"], RANKED, {"entities"}, "ranked by topic", ("k1", 0.5), -1),
    "ExpandByEntities": contract(
        "topics", TOPIC, ["query_0", "query"], {"entities"}, "kept in order", ("cutoff", 1), 0
    ),
    "EmbeddingReranker": contract(
        "run", RUN, RANKED, {"links", "embeddings"}, "ranked by topic", ("norm", "z"), "max"
    ),
    "PropagationReranker": contract("run", RUN, RANKED, {"links", "entities"}, "ranked by topic", ("steps", 3), 0),
    "SimilarityPropagationReranker": contract(
        "run", RUN, RANKED, {"links", "entities", "embeddings"}, "ranked by topic", ("steps", 3), 0
    ),
    "RandomEntities": contract("entities", RUN, RANKED, (), "ranked by topic", ("seed", 1), -1),
    "NeuralReranker": contract(
        "run", [*RUN, "query", "text"], [*RANKED, "judgments"], {"links", "entities", "encoder", "training"},
        "ranked by topic", ("model", "duet"), "bert",
    ),
    "NeuralEntityRanker": contract(
        "entities", [*RUN, "query"], [*RANKED, "judgments"], {"links", "layers", "training"}, "ranked by topic",
        ("layers", 1), -1,
    ),
    "LanguageModelEntities": contract(
        "entities", [*RUN, "query"], RANKED, {"ask"}, "ranked by topic", ("cutoff", 2), 0
    ),
}  # fmt: skip
RANKERS = [name for name, each in CONTRACTS.items() if each.rows == "ranked by topic"]
LEARNERS = ("EntitySelector", "NeuralReranker", "NeuralEntityRanker")


def fitted(names):
    """Names of stages as parameters of tests that fit learners: PyTorch alone takes many seconds to import."""
    return [pytest.param(name, marks=[pytest.mark.nightly] * name.startswith("Neural")) for name in names]


def answered(prompt):
    """Reply of a language model to each of the prompts: intents, a number for each candidate, no order."""
    if '"intents"' in prompt:
        return '{"intents": [{"name": "country", "probability": 0.2}, {"name": "athlete", "probability": 0.6}]}'
    if '"probabilities"' in prompt:
        listed = prompt.partition("each:\n")[2].partition("\n\n")[0].splitlines()
        return f'{{"probabilities": {[round(1 / rank, 3) for rank in range(2, len(listed) + 2)]}}}'
    return "2, 1"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    path = tmp_path_factory.mktemp("kb") / "demo.kb"
    return vbterrier.linking.kb_from_file(path, DEMO / "entities.tsv", id_space="demo", progress=False)


@pytest.fixture(scope="module")
def frames(kb):
    """Frames of each kind of the demo, of six topics."""
    topics = vbterrier.read_topics(DEMO / "topics.tsv")[["qid", "query"]].head(6)
    topics["query"] += " kind:planet"
    constrained = vbterrier.intents.ParseConstraints()(topics)
    documents = vbterrier.read_documents(DEMO / "documents.tsv")
    run = vbterrier.read_run(DEMO / "lexical.run").drop(columns="name").merge(topics).merge(documents)
    tags, qrels = vbterrier.read_tags(DEMO / "tags.tsv"), vbterrier.read_qrels(DEMO / "qrels.txt")
    links = vbterrier.entities.link_pool(run, tags, qrels)
    intents = vbterrier.CandidateIntents(vbterrier.linking.DictionaryLinker(kb))(constrained).drop(columns="query_0")
    entities = vbterrier.entities.ConsensusEntities(links, min_documents=1)(topics)
    vectors = {entity: [1.0, float(at)] for at, entity in enumerate(tags["entity_id"].unique())}
    return {
        "topics": topics, "run": run, "intents": intents, "entities": entities, "tags": tags, "qrels": qrels,
        "links": links, "vectors": vectors,
    }  # fmt: skip


@pytest.fixture(scope="module")
def stages(kb, frames):
    linker = vbterrier.linking.DictionaryLinker(kb)
    intents = vbterrier.read_intents(DEMO / "intents.tsv")
    qrels, links, entities, vectors = (frames[name] for name in ("qrels", "links", "entities", "vectors"))
    consensus = vbterrier.entities.ConsensusEntities(links, cutoff=5)
    training = vbterrier.entities.Training(epochs=1)
    with pytest.warns(DegenerateWarning, match="as a diagnostic, not as a system"):
        diagnostic = vbterrier.entities.OERFilter(links)
    made = [
        diagnostic,
        vbterrier.CandidateIntents(linker),
        vbterrier.Calibrate(temperature=2.0),
        vbterrier.Dedup(kb=kb),
        vbterrier.Truncate(mass=0.95),
        vbterrier.intents.GenerateIntents(answered),
        vbterrier.intents.ModelProbabilities(answered),
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
        vbterrier.entities.EntitySelector(links, rounds=2, parameters={"min_data_in_leaf": 1}),
        vbterrier.entities.HybridEntities([consensus, vbterrier.entities.LocalIDF(links)]),
        vbterrier.entities.EntityReachable(links, entities),
        vbterrier.entities.OverlapReranker(links, entities, weight=0.7),
        vbterrier.entities.ExpansionReranker(entities),
        vbterrier.entities.ExpandByEntities(entities),
        vbterrier.entities.EmbeddingReranker(links, consensus, vectors),
        vbterrier.entities.PropagationReranker(links, entities),
        vbterrier.entities.SimilarityPropagationReranker(links, entities, vectors),
        vbterrier.entities.RandomEntities(),
        vbterrier.entities.NeuralReranker(links, entities, encoder=encoder, training=training),
        vbterrier.entities.NeuralEntityRanker(links, layers=0, training=training),
        vbterrier.entities.LanguageModelEntities(answered),
    ]
    return {type(stage).__name__: stage for stage in made}


@pytest.fixture
def inp(name, frames):
    """The input of the stage, with a column that no stage knows."""
    frame = frames[CONTRACTS[name].inp]
    return frame.assign(year=2000 + pd.factorize(frame["qid"])[0])


@pytest.fixture
def stage(name, stages, frames, request):
    """The stage, fitted if it learns."""
    learner = stages[name]
    if name in LEARNERS and learner._learned is None:
        if name == "EntitySelector":
            pytest.importorskip("lightgbm")
        else:
            request.getfixturevalue("neural")
        learner.fit(frames[CONTRACTS[name].inp], frames["qrels"])
    return learner


def in_one_order(frame):
    keys = ["qid", *(["docno"] if "docno" in frame.columns else frame.columns.intersection(["entity_id", "query"]))]
    return frame.sort_values(keys, ignore_index=True)


def test_every_public_stage_is_in_the_table(stages):
    public = [getattr(vbterrier, name) for name in vbterrier.__all__]
    public += [getattr(space, name) for space in public if inspect.ismodule(space) for name in space.__all__]
    kinds = {one.__name__ for one in public if isinstance(one, type) and issubclass(one, pt.Transformer)}
    assert set(stages) == set(CONTRACTS) == kinds
    assert {each.rows for each in CONTRACTS.values()} == set(ROWS)


# Columns


@pytest.mark.parametrize("name", CONTRACTS)
def test_missing_columns_are_reported_with_stage_column_and_remedy(name, stages, inp):
    for column in CONTRACTS[name].needs:
        wrong = inp.drop(columns=[column])
        with pytest.raises(pt.validate.InputValidationError) as caught:
            stages[name](wrong)
        text = str(caught.value)
        assert text.startswith(f"{stages[name]!r}: input without column {column!r}, found "), text
        assert text.rpartition("; ")[2].startswith(("put ", "give ", "merge ", "add ")), text
        # As an error of the package, and through the processes of an experiment.
        assert isinstance(caught.value, InputError)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.modes[0].missing_columns) == (text, caught.value.modes[0].missing_columns)
    with pytest.raises(InputError, match="found no columns"):
        stages[name](pd.DataFrame())


def test_runs_are_refused_where_topics_are_wanted(stages, frames):
    for name in ("CandidateIntents", "GenerateIntents", "ParseConstraints", "RelaxedQueries"):
        with pytest.raises(InputError, match=rf"^{name}\(.*: input with column 'docno', wanted topics; pass run\[\["):
            stages[name](frames["run"])


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_inspection_shows_the_columns_of_results(name, stage, inp):
    needs = list(CONTRACTS[name].needs)
    assert pt.inspect.transformer_inputs(stage)[0] == needs
    assert set(CONTRACTS[name].gives) <= set(pt.inspect.transformer_outputs(stage, needs))
    made = stage(inp)
    assert pt.inspect.transformer_outputs(stage, inp.columns.tolist()) == made.columns.tolist()
    assert len(made) > 1


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_an_empty_frame_gives_an_empty_frame_with_the_columns_of_results(name, stage, inp):
    made, empty = stage(inp), stage(inp.iloc[:0])
    assert len(empty) == 0
    assert empty.columns.tolist() == made.columns.tolist()


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_columns_that_a_stage_does_not_know_are_kept(name, stage, inp):
    made = stage(inp)
    if CONTRACTS[name].keeps_columns:
        assert set(inp.columns) <= {*made.columns, "docno"}
        of_topic = inp.drop_duplicates("qid").set_index("qid")["year"]
        assert made["year"].tolist() == of_topic[made["qid"]].tolist()
    else:
        assert set(made.columns) - {*RANKED, "judgments"} <= {"query"}, "documents became entities"


# Rows


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_the_input_is_not_changed(name, stage, inp):
    before = inp.copy(deep=True)
    stage(inp)
    assert_frame_equal(inp, before)


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_rows_are_kept_in_order_or_ranked(name, stage, inp):
    mixed = inp.sample(frac=1, random_state=3).reset_index(drop=True)
    made, rows = stage(mixed), CONTRACTS[name].rows
    assert_frame_equal(in_one_order(made), in_one_order(stage(inp)), rtol=0, atol=1e-12)
    assert made.index.tolist() == list(range(len(made)))
    if rows == "adds":
        expected = mixed[mixed["qid"].isin(made["qid"])]
        assert made["qid"].drop_duplicates().tolist() == expected["qid"].tolist()
    elif rows == "kept in order":
        key = [column for column in ("qid", "docno", "entity_id") if column in mixed and column in made]
        place = {pair: at for at, pair in enumerate(mixed[key].itertuples(index=False, name=None))}
        places = [place[pair] for pair in made[key].itertuples(index=False, name=None)]
        assert places == sorted(places)
    else:
        assert (made["rank"] == made.groupby("qid").cumcount()).all()
        # Single precision, as in every comparison of scores.
        falls = made["score"].astype("float32").groupby(made["qid"]).diff()
        assert (falls.dropna() <= 0).all()


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_batches_by_topic_give_the_result_of_one_batch(name, stage, inp):
    together = stage(inp)
    batches = pd.concat([stage(rows) for _, rows in inp.groupby("qid")], ignore_index=True)
    assert_frame_equal(in_one_order(batches), in_one_order(together), rtol=0, atol=1e-12)


# Text, copies, parameters


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_text_of_a_stage_is_short_and_without_addresses(name, stages):
    text = repr(stages[name])
    assert text.startswith(f"{name}(")
    assert text.endswith(")")
    assert len(text) < 250
    assert " at 0x" not in text
    assert "\n" not in text


@pytest.mark.parametrize("name", fitted(CONTRACTS))
def test_copies_are_equal_and_give_the_same(name, stage, inp):
    applied = pt.inspect.transformer_apply_attributes(stage)
    assert (applied, hash(applied), repr(applied)) == (stage, hash(stage), repr(stage)) or name in LEARNERS
    again = pickle.loads(pickle.dumps(stage))
    assert (again, hash(again), repr(again)) == (stage, hash(stage), repr(stage))
    assert_frame_equal(again(inp), stage(inp))
    assert stage != object()
    assert stage != vbterrier.Truncate(cutoff=17)


@pytest.mark.parametrize("name", CONTRACTS)
def test_parameters_are_set_as_by_the_constructor(name, stages):
    """``pt.GridSearch`` sets parameters of stages that exist."""
    stage = pickle.loads(pickle.dumps(stages[name]))
    with pytest.raises(ParameterError, match=f"{name} has no parameter 'depth'"):
        stage.set_parameter("depth", 1)
    if CONTRACTS[name].parameter is None:
        assert set(inspect.signature(type(stage)).parameters) <= {"qrels"}
        return
    parameter, value = CONTRACTS[name].parameter
    before, attributes = stage.get_parameter(parameter), vars(stage).copy()
    assert before != value
    if CONTRACTS[name].illegal is not None:
        with pytest.raises(ParameterError):
            stage.set_parameter(parameter, CONTRACTS[name].illegal)
        assert vars(stage).keys() == attributes.keys()
        assert all(vars(stage)[each] is attributes[each] for each in attributes)
    stage.set_parameter(parameter, value)
    expected = pt.inspect.transformer_apply_attributes(stages[name], **{parameter: value})
    assert stage.get_parameter(parameter) == value
    assert stage == expected or name in LEARNERS
    assert repr(stage) == repr(expected)
    assert stage != stages[name]


@pytest.mark.parametrize("name", CONTRACTS)
def test_results_follow_a_parameter_that_is_set(name, stages, inp):
    if name in LEARNERS or CONTRACTS[name].parameter is None or name == "ModelProbabilities":
        return
    parameter, value = CONTRACTS[name].parameter
    stage = pickle.loads(pickle.dumps(stages[name]))
    stage(inp)
    stage.set_parameter(parameter, value)
    expected = pt.inspect.transformer_apply_attributes(stages[name], **{parameter: value})
    assert_frame_equal(stage(inp), expected(inp))


def test_a_model_is_discarded_if_a_parameter_of_its_training_changes(stages, frames):
    pytest.importorskip("lightgbm")
    stage = pickle.loads(pickle.dumps(stages["EntitySelector"])).fit(frames["entities"], frames["qrels"])
    expected = stage(frames["entities"])
    stage.set_parameter("rounds", 2)
    assert_frame_equal(stage(frames["entities"]), expected)
    stage.set_parameter("rounds", 3)
    with pytest.raises(InputError, match="EntitySelector is not fitted"):
        stage(frames["entities"])


def test_a_grid_finds_the_best_parameter(stages, frames):
    stage = pickle.loads(pickle.dumps(stages["OverlapReranker"]))
    topics, run = frames["topics"], frames["run"].drop(columns=["query", "text"])
    pipeline = pt.Transformer.from_df(run) >> stage
    grid = {stage: {"weight": [0.0, 0.5, 1.0]}}
    best, value, _ = pt.GridSearch(
        pipeline, grid, topics, frames["qrels"], "ndcg_cut_10", verbose=False, return_type="both"
    )
    values = {}
    for weight in (0.0, 0.5, 1.0):
        reranker = pt.inspect.transformer_apply_attributes(stages["OverlapReranker"], weight=weight)
        values[weight] = pt.Evaluate(reranker(run), frames["qrels"], ["ndcg_cut_10"])["ndcg_cut_10"]
    assert len(set(values.values())) > 1
    assert best[1].weight == max(values, key=values.get)
    assert value == pytest.approx(max(values.values()))


# Operators


@pytest.mark.parametrize("name", fitted(RANKERS))
def test_rankers_compose_with_the_operators_of_pyterrier(name, stage, frames):
    frame = frames[CONTRACTS[name].inp]
    source, topics = pt.Transformer.from_df(frame), frame[["qid"]].drop_duplicates()
    whole = in_one_order(stage(frame))
    assert_frame_equal(in_one_order((source >> stage)(topics)), whole)
    cut = in_one_order((source >> stage % 1)(topics))
    assert cut["docno"].tolist() == whole.loc[whole["rank"] == 0, "docno"].tolist()
    kept = pt.Transformer.from_df(whole[[column for column in frame.columns if column in whole.columns]])
    with warnings.catch_warnings():
        # The stage may leave out documents of the other part.
        warnings.filterwarnings("ignore", "Got number of results different", UserWarning)
        features = (kept >> (stage ** pt.apply.doc_score(lambda _: 7.0)))(topics)
    assert features["docno"].isin(whole["docno"]).all()
    assert {each[1] for each in features["features"]} == {7.0}


@pytest.mark.parametrize("name", fitted(RANKERS))
def test_rankers_have_the_values_of_their_results_in_an_experiment(name, stage, frames):
    frame, topics = frames[CONTRACTS[name].inp], frames["topics"]
    made = stage(frame)
    labels = made[["qid", "docno"]].assign(label=(made["rank"] % 2).astype(int))
    pipeline = pt.Transformer.from_df(frame.drop(columns="query")) >> stage
    measures = [vbterrier.measures_from("nDCG@10")[0]]
    table = pt.Experiment([pipeline, made], topics, labels, measures, names=["stage", "results"], batch_size=2)
    assert table["nDCG@10"][0] == pytest.approx(table["nDCG@10"][1])


# Drawings


@pytest.fixture
def offline(monkeypatch):
    """PyTerrier looks addresses up for stages of its own; for ours it must not."""

    def address(stage):
        assert not type(stage).__module__.startswith("vbterrier")

    monkeypatch.setattr(pt.documentation, "url_for_class", address)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", CONTRACTS)
def test_a_drawing_shows_columns_and_settings(name, stages):
    drawn = pt.schematic.transformer_schematic(stages[name])
    assert drawn["label"] == (name if len(name) <= 20 else f"{name[:19]}…")
    assert drawn["name"].endswith(f".{name}")
    assert "input_validation_error" not in drawn
    assert set(CONTRACTS[name].gives) <= set(drawn["output_columns"])
    assert set(drawn["settings"]) == CONTRACTS[name].settings
    assert all(len(text) < 100 and "\n" not in text for text in drawn["settings"].values()), drawn["settings"]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", CONTRACTS)
def test_every_stage_passes_the_test_case_of_pyterrier(name, stages, monkeypatch):
    monkeypatch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")
    case = pt.testing.transformer_test_class(lambda: stages[name])
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun == 2
    assert not result.failures + result.errors, "".join(text for _, text in result.failures + result.errors)


@pytest.mark.usefixtures("offline")
def test_rankers_inside_a_stage_are_drawn_beside_it(stages):
    drawn = pt.schematic.transformer_schematic(stages["HybridEntities"])
    assert drawn["inner_pipelines_labels"] == ["rankers[0]", "rankers[1]"]
    assert "entities" in pt.inspect.subtransformers(stages["EmbeddingReranker"])


@pytest.mark.usefixtures("offline")
def test_a_pipeline_is_drawn_with_the_columns_between_its_stages(stages):
    pipeline = stages["CandidateIntents"] >> stages["Dedup"] >> stages["Truncate"]
    drawn = pt.schematic.transformer_schematic(pipeline)
    assert [one["label"] for one in drawn["transformers"]] == ["CandidateIntents", "Dedup", "Truncate"]
    assert "merged" in drawn["output_columns"]
    assert "error" not in str(drawn)
    page = pipeline._repr_html_()
    assert all(one["label"] in page for one in drawn["transformers"])


@pytest.mark.usefixtures("offline")
def test_odd_settings_are_not_markup():
    def odd(text):
        raise AssertionError(text)

    odd.__qualname__ = "<script>alert(1)</script>"
    page = pt.schematic.draw(vbterrier.TagEntities(odd))
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
