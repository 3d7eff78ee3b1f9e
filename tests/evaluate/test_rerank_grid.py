"""Grids of rerankers on one linked pool: equal to single runs, in parallel, and after interruptions."""

import json
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.entities.pool import link_pool
from vbterrier.entities.rerank import RERANKER_FAMILIES
from vbterrier.entities.rerank.embedding import EmbeddingReranker
from vbterrier.entities.rerank.expansion import ExpansionReranker
from vbterrier.entities.rerank.overlap import OverlapReranker, PropagationReranker
from vbterrier.errors import DegenerateWarning, FileError
from vbterrier.evaluate import reranking
from vbterrier.evaluate.grids import GridOptions
from vbterrier.evaluate.reranking import rerank_grid
from vbterrier.settings import Data, Execution
from vbterrier.unjudged import fit

MEASURES = ["AP", "nDCG@5", "BNDCG@5"]
GRID = {
    "overlap": [
        {"cutoff": [1, 3], "weight": [0.2, 0.5, 0.8], "entity_weight": ["uniform", "rank"]},
        {"cutoff": 2, "confidence": True, "norm": "z"},
    ],
    "propagation": {"damping": (0.3, 0.9), "steps": range(1, 3)},
    "embedding": {"weight": [0.4], "cutoff": np.array([2, 4])},
    "expansion": {"cutoff": [2], "n_terms": [None, 1]},
}


class World:
    def __init__(self, seed=0, *, n_topics=4, n_docs=9):
        rng = np.random.default_rng(seed)
        names = [f"e{e}" for e in range(6)]
        pairs = pd.DataFrame({"qid": [f"q{q}" for q in range(n_topics) for _ in range(n_docs)]})
        pairs["docno"] = [f"d{qid[1:]}-{d % n_docs}" for d, qid in enumerate(pairs["qid"])]
        bodies = [" ".join(rng.choice(names, 4)) for _ in range(len(pairs))]
        self.pool = pairs.assign(score=rng.random(len(pairs)), text=bodies)
        self.qrels = pairs.assign(label=rng.choice([0, 1, 2], len(pairs), p=[0.5, 0.4, 0.1]))
        self.tags = pd.DataFrame(
            [(d, e, rng.random()) for d in pairs["docno"] for e in names if rng.random() < 0.4],
            columns=["docno", "entity_id", "weight"],
        )
        self.runs = {}
        for name in ("one", "other"):
            listed = [(f"q{q}", e, float(-r)) for q in range(n_topics) for r, e in enumerate(rng.permutation(names))]
            self.runs[name] = pd.DataFrame(listed, columns=["qid", "docno", "score"])
        self.vectors = {name: rng.normal(size=3) for name in names}

    def evaluate(self, grid=None, *, n_jobs=1, resume=None, embeddings=None, texts=None, **arguments):
        arguments = {
            "links": self.tags, "pool": self.pool, "entity_runs": self.runs, "grid": GRID if grid is None else grid,
            "measures": MEASURES, "qrels": self.qrels
        } | arguments  # fmt: skip
        options = GridOptions(embeddings=self.vectors if embeddings is None else embeddings, texts=texts)
        execution = Execution(n_jobs=n_jobs, resume=resume, progress=False)
        with warnings.catch_warnings():
            # Few documents share evidence.
            warnings.filterwarnings("ignore", ".* places are tied", DegenerateWarning)
            return rerank_grid(options=options, execution=execution, **arguments).runs


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def expected(world):
    return world.evaluate()


def one_by_one(world):
    """The stages of the grid, built by hand."""
    for name, run in world.runs.items():
        for k, weight, evidence in product((1, 3), (0.2, 0.5, 0.8), ("uniform", "rank")):
            yield name, OverlapReranker(world.tags, run, cutoff=k, weight=weight, entity_weight=evidence)
        yield name, OverlapReranker(world.tags, run, cutoff=2, confidence=True, norm="z")
        for damping, steps in product((0.3, 0.9), (1, 2)):
            yield name, PropagationReranker(world.tags, run, damping=damping, steps=steps)
        for k in (2, 4):
            yield name, EmbeddingReranker(world.tags, run, world.vectors, weight=0.4, cutoff=k)
        for n_terms in (None, 1):
            yield name, ExpansionReranker(run, cutoff=2, n_terms=n_terms)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* places are tied:vbterrier.errors.DegenerateWarning")
def test_grid_is_the_stages_scored_one_by_one(world, expected):
    stages = list(one_by_one(world))
    assert len(expected) == (1 + len(stages)) * len(MEASURES)
    table = expected.set_index(["configuration", "measure"])
    assert table.index.is_unique
    plain = vbterrier.score({"pool": world.pool}, world.qrels, MEASURES)
    for name, stage in stages:
        family = next(key for key, made in RERANKER_FAMILIES.items() if type(stage) is made)
        rows = expected[(expected["family"] == family) & (expected["entities"] == name)]
        parameters = [key for key in vars(stage) if key in expected.columns and key != "entities"]
        for key in parameters:
            value = getattr(stage, key)
            rows = rows[rows[key].isna() if value is None else rows[key] == value]
        assert rows["measure"].tolist() == MEASURES
        scored = vbterrier.score({"s": stage.transform(world.pool)}, world.qrels, MEASURES)
        means = scored.means().loc["s", rows["measure"]].to_numpy()
        np.testing.assert_allclose(rows["value"], means, rtol=0, atol=1e-12)
        np.testing.assert_allclose(rows["gain"], means - plain.means().loc["pool", rows["measure"]], atol=1e-12)
    assert (expected["low"] <= expected["gain"] + 1e-12).all()
    assert (expected["n_qids"] == 4).all()
    head = expected.head(len(MEASURES))
    assert head["configuration"].tolist() == ["pool"] * 3
    assert head[["gain", "low", "high"]].eq(0).all(axis=None)
    np.testing.assert_allclose(head["value"], plain.means().loc["pool", MEASURES], atol=1e-12)


@pytest.mark.slow
def test_two_processes_say_the_same_to_the_bit(world, expected):
    grid = {family: values for family, values in GRID.items() if family != "overlap"}
    result = world.evaluate(grid, n_jobs=2)
    assert len(result) == (1 + 2 * 8) * len(MEASURES)
    same = expected[expected["configuration"].isin(result["configuration"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(result, same[result.columns], check_exact=True)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_models_of_unjudged_documents_are_those_of_score(world, n_jobs, tmp_path):
    thin = world.qrels.sample(frac=0.6, random_state=1)
    model = fit({"pool": world.pool, "other": world.pool.assign(score=-world.pool["score"])}, thin).register("grid")
    measures, grid = ["ENDCG(model='grid')@5", "EP@5"], {"overlap": {"weight": [0.2, 0.8], "cutoff": 3}}
    arguments = {"grid": grid, "entity_runs": {"one": world.runs["one"]}, "measures": measures, "qrels": thin}
    result = world.evaluate(**arguments, n_jobs=n_jobs, resume=tmp_path / "grid.jsonl")
    runs = {"pool": world.pool}
    for weight in (0.2, 0.8):
        runs[f"weight {weight}"] = OverlapReranker(world.tags, world.runs["one"], cutoff=3, weight=weight)(world.pool)
    named = vbterrier.score(runs, thin, measures[:1]).means()[measures[0]]
    # Without a name, the model is that of the pool, which has the documents of all rerankings.
    unnamed = vbterrier.score(
        runs, thin, ["EP@5"], data=Data(model=fit({"pool": world.pool}, thin, cutoff=5, pool_cutoff=9))
    ).means()["EP@5"]
    values = result.pivot(index="configuration", columns="measure", values="value").loc[
        result["configuration"].unique()
    ]
    assert values[measures[0]].tolist() == pytest.approx(named.tolist(), abs=1e-12)
    assert values["EP@5"].tolist() == pytest.approx(unnamed.tolist(), abs=1e-12)
    assert values.nunique().tolist() == [3, 3]
    # Another model of the same name does not continue the results of the first.
    assert fit({"pool": world.pool}, thin).register("grid").digest != model.digest
    with pytest.raises(FileError, match="other inputs"):
        world.evaluate(**arguments, resume=tmp_path / "grid.jsonl")


@pytest.mark.nightly
def test_links_and_order_of_rows_change_nothing(world, expected):
    pool = link_pool(world.pool, world.tags)
    pd.testing.assert_frame_equal(world.evaluate(links=pool), expected)
    pd.testing.assert_frame_equal(world.evaluate(links=pool.to_frame()), expected)
    mixed = world.evaluate(
        pool=world.pool.sample(frac=1, random_state=1),
        links=world.tags.sample(frac=1, random_state=2),
        entity_runs={name: run.sample(frac=1, random_state=3) for name, run in world.runs.items()},
    )
    pd.testing.assert_frame_equal(mixed, expected, rtol=0, atol=1e-12)


class KilledError(Exception):
    pass


def dying(monkeypatch, after):
    """Interrupt the evaluation after some configurations; count the evaluated ones."""
    values, n = reranking.RerankContext.values, []

    def counted(self, configuration):
        if len(n) == after:
            raise KilledError
        n.append(str(configuration))
        return values(self, configuration)

    monkeypatch.setattr(reranking.RerankContext, "values", counted)
    return n


def test_killed_in_the_middle_it_goes_on_and_counts_nothing_twice(world, expected, tmp_path, monkeypatch):
    path = tmp_path / "grid.jsonl"
    with monkeypatch.context() as patch:
        first = dying(patch, 7)
        with pytest.raises(KilledError):
            world.evaluate(resume=path)
    lines = path.read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines[1:]] == first
    # Interrupted while writing.
    path.write_text("\n".join([*lines, lines[-1][:30]]))
    with monkeypatch.context() as patch:
        second = dying(patch, 10_000)
        result = world.evaluate(resume=path)
    assert len(first) == 7
    assert not set(first) & set(second)
    assert len(first) + len(second) == len(expected) // len(MEASURES) == len(path.read_text().splitlines()) - 1
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    # The third call evaluates nothing.
    dying(monkeypatch, 0)
    pd.testing.assert_frame_equal(world.evaluate(resume=path), expected, check_exact=True)


def test_grid_may_grow_on_the_same_file(world, expected, tmp_path, monkeypatch):
    path = tmp_path / "grid.jsonl"
    path.touch()
    world.evaluate({"overlap": {"cutoff": 1, "weight": [0.2, 0.5]}}, resume=path)
    grids = dying(monkeypatch, 10_000)
    larger = {"overlap": {"cutoff": [1, 3], "weight": [0.2, 0.5]}, "embedding": {}}
    grown = world.evaluate(larger, resume=path)
    assert len(grids) == 6
    pd.testing.assert_frame_equal(grown, world.evaluate(larger), check_exact=True)


def test_file_of_other_inputs_is_refused(world, tmp_path):
    path = tmp_path / "grid.jsonl"
    small = {"overlap": {"cutoff": 1}, "embedding": {}, "expansion": {}}
    world.evaluate(small, resume=path)
    before = path.read_bytes()
    for name, changed in (
        ("pool", world.pool.assign(score=world.pool["score"] + 1)),
        ("pool", world.pool.assign(text=world.pool["text"] + " more")),
        ("links", world.tags.iloc[1:]),
        ("qrels", world.qrels.assign(label=world.qrels["label"].iloc[::-1].to_numpy())),
        ("entity_runs", {"one": world.runs["other"], "other": world.runs["one"]}),
        ("measures", ["AP"]),
        ("embeddings", world.vectors | {"e0": np.ones(3)}),
        ("texts", {"e0": "another name"}),
    ):
        with pytest.raises(FileError, match="holds results of other inputs"):
            world.evaluate(small, resume=path, **{name: changed})
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    "result",
    [
        5,
        {"values": {}, "ranking": "x", "warnings": []},
        {"values": {"AP": {"q0": "high"}}, "ranking": "x", "warnings": []},
        {"values": {"AP": [0.5]}, "ranking": "x", "warnings": []},
        {"values": {"AP": {"q0": 0.5}}, "ranking": "x", "warnings": 1},
        {"values": {"AP": {"q0": 0.5}}, "warnings": []},
        {"values": {"AP": {"q0": 0.5}}, "ranking": "x"},
    ],
)
def test_results_that_are_none_are_refused(world, tmp_path, result):
    path = tmp_path / "grid.jsonl"
    world.evaluate({"overlap": {}}, measures=["AP"], resume=path)
    head = path.read_text().splitlines()[0]
    path.write_text(head + "\n" + json.dumps({"name": "pool", "result": result}) + "\n")
    with pytest.raises(FileError, match=r"grid\.jsonl: has no valid values of 'pool'; remove its line"):
        world.evaluate({"overlap": {}}, measures=["AP"], resume=path)


def test_repeated_configurations_count_once(world):
    result = world.evaluate({"overlap": [{"cutoff": [5, 5]}, {"cutoff": 5, "weight": 0.5}]}, measures=["AP"])
    message = (
        "overlap(cutoff=5, weight=0.5, entity_weight='uniform', link_weight='uniform', confidence=False, norm='minmax')"
    )
    assert result["configuration"].tolist() == ["pool", f"{message} on one", f"{message} on other"]


def test_a_list_of_grids_is_the_union_of_their_configurations(world):
    grids = [{"overlap": {"weight": [0.2, 0.8]}}, {"overlap": {"weight": 0.8}, "propagation": {"damping": 0.5}}]
    result = world.evaluate(grids, measures=["AP"])
    expected = world.evaluate({"overlap": {"weight": [0.2, 0.8]}, "propagation": {"damping": 0.5}}, measures=["AP"])
    pd.testing.assert_frame_equal(result, expected)


def test_topics_without_judgments_are_left_out(world):
    with pytest.warns(DegenerateWarning, match="1 topic is not in qrels and is left out"):
        result = world.evaluate({"overlap": {}}, qrels=world.qrels[world.qrels["qid"] != "q0"])
    expected = World()
    expected.pool, expected.qrels = (frame[frame["qid"] != "q0"] for frame in (world.pool, world.qrels))
    pd.testing.assert_frame_equal(result, expected.evaluate({"overlap": {}}))


def test_what_configurations_warn_of_is_said_once(world, tmp_path):
    data = {"links": world.tags, "entity_runs": {"one": world.runs["one"]}}
    data["grid"] = {"overlap": {"weight": 1.0, "cutoff": [1, 2]}}
    for _ in range(2):
        # Warnings are stored with the results.
        with pytest.warns(DegenerateWarning, match=r"2 of 3 configurations warn; the first warning: run .*tied"):
            rerank_grid(
                world.pool,
                world.qrels,
                ["BNDCG@5"],
                **data,
                execution=Execution(resume=tmp_path / "grid.jsonl", progress=False),
            )


@pytest.mark.slow
def test_the_default_grid_has_437_configurations_beside_the_pool(world):
    assert sum(len(list(reranking.parameter_combinations(grid))) for grid in reranking.RERANK_GRID.values()) == 437
    resources = {**dict.fromkeys(reranking.RESOURCES), "embeddings": {}}
    assert len(reranking.configurations(reranking.RERANK_GRID, ["one"], resources)) == 438
    runs = {"one": world.runs["one"].assign(score=world.runs["one"]["score"] + 9)}
    with pytest.warns(DegenerateWarning, match="176 of 437 configurations are omitted.*'embedding' needs embeddings"):
        grid = rerank_grid(
            world.pool.drop(columns="text"),
            world.qrels,
            links=world.tags,
            entity_runs=runs,
            execution=Execution(progress=False),
        )
    assert grid.omitted == ("expansion", "embedding", "similarity")
    families = grid.runs.drop_duplicates("configuration")["family"].value_counts().to_dict()
    assert families == {"overlap": 181, "propagation": 80, "pool": 1}


def test_values_of_topics_and_configurations_with_the_same_rankings(world):
    grid = {"overlap": {"weight": [0.0, 0.1, 0.9], "cutoff": [6, 50]}}
    result = rerank_grid(
        world.pool,
        world.qrels,
        ["AP"],
        links=world.tags,
        entity_runs=world.runs,
        grid=grid,
        execution=Execution(progress=False),
    )
    table = result.runs.set_index("configuration")
    means = result.values.groupby("name", sort=False)["value"].mean()
    pd.testing.assert_series_equal(means, table["value"].loc[means.index], check_names=False)
    assert result.values["qid"].nunique() == 4
    # Without evidence the pool remains, and the lists have six entities.
    same = table["duplicate_of"].dropna()
    assert (same[table["weight"] == 0] == "pool").all()
    assert (table["weight"] == 0).sum() == 4
    large = table[table["cutoff"] == 50]
    assert large["duplicate_of"].notna().all()
    rankings = {}
    for name, run in world.runs.items():
        for weight, cutoff in product((0.0, 0.1, 0.9), (6, 50)):
            made = OverlapReranker(world.tags, run, weight=weight, cutoff=cutoff).transform(world.pool)
            rankings[tuple(made.sort_values(["qid", "rank"])["docno"])] = name
    assert result.n_distinct == len(rankings)
    assert repr(result) == f"RerankGrid(13 configurations, {len(rankings)} with different rankings; AP)"


def test_entity_runs_of_other_ids_are_reported(world):
    other = {"one": world.runs["one"].assign(docno="Q" + world.runs["one"]["docno"])}
    with pytest.warns(DegenerateWarning, match="run 'one': no document of the links mentions any of its 24 entities"):
        world.evaluate({"overlap": {}}, entity_runs=other)
