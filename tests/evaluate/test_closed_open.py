"""Closed and open entities crossed with closed and open documents."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.entities.rerank.overlap import OverlapReranker
from vbterrier.entities.stage import EntityReachable
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.closed_open import evaluate_closed_open
from vbterrier.evaluate.settings import ReachOptions
from vbterrier.settings import Data

MEASURES = ["AP", "nDCG@5", "R@5"]


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(3)
    pairs = pd.DataFrame([(f"q{q}", f"d{q}-{d}") for q in range(8) for d in range(20)], columns=["qid", "docno"])
    label = rng.choice([0, 1], len(pairs), p=[0.7, 0.3])
    # Core entities occur in relevant documents, bait entities in any document.
    core = (label == 1) & (rng.random(len(pairs)) < 0.8)
    bait = rng.random(len(pairs)) < 0.6
    tags = pd.concat([pairs[core].assign(entity_id="core"), pairs[bait].assign(entity_id="bait")])
    sides = {
        name: pd.DataFrame({"qid": pairs["qid"].unique(), "docno": entity, "score": 1.0})
        for name, entity in (("closed", "core"), ("open", "bait"))
    }
    return {
        "pool": pairs.assign(score=rng.random(len(pairs))),
        "qrels": pairs.assign(label=label),
        "links": tags[["docno", "entity_id"]],
        "entities": sides,
    }


def evaluation(world, system=None, measures=MEASURES, *, reach=None, **settings):
    def reranker(run):
        return OverlapReranker(world["links"], run, weight=0.7)

    data = {name: world[name] for name in ("pool", "links", "entities")} | settings
    options = ReachOptions(**{"unmatched": "drop", **(reach or {})})
    return evaluate_closed_open(system or reranker, world["qrels"], measures, options=options, **data)


def cells(world, *, reachable):
    """The four cells by hand: rerank the remaining documents and score them."""
    for side, run in world["entities"].items():
        stage, cut = OverlapReranker(world["links"], run, weight=0.7), EntityReachable(world["links"], run)
        within = cut.transform(world["pool"])
        qrels = world["qrels"]
        closed = qrels[qrels["docno"].isin(within["docno"])] if reachable else qrels
        yield (side, "closed"), stage.transform(within), closed
        yield (side, "open"), stage.transform(world["pool"]), qrels


@pytest.mark.parametrize("judgments", ["all", "reachable"])
def test_cells_are_plain_scores_of_what_is_left(world, judgments):
    means = evaluation(world, reach={"judgments": judgments}).means()
    assert means.index.tolist() == [("closed", "closed"), ("closed", "open"), ("open", "closed"), ("open", "open")]
    for cell, ranking, qrels in cells(world, reachable=judgments == "reachable"):
        expected = (
            vbterrier.score({"s": ranking}, qrels, MEASURES, data=Data(on_topics="all")).means().loc["s", MEASURES]
        )
        np.testing.assert_allclose(means.loc[cell, MEASURES], expected, rtol=0, atol=1e-12)


def test_recall_is_the_same_in_all_cells_if_unmatched_documents_follow(world):
    means = evaluation(world, reach={"unmatched": "append"}).means()
    for (side, where), ranking, _ in cells(world, reachable=False):
        listed = ranking.sort_values(["qid", "rank"])
        rest = world["pool"][~world["pool"]["docno"].isin(listed["docno"])].sort_values("score", ascending=False)
        by_hand = pd.concat([listed, rest])[["qid", "docno"]].assign(score=-np.arange(len(world["pool"]), dtype=float))
        expected = vbterrier.score({"s": by_hand}, world["qrels"], [*MEASURES, "R@20"]).means().loc["s"]
        np.testing.assert_allclose(means.loc[(side, where)], expected[MEASURES], rtol=0, atol=1e-12)
        assert expected["R@20"] == 1.0
    dropped = vbterrier.score(
        {"s": next(cells(world, reachable=False))[1]}, world["qrels"], ["R@20"], data=Data(on_topics="all")
    )
    assert dropped.means().loc["s", "R@20"] < 0.9


@pytest.mark.parametrize("change", ["truncated", "without a topic", "others"])
def test_given_runs_have_the_same_recall_in_both_cells(world, change):
    pool = world["pool"]
    run = {
        "truncated": pool[pool["score"] > 0.5],
        "without a topic": pool[pool["qid"] != "q3"],
        "others": pd.concat([pool, pd.DataFrame({"qid": ["q1"], "docno": ["outside"], "score": [0.3]})]),
    }[change]
    qrels = pd.concat([world["qrels"], pd.DataFrame({"qid": ["q1"], "docno": ["outside"], "label": [1]})])
    runs = {"closed": run, "open": run}
    means = evaluation(world | {"qrels": qrels}, runs, measures=["R@100"], reach={"unmatched": "append"}).means()
    assert np.ptp(means["R@100"].to_numpy()) == pytest.approx(0, abs=1e-12)
    assert means["R@100"].iloc[0] > 0.9


def test_effects_are_contrasts_of_the_means(world):
    result = evaluation(world)
    coverage = result.coverage.groupby("entity_side")["NonRelCov"].agg(["mean", "size"])
    assert coverage.loc["closed"].tolist() == [0, 8]
    assert coverage.loc["open", "mean"] > 0.3
    means, effects = result.means(), result.effects.set_index(["measure", "effect"])
    for measure in MEASURES:
        cc, co, oc, oo = means[measure]
        assert effects.loc[(measure, "entity side"), "value"] == pytest.approx((cc + co - oc - oo) / 2)
        assert effects.loc[(measure, "document side"), "value"] == pytest.approx((cc + oc - co - oo) / 2)
        assert effects.loc[(measure, "interaction"), "value"] == pytest.approx(cc - co - oc + oo)
    assert (effects["low"] <= effects["value"]).all()
    assert (effects["high"] >= effects["value"]).all()
    assert (effects["n_qids"] == 8).all()
    # Entities of relevant documents help for any documents.
    assert effects.loc[("AP", "entity side"), "low"] > 0


def test_runs_in_place_of_pipelines_are_cut(world):
    runs = {
        side: OverlapReranker(world["links"], run, weight=0.7).transform(world["pool"])
        for side, run in world["entities"].items()
    }
    by_name = evaluation(world, runs)
    by_function = evaluation(world, lambda run: runs["closed" if "core" in set(run["docno"]) else "open"])
    pd.testing.assert_frame_equal(by_name.values, by_function.values)
    pd.testing.assert_frame_equal(by_name.means().xs("open", level=1), evaluation(world).means().xs("open", level=1))


def test_effects_pair_topics_that_all_cells_have(world):
    links = world["links"][~(world["links"]["docno"].str.startswith("d3-") & (world["links"]["entity_id"] == "core"))]
    with pytest.warns(DegenerateWarning, match="q3"):
        result = evaluation(world, links=links, reach={"judgments": "reachable"}, system=lambda _: world["pool"])
    assert (result.effects["n_qids"] == 7).all()
