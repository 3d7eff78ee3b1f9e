"""Linked pools and trained stages as PyTerrier's artifacts, in caches, in pipelines and in its inspection."""

import json
import os
import tarfile
from functools import cache
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from lz4.frame import LZ4FrameFile
from pandas.testing import assert_frame_equal
from words import encoder, linked_collection

from vbterrier.entities import (
    Architecture,
    ConsensusEntities,
    EntitySelector,
    EntitySimilarity,
    ExpandByEntities,
    ExpansionReranker,
    LinkSet,
    NeuralEntityRanker,
    NeuralReranker,
    OverlapReranker,
    TrainedStage,
    Training,
    closed_entities,
    entity_labels,
    link_pool,
    read_links,
    selected_entities,
    supervision_report,
    write_links,
)
from vbterrier.entities.neural.models import MODELS
from vbterrier.errors import FileError, InputError, ParameterError


@cache
def data():
    made = linked_collection(n_topics=12, n_documents=16, n_relevant=5)
    return SimpleNamespace(**vars(made), every=consensus(made.links)(made.run))


def consensus(links):
    return ConsensusEntities(links, min_documents=1, cutoff=10)


def selector(**options):
    return EntitySelector(data().links, rounds=5, parameters={"min_data_in_leaf": 2}, **options)


def reranker(entities, model="duet", **options):
    options |= {"encoder": encoder, "training": Training(epochs=2)}
    return NeuralReranker(data().links, entities, model=model, **options)


@pytest.fixture
def installed(monkeypatch):
    """The entry points of the package, also where another version of it is installed."""
    points = [
        EntryPoint(f"{kind}.vbterrier", f"vbterrier.entities:{name}", "pyterrier.artifact")
        for kind, name in (("linked_pool", "LinkSet"), ("trained_stage", "TrainedStage"))
    ]
    monkeypatch.setattr(pt.utils, "entry_points", lambda group: points if group == "pyterrier.artifact" else [])


# Artifacts


def test_pyterrier_finds_linked_pools(tmp_path, installed):
    inputs = data()
    made = LinkSet.build(tmp_path / "links", inputs.links)
    result = pt.Artifact.load(str(tmp_path / "links"))
    assert result == made
    assert hash(result) == hash(made)
    assert pt.inspect.artifact_type_format(result) == ("linked_pool", "vbterrier")
    assert_frame_equal(result.pool.to_frame(), inputs.links.to_frame())
    assert_frame_equal(read_links(result.path / "links.parquet").to_frame(), inputs.links.to_frame())
    for stage in (consensus, lambda links: OverlapReranker(links, inputs.every)):
        assert_frame_equal(stage(result)(inputs.run), stage(inputs.links)(inputs.run))
    package = result.build_package(str(tmp_path / "package.tar.lz4"), verbose=False)
    with LZ4FrameFile(package) as file, tarfile.open(fileobj=file) as tar:
        # Python before 3.11.4 has no filters.
        tar.extractall(tmp_path / "unpacked", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    assert_frame_equal(LinkSet(tmp_path / "unpacked").pool.to_frame(), inputs.links.to_frame())
    with pytest.raises(FileError, match="exists already"):
        LinkSet.build(tmp_path / "links", inputs.links)
    frame = inputs.links.to_frame()
    assert_frame_equal(LinkSet.build(tmp_path / "of a frame", frame).pool.to_frame(), frame)
    with pytest.raises(InputError, match=r"LinkSet\.build: links are tags without a pool; pass link_pool"):
        LinkSet.build(tmp_path / "of tags", inputs.tags)
    assert not (tmp_path / "of tags").exists()
    for wrong in (result, frame):
        with pytest.raises(InputError, match=rf"write_links: found {type(wrong).__name__}, wanted a LinkedPool"):
            write_links(wrong, tmp_path / "links.parquet")


@pytest.mark.filterwarnings("ignore:closed_entities")
def test_functions_take_artifacts_and_frames_as_stages_do(tmp_path):
    inputs = data()
    links = link_pool(inputs.run, inputs.tags, inputs.qrels)
    result = LinkSet.build(tmp_path / "links", links)
    for call in (
        entity_labels,
        closed_entities,
        lambda links: selected_entities(inputs.every, links),
        lambda links: supervision_report(links).pairs,
        lambda links: supervision_report(links, negatives="hard").contamination,
    ):
        expected = call(links)
        assert len(expected)
        for other in (result, links.to_frame()):
            assert_frame_equal(call(other), expected)
    for call in (entity_labels, supervision_report, lambda tags: selected_entities(inputs.every, tags)):
        with pytest.raises(InputError, match=r"links are tags without a pool; pass link_pool\(pool, tags, qrels\)"):
            call(inputs.tags)


def test_artifacts_with_other_content_are_refused(tmp_path):
    LinkSet.build(tmp_path / "links", data().links)
    with pytest.raises(FileError, match=r"has no pt_meta\.json that can be read"):
        LinkSet(tmp_path)
    with pytest.raises(FileError, match=r"wanted \{'type': 'trained_stage'.*use pt.Artifact.load"):
        TrainedStage(tmp_path / "links")

    (tmp_path / "links" / "pt_meta.json").unlink()
    os.mkfifo(tmp_path / "links" / "pt_meta.json")
    with pytest.raises(FileError, match="is no regular file"):
        LinkSet(tmp_path / "links")


@pytest.mark.parametrize("name", ["pt_meta.json", "model.json", "model.txt"])
def test_pipes_and_files_of_any_size_are_not_read(tmp_path, name):
    """A pipe would be waited for, and a file of holes would fill the memory."""
    pytest.importorskip("lightgbm")
    inputs = data()
    selector(features=["df", "score"]).fit(inputs.every, inputs.qrels).save(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match="is no regular file"):
        TrainedStage(tmp_path).stage(inputs.links)
    (tmp_path / name).unlink()
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, 1 << 40)
    with pytest.raises(FileError, match=r"is larger than [\d,]+ bytes"):
        TrainedStage(tmp_path).stage(inputs.links)


def test_pyterrier_finds_trained_selectors(tmp_path, installed):
    pytest.importorskip("lightgbm")
    inputs = data()
    learner = selector(features=["df", "score"]).fit(inputs.every, inputs.qrels)
    learner.save(tmp_path)
    result = pt.Artifact.load(str(tmp_path)).stage(inputs.links)
    assert result == learner
    assert_frame_equal(result(inputs.every), learner(inputs.every), check_exact=True)
    assert set(result(inputs.every)["judgments"]) == {"own topic"}
    with pytest.raises(InputError, match="EntitySelector is not fitted; there is nothing to save"):
        selector().save(tmp_path / "other")
    with pytest.raises(ParameterError, match="rounds: is a parameter of the saved model"):
        EntitySelector.load(tmp_path, inputs.links, rounds=3)
    trees = (tmp_path / "model.txt").read_bytes()
    # LightGBM crashes on half a file.
    (tmp_path / "model.txt").write_bytes(trees[: len(trees) // 2])
    with pytest.raises(FileError, match=r"model\.txt: is not the model that was saved with these parameters"):
        EntitySelector.load(tmp_path, inputs.links)
    (tmp_path / "model.txt").unlink()
    with pytest.raises(FileError, match=r"model\.txt: is not a saved model"):
        EntitySelector.load(tmp_path, inputs.links)
    made = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(made | {"stage": "Other"}))
    with pytest.raises(FileError, match="holds a stage 'Other'; there are EntitySelector"):
        TrainedStage(tmp_path).stage(inputs.links)
    (tmp_path / "model.json").write_text(json.dumps(made | {"topics": 3}))
    with pytest.raises(FileError, match="is not a saved stage of format 5"):
        TrainedStage(tmp_path).stage(inputs.links)


def test_pyterrier_finds_trained_rerankers(tmp_path, installed, neural):
    inputs = data()
    learner = reranker(inputs.every).fit(inputs.run, inputs.qrels)
    learner.save(tmp_path)
    result = pt.Artifact.load(str(tmp_path)).stage(inputs.links, inputs.every, encoder=encoder)
    assert result == learner
    assert_frame_equal(result(inputs.run), learner(inputs.run), check_exact=True)


# Inspection


def test_columns_are_known_on_empty_frames(neural):
    inputs = data()
    similar = EntitySimilarity(inputs.links, embed=lambda texts: np.ones((len(texts), 2)))
    run = ["qid", "docno", "score"]
    needed = {
        "texts of documents": (reranker(inputs.every), [*run, "query", "text"]),
        "given texts": (reranker(inputs.every, texts={"d": "text"}), [*run, "query"]),
        "expansion": (ExpansionReranker(inputs.every, field="body"), [*run, "body"]),
        "queries of the entity ranker": (OverlapReranker(inputs.links, similar), [*run, "query"]),
        "expanded queries": (ExpandByEntities(consensus(inputs.links)), ["qid", "query"]),
        "features": (selector(features=["df", "mine"]), [*run, "mine"]),
    }
    for name, (stage, columns) in needed.items():
        assert sorted(pt.inspect.transformer_inputs(stage)[0]) == sorted(columns), name
        empty = pd.DataFrame({column: [] for column in columns})
        assert set(columns) <= set(stage(empty).columns), name
        for column in columns:
            with pytest.raises(pt.validate.InputValidationError, match=column):
                stage(empty.drop(columns=column))
    # What PyTerrier finds of a stage makes an equal stage.
    for stage in (OverlapReranker(inputs.links, inputs.every, weight=0.7), selector(), reranker(inputs.every)):
        assert pt.inspect.transformer_apply_attributes(stage) == stage
        assert pt.inspect.transformer_apply_attributes(stage, cutoff=3) != stage if hasattr(stage, "cutoff") else True


def test_empty_runs_teach_nothing(neural):
    pytest.importorskip("lightgbm")
    inputs = data()
    ranker = NeuralEntityRanker(inputs.links, layers=0)
    for stage, run in ((reranker(inputs.every), inputs.run), (selector(), inputs.every), (ranker, inputs.every)):
        with pytest.raises(InputError, match=r"none of 0 topics has relevant and|no topic has positive .* of 0 topics"):
            stage.fit(run.head(0), inputs.qrels)
        assert stage.cross_validated(run.head(0), inputs.qrels)["judgments"].tolist() == []


# Pipelines and caches


@pytest.mark.slow
def test_pipelines_are_fitted_as_their_stages(neural):
    pytest.importorskip("lightgbm")
    inputs = data()
    qids = inputs.run["qid"].unique()
    parts = [inputs.run[inputs.run["qid"].isin(part)] for part in (qids[:6], qids[6:8], qids[8:])]
    pipeline = pt.Transformer.identity() >> reranker(consensus(inputs.links) >> selector()) % 5
    pipeline.fit(parts[0], inputs.qrels, parts[1], inputs.qrels)
    alone = reranker(consensus(inputs.links) >> selector()).fit(parts[0], inputs.qrels, parts[1], inputs.qrels)
    expected = alone(parts[2]).query("rank < 5").reset_index(drop=True)
    assert_frame_equal(pipeline(parts[2]), expected, check_exact=True)
    assert set(pipeline(inputs.run)["judgments"]) == {"own topic", "other topics"}
    topics = parts[2][["qid", "query"]].drop_duplicates()
    documents = pt.Transformer.from_df(inputs.run.drop(columns="query"))
    table = pt.Experiment([documents, documents >> alone], topics, inputs.qrels, ["map"], plan="tree")
    results = [
        pt.Evaluate(each, inputs.qrels[inputs.qrels["qid"].isin(topics["qid"])], ["map"])["map"]
        for each in (parts[2], alone(parts[2]))
    ]
    assert table["map"].tolist() == pytest.approx(results)


@pytest.mark.parametrize("kind", ["reranker", "entities"])
def test_caches_return_what_stages_return(tmp_path, kind, caching, request):
    inputs = data()
    if kind == "reranker":
        request.getfixturevalue("neural")
        stage = reranker(inputs.every).fit(inputs.run, inputs.qrels)
        cached = caching.ScorerCache(str(tmp_path / "cache"), stage)
        inp = inputs.run
    else:
        stage = consensus(inputs.links)
        cached = caching.RetrieverCache(str(tmp_path / "cache"), stage)
        inp = inputs.run[["qid", "query"]].drop_duplicates()
    expected = stage(inp).sort_values(["qid", "docno"], ignore_index=True)
    for _ in range(2):
        table = cached(inp).sort_values(["qid", "docno"], ignore_index=True)
        np.testing.assert_allclose(table["score"], expected["score"], rtol=1e-6)
        assert table["docno"].tolist() == expected["docno"].tolist()


# Bad input, of every model


@pytest.mark.parametrize("model", MODELS)
def test_every_model_refuses_bad_input(model, neural, tmp_path):
    inputs = data()
    learner = reranker(inputs.every, model)
    run, qrels = inputs.run, inputs.qrels
    cases = {
        "is not fitted; call fit": lambda: learner(run),
        "there is nothing to save": lambda: learner.save("nowhere"),
        "has no text in column 'text', found None": lambda: learner.fit(run.assign(text=None), qrels),
        "has no text in texts, found None": lambda: reranker(inputs.every, model, texts={}).fit(run, qrels),
        "has relevant and non-relevant": lambda: learner.fit(run, qrels.assign(label=1)),
        "wanted a finite number": lambda: learner.fit(run.assign(score=np.inf), qrels),
        "never match": lambda: learner.fit(run, qrels.assign(qid=1)),
        "wanted finite vectors of shape": lambda: NeuralReranker(
            inputs.links, inputs.every, model=model, encoder=lambda _: [[np.nan]]
        ).fit(run, qrels),
        "has the score -1, wanted at least 0 as a weight": lambda: reranker(
            inputs.every.assign(score=-1.0), model, architecture=Architecture(entity_weight="score")
        ).fit(run, qrels),
        "missing query|wanted columns|query": lambda: learner.fit(run.drop(columns="query"), qrels),
    }
    for message, call in cases.items():
        with pytest.raises((InputError, pt.validate.InputValidationError), match=message):
            call()
    fitted = learner.fit(run, qrels)
    # A document without words, a topic without entities, and a single document are no bad input.
    some = run.assign(text=np.where(run["rank"] == 0, "", run["text"]))
    scored = fitted.with_entities(inputs.every[inputs.every["qid"] != run["qid"].iloc[0]])(some)
    assert np.isfinite(scored["score"]).all()
    assert np.isfinite(fitted(run.groupby("qid").head(1))["score"]).all()
    other = {"encoder": lambda text: encoder(text)[:, :5]}
    # Also where kernels and cosines have no dimension.
    fitted.save(tmp_path)
    with pytest.raises(InputError, match="encoder= is not that of the training"):
        NeuralReranker.load(tmp_path, inputs.links, inputs.every, **other)(run)
    vectors = {each: [1.0, 2.0] for each in inputs.tags["entity_id"]}
    with pytest.raises(InputError, match="trained without vectors=; load it without vectors= as well"):
        NeuralReranker.load(tmp_path, inputs.links, inputs.every, encoder=encoder, vectors=vectors)(run)
