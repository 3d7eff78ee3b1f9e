"""Uncertain priors, priors that a run brings, and scores other than nDCG, from frames to distributions."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from urn import assigned_grades, sequences_by_hand

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.ranking import Run
from vbterrier.unjudged.distribution import BootstrapDistribution, bootstrap_distribution
from vbterrier.unjudged.metrics import AP, ERR, NDCG, RBP, Precision, Q
from vbterrier.unjudged.pool import Judgments

METRICS = [NDCG(), NDCG("exp-log2"), RBP(), RBP(0.5, rel=2), Precision(), AP(), AP(rel=2), ERR(), Q(), Q(beta=3.0)]
TEXTS = [
    *("nDCG", "nDCG(dcg='exp-log2')", "RBP", "RBP(p=0.5,rel=2)", "P", "AP", "AP(rel=2)", "ERR", "Q", "Q(beta=3.0)"),
]
GRADES = {"q1": [2, 1, 1, 0, 0, 2, 0], "q2": [1, 0, 0, 0], "q3": [0, 0, 0]}
QRELS = [(qid, f"j{i}", grade) for qid, grades in GRADES.items() for i, grade in enumerate(grades)]
QRELS = pd.DataFrame(QRELS, columns=["qid", "docno", "label"])
DOCNOS = ["u9", "j0", "u1", "j3", "u5", "j1", "u2", "j1", "u3", "u1", "u1", "j0"]
RUN = pd.DataFrame({"qid": ["q1"] * 7 + ["q2"] * 3 + ["q3"] * 2, "docno": DOCNOS})
RUN = RUN.assign(score=-np.arange(12.0))


def probabilities(cells, run=RUN, dtype=object):
    """The run with a column of probabilities, the same cell for all or one for each row."""
    cells = cells if isinstance(cells, list) and len(cells) == len(run) else [cells] * len(run)
    return run.assign(grade_prob=pd.Series(cells, dtype=dtype, index=run.index))


def by_hand(judged, metric, probs, strength, topic, order):
    """{score: probability} of one topic: all sequences, drawn from the Dirichlet-multinomial."""
    parts = metric.parts(judged)
    left = (judged.judgments.counts - judged.counts)[topic]
    outcome = {}
    for sequence, chance in sequences_by_hand(np.broadcast_to(probs, (len(order), len(probs))), strength).items():
        levels = judged.levels[topic].copy()
        levels[order] = assigned_grades(sequence, left) if metric.has_ideal else sequence
        if parts.score is None:
            score = sum(u * parts.gain[v] for u, v in zip(parts.unit[topic], levels, strict=True) if v >= 0)
        else:
            score = parts.score(levels[None], topic)[0]
        if chance > 0:
            outcome[round(float(score), 11)] = outcome.get(round(float(score), 11), 0.0) + chance
    return dict(sorted(outcome.items()))


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("strength", [math.inf, 0.5, 6.0])
@pytest.mark.parametrize("cutoff", [5, 7])
def test_every_metric_equals_the_process_followed_by_hand(metric, strength, cutoff):
    distribution = bootstrap_distribution(RUN, QRELS, cutoff, prior="pool", prior_strength=strength, metric=metric)
    judged = Judgments(QRELS).judge(Run(RUN), cutoff)
    for topic, qid in enumerate(distribution.topics):
        order = np.flatnonzero(judged.levels[topic] == -1)
        outcome = by_hand(judged, metric, distribution.prob[topic], strength, topic, order)
        values, probs = distribution.atoms(qid)
        assert values == pytest.approx(list(outcome), abs=2e-11)
        assert probs == pytest.approx(list(outcome.values()), abs=1e-12)
        assert distribution.mean[topic] == pytest.approx(values @ probs, abs=1e-12)
        variance = (values - distribution.mean[topic]) ** 2 @ probs
        assert distribution.std[topic] ** 2 == pytest.approx(variance, abs=1e-12)
    assert distribution.metric is metric
    assert repr(distribution).startswith(f"BootstrapDistribution({TEXTS[METRICS.index(metric)]}@{cutoff}, 3 topics")


@pytest.mark.parametrize("metric", [NDCG(), AP()], ids=repr)
def test_the_order_of_the_papers_code_is_that_of_docnos(metric):
    distribution = bootstrap_distribution(RUN, QRELS, 7, prior="pool", metric=metric, compat="ecir23", method="exact")
    judged = Judgments(QRELS).judge(Run(RUN), 7).with_grades(np.arange(4))
    # u1, u2, u5, u9 stand at ranks 3, 7, 5, 1.
    outcome = by_hand(judged, metric, distribution.prob[0], math.inf, 0, [2, 6, 4, 0])
    values, probs = distribution.atoms("q1")
    assert values == pytest.approx(list(outcome), abs=2e-11)
    assert probs == pytest.approx(list(outcome.values()), abs=1e-12)
    assert distribution.visits[0].tolist() == [2, 6, 4, 0]


def test_the_pools_grades_run_out_in_none_of_the_sums_of_a_large_pool():
    qrels = pd.concat([QRELS, pd.DataFrame({"qid": "q1", "docno": [f"k{i}" for i in range(20)], "label": [1, 2] * 10})])
    sure = bootstrap_distribution(RUN, qrels, 7, prior="pool", prior_strength=math.inf)
    unsure = bootstrap_distribution(RUN, qrels, 7, prior="pool", prior_strength=4.0)
    assert unsure.mean[0] == pytest.approx(sure.mean[0], abs=1e-15)
    weights = sure.model.weights[0]
    # Var = Σw²σ²·s/(s+1) + (Σw)²σ²/(s+1).
    wider = (4 * (weights**2).sum() + weights.sum() ** 2) / 5 / (weights**2).sum()
    assert unsure.std[0] ** 2 == pytest.approx(sure.std[0] ** 2 * wider)
    assert (unsure.interval(0.9)[0] <= sure.interval(0.9)[0] + 1e-12).all()
    assert unsure.strength.tolist() == [4.0] * 3
    assert sure.strength.tolist() == [math.inf] * 3


@pytest.mark.parametrize("how", [{"prior": "column"}, {"prior": "pool", "compat": "ecir23"}])
def test_a_score_that_is_no_sum_has_no_grid_without_one_prior_and_draws_by_rank(how):
    # Even where nothing is unjudged, so that the data do not decide it.
    for cutoff in (1, 7):
        with pytest.raises(ParameterError, match="method='grid': AP is no sum over ranks, so its documents need one"):
            bootstrap_distribution(probabilities([0.5, 0.3, 0.2]), QRELS, cutoff, method="grid", metric=AP(), **how)


@pytest.mark.parametrize("metric", [NDCG(), AP()], ids=repr)
@pytest.mark.parametrize("strength", [math.inf, 2.0])
def test_one_cell_for_all_is_the_mapping_of_the_same_numbers(metric, strength):
    options = {"metric": metric, "prior_strength": strength}
    mapped = bootstrap_distribution(RUN, QRELS, 7, prior={0: 0.5, 1: 0.3, 2: 0.2}, **options)
    distribution = bootstrap_distribution(probabilities([0.5, 0.3, 0.2]), QRELS, 7, prior="column", **options)
    assert distribution.mean == pytest.approx(mapped.mean, abs=1e-12)
    assert distribution.std == pytest.approx(mapped.std, abs=1e-12)
    assert distribution.prob.shape == (3, 4, 3)
    for qid in distribution.topics:
        assert distribution.atoms(qid)[0] == pytest.approx(mapped.atoms(qid)[0], abs=1e-12)
        assert distribution.atoms(qid)[1] == pytest.approx(mapped.atoms(qid)[1], abs=1e-12)


def test_each_document_has_its_own_numbers():
    cells = [[0.1, 0.9], None, [0.2, 0.8, 0.0], "junk", [1], 5.0, [0, 0, 1], [1.0], [0.6, 0.4], [0.5, 0.5], [1], [1]]
    distribution = bootstrap_distribution(probabilities(cells), QRELS, 7, prior="column")
    assert distribution.prob[0].tolist() == [[0.1, 0.9, 0], [0.2, 0.8, 0], [1, 0, 0], [0, 0, 1]]
    assert distribution.prob[1, :2].tolist() == [[0.6, 0.4, 0], [0.5, 0.5, 0]]
    # Expected by hand: the pool has grades 2, 1, 1, 2 in all; one each of grade 1 and 2 is outside the run.
    ideal = 2 + 2 / np.log2(3) + 1 / 2 + 1 / np.log2(5)
    base = 2 / np.log2(3) + 1 / np.log2(7)
    # One document of grade 1 is left: rank 1 has it with .9, rank 3 where that has not; rank 7 has grade 2.
    expected = base + 0.9 * 1 + 0.1 * 0.8 / 2 + 2 / np.log2(8)
    assert distribution.mean[0] == pytest.approx(expected / ideal)


def test_cells_of_judged_documents_and_beyond_the_cut_are_not_read():
    cells = [[0.5, 0.5], "junk", [0.5, 0.5], {}, None, None, [9], None, 0.5, [1], [1.0], object()]
    distribution = bootstrap_distribution(probabilities(cells), QRELS, 3, prior="column")
    assert distribution.n_unjudged.tolist() == [2, 2, 1]


def test_a_number_is_shared_as_the_pool_shares_its_relevant_documents():
    distribution = bootstrap_distribution(probabilities(0.4), QRELS, 7, prior="column")
    assert distribution.prob[0, 0] == pytest.approx([0.6, 0.2, 0.2])
    assert distribution.prob[1, 0] == pytest.approx([0.6, 0.4, 0.0])
    # q3 has no relevant document: as in all pools together, three of grade 1 and two of grade 2.
    assert distribution.prob[2, 0] == pytest.approx([0.6, 0.24, 0.16])
    barren = QRELS.assign(label=0)
    assert bootstrap_distribution(probabilities(0.4), barren, 7, prior="column").prob[0, 0].tolist() == [1.0]


FORMS = {
    "tuples": probabilities((0.5, 0.3, 0.2)),
    "arrays": probabilities([np.array([0.5, 0.3, 0.2])] * len(RUN)),
    "single": probabilities([np.array([0.5, 0.3, 0.2], dtype=np.float32)] * len(RUN)),
    "arrow": probabilities([[0.5, 0.3, 0.2]] * len(RUN), dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
    "large": probabilities([[0.5, 0.3, 0.2]] * len(RUN), dtype=pd.ArrowDtype(pa.large_list(pa.float32()))),
    "polars": pl.DataFrame({**{name: RUN[name].tolist() for name in RUN}, "grade_prob": [[0.5, 0.3, 0.2]] * len(RUN)}),
}


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_any_make(form):
    distribution = bootstrap_distribution(FORMS[form], QRELS, 7, prior="column")
    assert distribution.prob[0] == pytest.approx(np.array([[0.5, 0.3, 0.2]] * 4), abs=1e-7)
    assert distribution.prob.sum(axis=2) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("dtype", [object, "float32", "Float64", pd.ArrowDtype(pa.float64())])
def test_numbers_of_any_make(dtype):
    distribution = bootstrap_distribution(probabilities([0.25] * len(RUN), dtype=dtype), QRELS, 7, prior="column")
    assert distribution.prob[0, 0] == pytest.approx([0.75, 0.125, 0.125])


def test_a_grade_between_those_of_the_qrels_cannot_be_assigned():
    gap = QRELS.assign(label=QRELS["label"] * 2)
    with pytest.raises(InputError, match="a grade that qrels do not hold; they hold 0, 2, 4"):
        bootstrap_distribution(probabilities([0.5, 0.5]), gap, 7, prior="column")
    distribution = bootstrap_distribution(probabilities([0.5, 0.0, 0.5]), gap, 7, prior="column")
    assert distribution.prob[0, 0].tolist() == [0.5, 0.5, 0.0]


def test_without_the_column_there_is_no_such_prior():
    message = "run: prior='column' needs column 'grade_prob', found qid, docno, score; add it"
    with pytest.raises(InputError, match=message):
        bootstrap_distribution(RUN, QRELS, 7, prior="column")
    twice = pd.concat([probabilities(0.5), probabilities(0.5)[["grade_prob"]]], axis=1)
    with pytest.raises(InputError, match="'grade_prob' occurs 2 times"):
        bootstrap_distribution(twice, QRELS, 7, prior="column")


def test_a_run_without_unjudged_documents_reads_no_cell():
    judged = RUN[RUN["docno"].str.startswith("j")]
    distribution = bootstrap_distribution(probabilities("junk", judged), QRELS, 7, prior="column", prior_strength=2.0)
    assert distribution.std.tolist() == [0.0] * 3
    assert isinstance(distribution, BootstrapDistribution)


@pytest.mark.parametrize("metric", [NDCG(), RBP(), ERR(), Q()], ids=str)
def test_grades_that_no_document_has_change_no_score(metric):
    # The authors' code knows grades to 3, the qrels to 2; here nothing is unjudged.
    judged = RUN[RUN["docno"].str.startswith("j")]
    plain, compat = (bootstrap_distribution(judged, QRELS, 5, metric=metric, compat=name) for name in ("", "ecir23"))
    assert compat.mean == pytest.approx(plain.mean)


@pytest.mark.parametrize("n", [2, 5, 9])
def test_draws_are_independent_and_intervals_have_a_prior_worth_two_documents(n):
    """With strength s, relevant unjudged documents are beta-binomial: variance ``n p (1 - p) (s + n) / (s + 1)``."""
    qrels = pd.DataFrame({"qid": "q1", "docno": [f"j{i}" for i in range(10)], "label": [1] * 3 + [0] * 7})
    run = pd.DataFrame({"qid": "q1", "docno": [f"u{i}" for i in range(n)], "score": -np.arange(float(n))})
    result = bootstrap_distribution(run, qrels, n, metric=Precision())
    assert result.mean == pytest.approx([0.3])
    assert result.std == pytest.approx([math.sqrt(n * 0.3 * 0.7) / n])
    assert result.variance_part == pytest.approx([n * 0.3 * 0.7 * (2 + n) / (2 + 1) / n**2])
    frame, weak = result.to_frame(0.8), bootstrap_distribution(run, qrels, n, metric=Precision(), prior_strength=2)
    assert frame[["low", "high"]].to_numpy().tolist() == np.stack(weak.interval(0.8), axis=1).tolist()
    assert frame["std"].tolist() == result.std.tolist()
