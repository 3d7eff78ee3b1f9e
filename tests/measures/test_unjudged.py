"""Bounds of nDCG and the share of unjudged documents: published cases, real runs."""

import json

import pandas as pd
import pytest
from ir_measures import nDCG
from one_topic import discounted, one, topic_qrels, topic_run

from vbterrier import NDCGBound, Unjudged
from vbterrier.errors import ParameterError


@pytest.mark.parametrize(
    ("measure", "key", "complete"),
    [
        (NDCGBound(kind="naive") @ 10, "lower", False),
        (NDCGBound(side="upper", kind="naive") @ 10, "upper", False),
        (nDCG(judged_only=True) @ 10, "condensed", False),
        (nDCG @ 10, "true", True),
        (Unjudged @ 10, "u", False),
    ],
    ids=repr,
)
def test_published_bounds_ndcg_and_numbers_of_unjudged_documents_of_the_ance_run(
    covid, values_of, measure, key, complete
):
    expected = {qid: topic[key] / (10 if key == "u" else 1) for qid, topic in covid.expected.items()}
    qrels = covid.complete if complete else covid.incomplete
    assert values_of(measure, qrels, covid.runs["ance"]) == pytest.approx(expected, abs=1e-9)


def test_guaranteed_bounds_contain_complete_scores_and_the_naive_mean_is_published(covid, values_of, theirs):
    truth = {qid: topic["true"] for qid, topic in covid.expected.items()}
    low, high = (
        values_of(NDCGBound(side=side, max_grade=2) @ 10, covid.incomplete, covid.runs["ance"])
        for side in ("lower", "upper")
    )
    assert all(low[qid] - 1e-9 <= truth[qid] <= high[qid] + 1e-9 for qid in truth)
    # Table 7 of the paper.
    naive = NDCGBound(side="upper", kind="naive") @ 10
    naive = naive.calc_aggregate(*map(theirs, (covid.incomplete, covid.runs["ance"])))
    assert naive == pytest.approx(0.8527, abs=5e-5)


@pytest.mark.parametrize("name", ["ance", "BBGhelani2"])
@pytest.mark.parametrize("k", [5, 10])
def test_the_naive_lower_bound_is_ndcg_on_real_runs(covid, values_of, name, k):
    run = covid.runs[name]
    qrels = covid.incomplete[covid.incomplete["qid"].isin(run["qid"])]
    expected = values_of(nDCG @ k, qrels, run)
    assert len(expected) == {"ance": 50, "BBGhelani2": 30}[name]
    assert values_of(NDCGBound(kind="naive") @ k, qrels, run) == pytest.approx(expected, abs=1e-9)
    assert values_of(NDCGBound(kind="rbp", max_grade=2) @ k, qrels, run) == pytest.approx(expected, abs=1e-9)


def test_unjudged_is_a_share_of_what_each_topic_retrieved(values_of):
    qrels = pd.concat([topic_qrels({"a": 1}, "short"), topic_qrels({"a": 1}, "long"), topic_qrels({"a": 1}, "none")])
    run = pd.concat([topic_run(["new", "a"], "short"), topic_run(["a", "b", "c", "d", "e"], "long")])
    for k, expected in ((10, 0.8), (5, 0.8), (2, 0.5)):
        assert values_of(Unjudged @ k, qrels, run) == {"short": 0.5, "long": expected, "none": 0.0}


# Bounds


BOUNDS = {
    **{f"{kind}_{side}": (side, kind) for kind in ("naive", "rbp", "guaranteed") for side in ("lower", "upper")},
    "posthoc_lower": ("lower", "posthoc"),
}


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("gain", "dcg"), [("linear", "log2"), ("exp", "exp-log2")])
def test_published_cases_of_every_bound(shared_data, bound, gain, dcg):
    cases = json.loads((shared_data / "trec-covid" / "bound_examples.json").read_text())["tiny_bound_examples"]
    assert len(cases) == 10
    side, kind = BOUNDS[bound]
    for case in cases:
        rest = list(case["pool"])
        for grade in case["ranking"]:
            if grade is not None:
                rest.remove(grade)
        labels = {f"r{i}": grade for i, grade in enumerate(case["ranking"]) if grade is not None}
        labels |= {f"p{i}": grade for i, grade in enumerate(rest)}
        run = topic_run([f"r{i}" for i in range(len(case["ranking"]))])
        measure = NDCGBound(side=side, kind=kind, dcg=dcg, max_grade=case["G"]) @ case["k"]
        assert one(measure, topic_qrels(labels), run) == pytest.approx(case[gain][bound], abs=1e-9)


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_all_kinds_but_the_naive_one_need_the_highest_grade(side):
    qrels, run = topic_qrels({"a": 1, "b": 2}), topic_run(["new", "a"])
    for kind in ("rbp", "guaranteed", "posthoc"):
        with pytest.raises(ParameterError, match=r"give the highest grade of the scale.*NDCGBound\(max_grade=2\)"):
            one(NDCGBound(side=side, kind=kind) @ 2, qrels, run)
    measure = NDCGBound(side=side, kind="naive") @ 2
    assert one(measure, qrels, run) == one(measure(max_grade=2), qrels, run)


def test_the_highest_grade_is_the_gain_of_unjudged_documents():
    qrels, run = topic_qrels({"a": 1, "b": 2}), topic_run(["new", "a"])
    measure = NDCGBound(side="upper", kind="rbp") @ 2
    expected = discounted([2, 1]) / discounted([2, 2])
    assert one(measure(max_grade=2), qrels, run) == pytest.approx(expected, abs=1e-12)
    assert one(measure(max_grade=4), qrels, run) == pytest.approx(discounted([4, 1]) / discounted([4, 2]), abs=1e-12)
    with pytest.raises(ParameterError, match="max_grade=1: qrels hold grade 2; give at least that"):
        one(measure(max_grade=1), qrels, run)
