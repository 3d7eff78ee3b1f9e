"""Numbers behind perturbations: textbook loops as oracles, and the distributions that they should have."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vbterrier.kernels.candidates import another, keyed_uniforms, log_gammas, resampled, survivors

# Refused is what a right generator gives in 1 of 10,000 runs; seeds are fixed, so a test that passes always passes.
RARE = 1e-4


@st.composite
def topics(draw):
    """Candidates of some topics side by side, some of them absent, in a few replicas."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    topic = np.repeat(np.arange(len(sizes)), sizes)
    b = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    alive = rng.random((draw(st.sampled_from([1, b])), len(topic))) < draw(st.sampled_from([0.0, 0.5, 1.0]))
    return topic, len(sizes), alive, rng.random((b, len(topic)))


# Gamma variates in logarithms


@pytest.mark.parametrize("shape", [0.01, 0.2, 1.0, 7.5, 300.0])
def test_gammas_have_the_distribution_of_gammas(shape):
    rng = np.random.default_rng(5)
    logs = log_gammas(np.array(shape), rng.standard_gamma(shape + 1, 4000), rng.standard_exponential(4000))
    assert stats.kstest(logs, stats.loggamma(shape).cdf).pvalue > RARE


def test_shapes_whose_gammas_underflow_have_finite_logarithms_and_zero_has_none():
    shape = np.array([1e-9, 1e-300, 0.0])
    logs = log_gammas(shape, np.ones(3), np.array([1.0, 0.25, 0.0]))
    assert logs.tolist() == [pytest.approx(-1e9), pytest.approx(-0.25e300), -math.inf]


def test_shapes_of_one_row_serve_all_replicas():
    larger, exponential = np.random.default_rng(0).gamma(2.0, size=(2, 5, 3))
    shape = np.array([[0.5, 0.0, 2.0]])
    expected = np.log(larger[:, [0, 2]]) - exponential[:, [0, 2]] / shape[:, [0, 2]]
    assert log_gammas(shape, larger, exponential)[:, [0, 2]] == pytest.approx(expected, rel=1e-14)


# Dropping


@given(topics(), st.sampled_from([0.0, 0.3, 0.999, 1.0]))
def test_survivors_are_those_of_the_textbook_loop(case, share):
    topic, n_topics, alive, uniform = case
    found = survivors(uniform, alive, share, topic, n_topics)
    for b, row in enumerate(uniform):
        for place in range(n_topics):
            here = [i for i in np.flatnonzero(topic == place) if alive[b % len(alive), i]]
            stay = [i for i in here if row[i] >= share]
            if here and not stay:
                stay = [max(here, key=lambda i: row[i])]
            assert [i for i in np.flatnonzero(topic == place) if found[b, i]] == stay


# Resampling


@given(topics())
def test_resampled_counts_are_those_of_the_textbook_loop(case):
    topic, n_topics, alive, uniform = case
    found = resampled(uniform, alive, topic, n_topics)
    for b, row in enumerate(uniform):
        for place in range(n_topics):
            mine = np.flatnonzero(topic == place)
            here = [i for i in mine if alive[b % len(alive), i]]
            drawn = [here[int(row[mine[j]] * len(here))] for j in range(len(here))]
            assert [int(found[b, i]) for i in mine] == [drawn.count(i) for i in mine]


# Numbers of keys


@settings(max_examples=50)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), st.integers(0, 50), st.integers(1, 20))
def test_a_key_draws_the_same_whatever_others_and_batches_there_are(keys, first, n):
    words = np.array(keys, dtype=np.uint64)
    whole = keyed_uniforms(words, 0, first + n)
    assert whole.shape == (first + n, len(keys))
    assert (keyed_uniforms(words[-1:], first, n) == whole[first:, -1:]).all()
    assert ((whole >= 0) & (whole < 1)).all()


def test_numbers_of_keys_are_uniform_and_unrelated_over_keys_and_replicas():
    keys = np.random.default_rng(3).integers(0, 2**64, 60, dtype=np.uint64)
    drawn = keyed_uniforms(keys, 0, 500)
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > RARE
    assert len(np.unique(drawn)) == drawn.size
    off_diagonal = np.corrcoef(drawn.T)[np.triu_indices(60, 1)]
    assert stats.kstest(off_diagonal * np.sqrt(500), "norm").pvalue > RARE
    next_to = np.corrcoef(drawn[1:].ravel(), drawn[:-1].ravel())[0, 1]
    assert abs(next_to) * np.sqrt(drawn.size) < 4


def test_the_numbers_of_a_key_are_the_published_ones_of_splitmix64():
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    expected = [(word >> 11) / 2**53 for word in published]
    assert keyed_uniforms(np.zeros(1, dtype=np.uint64), 0, 4)[:, 0].tolist() == expected


# Confusion


@given(topics())
def test_another_is_any_other_candidate_of_the_topic(case):
    topic, n_topics, _, uniform = case
    start = np.searchsorted(topic, np.arange(n_topics))[topic]
    size = np.bincount(topic)[topic]
    intent = np.arange(len(topic))
    found = another(uniform, intent[None], start, size)
    for b in range(len(uniform)):
        for i in intent:
            others = [j for j in intent if topic[j] == topic[i] and j != i]
            expected = others[int(uniform[b, i] * len(others))] if others else i
            assert found[b, i] == expected
