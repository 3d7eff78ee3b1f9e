"""Estimates of ES and VB from annotated documents, against plain loops, enumerated samples and SciPy."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from vbterrier.kernels.annotated_coverage import (
    BITS,
    Rankings,
    agreement_shifts,
    annotation_residuals,
    candidate_bits,
    drawn_candidates,
    spread_estimates,
    whole_topic_estimates,
)
from vbterrier.kernels.annotation_model import FEATURES, CandidateTable, CoefficientPriors
from vbterrier.kernels.conditional_logit import candidate_probabilities, fit_conditional_logit


def success(sets, prob, cutoff):
    covered = set().union(*sets[:cutoff])
    es = sum(prob[one] for one in covered)
    return es, es - np.sqrt(es * (1 - es))


def words_of(sets, n_words):
    words = np.zeros((len(sets) + 1, n_words), dtype=np.int64)
    for row, entities in enumerate(sets):
        for one in entities:
            words[row, one // BITS] |= np.int64(1) << (one % BITS)
    return words


@pytest.mark.parametrize("n_candidates", [3, 8, 60, 130])
def test_scores_are_those_of_plain_sets(n_candidates):
    rng = np.random.default_rng(n_candidates)
    n_topics, n_systems, depth = 4, 3, 5
    prob = rng.dirichlet(np.ones(n_candidates), n_topics)
    sets = [set(rng.choice(n_candidates, rng.integers(0, 4), replace=False).tolist()) for _ in range(20)]
    rows = np.array([rng.choice(21, depth, replace=False) for _ in range(n_topics * n_systems)])
    rankings = Rankings(rows, prob, (1, 3, 5))
    made = rankings.topic_scores(words_of(sets, -(-n_candidates // BITS)))
    for topic, system, (place, cutoff) in itertools.product(range(4), range(3), enumerate((1, 3, 5))):
        shown = [([*sets, set()])[row] for row in rows[topic * n_systems + system]]
        assert made[:, place, topic, system] == pytest.approx(success(shown, prob[topic], cutoff), abs=1e-7)


def test_candidates_are_drawn_with_their_probabilities():
    prob, document = np.array([0.2, 0.8, 1.0, 0.0, 0.5, 0.25, 0.25]), np.array([0, 0, 1, 1, 2, 2, 2])
    uniform = np.stack([(np.arange(1000) + 0.5) / 1000] * 3, axis=1)
    drawn = drawn_candidates(prob, document, 3, uniform)
    shares = [np.bincount(drawn[:, one], minlength=3) / 1000 for one in range(3)]
    assert np.allclose(shares, [[0.2, 0.8, 0], [1, 0, 0], [0.5, 0.25, 0.25]])


def test_coefficients_are_the_most_probable_ones():
    rng = np.random.default_rng(1)
    document = np.repeat(np.arange(40), rng.integers(2, 5, 40))
    features = rng.normal(size=(len(document), 3))
    target = candidate_probabilities(features * 2, document, np.array([1.0, -1.0, 0.5]))
    mean, precision = np.array([0.5, 0.0, 0.0]), np.array([1.0, 0.25, 4.0])

    def loss(coef):
        prob = candidate_probabilities(features, document, coef)
        return -(target * np.log(prob)).sum() + (precision * (coef - mean) ** 2).sum() / 2

    expected = minimize(loss, mean, method="BFGS", options={"gtol": 1e-9}).x
    assert fit_conditional_logit(features, document, target, mean, precision) == pytest.approx(expected, abs=1e-4)
    nothing = features[:0], document[:0], target[:0]
    assert fit_conditional_logit(*nothing, mean, precision).tolist() == mean.tolist()


@pytest.fixture
def small():
    """One topic with four documents and three candidates, two systems of two ranks."""
    rng = np.random.default_rng(3)
    rankings = Rankings(np.array([[0, 1], [2, 3]]), np.array([[0.5, 0.3, 0.2]]), (1, 2))
    gold = words_of([{0}, {0, 1}, {2}, set()], 1)
    drawn = np.concatenate([candidate_bits(rng.integers(-1, 3, (30, 4)), 1), np.zeros((30, 1, 1), np.int64)], axis=1)
    return rankings, gold, drawn


def test_spread_estimates_are_unbiased_over_all_samples(small):
    """Two ranks have pairs alone, so that the expansion is exact if corrections are not shrunk."""
    rankings, gold, drawn = small
    inclusion = np.array([0.3, 0.6, 0.5, 0.8])
    truth, expected = rankings.topic_scores(gold).mean(axis=2), 0.0
    for mask in itertools.product([False, True], repeat=4):
        taken = np.array(mask)
        if taken.any():
            parts = annotation_residuals(
                rankings, gold, drawn, np.append(taken, False), np.append(inclusion, 1.0), np.zeros(2)
            )
            score = spread_estimates(parts, np.full((2, 2), 1e4), 1.0).score
        else:
            score = rankings.expected_scores(drawn).mean(axis=2)
        expected = expected + np.where(taken, inclusion, 1 - inclusion).prod() * score
    assert expected == pytest.approx(truth, abs=1e-6)


def test_spread_estimates_without_terms_of_pairs_have_those_of_documents_alone(small):
    rankings, gold, drawn = small
    taken = np.array([True, False, True, True, False])
    inclusion = np.array([0.3, 0.6, 0.5, 0.8, 1.0])
    parts = annotation_residuals(rankings, gold, drawn, taken, inclusion, np.zeros(2))
    a = 1 / inclusion[taken] - 1
    expected = parts.plug_in + np.einsum("mcds,d->mcs", parts.first, a) / parts.n_topics
    assert spread_estimates(parts, np.zeros((2, 2)), 1.0).score == pytest.approx(expected, abs=1e-12)
    assert spread_estimates(parts, np.full((2, 2), 0.5), 1.0).score != pytest.approx(expected, abs=1e-6)


def test_spread_estimates_of_all_documents_are_the_scores(small):
    rankings, gold, drawn = small
    every = np.array([True] * 4 + [False])
    result = spread_estimates(
        annotation_residuals(rankings, gold, drawn, every, np.ones(5), np.full(2, 0.7)), np.full((2, 2), 0.05), 1.0
    )
    assert result.score == pytest.approx(rankings.topic_scores(gold).mean(axis=2))
    assert np.sqrt(result.covariance).max() < 1e-4


def test_whole_topics_are_corrected_by_regression():
    rng = np.random.default_rng(4)
    model = rng.random((2, 1, 30, 3))
    gold = 0.2 + 0.7 * model + rng.normal(0, 0.05, model.shape)
    taken = np.arange(30) % 3 == 0
    result = whole_topic_estimates(gold, model, taken, 1.0)
    assert result.degrees.tolist() == np.full((2, 1, 3), 9.0).tolist()
    y, x = gold[0, 0][taken], model[0, 0][taken]
    slope = ((y - y.mean(0)) * (x - x.mean(0))).sum() / ((x - x.mean(0)) ** 2).sum()
    assert result.slope[0, 0] == pytest.approx(slope)
    assert result.score[0, 0] == pytest.approx(slope * model[0, 0].mean(0) + (y - slope * x).mean(0))
    assert result.covariance[0, 0] == pytest.approx(np.cov((y - slope * x).T) / 10 * (1 - 10 / 30))
    census = whole_topic_estimates(gold, model, np.ones(30, bool), 1.2)
    assert census.score == pytest.approx(gold.mean(axis=2))
    assert census.covariance == pytest.approx(0)
    assert whole_topic_estimates(gold, model, taken, 1.2).covariance == pytest.approx(1.44 * result.covariance)


def test_shifts_are_high_for_systems_that_agree_more_than_the_model():
    rng = np.random.default_rng(5)
    system, topic = np.repeat([0, 1], 300), np.tile(np.arange(30), 20)
    agrees = rng.random(600) < np.where(system == 0, 0.8, 0.3)
    shifts = agreement_shifts(np.full(600, 0.5), agrees, system, topic, np.zeros((30, 1)), 2)
    assert shifts.mean(axis=0) == pytest.approx([np.log(4), np.log(3 / 7)], abs=0.3)
    none = agreement_shifts(np.empty(0), np.empty(0, bool), system[:0], topic[:0], np.zeros((30, 1)), 2)
    assert not none.any()


def table(seed=0):
    rng = np.random.default_rng(seed)
    topic, n_candidates = np.repeat(np.arange(10), 4), rng.integers(2, 4, 10)
    prob = np.zeros((10, 3))
    for place, n in enumerate(n_candidates):
        prob[place, :n] = rng.dirichlet(np.ones(n))
    n = int((n_candidates[topic] + 1).sum())
    made = CandidateTable(
        topic, prob, n_candidates, rng.random(n) < 0.3, rng.random(n), [rng.random((4, 4)) for _ in range(10)],
        rng.random(40),
    )  # fmt: skip
    share = np.zeros(n)
    share[made.starts[:-1] + rng.integers(0, n_candidates[topic] + 1)] = 1
    return made, share


def test_probabilities_of_a_document_never_use_its_own_annotation():
    made, share = table()
    priors = CoefficientPriors(np.zeros(len(FEATURES)), np.ones(len(FEATURES)))
    is_annotated = np.arange(40) % 2 == 0
    before = made.probabilities(share, is_annotated, priors, by_topic=False)
    assert np.bincount(made.document, before) == pytest.approx(1)
    other = share.copy()
    here = slice(made.starts[8], made.starts[9])
    other[here] = np.roll(other[here], 1)
    after = made.probabilities(other, is_annotated, priors, by_topic=False)
    assert after[here] == pytest.approx(before[here], abs=0)
    same_topic = slice(made.starts[9], made.starts[10])
    assert np.abs(after[same_topic] - before[same_topic]).max() > 0.01
    by_topic = [made.probabilities(one, is_annotated, priors, by_topic=True) for one in (share, other)]
    whole = slice(made.starts[8], made.starts[12])
    assert by_topic[0][whole] == pytest.approx(by_topic[1][whole], abs=0)


def test_steps_that_overshoot_are_halved():
    """Of two documents that disagree, the likelihood is nearly linear off the optimum, and a full step jumps over."""
    features, document = np.array([[100.0], [0.0], [100.0], [0.0]]), np.array([0, 0, 1, 1])
    target = np.array([1.0, 0.0, 0.0, 1.0])
    result = fit_conditional_logit(features, document, target, np.array([0.6]), np.array([0.01]))
    # The optimum: 100 (1 - 2 p) = .01 (β - .6), with p the logistic function of 100 β.
    np.testing.assert_allclose(result, [0.0], atol=2e-6)
