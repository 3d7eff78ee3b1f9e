"""Nested resampling against plain loops."""

import numpy as np
import pytest

from vbterrier.kernels.resample import nested_noise, resampled_counts, resampled_variances, resamples, stream

N, M, B = 5, 2, 7


@pytest.fixture
def drawn():
    rng = np.random.default_rng(3)
    return rng.random((N, M, B)), resampled_counts(N, B, stream(1, "topics"))


def test_counts_are_those_of_resamples(drawn):
    _, often = drawn
    np.testing.assert_array_equal(often.T, np.concatenate(list(resamples(N, B, stream(1, "topics")))))
    assert often.sum(axis=0).tolist() == [N] * B
    assert often.max() > 1


def test_each_copy_of_a_topic_takes_a_draw_of_its_own(drawn):
    draws, often = drawn
    wanted = np.zeros((M, B))
    for resample in range(B):
        for topic in range(N):
            for copy in range(often[topic, resample]):
                away = draws[topic] - draws[topic].mean(axis=1, keepdims=True)
                wanted[:, resample] += away[:, (resample - copy) % B] / N
    noise, means, variances = nested_noise(iter(draws), often)
    np.testing.assert_allclose(noise, wanted, atol=1e-14)
    np.testing.assert_allclose(means, draws.mean(axis=2).T)
    np.testing.assert_allclose(variances, draws.var(axis=2, ddof=1).T)


def test_draws_that_are_all_the_same_have_no_spread_to_the_last_bit():
    noise, means, variances = nested_noise(np.full((2, 1, 10), 0.1), np.ones((2, 10), dtype=np.uint16))
    assert not noise.any()
    assert not variances.any()
    assert means.tolist() == [[0.1, 0.1]]


def test_means_and_variances_of_resamples(drawn):
    draws, often = drawn
    values = 1e6 + draws[:, :, 0].T
    means, variances = resampled_variances(values, often)
    for resample in range(B):
        chosen = np.repeat(values, often[:, resample], axis=1)
        np.testing.assert_allclose(means[:, resample], chosen.mean(axis=1))
        np.testing.assert_allclose(variances[:, resample], chosen.var(axis=1, ddof=1) * N / (N - 1), rtol=1e-6)


def test_rows_far_apart_lose_no_digits_to_each_other(drawn):
    values, often = drawn[0][:, :, 0].T, drawn[1]
    _, apart = resampled_variances(values + np.array([[0.0], [1e9]]), often)
    _, alone = resampled_variances(values[:1], often)
    assert apart[0] == pytest.approx(alone[0], rel=1e-12)
