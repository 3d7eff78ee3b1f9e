"""Scores of metrics: with every document judged, the numbers of ir_measures and of the papers' formulas."""

import shutil
import warnings

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


def whole_number_scale(labels, rel, top):
    return [label >= rel if rel else max(label, 0) / top for label in labels]


@given(judged_rankings(), st.sampled_from([1, 3, None]), st.sampled_from([0, 1, 2]), st.sampled_from([0.0, 0.5, 0.95]))
def test_rbp_is_the_sum_of_its_paper(case, k, rel, p):
    labels, ranking = case
    top = max(*labels.values(), 1)
    for metric, scale in ((RBP(p, rel), top), (RBP(p, rel, max_grade=4), 4)):
        gains = whole_number_scale((labels[document] for document in ranking[:k]), rel, scale)
        expected = (1 - p) * sum(p**rank * gain for rank, gain in enumerate(gains))
        assert values(metric, judge(labels, ranking, k)) == pytest.approx([expected], abs=1e-12)


@given(judged_rankings(), st.sampled_from([1, 3, None]), st.sampled_from([0.0, 1.0, 10.0]))
def test_q_is_the_mean_blended_ratio_of_its_paper(case, k, beta):
    labels, ranking = case
    grades = [max(labels[document], 0) for document in ranking[:k]]
    pool = sorted((label for label in labels.values() if label > 0), reverse=True)
    total = 0.0
    for rank, grade in enumerate(grades, start=1):
        found, gained = sum(g > 0 for g in grades[:rank]), sum(grades[:rank])
        total += (grade > 0) * (found + beta * gained) / (rank + beta * sum(pool[:rank]))
    expected = total / min(len(pool), k or len(pool)) if pool else 0.0
    assert values(Q(beta), judge(labels, ranking, k)) == pytest.approx([expected], abs=1e-12)
    if k is None:
        assert values(Q(0.0), judge(labels, ranking, k)) == pytest.approx(values(AP(), judge(labels, ranking, k)))


@given(judged_rankings(), st.sampled_from([1, 3, None]), st.sampled_from([4, 6]))
def test_err_is_the_cascade_of_its_paper(case, k, top):
    labels, ranking = case
    expected, reaches = 0.0, 1.0
    for rank, document in enumerate(ranking[:k], start=1):
        stops = (2 ** max(labels[document], 0) - 1) / 2**top
        expected += reaches * stops / rank
        reaches *= 1 - stops
    assert values(ERR(top), judge(labels, ranking, k)) == pytest.approx([expected], abs=1e-12)


@pytest.fixture(scope="module")
def covid(shared_data):
    folder = shared_data / "trec-covid"
    return read_run(folder / "run.ance.top100.txt.gz"), read_qrels(folder / "qrels.complete.txt.gz")


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 10, 100])
def test_real_runs_score_as_ir_measures_says(covid, k):
    run, qrels = covid
    judged = Judgments(qrels).judge(Run(run), k)
    measures = [(metric, f"{name}@{k}", 1e-12) for metric, name in COUNTERPARTS]
    if shutil.which("perl"):
        # gdeval, a Perl script, prints five digits.
        measures += [(ERR(), f"ERR@{k}", 1.01e-5), (NDCG("exp-log2"), f"nDCG(dcg='exp-log2')@{k}", 1.01e-5)]
    for metric, name, within in measures:
        if metric not in (AP(4), Precision(3)):
            expected = by_ir_measures(ir_measures.parse_measure(name), qrels, run)
            found = dict(zip(judged.judgments.topics, values(metric, judged).tolist(), strict=True))
            assert found == pytest.approx(expected, abs=within), name
            assert max(expected.values()) > 0.03


@pytest.mark.parametrize("k", [10, 100])
def test_graded_and_binary_rbp_of_real_runs_are_those_of_trectools(covid, k):
    from trectools import TrecEval

    from vbterrier.evaluate.trectools import VBTrecEval

    run, qrels = covid
    evaluation = VBTrecEval.from_frames(run, qrels)
    theirs = TrecEval(evaluation.run, evaluation.qrels)
    judged = Judgments(qrels).judge(Run(run), k)
    for metric, binary, scale in ((RBP(rel=1), True, 1), (RBP(), False, 2)):
        with warnings.catch_warnings():
            # It assigns to slices of frames.
            warnings.simplefilter("ignore")
            expected = theirs.get_rbp(0.8, k, True, binary_topical_relevance=binary, average_ties=False)[0].iloc[:, 0]
        found = dict(zip(judged.judgments.topics, values(metric, judged).tolist(), strict=True))
        # TrecTools takes the grade itself for a gain, so that its graded RBP exceeds 1; and leaves out zeros.
        assert found == pytest.approx({qid: expected.get(qid, 0.0) / scale for qid in found}, abs=1e-12)


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
@pytest.mark.parametrize("labels", [{"a": 0, "b": 0}, {"a": -1, "b": 0}, {"a": -2}])
def test_a_topic_without_a_relevant_document_scores_zero(metric, labels):
    assert values(metric, judge(labels, ["a", "new", "b"], 3)).tolist() == [0.0]


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


@pytest.mark.parametrize("metric", [ERR(2), RBP(max_grade=2)], ids=repr)
def test_a_highest_grade_below_one_of_the_qrels_is_refused(metric):
    with pytest.raises(ParameterError, match="max_grade=2: qrels hold grade 3; give at least that"):
        metric.parts(judge({"a": 3}, ["a"], 1))


def test_grades_above_those_of_gdeval_want_the_highest_there_is():
    with pytest.raises(ParameterError, match="max_grade=4: qrels hold grade 5; give at least that"):
        ERR().parts(judge({"a": 5}, ["a"], 1))
    assert values(ERR(5), judge({"a": 5}, ["a"], 1)).tolist() == [31 / 32]


def test_precision_without_a_cutoff_is_refused():
    with pytest.raises(ParameterError, match="precision needs a cutoff; add one, as in BP@10"):
        Precision().parts(judge({"a": 1}, ["a"], None))


def test_a_grade_without_a_finite_gain_is_refused():
    with pytest.raises(InputError, match="grade 2000 has no finite gain"):
        NDCG("exp-log2").parts(judge({"a": 2000}, ["a"], 1))
    # A binary gain has no such limit.
    assert values(AP(), judge({"a": 2000}, ["a"], 1)).tolist() == [1.0]
