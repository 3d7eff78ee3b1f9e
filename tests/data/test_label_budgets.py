"""Audits compared with LARA and PRECISE at equal budgets, and what defines these two."""

import warnings

import numpy as np
import pandas as pd
import pytest
from label_budgets import lara, precise, rows, trec_dl19

import vbterrier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(0)
    qrels = pd.DataFrame({"qid": np.repeat([f"q{i}" for i in range(6)], 200), "docno": [*map(str, range(200))] * 6})
    qrels["label"] = rng.choice([0, 0, 1, 2], len(qrels))
    return qrels, qrels.assign(label=np.minimum(qrels["label"] + (rng.random(len(qrels)) < 0.3), 2))


def test_lara_spends_its_budget_on_human_grades_and_predicts_the_others(pool):
    qrels, labels = pool
    assert lara(qrels, labels, len(qrels), 0)["label"].tolist() == qrels["label"].tolist()
    assert lara(qrels, labels, 0, 0)["label"].tolist() == labels["label"].tolist()
    result = lara(qrels, labels, 300, 0)
    # Labels of 1 are raised from 0 more often than they are right, and labels of 2 are mostly right.
    grade = {label: qrels["label"][labels["label"] == label].mode().item() for label in range(3)}
    is_predicted = result["label"] == labels["label"].map(grade)
    is_human = result["label"] == qrels["label"]
    assert (is_predicted | is_human).all()
    assert (~is_predicted).sum() <= 300
    assert is_human.sum() > (labels["label"] == qrels["label"]).sum()


def test_precise_has_no_error_with_a_perfect_judge_and_is_the_sample_without_one():
    rng = np.random.default_rng(1)
    human = rng.random((40, 3))
    judged = np.arange(40) < 10
    value, half = precise(human, human, judged)
    assert value == pytest.approx(human.mean(axis=0))
    assert half == pytest.approx(np.zeros(3), abs=1e-12)
    value, half = precise(human, np.ones((40, 3)), judged)
    assert value == pytest.approx(human[judged].mean(axis=0))
    assert half == pytest.approx(1.6449 * np.sqrt(0.75 * human[judged].var(axis=0, ddof=1) / 10), rel=1e-4)
    # A constant error of the judge is removed.
    value, half = precise(human, human - 0.2, judged)
    assert value == pytest.approx(human.mean(axis=0))


@pytest.mark.nightly
def test_an_audit_has_smaller_errors_than_lara_and_precise_with_the_labels_of_a_biased_model(shared_data):
    labels = vbterrier.frames.read_labels(shared_data / "trec_dl19" / "labels.llama3-8b-criteria.txt.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pd.DataFrame(rows(trec_dl19(shared_data), labels, "llama3-8b", 0.1, range(3))).set_index("method")
    for what in ("means", "differences"):
        error, covered = table[f"RMSE, {what}"], table[f"covered, {what}"]
        assert error["corrected"] < 0.9 * error[["LARA", "PRECISE"]].min()
        assert covered["corrected"] > 0.85 > covered["PRECISE"]
