"""Limits and decisions of non-inferiority: by hand, against SciPy, over looks, and the queries that decide."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from vbterrier.errors import ParameterError
from vbterrier.stats import confidence_sequence
from vbterrier.stats.noninferiority import PRIOR, Criteria, Limits, limits, queries_needed, share_sequences

ALONE = Criteria(0.01, 0.05, max_share=1)
BOTH = Criteria(0.01, 0.05)
ANY = Criteria(0.01, 0.05, guarantee="any")


def ends(criteria, d, w=None):
    found = limits(criteria, np.asarray(d, float)[:, None], np.ones(len(d)) if w is None else w)
    return float(found.low[0]), float(found.high[0]), float(found.share_low[0]), float(found.share_high[0])


def test_limits_of_the_mean_are_those_of_one_sided_tests():
    d = np.random.default_rng(2).normal(0, 0.1, 60)
    assert ends(ALONE, d)[:2] == pytest.approx(d.mean() + stats.t.ppf([0.05, 0.95], 59) * stats.sem(d))
    # FAIL has two tests.
    assert ends(BOTH, d)[:2] == pytest.approx(d.mean() + stats.t.ppf([0.05, 0.975], 59) * stats.sem(d))
    many = replace(ANY, n_resamples=200_000)
    assert ends(many, np.zeros(299))[0] == pytest.approx(-(1 - 0.05 ** (1 / 299)), rel=0.02)
    sequence = confidence_sequence(d, level=0.9, bounds=(-1, 1)).iloc[-1]
    assert ends(replace(ANY, sequential=True), d)[:2] == pytest.approx((sequence["low"], sequence["high"]))


def test_limits_of_a_weighted_mean_are_those_of_its_linearisation():
    rng = np.random.default_rng(5)
    d, w = rng.normal(0, 0.1, 40), rng.uniform(1, 5, 40)
    mean = np.average(d, weights=w)
    error = np.sqrt((w**2 * (d - mean) ** 2).sum()) / w.sum() * np.sqrt(40 / 39)
    assert ends(ALONE, d, w)[0] == pytest.approx(mean - stats.t.ppf(0.95, 39) * error, rel=0.01)


@pytest.mark.parametrize("n_lost", [0, 1, 7, 80])
def test_limits_of_the_share_of_large_losses_are_those_of_clopper_and_pearson(n_lost):
    d = np.where(np.arange(80) < n_lost, -0.6, 0.01)
    low, high = ends(BOTH, d)[2:]
    assert high == pytest.approx(stats.binomtest(n_lost, 80).proportion_ci(0.9, "exact").high)
    assert low == pytest.approx(stats.binomtest(n_lost, 80).proportion_ci(0.95, "exact").low)
    # Equal weights are no weights; with unequal ones, limits for any distribution are wider.
    drawn = ends(replace(BOTH, n_resamples=100_000), d, np.where(np.arange(80) == 40, 1 + 1e-9, 1.0))
    assert drawn[2:] == pytest.approx((low, high), abs=0.003)
    assert ends(BOTH, d, np.where(np.arange(80) == 79, 20.0, 1.0))[3] >= high


def test_equal_differences_have_limits_of_other_possible_losses():
    lack = 1 - 0.05 ** (1 / 100)
    assert ends(BOTH, np.zeros(100))[0] == pytest.approx(-0.5 * lack)
    assert ends(ALONE, np.zeros(100))[0] == pytest.approx(-lack)
    assert ends(replace(BOTH, large_loss=0.2), np.full(100, 0.05))[0] == pytest.approx(0.05 - 0.2 * lack)


@pytest.mark.parametrize("criteria", [BOTH, ANY, replace(BOTH, sequential=True)])
def test_weights_matter_up_to_a_factor(criteria):
    rng = np.random.default_rng(3)
    d, w = rng.normal(0, 0.3, 60), rng.uniform(0.1, 3, 60)
    weighted = ends(criteria, d, w)
    assert ends(criteria, d, 10 * w) == pytest.approx(weighted)
    assert ends(criteria, d) != pytest.approx(weighted, abs=1e-4)
    assert weighted[0] < np.average(d, weights=w) < weighted[1]


def test_small_tails_are_drawn_often_enough():
    d = np.random.default_rng(4).normal(0, 0.1, 30)
    lows = [ends(replace(ANY, tail=tail, n_resamples=100), d)[0] for tail in (0.1, 1e-3, 1e-5)]
    assert lows == sorted(lows, reverse=True)
    assert lows[2] < lows[1] - 0.01
    with pytest.raises(ParameterError, match="need more than 100,000,000 draws"):
        ends(replace(ANY, tail=1e-9), d)


@pytest.mark.parametrize("share", [0.02, 0.05, 0.3])
def test_sequences_of_shares_cover_the_share_at_every_look(share):
    lost = (np.random.default_rng(6).random((150, 400)) < share).astype(float)
    # Limits only narrow, so that the last ones miss the share if any did.
    low, high = share_sequences(lost, np.ones(150), 0.05, 0.1)
    for side, tail in ((low > share, 0.05), (high < share, 0.1)):
        assert stats.binom.sf(side.sum() - 1, 400, tail) > 1e-3
    assert float(np.median(high - low)) < 0.3
    found = limits(replace(BOTH, sequential=True), -0.9 * lost[:, :2], np.ones(150))
    assert found.share_low.tolist() == share_sequences(lost[:, :2], np.ones(150), 0.025, 0.05)[0].tolist()


def test_a_sequence_without_losses_needs_more_queries_than_one_look():
    ends = [share_sequences(np.zeros((n, 1)), np.ones(n), 0.05, 0.05)[1, 0] for n in range(50, 120)]
    n = 50 + int(np.argmax(np.array(ends) <= 0.05))
    assert 59 < n < 90
    # Robbins' mixture by quadrature, where it rejects a share of .05.
    p = (np.arange(100_000) + 0.5) / 100_000
    mixture = [float((stats.beta.pdf(p, *PRIOR) * (1 - p) ** m).mean()) for m in (n - 1, n)]
    assert mixture[0] < 0.95 ** (n - 1) / 0.05
    assert mixture[1] > 0.95**n / 0.05


@pytest.mark.parametrize(
    ("low", "high", "share_low", "share_high", "decision"),
    [
        (-0.0099, 0.1, 0.0, 0.05, "PASS"),
        (-0.0099, 0.1, 0.0, 0.051, "UNKNOWN"),
        (-0.01, 0.1, 0.0, 0.0, "UNKNOWN"),
        (-0.1, -0.01, 0.0, 0.2, "UNKNOWN"),
        (-0.1, -0.0101, 0.0, 0.0, "FAIL"),
        (0.01, 0.1, 0.0501, 0.2, "FAIL"),
    ],
)
def test_limits_at_the_margin_and_at_the_share_decide(low, high, share_low, share_high, decision):
    found = Limits(*np.array([low, high, 0.0, share_low, share_high])[:, None])
    assert found.decisions(BOTH) == [decision]
    assert found.decisions(ANY) == [decision if low <= -0.01 else "PASS"]


def test_independent_errors_add_in_squares():
    found = Limits(*np.array([-0.03, 0.04, 0.1, 0.06, 0.14])[:, None]).widened(np.zeros(1), (0.04, 0.03, 0.03, 0.03))
    assert [found.low[0], found.high[0]] == pytest.approx([-0.05, 0.05])
    assert [found.share_low[0], found.share_high[0]] == pytest.approx([0.05, 0.15])


def test_queries_needed_decide_and_fewer_do_not():
    rng = np.random.default_rng(7)
    d = rng.normal(0, 0.1, 100)
    d += 0.002 - d.mean()
    for criteria in (replace(ALONE, margin=0.012), replace(ANY, margin=0.03), replace(BOTH, margin=0.012)):
        n = queries_needed(criteria, d, np.ones(100), (d < -0.5) * 1.0)

        def decided(size, criteria=criteria):
            more = np.tile(d, -(-size // 100))[:size]
            return limits(criteria, more[:, None], np.ones(size)).decisions(criteria) != ["UNKNOWN"]

        assert decided(100 * -(-int(1.1 * n) // 100))
        assert not decided(100 * (int(0.8 * n) // 100) or 100)
    # By hand: t of the standard deviation over the distance of the mean from the margin.
    n = queries_needed(replace(ALONE, margin=0.008), d, np.ones(100), np.zeros(100))
    assert n == pytest.approx((1.645 * d.std() / 0.01) ** 2, rel=0.05)
    # Large losses alone: 59 queries without one show that at most 5 % have one.
    assert queries_needed(
        replace(BOTH, margin=0.5), np.tile([0.1, -0.1], 10), np.ones(20), np.zeros(20)
    ) == pytest.approx(59, abs=2)
    d -= d.mean() + 0.01
    assert queries_needed(ALONE, d, np.ones(100), np.zeros(100)) is None


def test_predictions_whose_errors_shrink_with_more_queries_need_more_of_them():
    d = np.random.default_rng(8).normal(0, 0.1, 100)
    d -= d.mean()
    alone = queries_needed(ALONE, d, np.ones(100), np.zeros(100))
    # Prediction errors as large as those of the sample double the variance.
    reach = 1.645 * d.std(ddof=1) / 10
    assert queries_needed(ALONE, d, np.ones(100), np.zeros(100), (reach, reach, 0, 0)) == pytest.approx(
        2 * alone, rel=0.06
    )
