"""Simulated levels of tests and coverage of intervals: ``python tests/bench/levels.py [N_SAMPLES]``.

Prints the tables of docs/explanation/statistics.md. ``tests/stats/test_levels.py`` runs the same functions at smaller
sizes. Scores of topics are often zero (half of them 0, the others beta), discrete (0, .1, ..., 1), skewed (beta) or
normal; differences of two systems are those of two independent draws, and their mean is 0.
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import special

from vbterrier.kernels.mean_limits import moments
from vbterrier.kernels.resample import bounded_limits
from vbterrier.stats.comparisons import adjusted_p_values as adjusted_p
from vbterrier.stats.comparisons import equivalence
from vbterrier.stats.inverted_intervals import confidence_sequence, corrected_levels, inverted_limits
from vbterrier.stats.paired_tests import TESTS, max_t, paired_p, t_statistic
from vbterrier.stats.topic_intervals import METHODS, tail_probabilities

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
SCORES = {
    "often zero": (lambda rng, size: np.where(rng.random(size) < 0.5, 0.0, rng.beta(1, 2, size)), 1 / 6),
    "discrete": (lambda rng, size: rng.binomial(10, 0.3, size) / 10, 0.3),
    "skewed": (lambda rng, size: rng.beta(0.5, 3, size), 1 / 7),
    "normal": (lambda rng, size: np.clip(rng.normal(0.5, 0.1, size), 0, 1), 0.5),
}
SIZES = (5, 10, 25, 50, 250)
BOUNDS = (-1.0, 1.0)
N_RESAMPLES = 999
# Columns that share resamples, and so are one sample of them.
_COLUMNS = 50


def columns(n_samples):
    """The seed and number of columns of each block of samples."""
    for seed, start in enumerate(range(0, n_samples, _COLUMNS)):
        yield seed, min(_COLUMNS, n_samples - start)


def mean_coverage(method, scores, n, n_samples):
    """Share of 95 % intervals of a mean that contain the true mean."""
    draw, truth = SCORES[scores]
    covered = 0
    for seed, k in columns(n_samples):
        rng = np.random.default_rng([seed, n])
        table = draw(rng, (n, k))
        varies = np.ptp(table, axis=0) > 0
        if method == "bounded":
            low, high = bounded_limits(table, (0.0, 1.0), tail_probabilities(0.95), N_RESAMPLES, rng)
            covered += int(((low <= truth) & (truth <= high)).sum())
            continue
        low, high = METHODS[method](table[:, varies], tail_probabilities(0.95), rng, N_RESAMPLES)
        # Without spread, the limits are those of bounded scores.
        value, room = table[0, ~varies], 0.025 ** (1 / n)
        covered += int(((value * room <= truth) & (truth <= 1 - (1 - value) * room)).sum())
        covered += int(((low <= truth) & (truth <= high)).sum())
    return covered / n_samples


def pair_level(test, scores, n, n_samples):
    """Shares of pairs of equal systems that a test rejects at 5 %, and of 95 % intervals that contain a difference.

    The true difference is .05, by which the second ones are shifted.
    """
    draw, _ = SCORES[scores]
    rejected = covered = 0
    for seed, k in columns(n_samples):
        rng = np.random.default_rng([seed, n, 1])
        differences = draw(rng, (n, k)) - draw(rng, (n, k))
        options = {"n_resamples": N_RESAMPLES, "seed": seed}
        rejected += int((paired_p(differences, test, **options) <= 0.05).sum())
        moved = 0.9 * differences + 0.05
        p = paired_p(moved, test, **options)
        low, high = inverted_limits(moved, test, np.full(k, 0.05), p <= 0.05, BOUNDS, **options)
        covered += int(((low <= 0.05) & (high >= 0.05)).sum())
    return rejected / n_samples, covered / n_samples


def family_errors(correction, test, scores, n, n_samples, *, better=0):
    """Family-wise errors of ten systems: rejections of equal pairs, and families with an interval without the truth.

    Parameters
    ----------
    better
        Number of systems whose scores are .1 higher than those of the others.
    """
    draw, _ = SCORES[scores]
    first, second = np.triu_indices(10, 1)
    truth = 0.1 * ((first < better).astype(float) - (second < better))
    rejected = missed = 0
    for seed in range(n_samples):
        rng = np.random.default_rng([seed, n, 2])
        table = 0.8 * draw(rng, (n, 10)) + 0.1 * (np.arange(10) < better)
        differences = table[:, first] - table[:, second]
        options = {"n_resamples": N_RESAMPLES, "seed": seed}
        if correction == "max-t":
            _, adjusted = max_t(differences, test, **options)
        else:
            adjusted = adjusted_p(paired_p(differences, test, **options), correction)
        levels = corrected_levels(adjusted, correction, 0.05)
        # Beside step-down p-values, intervals are Bonferroni's.
        agree = adjusted <= 0.05 if correction == "bonferroni" else None
        inverted = "moderated" if correction == "max-t" else test
        low, high = inverted_limits(differences, inverted, levels, agree, BOUNDS, **options)
        rejected += int((adjusted[truth == 0] <= 0.05).any())
        missed += int(((low > truth + 1e-12) | (high < truth - 1e-12)).any())
    return rejected / n_samples, missed / n_samples


EQUIVALENCE = {
    "5 % of topics differ by 1": (lambda rng, size: (rng.random(size) < 0.05) * 1.0, 0.05),
    "6 % differ by 1 or -1": (
        lambda rng, size: np.where(rng.random(size) < 0.06, np.where(rng.random(size) < 0.9, 1.0, -1.0), 0.0), 0.048
    ),
    "30 % differ by 1 or -1": (
        lambda rng, size: np.where(rng.random(size) < 0.3, np.where(rng.random(size) < 0.8, 1.0, -1.0), 0.0), 0.18
    ),
    "half tied, others beta": (lambda rng, size: np.where(rng.random(size) < 0.5, rng.beta(1, 3, size), 0.0), 0.125),
    "P@10": (lambda rng, size: (rng.binomial(10, 0.55, size) - rng.binomial(10, 0.5, size)) / 10, 0.05),
    "normal": (lambda rng, size: rng.normal(0.05, 0.1, size), 0.05),
    "skewed": (lambda rng, size: 0.2 - rng.exponential(0.15, size), 0.05),
}  # fmt: skip


def equivalence_level(kind, n, n_samples):
    """Shares of false equivalence at the margin: of two t-tests alone, and of the test that ``compare`` reports."""
    draw, margin = EQUIVALENCE[kind]
    false = np.zeros(2)
    for seed, k in columns(n_samples):
        differences = draw(np.random.default_rng([seed, n, 3]), (n, k))
        nearer = np.minimum(t_statistic(differences, -margin), -t_statistic(differences, margin))
        by_t = special.stdtr(n - 1, -nearer)
        reported = equivalence(moments(differences), margin, BOUNDS)
        false += [(by_t <= 0.05).sum(), (reported <= 0.05).sum()]
    return tuple(false / n_samples)


def peeking_errors(scores, n, n_samples):
    """Shares of sequences of n topics that exclude a difference of 0 at some time: by Student's t, and by betting."""
    draw, _ = SCORES[scores]
    false = np.zeros(2)
    sizes = np.arange(5, n + 1)
    for seed in range(n_samples):
        rng = np.random.default_rng([seed, n, 4])
        x = draw(rng, (n,)) - draw(rng, (n,))
        mean = np.cumsum(x)[4:] / sizes
        variance = (np.cumsum(x**2)[4:] / sizes - mean**2) * sizes / (sizes - 1)
        reach = special.stdtrit(sizes - 1, 0.975) * np.sqrt(np.maximum(variance, 0) / sizes)
        sequence = confidence_sequence(x, bounds=BOUNDS)
        false += [(np.abs(mean) > reach).any(), ((sequence["low"] > 0) | (sequence["high"] < 0)).any()]
    return tuple(false / n_samples)


def markdown(frame):
    """The frame as a table, with numbers as .95."""

    def cell(value):
        if isinstance(value, tuple):
            return " / ".join(map(cell, value))
        return f"{value:.2f}".replace("0.", ".", 1) if isinstance(value, float) else str(value)

    lines = [list(map(str, frame.columns)), [":---"] * len(frame.columns), *frame.map(cell).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(n_samples):
    """Print all tables."""
    sizes = [f"n = {n}" for n in SIZES]
    rows = [
        (scores, method, *(mean_coverage(method, scores, n, n_samples) for n in SIZES))
        for scores in SCORES
        for method in (*METHODS, "bounded")
        if method != "poisson"
    ]
    print(markdown(pd.DataFrame(rows, columns=["scores", "method", *sizes])), "\n")
    rows = [
        (scores, test, *(pair_level(test, scores, n, n_samples) for n in SIZES)) for scores in SCORES for test in TESTS
    ]
    print(markdown(pd.DataFrame(rows, columns=["scores", "test", *sizes])), "\n")
    few = max(n_samples // 5, 1)
    rows = [
        (
            scores,
            f"{test}, {by}, {better} better",
            *(family_errors(by, test, scores, n, few, better=better) for n in SIZES),
        )
        for scores in SCORES
        for test, by in (("moderated", "bonferroni"), ("randomisation", "max-t"), ("bootstrap", "max-t"), ("t", "holm"))
        for better in (0, 5)
    ]
    print(markdown(pd.DataFrame(rows, columns=["scores", "tests", *sizes])), "\n")
    rows = [(kind, *(equivalence_level(kind, n, n_samples) for n in (10, 25, 50, 100))) for kind in EQUIVALENCE]
    print(markdown(pd.DataFrame(rows, columns=["differences", "n = 10", "n = 25", "n = 50", "n = 100"])), "\n")
    rows = [(scores, *(peeking_errors(scores, n, few) for n in (25, 50, 250))) for scores in SCORES]
    print(markdown(pd.DataFrame(rows, columns=["scores", "n = 25", "n = 50", "n = 250"])))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
