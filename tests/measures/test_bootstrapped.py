"""Bootstrapped nDCG: real runs, worked cases, the process followed by hand."""

import math

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import nDCG
from one_topic import RENAMED, discounted, one, topic_qrels, topic_run

from vbterrier import BAP, BNDCG, Inference, NDCGBound, Unjudged, score
from vbterrier.errors import InputError, ParameterError
from vbterrier.kernels.grades.distributions import histogram_mode
from vbterrier.settings import Data
from vbterrier.unjudged.distribution import bootstrap_distribution
from vbterrier.unjudged.priors import DEFAULT_STRENGTH

STATS = ("mean", "std", "q5", "q25", "q50", "q75", "q95")
# As the published values name the priors.
PRIORS = {"P": "pool", "R": "run", "P+R": "pool+run"}


def test_ndcg_with_two_unjudged_documents_is_that_of_the_papers_second_case():
    pool = {f"two{i}": 2 for i in range(10)} | {f"one{i}": 1 for i in range(10)} | {f"nil{i}": 0 for i in range(30)}
    qrels, run = topic_qrels(pool), topic_run(["two0", "new1", "nil0", "new2"])
    ideal = discounted([2, 2, 2, 2])
    assert ideal == pytest.approx(5.1232126233, abs=1e-10)
    assert one(NDCGBound(kind="naive") @ 4, qrels, run) * ideal == pytest.approx(2, abs=1e-12)
    expected = {
        "pool": ([0.6, 0.2, 0.2], 0.5147090275, 0.0142290776),
        "run": ([0.5, 0.0, 0.5], 0.5975950125, 0.0222329338),
        "pool+run": ([0.55, 0.1, 0.35], 0.5561520200, 0.0191203231),
    }
    for prior, (prob, mean, variance) in expected.items():
        distribution = bootstrap_distribution(run, qrels, 4, prior=prior, prior_strength=math.inf)
        assert distribution.prob[0] == pytest.approx(prob, abs=1e-12)
        assert distribution.mean[0] == pytest.approx(mean, abs=1e-10)
        assert distribution.std[0] ** 2 == pytest.approx(variance, abs=1e-10)
        assert one(BNDCG(prior=prior) @ 4, qrels, run) == pytest.approx(mean, abs=1e-10)
        spread = BNDCG(prior=prior, stat="std", prior_strength="inf") @ 4
        assert one(spread, qrels, run) ** 2 == pytest.approx(variance, abs=1e-10)


# TREC-COVID with judgments missing


@pytest.mark.parametrize("letter", PRIORS)
def test_every_published_value_of_the_ance_run(covid, values_of, letter):
    for stat in STATS:
        measure = BNDCG(prior=PRIORS[letter], stat=stat, compat="ecir23") @ 10
        key = "sd" if stat == "std" else stat
        expected = {qid: topic[letter][key] for qid, topic in covid.expected.items()}
        assert len(expected) == 50
        assert values_of(measure, covid.incomplete, covid.runs["ance"]) == pytest.approx(expected, abs=1e-9)
    distribution = bootstrap_distribution(covid.runs["ance"], covid.incomplete, prior=PRIORS[letter], compat="ecir23")
    assert distribution.grades.tolist() == [0, 1, 2, 3]
    for qid, prob in zip(distribution.topics, distribution.prob, strict=True):
        assert prob == pytest.approx(covid.expected[qid][letter]["p"], abs=1e-9)


def test_priors_that_compat_does_not_know_and_topics_too_large_for_a_method_are_refused():
    with pytest.raises(ParameterError, match="compat='ecir23' needs one of the priors 'pool', 'run'"):
        one(BNDCG(prior={0: 1}, compat="ecir23") @ 2, topic_qrels({"a": 1, "b": 0}), topic_run(["a", "new"]))
    qrels, run = topic_qrels({f"j{i}": i % 4 for i in range(400)}), topic_run([f"u{i}" for i in range(100)])
    words = "method='exact' is too expensive for query 'q' with 100 unjudged documents"
    with pytest.raises(ParameterError, match=words):
        one(BNDCG(method="exact", stat="q5") @ 100, qrels, run)


def test_a_prior_that_is_sure_of_one_grade_is_a_naive_bound(covid, values_of):
    run, qrels = covid.runs["ance"], covid.incomplete
    for dcg in ("log2", "exp-log2"):
        bounds = [NDCGBound(side=side, kind="naive", dcg=dcg) @ 10 for side in ("lower", "upper")]
        lower, upper = (values_of(bound, qrels, run) for bound in bounds)
        assert values_of(BNDCG(prior={0: 1}, dcg=dcg) @ 10, qrels, run) == pytest.approx(lower, abs=1e-12)
        assert values_of(BNDCG(prior={2: 1}, dcg=dcg) @ 10, qrels, run) == pytest.approx(upper, abs=1e-12)


@pytest.mark.slow
def test_the_level_moves_the_ends_of_the_interval(covid, values_of, by_hand):
    run, qrels = covid.runs["ance"], covid.incomplete
    distribution = bootstrap_distribution(run, qrels).of_complete
    assert distribution.strength.tolist() == [DEFAULT_STRENGTH] * 50
    for level in (0, 0.5, 0.9, 1):
        expected = [
            by_hand.ends(dict(zip(*(part.tolist() for part in distribution.atoms(topic)), strict=True)), level)
            for topic in distribution.topics
        ]
        for side, stat in enumerate(("lo", "hi")):
            values = values_of(BNDCG(stat=stat, level=level) @ 10, qrels, run)
            assert list(values.values()) == pytest.approx([pair[side] for pair in expected], abs=1e-9)


# Priors that are none, topics without a judged document


@pytest.fixture(scope="module")
def blind():
    """One topic of which nothing retrieved was judged, and one that is half judged."""
    qrels = pd.concat([topic_qrels({"a": 2, "b": 0, "c": 0, "d": 1}, "blind"), topic_qrels({"a": 1, "b": 0}, "half")])
    run = pd.concat([topic_run(["x", "y", "z"], "blind"), topic_run(["a", "x"], "half")])
    return qrels, run


@pytest.mark.parametrize(
    ("prior", "all_unjudged", "same_as"),
    [
        ("pool+run", "auto", "pool"),
        ("pool+run", "pool", "pool"),
        ("run", "pool", "pool"),
        ("pool", "auto", "pool"),
        ("pool", "pool", "pool"),
        ("pool+run", "zero", "nothing"),
        ("run", "zero", "nothing"),
    ],
)
@pytest.mark.parametrize("stat", ["mean", "std", "q95"])
def test_what_a_topic_without_a_judged_document_is_worth(blind, values_of, prior, all_unjudged, same_as, stat):
    values = values_of(BNDCG(prior=prior, all_unjudged=all_unjudged, stat=stat) @ 3, *blind)
    pool = values_of(BNDCG(prior="pool", stat=stat) @ 3, *blind)
    assert pool["blind"] > 0
    assert values["blind"] == pytest.approx(pool["blind"] if same_as == "pool" else 0.0, abs=1e-12)
    other = "run" if prior == "run" else prior
    qrels, run = (frame[frame["qid"] == "half"] for frame in blind)
    assert values["half"] == pytest.approx(values_of(BNDCG(prior=other, stat=stat) @ 3, qrels, run)["half"], abs=1e-12)


@pytest.mark.filterwarnings("ignore::vbterrier.errors.DegenerateWarning")
def test_a_topic_of_which_a_run_retrieves_nothing_scores_zero_under_its_own_prior(blind):
    # Nothing retrieved is not the same as nothing judged, for which the prior of the run is undefined.
    qrels, run = blind
    half = run[run["qid"] == "half"]
    measure = BNDCG(prior="run") @ 3
    values = score({"mine": half}, qrels, [measure], data=Data(on_topics="all")).values
    alone = score({"mine": half}, qrels[qrels["qid"] == "half"], [measure]).values
    assert values.set_index("qid")["value"].to_dict() == {"blind": 0.0, "half": alone["value"].item()}
    with pytest.raises(InputError, match="undefined on 1 topics"):
        score({"mine": run}, qrels, [measure])


# compat="ecir23" with draws


def test_the_mode_of_draws_under_compat_is_read_from_histograms(covid, values_of):
    run, qrels = covid.runs["ance"], covid.incomplete
    distribution = bootstrap_distribution(run, qrels, compat="ecir23", method="mc", inference=Inference(n_draws=200))
    drawn = dict(zip(distribution.topics, (each.values for each in distribution.distributions), strict=True))
    modes = {topic: histogram_mode(values) for topic, values in drawn.items()}
    medians = {topic: np.quantile(values, 0.3) for topic, values in drawn.items()}
    measure = BNDCG(compat="ecir23", method="mc", n_draws=200, stat="mode") @ 10
    assert values_of(measure, qrels, run) == modes
    assert values_of(measure(stat="q30"), qrels, run) == pytest.approx(medians, abs=1e-12)
    assert values_of(measure(compat=""), qrels, run) != modes


def test_draws_under_compat_follow_the_published_distribution(covid, values_of):
    measure = BNDCG(compat="ecir23", method="mc", n_draws=4000) @ 10
    values = values_of(measure, covid.incomplete, covid.runs["ance"])
    for qid, value in values.items():
        topic = covid.expected[qid]["P+R"]
        assert abs(value - topic["mean"]) <= 5 * topic["sd"] / math.sqrt(4000) + 1e-9


# The edges


@pytest.mark.filterwarnings("ignore:qrels. 0 of .* judged documents have grade 0")
def test_a_cutoff_below_the_end_of_the_list_counts_the_empty_ranks():
    labels = {f"j{i}": 1 for i in range(10)}
    qrels, run = topic_qrels(labels), topic_run(["j0", "j1", "j2"])
    for k in (3, 5, 10, 1000):
        expected = discounted([1] * 3) / discounted([1] * min(k, 10))
        assert one(BNDCG @ k, qrels, run) == pytest.approx(expected, abs=1e-12)
        assert one(nDCG @ k, qrels, run) == pytest.approx(expected, abs=1e-9)
        assert one(NDCGBound(kind="naive") @ k, qrels, run) == pytest.approx(expected, abs=1e-12)


def test_labels_below_zero_are_grade_zero_and_under_compat_no_judgments():
    labels = {"a": 2, "b": -1, "c": 1, "d": 0, "e": -2}
    qrels, run = topic_qrels(labels), topic_run(["b", "a", "new"])
    as_zero = topic_qrels({document: max(label, 0) for document, label in labels.items()})
    without = topic_qrels({document: label for document, label in labels.items() if label >= 0})
    for stat in ("mean", "q5", "mode"):
        for prior in ("pool", "run", "pool+run"):
            ours = BNDCG(stat=stat, prior=prior) @ 3
            theirs = ours(compat="ecir23")
            assert one(ours, qrels, run) == one(ours, as_zero, run)
            assert one(theirs, qrels, run) == one(theirs, without, run)
    assert one(Unjudged @ 3, qrels, run) == pytest.approx(1 / 3)
    assert one(BNDCG @ 3, qrels, run) != one(BNDCG @ 3, without, run)
    # Both readings live in one call.
    measures = [BNDCG @ 3, BNDCG(compat="ecir23") @ 3, Unjudged @ 3, BNDCG(compat="ecir23") @ 1, BNDCG @ 1]
    together = ir_measures.calc_aggregate(measures, qrels.rename(columns=RENAMED), run.rename(columns=RENAMED))
    alone = {measure: one(measure, qrels, run) for measure in measures}
    assert together == pytest.approx(alone, abs=1e-15)
    assert alone[measures[0]] != alone[measures[1]]


def test_order_of_visits_is_by_rank_and_under_compat_by_docno():
    labels = {"a": 2, "b": 1, "c": 0, "d": 0}
    qrels, forth, back = topic_qrels(labels), topic_run(["u1", "u2", "c"]), topic_run(["u2", "u1", "c"])
    assert one(BNDCG @ 3, qrels, forth) == one(BNDCG @ 3, qrels, back)
    measure = BNDCG(compat="ecir23") @ 3
    assert one(measure, qrels, forth) > one(measure, qrels, back) + 1e-3


@pytest.mark.filterwarnings("ignore:qrels. 0 of .* judged documents have grade 0")
def test_a_pool_whose_grades_are_all_used_has_one_score_however_many_documents_are_unjudged():
    """The run retrieves all 30 relevant documents of the pool, at the ranks 1, 3, 5...: no other can be relevant."""
    docnos = [f"d{i:03}" for i in range(100)]
    run = pd.DataFrame({"query_id": "1", "doc_id": docnos, "score": np.arange(100.0, 0.0, -1.0)})
    qrels = pd.DataFrame({"query_id": "1", "doc_id": docnos[:60:2], "relevance": 1})
    n = np.arange(1, 31)
    for stat in ("mean", "lo", "hi"):
        measure = BAP(prior="pool", stat=stat) @ 100
        assert [each.value for each in measure.iter_calc(qrels, run)] == [pytest.approx((n / (2 * n - 1)).mean())]
