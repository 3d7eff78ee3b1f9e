"""Simulated error rates of the release gate: ``python tests/bench/release_gate.py [N_RELEASES]``.

Prints the tables of docs/how-to/release-gate.md. The true difference of each simulated release is exactly the margin
below 0, where both a PASS and a FAIL are false and each should happen with a probability of at most .05. Releases of a
difference of 0 show how often a harmless release passes. ``tests/evaluate/test_release_gate.py`` runs the same
functions at a smaller size.
"""

import sys
import warnings
from collections.abc import Callable

import numpy as np
from levels import markdown
from pandas import DataFrame

import vbterrier
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.release_gate import FAIL, PASS, decision_of, one_sided_limits
from vbterrier.kernels.resample import bounded_limits
from vbterrier.stats.inverted_intervals import bets_of, spent_level

MARGIN, ALPHA, BOUNDS = 0.01, 0.05, (-1.0, 1.0)
# Releases that share draws.
_TOGETHER = 50
Draw = Callable[[np.random.Generator, int], np.ndarray]


def _change(rng, n, share, low, high):
    return np.where(rng.random(n) < share, rng.uniform(low, high, n), 0.0)


# Differences of queries; the mean is 0.
KINDS = {
    "all queries change a little": lambda rng, n: np.clip(rng.normal(0, 0.1, n), -0.5, 0.5),
    "a tenth of the queries change": lambda rng, n: _change(rng, n, 0.1, -0.6, 0.6),
    "a twentieth flips between 0 and 1": lambda rng, n: rng.choice([-0.9, 0.9, 0.0], n, p=[0.025, 0.025, 0.95]),
    "1 % of the queries lose all": lambda rng, n: np.where(rng.random(n) < 0.01, -0.9, 0.9 * 0.01 / 0.99),
    "1 % of the queries gain all": lambda rng, n: np.where(rng.random(n) < 0.01, 0.9, -0.9 * 0.01 / 0.99),
}
# Traffic: most queries are rare, 2 % have 43 % of the traffic, and lose what the others gain.
_WEIGHTS, _SHARES = np.array([1.0, 10.0, 100.0]), np.array([0.8, 0.18, 0.02])
HEAD = "2 % of the queries, with 43 % of the traffic, lose"


def release(kind, rng, n, shift):
    """Differences and weights of n queries, of which the weighted mean in the population is ``shift``."""
    if kind != HEAD:
        return KINDS[kind](rng, n) + shift, np.ones(n)
    size = rng.choice(3, n, p=_SHARES)
    traffic = _WEIGHTS * _SHARES / (_WEIGHTS @ _SHARES)
    means = np.where(np.arange(3) == 2, -0.05, 0.05 * traffic[2] / (1 - traffic[2]))
    return means[size] + np.clip(rng.normal(0, 0.1, n), -0.5, 0.5) + shift, _WEIGHTS[size]


def rates(kind, interval, n, n_releases, shift=-MARGIN):
    """Shares of releases that PASS and that FAIL, inspected once."""
    found = []
    for seed in range(n_releases):
        d, w = release(kind, np.random.default_rng([seed, n]), n, shift)
        limits = one_sided_limits(d, w, ALPHA, BOUNDS, interval, n_resamples=2000, seed=seed)
        found.append(decision_of(*limits, MARGIN))
    return found.count(PASS) / n_releases, found.count(FAIL) / n_releases


def daily_rates(kind, n, n_releases):
    """Upper bounds of the shares of releases that ever PASS and ever FAIL if ``daily=True`` is inspected at each query.

    A PASS needs that bets on larger means reject -margin, a FAIL that bets on smaller means do; limits are rounded
    outwards. All releases are computed at once, with the bets of :func:`confidence_sequence`.
    """
    drawn = [release(kind, np.random.default_rng([seed, n, 1]), n, -MARGIN) for seed in range(n_releases)]
    x, w = (np.stack(parts, axis=1) for parts in zip(*drawn, strict=True))
    w /= _WEIGHTS.max() if kind == HEAD else 1.0
    x, m = (x + 1) / 2, (1 - MARGIN) / 2
    bets = bets_of(x, w, 2 * ALPHA)
    larger = np.cumsum(np.log1p(np.minimum(bets, 0.5 / m) * w * (x - m)), axis=0)
    smaller = np.cumsum(np.log1p(-np.minimum(bets, 0.5 / (1 - m)) * w * (x - m)), axis=0)
    ever = (np.max([larger, smaller], axis=1) >= np.log(1 / ALPHA)).mean(axis=1)
    return float(ever[0]), float(ever[1])


def peeking_rates(kind, how, n, step, n_releases):
    """Shares of releases that ever PASS and ever FAIL when they are inspected after every ``step`` of n queries.

    ``how``: ``"daily"`` uses confidence sequences, ``"look"`` numbered looks at bounded limits, ``"uncorrected"``
    Student's t at each look as if it were the only one.
    """
    ever = np.zeros(2)
    for start in range(0, n_releases, _TOGETHER):
        seeds = range(start, min(start + _TOGETHER, n_releases))
        drawn = [release(kind, np.random.default_rng([seed, n, 1]), n, -MARGIN) for seed in seeds]
        looks = [_looks(drawn, end, look, how) for look, end in enumerate(range(step, n + 1, step), 1)]
        for limits in zip(*looks, strict=True):
            decisions = {decision_of(low, high, MARGIN) for low, high in limits}
            ever += [PASS in decisions, FAIL in decisions]
    return tuple(ever / n_releases)


def _looks(drawn, end, look, how):
    """Limits of each release after ``end`` queries."""
    if how == "look":
        # One set of draws for all releases, which have equal weights: those of one_sided_limits, in less time.
        tail = 1 - spent_level(1 - ALPHA, look)
        table = np.stack([d[:end] for d, _ in drawn], axis=1)
        rng = np.random.default_rng([len(drawn), end, look])
        return list(zip(*bounded_limits(table, BOUNDS, [tail, 1 - tail], int(20 / tail), rng), strict=True))
    interval = "sequence" if how == "daily" else "normal"
    return [one_sided_limits(d[:end], w[:end], ALPHA, BOUNDS, interval) for d, w in drawn]


def holes_rates(n, n_releases, measure="ENDCG@10"):
    """The same as :func:`rates` with runs of which part of the documents are unjudged.

    Two systems of equal quality rank 20 documents by noisy relevance; the judges saw the first 10 of the old system.
    The margin is 0, so that both decisions are false.
    """
    found, ids = [], {"qid": np.repeat([f"q{i}" for i in range(n)], 20), "docno": [f"d{j}" for j in range(20)] * n}
    for seed in range(n_releases):
        rng = np.random.default_rng([seed, n, 2])
        grade = rng.binomial(2, rng.beta(1, 2, (n, 1)), (n, 20))
        new, old = (DataFrame({**ids, "score": (grade + rng.normal(0, 1.5, (n, 20))).ravel()}) for _ in range(2))
        rank = old.groupby("qid", sort=False)["score"].rank(ascending=False)
        qrels = old.assign(label=grade.ravel())[(rank <= 10).to_numpy()][["qid", "docno", "label"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateWarning)
            gate = vbterrier.evaluate.release_gate(
                {"new": new}, {"old": old}, qrels, measure, margin=0, budget=0, interval="normal", seed=seed
            )
        found.append(gate.decision)
    return found.count(PASS) / n_releases, found.count(FAIL) / n_releases


def table(rows, *columns):
    """The rows as a table, with pairs of rates as .031 / .048."""
    texts = [
        [
            " / ".join(f"{rate:.3f}".removeprefix("0") for rate in cell) if isinstance(cell, tuple) else cell
            for cell in row
        ]
        for row in rows
    ]
    return markdown(DataFrame(texts, columns=list(columns)))


def main(n_releases):
    """Print all tables."""
    names, head = [*KINDS, HEAD], "differences of queries"
    print("False PASS / false FAIL, one look\n")
    limits = [(kind, interval) for kind in names for interval in ("bounded", "normal")]
    rows = [(*which, *(rates(*which, n, n_releases) for n in (100, 400))) for which in limits]
    print(table(rows, head, "limits", "n = 100", "n = 400"), "\n")
    print("False PASS / false FAIL at any look: after each of 400 queries (daily), or of 8 looks\n")
    few = max(n_releases // 5, 1)
    rows = [
        (
            kind,
            daily_rates(kind, 400, n_releases),
            "" if kind == HEAD else peeking_rates(kind, "look", 400, 50, few),
            peeking_rates(kind, "uncorrected", 400, 50, n_releases),
        )
        for kind in names
    ]
    print(table(rows, head, "daily", f"look ({few} releases)", "uncorrected"), "\n")
    print(f"PASS / FAIL of {few} releases without a difference\n")
    rows = [(*which, *(rates(*which, n, few, shift=0.0) for n in (400, 1600))) for which in limits]
    print(table(rows, head, "limits", "n = 400", "n = 1600"), "\n")
    print(f"False PASS / false FAIL of {few} releases with unjudged documents, margin 0\n")
    rows = [(measure, holes_rates(60, few, measure)) for measure in ("ENDCG@10", "nDCG@10")]
    print(table(rows, "measure", "n = 60"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
