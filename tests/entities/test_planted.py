"""The planted collection: what was planted is what is drawn, what is measured, and what is missed."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from planted import KINDS, planted_collection

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.hybrid import OERFilter
from vbterrier.evaluate import ReachOptions
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.evaluate.settings import evaluate_settings
from vbterrier.frames.entity_coverage import EntityTable


def linked(made):
    return link_pool(made.pool, made.tags, made.qrels)


def pairs(tags):
    return set(tags.itertuples(index=False, name=None))


def test_same_seed_same_collection_and_topics_are_independent():
    few, many = (planted_collection(n_topics=n, n_documents=40, n_relevant=8, seed=3) for n in (2, 4))
    for name in ("topics", "pool", "qrels", "entities"):
        frame = getattr(many, name)
        kept = frame[frame["qid"].isin(few.topics["qid"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(getattr(few, name), kept)
    other = planted_collection(n_topics=2, n_documents=40, n_relevant=8, seed=4)
    assert not other.mentions.equals(few.mentions)
    assert not other.pool.equals(few.pool)


def test_less_recall_finds_less_of_the_same():
    recalls = (0, 0.2, 0.5, 0.9, 1)
    made = [planted_collection(n_topics=5, linker_recall=recall) for recall in recalls]
    results = [pairs(one.tags) for one in made]
    assert all(less < more for less, more in pairwise(results))
    assert results[-1] == pairs(made[-1].mentions)
    for kept, recall in zip(results, recalls, strict=True):
        assert len(kept) / len(results[-1]) == pytest.approx(recall, abs=4 * math.sqrt(0.25 / len(results[-1])))
    # A mention is found by seed, document and entity alone.
    small = planted_collection(n_topics=2, linker_recall=0.5)
    other = planted_collection(n_topics=3, linker_recall=0.5, n_entities={"sparse": 0}, n_relevant=50)
    both = pairs(small.mentions) & pairs(other.mentions)
    assert len(both) > 200
    assert pairs(small.tags) & both == pairs(other.tags) & both


def test_there_may_be_no_entity():
    made = planted_collection(n_topics=2, n_entities=dict.fromkeys(KINDS, 0))
    assert (len(made.pool), len(made.mentions), len(made.tags), len(made.entities)) == (400, 0, 0, 0)


def test_oer_recovers_the_planted_order():
    made = planted_collection(n_topics=20, n_documents=1000, n_relevant=300)
    pool = linked(made)
    table = EntityTable(pool)
    ids = pool.entities.take(table.entity).text.to_pylist()
    result = pd.DataFrame({"entity_id": ids, "oer": table.oer(), "df": table.df})
    result["qid"] = np.array(pool.topics, dtype=object)[table.topic]
    result = result.merge(made.entities, on=["qid", "entity_id"], validate="one_to_one")
    supported = result[result["df"] >= 20]
    assert len(supported) > 200
    assert supported["oer"].corr(supported["log_odds"], method="spearman") > 0.95
    gone = (supported["oer"] - supported["log_odds"]).groupby(supported["kind"]).mean()
    assert gone.abs().max() < 0.1, "and its size, for the bias of the pseudo-counts is small where support is large"


def average_precision(ranking, relevant):
    places = [rank for rank, docno in enumerate(ranking, 1) if docno in relevant]
    return sum(n / rank for n, rank in enumerate(places, 1)) / len(relevant)


@pytest.mark.parametrize("recall", [1.0, 0.3])
def test_conditional_and_open_world_differ_exactly_by_what_was_hidden(recall):
    k = 6
    # Two entities of which every document mentions one: nothing but the linker hides anything.
    made = planted_collection(
        n_topics=6,
        linker_recall=recall,
        n_entities={"sparse": 0},
        shares={"generic bait": 1 - 1e-13},
        log_odds={"generic bait": (0.0, 0.0)},
    )
    bait = [f"bait-{place}" for place in range(1, KINDS["generic bait"].n + 1)]
    run = pd.concat([made.runs["frequency"].groupby("qid").head(k)])
    assert set(bait) <= set(run["docno"])
    selected = {(qid, entity) for qid, entity in run[["qid", "docno"]].itertuples(index=False)}
    hidden = pairs(made.mentions) - pairs(made.tags)
    evaluation = evaluate_settings(
        {"pool": made.pool}, made.qrels, ["AP"], links=linked(made), entities=run, options=ReachOptions(cutoff=k)
    )
    values = evaluation.values.set_index(["setting", "qid"])["value"]
    named = made.mentions.groupby("docno")["entity_id"].agg(set)
    for qid, ranking in made.pool.groupby("qid")["docno"]:
        chosen = {docno: {entity for entity in named[docno] if (qid, entity) in selected} for docno in ranking}
        lost = {docno for docno in ranking if all((docno, entity) in hidden for entity in chosen[docno])}
        assert bool(lost) == (recall < 1)
        relevant = set(made.qrels.query("qid == @qid and label == 1")["docno"])
        kept = [docno for docno in ranking if docno not in lost]
        assert values["open-world", qid] == pytest.approx(average_precision(ranking, relevant))
        assert values["conditional", qid] == pytest.approx(average_precision(kept, relevant - lost))
        assert evaluation.coverage.set_index("qid").loc[qid, "n_reachable"] == len(kept)
    if recall == 1:
        assert (values["conditional"] == values["open-world"]).all()
        assert evaluation.gaps[["gap", "RelCov", "NonRelCov"]].to_numpy().tolist() == [[0, 1, 1]]


def test_conditional_gains_stay_while_open_world_gains_vanish_with_recall():
    gains, k = {}, 9
    for recall in (1.0, 0.1):
        made = planted_collection(n_topics=15, n_documents=400, n_relevant=40, linker_recall=recall)
        odds = made.entities[made.entities["kind"].isin(["core", "conditional", "anti-signal"])]
        table = made.tags.merge(made.pool[["qid", "docno"]]).merge(odds)
        evidence = made.pool["docno"].map(table.groupby("docno")["log_odds"].sum()).fillna(0)
        systems = {"pool": made.pool, "entities": made.pool.assign(score=0.8 * made.pool["score"] + evidence)}
        result = evaluate_settings(
            systems,
            made.qrels,
            ["AP"],
            links=linked(made),
            entities=made.runs["topical"],
            baseline="pool",
            options=ReachOptions(cutoff=k),
        )
        gains[recall] = result.comparisons.set_index("setting")["diff"]
    assert gains[1.0].min() > 0.3
    assert gains[0.1]["conditional"] > 0.5 * gains[1.0]["conditional"]
    assert gains[0.1]["open-world"] < 0.25 * gains[1.0]["open-world"]
    assert result.coverage["RelCov"].mean() < 0.2


def test_filtering_by_oer_raises_the_ratio_and_lowers_coverage():
    made = planted_collection(n_topics=15, linker_recall=0.5)
    runs, links = {"all": made.runs["topical"].groupby("qid").head(9)}, linked(made)
    for threshold in (0.0, 0.5, 1.0):
        with pytest.warns(match="as a diagnostic, not as a system"):
            stage = OERFilter(links, threshold=threshold)
        runs[str(threshold)] = stage(runs["all"])
    table = coverage_report(runs, links, cutoff=9).entities.pivot(index="name", columns="measure", values="value")
    rising, falling = (table.loc[list(runs), f"{name}@9"].diff().dropna() for name in ("DiscRatio", "RelCov"))
    assert (rising > 0).all()
    assert (falling < 0).all()
    assert table.loc["0.0", "BaitRate@9"] == 0
