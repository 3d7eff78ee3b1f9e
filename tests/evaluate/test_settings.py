"""Evaluation on reachable documents and on all documents."""

import json

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

import vbterrier
from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.stage import EntityReachable
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.evaluate import ReachOptions
from vbterrier.evaluate.settings import evaluate_settings
from vbterrier.frames.files.reading import read_run
from vbterrier.linking.corpora import read_spans
from vbterrier.settings import Data, Inference
from vbterrier.stats.topic_intervals import topics_interval

MEASURES = ["AP", "nDCG@5", "P@5", "RR", "Recall@5"]


def collection(seed=0, *, n_topics=12, n_docs=20, share=0.6):
    """A pool, two systems on it, judgments within it, tags and an entity run."""
    rng = np.random.default_rng(seed)
    pairs = [(f"q{q}", f"d{q}-{d}") for q in range(n_topics) for d in range(n_docs)]
    pairs = pd.DataFrame(pairs, columns=["qid", "docno"])
    pool = pairs.assign(score=rng.random(len(pairs)))
    systems = {"pool": pool, "other": pairs.assign(score=rng.random(len(pairs)))}
    qrels = pairs.assign(label=rng.choice([0, 1, 2], len(pairs), p=[0.6, 0.3, 0.1]))
    hit = rng.random(len(pairs)) < share
    tags = pd.DataFrame({"docno": pairs["docno"], "entity_id": np.where(hit, "wanted", "unwanted")})
    entities = pd.DataFrame({"qid": pairs["qid"].unique(), "docno": "wanted", "score": 1.0})
    return {"runs": systems, "qrels": qrels, "links": tags, "pool": pool, "entities": entities}


def evaluated(made, measures=MEASURES, *, reach=None, **settings):
    settings = {**made, **settings}
    options = ReachOptions(pool=settings.pop("pool"), **(reach or {}))
    return evaluate_settings(measures=measures, options=options, **settings)


def table(values, setting=None):
    values = values if setting is None else values[values["setting"] == setting]
    return values.set_index(["name", "qid", "measure"])["value"].sort_index()


def test_both_settings_are_pt_experiment_when_all_is_reachable():
    data = collection(share=1.1)
    result, systems, qrels = evaluated(data), data["runs"], data["qrels"]
    runs, topics = [frame.assign(rank=0) for frame in systems.values()], qrels[["qid"]].drop_duplicates()
    measures = vbterrier.measures_from(*MEASURES)
    plain = pt.Experiment(runs, topics.assign(query="x"), qrels, measures, names=list(systems), perquery=True)
    scored = vbterrier.score(systems, qrels, MEASURES)
    for setting in ("conditional", "open-world"):
        values = table(result.values, setting)
        assert values.index.equals(table(plain).index)
        np.testing.assert_allclose(values, table(plain), rtol=0, atol=1e-12)
        np.testing.assert_allclose(values, table(scored.values), rtol=0, atol=1e-12)
        pd.testing.assert_frame_equal(result.means()[setting], scored.means(), check_names=False, atol=1e-12)
    assert (result.gaps["gap"] == 0).all()
    assert (result.coverage[["RelCov", "NonRelCov"]] == 1).all(axis=None)


def test_settings_are_plain_scores_of_frames_filtered_by_hand():
    data = collection(1)
    systems, qrels, tags = data["runs"], data["qrels"], data["links"]
    reach, result = set(tags.loc[tags["entity_id"] == "wanted", "docno"]), evaluated(data)
    cut = {name: run[run["docno"].isin(reach)] for name, run in systems.items()}
    expected = vbterrier.score(cut, qrels[qrels["docno"].isin(reach)], MEASURES, data=Data(on_topics="all"))
    # The stage keeps the same documents.
    stage = EntityReachable(tags, data["entities"])
    assert {name: set(stage.transform(run)["docno"]) for name, run in systems.items()} == dict.fromkeys(cut, reach)
    pd.testing.assert_series_equal(table(result.values, "conditional"), table(expected.values), atol=1e-12)
    plain = vbterrier.score(systems, qrels, MEASURES)
    pd.testing.assert_series_equal(table(result.values, "open-world"), table(plain.values), atol=1e-12)
    row = result.gaps.set_index(["name", "measure"]).loc["other", "AP"]
    difference = table(expected.values)["other"].xs("AP", level=1) - table(plain.values)["other"].xs("AP", level=1)
    assert row["gap"] == pytest.approx(difference.mean(), abs=1e-12)
    assert row["low"] < row["gap"] < row["high"]
    assert row["n_qids"] == 12


def hand():
    run = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"] * 2, "docno": list("abcdef"), "score": [4.0, 3, 2, 1, 2, 1]})
    qrels = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2"], "docno": list("bdef"), "label": [1, 1, 1, 0]})
    tags = pd.DataFrame({"docno": list("bcf"), "entity_id": list("XXY")})
    entities = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["X", "Y"], "score": [1.0, 1.0]})
    return {"runs": {"s": run}, "qrels": qrels, "links": tags, "pool": run, "entities": entities}


def test_hand_case_with_a_topic_that_cannot_be_reached():
    with pytest.warns(DegenerateWarning) as record:
        result = evaluated(hand(), ["AP", "SetR"])
    told = [str(one.message) for one in record if "relevant documents" in str(one.message)]
    assert len(told) == 1
    assert "1 of 2 topics have relevant documents, but no reachable one ('q2'); they are left out" in told[0]
    # q1: the ranking is b, c and the only relevant reachable document is b.
    assert table(result.values, "conditional").to_dict() == {("s", "q1", "AP"): 1.0, ("s", "q1", "SetR"): 1.0}
    assert table(result.values, "open-world").to_dict() == {
        ("s", "q1", "AP"): 0.5, ("s", "q1", "SetR"): 1.0, ("s", "q2", "AP"): 1.0, ("s", "q2", "SetR"): 1.0
    }  # fmt: skip
    gap = result.gaps.set_index("measure").loc["AP"]
    assert (gap["conditional"], gap["open_world"], gap["gap"], gap["n_qids"]) == (1.0, 0.5, 0.5, 1)
    assert (gap["RelCov"], gap["NonRelCov"]) == (0.25, 0.75)
    assert result.coverage.to_dict("records") == [
        {"qid": "q1", "RelCov": 0.5, "NonRelCov": 0.5, "n_pool": 4, "n_reachable": 2, "n_relevant": 2,
         "n_relevant_pool": 2, "n_relevant_reachable": 1, "unreached": False},
        {"qid": "q2", "RelCov": 0.0, "NonRelCov": 1.0, "n_pool": 2, "n_reachable": 1, "n_relevant": 1,
         "n_relevant_pool": 1, "n_relevant_reachable": 0, "unreached": True}
    ]  # fmt: skip


def test_unreached_topics_may_count_as_zero():
    data = hand()
    # Also if no judged document of the topic is left.
    for qrels in (data["qrels"], data["qrels"].query("label > 0")):
        with pytest.warns(DegenerateWarning, match="they count as topics without relevant documents"):
            result = evaluated(data, ["AP", "R@5"], qrels=qrels, reach={"unreached": "zero"})
        values = table(result.values, "conditional")["s"].unstack()
        assert values.to_dict() == {"AP": {"q1": 1.0, "q2": 0.0}, "R@5": {"q1": 1.0, "q2": 0.0}}
        assert result.gaps.set_index("measure")["gap"].to_dict() == {"AP": -0.25, "R@5": -0.5}


def test_nothing_relevant_within_reach_is_an_error():
    data = hand()
    run, qrels = (frame[frame["qid"] == "q2"] for frame in (data["pool"], data["qrels"]))
    with pytest.raises(InputError, match="no topic is left for the conditional setting"):
        evaluated(data, ["AP"], runs={"s": run}, qrels=qrels)


def test_topics_that_never_had_a_relevant_document_stay_in_both_settings():
    data = hand()
    qrels = data["qrels"].assign(label=[1, 1, 0, 0])
    for judged in (qrels, qrels[qrels["docno"] != "f"]):
        result = evaluated(data, ["AP"], qrels=judged)
        assert table(result.values, "conditional").to_dict() == {("s", "q1", "AP"): 1.0, ("s", "q2", "AP"): 0.0}
        assert not result.coverage["unreached"].any()


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_documents_beyond_the_pool_count_in_the_open_world_or_not():
    data = hand()
    data["qrels"] = pd.concat([data["qrels"], pd.DataFrame({"qid": ["q1"], "docno": ["z"], "label": [1]})])
    data["runs"] = {"s": pd.concat([pd.DataFrame({"qid": ["q1"], "docno": ["y"], "score": [9.0]}), data["pool"]])}
    kept, dropped = (
        evaluated(data, ["AP"], reach={"unreached": "zero", "beyond": beyond}) for beyond in ("keep", "drop")
    )
    assert table(kept.values, "open-world")["s", "q1", "AP"] == pytest.approx((1 / 3 + 2 / 5) / 3)
    assert table(dropped.values, "open-world")["s", "q1", "AP"] == 0.5
    for result in (kept, dropped):
        assert table(result.values, "conditional")["s", "q1", "AP"] == 1.0
        assert result.coverage.loc[0, ["n_relevant", "n_relevant_pool"]].tolist() == [3, 2]


def test_coverage_is_that_of_the_measures():
    data = collection(2)
    coverage = evaluated(data, ["AP"], reach={"cutoff": 1}).coverage
    linked = link_pool(data["pool"], data["links"], data["qrels"]).to_frame()
    expected = vbterrier.score({"e": data["entities"]}, linked, ["RelCov@1", "NonRelCov@1"]).values
    expected = expected.pivot(index="qid", columns="measure", values="value").loc[coverage["qid"]]
    np.testing.assert_allclose(coverage[["RelCov", "NonRelCov"]], expected[["RelCov@1", "NonRelCov@1"]], atol=1e-12)


def test_links_of_three_shapes_and_their_labels_change_nothing():
    data = collection(3)
    expected, pool, tags = evaluated(data), data["pool"], data["links"]
    for links in (link_pool(pool, tags), link_pool(pool, tags, data["qrels"].assign(label=1)).to_frame()):
        result = evaluated(data, links=links, pool=None)
        pd.testing.assert_frame_equal(result.values, expected.values)
        pd.testing.assert_frame_equal(result.coverage, expected.coverage)
    with pytest.warns(DegenerateWarning, match="pool: ignored, since links are a linked pool"):
        result = evaluated(data, links=links, pool=pool.head(1))
    pd.testing.assert_frame_equal(result.values, expected.values)


def test_topics_left_out_are_told_of_once_and_not_as_missing_judgments():
    docnos = list("abcde")
    run = pd.DataFrame({"qid": ["q1", "q1", "q2", "q2", "q3"], "docno": docnos, "score": [2.0, 1.0, 2.0, 1.0, 1.0]})
    qrels = run[["qid", "docno"]].assign(label=[1, 1, 1, 0, 1])
    tags = pd.DataFrame({"docno": docnos, "entity_id": list("EFFEE")})
    entities = pd.DataFrame({"qid": ["q1", "q2", "q3"], "docno": "E", "score": 1.0})
    with pytest.warns(DegenerateWarning, match="1 of 3 topics have relevant documents, but no reachable one") as record:
        evaluation = evaluate_settings(
            {"s": run}, qrels, ["AP", "R@2"], links=tags, entities=entities, options=ReachOptions(pool=run)
        )
    assert len(record) == 1, [str(one.message) for one in record]
    assert evaluation.gaps["n_qids"].tolist() == [2, 2]


def test_order_of_rows_changes_nothing():
    data = collection(4)
    mixed = {name: data[name].sample(frac=1, random_state=6) for name in ("qrels", "links", "pool", "entities")}
    systems = {name: run.sample(frac=1, random_state=5) for name, run in data["runs"].items()}
    result, expected = evaluated({"runs": systems, **mixed}), evaluated(data)
    for setting in ("conditional", "open-world"):
        pd.testing.assert_series_equal(table(result.values, setting), table(expected.values, setting))


def test_pipelines_are_run_on_the_topics():
    data = collection(5)
    topics = data["pool"][["qid"]].drop_duplicates().assign(query="x")
    pipelines = {name: pt.Transformer.from_df(run.assign(query="x", rank=0)) for name, run in data["runs"].items()}
    result = evaluated(data, runs=pipelines, data=Data(topics=topics))
    pd.testing.assert_series_equal(table(result.values), table(evaluated(data).values))
    with pytest.raises(InputError, match=r"run 'pool': found the pipeline .*needs queries: give .*its results"):
        evaluated(data, runs=pipelines)


def test_baseline_gives_comparisons_in_each_setting():
    result = evaluated(collection(7), ["AP"], baseline="pool")
    assert result.comparisons[["name_a", "name_b", "setting", "measure"]].values.tolist() == [
        ["other", "pool", "conditional", "AP"],
        ["other", "pool", "open-world", "AP"],
    ]
    means = result.means()
    for setting, diff in zip(result.comparisons["setting"], result.comparisons["diff"], strict=True):
        assert diff == pytest.approx(means.loc["other", (setting, "AP")] - means.loc["pool", (setting, "AP")])
    assert not len(evaluated(collection(7), ["AP"]).comparisons)


def test_measures_of_this_package_and_graded_ones_are_restricted_too():
    result = evaluated(collection(8), ["ENDCG@5", "nDCG@5", "P(rel=2)@5"])
    # The pool is completely judged: the bootstrapped measure equals the plain one in both settings.
    for setting in ("conditional", "open-world"):
        values = table(result.values, setting).unstack()
        np.testing.assert_allclose(values["ENDCG@5"], values["nDCG@5"], atol=1e-9)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_ambiguous_names_of_news(shared_data):
    folder = shared_data / "aida_ambiguous_labels"
    topics = [json.loads(line) for line in (folder / "topics.jsonl").read_text().splitlines()]
    dominant = {topic["qid"]: max(topic["intents"], key=lambda intent: intent["p"])["intent"] for topic in topics}
    rows = [line.split() for line in (folder / "qrels.intents.txt").read_text().splitlines()]
    qrels = pd.DataFrame([(qid, docno, 1) for qid, intent, docno, _ in rows if intent == dominant[qid]])
    qrels.columns = ["qid", "docno", "label"]
    run, tags = read_run(folder / "runs" / "bm25.run.gz"), read_spans(folder / "links.wat.jsonl.gz", nil="drop")
    entities = ConsensusEntities(tags, cutoff=20).transform(run)
    evaluation = evaluate_settings(
        {"bm25": run}, qrels, ["AP"], links=tags, entities=entities, options=ReachOptions(pool=run)
    )

    entities_of = {docno: set(group) for docno, group in tags.groupby("docno")["entity_id"]}
    listed = {qid: set(group) for qid, group in entities.groupby("qid")["docno"]}

    def reachable(frame):
        pairs = zip(frame["qid"], frame["docno"], strict=True)
        return frame[[bool(entities_of.get(docno, set()) & listed.get(qid, set())) for qid, docno in pairs]]

    pooled = qrels.merge(run[["qid", "docno"]])
    relevant = pooled.groupby("qid").size()
    share = reachable(pooled).groupby("qid").size().reindex(relevant.index, fill_value=0) / relevant
    coverage = evaluation.coverage.set_index("qid")
    found_share = coverage["RelCov"].dropna().sort_index()
    pd.testing.assert_series_equal(found_share, share, check_names=False, check_index_type=False)
    both = coverage[["RelCov", "NonRelCov"]].dropna()
    assert len(both) == 184
    assert both.mean().tolist() == pytest.approx([0.929, 0.790], abs=6e-4)
    expected = vbterrier.score({"bm25": reachable(run)}, reachable(pooled), ["AP"], data=Data(on_topics="all")).values
    pd.testing.assert_series_equal(table(evaluation.values, "conditional"), table(expected), rtol=0, atol=1e-12)
    assert coverage["unreached"].sum() == 199 - len(expected)


def test_poisson_draws_topics_by_their_ids():
    result = evaluated(collection(), ["AP"], inference=Inference(interval="poisson", n_resamples=200))
    values = result.values.pivot_table(index=["name", "qid"], columns="setting", values="value").loc["other"]
    differences = values["conditional"] - values["open-world"]
    shuffled = differences.sample(frac=1, random_state=1)
    ends = topics_interval(shuffled.to_numpy(), method="poisson", n_resamples=200, qids=list(shuffled.index))
    gap = result.gaps.set_index("name").loc["other"]
    np.testing.assert_allclose(gap[["low", "high"]].astype(float), [ends.low, ends.high], rtol=1e-12)
    assert gap["method"] == ends.method == "topics (poisson)"
    by_row = topics_interval(differences.to_numpy(), method="poisson", n_resamples=200)
    assert (by_row.low, by_row.high) != (ends.low, ends.high)
