"""Thousands of topics through score, against pytrec_eval's own call: its measures, and ours with nothing unjudged."""

import numpy as np
import pandas as pd
import pytest
from night import at_night

import vbterrier
from vbterrier import BAP, BNDCG, BP, BQ

pytestmark = pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
EXACT = 1e-12
# What ir_measures calls it, and trec_eval.
NAMES = {
    **{f"nDCG@{k}": f"ndcg_cut_{k}" for k in (1, 3, 10, 100)},
    "nDCG": "ndcg",
    **{f"{ours}@{k}": f"{theirs}_{k}" for ours, theirs in (("P", "P"), ("R", "recall")) for k in (1, 5, 20)},
    **{f"AP@{k}": f"map_cut_{k}" for k in (3, 10)},
    "AP": "map",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "infAP": "infAP",
    **{f"Success@{k}": f"success_{k}" for k in (1, 5, 10)},
    "SetP": "set_P",
    "SetR": "set_recall",
    "NumRet": "num_ret",
    "NumRel": "num_rel",
}


def parameter(name):
    """pytrec_eval asks for cutoffs after a dot and answers with them after an underscore."""
    stem, _, k = name.rpartition("_")
    return f"{stem}.{k}" if k.isdigit() else name


def theirs(peers, qrels, run, names, **options):
    names_once = list(dict.fromkeys(names))
    return peers.trec_eval(qrels, run, map(parameter, names_once), **options)[list(names)]


def of_all(peers, qrels, run):
    """Values of all measures; to Bpref of trec_eval alone, labels below 0 are no judgments."""
    expected = theirs(peers, qrels, run, NAMES.values())
    judged = qrels.assign(label=qrels["label"].clip(0))
    return expected.assign(bpref=theirs(peers, judged, run, ["bpref"])["bpref"])


@pytest.mark.parametrize("seed", [0, at_night(1)])
@pytest.mark.slow
def test_scores_of_random_topics_are_trec_evals(peers, seed):
    case = peers.adhoc_of(seed + 10)
    expected = of_all(peers, case.qrels, case.run)
    # Topics without a list still have relevant documents; they count as what they are not found.
    result = peers.scored(case.run, case.qrels, list(NAMES))[list(NAMES)]
    listed = result.index.isin(case.run["qid"])
    assert listed.sum() == 1960
    assert peers.largest_difference(result[listed], expected[listed]) <= EXACT
    assert (result[~listed].drop(columns="NumRel") == 0).all(axis=None)


@pytest.mark.slow
def test_scores_of_real_runs_are_trec_evals(peers, covid):
    for run in covid.runs:
        for qrels in covid.qrels:
            result = peers.scored(run, qrels, list(NAMES))[list(NAMES)]
            expected = of_all(peers, qrels, run)
            listed = result.index.isin(run["qid"])
            assert peers.largest_difference(result[listed], expected[listed]) <= EXACT


def at_level(rel):
    names = {"P({})@5": "P_5", "AP({})": "map", "AP({})@10": "map_cut_10", "RR({})": "recip_rank"}
    return {ours.format(f"rel={rel}"): theirs for ours, theirs in names.items()}, {"relevance_level": rel}


@pytest.mark.parametrize(("names", "options"), [at_level(2), at_level(3)])
def test_levels_of_relevance_are_trec_evals(peers, adhoc, names, options):
    result = peers.scored(adhoc.run, adhoc.qrels, list(names))[list(names)]
    expected = theirs(peers, adhoc.qrels, adhoc.run, names.values(), **options)
    assert peers.largest_difference(result, expected) <= EXACT


def test_condensed_runs_are_trec_evals_where_labels_below_zero_are_judgments(peers, adhoc):
    """To trec_eval a label of -1 is no judgment; here, as to the Web tracks, it is one of spam."""
    judged = adhoc.qrels.assign(label=adhoc.qrels["label"].clip(0))
    expected = theirs(peers, judged, adhoc.run, ["ndcg_cut_5", "map", "P_5"], judged_docs_only_flag=True)
    condensed = vbterrier.Condense(adhoc.qrels)(adhoc.run)
    names = ["nDCG@5", "AP", "P@5"]
    judged_only = ["nDCG(judged_only=True)@5", "AP(judged_only=True)", "P(judged_only=True)@5"]
    assert peers.largest_difference(peers.scored(adhoc.run, adhoc.qrels, judged_only)[judged_only], expected) <= EXACT
    # Nothing unjudged is left.
    ours = ["BNDCG(prior='pool')@5", "BAP(prior='pool')", "BP(prior='pool')@5"]
    result = peers.scored(condensed, adhoc.qrels, names + ours)
    assert peers.largest_difference(result[names], expected) <= EXACT
    assert peers.largest_difference(result[ours], expected) <= 1e-11


# By the level of relevance.
COUNTERPARTS = {
    1: {
        **{BNDCG @ k: f"ndcg_cut_{k}" for k in (1, 3, 10, 40)},
        BNDCG: "ndcg",
        **{BP @ k: f"P_{k}" for k in (1, 5, 20)},
        **{BAP @ k: f"map_cut_{k}" for k in (3, 10)},
        BAP: "map",
        # Without weight for gains it is AP.
        BQ(beta=0): "map",
    },
    2: {BP(rel=2) @ 5: "P_5", BAP(rel=2): "map"},
    3: {BP(rel=3) @ 5: "P_5", BAP(rel=3): "map"},
}
STATS = ("mean", "median", "mode", "q5", "lo", "hi")


# Relevance from 1 on takes four times as long as any other.
@pytest.mark.parametrize("rel", [at_night(rel) if rel == 1 else rel for rel in COUNTERPARTS])
@pytest.mark.slow
def test_with_nothing_unjudged_every_statistic_is_trec_evals(peers, adhoc, rel):
    run = adhoc.run.merge(adhoc.qrels[["qid", "docno"]])
    expected = theirs(peers, adhoc.qrels, run, COUNTERPARTS[rel].values(), relevance_level=rel)
    result = peers.scored(run, adhoc.qrels, [m(stat=stat) for m in COUNTERPARTS[rel] for stat in (*STATS, "std")])
    for stat in STATS:
        ours = result[[str(m(stat=stat)) for m in COUNTERPARTS[rel]]]
        assert peers.largest_difference(ours, expected) <= 1e-11, stat
    assert (result[[str(m(stat="std")) for m in COUNTERPARTS[rel]]] == 0).all(axis=None)
    assert ((expected > 0).sum() > 200).all()


def test_exponential_gains_are_those_of_trec_eval_on_labels_that_are_gains(peers, adhoc):
    gains = adhoc.qrels.assign(label=2 ** adhoc.qrels["label"].clip(0) - 1)
    expected = theirs(peers, gains, adhoc.run, ["ndcg_cut_5", "ndcg_cut_5"])
    measures = ["NDCGBound(kind='naive',dcg='exp-log2')@5", "BNDCG(dcg='exp-log2',prior={0: 1.0})@5"]
    result = peers.scored(adhoc.run, adhoc.qrels, vbterrier.measures_from(*measures))
    assert peers.largest_difference(result, expected) <= EXACT


@pytest.mark.slow
def test_a_prior_that_is_sure_of_grade_zero_counts_the_unjudged_as_trec_eval_does(peers, adhoc, covid):
    sure = {0: 1.0}
    ours = [m(prior=sure) for m in (BNDCG @ 5, BNDCG, BP @ 5, BAP, BAP @ 10, BQ(beta=0))]
    names = ["ndcg_cut_5", "ndcg", "P_5", "map", "map_cut_10", "map"]
    cases = [(adhoc.qrels, adhoc.run), *((qrels, run) for qrels in covid.qrels for run in covid.runs)]
    for qrels, run in cases:
        expected = theirs(peers, qrels, run, names)
        result = peers.scored(run, qrels, ours)[list(map(str, ours))]
        assert peers.largest_difference(result, expected) <= 1e-11


def test_the_share_of_unjudged_is_what_trec_eval_does_not_find_judged(peers, adhoc):
    judged = adhoc.qrels.assign(label=1)
    result = peers.scored(adhoc.run, adhoc.qrels, ["Unjudged@5", "Unjudged"])
    n_listed = adhoc.run.groupby("qid").size().reindex(result.index).fillna(0)
    hits = theirs(peers, judged, adhoc.run, ["P_5", "num_rel_ret"])
    shares = pd.DataFrame(
        {
            "whole": np.where(n_listed, 1 - hits["num_rel_ret"] / n_listed.clip(1), 0),
            "first": np.where(n_listed, 1 - 5 * hits["P_5"] / n_listed.clip(1, 5), 0),
        },
        index=result.index,
    )
    assert peers.largest_difference(result[["Unjudged", "Unjudged@5"]], shares) <= EXACT


def test_the_upper_naive_bound_is_trec_evals_of_the_best_grades_that_are_left(peers, adhoc):
    """The best grades of the pool outside the judged part, given to the unjudged by rank; the pool as it was."""
    k = 5
    top = vbterrier.frames.ranked(adhoc.run)
    top = top[top["rank"] < k].merge(adhoc.qrels, how="left")
    left = adhoc.qrels.merge(top[["qid", "docno"]], how="left", indicator=True)
    left = left[left["_merge"] == "left_only"].sort_values(["qid", "label"], ascending=[True, False])
    left["place"] = left.groupby("qid").cumcount()
    new = top[top["label"].isna()].sort_values(["qid", "rank"])
    new = new.assign(place=new.groupby("qid").cumcount())
    # An unjudged document stands for the judged one whose grade it gets.
    swapped = new.merge(left, on=["qid", "place"], suffixes=("", "_left"))
    names = swapped.set_index(["qid", "docno_left"])["docno"]
    keys = pd.MultiIndex.from_frame(adhoc.qrels[["qid", "docno"]])
    qrels = adhoc.qrels.assign(docno=names.reindex(keys).fillna(pd.Series(keys.get_level_values(1), keys)).to_numpy())
    first = adhoc.run.merge(top[["qid", "docno"]])
    expected = theirs(peers, qrels, first, [f"ndcg_cut_{k}"])
    result = peers.scored(adhoc.run, adhoc.qrels, [f"NDCGBound(side='upper',kind='naive')@{k}"])
    assert peers.largest_difference(result, expected) <= EXACT
