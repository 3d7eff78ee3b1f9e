"""Variance components, and sources that vary together, against cases with variances in closed form."""

import numpy as np
import pandas as pd
import pytest
from night import at_night
from scipy import stats

from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.stats.matches import Matches, Statistic
from vbterrier.stats.perturbations import Dirichlet, DropConstraints, ScoreNoise, TagDropout, TemperatureJitter
from vbterrier.stats.replicas import replicate
from vbterrier.stats.topic_intervals import topics_interval
from vbterrier.stats.variance_components import combine_sources, crossed_replicas, first_order, perturbations_by_source
from vbterrier.stats.variants import Variants

# Three topics, two draws each: means 1, 4, 7 with variance 9; variances within 2, 0, 8.
DRAWS = np.array([[[0.0, 2.0]], [[4.0, 4.0]], [[5.0, 9.0]]])
PARTS = {"intents": np.array([[1.0, 0.0, 2.0]]), "tags": np.array([[0.0, 0.0, 4.0]])}
MEANS = DRAWS.mean(axis=2).T
WITHIN = 10 / 3


def combined(draws, source, **options):
    return combine_sources(draws, source, n_qids=len(draws), n_draws=draws.shape[2], **options)


@pytest.mark.parametrize(
    ("options", "between"),
    [
        # One-way random effects: E MS between / B = Var μ + σ²/B.
        ({}, 9 - WITHIN / 2),
        ({"values": MEANS}, 9),
        ({"values": MEANS, "scores": "measured"}, 9 - WITHIN),
    ],
)
def test_analysis_of_variance_by_hand(options, between):
    result = combined(DRAWS, "unjudged", **options)
    assert result.sources == ["topics", "unjudged"]
    np.testing.assert_allclose(result.variances, [[between / 3, WITHIN / 3]])
    np.testing.assert_allclose(result.total, [(between + WITHIN) / 3])
    np.testing.assert_allclose(result.shares, [[between / (between + WITHIN), WITHIN / (between + WITHIN)]])
    assert result.means.tolist() == [4.0]


def test_sources_that_are_crossed_leave_interactions():
    result = combined(DRAWS, PARTS, values=MEANS)
    assert result.sources == ["topics", "intents", "tags", "interactions"]
    np.testing.assert_allclose(result.variances * 9, [[27, 3, 4, 3]])
    assert result.interval.method == "topics, intents and tags (nested)"
    np.testing.assert_allclose(np.array(result.remaining("tags")) * 9, [[6], [37], [33]])
    measured = combined(DRAWS, PARTS, values=MEANS, scores="measured")
    np.testing.assert_allclose(np.array(measured.remaining("tags")) * 9, [[6], [23], [23]])
    # The sum of estimates may exceed the total; negative estimates are noise around 0.
    parts = {"intents": np.array([[15.0, 0.0, 0.0]]), "tags": np.array([[0.0, 0.0, 5.0]]), "third": -MEANS}
    result = combined(DRAWS, parts, values=MEANS)
    np.testing.assert_allclose(result.variances * 9, [[27, 7.5, 2.5, 0, 0]])
    exact = combined(DRAWS, "unjudged", values=MEANS, variances=np.array([[3.0, 3.0, 3.0]]))
    np.testing.assert_allclose(exact.variances, [[3, 1]])


def test_the_normal_interval_of_measured_scores_is_students():
    result = combined(DRAWS, "u", values=MEANS, scores="measured", method="normal")
    reference = topics_interval(MEANS[0], method="normal")
    np.testing.assert_allclose((result.interval.low[0], result.interval.high[0]), (reference.low, reference.high))
    expected = combined(DRAWS, "u", values=MEANS, method="normal", level=0.9)
    total = 3 + 10 / 9
    reach = stats.t.ppf(0.95, 2 * (total / 3) ** 2) * np.sqrt(total)
    np.testing.assert_allclose((expected.interval.low[0], expected.interval.high[0]), (4 - reach, 4 + reach))
    alone = expected.source_interval("u")
    np.testing.assert_allclose(alone.high - 4, [stats.norm.ppf(0.95) * np.sqrt(10 / 9)])
    assert alone.method == "u (normal)"


def collection(seed, n, share, systems=1, n_draws=400):
    """Skewed true scores of mean 0 and variance 1; heterogeneous variances within of mean share/(1 - share); draws."""
    rng = np.random.default_rng(seed)
    truth = rng.gamma(2, 1 / np.sqrt(2), (systems, n)) - np.sqrt(2)
    sd = np.sqrt(share / (1 - share) * rng.gamma(4, 0.25, (systems, n)))
    noise = sd.T[..., None] * rng.standard_normal((n, systems, n_draws))
    return truth, sd, truth + sd * rng.standard_normal((systems, n)), noise


@pytest.mark.parametrize("share", [0.1, at_night(0.5)])
@pytest.mark.slow
def test_shares_of_a_known_population(share):
    truth, sd, measured, noise = collection(5, 4000, share, systems=2)
    exact = combined(noise + truth.T[..., None], "u", values=truth, variances=sd**2, level=0.999)
    drawn = combined(noise[..., :4] + truth.T[..., None], "u", level=0.999)
    noisy = combined(noise + measured.T[..., None], "u", values=measured, scores="measured", level=0.999)
    for result in (exact, drawn, noisy):
        np.testing.assert_allclose(result.shares[:, 1], share, atol=0.05)
        np.testing.assert_allclose(result.total, 1 / (1 - share) / 4000, rtol=0.15)
    for result in (exact, noisy):
        assert (result.low[:, 1] < share).all()
        assert (share < result.high[:, 1]).all()
        assert (result.high[:, 1] - result.low[:, 1] < 0.15).all()


def test_errors_that_topics_share_do_not_average_out():
    """Own errors of variance 0.01 and shared ones of 0.0025, of 50 topics with a variance of 0.04 between them."""
    rng, n, n_draws = np.random.default_rng(8), 50, 8000
    common = 0.05 * rng.standard_normal((1, n_draws))
    errors = 0.1 * rng.standard_normal((n, 1, n_draws))
    values = 0.2 * stats.norm.ppf((np.arange(n) + 0.5) / n)[None]
    parts = np.full((1, n), 0.01 + n * 0.0025)
    options = {"variances": parts, "common": common, "values": values}
    for scores, noise in (("expected", 0), ("measured", errors.var(axis=2, ddof=1).mean())):
        result = combined(errors + values.T[..., None], "u", **options, scores=scores, level=0.6827)
        between = values.var(ddof=1) - noise
        np.testing.assert_allclose(result.variances, [[between / n, 0.01 / n + 0.0025]])
        half = (result.interval.high - result.interval.low) / 2
        np.testing.assert_allclose(half, np.sqrt(result.total), rtol=0.03)
    # They are most of the width: without them the interval is about half as wide.
    without = combined(errors + values.T[..., None], "u", values=values, level=0.6827).interval
    assert (without.high - without.low) / 2 < 0.6 * half


def inside(interval, truth):
    return int(((interval.low <= truth) & (truth <= interval.high)).sum())


# In about one of a hundred collections, the noise exceeds the variance over topics.
@pytest.mark.filterwarnings("ignore:noise within topics")
@pytest.mark.slow
def test_coverage_of_the_population_mean():
    n_sims, n, share = 400, 50, 0.5
    truth, sd, measured, noise = collection(6, n, share, systems=n_sims)
    noisy = combined(noise + measured.T[..., None], "u", values=measured, scores="measured")
    exact = combined(noise + truth.T[..., None], "u", values=truth, variances=sd**2)
    half = (exact.interval.high - exact.interval.low) / 2
    for covered, nominal in (
        # In the full simulation: .939 of 2,000; and .995 for expected scores, which vary less than true ones.
        (inside(noisy.interval, 0), 0.939),
        (inside(exact.interval, 0), 0.995),
        # It is as wide as for a judged collection, and the interval of the source covers the result of judging.
        (int((np.abs(measured.mean(axis=1)) <= half).sum()), 0.949),
        (inside(exact.source_interval("u"), measured.mean(axis=1)), 0.95),
    ):
        assert stats.binomtest(covered, n_sims, nominal).pvalue > 1e-3


def test_the_nested_interval_is_as_wide_as_the_total_says():
    truth, sd, measured, noise = collection(7, 100, 0.5, n_draws=20_000)
    for values, scores in ((truth, "expected"), (measured, "measured")):
        result = combined(noise + values.T[..., None], "u", values=values, variances=sd**2, scores=scores)
        width = result.interval.high - result.interval.low
        np.testing.assert_allclose(width, 2 * result.half_width(result.total), rtol=0.03)
        alone = result.topics.high - result.topics.low
        np.testing.assert_allclose(alone, 2 * result.half_width(result.variances[:, 0]), rtol=0.03)


def test_without_noise_the_interval_is_that_of_the_topics():
    values = np.random.default_rng(8).random((1, 40))
    result = combined(np.repeat(values.T[..., None], 500, axis=2), "unjudged", seed=3)
    expected = topics_interval(values[0], n_resamples=500, seed=3)
    assert result.shares.tolist() == [[1.0, 0.0]]
    assert (result.low.tolist(), result.high.tolist()) == ([[1.0, 0.0]], [[1.0, 0.0]])
    for ends in (result.interval, result.topics):
        np.testing.assert_allclose((ends.low[0], ends.high[0]), (expected.low, expected.high), rtol=1e-12)
    assert result.interval.low == result.topics.low


def test_where_nothing_varies_there_are_no_shares_and_noise_may_leave_nothing_to_topics():
    result = combined(np.full((4, 1, 10), 0.3), "unjudged")
    assert result.total.tolist() == [0.0]
    assert np.isnan([*result.shares[0], *result.low[0], *result.high[0]]).all()
    assert (result.interval.low[0], result.interval.high[0]) == pytest.approx((0.3, 0.3))
    with pytest.warns(DegenerateWarning, match="of 1 of 1 means"):
        result = combined(DRAWS, "u", values=MEANS / 10, scores="measured")
    np.testing.assert_allclose(result.variances, [[0, WITHIN / 3]])


@pytest.mark.parametrize("method", ["nested", "normal"])
def test_one_topic_gives_no_variance_between_topics(method):
    with pytest.warns(DegenerateWarning, match="at least two topics"):
        result = combined(DRAWS[:1], "u", method=method)
    ends = [result.interval.low[0], result.topics.high[0]]
    assert np.isnan([result.total[0], *ends, *result.low[0], *result.high[0], *result.shares[0]]).all()
    assert result.variances[0, 1] == 2.0
    np.testing.assert_allclose(result.source_interval("u").high - 1, [stats.norm.ppf(0.975) * np.sqrt(2)])


def test_no_topics_have_no_mean():
    with pytest.raises(InputError, match="0 topics with 2 draws; wanted at least one topic"):
        combined(DRAWS[:0], "u")


def test_iterators_and_blocks_of_draws_change_no_variance_component():
    truth, _, _, noise = collection(9, 20, 0.5, systems=3, n_draws=100)
    draws = noise + truth.T[..., None]
    result = combined(draws, "u", values=truth, seed=5)
    again = combine_sources(iter(draws), "u", values=truth, seed=5, n_qids=20, n_draws=100)
    turned = combined(draws[:, ::-1], "u", values=truth[::-1], seed=5)
    for other, order in ((again, slice(None)), (turned, slice(None, None, -1))):
        np.testing.assert_allclose(other.shares[order], result.shares, rtol=1e-12)
        np.testing.assert_allclose(other.interval.low[order], result.interval.low, rtol=1e-12)
        np.testing.assert_allclose(other.high[order], result.high, rtol=1e-12)
    other = combined(draws, "u", values=truth, seed=6)
    assert (other.interval.low != result.interval.low).all()


B = 40_000
P, C, W = 0.7, 9.0, (0.6, 0.2)
INTENTS = pd.DataFrame({"qid": "q1", "entity_id": ["A", "B"], "prob": [P, 1 - P]})
SYSTEMS = {
    "both": Matches(np.array([0, 1]), np.array([0, 1]), np.array(W), docno=["a", "b"]),
    "first": Matches(np.array([0]), np.array([0]), docno=["a"]),
}
ES = Statistic("ES", 5)


def test_first_order_variances_of_success():
    # ES = π d_A + (1 - π) d_B with d ~ Bernoulli(w).
    spread = P * (1 - P) / (C + 1)
    of_tags = [w * (1 - w) for w in W]
    expected = {"intents": (W[0] - W[1]) ** 2 * spread, "tags": P**2 * of_tags[0] + (1 - P) ** 2 * of_tags[1]}
    total = sum(expected.values()) + spread * sum(of_tags)
    made, again = crossed_replicas(
        INTENTS, SYSTEMS, perturbations_by_source([Dirichlet(C), TagDropout()]), ES, n_replicas=B, seed=2
    )
    scores = made.of("both", ES)[:, 0]
    assert scores.var() == pytest.approx(total, rel=0.03)
    for source, variance in expected.items():
        assert first_order(scores, again[source][0][:, 0]) == pytest.approx(variance, abs=4 * total / np.sqrt(B))
    # With certain tags, all variance is due to the intents.
    scores = made.of("first", ES)[:, 0]
    assert first_order(scores, again["intents"][1][:, 0]) == pytest.approx(scores.var(), rel=1e-3)
    assert first_order(scores, again["tags"][1][:, 0]) == pytest.approx(0, abs=4 * spread / np.sqrt(B))


def test_replicas_are_those_of_replicate():
    noise = [Dirichlet(5), TagDropout(), Dirichlet(50)]
    made, again = crossed_replicas(INTENTS, SYSTEMS, perturbations_by_source(noise), ES, n_replicas=50, seed=3)
    np.testing.assert_array_equal(made.values, replicate(INTENTS, SYSTEMS, noise, [ES], n_replicas=50, seed=3).values)
    assert list(again) == ["intents (Dirichlet)", "tags", "intents (Dirichlet) 2"]
    assert all((values != made.values[:, 0]).any() for values in again.values())
    # Pairs are taken about their common mean, 0.5 and 1.5: (0 - 1)(1 - 1) + (1 - 1)(2 - 1).
    assert first_order(np.array([0.0, 1.0]), np.array([1.0, 2.0])) == 0.0
    # One source needs no second run.
    made, again = crossed_replicas(INTENTS, SYSTEMS, perturbations_by_source(Dirichlet()), ES, n_replicas=10)
    assert (made.n_replicas, len(again)) == (10, 0)


def test_names_of_sources():
    assert list(perturbations_by_source([Dirichlet(), TagDropout()])) == ["intents", "tags"]
    assert list(perturbations_by_source([Dirichlet(), ScoreNoise()])) == ["intents (Dirichlet)", "intents (ScoreNoise)"]
    both = perturbations_by_source({"linker": [TemperatureJitter(), ScoreNoise()], "tagger": TagDropout()})
    assert both == {"linker": [TemperatureJitter(), ScoreNoise()], "tagger": [TagDropout()]}


def test_a_perturbation_that_takes_turns_is_alone():
    variants = Variants([INTENTS], order="turn")
    assert list(perturbations_by_source(variants)) == ["intents"]
    for turning in (variants, DropConstraints("turn")):
        with pytest.raises(ParameterError, match=f"{type(turning).__name__} takes turns"):
            perturbations_by_source([turning, TagDropout()])
    assert len(perturbations_by_source([DropConstraints("one"), TagDropout()])) == 2
