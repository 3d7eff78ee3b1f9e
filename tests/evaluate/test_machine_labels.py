"""The quality of machine labels, and scores that human judgments correct."""

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.evaluate import corrected_scores, label_quality

# Cohen's kappa of four grades, and of grade 2 and above, as the data's authors print them.
KAPPAS = {
    "llama3-70b-criteria": (0.167, 0.388),
    "llama3-8b-criteria": (0.124, 0.213),
    "llama3-8b-direct": (0.128, 0.272),
    "flan-t5-large-criteria": (0.227, 0.322),
}
COLUMNS = ["qid", "docno", "label"]
QRELS = pd.DataFrame({"qid": ["q1"] * 4 + ["q2"] * 4, "docno": [*"abcdabcd"], "label": [0, 1, 2, 0, 2, 0, 0, 1]})


def test_kappas_are_those_of_the_collection(shared_data):
    folder = shared_data / "trec_dl19"
    files = {name: folder / f"labels.{name}.txt.gz" for name in KAPPAS}
    quality = label_quality(files, folder / "qrels.nist.txt.gz")
    table = quality.kappa.set_index(["name", "threshold"])
    for name, (grades, relevant) in KAPPAS.items():
        assert table.loc[(name, "all grades"), "value"] == pytest.approx(grades, abs=6e-4)
        assert table.loc[(name, "2"), "value"] == pytest.approx(relevant, abs=6e-4)
    assert (table["low"] < table["value"]).all()
    summary = quality.summary.set_index("name")
    assert summary["auc"].idxmax() == summary["worth"].idxmax() == "llama3-70b-criteria"
    assert (summary["log_loss"] < summary["log_loss_rate"]).all()
    assert (quality.confusion.groupby(["name", "label"])["share"].sum().round(9) == 1).all()


def test_right_labels_agree_and_random_ones_do_not():
    rng = np.random.default_rng(0)
    qrels = pd.DataFrame([(f"q{i}", f"d{d}", rng.integers(3)) for i in range(40) for d in range(30)], columns=COLUMNS)
    quality = label_quality({"right": qrels, "random": qrels.assign(label=rng.random(len(qrels)))}, qrels)
    right, random = quality.summary.to_dict("records")
    assert (right["auc"], right["r2"]) == (1.0, pytest.approx(1, abs=1e-4))
    assert random["auc"] == pytest.approx(0.5, abs=0.05)
    assert random["worth"] == pytest.approx(1, abs=0.02)
    # Probabilities have no kappa of grades, and are shown in tenths.
    assert set(quality.kappa["name"]) == {"right"}
    assert quality.kappa["value"].tolist() == [1.0] * 3
    assert (quality.kappa["value"].dtype, quality.kappa["n"].dtype) == (np.float64, np.int64)
    tenths = quality.calibration.query("name == 'random'")
    assert len(tenths) == 10
    assert tenths["relevant"].between(0.5, 0.8).all()


@pytest.mark.parametrize("n_topics", [1, 12])
def test_the_order_of_rows_changes_no_number(n_topics):
    rng = np.random.default_rng(1)
    rows = [(f"q{i}", f"d{d}", rng.integers(3)) for i in range(n_topics) for d in range(30)]
    qrels = pd.DataFrame(rows, columns=COLUMNS)
    labels = qrels.assign(label=qrels["label"] + rng.normal(size=len(qrels)))
    first = label_quality(labels, qrels)
    assert 0 < first.summary["r2"].item() < 1
    for seed in range(3):
        other = label_quality(*(frame.sample(frac=1, random_state=seed) for frame in (labels, qrels)))
        for table in ("summary", "kappa", "confusion", "calibration"):
            pd.testing.assert_frame_equal(getattr(first, table), getattr(other, table), check_exact=True)


def test_labels_of_other_documents_are_refused():
    with (
        pytest.warns(DegenerateWarning, match="no judged document has a label"),
        pytest.raises(InputError, match="no document has both a label and a judgment"),
    ):
        label_quality(QRELS.assign(docno="x" + QRELS["docno"]), QRELS)


def test_labels_of_relevant_documents_alone_have_no_auc():
    relevant = QRELS[QRELS["label"] > 0]
    quality = label_quality(relevant, relevant)
    assert quality.summary[["auc", "r2", "worth"]].isna().all(axis=None)
    assert quality.calibration["relevant"].tolist() == [1.0, 1.0]


def collection(seed, n_topics=120):
    """Two systems over labelled documents; machine labels that are too high for the second system's documents."""
    rng = np.random.default_rng(seed)
    topics = [f"q{i}" for i in range(n_topics)]
    rows = [(qid, f"d{i}", int(label)) for qid in topics for i, label in enumerate(rng.random(20) < 0.4)]
    qrels = pd.DataFrame(rows, columns=COLUMNS)
    raised = qrels["docno"].isin([f"d{i}" for i in range(10, 20)]) & (rng.random(len(qrels)) < 0.3)
    wrong = rng.random(len(qrels)) < 0.05
    machine = qrels.assign(label=np.where(raised, 1, np.where(wrong, 1 - qrels["label"], qrels["label"])))
    every = qrels[["qid", "docno"]].assign(score=-qrels["docno"].str[1:].astype(float))
    runs = {"a": every[every["score"] > -10], "b": every[every["score"] <= -10]}
    return runs, qrels, machine, topics


@pytest.mark.nightly
def test_corrected_means_and_differences_are_those_of_human_judgments():
    inside, gaps = [], []
    for seed in range(20):
        runs, qrels, machine, topics = collection(seed)
        human = qrels[qrels["qid"].isin(np.random.default_rng(seed).choice(topics, 30, replace=False))]
        result = corrected_scores(runs, human, "P@10", labels=machine, target="these")
        truth = vbterrier.score(runs, qrels, ["P@10"]).means()["P@10"]
        inside += result["name"].map(truth).between(result["low"], result["high"]).tolist()
        assert (result["predicted"].iloc[1] - truth["b"]) > 0.1
        difference = corrected_scores(runs, human, "P@10", labels=machine, baseline="a", target="these")
        assert difference["name"].tolist() == ["b - a"]
        gaps.append(difference["value"].item() - (truth["b"] - truth["a"]))
    assert np.mean(inside) >= 0.85
    assert abs(np.mean(gaps)) < 0.02


RUN = pd.DataFrame({"qid": ["q1", "q2"], "docno": ["a", "b"], "score": 1.0})


def test_judgments_of_all_topics_need_no_labels():
    with pytest.warns(DegenerateWarning):
        result = corrected_scores({"mine": RUN}, QRELS, "P@1", labels=QRELS, target="these")
    assert result["value"].item() == result["labelled"].item()
