"""Simulated error rates of the release gate: ``python tests/bench/release_gate.py [N_RELEASES]``.

Prints the tables of docs/how-to/release-gate.md. The true difference of each simulated release is exactly the margin
below 0, or exactly the acceptable share of queries loses much, where both a PASS and a FAIL are false and each should
happen with a probability of at most .05. Releases of a difference of 0 show how often a harmless release passes.
``tests/evaluate/test_release_gate.py`` runs the same functions at a smaller size.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from levels import markdown
from pandas import DataFrame, concat
from scipy import special

import vbterrier
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate import GateOptions
from vbterrier.frames.answer import FAIL, PASS
from vbterrier.kernels.mean_limits import SampledQueries
from vbterrier.settings import Inference
from vbterrier.stats.inverted_intervals import predictable_bets, spent_level
from vbterrier.stats.noninferiority import ANY, BOTH, LOSS_SHARE_PRIOR, Criteria, limits

MARGIN, ALPHA = 0.01, 0.05
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
        return (KINDS | KINDS_MORE)[kind](rng, n) + shift, np.ones(n)
    size = rng.choice(3, n, p=_SHARES)
    traffic = _WEIGHTS * _SHARES / (_WEIGHTS @ _SHARES)
    means = np.where(np.arange(3) == 2, -0.05, 0.05 * traffic[2] / (1 - traffic[2]))
    return means[size] + np.clip(rng.normal(0, 0.1, n), -0.5, 0.5) + shift, _WEIGHTS[size]


# A quarter of the queries changes, and a hundredth loses much while the others change a little.
TIES, RARE = "74 % ties", "1 % of the queries lose .9, the others change a little"
MANY = "5 % of the queries lose .6"
KINDS_MORE = {
    TIES: lambda rng, n: _change(rng, n, 0.26, -0.4, 0.4),
    RARE: lambda rng, n: np.where(rng.random(n) < 0.01, -0.9, np.clip(rng.normal(0.9 / 99, 0.1, n), -0.5, 0.5)),
    MANY: lambda rng, n: np.where(rng.random(n) < 0.05, -0.6, 0.6 * 0.05 / 0.95),
}


def rates(kind, guarantee, n, n_releases, shift=-MARGIN, margin=MARGIN):
    """Shares of releases that PASS and that FAIL, inspected once."""
    criteria, result = Criteria(margin, ALPHA, guarantee, n_resamples=2000), []
    drawn = [release(kind, np.random.default_rng([seed, n]), n, shift) for seed in range(n_releases)]
    if kind == HEAD:
        for seed, (d, w) in enumerate(drawn):
            result += limits(replace(criteria, seed=seed), d[:, None], SampledQueries(w)).decisions(criteria)
    else:
        for start in range(0, n_releases, _TOGETHER):
            d = np.stack([d for d, _ in drawn[start : start + _TOGETHER]], axis=1)
            result += limits(replace(criteria, seed=start), d, SampledQueries.equal(n)).decisions(criteria)
    return result.count(PASS) / n_releases, result.count(FAIL) / n_releases


def daily_rates(kind, n, n_releases, shift=-MARGIN, margin=MARGIN, share=0.05):
    """Shares of releases that ever PASS and ever FAIL if ``daily=True`` is inspected at each of n queries.

    A PASS needs that bets on larger means reject -margin and that shares of at least ``share`` are rejected, a FAIL
    that bets on smaller means do or smaller shares are. All releases are computed at once, with the bets of
    :func:`confidence_sequence` (weights: the mean alone).
    """
    drawn = [release(kind, np.random.default_rng([seed, n, 1]), n, shift) for seed in range(n_releases)]
    d, w = (np.stack(parts, axis=1) for parts in zip(*drawn, strict=True))
    w /= _WEIGHTS.max() if kind == HEAD else 1.0
    x, m = (d + 1) / 2, (1 - margin) / 2
    tails = (ALPHA, ALPHA if kind == HEAD else ALPHA / 2)
    reached = []
    for sign, tail, most in ((1, tails[0], 0.5 / m), (-1, tails[1], 0.5 / (1 - m))):
        bets = np.minimum(predictable_bets(x, w, 2 * tail), most)
        reached.append(
            np.maximum.accumulate(np.cumsum(np.log1p(sign * bets * w * (x - m)), axis=0)) >= np.log(1 / tail)
        )
    if kind == HEAD:
        return float(reached[0][-1].mean()), float(reached[1][-1].mean())
    lost, t = np.cumsum(d < -0.5, axis=0), np.arange(1, n + 1)[:, None]
    a, b = LOSS_SHARE_PRIOR
    evidence = special.betaln(a + lost, b + t - lost) - special.betaln(a, b)
    evidence = evidence - lost * np.log(share) - (t - lost) * np.log1p(-share)
    few = np.maximum.accumulate((evidence > np.log(1 / tails[0])) & (lost < share * t))
    many = np.maximum.accumulate((evidence > np.log(1 / tails[1])) & (lost > share * t))
    return float((reached[0] & few)[-1].mean()), float((reached[1] | many)[-1].mean())


def peeking_rates(kind, how, n, step, n_releases, margin=MARGIN):
    """Shares of releases that ever PASS and ever FAIL when they are inspected after every ``step`` of n queries.

    ``how``: ``"daily"`` uses confidence sequences, ``"look"`` numbered looks, ``"uncorrected"`` each look as if it were
    the only one, ``"mean"`` the same without the criterion of large losses.
    """
    ever = np.zeros(2)
    for start in range(0, n_releases, _TOGETHER):
        seeds = range(start, min(start + _TOGETHER, n_releases))
        drawn = [release(kind, np.random.default_rng([seed, n, 1]), n, -margin) for seed in seeds]
        looks = [_looks(drawn, end, look, how, margin) for look, end in enumerate(range(step, n + 1, step), 1)]
        for decisions in zip(*looks, strict=True):
            ever += [PASS in decisions, FAIL in decisions]
    return tuple(ever / n_releases)


def _looks(drawn, end, look, how, margin):
    """Decisions on each release after ``end`` queries."""
    tail = 1 - spent_level(1 - ALPHA, look) if how == "look" else ALPHA
    criteria = Criteria(margin, tail, max_share=1.0 if how == "mean" else 0.05, sequential=how == "daily")
    weights = [w[:end] for _, w in drawn]
    if all(np.ptp(w) == 0 for w in weights):
        return limits(criteria, np.stack([d[:end] for d, _ in drawn], axis=1), SampledQueries.equal(end)).decisions(
            criteria
        )
    few = replace(criteria, n_resamples=2000)
    pairs = zip(drawn, weights, strict=True)
    return [limits(few, d[:end, None], SampledQueries(w)).decisions(criteria)[0] for (d, _), w in pairs]


def holes_rates(n, n_releases, measure="ENDCG@10", looks=0, batch=40, column="decision", noise=(1.5, 1.5)):
    """The same as :func:`rates` with runs of which part of the documents are unjudged.

    Two systems rank 20 documents by noisy relevance, ``noise`` of the new and of the old system; the judges saw the
    first 10 of the old system. The margin is 0: both decisions are false at equal noise, FAIL with less noise of the
    new system, and PASS with more. With ``looks``, the documents that ``judge_next`` selects for the
    difference are judged before the next numbered look, until one decides. With ``column="withheld"``, rates of the
    decisions that the gate does not make because the documents are unjudged.
    """
    result, ids = [], {"qid": np.repeat([f"q{i}" for i in range(n)], 20), "docno": [f"d{j}" for j in range(20)] * n}
    for seed in range(n_releases):
        rng = np.random.default_rng([seed, n, 2])
        grade = rng.binomial(2, rng.beta(1, 2, (n, 1)), (n, 20))
        new, old = (DataFrame({**ids, "score": (grade + rng.normal(0, sd, (n, 20))).ravel()}) for sd in noise)
        rank = old.groupby("qid", sort=False)["score"].rank(ascending=False)
        truth = old.assign(label=grade.ravel())[["qid", "docno", "label"]]
        qrels = truth[(rank <= 10).to_numpy()]
        for look in range(1, looks + 1) if looks else (None,):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegenerateWarning)
                gate = vbterrier.evaluate.release_gate(
                    {"new": new},
                    qrels,
                    measure,
                    baseline={"old": old},
                    margin=0,
                    budget=0,
                    inference=Inference(seed=seed),
                    options=GateOptions(max_share=1, look=look),
                )
                if gate.decision in (PASS, FAIL) or look in (None, looks):
                    break
                both = ("new", "old")
                plan = vbterrier.judge_next(
                    {"new": new, "old": old}, qrels, measure, budget=batch, difference=both, look=look
                )
            qrels = concat([qrels, truth.merge(plan.documents[["qid", "docno"]])], ignore_index=True)
        result.append(gate.pairs[column].item())
    return result.count(PASS) / n_releases, result.count(FAIL) / n_releases


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
    names, head, sizes = [*KINDS, HEAD], "differences of queries", (50, 100, 200, 400, 800)
    columns = [f"n = {n}" for n in sizes]
    print("PASS of releases without a difference\n")
    rows = []
    for kind, margin in (
        ("all queries change a little", 0.02),
        (TIES, 0.03),
        ("a twentieth flips between 0 and 1", 0.05),
    ):
        for guarantee in (BOTH, ANY):
            results = [rates(kind, guarantee, n, n_releases, 0.0, margin)[0] for n in sizes]
            rows.append((f"{kind}, margin {margin:g}", guarantee, *((share,) for share in results)))
        results = [daily_rates(kind, n, n_releases, 0.0, margin)[0] for n in sizes]
        rows.append((f"{kind}, margin {margin:g}", "daily", *((share,) for share in results)))
    print(table(rows, head, "guarantee", *columns), "\n")
    print("False PASS / false FAIL, one look, margin .01\n")
    rows = [
        (kind, guarantee, *(rates(kind, guarantee, n, n_releases) for n in sizes))
        for kind in names
        for guarantee in (BOTH, ANY)
    ]
    print(table(rows, head, "guarantee", *columns), "\n")
    print("Rare large losses: mean difference -.02 and margin .02; 5 % of the queries lose .6, mean 0 and margin .02\n")
    rows = [
        (RARE, guarantee, *(rates(RARE, guarantee, n, n_releases, -0.02, 0.02) for n in sizes))
        for guarantee in (BOTH, ANY)
    ]
    rows += [(MANY, BOTH, *(rates(MANY, BOTH, n, n_releases, 0.0, 0.02) for n in sizes))]
    print(table(rows, head, "guarantee", *columns), "\n")
    print("False PASS / false FAIL at any look: after each of 400 queries (daily), or of 8 looks\n")
    rows = [
        (
            kind,
            daily_rates(kind, 400, n_releases),
            # Limits at small tails for unequal weights take many draws.
            "" if kind == HEAD else peeking_rates(kind, "look", 400, 50, n_releases),
            *(peeking_rates(kind, how, 400, 50, n_releases) for how in ("uncorrected", "mean")),
        )
        for kind in (*KINDS, HEAD)
    ]
    rows.append((MANY, daily_rates(MANY, 400, n_releases, 0.0), "", "", ""))
    print(table(rows, head, "daily", "look", "uncorrected", "uncorrected, the mean alone"), "\n")
    few = max(n_releases // 5, 1)
    print(f"False PASS / false FAIL of {few} releases with unjudged documents, margin 0\n")
    rows = [(measure, holes_rates(60, few, measure)) for measure in ("ENDCG@10", "nDCG@10")]
    print(table(rows, "measure", "n = 60"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
