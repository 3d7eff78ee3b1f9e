"""Simulated levels of tests and coverage of intervals, at smaller sizes than the tables of the documentation."""

import pytest
from levels import EQUIVALENCE, SCORES, equivalence_level, family_errors, mean_coverage, pair_level, peeking_errors
from night import at_night
from scipy import stats

pytestmark = pytest.mark.slow

N = 300


def at_most(share, nominal, n_samples=N):
    """The observed share does not contradict a probability of at most the nominal one."""
    return stats.binom.sf(round(share * n_samples) - 1, n_samples, nominal) > 1e-3


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("n", [5, 25, 100])
def test_bounded_intervals_cover_at_least_their_level_for_any_scores(scores, n):
    assert at_most(1 - mean_coverage("bounded", scores, n, N), 0.05)


@pytest.mark.parametrize(
    ("method", "scores", "n", "nominal"),
    [("normal", "normal", 5, 0.95), ("percentile", "normal", 50, 0.935), ("bca", "skewed", 100, 0.93)],
)
def test_other_intervals_cover_what_their_documentation_says(method, scores, n, nominal):
    share = mean_coverage(method, scores, n, N)
    assert stats.binomtest(round(share * N), N, nominal).pvalue > 1e-3


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("test", ["randomisation", "t", "bootstrap"])
@pytest.mark.parametrize("n", [5, 10, 50])
def test_paired_tests_and_the_intervals_that_invert_them_hold_their_level(scores, test, n):
    rejected, covered = pair_level(test, scores, n, N)
    assert at_most(rejected, 0.05)
    assert at_most(1 - covered, 0.05)


@pytest.mark.parametrize("better", [0, 5])
@pytest.mark.parametrize(
    ("test", "correction"),
    [("moderated", "bonferroni"), ("randomisation", "max-t"), at_night("bootstrap", "max-t"), ("t", "holm")],
)
@pytest.mark.parametrize("scores", ["often zero", "normal"])
def test_families_of_ten_systems_hold_their_level_and_their_intervals_cover_together(scores, test, correction, better):
    rejected, missed = family_errors(correction, test, scores, 25, 150, better=better)
    assert at_most(rejected, 0.05, 150)
    assert at_most(missed, 0.05, 150)


@pytest.mark.parametrize("kind", EQUIVALENCE)
@pytest.mark.parametrize("n", [10, 25, 50, 100])
def test_equivalence_is_false_as_rarely_as_it_says(kind, n):
    by_t, reported = equivalence_level(kind, n, N)
    assert at_most(reported, 0.05)
    # Student's t alone does not hold its level where few topics differ, or many tie.
    if (kind, n) in {("5 % of topics differ by 1", 100), ("half tied, others beta", 10)}:
        assert not at_most(by_t, 0.05)


@pytest.mark.parametrize("scores", SCORES)
def test_sequences_exclude_the_truth_at_no_time_and_ordinary_intervals_at_some(scores):
    by_t, by_betting = peeking_errors(scores, 100, 100)
    assert at_most(by_betting, 0.05, 100)
    assert by_t > 0.15
