"""Error rates of decisions: ``python tests/bench/decisions.py DATA [--samples N] [--part PART ...]``.

Prints the tables of docs/how-to/release-gate.md and docs/explanation/statistics.md: false PASS, probability of PASS and
coverage, of Student's t and of the limits of the gate, with the number of samples and the largest standard error. DATA
is the folder of the collections that ``tests/data`` reads; real differences are those of nDCG@10 between two runs.
``tests/kernels/test_mean_limits.py`` and ``tests/evaluate/test_sampled_queries.py`` test the limits at smaller sizes.
"""

import argparse
import warnings
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special, stats

import vbterrier
from vbterrier.design import queries_needed
from vbterrier.errors import InputError
from vbterrier.frames.answer import PASS
from vbterrier.kernels.mean_limits import (
    LEAST_DF,
    Covariate,
    SampledQueries,
    clopper_pearson,
    drawn_errors,
    lower_limit,
    moments,
    p_value,
    smallest_number,
    upper_limit,
)
from vbterrier.settings import Data, Inference
from vbterrier.stats.noninferiority import ANY, Criteria, limits
from vbterrier.stats.paired_tests import t_test

ALPHA, SIZES = 0.05, (100, 200, 400)
LARGE, SHARE = 0.5, 0.05
# Columns of samples that are computed together.
_TOGETHER = 500


# Populations of differences with mean 0: functions of a generator and a shape.


def rare(loss, share, sd, ties=0.0):
    """A share of the queries loses; of the others, some tie and the rest is normal and gains what is lost."""

    def draw(rng, size):
        gain = loss * share / (1 - share)
        others = np.where(rng.random(size) < ties, 0.0, rng.normal(0, sd, size))
        return np.where(rng.random(size) < share, -loss, np.clip(gain + others, -1, 1))

    return draw


def normal(sd):
    return lambda rng, size: np.clip(rng.normal(0, sd, size), -1, 1)


def skew(rng, size):
    """Many small gains and few moderate losses."""
    return 0.1 - np.minimum(rng.exponential(0.1, size), 0.9) - (0.1 - 0.1 * (1 - np.exp(-9.0)))


def flips(share):
    return lambda rng, size: rng.choice([-0.9, 0.9, 0.0], size, p=[share / 2, share / 2, 1 - share])


GATES = {
    "normal": {f"sd {sd:g}": normal(sd) for sd in (0.05, 0.1, 0.2)},
    "ties 50-98 %, 1 % lose .9": {f"{ties:g}": rare(0.9, 0.01, 0.1, ties) for ties in (0.5, 0.75, 0.9, 0.98)},
    "ties 50-98 %, 2 % lose .49": {f"{ties:g}": rare(0.49, 0.02, 0.1, ties) for ties in (0.5, 0.75, 0.9, 0.98)},
    "sd .03, .1; 1-2 % lose .9": {f"{sd:g} {p:g}": rare(0.9, p, sd) for sd in (0.03, 0.1) for p in (0.01, 0.02)},
    "sd .03, .1; 1-2 % lose .49": {f"{sd:g} {p:g}": rare(0.49, p, sd) for sd in (0.03, 0.1) for p in (0.01, 0.02)},
    "skew": {"exponential": skew},
    "5 % flip": {"flips": flips(0.05)},
}


LABELS = "labels.llama3-8b-direct.txt.gz"


def values_of(data, name, labels=None):
    """nDCG@10 of all runs of a collection by its judgments, or by labels on the same topics, shape (topics, runs)."""
    folder = data / name
    qrels = {"codec": "qrels.txt.gz", "robust03": "qrels.txt.gz", "ehealth18": "qrels.final.txt.gz"}
    judged = vbterrier.read_qrels(folder / qrels.get(name, "qrels.nist.txt.gz"))
    if labels is not None:
        judged = vbterrier.read_qrels(folder / labels).query("qid in @judged.qid")
    paths = sorted(path for path in (folder / "runs").iterdir() if not path.name.startswith((".", "README")))
    result = vbterrier.score(
        {path.name: path for path in paths},
        judged,
        ["nDCG@10"],
        data=Data(on_topics="all", duplicates="first"),
        inference=Inference(interval="normal"),
    )
    return result.values.pivot(index="qid", columns="name", values="value").to_numpy()


COLLECTIONS = ("robust03", "codec", "ehealth18", "trec_dl19")


def real_pairs(data, n_pairs=4):
    """Differences of pairs of runs of each collection, centred: those with the smallest and largest skewness."""
    pairs = {}
    for name in COLLECTIONS:
        scores = values_of(data, name)
        every = [scores[:, a] - scores[:, b] for a, b in combinations(range(scores.shape[1]), 2)]
        every = [d - d.mean() for d in every if d.std() > 0]
        order = np.argsort([(d**3).mean() / d.std() ** 3 for d in every])
        chosen = order[np.linspace(0, len(order) - 1, n_pairs).round().astype(int)]
        pairs |= {f"{name} {place}": every[place] for place in chosen}
    return pairs


def resampled(differences):
    return lambda rng, size: differences[rng.integers(len(differences), size=size)]


def student(differences, tail):
    """Lower limits of the mean by Student's t, with a limit for constant differences."""
    n, mean, sd = len(differences), differences.mean(axis=0), differences.std(axis=0, ddof=1)
    constant = mean - LARGE * (1 - tail ** (1 / n))
    return np.where(sd > 0, mean + special.stdtrit(n - 1, tail) * sd / np.sqrt(n), constant)


def passes(differences, margin, limit, sample=None):
    """Share of samples, columns, that pass by the mean and by the share of large losses."""
    sample = sample or SampledQueries.equal(len(differences))
    if limit == "t":
        low = student(differences, ALPHA)
        lost = (differences < -LARGE).mean(axis=0)
        _, high = clopper_pearson(lost, float(len(differences)), ALPHA, ALPHA, special.betaincinv)
        return float(((low > -margin) & (high <= SHARE)).mean())
    how = {"any": {"guarantee": ANY}, "worst .5": {"worst": 0.5}}.get(limit, {})
    criteria = Criteria(margin, ALPHA, n_resamples=400, **how)
    return limits(criteria, differences, sample).decisions(criteria).count(PASS) / differences.shape[1]


def rates(draw, n, margin, shift, names, samples, seed=0):
    """Shares of samples that pass by each limit, of n queries of a population with the mean ``shift``."""
    sums = dict.fromkeys(names, 0.0)
    for start in range(0, samples, _TOGETHER):
        m = min(_TOGETHER, samples - start)
        differences = draw(np.random.default_rng([seed, n, start]), (n, m)) + shift
        for name in names:
            sums[name] += m * passes(differences, margin, name)
    return {name: total / samples for name, total in sums.items()}


def cut_shift(draw, margin, worst, seed=1):
    """The shift at which the mean of differences cut at ``-worst`` is ``-margin``."""
    x = draw(np.random.default_rng(seed), 400_000)
    low, high = -1.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(x + middle, -worst).mean() < -margin else (low, middle)
    return low


def false_pass(data, samples, margins=(0.02,), sizes=SIZES):
    """Largest share of false PASS over sizes, margins and populations of each kind."""
    kinds = GATES | {"real pairs": {name: resampled(d) for name, d in real_pairs(data).items()}}
    rows = []
    for kind, populations in kinds.items():
        largest = dict.fromkeys(("t", "worst 1", "any", "worst .5"), 0.0)
        for draw in populations.values():
            for margin in margins:
                shift = cut_shift(draw, margin, 0.5)
                for n in sizes:
                    result = rates(draw, n, margin, -margin, ("t", "worst 1"), samples)
                    result |= rates(draw, n, margin, -margin, ("any",), samples // 5)
                    # Its own promise is about the mean of differences cut at -.5.
                    result |= rates(draw, n, margin, shift, ("worst .5",), samples)
                    largest = {name: max(largest[name], result[name]) for name in largest}
        rows.append({"differences": kind, **largest})
    return pd.DataFrame(rows)


def true_pass(samples, margin=0.02, sizes=SIZES):
    """Share of PASS without a difference."""
    rows = []
    for sd in (0.1, 0.2):
        for name in ("t", "worst 1", "worst .5", "any"):
            some = samples // 5 if name == "any" else samples
            results = [rates(normal(sd), n, margin, 0.0, (name,), some)[name] for n in sizes]
            rows.append({"sd": sd, "limit": name, **dict(zip(map(str, sizes), results, strict=True))})
    return pd.DataFrame(rows)


def grid(samples):
    """The worst false PASS over a grid of sizes, margins, spreads, and shares and sizes of losses."""
    rows = []
    for n in (50, 100, 200, 400, 800):
        for margin in (0.01, 0.02, 0.05):
            for sd in (0.02, 0.05, 0.1, 0.2):
                for share in (0.003, 0.01, 0.02, 0.04):
                    for loss in (0.3, 0.6, 0.9):
                        result = rates(rare(loss, share, sd), n, margin, -margin, ("t", "worst 1"), samples)
                        rows.append({"n": n, "margin": margin, "sd": sd, "share": share, "loss": loss, **result})
    frame = pd.DataFrame(rows)
    worst = frame.loc[[frame["worst 1"].idxmax(), frame["t"].idxmax()]]
    return pd.concat([worst, frame[["t", "worst 1"]].quantile([0.5, 0.9, 0.99]).reset_index(drop=True)])


# Traffic: a population of queries with weights, whose weighted mean difference is -margin.


def populations_of_traffic(rng, size=20_000):
    """Weights of queries."""
    return {
        "log-normal 1": rng.lognormal(0, 1, size),
        "Zipf .7": np.arange(1, size + 1) ** -0.7,
        "Zipf 1": np.arange(1, size + 1) ** -1.0,
    }


def traffics(rng, size=20_000):
    """Weights of queries, from nearly equal to heavy-tailed."""
    about = {"1 or 2": 1.0 + np.arange(size) % 2}
    about |= {f"log-normal {sd:g}": rng.lognormal(0, sd, size) for sd in (0.3, 0.5, 1)}
    return about | {f"Zipf {power:g}": np.arange(1, size + 1) ** -power for power in (0.4, 0.7, 1.0)}


def losses_of(kind, weight, rng):
    """Differences of all queries, with a weighted mean of 0."""
    size = len(weight)
    d = np.clip(rng.normal(0, 0.1, size), -0.5, 0.5)
    if kind == "head loses":
        d[np.argsort(-weight)[: size // 100]] -= 0.2
    elif kind == "1 % lose .9":
        d[rng.random(size) < 0.01] = -0.9
    return d - (weight * d).sum() / weight.sum()


def by_traffic(weight, n, rng, samples):
    """Rows of samples, shape (n, samples), and how all were sampled, as :func:`vbterrier.design.sample_by_traffic`.

    The part that is taken for certain is the same in all samples; a query that is drawn twice has two rows.
    """
    from vbterrier.design import sample_by_traffic

    result = sample_by_traffic(pd.DataFrame({"qid": np.arange(len(weight)).astype(str), "weight": weight}), n)
    is_certain = result["drawn"].to_numpy() == 0
    head = result["qid"].to_numpy()[is_certain].astype(int)
    rest = np.setdiff1d(np.arange(len(weight)), head)
    drawn = rng.choice(rest, size=(n - len(head), samples), p=weight[rest] / weight[rest].sum())
    certain = np.append(weight[head] / weight.sum(), np.zeros(len(drawn)))
    rows = np.vstack([np.broadcast_to(head[:, None], (len(head), samples)), drawn])
    return rows, SampledQueries(np.ones(n), certain=certain)


def traffic(samples, margin=0.02):
    """False PASS at a weighted mean of -margin, and PASS at 0, of uniform samples and of samples by traffic.

    "known": the weights of all queries are.
    """
    rows = []
    weights = populations_of_traffic(np.random.default_rng(5))
    for name, weight in weights.items():
        for how in ("t", "uniform", "uniform, known", "by traffic"):
            for kind in ("nothing", "head loses", "1 % lose .9", "none, no difference"):
                shift = 0.0 if "no difference" in kind else -margin
                d = losses_of(kind, weight, np.random.default_rng(6)) + shift
                results = []
                for n in SIZES:
                    rng = np.random.default_rng([n, len(kind)])
                    if how == "by traffic":
                        rows_, sample = by_traffic(weight, n, rng, samples)
                        results.append(passes(d[rows_], margin, "worst 1", sample))
                        continue
                    at = rng.integers(len(d), size=(n, samples))
                    w, x = weight[at], d[at]
                    if how == "uniform, known":
                        results.append(passes_known(x, w, weight, margin))
                    else:
                        results.append(_weighted_t(x, w, margin) if how == "t" else passes_weighted(x, w, margin))
                rows.append(
                    {"traffic": name, "sample": how, "differences": kind}
                    | dict(zip(map(str, SIZES), results, strict=True))
                )
    return pd.DataFrame(rows)


def passes_weighted(x, w, margin):
    """Share of uniform samples, columns, that pass; the weights of other queries are unknown."""
    criteria, of = Criteria(margin, ALPHA), moments(x, w)
    passed = np.array(limits(criteria, x, SampledQueries(w)).decisions(criteria)) == PASS
    return float((passed & (of.df >= LEAST_DF)).mean())


def passes_known(x, w, weight, margin):
    """Share of uniform samples, columns, that pass if the weights of all queries, ``weight``, are known.

    The heaviest queries count as unsampled even if they are not, which release_gate knows.
    """
    n, of = len(x), moments(x, w)
    mass = np.append(0.0, np.cumsum(np.sort(weight)[::-1])) / weight.sum()

    def unseen(exponent):
        return np.interp(-np.expm1(-exponent / n) * len(weight), np.arange(len(mass)), mass)

    worth = np.log(ALPHA) / np.log1p(-unseen(-np.log(ALPHA)))
    lost = (w * (x < -LARGE)).sum(axis=0) / w.sum(axis=0)
    _, high = clopper_pearson(lost, worth, ALPHA, ALPHA, special.betaincinv)
    passed = (lower_limit(of, ALPHA, 1.0, special.stdtrit, unseen) > -margin) & (high <= SHARE)
    return float((passed & (of.df >= LEAST_DF)).mean())


def highest_p_pass(weight, n, lost, alpha=ALPHA):
    """A bound of P(PASS) without a difference of every rule with false PASS of at most alpha, for uniform samples.

    ``lost``: the weight of a set of queries that lose all, as a share. If the set is a random part of the M heaviest
    queries, a sample with k of these misses it with probability ``(1 - m/M)^k``, and is then one of a population
    without a loss. By Neyman and Pearson's lemma, a rule passes samples with the largest k; the smallest bound over M.
    """
    heaviest, share = np.cumsum(np.sort(weight)[::-1]) / weight.sum(), []
    for most in np.unique(np.geomspace(1, len(weight), 200).astype(int)):
        part = lost / heaviest[most - 1]
        if part <= 1:
            k = np.arange(n + 1)
            drawn = stats.binom.pmf(k, n, most / len(weight))[::-1]
            missed = np.cumsum(drawn * (1 - part) ** k[::-1])
            share.append(np.interp(alpha, missed, np.cumsum(drawn), right=1.0))
    return min(share)


def _weighted_t(x, w, margin):
    """Share of PASS by the linearised t interval, without the criterion of large losses."""
    mean = (w * x).sum(axis=0) / w.sum(axis=0)
    linear = w / w.mean(axis=0) * (x - mean)
    low = mean + special.stdtrit(len(x) - 1, ALPHA) * linear.std(axis=0, ddof=1) / np.sqrt(len(x))
    return float((low > -margin).mean())


def clusters(samples, margin=0.02, size=5, correlation=0.5):
    """False PASS with clusters of paraphrases: ignored, and counted as clusters."""
    rows = []
    for n in SIZES:
        rng, m = np.random.default_rng(n), samples
        code = np.repeat(np.arange(n // size), size)
        shared = np.repeat(rng.normal(0, 1, (n // size, m)), size, axis=0)
        x = 0.1 * (np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(0, 1, (n, m)))
        lost = np.repeat(rng.random((n // size, m)) < 0.01, size, axis=0)
        for kind, d in (("normal", x), ("1 % of clusters lose .9", np.where(lost, -0.9, x + 0.9 * 0.01 / 0.99))):
            criteria = Criteria(margin, ALPHA)
            results = {
                name: limits(criteria, d - margin, sample).decisions(criteria).count(PASS) / m
                for name, sample in (
                    ("ignored", SampledQueries.equal(n)),
                    ("clusters", SampledQueries(np.ones(n), clusters=code)),
                )
            }
            rows.append({"n": n, "differences": kind, **results})
    return pd.DataFrame(rows)


def covariates(samples, margin=0.02):
    """PASS at no difference, and false PASS at -margin, with a covariate known for 10 n queries."""
    rows = []
    for sd, rho in ((0.2, 0.0), (0.2, 0.7), (0.2, 0.9), (0.1, 0.7)):
        for worst in (None, 0.5):
            for shift in (0.0, -margin):
                results = []
                for n in SIZES:
                    rng = np.random.default_rng([n, int(10 * rho)])
                    c = rng.normal(0, 1, (n, samples))
                    rest = rng.normal(0, 1, (9 * n, samples)).mean(axis=0)
                    d = sd * (rho * c + np.sqrt(1 - rho**2) * rng.normal(0, 1, c.shape)) + shift
                    criteria = Criteria(margin, ALPHA, worst=worst)
                    about = Covariate(c, 0.1 * c.mean(axis=0) + 0.9 * rest, 10 * n) if rho else None
                    sample = SampledQueries(np.ones(n), covariate=about)
                    results.append(
                        limits(criteria, np.clip(d, -1, 1), sample).decisions(criteria).count(PASS) / samples
                    )
                rows.append({"sd": sd, "correlation": rho, "worst": worst or 1.0, "mean": shift}
                            | dict(zip(map(str, SIZES), results, strict=True)))  # fmt: skip
    return pd.DataFrame(rows)


# Equivalence, intervals of means.


def equivalence(samples, margin=0.05):
    """False equivalence at the margin, and equivalence without a difference: two t-tests, and this test."""
    kinds = {
        "1 % lose .9, sd .01": (rare(0.9, 0.01, 0.01), -margin),
        "45 % ties, 5 % differ by .9": (rare(0.9, 0.05, 0.01, 0.45), -margin),
        "normal, sd .2": (normal(0.2), -margin),
        "normal, sd .2, no difference": (normal(0.2), 0.0),
    }
    rows = []
    for kind, (draw, shift) in kinds.items():
        row = {"differences": kind}
        for n in (50, 100, 200, 400):
            d = draw(np.random.default_rng(n), (n, samples)) + shift
            of = moments(d)
            new = np.maximum(
                p_value(of, -margin, 1.0, special.stdtr), p_value(of.negation, -margin, 1.0, special.stdtr)
            )
            mean, se = d.mean(axis=0), d.std(axis=0, ddof=1) / np.sqrt(n)
            old = special.stdtr(n - 1, -(margin - np.abs(mean)) / se)
            row[str(n)] = (float((old <= ALPHA).mean()), float((new <= ALPHA).mean()))
        rows.append(row)
    return pd.DataFrame(rows)


def mean_coverage(data, samples):
    """Coverage of 95 % intervals of means of scores: Student's t and the limits of unseen topics, and their widths."""
    kinds = {
        "2 % nonzero": (lambda rng, size: np.where(rng.random(size) < 0.02, rng.random(size), 0.0), 0.01),
        "half zero, others beta(1, 2)": (
            lambda rng, size: np.where(rng.random(size) < 0.5, 0.0, rng.beta(1, 2, size)),
            1 / 6,
        ),
        "normal": (lambda rng, size: np.clip(rng.normal(0.5, 0.1, size), 0, 1), 0.5),
    }
    for name in COLLECTIONS:
        scores = values_of(data, name)
        order = np.argsort(scores.mean(axis=0))
        for place in order[[0, len(order) // 2, -1]]:
            kinds[f"nDCG@10, {name} {place}"] = (resampled(scores[:, place]), scores[:, place].mean())
    rows = []
    for kind, (draw, mean) in kinds.items():
        row = {"scores": kind}
        for n in (10, 25, 50, 100):
            x = draw(np.random.default_rng(n), (n, samples))
            of = moments(x)
            low = np.clip(lower_limit(of, 0.025, 0.0, special.stdtrit), 0, 1)
            high = np.clip(upper_limit(of, 0.025, 1.0, special.stdtrit), 0, 1)
            half = special.stdtrit(n - 1, 0.975) * x.std(axis=0, ddof=1) / np.sqrt(n)
            center = x.mean(axis=0)
            t = np.clip(center - half, 0, 1), np.clip(center + half, 0, 1)
            covered = [float(((a <= mean + 1e-9) & (mean - 1e-9 <= b)).mean()) for a, b in (t, (low, high))]
            row[str(n)] = (
                f"{covered[0]:.3f} / {covered[1]:.3f} ({np.median(high - low) / max(np.median(t[1] - t[0]), 1e-9):.2f})"
            )
        rows.append(row)
    return pd.DataFrame(rows)


# Pairs of systems: simultaneous intervals.


def pairs_coverage(data, samples):
    """Simultaneous coverage of nominal 95 % intervals of all pairs of real runs, topics drawn with replacement.

    Bonferroni's t with moderated variances, and without moderation; the ratio of their median widths.
    """
    rows = []
    for name in COLLECTIONS:
        scores = values_of(data, name)
        first, second = np.triu_indices(scores.shape[1], 1)
        differences = scores[:, first] - scores[:, second]
        truth = differences.mean(axis=0)
        row = {"collection": name, "systems": scores.shape[1]}
        for n in (10, 25, 50):
            rng, covered, widths = np.random.default_rng(n), {True: 0, False: 0}, []
            for _ in range(samples):
                drawn = differences[rng.integers(len(differences), size=n)]
                width = {}
                for moderated in covered:
                    tests = t_test(drawn, moderated=moderated, bounds=(-1.0, 1.0))
                    low, high = tests.limits(np.full(len(truth), ALPHA / len(truth)))
                    # Systems may be equal on all topics.
                    covered[moderated] += bool(((low <= truth + 1e-12) & (truth - 1e-12 <= high)).all())
                    width[moderated] = np.median(high - low)
                widths.append(width[True] / max(width[False], 1e-12))
            row[str(n)] = f"{covered[True] / samples:.3f} / {covered[False] / samples:.3f} ({np.median(widths):.2f})"
        rows.append(row)
    return pd.DataFrame(rows)


# Weights in other calls.


def _scores_of(kind, weight, rng):
    """Scores of a population of queries, and which of them a second system improves."""
    rank = np.argsort(np.argsort(-weight)) / len(weight)
    scores = np.where(rng.random(len(weight)) < 0.5, 0.0, rng.beta(1, 2, len(weight)))
    if kind == "heavy queries score higher":
        scores = np.where(rank < 0.1, np.clip(scores + 0.4, 0, 1), scores)
    return scores


def weighted_calls(samples):
    """Coverage of weighted 95 % intervals of a mean (score, rank_systems), and rejections of a difference of 0.

    Rejections are those of compare, and those of rank_systems: a probability that one system beats the other of at
    most .025 or at least .975, of 500 samples. The last column is the coverage of percentiles of resampled weighted
    means, which rank_systems does not use.
    """
    rows = []
    weights = populations_of_traffic(np.random.default_rng(5)) | {"equal": np.ones(20_000)}
    for name, weight in weights.items():
        for kind in ("unrelated", "heavy queries score higher"):
            rng = np.random.default_rng(7)
            scores = _scores_of(kind, weight, rng)
            mean = (weight * scores).sum() / weight.sum()
            d = losses_of("head loses" if kind != "unrelated" else "nothing", weight, rng)
            row = {"traffic": name, "scores": kind}
            for n in (50, 100, 200):
                at = np.random.default_rng([n, 3]).integers(len(weight), size=(n, samples))
                w, x = weight[at], scores[at]
                of = moments(x, w)
                low = np.clip(lower_limit(of, 0.025, 0.0, special.stdtrit), 0, 1)
                high = np.clip(upper_limit(of, 0.025, 1.0, special.stdtrit), 0, 1)
                tests = t_test(d[at], moderated=True, sample=SampledQueries(w), bounds=(-1.0, 1.0))
                some = min(samples, 500)
                ends = np.array([_percentiles(x[:, k], w[:, k], k) for k in range(some)]).T
                row[str(n)] = (
                    f"{((low <= mean) & (mean <= high)).mean():.3f} {(tests.p_value <= ALPHA).mean():.3f} "
                    f"{np.mean([_beats(d[at[:, k]], SampledQueries(w[:, k]), k) for k in range(some)]):.3f} "
                    f"{((ends[0] <= mean) & (mean <= ends[1])).mean():.3f}"
                )
            rows.append(row)
    for kind in ("ignored", "clusters"):
        row = {"traffic": "clusters of 5, correlation .5", "scores": kind}
        for n in (50, 100, 200):
            rng, code = np.random.default_rng(n), np.repeat(np.arange(n // 5), 5)
            shared = np.repeat(rng.normal(0, 1, (n // 5, samples)), 5, axis=0)
            x = 0.1 * (np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(0, 1, (n, samples)))
            sample = SampledQueries(np.ones(n), clusters=code if kind == "clusters" else None)
            of = sample.moments(np.clip(0.5 + x, 0, 1))
            low, high = lower_limit(of, 0.025, 0.0, special.stdtrit), upper_limit(of, 0.025, 1.0, special.stdtrit)
            tests = t_test(x, moderated=True, sample=sample, bounds=(-1.0, 1.0))
            beats = np.mean([_beats(x[:, k], sample, k) for k in range(min(samples, 500))])
            row[str(n)] = (
                f"{((low <= 0.5) & (high >= 0.5)).mean():.3f} {(tests.p_value <= ALPHA).mean():.3f} {beats:.3f}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def _beats(d, sample, seed):
    """True if rank_systems is surer than .975 of the order of two systems with these differences."""
    errors = drawn_errors(d[:, None], sample, 2000, np.random.default_rng(seed))
    return not ALPHA / 2 < (sample.mean(d[:, None]) + errors > 0).mean() < 1 - ALPHA / 2


def _percentiles(x, w, seed, n_draws=1000):
    """Percentiles of weighted means of resampled queries."""
    counts = np.random.default_rng(seed).multinomial(len(x), np.full(len(x), 1 / len(x)), size=n_draws)
    return np.quantile(counts @ (w * x) / (counts @ w), [0.025, 0.975])


def _power(d, weight, margin, n, samples=6000):
    """Probability of PASS, or of a significant difference, of n queries of a population."""
    results = []
    for seed in range(samples // _TOGETHER):
        at = np.random.default_rng([seed, n]).integers(len(d), size=(n, _TOGETHER))
        sample = SampledQueries(weight[at])
        if margin is None:
            tests = t_test(d[at], moderated=False, sample=sample)
            results.append((tests.p_value <= ALPHA) & (tests.mean > 0))
        else:
            criteria = Criteria(margin, ALPHA)
            passed = np.array(limits(criteria, d[at], sample).decisions(criteria)) == PASS
            results.append(passed)
    return float(np.mean(results))


def plans(samples):
    """Share of plans of ``queries_needed`` for power .8 that reach it, and the median ratio to the true number.

    A difference of .06 of a test, or the margin .03 of the gate with a quarter of the samples. The true number is that
    at which 6,000 samples have this power.
    """
    size = 100_000
    kinds = {
        "normal": lambda rng: rng.normal(0, 1, size),
        "half tied": lambda rng: np.where(rng.random(size) < 0.5, 0.0, rng.normal(0, 2**0.5, size)),
        "exponential": lambda rng: 1 - rng.exponential(1, size),
    }
    cells = [(kind, "equal", margin) for kind in kinds for margin in (None, 0.03)]
    cells += [("normal", traffic, None) for traffic in ("log-normal 1", "Zipf .7")]
    rows = []
    for kind, traffic, margin in cells:
        rng = np.random.default_rng(11)
        weight = populations_of_traffic(rng, size).get(traffic, np.ones(size))
        d = np.clip((0.1 if margin else 0.2) * kinds[kind](rng), -0.5, 0.5)
        d -= (weight * d).sum() / weight.sum()
        d += 0.0 if margin else 0.06
        needed = smallest_number(partial(_power, d, weight, margin), 0.8, 20, 5000) or np.inf
        row = {"differences": kind, "weights": traffic, "margin": margin, "needed": needed}
        for n_pilot in (30, 50):
            for assurance in (0.8,) if margin else (0.5, 0.8):
                some = samples // 4 if margin else samples
                planned = [_plan(d, weight, rng.integers(size, size=n_pilot), assurance, margin) for _ in range(some)]
                share, ratio = np.mean(np.array(planned) >= needed), np.median(planned) / needed
                row[f"{n_pilot}, {assurance:g}"] = f"{share:.2f} ({ratio:.2f})"
        rows.append(row)
        print(row, flush=True)
    return pd.DataFrame(rows)


def _plan(d, weight, at, assurance, margin):
    """The planned number from one pilot; infinite where no number is planned."""
    qids = [f"q{i:02}" for i in range(len(at))]
    values = pd.DataFrame({"name": np.repeat(["a", "b"], len(at)), "qid": qids * 2, "measure": "nDCG@10"})
    values["value"] = np.r_[0.5 + d[at], np.full(len(at), 0.5)]
    table = pd.DataFrame({"qid": qids, "weight": weight[at]}) if np.ptp(weight) else None
    about = {"data": Data(queries=table), "inference": Inference(margin=margin)}
    try:
        return queries_needed(values, None if margin else 0.06, assurance=assurance, **about).n_qids
    except InputError:
        return np.inf


def _tails(size=10_000):
    """Weights of queries of other distributions than those by which the constants of ``tail_index`` were chosen."""

    def rng(seed):
        return np.random.default_rng(seed)

    rank, uniform = np.arange(1, size + 1), rng(35).random(size)
    return {
        "Zipf .35": rank**-0.35,
        "Zipf .45": rank**-0.45,
        "Zipf .6": rank**-0.6,
        "log-normal .6": rng(30).lognormal(0, 0.6, size),
        "log-normal .8": rng(31).lognormal(0, 0.8, size),
        "Pareto 2.5": rng(32).pareto(2.5, size) + 1,
        "Pareto 4": rng(33).pareto(4, size) + 1,
        "gamma 2": rng(34).gamma(2, 1, size) + 0.02,
        "log-logistic 3": (uniform / (1 - uniform)) ** (1 / 3) + 0.1,
        "half t 4": np.abs(rng(36).standard_t(4, size)) + 0.2,
    }


def _passes_of(weight, at, margin):
    """A function of differences of all queries: shares of uniform samples, columns of ``at``, that pass, by rule.

    Rules: weights of other queries are at most that of the *heaviest* sampled one, *unknown*, or *known*.
    """
    w = weight[at]
    share, of = w / w.sum(axis=0), moments(np.zeros(w.shape), w)
    mass = np.append(0.0, np.cumsum(np.sort(weight)[::-1])) / weight.sum()

    def unseen(exponent):
        return np.interp(-np.expm1(-exponent / len(at)) * len(weight), np.arange(len(mass)), mass)

    n_known = np.log(ALPHA) / np.log1p(-unseen(-np.log(ALPHA)))
    rules = {"heaviest": (1 / share.max(axis=0), None), "unknown": (of.n_heaviest, None), "known": (n_known, unseen)}

    def passes(d):
        x = d[at]
        mean = (share * x).sum(axis=0)
        part = share * (x - mean)
        of_sample = of._replace(
            mean=mean,
            variance=(part**2 / (1 - np.minimum(share, 0.9))).sum(axis=0),
            third=(part**3).sum(axis=0),
        )
        lost, shares = (share * (x < -LARGE)).sum(axis=0), {}
        for rule, (number, of_exponent) in rules.items():
            _, high = clopper_pearson(lost, number, ALPHA, ALPHA, special.betaincinv)
            low = lower_limit(
                of_sample._replace(n_effective=np.broadcast_to(number, mean.shape)),
                ALPHA,
                1.0,
                special.stdtrit,
                of_exponent,
            )
            shares[rule] = float(((low > -margin) & (high <= SHARE) & (of.df >= LEAST_DF)).mean())
        return shares

    return passes


def unseen_heads(samples, margin=0.02, sizes=(400, 1600)):
    """Uniform samples: P(PASS) without a difference, its bound, and the largest false PASS if heaviest queries lose.

    False PASS is the largest over heads of 2 to 1,000 queries that lose .2, .4 or .9 more.
    """
    rows = []
    for name, weight in (traffics(np.random.default_rng(5)) | _tails()).items():
        order = np.argsort(-weight, kind="stable")
        base = np.clip(np.random.default_rng(6).normal(0, 0.1, len(weight)), -0.5, 0.5)
        for n in sizes:
            passes = _passes_of(weight, np.random.default_rng([n, 1]).integers(len(weight), size=(n, samples)), margin)
            row = {"traffic": name, "n": n, "bound": highest_p_pass(weight, n, margin)}
            row |= passes(base - (weight * base).sum() / weight.sum())
            false = {}
            for head in (2, 5, 10, 20, 40, 60, 120, 200, 1000):
                for loss in (0.2, 0.4, 0.9):
                    d = base.copy()
                    d[order[:head]] = np.maximum(d[order[:head]] - loss, -1.0)
                    d -= (weight * d).sum() / weight.sum() + margin
                    # Other queries that gain much would decide.
                    if d[order[head:]].mean() < 3 * margin:
                        false[f"{head} {loss:g}"] = passes(d)
            for rule in ("heaviest", "unknown", "known"):
                worst = max(false, key=lambda each: false[each][rule])
                row[f"false, {rule}"] = f"{false[worst][rule]:.3f} ({worst})"
            rows.append(row)
            print(row, flush=True)
    return pd.DataFrame(rows)


def real_covariates(data, samples, margin=0.02):
    """PASS at no difference and at -margin with a covariate, of pairs of real runs, known for 5 n queries.

    The covariate is the baseline's score, the difference of a third run from the baseline, or that by labels of
    Llama 3 8B. For each collection, the
    pair with the median correlation.
    """
    rows = []
    for name in COLLECTIONS:
        scores = values_of(data, name)
        labels = values_of(data, name, LABELS) if name == "trec_dl19" else None
        order = np.argsort(scores.mean(axis=0))[len(scores[0]) // 3 :]
        chosen = []
        for new, base, third in combinations(order, 3):
            d = scores[:, new] - scores[:, base]
            if d.std() > 0:
                columns = {"baseline": scores[:, base], "earlier difference": scores[:, third] - scores[:, base]}
                if labels is not None:
                    columns["machine labels"] = labels[:, new] - labels[:, base]
                for kind, c in columns.items():
                    if c.std() > 0:
                        chosen.append((kind, np.corrcoef(d, c)[0, 1], d, c))
        for kind in dict.fromkeys(kind for kind, *_ in chosen):
            these = sorted((one for one in chosen if one[0] == kind), key=lambda one: abs(one[1]))
            _, correlation, d, c = these[len(these) // 2]
            row = {"collection": name, "covariate": kind, "correlation": correlation, "sd": d.std()}
            for shift in (0.0, -margin):
                for n in (100, 200, 400):
                    at = np.random.default_rng(n).integers(len(d), size=(5 * n, samples))
                    x = d[at[:n]] - d.mean() + shift
                    about = Covariate(c[at[:n]], c[at].mean(axis=0), 5 * n)
                    criteria = Criteria(margin, ALPHA)
                    results = [
                        limits(criteria, x, SampledQueries(np.ones(n), covariate=each)).decisions(criteria).count(PASS)
                        for each in (None, about)
                    ]
                    row[f"{shift:g}, {n}"] = " -> ".join(f"{one / samples:.3f}" for one in results)
            rows.append(row)
    return pd.DataFrame(rows)


PARTS = {
    "false PASS": false_pass,
    "PASS without a difference": lambda _, n: true_pass(n),
    "grid": lambda _, n: grid(n),
    "traffic": lambda _, n: traffic(n),
    "clusters": lambda _, n: clusters(n),
    "covariates": lambda _, n: covariates(n),
    "equivalence": lambda _, n: equivalence(n),
    "intervals of means": mean_coverage,
    "intervals of pairs": pairs_coverage,
    "weights of other calls": lambda _, n: weighted_calls(n),
    "plans": lambda _, n: plans(max(n // 6, 4)),
    "unseen heads": lambda _, n: unseen_heads(n),
    "real covariates": real_covariates,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--samples", type=int, default=1500)
    parser.add_argument("--part", action="append", choices=PARTS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.part or PARTS:
        error = np.sqrt(0.05 * 0.95 / arguments.samples)
        print(f"\n## {name} ({arguments.samples} samples, standard error {error:.3f} at .05)\n", flush=True)
        print(PARTS[name](arguments.data, arguments.samples).round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
