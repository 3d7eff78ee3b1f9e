"""Grids of entity rankers, compared with single calls."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from planted import planted_collection
from sklearn.model_selection import KFold

from vbterrier.entities import NeuralEntityRanker, Training, closed_entities, judge_entities
from vbterrier.entities.cross_validation import cross_validated
from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities, LocalIDF, RandomEntities
from vbterrier.entities.rankers.hybrid import HybridEntities
from vbterrier.entities.rankers.selector import EntitySelector
from vbterrier.entities.rankers.similarity import EntitySimilarity
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.evaluate.entity_grids import ENTITY_GRID, entity_grid
from vbterrier.evaluate.grids import GridOptions, parameter_combinations
from vbterrier.evaluate.scores import score
from vbterrier.settings import Data, Execution, Inference
from vbterrier.stats.frontier import pareto_frontier

QUIET = Execution(progress=False)

MEASURES = ["RelCov@5", "NonRelCov@5"]


def embed(texts):
    """Vectors of texts by their letters."""
    return [[1.0, *(text.count(letter) for letter in "abcdeiost-0123456789")] for text in texts]


@pytest.fixture(scope="module")
def world():
    made = planted_collection(n_topics=6, n_documents=40, n_relevant=8)
    links = link_pool(made.pool, made.tags, made.qrels)
    query_entities = made.runs["topical"].groupby("qid").head(1).rename(columns={"docno": "entity_id"})
    ids = sorted({*made.tags["entity_id"], *query_entities["entity_id"]})
    rng = np.random.default_rng(1)
    resources = GridOptions(
        embeddings=dict(zip(ids, rng.normal(size=(len(ids), 8)), strict=True)),
        query_entities=query_entities[["qid", "entity_id"]],
        embed=embed,
    )
    return links, made.topics.assign(query=[f"query {qid}" for qid in made.topics["qid"]]), resources


def grid_of(world, grid=None, *, execution=QUIET, **options):
    links, topics, resources = world
    options = {"options": resources, **options}
    return entity_grid(links, topics, MEASURES, grid=grid, cutoff=5, execution=execution, **options)


def test_a_configuration_is_its_ranker_scored_alone(world):
    links, topics, resources = world
    vectors = {"embeddings": resources.embeddings, "query_entities": resources.query_entities}
    rankers = {
        "consensus(support='rank', min_documents=3)": ConsensusEntities(links, min_documents=3),
        "vectors(idf=True, support='rho')": EntitySimilarity(links, **vectors, idf=True, support="rho"),
        "texts(pool_cutoff=10)": EntitySimilarity(links, embed=embed, pool_cutoff=10),
        "hybrid(rankers=('consensus', 'texts'), fusion=('linear', None), weight=0.25)": HybridEntities(
            [ConsensusEntities(links), EntitySimilarity(links, embed=embed)], weights=[0.25, 0.75], fusion="linear"
        ),
    }
    grid = {
        "consensus": {"support": "rank", "min_documents": 3},
        "vectors": {"idf": True, "support": "rho"},
        "texts": {"pool_cutoff": 10},
        "hybrid": {"rankers": [("consensus", "texts")], "fusion": [("linear", None)], "weight": 0.25},
    }
    result = grid_of(world, grid, inference=Inference(seed=3, n_resamples=200))
    runs = {name: ranker(topics).query("rank < 5") for name, ranker in rankers.items()}
    how = Inference(seed=3, n_resamples=200)
    expected = score(runs, links.to_frame(), MEASURES, data=Data(on_topics="all"), inference=how)
    rows = result.runs.set_index(["configuration", "measure"])[["value", "low", "high", "n_qids"]]
    alone = expected.intervals.set_index(["name", "measure"])[["value", "low", "high", "n_qids"]]
    pd.testing.assert_frame_equal(rows, alone.loc[rows.index], check_names=False)


def test_factors_of_similarity_multiply_shifted_cosines(world):
    links, topics, resources = world
    vectors = {"embeddings": resources.embeddings, "query_entities": resources.query_entities}
    factors = [{}, {"idf": True, "support": "rank"}]
    stages = [
        *(EntitySimilarity(links, **vectors, **more) for more in factors),
        ConsensusEntities(links, min_documents=1),
    ]
    plain, both, consensus = (stage(topics).set_index(["qid", "docno"])["score"] for stage in stages)
    expected = (1 + plain) / 2 * consensus.loc[plain.index]
    pd.testing.assert_series_equal(both.loc[plain.index], expected)


@pytest.mark.nightly
def test_the_default_grid_has_187_configurations(world):
    assert sum(len(list(parameter_combinations(grid))) for grid in ENTITY_GRID.values()) == 187
    links, topics, _ = world
    with pytest.warns(DegenerateWarning, match=r"109 of 187 configurations .*'texts' needs embed; 'vectors' needs"):
        grid = entity_grid(links, topics, measures=MEASURES, cutoff=5, execution=QUIET)
    assert grid.omitted == ("texts", "vectors")
    counts = grid.runs.drop_duplicates("configuration")["family"].value_counts().to_dict()
    assert counts == {"consensus": 36, "pagerank": 32, "hybrid": 9, "chance": 1}


def test_the_frontier_is_over_topics_with_all_values(world):
    result = grid_of(world, {"consensus": {"support": ["rank", "rho"]}, "chance": {"seed": [0, 1, 2]}})
    assert result.n_distinct == 5
    with pytest.warns(DegenerateWarning, match="5 runs: too few"):
        frontier = result.frontier()
    with pytest.warns(DegenerateWarning, match="5 runs: too few"):
        expected = pareto_frontier(result.values, maximised=MEASURES[0], minimised=MEASURES[1])
    pd.testing.assert_frame_equal(frontier.runs, expected.runs)
    drawn = result.plot()
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == (MEASURES[1], MEASURES[0])


def test_configurations_with_the_same_rankings_count_once(world):
    """Links without confidences: the support rho+rank is rank, and rho is the number of documents."""
    links, topics, _ = world
    without = links.to_frame().assign(weight=1.0)
    support = ["rank", "rho", "rho+rank"]
    grid = entity_grid(
        without,
        topics,
        grid={"consensus": {"support": support}, "chance": {"seed": 0}},
        execution=QUIET,
    )
    table = grid.runs[grid.runs["measure"] == "RelCov@20"].set_index("configuration")["duplicate_of"]
    assert table.dropna().to_dict() == {"consensus(support='rho+rank')": "consensus(support='rank')"}
    assert (grid.n_distinct, repr(grid)) == (
        3, "EntityGrid(4 entity runs, 3 with different rankings; RelCov@20, NonRelCov@20)"
    )  # fmt: skip
    with pytest.warns(DegenerateWarning, match="3 runs: the correlation is undefined"):
        frontier = grid.frontier()
    assert frontier.correlation["n_runs"].tolist() == [3, 3]
    assert "consensus(support='rho+rank')" not in frontier.runs["name"].tolist()
    # Another order of the same entities is another ranking.
    both = entity_grid(without, topics, grid={"consensus": {"support": support[:2]}}, execution=QUIET)
    assert both.n_distinct == 2


def test_supervised_runs_join_the_grid(world):
    pytest.importorskip("lightgbm")
    links, topics, _ = world
    selector = EntitySelector(links, rounds=3, parameters={"min_data_in_leaf": 2})
    pipeline = ConsensusEntities(links, min_documents=1) >> selector
    frame = links.to_frame()
    qrels = frame[["qid", "docno", "label"]].drop_duplicates()
    runs = {
        "trained": pipeline,
        "idf": ConsensusEntities(links) >> LocalIDF(links),
        "frame": RandomEntities(seed=9)(ConsensusEntities(links, min_documents=1)(topics)),
    }
    result = grid_of(
        world, {"chance": {"seed": [0, 9]}}, runs=runs, options=replace(world[2], qrels=qrels, folds=KFold(3))
    )
    assert result.runs.drop_duplicates("configuration")["family"].tolist() == ["chance"] * 2 + ["given"] * 3
    crossed = cross_validated(pipeline, topics, qrels, folds=KFold(3))
    expected = (
        score({"trained": crossed[crossed["rank"] < 5]}, frame, MEASURES, data=Data(on_topics="all"))
        .means()
        .loc["trained"]
    )
    values = result.runs[result.runs["configuration"] == "trained"].set_index("measure")["value"]
    assert values.to_dict() == pytest.approx(expected.to_dict())
    # A given run that is a configuration of the grid counts once.
    assert result.runs.set_index("configuration").loc["frame", "duplicate_of"].unique().tolist() == ["chance(seed=9)"]
    with pytest.warns(DegenerateWarning, match="4 runs: too few"):
        assert set(result.frontier().runs["name"]) == {"chance(seed=0)", "chance(seed=9)", "trained", "idf"}
    only = grid_of(world, {}, runs={"idf": runs["idf"]})
    assert only.runs["configuration"].tolist() == ["idf", "idf"]
    with pytest.raises(InputError, match="'trained' contains an estimator, which is cross-validated; give qrels="):
        grid_of(world, {}, runs=runs)
    with pytest.raises(ParameterError, match="is the name of a configuration"):
        grid_of(world, {"chance": {"seed": 0}}, runs={"chance(seed=0)": runs["frame"]})


@pytest.mark.slow
def test_six_supervised_runs_join_in_one_call(world, neural):
    pytest.importorskip("lightgbm")
    links, topics, _ = world
    qrels = links.to_frame()[["qid", "docno", "label"]].drop_duplicates()
    first = ConsensusEntities(links, min_documents=1)
    rules = {"one": lambda prompt: str(sum(map(ord, prompt)) % 3), "two": lambda _: "2", "three": lambda _: "0"}
    labels = judge_entities(first(topics), rules)
    with pytest.warns(DegenerateWarning, match="as a diagnostic only"):
        closed = closed_entities(links, ConsensusEntities(links, min_documents=1)(topics))
    small = {"rounds": 3, "parameters": {"min_data_in_leaf": 2}}
    cer = first >> NeuralEntityRanker(links, None, labels, layers=0, training=Training(epochs=1))
    runs = {
        "BERT, closed": pt.Transformer.from_df(closed)
        >> NeuralEntityRanker(links, layers=0, training=Training(epochs=1)),
        "BERT": first >> NeuralEntityRanker(links, layers=0, training=Training(epochs=1)),
        "CER": cer,
        "CER + IDF": cer >> LocalIDF(links),
        "LGBM": first >> EntitySelector(links, **small),
        "LGBM, CER": first >> EntitySelector(links, supervision=labels, **small),
    }
    folds = KFold(3)
    idf = cross_validated(runs["CER + IDF"], topics, qrels=qrels, folds=folds).query("rank < 5")
    judged = replace(world[2], qrels=qrels, folds=folds)
    with pytest.warns(DegenerateWarning, match="depend on judgments of the same topics"):
        result = grid_of(world, {"chance": {"seed": 0}}, runs={**runs, "again": idf}, options=judged)
    rows = result.runs.drop_duplicates("configuration").set_index("configuration")
    assert rows.index.tolist() == ["chance(seed=0)", *runs, "again"]
    # The six are different, and the same run under another name counts once.
    assert rows["duplicate_of"].dropna().to_dict() == {"again": "CER + IDF"}
    assert result.n_distinct == 7
    expected = score({"idf": idf}, links.to_frame(), MEASURES, data=Data(on_topics="all")).means().loc["idf"]
    values = result.runs[result.runs["configuration"] == "CER + IDF"].set_index("measure")["value"]
    assert values.to_dict() == pytest.approx(expected.to_dict())
    unjudged = qrels.assign(label=0)
    with pytest.raises(InputError, match="run 'BERT': fold 0 of 3: none of 2 topics has relevant and non-relevant"):
        grid_of(
            world, {}, runs={"CER": cer, "BERT": runs["BERT"]}, options=replace(world[2], qrels=unjudged, folds=folds)
        )


@pytest.mark.slow
def test_every_text_is_embedded_once_by_a_function_that_workers_cannot_import(world):
    links, topics, _ = world
    grid = {
        "texts": {"pool_cutoff": [10, None]},
        "hybrid": {"rankers": [("consensus", "texts")], "fusion": [("rrf", 60)], "weight": 0.5},
    }
    calls = []

    def counted(texts):
        calls.append(list(texts))
        return embed(texts)

    once = grid_of(world, grid, options=replace(world[2], embed=counted), execution=replace(QUIET, n_jobs=2))
    # The first call is the fingerprint of the function; names of entities are parts of their ids.
    queries, texts = calls
    assert queries == topics["query"].tolist()
    assert len(texts) == len(set(texts)) == len(links.entities) + len(topics)
    pd.testing.assert_frame_equal(once.values, grid_of(world, grid).values)


@pytest.mark.slow
def test_results_resume_and_do_not_depend_on_processes(world, tmp_path):
    grid = {"consensus": {"min_documents": [1, 2]}, "chance": {"seed": 4}}
    path = tmp_path / "grid"
    grid_of(world, {"consensus": {"min_documents": 1}}, execution=replace(QUIET, resume=path))
    first = path.read_text()
    whole = grid_of(world, grid, execution=replace(QUIET, resume=path))
    assert path.read_text().startswith(first)
    assert len(path.read_text().splitlines()) == len(first.splitlines()) + 2
    pd.testing.assert_frame_equal(whole.values, grid_of(world, grid, execution=replace(QUIET, n_jobs=2)).values)
    with pytest.raises(FileError, match="other inputs"):
        grid_of((world[0], world[1].assign(query="x"), world[2]), grid, execution=replace(QUIET, resume=path))


HYBRID = {"rankers": [("consensus", "pagerank")], "fusion": [("rrf", 60)], "weight": 0.5}


def test_bad_topics_measures_and_links_are_refused(world, tmp_path):
    links, topics, _ = world
    grid, tags = {"consensus": {"min_documents": 1}}, pd.DataFrame({"docno": ["d"], "entity_id": ["e"]})
    options = {"cutoff": 5, "execution": replace(QUIET, resume=tmp_path / "grid")}
    entity_grid(links, topics[["qid"]], MEASURES, grid=grid, **options)
    more = pd.concat([topics[["qid"]], pd.DataFrame({"qid": ["another"]})])
    for configurations, queries, measures, error, message in (
        (links, more, MEASURES, FileError, "other inputs"),
        (links, topics.head(3), MEASURES, InputError, "topics: 3 topics of the links are missing"),
        (links, topics, ["AP"], ParameterError, "wanted measures of entity runs, as 'RelCov@20'"),
        (tags, topics, MEASURES, InputError, "links are tags without a pool"),
    ):
        with pytest.raises(error, match=message):
            entity_grid(configurations, queries, measures, grid=grid, **options)
