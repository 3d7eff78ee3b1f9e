"""AIDA-CoNLL: what labels of entities from labels of documents keep and lose, and the report of the pool.

A document is relevant to an ambiguous name when it uses the name for the entity that is mostly meant; the pool is
BM25's first 100.
"""

import json
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.supervision import supervision_report
from vbterrier.evaluate.coverage import coverage_report
from vbterrier.frames.ranking import ranked


@pytest.fixture(scope="module")
def judged(aida):
    """Documents that use a name for the entity that it mostly means; of equals the first."""
    topics = [json.loads(line) for line in (aida.folder / "topics.jsonl").read_text(encoding="utf-8").splitlines()]
    meant = [(topic["qid"], max(topic["intents"], key=lambda intent: intent["p"])["intent"]) for topic in topics]
    named = ["qid", "iteration", "docno", "label"]
    qrels = pd.read_csv(aida.folder / "qrels.intents.txt", sep=" ", names=named, dtype=str, keep_default_na=False)
    kept = qrels.merge(pd.DataFrame(meant, columns=["qid", "iteration"]))
    return kept.assign(label=kept["label"].astype(int))[["qid", "docno", "label"]]


def partitions(run, tags, judged):
    """The paper's rule by loops: topic -> partition -> entities."""
    entities, relevant = defaultdict(set), set(judged[["qid", "docno"]].itertuples(index=False, name=None))
    for docno, entity in tags[["docno", "entity_id"]].itertuples(index=False):
        entities[docno].add(entity)
    found = {}
    for qid, group in ranked(run, 100).groupby("qid", sort=False):
        sides = [set(), set()]
        for docno in group["docno"]:
            sides[(qid, docno) in relevant] |= entities[docno]
        other, mine = sides
        found[qid] = {"positive": mine - other, "negative": other - mine, "common": mine & other}
    return found


def test_supervision_equals_loops(aida, judged):
    expected = partitions(aida.runs["bm25"], aida.tags["gold"], judged)
    report = supervision_report(link_pool(aida.runs["bm25"], aida.tags["gold"], judged, cutoff=100))
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


def test_the_report_holds_the_coverage_of_consensus_entities(aida, judged):
    pool = link_pool(aida.runs["bm25"], aida.tags["gold"], judged, cutoff=100)
    run = ConsensusEntities(pool, cutoff=20)(aida.runs["bm25"].merge(aida.topics))
    report = coverage_report({"consensus": run}, pool, judged, aida.runs, on_topics="all", n_resamples=200)
    found = report.entities.set_index("measure")
    assert found.loc[["NonRelCov@20", "DiscRatio@20"], "value"].tolist() == pytest.approx([0.7233, 1.298], abs=5e-4)
    assert found.loc[["RelCov@20", "NonRelCov@20", "DiscRatio@20"], "n_qids"].tolist() == [199, 184, 184]
    # In 15 topics every document of the pool is relevant: no ratio, but coverage.
    both = report.values.pivot(index="qid", columns="measure", values="value").dropna(subset="NonRelCov@20")
    assert both["RelCov@20"].mean() == pytest.approx(0.9392, abs=5e-5)
    assert report.pool["n_without_other"].item() == 15
    # Nine of ten topics are covered in full: tertiles are far from equal.
    assert report.strata.query("name == 'bm25' and measure == 'AP'")["n_qids"].tolist() == [15, 5, 179]
