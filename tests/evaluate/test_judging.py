"""Selection of documents to judge, and its effect on real data."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import InputError
from vbterrier.evaluate.judging import judge_next
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.incomplete import leave_group_out

# The prior of the paper: fast, and with infinite strength.
MEASURE = "BNDCG(prior='pool+run')@10"
QRELS = pd.DataFrame({"qid": ["q1"] * 32 + ["q2"] * 32, "docno": [f"j{i}" for i in range(32)] * 2})
QRELS["label"] = [1, 0, 2, 1, 0, 1, 0, 2] * 8


def a_run(q1, q2):
    rows = [
        (qid, docno, -rank) for qid, result in (("q1", q1), ("q2", q2)) for rank, docno in enumerate(result.split())
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


RUNS = {"mine": a_run("n1 j0 n2 j1", "j0 n3"), "other": a_run("j0 n1 n2 n4", "j1 n3")}


def planned(runs=RUNS, qrels=QRELS, n=10, measure=MEASURE, **options):
    return judge_next(runs, qrels, measure, budget=n, **options)


def test_the_width_is_that_of_the_interval_of_score():
    result = planned({"mine": RUNS["mine"]}, inference=Inference(level=0.8))
    values = vbterrier.score({"mine": RUNS["mine"]}, QRELS, [MEASURE], inference=Inference(level=0.8)).intervals
    row = values[values["method"] == "unjudged (normal)"].iloc[0]
    assert result.width_before == pytest.approx(row["high"] - row["low"])
    assert result.measure == str(*vbterrier.measures_from(MEASURE))


def test_the_order_of_runs_changes_nothing_but_who_is_named():
    columns = ["qid", "docno", "rank", "n_runs", "worth"]
    turned = {name: RUNS[name].sample(frac=1, random_state=1) for name in reversed(RUNS)}
    pd.testing.assert_frame_equal(planned(turned).documents[columns], planned().documents[columns])


def test_a_smaller_budget_is_the_beginning_of_a_larger_one():
    whole = planned(n=100)
    assert len(whole) == whole.n_unjudged == 4
    assert planned(n=2).documents.equals(whole.documents.head(2))
    assert whole.width_after == 0


def test_the_statistic_of_the_measure_counts_for_nothing():
    assert planned(measure="BNDCG(prior='pool+run',stat='q5')@10").documents.equals(planned().documents)


def test_a_difference_is_about_two_runs_alone():
    more = {**RUNS, "third": a_run("n9 n8", "n7")}
    result = planned(more, difference=("other", "mine"))
    assert result.documents.equals(planned(difference=("other", "mine")).documents)
    assert "n9" not in set(result.documents["docno"])
    assert result.difference == ("other", "mine")
    reasons = dict(zip(result.documents["docno"], result.documents["reason"], strict=True))
    assert reasons["n1"].startswith("rank 1 of mine, rank 2 of other; ")
    assert reasons["n4"].startswith("rank 4 of other, beyond the cutoff of mine; ")
    # n2 and n3 have the same rank in both runs; with infinite strength their judgments change nothing.
    assert set(result.documents["docno"]) == {"n1", "n4"}


def test_runs_with_different_topics_are_refused_unless_asked_for():
    runs = {**RUNS, "short": RUNS["mine"].query("qid == 'q1'")}
    with pytest.raises(InputError, match="different topics"):
        planned(runs)
    assert set(planned(runs, data=Data(on_topics="all")).documents["qid"]) == {"q1", "q2"}
    assert set(planned(runs, data=Data(on_topics="common")).documents["qid"]) == {"q1"}


# Real judgments: planned judging compared with pool order (all first ranks, then all second ranks...).


def ratios(run, left, complete):
    """Widths after a quarter and a half of the documents get their real judgments, planned / in pool order."""
    top = vbterrier.frames.ranked(run, 10).merge(left, on=["qid", "docno"], how="left")
    topics = {qid: place for place, qid in enumerate(dict.fromkeys(left["qid"]))}
    unjudged = top[top["label"].isna() & top["qid"].isin(topics)]
    pool = unjudged.assign(place=unjudged["qid"].map(topics)).sort_values(["rank", "place"])
    plan = planned({"run": run}, left, 10_000).documents
    assert len(plan.merge(pool, on=["qid", "docno"])) == len(plan)

    def width(chosen):
        judged = pd.concat([left, complete.merge(chosen[["qid", "docno"]], on=["qid", "docno"])])
        return planned({"run": run}, judged, 1).width_before

    budgets = [round(share * len(pool)) for share in (0.25, 0.5)]
    return [width(plan.head(n)) / width(pool.head(n)) for n in budgets]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*places are tied:vbterrier.errors.DegenerateWarning")
def test_judging_as_planned_narrows_more_than_judging_by_rank_on_trec_web(shared_data):
    folder = shared_data / "trec_web_diversity"
    diversity = vbterrier.read_qrels(folder / "qrels.2012.diversity.gz")
    qrels = vbterrier.frames.flatten_qrels(diversity)[["qid", "docno", "label"]]
    condense = vbterrier.Condense(qrels)
    names = ("indri-ql-catb-filtered", "indri-ql-cata", "indri-rm-cata-filtered", "dssa-indri")
    runs = {name: condense.transform(vbterrier.read_run(folder / "runs" / f"{name}.2012.run.gz")) for name in names}
    results = [
        ratios(runs[names[0]], left[["qid", "docno", "label"]], qrels)
        for _, left, names, _ in leave_group_out(runs, qrels, cutoff=10)
    ]
    # Measured under this prior: .91 and .80; random orders are at 1.27 and more.
    assert (np.mean(results, axis=0) < (0.95, 0.87)).all()


def test_judging_as_planned_narrows_more_than_judging_by_rank_on_trec_covid(shared_data):
    folder = shared_data / "trec-covid"
    left, complete = (
        vbterrier.read_qrels(folder / f"qrels.{name}.txt.gz")[["qid", "docno", "label"]]
        for name in ("incomplete", "complete")
    )
    run = vbterrier.read_run(folder / "run.ance.top100.txt.gz")
    assert (np.array(ratios(run, left, complete)) < (0.995, 0.97)).all()
