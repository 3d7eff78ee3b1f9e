"""Scores of metrics: with every document judged, the numbers of ir_measures and of the papers' formulas."""

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vbterrier import read_qrels, read_run
from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.ranking import Run
from vbterrier.unjudged.metrics import AP, ERR, NDCG, RBP, Precision, Q
from vbterrier.unjudged.pool import Judgments

RENAMED = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
ALL = [NDCG(), NDCG("exp-log2"), RBP(), RBP(0.5, rel=1), Precision(), Precision(2), AP(), AP(2), ERR(), Q(), Q(0.5)]


def judge(labels, ranking, k):
    """The first k of one ranking over judgments {docno: label}."""
    qrels = pd.DataFrame({"qid": "q", "docno": list(labels), "label": list(labels.values())})
    run = pd.DataFrame({"qid": "q", "docno": list(ranking), "score": -np.arange(len(ranking), dtype=float)})
    return Judgments(qrels).judge(Run(run), k)


def values(metric, judged, levels=None):
    """The score of each topic; levels other than the judged ones may be given."""
    levels = judged.levels if levels is None else levels
    parts = metric.parts(judged)
    if parts.score is not None:
        assert not parts.unit.any(), "no sum over ranks"
        return np.array([parts.score(row[None, :], topic)[0] for topic, row in enumerate(levels)])
    return (parts.unit * np.append(parts.gain, [0.0, 0.0])[levels]).sum(axis=1)


def by_ir_measures(measure, qrels, run):
    metrics = measure.iter_calc(qrels.rename(columns=RENAMED), run.rename(columns=RENAMED))
    return {metric.query_id: metric.value for metric in metrics}


# With every document judged.


@st.composite
def judged_rankings(draw):
    labels = draw(st.lists(st.integers(-1, 4), min_size=1, max_size=9))
    labels = {f"d{place}": label for place, label in enumerate(labels)}
    ranking = draw(st.lists(st.sampled_from(sorted(labels)), unique=True, min_size=1))
    return labels, ranking


COUNTERPARTS = [
    (NDCG(), "nDCG"),
    (AP(), "AP"),
    (AP(2), "AP(rel=2)"),
    (AP(4), "AP(rel=4)"),
    (Precision(), "P"),
    (Precision(3), "P(rel=3)"),
]


@settings(max_examples=60, deadline=None)
@given(judged_rankings(), st.sampled_from([1, 2, 3, 7, 20, None]))
def test_judged_rankings_score_as_trec_eval_says(case, k):
    labels, ranking = case
    judged = judge(labels, ranking, k)
    qrels = pd.DataFrame({"qid": "q", "docno": list(labels), "label": list(labels.values())})
    run = pd.DataFrame({"qid": "q", "docno": ranking, "score": -np.arange(len(ranking), dtype=float)})
    for metric, name in COUNTERPARTS:
        if k is None and isinstance(metric, Precision):
            continue
        measure = ir_measures.parse_measure(name if k is None else f"{name}@{k}")
        expected = by_ir_measures(measure, qrels, run)
        assert values(metric, judged) == pytest.approx([expected["q"]], abs=1e-12), name


@pytest.fixture(scope="module")
def covid(shared_data):
    folder = shared_data / "trec-covid"
    return read_run(folder / "run.ance.top100.txt.gz"), read_qrels(folder / "qrels.complete.txt.gz")


# What the parts say.


@pytest.mark.parametrize("metric", ALL, ids=repr)
@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_score_of_many_rankings_is_that_of_each(metric, k):
    labels = {f"j{i}": grade for i, grade in enumerate([2, 1, 0, 0, 1])}
    judged = judge(labels, ["j0", "x", "j2", "y", "j4"], k)
    parts = metric.parts(judged)
    assert parts.gain.shape == judged.judgments.grades.shape
    assert parts.gain[0] == 0
    assert (np.diff(parts.gain) >= 0).all()
    assert parts.unit.shape == judged.levels.shape
    assert (parts.unit >= 0).all()
    if parts.score is not None:
        rng = np.random.default_rng(3)
        levels = rng.integers(-2, 3, (50, k))
        assert parts.score(levels, 0).shape == (50,)
        assert parts.score(levels, 0).tolist() == [parts.score(row[None], 0).item() for row in levels]
        assert parts.score(levels, 0).tolist() == parts.score(np.maximum(levels, 0), 0).tolist()


@pytest.mark.parametrize("metric", ALL, ids=repr)
def test_topics_that_retrieved_nothing_score_zero_and_take_no_place(metric):
    qrels = pd.DataFrame({"qid": ["none", "some"], "docno": ["a", "b"], "label": [2, 2]})
    run = pd.DataFrame({"qid": ["some"], "docno": ["b"], "score": [1.0]})
    found = values(metric, Judgments(qrels).judge(Run(run), 5))
    assert found[0] == 0.0
    assert found[1] > 0.0


@pytest.mark.parametrize("k", [2, 5, None])
def test_the_ideal_ranking_has_ap_q_and_ndcg_1(k):
    labels = {f"d{i}": grade for i, grade in enumerate([3, 2, 2, 1])}
    for metric in (Q(), Q(7.0), NDCG()):
        assert values(metric, judge(labels, labels, k)) == pytest.approx([1.0])
    assert values(AP(), judge(labels, labels, k)) == pytest.approx([min(k or 4, 4) / 4])


def test_precision_divides_by_the_cutoff_even_where_less_was_retrieved():
    judged = judge({"a": 1, "b": 1}, ["a"], 4)
    assert values(Precision(), judged).tolist() == [0.25]


# Refused.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NDCG("log10"), "dcg='log10': wanted one of 'log2', 'exp-log2'"),
        (lambda: RBP(1.0), r"p=1\.0: wanted a number from 0 to below 1"),
        (lambda: RBP(-0.1), r"p=-0\.1"),
        (lambda: RBP(float("nan")), "p=nan"),
        (lambda: RBP(rel=-1), "rel=-1: wanted a whole number of at least 0"),
        (lambda: RBP(max_grade=0), "max_grade=0: wanted a whole number of at least 1"),
        (lambda: Precision(0), "rel=0: wanted a whole number of at least 1"),
        (lambda: Precision(True), "rel=True"),
        (lambda: AP(1.5), r"rel=1\.5"),
        (lambda: ERR(0), "max_grade=0: wanted a whole number from 1 to 50"),
        (lambda: ERR(51), "max_grade=51"),
        (lambda: Q(-1.0), r"beta=-1\.0: wanted a number of at least 0"),
        (lambda: Q(float("inf")), "beta=inf"),
    ],
)
def test_numbers_outside_their_range_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_grades_above_those_of_gdeval_want_the_highest_there_is():
    with pytest.raises(ParameterError, match="max_grade=4: qrels hold grade 5; give at least that"):
        ERR().parts(judge({"a": 5}, ["a"], 1))
    assert values(ERR(5), judge({"a": 5}, ["a"], 1)).tolist() == [31 / 32]


def test_a_grade_without_a_finite_gain_is_refused():
    with pytest.raises(InputError, match="grade 2000 has no finite gain"):
        NDCG("exp-log2").parts(judge({"a": 2000}, ["a"], 1))
    # A binary gain has no such limit.
    assert values(AP(), judge({"a": 2000}, ["a"], 1)).tolist() == [1.0]
