"""Classic measures computed on arrays: the values of the engines of ir_measures, ties in trec_eval's order."""

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import AP, RR, Bpref, Judged, P, R, Rprec, SetF, SetP, SetR, Success, nDCG

from vbterrier.errors import DegenerateWarning
from vbterrier.frames.ranking import Run, ranked
from vbterrier.kernels import classic
from vbterrier.kernels.rankings import descending, kth_largest
from vbterrier.measures.adhoc import is_computed_here
from vbterrier.measures.external import external_values
from vbterrier.measures.target import EvaluationTarget, warn_of_own_queries

OPTIONS = [{"rel": rel, "judged_only": judged_only} for rel in (1, 2) for judged_only in (False, True)]
MEASURES = [
    *(measure(**options) for measure in (AP, RR, Rprec, SetP, SetF) for options in OPTIONS),
    *(measure(**options) @ k for measure in (AP, P, R, Success) for options in OPTIONS for k in (3, 50)),
    *(SetP(relative=True, **options) for options in OPTIONS),
    *(SetF(beta=beta, **options) for options in OPTIONS for beta in (0.5, 2.0)),
    *(measure(rel=rel) for measure in (Bpref, SetR) for rel in (1, 2)),
    *(RR(rel=rel) @ k for rel in (1, 2) for k in (3, 50)),
    *(nDCG(judged_only=judged_only) for judged_only in (False, True)),
    *(nDCG(judged_only=judged_only) @ k for judged_only in (False, True) for k in (3, 50)),
    *(Judged, Judged @ 3, Judged @ 50),
]


def collection(seed):
    """A run with ties and lists of all sizes, one topic without a relevant document, in mixed order."""
    draw = np.random.default_rng(seed)
    run, qrels = [], []
    for topic in range(6):
        retrieved, judged = (draw.permutation(40)[: draw.integers(1, most)] for most in (30, 25))
        run += [(f"q{topic}", f"d{docno}", float(draw.integers(0, 12))) for docno in retrieved]
        qrels += [(f"q{topic}", f"d{docno}", int(draw.integers(0, 4)) * (topic > 0)) for docno in judged]
    run = pd.DataFrame(run, columns=["qid", "docno", "score"]).sample(frac=1, random_state=seed, ignore_index=True)
    return run, pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def of_engines(measure, run, qrels):
    """Values of ir_measures, whose engines break ties in different ways: they get places instead of scores."""
    ranking = ranked(run)
    ranking = ranking.assign(score=1000.0 - ranking["rank"]).rename(columns={"qid": "query_id", "docno": "doc_id"})
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    return {value.query_id: value.value for value in ir_measures.evaluator([measure], judged).iter_calc(ranking)}


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_values_are_those_of_the_engines(measure):
    assert is_computed_here(measure)
    for seed in range(8):
        run, qrels = collection(seed)
        made = {qid: value for qid, _, value in external_values([measure], EvaluationTarget(qrels), Run(run))}
        expected = of_engines(measure, run, qrels)
        assert expected
        assert {qid: made[qid] for qid in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_measures_of_one_call_do_not_change_each_other():
    run, qrels = collection(1)
    together = list(external_values(MEASURES, EvaluationTarget(qrels), Run(run)))
    for measure in MEASURES:
        alone = list(external_values([measure], EvaluationTarget(qrels), Run(run)))
        assert alone == [value for value in together if value[1] == measure]


def test_documents_beyond_the_cutoff_and_of_other_topics_do_not_count():
    topic, rank, relevant = np.array([0, 0, 2]), np.array([1, 4, 0]), np.array([True, True, True])
    n_relevant = np.array([2, 1, 1])
    assert classic.average_precision(topic, rank, relevant, n_relevant, 2).tolist() == [0.25, 0, 1]
    assert classic.average_precision(topic, rank, relevant, n_relevant).tolist() == [(1 / 2 + 2 / 5) / 2, 0, 1]
    assert classic.reciprocal_rank(topic, rank, relevant, 3).tolist() == [0.5, 0, 1]
    assert classic.r_precision(topic, rank, relevant, n_relevant).tolist() == [0.5, 0, 1]


@pytest.mark.parametrize("largest", [1, 9, 40, 3000])
def test_groups_are_ordered_by_falling_score_and_stably(largest):
    draw = np.random.default_rng(largest)
    for _ in range(20):
        sizes = draw.integers(0, largest + 1, draw.integers(1, 9))
        stops = np.cumsum(sizes)
        starts, owner = stops - sizes, np.repeat(np.arange(len(sizes)), sizes)
        few = draw.choice([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 2.5, -7e30], sizes.sum())
        for score in (few.astype(np.float32), draw.normal(size=sizes.sum()).astype(np.float32)):
            order = descending(score, starts, stops)
            assert np.array_equal(order, np.lexsort((-score, owner)))
            for k in (1, 3):
                falling = [np.sort(score[owner == group])[::-1] for group in range(len(sizes))]
                kth = [part[k - 1] if len(part) >= k else -np.inf for part in falling]
                least = kth_largest(score, starts, stops, k)
                # A lower bound serves tables that would be mostly padding.
                assert np.array_equal(least, kth) or np.isneginf(least).all()


@pytest.mark.parametrize("cutoff", [1, 2, 5])
def test_few_first_documents_of_a_shuffled_run_are_those_of_the_whole_order(cutoff):
    draw = np.random.default_rng(cutoff)
    docnos = [f"d{place}" for place in range(90)]
    rows = [(f"q{topic}", docno, float(draw.integers(0, 30))) for topic in range(5) for docno in docnos]
    run = pd.DataFrame(rows, columns=["qid", "docno", "score"]).sample(frac=1, random_state=0, ignore_index=True)
    expected = ranked(run)
    expected = expected[expected["rank"] < cutoff]
    top = Run(run).top(cutoff)
    assert [run["docno"][row] for row in top.rows.ravel()] == expected["docno"].tolist()
    # Ties at the cutoff count as those of the whole order do.
    whole = Run(run)
    whole.ordered_rows()
    assert whole.top(cutoff).n_tied == top.n_tied > 0


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_settings_of_engines_alone_have_their_values_in_the_order_of_the_call():
    run, qrels = collection(2)
    measures = [nDCG(gains={1: 2}) @ 3, nDCG(gains={2: 5}) @ 2]
    assert not any(map(is_computed_here, measures))
    made = list(external_values(measures, EvaluationTarget(qrels), Run(run)))
    for measure in measures:
        values = {qid: value for qid, other, value in made if other == measure}
        assert values == pytest.approx(of_engines(measure, run, qrels), abs=1e-12)


def test_queries_that_retrieve_themselves_warn():
    qids = [f"q{topic}" for topic in range(6)]
    run = pd.DataFrame({"qid": qids, "docno": qids, "score": 1.0})
    qrels = pd.DataFrame({"qid": qids, "docno": "a", "label": 1})
    with pytest.warns(DegenerateWarning, match="run"):
        warn_of_own_queries(EvaluationTarget(qrels), Run(run))


@pytest.mark.parametrize("cutoff", [3, 50])
def test_unjudged_shares_are_those_of_a_table_of_ranks(cutoff):
    for seed in range(8):
        run, qrels = collection(seed)
        judgments = EvaluationTarget(qrels).judgments()
        table = judgments.judge(Run(run), cutoff, checked=True)
        assert judgments.unjudged_share(Run(run), cutoff).tolist() == table.unjudged_share().tolist()
