"""gdeval, TrecTools, scikit-learn and trec_eval in other roles, on what ndeval and trec_eval alone do not have."""

import shutil
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pytest
from night import at_night
from sklearn.metrics import precision_recall_fscore_support

import vbterrier
from vbterrier import BERR, BNDCG, BRBP
from vbterrier.measures import LINKING, NonRelCov, RelCov
from vbterrier.settings import Inference

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")]
RENAMED = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
@pytest.mark.parametrize("k", [5, 20])
def test_graded_err_and_exponential_ndcg_with_nothing_unjudged_are_gdevals(peers, adhoc, k):
    run = adhoc.run.merge(adhoc.qrels[["qid", "docno"]])
    # It sorts as it likes: no ties; and it knows no label below zero, and topics by numbers.
    placed = vbterrier.frames.ranked(run)
    placed = placed.assign(score=-placed["rank"].astype(float), qid=placed["qid"].str[1:])
    qrels = adhoc.qrels.assign(label=adhoc.qrels["label"].clip(0), qid=adhoc.qrels["qid"].str[1:])
    theirs = [ir_measures.ERR @ k, ir_measures.nDCG(dcg="exp-log2") @ k]
    metrics = ir_measures.iter_calc(theirs, qrels.rename(columns=RENAMED), placed.rename(columns=RENAMED))
    expected = pd.DataFrame([(m.query_id, str(m.measure), m.value) for m in metrics]).pivot(index=0, columns=1)[2]
    assert len(expected) > 1800
    ours = [BERR(prior="pool") @ k, BNDCG(dcg="exp-log2", prior="pool") @ k]
    result = peers.scored(placed, qrels, ours).loc[expected.index.sort_values(), list(map(str, ours))]
    # It prints five places.
    assert peers.largest_difference(result, expected.sort_index()[list(map(str, theirs))]) <= 1.01e-5


@pytest.mark.parametrize(("p", "k"), [(0.5, 5), at_night(0.8, 10), at_night(0.95, 20)])
def test_rbp_and_its_residual_are_those_of_trectools(peers, adhoc, p, k):
    from trectools import TrecEval, TrecQrel, TrecRun

    placed = vbterrier.frames.ranked(adhoc.run)
    placed = placed[placed["qid"].isin(adhoc.qrels["qid"])]
    run, qrels = TrecRun(), TrecQrel()
    run.run_data = placed.assign(q0="Q0", system="x", score=-placed["rank"].astype(float)).rename(
        columns={"qid": "query", "docno": "docid"}
    )
    qrels.qrels_data = adhoc.qrels.rename(columns={"qid": "query", "docno": "docid", "label": "rel"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base, residual = TrecEval(run, qrels).get_rbp(p=p, depth=k, per_query=True)
    topics = sorted(adhoc.qrels["qid"].unique())
    base = base.reindex(topics).fillna(0.0)
    lower = BRBP(p=p, rel=1, prior={0: 1.0}, cutoff=k)
    result = peers.scored(adhoc.run, adhoc.qrels, [lower])
    assert peers.largest_difference(result, base) <= 1e-12
    # Every statistic lies between the score of the judged part and what the unjudged could add.
    unjudged = placed[placed["rank"] < k].merge(adhoc.qrels, how="left")
    unjudged = unjudged[unjudged["label"].isna()]
    most = ((1 - p) * p ** unjudged["rank"]).groupby(unjudged["qid"]).sum().reindex(topics).fillna(0.0)
    # Theirs counts what lies below the cutoff too.
    listed = base.index.isin(residual.index) & base.index.isin(run.run_data["query"])
    theirs = (residual.reindex(topics).iloc[:, 0] - p**k)[listed].dropna()
    assert np.abs(theirs - most[theirs.index]).max() <= 1e-12
    assert len(theirs) > 1000
    stats = [BRBP(p=p, rel=1, prior="pool", stat=stat, cutoff=k) for stat in ("q0", "mean", "q100")]
    between = peers.scored(adhoc.run, adhoc.qrels, stats).sub(base.iloc[:, 0], axis=0)
    assert (between >= -1e-12).all(axis=None)
    assert between.le(most + 1e-12, axis=0).all(axis=None)


def test_figures_of_linking_are_those_of_classification():
    """An entity is a class: link precision and recall are micro averages over all classes but NIL."""
    rng = np.random.default_rng(5)
    entities = ["A", "B", "C", "D", "NIL"]
    for _ in range(2):
        n = int(rng.integers(5, 40))
        gold = pd.DataFrame({"qid": [f"q{i}" for i in range(n)], "entity_id": rng.choice(entities, n)})
        gold.loc[:1, "entity_id"] = ["A", "NIL"]
        systems = {}
        for name in range(25):
            right = rng.random(n) < rng.random()
            systems[f"s{name}"] = gold.assign(
                entity_id=np.where(right, gold["entity_id"], rng.choice(entities, n)).astype(str)
            )
            systems[f"s{name}"].loc[:1, "entity_id"] = ["NIL", "A"] if name % 2 else ["A", "NIL"]
        averages = vbterrier.score(systems, gold, list(LINKING), inference=Inference(n_resamples=2)).means()
        for name, system in systems.items():
            expected = {}
            for kind, labels in (("Link", entities[:-1]), ("Nil", ["NIL"])):
                precision, recall, f1, _ = precision_recall_fscore_support(
                    gold["entity_id"], system["entity_id"], labels=labels, average="micro", zero_division=0
                )
                expected |= {f"{kind}P": precision, f"{kind}R": recall} | ({"LinkF1": f1} if kind == "Link" else {})
            expected["LinkingR"] = (gold["entity_id"] == system["entity_id"]).mean()
            share = (gold["entity_id"] == "NIL").mean()
            precision = expected["LinkingP"] = (1 - share) * expected["LinkP"] + share * expected["NilP"]
            both = precision + expected["LinkingR"]
            expected["LinkingF1"] = 2 * precision * expected["LinkingR"] / both if both else 0.0
            assert averages.loc[name].to_dict() == pytest.approx(expected, abs=1e-12)


def test_coverage_of_documents_is_trec_evals_success_with_documents_as_topics(peers):
    """A document is covered when the run of entities finds one of its entities."""
    rng = np.random.default_rng(6)
    n_topics, n_docs, n_entities = 300, 12, 15
    topic, document, entity = np.nonzero(rng.random((n_topics, n_docs, n_entities)) < 0.15)
    links = pd.DataFrame({"topic": topic, "rank": document, "entity_id": [f"E{e}" for e in entity]})
    labels = rng.integers(0, 2, (n_topics, n_docs))
    labels[:, :2] = [0, 1]
    every = pd.DataFrame({"topic": np.repeat(range(n_topics), n_docs), "rank": np.tile(range(n_docs), n_topics)})
    links = every.merge(links, how="left").assign(weight=1.0)
    links["entity_id"] = links["entity_id"].astype(object).where(links["entity_id"].notna(), None)
    links["label"] = labels[links["topic"], links["rank"]]
    links = links.assign(qid="q" + links["topic"].astype(str), docno="d" + links["rank"].astype(str))
    topic, entity = np.nonzero(rng.random((n_topics, n_entities)) < 0.5)
    run = pd.DataFrame({"qid": [f"q{t}" for t in topic], "docno": [f"E{e}" for e in entity]})
    run["score"] = rng.integers(0, 4, len(run)).astype(float)
    # Documents without entities are topics with judgments too.
    qrels = links.assign(docno=links["entity_id"].fillna("none"), label=1, pair=links["qid"] + "|" + links["docno"])
    lists = links[["qid", "docno"]].drop_duplicates()
    lists = lists.assign(pair=lists["qid"] + "|" + lists["docno"])[["qid", "pair"]].merge(run, on="qid")
    names = ["success_1", "success_5", "success_10"]
    covered = peers.trec_eval(
        qrels.assign(qid=qrels["pair"]),
        lists.assign(qid=lists["pair"]),
        [name.replace("_", ".") for name in names],
    )
    of_documents = links[["qid", "docno", "label"]].drop_duplicates()
    of_documents.index = pd.Index(of_documents["qid"] + "|" + of_documents["docno"])
    for name in names:
        k = int(name.rpartition("_")[2])
        for measure, label in ((RelCov @ k, 1), (NonRelCov @ k, 0)):
            some = of_documents[of_documents["label"] == label]
            expected = covered[name].reindex(some.index).groupby(some["qid"].to_numpy()).mean().sort_index()
            result = peers.scored(run, links.drop(columns="topic"), [measure])
            assert peers.largest_difference(result, expected.to_frame()) <= 1e-12
