"""``vbterrier judge``: tables, formats, errors."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.evaluate.judging import judge_next
from vbterrier.settings import Inference

RUN = "q1 Q0 d1 1 3 t\nq1 Q0 d9 2 2 t\nq1 Q0 d2 3 1 t\nq2 Q0 d5 1 2 t\nq2 Q0 d8 2 1 t\n"
OTHER = RUN.replace("d9 2 2", "d9 2 0")
QRELS = "q1 0 d1 2\nq1 0 d2 1\nq1 0 d3 0\nq1 0 d6 2\nq2 0 d4 1\nq2 0 d5 0\nq2 0 d6 1\n"
MEASURE = "BNDCG(prior='pool')@10"
JUDGE = ["judge", "a.run", "--qrels", "qrels.txt", "-m", MEASURE, "--budget"]


@pytest.fixture(autouse=True)
def files(write_files):
    return write_files({"a.run": RUN, "b.run": OTHER, "qrels.txt": QRELS})


def summary(plan):
    return (
        f"{len(plan)} of {plan.n_unjudged} unjudged documents; 90% interval of {plan.target}: {plan.low:.4f} to "
        f"{plan.high:.4f}, width {plan.width_before:.4f}, {plan.width_after:.4f} expected after\n"
    )


def test_the_list_and_the_widths_are_printed(command):
    code, out, err = command(*JUDGE, 1)
    plan = judge_next(["a.run"], "qrels.txt", MEASURE, budget=1)
    assert (code, err) == (0, "")
    assert plan.documents["reason"].item() in out
    assert out.startswith(plan.answer().head())


def test_the_list_is_written(command, files):
    code, out, _ = command(*JUDGE, 5, "-o", "plan.tsv")
    plan = judge_next(["a.run"], "qrels.txt", MEASURE, budget=5)
    assert (code, out) == (0, f"{plan.answer().head()}\n\nplan.tsv: {summary(plan)}")
    read = pd.read_csv(files / "plan.tsv", sep="\t", dtype=str, quoting=3, na_filter=False)
    assert read.to_numpy().tolist() == plan.documents[["qid", "docno", "reason"]].to_numpy().tolist()
    assert len(read) == 2


def test_a_difference_is_of_two_named_runs(command):
    code, out, _ = command("judge", "a.run", "b.run", "-q", "qrels.txt", "-n", 3, "--difference", "a,b", "-m", MEASURE)
    plan = judge_next(["a.run", "b.run"], "qrels.txt", MEASURE, budget=3, difference=("a", "b"))
    assert code == 0
    assert out.startswith(plan.answer().verdict)
    assert "a minus b from ±" in out
    assert list(plan.documents["docno"]) == ["d9"]


def test_other_formats_hold_all_columns(command):
    _, out, _ = command(*JUDGE, 5, "-f", "json", "--level", "0.5")
    plan = judge_next(["a.run"], "qrels.txt", MEASURE, budget=5, inference=Inference(level=0.5))
    assert [row["docno"] for row in json.loads(out)] == plan.documents["docno"].tolist()
    assert set(json.loads(out)[0]) == set(plan.documents.columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*JUDGE, 2, "--difference", "a"], "--difference a: wanted the names of two runs"),
        (["judge", "a.run", "-q", "qrels.txt", "-n", 2, "-m", "nDCG@10"], "wanted a measure of the B or E family"),
    ],
)
def test_bad_usage_is_one_line(refused, options, message):
    refused(options, 2, message)


def test_each_look_has_a_wider_interval(command):
    widths = []
    for look in ([], ["--look", "1"], ["--look", "2"]):
        code, out, _ = command(*JUDGE, 1, *look)
        assert code == 0
        widths.append(float(re.search(r"from ±([\d.]+)", out)[1]))
    assert widths == sorted(set(widths))
    # The quantiles of .9, of 1 - .6/π² and of 1 - .6/(2 π)².
    quantiles = [stats.norm.ppf((1 + level) / 2) for level in (0.9, 1 - 0.6 / np.pi**2, 1 - 0.15 / np.pi**2)]
    assert np.array(widths) / widths[0] == pytest.approx(np.array(quantiles) / quantiles[0], abs=1e-3)
    assert "at look 2, valid for all looks together" in " ".join(out.split())
