"""The prior that learns: its parts against SciPy, its two explanations against planted collections."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from vbterrier.frames.ranking import Run
from vbterrier.unjudged.learned_prior import (
    CLUSTERING,
    STRENGTHS,
    Learned,
    beta_binomial,
    expected_strength,
    hierarchical,
    learned,
    random_missing,
)
from vbterrier.unjudged.pool import Judgments

K = 10


def evenly(rng, _topic, _rank):
    """Every other document is judged, at random."""
    return rng.random() < 0.5


def planted(rng, *, n_topics=60, keep=evenly, n_pool=60):
    """A run whose documents are relevant at a rate of their topic's, some of them judged, and pools beside it.

    Returns run, qrels and the share of relevant documents among the unjudged of each cut.
    """
    run, qrels, truth = [], [], {}
    for topic in range(n_topics):
        qid, relevant = f"q{topic}", rng.beta(6, 3)
        missed = []
        for rank in range(3 * K):
            docno = f"d{rank}"
            run.append((qid, docno, -float(rank)))
            label = int(rng.random() < relevant) * int(rng.integers(1, 3))
            if keep(rng, topic, rank):
                qrels.append((qid, docno, label))
            elif rank < K:
                missed.append(label > 0)
        qrels += [(qid, f"pool{i}", int(rng.random() < relevant / 3)) for i in range(n_pool)]
        truth[qid] = float(np.mean(missed)) if missed else np.nan
    run, qrels = (pd.DataFrame(rows, columns=["qid", "docno", of]) for rows, of in ((run, "score"), (qrels, "label")))
    return run, qrels, pd.Series(truth)


def learn(run, qrels, k=K):
    judged = Judgments(qrels).judge(Run(run), k)
    return judged.judgments.topics, learned(judged)


@pytest.mark.parametrize("strength", [1.0, 7.5, 256.0])
def test_beta_binomial_is_scipys_but_for_the_binomial_coefficient(strength):
    hits, trials, share = np.array([0.0, 3.0, 5.0]), np.array([4.0, 3.0, 9.0]), np.array([0.2, 0.5, 0.9])
    log = beta_binomial(hits, trials, share, strength)
    expected = stats.betabinom.logpmf(hits, trials, strength * share, strength * (1 - share))
    coefficient = stats.binom.logpmf(hits, trials, 0.5) - trials * np.log(0.5)
    np.testing.assert_allclose(log + coefficient, expected, atol=1e-9)


def test_the_strength_of_many_counts_is_found_again():
    rng = np.random.default_rng(3)
    for strength in (2.0, 16.0, 256.0):
        share = rng.uniform(0.2, 0.8, 4000)
        trials = np.full(4000, 40.0)
        hits = rng.binomial(40, rng.beta(strength * share, strength * (1 - share))).astype(float)
        found = expected_strength(hits, trials, share)
        assert found == pytest.approx(strength, rel=0.02)


def test_counts_that_tell_nothing_leave_the_mean_correlation_of_all_strengths():
    found = expected_strength(np.array([1.0, 0.0]), np.ones(2), np.full(2, 0.5))
    assert 1 / (found + 1) == pytest.approx(np.mean(1 / (STRENGTHS + 1)))


def test_a_small_pool_leans_on_the_others_and_a_large_one_hardly():
    counts = np.array([[900, 100], [850, 150], [10, 0], [800, 200], [920, 80]])
    shrunk = hierarchical(counts)
    np.testing.assert_allclose(shrunk.sum(axis=1), 1.0)
    assert shrunk[0, 1] == pytest.approx(0.1, abs=0.01)
    assert 0.05 < shrunk[2, 1] < 0.15


def textbook_random(judged, unjudged):
    """The same posterior with SciPy's binomial and beta-binomial, explanation by explanation."""
    share = (judged.sum() + 0.5) / (judged.sum() + unjudged.sum() + 1)

    def ratio(axis):
        hits, trials = judged.sum(axis), judged.sum(axis) + unjudged.sum(axis)
        even = stats.binom.pmf(hits, trials, share).prod()
        strengths = [1 / correlation - 1 for correlation in CLUSTERING]
        clusters = [stats.betabinom.pmf(hits, trials, s * share, s * (1 - share)).prod() for s in strengths]
        return np.mean(clusters) / even

    topics, ranks = ratio(1), ratio(0)
    weights = np.array([1 / 2, ranks / 6, topics / 6, topics * ranks / 6])
    return (weights[0] + weights[1] / 2) / weights.sum()


def test_the_posterior_is_the_textbooks():
    rng = np.random.default_rng(0)
    for _ in range(20):
        judged = rng.random((rng.integers(2, 8), 5)) < rng.random()
        there = rng.random(judged.shape) < 0.9
        judged, unjudged = judged & there, ~judged & there
        assert random_missing(judged, unjudged) == pytest.approx(textbook_random(judged, unjudged), abs=1e-9)


def test_randomly_missing_documents_are_expected_as_the_judged_ones_are():
    run, qrels, truth = planted(np.random.default_rng(5))
    topics, found = learn(run, qrels)
    assert found.random > 0.8
    relevant = pd.Series(1 - found.prob[:, 0], topics)
    pool = qrels[qrels["docno"].str.startswith("pool")].groupby("qid")["label"].mean()
    error = (relevant - truth).abs().mean()
    # The pools hold a third of the run's rate: estimates that rely on them are far off.
    assert error < 0.5 * (pool - truth).abs().mean()
    assert (relevant - truth).mean() == pytest.approx(0, abs=0.05)


def test_documents_that_pools_left_out_are_expected_nearer_to_the_pool():
    def pooled(rng, topic, _rank):
        return rng.random() < (0.95 if topic % 2 else 0.2)

    run, qrels, _ = planted(np.random.default_rng(6), keep=pooled)
    topics, found = learn(run, qrels)
    assert found.random < 0.01
    relevant = pd.Series(1 - found.prob[:, 0], topics)
    labels = qrels.assign(relevant=qrels["label"] > 0, pool=qrels["docno"].str.startswith("pool"))
    shares = labels.groupby(["qid", "pool"])["relevant"].mean().unstack()
    few = shares[[qid[1:].isdigit() and int(qid[1:]) % 2 == 0 for qid in shares.index]].dropna()
    between = relevant[few.index].between(few.min(axis=1) - 0.1, few.max(axis=1) + 0.1)
    assert between.mean() > 0.95
    nearer = (relevant[few.index] - few[True]).abs() < (relevant[few.index] - few[False]).abs()
    assert nearer.mean() > 0.8


def test_the_strength_is_that_of_the_spread_around_the_expectation():
    """Standardised errors of Dirichlet draws with the stated strength have a variance near 1 where judging is even."""
    errors = []
    for seed in range(6):
        run, qrels, truth = planted(np.random.default_rng(seed))
        topics, found = learn(run, qrels)
        unjudged = Judgments(qrels).judge(Run(run), K).n_unjudged
        relevant = 1 - found.prob[:, 0]
        # u draws from an urn of strength s: variance of their mean.
        variance = relevant * (1 - relevant) * (1 + found.strength / np.maximum(unjudged, 1)) / (found.strength + 1)
        errors += ((truth.loc[topics].to_numpy() - relevant) ** 2 / variance)[unjudged > 0].tolist()
    assert np.mean(errors) == pytest.approx(1.0, abs=0.15)


def test_order_of_rows_and_topics_changes_nothing():
    run, qrels, _ = planted(np.random.default_rng(8), n_topics=12)
    topics, found = learn(run, qrels)
    shuffled = learn(run.sample(frac=1, random_state=0), qrels.sample(frac=1, random_state=1))
    place = [shuffled[0].index(topic) for topic in topics]
    np.testing.assert_allclose(shuffled[1].prob[place], found.prob, atol=1e-9)
    np.testing.assert_allclose(shuffled[1].strength[place], found.strength, rtol=1e-6)


def one_topic(labels, docnos=("a", "b", "c")):
    qrels = pd.DataFrame({"qid": "q", "docno": list(labels), "label": list(labels.values())})
    return pd.DataFrame({"qid": "q", "docno": docnos, "score": [3.0, 2.0, 1.0]}), qrels


FEW = [{"x": 0, "y": 0}, {"x": 1, "y": 2}, {"a": 1, "x": 0}, {"a": 1, "b": 2, "c": 1}, {"x": -1, "a": 3}]


@pytest.mark.parametrize("labels", [*FEW, {"a": 0, "b": 0, "x": 1}])
def test_little_to_go_by_still_gives_a_distribution(labels):
    _, found = learn(*one_topic(labels))
    assert isinstance(found, Learned)
    np.testing.assert_allclose(found.prob.sum(axis=1), 1.0)
    assert not np.isnan(found.strength).any()


def test_without_a_relevant_document_anywhere_none_is_expected():
    _, found = learn(*one_topic({"x": 0, "a": 0}))
    assert found.prob.tolist() == [[1.0]]
    assert np.isinf(found.strength).all()


def test_whole_rankings_are_read_to_their_end():
    run, qrels, _ = planted(np.random.default_rng(4), n_topics=8)
    _, whole = learn(run, qrels, k=None)
    _, cut = learn(run, qrels, k=3 * K)
    np.testing.assert_allclose(whole.prob, cut.prob)
