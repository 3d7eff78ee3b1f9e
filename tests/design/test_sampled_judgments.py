"""Scores from sampled judgments: expectations over all samples, values by hand, files, refusals."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest

import vbterrier
from vbterrier.design import score_sampled
from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.frames import read_prels
from vbterrier.settings import Inference

DOCS = list("abcdef")
RUN = pd.DataFrame({"qid": "1", "docno": DOCS[:5], "score": [5.0, 4.0, 3.0, 2.0, 1.0]})
LABEL = np.array([1, 0, 2, 1, 0, 1])
PROB = np.array([0.5, 0.25, 0.8, 0.9, 0.3, 0.6])

GOOD = pd.DataFrame({"qid": "1", "docno": ["a", "b"], "label": [1, 0], "prob": [0.5, 1.0]})


def value(judged, measure, run=RUN):
    return score_sampled({"mine": run}, judged, [measure])["value"].item()


def sample(chosen):
    chosen = np.array(chosen, dtype=bool)
    frame = pd.DataFrame({"qid": "1", "docno": DOCS, "label": LABEL, "prob": PROB})
    return frame[chosen].reset_index(drop=True), np.prod(np.where(chosen, PROB, 1 - PROB))


MEANS = {"P@3": 2 / 3, "P@5": 3 / 5, "P(rel=2)@3": 1 / 3, "NumRel": 4.0, "NumRel(rel=2)": 1.0}


@pytest.fixture(scope="module")
def of_samples():
    """Values of all samples that have a document, by measure, and the probabilities of the samples."""
    every = [sample(chosen) for chosen in product([0, 1], repeat=len(DOCS)) if any(chosen)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        tables = [score_sampled({"mine": RUN}, judged, [*MEANS, "AP"]).set_index("measure") for judged, _ in every]
    return pd.DataFrame([table["value"] for table in tables], index=range(len(every))), [chance for _, chance in every]


@pytest.mark.parametrize("measure", MEANS)
def test_the_mean_over_all_samples_is_the_value_of_all_judgments(of_samples, measure):
    result, chance = of_samples
    assert result[measure] @ chance == pytest.approx(MEANS[measure], abs=1e-12)


def test_the_sum_of_precisions_is_unbiased_too(of_samples):
    result, chance = of_samples
    total = (result["AP"] * result["NumRel"]) @ chance
    # Precisions at the ranks 1, 3 and 4 of the relevant documents.
    assert total == pytest.approx(1 + 2 / 3 + 3 / 4, abs=1e-12)


def test_all_documents_judged_give_the_values_of_ir_measures():
    judged = pd.DataFrame({"qid": "1", "docno": DOCS, "label": LABEL, "prob": 1.0})
    names = ["P@3", "R@4", "AP", "AP@3", "AP(rel=2)"]
    other = pd.DataFrame({"qid": "2", "docno": ["x", "y"], "label": [0, 1], "prob": 1.0})
    run = pd.concat([RUN, pd.DataFrame({"qid": "2", "docno": ["x", "y", "z"], "score": [3.0, 2.0, 1.0]})])
    judged = pd.concat([judged, other])
    result = score_sampled({"mine": run}, judged, names)
    exact = vbterrier.score(
        {"mine": run}, judged.drop(columns="prob"), names, inference=Inference(n_resamples=2)
    ).values
    both = result.merge(exact, on=["name", "qid", "measure"])
    assert len(both) == 2 * len(names)
    assert both["value_x"].tolist() == pytest.approx(both["value_y"].tolist(), abs=1e-12)


def test_prels_files_are_read_with_their_sampling_methods(tmp_path):
    path = tmp_path / "prels"
    path.write_text("1 a 1 1 0.5\n1 b 1 0 1.0\n1 c 0 1 0.25\n2 x 1 2 0.125\n")
    assert read_prels(path)["method"].tolist() == ["1", "0", "1", "2"]
    with pytest.warns(DegenerateWarning, match="1 of 2 judged topics have no documents, and get 0"):
        result = score_sampled({"mine": RUN}, path, ["P@5"])
    assert result["value"].tolist() == [3 / 5, 0.0]
    with pytest.warns(DegenerateWarning):
        assert score_sampled({"mine": RUN}, path, ["P@5"], methods=["1", "2"])["value"].tolist() == [2 / 5, 0.0]
    path.write_text("1 0 a 1 1 0.5\n1 0 c 0 1 0.25\n")
    assert value(path, "P@5") == 2 / 5
    path.write_text("qid,docno,relevance,prob\n1,a,1,0.5\n1,c,0,1\n")
    assert value(path, "P@5") == 2 / 5


def test_estimates_are_compared_as_values():
    topics = [str(number) for number in range(8)]
    judged = pd.concat(
        [GOOD.assign(qid=qid, label=1, prob=[0.5, prob]) for qid, prob in zip(topics, [0.5, 1.0] * 4, strict=True)]
    )
    runs = {name: pd.concat([RUN[skip:].assign(qid=qid) for qid in topics]) for name, skip in (("all", 0), ("late", 1))}
    comparison = vbterrier.compare(score_sampled(runs, judged, ["P@2"]))
    # In each topic, the first document stands for two, and is missing in the second run.
    assert comparison.pairs["diff"].tolist() == [1.0]


@pytest.mark.parametrize("line", ["1 d1 1 1 0.25", "1 0 d1 1 1 0.25"])
def test_qrels_name_the_function_for_samples(tmp_path, line):
    (tmp_path / "prels").write_text(f"{line}\n")
    with pytest.raises(FileError, match=r"is a sample of judgments .* use vbterrier\.design\.score_sampled"):
        vbterrier.read_qrels(tmp_path / "prels")


def test_topics_without_relevant_documents_get_0_with_a_warning():
    judged = pd.DataFrame({"qid": "1", "docno": ["a"], "label": [0], "prob": [0.5]})
    with pytest.warns(DegenerateWarning, match="1 topic has no judged relevant document"):
        assert score_sampled({"mine": RUN}, judged, ["AP", "R@3", "NumRel"])["value"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("judged", "options", "error", "message"),
    [
        (GOOD.assign(prob=[0.5, 0.0]), {}, InputError, "document 'b' of topic '1' has the inclusion probability 0"),
        (GOOD.assign(prob=[1.5, 1.0]), {}, InputError, "document 'a' of topic '1' has the inclusion probability 1.5"),
        (GOOD.assign(docno="a"), {}, InputError, "document 'a' of topic '1' is judged twice"),
        (GOOD.drop(columns="prob"), {}, InputError, "prob"),
        (GOOD, {"methods": ["1"]}, InputError, "method"),
        (GOOD.assign(method="2"), {"methods": ["1"]}, InputError, r"none has a method of .*1.*; found .*2"),
        (GOOD, {"measures": ["nDCG@10"]}, ParameterError, "is not estimated from sampled documents"),
        (GOOD, {"measures": ["P(judged_only=True)@10"]}, ParameterError, "is not estimated from sampled documents"),
    ],
)
def test_bad_samples_of_judgments_are_refused(judged, options, error, message):
    with pytest.raises(error, match=message):
        score_sampled({"mine": RUN}, judged, **options)
