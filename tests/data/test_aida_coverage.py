"""AIDA-CoNLL: which documents the entities that a pool agrees on reach, with gold links and with two linkers'.

A document is relevant to an ambiguous name when it uses the name for the entity that is mostly meant. The pool is
BM25's first 100, the entities are the 20 of consensus (rank). Printed independently, over 184 topics: gold RelCov .939,
NonRelCov .726, ratio of means 1.29; WAT .929, .790, 1.18. All of it comes out here but gold's NonRelCov, which is .723
(ratio 1.298) in these measures and in the loops below alike. Other orders of ties leave it .723; 100 as K makes it
.722, mentions for documents in the support .725 (and RelCov .949), in df .680, NIL as an entity .916.
"""

import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest

from vbterrier import score
from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.rerank import OverlapReranker
from vbterrier.entities.stage import selected_entities
from vbterrier.entities.supervision import supervision_report
from vbterrier.errors import InputError
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.frames.ranking import Run, ranked
from vbterrier.measures import NonRelCov, OracleCov, RelCov
from vbterrier.measures.base import evaluate
from vbterrier.measures.target import EvaluationTarget
from vbterrier.settings import Data, Inference
from vbterrier.stats.regression import gain_regressions
from vbterrier.stats.topic_statistics import disc_ratio

pytestmark = pytest.mark.slow

K = 20
PRINTED = {"gold": (0.9392, 0.7233, 1.298), "wat": (0.9294, 0.7898, 1.177), "genre": (0.9427, 0.7798, 1.209)}


def entities_by_document(tags):
    result = defaultdict(set)
    for row in tags.itertuples():
        result[row.docno].add(row.entity_id)
    return result


def loops(run, tags, qrels):
    """Topic -> (RelCov, NonRelCov) of consensus (rank), None where there is no such document in the pool."""
    entities, relevant, result = entities_by_document(tags), set(map(tuple, qrels[["qid", "docno"]].to_numpy())), {}
    for qid, group in ranked(run).groupby("qid", sort=False):
        documents, support, df = group["docno"].tolist(), Counter(), Counter()
        for rank, docno in enumerate(documents, 1):
            for entity in entities[docno]:
                support[entity] += 1 / math.log2(rank + 1)
                df[entity] += 1
        score = {e: s * (math.log((len(documents) + 1) / (df[e] + 1)) + 1) for e, s in support.items() if df[e] >= 2}
        best = set(sorted(score, key=lambda entity: (round(score[entity], 6), entity), reverse=True)[:K])
        sides = [[d for d in documents if ((qid, d) in relevant) is side] for side in (True, False)]
        result[qid] = [sum(bool(entities[d] & best) for d in side) / len(side) if side else None for side in sides]
    return result


@pytest.mark.parametrize("linker", PRINTED)
def test_coverage_of_consensus_entities(aida, linker):
    pool = link_pool(aida.runs["bm25"], aida.tags[linker], aida.qrels, cutoff=100)
    run = ConsensusEntities(pool, cutoff=K)(aida.runs["bm25"].merge(aida.topics))
    # Separately: one leaves out topics that the other may have.
    target = EvaluationTarget.of_links(pool)
    results = [
        pd.Series({qid: value for qid, _, value in evaluate([measure(undefined="skip") @ K], target, Run(run))})
        for measure in (RelCov, NonRelCov)
    ]
    expected = loops(aida.runs["bm25"], aida.tags[linker], aida.qrels)
    for values, side in zip(results, zip(*expected.values(), strict=True), strict=True):
        plain = {qid: value for qid, value in zip(expected, side, strict=True) if value is not None}
        assert values.to_dict() == pytest.approx(plain, abs=1e-12)
    both = pd.concat(results, axis=1, keys=["rel", "nonrel"]).dropna()
    assert len(both) == 184
    # A mean leaves out the topics where its measure is undefined, and hosts that average all topics refuse them.
    measures = [RelCov @ K, NonRelCov @ K]
    intervals = score({"consensus": run}, pool.to_frame(), measures).intervals
    assert intervals["n_qids"].tolist() == [len(values) for values in results]
    assert intervals["value"].tolist() == pytest.approx([values.mean() for values in results], abs=1e-12)
    with pytest.raises(InputError, match=r"NonRelCov@20 is undefined for 15 of 199 topics"):
        pt.Experiment([run], aida.topics, pool.to_frame(), measures)
    ratio = disc_ratio(both["rel"], both["nonrel"])
    rel_cov, nonrel_cov, value = PRINTED[linker]
    assert both.mean().tolist() == pytest.approx([rel_cov, nonrel_cov], abs=5e-5)
    assert ratio.value == pytest.approx(value, abs=5e-4)
    assert 1 < ratio.low < ratio.value < ratio.high


def test_gold_entities_could_reach_every_relevant_document(aida):
    """All of them mention the entity that makes them relevant: one entity is enough."""
    pool = link_pool(aida.runs["bm25"], aida.tags["gold"], aida.qrels, cutoff=100)
    topics = aida.topics[aida.topics["qid"].isin(aida.qrels.merge(aida.runs["bm25"][["qid", "docno"]])["qid"])]
    run = ConsensusEntities(pool)(aida.runs["bm25"].merge(topics))
    links = pool.to_frame()
    links = links[links["qid"].isin(topics["qid"])]
    table = pt.Experiment([run], topics, links, [OracleCov @ 1])
    assert table["OracleCov@1"].tolist() == [1.0]


def test_supervision_equals_loops(aida):
    entities, relevant = (
        entities_by_document(aida.tags["gold"]),
        set(map(tuple, aida.qrels[["qid", "docno"]].to_numpy())),
    )
    expected = {}
    for qid, group in ranked(aida.runs["bm25"], 100).groupby("qid", sort=False):
        sides = [set(), set()]
        for docno in group["docno"]:
            sides[(qid, docno) in relevant] |= entities[docno]
        other, mine = sides
        expected[qid] = {"positive": mine - other, "negative": other - mine, "common": mine & other}
    report = supervision_report(link_pool(aida.runs["bm25"], aida.tags["gold"], aida.qrels, cutoff=100))
    assert report.topics["qid"].tolist() == list(expected)
    for name in ("positive", "negative", "common"):
        assert report.topics[f"n_{name}"].tolist() == [len(one[name]) for one in expected.values()]
    shares = []
    for qid, one in expected.items():
        elsewhere = set().union(*(other["positive"] for place, other in expected.items() if place != qid))
        if one["negative"]:
            shares.append(len(one["negative"] & elsewhere) / len(one["negative"]))
    row = report.contamination.iloc[0]
    assert row[["mean", "std", "max"]].tolist() == pytest.approx([np.mean(shares), np.std(shares, ddof=1), max(shares)])


def test_the_report_holds_the_coverage_of_consensus_entities(aida):
    pool = link_pool(aida.runs["bm25"], aida.tags["gold"], aida.qrels, cutoff=100)
    run = ConsensusEntities(pool, cutoff=20)(aida.runs["bm25"].merge(aida.topics))
    report = coverage_report(
        {"consensus": run},
        pool,
        qrels=aida.qrels,
        doc_runs=aida.runs,
        data=Data(on_topics="all"),
        inference=Inference(n_resamples=200),
    )
    table = report.entities.set_index("measure")
    assert table.loc[["NonRelCov@20", "DiscRatio@20"], "value"].tolist() == pytest.approx([0.7233, 1.298], abs=5e-4)
    assert table.loc[["RelCov@20", "NonRelCov@20", "DiscRatio@20"], "n_qids"].tolist() == [199, 184, 184]
    # In 15 topics every document of the pool is relevant: no ratio, but coverage.
    both = report.values.pivot(index="qid", columns="measure", values="value").dropna(subset="NonRelCov@20")
    assert both["RelCov@20"].mean() == pytest.approx(0.9392, abs=5e-5)
    assert report.pool["n_without_other"].item() == 15
    # Nine of ten topics are covered in full: tertiles are far from equal.
    assert report.strata.query("name == 'bm25' and measure == 'AP'")["n_qids"].tolist() == [15, 5, 179]


def test_topics_without_other_documents_have_no_observable_coverage(aida):
    """They have no OER: 184 of 199 topics count, in the mean and in the regression of gains on coverage."""
    pool = link_pool(aida.runs["bm25"], aida.tags["gold"], aida.qrels, cutoff=100)
    run = ConsensusEntities(pool, cutoff=K)(aida.runs["bm25"].merge(aida.topics))
    systems = {"bm25": aida.runs["bm25"], "overlap": OverlapReranker(pool, run)(aida.runs["bm25"])}
    options = {"baseline": "bm25", "data": Data(on_topics="all"), "inference": Inference(n_resamples=100)}
    report = coverage_report({"consensus": run}, pool, qrels=aida.qrels, doc_runs=systems, **options)
    assert report.pool["ObsCov"].item() == pytest.approx(0.6504, abs=5e-5)
    assert report.topics["ObsCov"].count() == 184
    gains = report.gains("overlap", "AP")
    row = gain_regressions(gains, "gain", ["ObsCov"], controls=["baseline", "n_relevant"]).iloc[0]
    assert row["coef"] == pytest.approx(0.1122, abs=5e-5)
    assert row[["n_qids", "n_undefined"]].tolist() == [184, 15]
    # Consensus ranks no entity for six of the topics.
    for result, n in ((selected_entities(run, pool), 9), (supervision_report(pool).pairs, 15)):
        undefined = result["signal"] == "undefined"
        assert undefined.equals(result["oer"].isna())
        assert result.loc[undefined, "qid"].nunique() == n
