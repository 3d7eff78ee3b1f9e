"""Judgments of subtopics through score: against ndeval, and our measures by what ndeval and trec_eval say of parts."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier import BERR, BRBP

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
NAMES = {
    "alpha_nDCG@10": "alpha-nDCG@10",
    "alpha_DCG@5": "alpha-DCG@5",
    "ERR_IA@20": "ERR-IA@20",
    "nERR_IA@5": "nERR-IA@5",
    "P_IA@10": "P-IA@10",
    "StRecall@5": "strec@5",
    "NRBP": "NRBP",
    "AP_IA": "MAP-IA",
}
GAINS = ("binary", "dcg")
CUTOFFS = (1, 5, 10)


def judged(peers, case):
    """The case, without topics that ndeval has no words for: those without any relevant document."""
    relevant = case.qrels.loc[case.qrels["label"] > 0, "qid"].unique()
    return case.qrels[case.qrels["qid"].isin(relevant)]


def subtopics(qrels, run):
    """Every subtopic as a topic of its own: binary judgments, and the list of its topic."""
    made = qrels.assign(qid=qrels["qid"] + "|" + qrels["iteration"], label=(qrels["label"] > 0).astype(int))
    lists = qrels[["qid", "iteration"]].drop_duplicates().merge(run, on="qid")
    return made, lists.assign(qid=lists["qid"] + "|" + lists["iteration"])


def gains_of(peers, qrels, run):
    """By trec_eval, a row a subtopic: whether it is covered at k, and its nDCG@k."""
    names = [f"{name}_{k}" for name in ("success", "ndcg_cut") for k in CUTOFFS]
    result = peers.trec_eval(*subtopics(qrels, run), [f"{n[: n.rindex('_')]}.{n[n.rindex('_') + 1 :]}" for n in names])
    topic = result.index.str.rsplit("|", n=1).str
    return {
        (gain, k): pd.DataFrame({"qid": topic[0], "entity_id": topic[1], "gain": result[f"{name}_{k}"].to_numpy()})
        for gain, name in zip(GAINS, ("success", "ndcg_cut"), strict=True)
        for k in CUTOFFS
    }


def expected_of(gains, prob):
    """ES, the variances, VB and TopIntent of each topic, from the gain and the probability of every intent."""
    table = gains.merge(prob, on=["qid", "entity_id"])
    top = table[table["prob"] >= table.groupby("qid")["prob"].transform("max") - 1e-12]
    table = table.assign(first=table["prob"] * table["gain"], second=table["prob"] * table["gain"] ** 2)
    sums = table.groupby("qid")[["first", "second"]].sum()
    es, variance = sums["first"], sums["second"] - sums["first"] ** 2
    bernoulli = es * (1 - es)
    return pd.DataFrame(
        {
            "ES": es,
            "VB": es - np.sqrt(bernoulli.clip(0)),
            "VB(variance='intent')": es - np.sqrt(variance.clip(0)),
            "TopIntent": top.groupby("qid")["gain"].mean(),
        }
    ).sort_index()


def found_of(peers, run, qrels, gain, k, **options):
    texts = ["ES({})", "VB({})", "VB({},variance='intent')", "TopIntent({})"]
    measures = vbterrier.measures_from(*(f"{text.format(f'gain={gain!r}')}@{k}" for text in texts))
    return peers.scored(run, qrels, measures, **options)[[str(measure) for measure in measures]]


def assert_ours_are_sums_over_parts(peers, case):
    gains = gains_of(peers, case.qrels, case.run)
    uniform = case.qrels[["qid", "iteration"]].drop_duplicates().rename(columns={"iteration": "entity_id"})
    uniform["prob"] = 1 / uniform.groupby("qid")["entity_id"].transform("size")
    for (gain, k), table in gains.items():
        result = found_of(peers, case.run, case.qrels, gain, k)
        # A variance of rounding alone is a deviation of its root.
        assert peers.largest_difference(result, expected_of(table, uniform)) <= 1e-7
        es = [column for column in result if column.startswith("ES")]
        assert peers.largest_difference(result[es], expected_of(table, uniform)[["ES"]]) <= 1e-12


@pytest.mark.nightly
def test_scores_of_random_topics_are_ndevals(peers, diverse):
    qrels = judged(peers, diverse)
    assert qrels["qid"].nunique() > 900
    result = peers.scored(diverse.run, qrels, list(NAMES))[list(NAMES)]
    expected = peers.ndeval(qrels, diverse.run, NAMES.values())[list(NAMES.values())]
    assert peers.largest_difference(result, expected) <= 1e-12


@pytest.mark.slow
def test_scores_of_real_runs_are_ndevals(peers, web):
    names = {ours: NAMES[ours] for ours in ("alpha_nDCG@10", "nERR_IA@5", "NRBP")}
    result = peers.scored(web.run, web.qrels, list(names))[list(names)]
    expected = peers.ndeval(web.qrels, web.run, names.values())[list(names.values())]
    assert peers.largest_difference(result, expected) <= 1e-12


def test_success_of_subtopics_is_subtopic_recall(peers, diverse):
    qrels = judged(peers, diverse)
    result = peers.scored(diverse.run, qrels, ["ES@5", "ES@10"])[["ES@5", "ES@10"]]
    expected = peers.ndeval(qrels, diverse.run, ["strec@5", "strec@10"])
    # ndeval leaves out subtopics that no document covers; here they count.
    n_all = qrels.groupby("qid")["iteration"].nunique().sort_index()
    n_covered = qrels[qrels["label"] > 0].groupby("qid")["iteration"].nunique().sort_index()
    assert (n_covered < n_all).sum() > 50
    assert peers.largest_difference(result.mul(n_all, axis=0), expected.mul(n_covered, axis=0)) <= 1e-12


@pytest.mark.slow
def test_measures_of_intents_are_sums_over_trec_evals_of_each_subtopic(peers, diverse):
    assert_ours_are_sums_over_parts(peers, diverse)


@pytest.mark.slow
def test_measures_of_intents_are_sums_over_trec_evals_of_each_subtopic_on_real_runs(peers, web):
    assert_ours_are_sums_over_parts(peers, web)


def test_intents_with_probabilities_weigh_trec_evals_of_each(peers, diverse):
    rng = np.random.default_rng(3)
    intents = diverse.qrels[["qid", "iteration"]].drop_duplicates().rename(columns={"iteration": "entity_id"})
    intents["prob"] = rng.gamma(0.7, size=len(intents))
    intents["prob"] /= intents.groupby("qid")["prob"].transform("sum")
    tags = diverse.qrels[diverse.qrels["label"] > 0].rename(columns={"iteration": "entity_id"})
    tags = tags[["qid", "docno", "entity_id"]].assign(weight=1.0)
    for (gain, k), table in gains_of(peers, diverse.qrels, diverse.run).items():
        result = found_of(peers, diverse.run, None, gain, k, intents=intents, tags=tags)
        assert peers.largest_difference(result, expected_of(table, intents)) <= 1e-7


# Powers of two, with which equal gains are equal numbers in ndeval, too.
@pytest.mark.parametrize("alpha", [0.5, 0.75])
@pytest.mark.slow
def test_weighted_measures_of_equal_intents_are_ndevals(peers, diverse, alpha):
    """ndeval leaves out subtopics that no document covers; here all intents count."""
    qrels = judged(peers, diverse)
    covered = qrels[qrels.groupby(["qid", "iteration"])["label"].transform("max") > 0]
    ours = [f"WeightedAlphaNDCG(alpha={alpha})@{k}" for k in (5, 10, 20)]
    result = peers.scored(diverse.run, covered, ours)[[str(one) for one in vbterrier.measures_from(*ours)]]
    expected = peers.ndeval(covered, diverse.run, [f"alpha-nDCG@{k}" for k in (5, 10, 20)], alpha=alpha)
    assert peers.largest_difference(result, expected) <= 1e-12
    result = peers.scored(diverse.run, covered, [f"WeightedERRIA(alpha={alpha})@{k}" for k in (5, 10, 20)])
    expected = peers.ndeval(covered, diverse.run, [f"ERR-IA@{k}" for k in (5, 10, 20)], alpha=alpha)
    columns = [name for k in (5, 10, 20) for name in result if name.endswith(f"@{k}")]
    assert peers.largest_difference(result[columns], expected[[f"ERR-IA@{k}" for k in (5, 10, 20)]]) <= 1e-12
    result = peers.scored(diverse.run, covered, [f"WeightedNRBP(alpha={alpha})"])
    assert peers.largest_difference(result, peers.ndeval(covered, diverse.run, ["NRBP"], alpha=alpha)) <= 1e-12


def test_recall_of_covered_intents_is_ndevals_subtopic_recall(peers, diverse):
    qrels = judged(peers, diverse)
    covered = qrels[qrels.groupby(["qid", "iteration"])["label"].transform("max") > 0]
    result = peers.scored(diverse.run, covered, ["IRec@5", "IRec@20"])[["IRec@5", "IRec@20"]]
    assert peers.largest_difference(result, peers.ndeval(covered, diverse.run, ["strec@5", "strec@20"])) <= 1e-12


def test_global_gains_of_one_intent_are_trec_evals_ndcg(peers, adhoc):
    """With one intent, the global gain is the label, and D-nDCG is nDCG."""
    measures = {k: vbterrier.measures.DNDCG @ k for k in (5, 20)}
    intents = adhoc.qrels[["qid"]].drop_duplicates().assign(entity_id="1", prob=1.0)
    tags = adhoc.qrels[adhoc.qrels["label"] > 0].assign(entity_id="1")
    tags["weight"] = tags["label"] / tags["label"].max()
    tags = tags[["qid", "docno", "entity_id", "weight"]]
    result = peers.scored(adhoc.run, None, measures.values(), intents=intents, tags=tags)
    expected = peers.trec_eval(adhoc.qrels, adhoc.run, ["ndcg_cut.5", "ndcg_cut.20"])
    ours, theirs = result[[str(one) for one in measures.values()]], expected[["ndcg_cut_5", "ndcg_cut_20"]]
    assert peers.largest_difference(ours, theirs) <= 1e-12


# One subtopic alone: measures of ordinary judgments that trec_eval does not have.


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_rbp_with_nothing_unjudged_is_nrbp_without_novelty(peers, adhoc, p):
    run = adhoc.run.merge(adhoc.qrels[["qid", "docno"]])
    qrels = adhoc.qrels.assign(iteration="1")
    relevant = qrels[qrels["label"] > 0]["qid"].unique()
    qrels = qrels[qrels["qid"].isin(relevant)]
    expected = peers.ndeval(qrels, run, ["NRBP"], alpha=0.0, beta=p)
    measures = [BRBP(p=p, rel=1, prior="pool", stat=stat) for stat in ("mean", "median", "q5")]
    result = peers.scored(run, qrels.drop(columns="iteration"), measures)
    for measure in measures:
        assert peers.largest_difference(result[[str(measure)]], expected) <= 1e-9


def test_err_with_nothing_unjudged_is_err_of_the_only_subtopic(peers, adhoc):
    run = adhoc.run.merge(adhoc.qrels[["qid", "docno"]])
    binary = adhoc.qrels.assign(iteration="1", label=(adhoc.qrels["label"] > 0).astype(int))
    binary = binary[binary["qid"].isin(binary.loc[binary["label"] > 0, "qid"])]
    measures = {k: BERR(max_grade=1, prior="pool") @ k for k in (5, 20)}
    result = peers.scored(run, binary.drop(columns="iteration"), measures.values())
    for k, measure in measures.items():
        # ndeval divides by the score of k relevant documents.
        most = sum(0.5**place / place for place in range(1, k + 1))
        expected = peers.ndeval(binary, run, [f"ERR-IA@{k}"]) * most
        assert peers.largest_difference(result[[str(measure)]], expected) <= 1e-12
