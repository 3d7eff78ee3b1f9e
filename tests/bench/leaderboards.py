"""Resolution of leaderboards: ``python tests/bench/leaderboards.py DATA``.

Printed are the coverage of rank intervals on planted systems and on shared collections, the recovery of ranks by
groups whose judgments were removed, the coverage of rank correlations, and the share of neighbours that do not differ
on generated data of 181 systems. DATA is the folder of the collections that ``tests/data`` reads.
"""

import argparse
import re
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS

from vbterrier.evaluate import leaderboard
from vbterrier.kernels.resample import resampled_means, stream
from vbterrier.settings import Data, Inference
from vbterrier.stats.agreement import rank_biased_overlap, rank_correlations
from vbterrier.stats.comparisons import share_letter
from vbterrier.stats.paired_tests import rank_intervals
from vbterrier.unjudged.incomplete import subsample_qrels

LEVEL = 0.9


def ranks_of(means):
    """Ranks from 1 along the first axis."""
    return 1 + (means[None] > means[:, None] + 1e-12).sum(axis=1)


def planted(seed, n_systems, n_topics, spread):
    """True means of systems, and their scores on topics."""
    rng = stream(seed, "planted")
    true = rng.normal(0.5, spread, n_systems)
    hard, effect = rng.normal(0, 0.15, (n_topics, 1)), rng.normal(0, 0.15, (n_topics, n_systems))
    return true, true + hard + effect * rng.choice([0.5, 1.0, 1.8], (n_topics, 1))


def planted_coverage(n_systems, n_topics, spread, n=300):
    """Covered ranks and mean widths, of intervals and of quantiles of drawn ranks; samples without a wrong pair."""
    rows = []
    for seed in range(n):
        true, scores = planted(seed, n_systems, n_topics, spread)
        rank, means = ranks_of(true), scores.mean(axis=0)
        draws = resampled_means(scores, 1000, stream(seed, "topics")).T
        inflation = np.sqrt(n_topics / (n_topics - 1))
        ranks = rank_intervals(means, draws, LEVEL, df=n_topics - 1, inflation=inflation)
        low, high = np.quantile(ranks_of(draws), [0.05, 0.95], axis=1, method="inverted_cdf")
        best = np.argmin(rank)
        row = []
        for a, b in ((ranks.low, ranks.high), (low, high)):
            covered = (a <= rank) & (rank <= b)
            row += [covered.mean(), covered[best], (b - a).mean()]
        rows.append([*row, not (ranks.better & (true[:, None] < true)).any()])
    return np.mean(rows, axis=0)


def shared_coverage(runs, qrels, share, n_topics, n=20):
    """Coverage of the ranks with all judgments and all topics, on samples of judgments, topics or both."""
    runs = {name: run[run["qid"].isin(qrels["qid"])] for name, run in runs.items()}
    everywhere = Data(on_topics="all")
    truth = leaderboard(runs, qrels, data=everywhere, inference=Inference(n_draws=500, level=LEVEL)).systems.set_index(
        "name"
    )["rank"]
    covered, widths = [], []
    for seed in range(n):
        kept = stream(seed, "topics").permutation(qrels["qid"].unique())[: n_topics or None]
        some = subsample_qrels(qrels[qrels["qid"].isin(kept)], share, seed)
        some = some[some.groupby("qid")["label"].transform("max") > 0]
        source = "both" if n_topics else "unjudged"
        less = {name: run[run["qid"].isin(some["qid"])] for name, run in runs.items()}
        board = leaderboard(
            less, some, uncertainty=source, data=everywhere, inference=Inference(n_draws=500, level=LEVEL, seed=seed)
        ).systems.set_index("name")
        expected = truth[board.index]
        covered.append(((board["rank_low"] <= expected) & (expected <= board["rank_high"])).mean())
        widths.append((board["rank_high"] - board["rank_low"]).mean())
    return np.mean(covered), np.mean(widths)


def correlations(truth, estimate):
    """Kendall's tau, tau_AP and rank-biased overlap."""
    actual = rank_correlations(truth, estimate)
    return actual.tau, actual.tau_ap, rank_biased_overlap(truth, estimate)


def correlation_coverage(spread, bias, n=100, n_systems=30, n_topics=50):
    """Coverage of the expected correlations of leaderboards by quantiles of resamples, shifted and not."""
    rng = stream(1, "judge")
    true = rng.normal(0.5, spread, n_systems)
    judged = true + rng.normal(0.1, bias, n_systems)
    values, ends, centres = [], [], []
    for seed in range(n):
        rng = stream(seed, "judge")
        hard, effect = rng.normal(0, 0.15, (n_topics, 1)), rng.normal(0, 0.12, (n_topics, n_systems))
        human = true + hard + effect
        machine = judged + hard + 0.7 * effect + rng.normal(0, 0.05, effect.shape)
        both = resampled_means(np.hstack([human, machine]), 300, rng)
        pairs = [np.split(row, 2) for row in (np.hstack([human, machine]).mean(axis=0), *both)]
        results = [correlations(*pair) for pair in pairs]
        values.append(results[0])
        ends.append(np.quantile(results[1:], [0.05, 0.95], axis=0))
        centres.append(np.mean(results[1:], axis=0))
    values, ends, shift = np.array(values), np.array(ends), np.array(values) - np.array(centres)
    aim = values.mean(axis=0)

    def covered(low, high):
        return ((low <= aim) & (aim <= high)).mean(axis=0)

    return covered(ends[:, 0] + shift, ends[:, 1] + shift), covered(ends[:, 0], ends[:, 1])


def benchmark(seed, n_systems=181, n_tasks=15, n_queries=100):
    """Values of a public benchmark: skills, task effects of systems, and effects of queries."""
    rng = stream(seed, "benchmark")
    skill = rng.normal(0.5, 0.06, n_systems)
    parts = []
    names = np.repeat([f"s{i:03}" for i in range(n_systems)], n_queries)
    qids = np.tile([f"q{i}" for i in range(n_queries)], n_systems)
    for task in range(n_tasks):
        scores = skill + rng.normal(0, 0.1) + rng.normal(0, 0.04, n_systems)
        value = scores[:, None] + rng.normal(0, 0.2, n_queries) + rng.normal(0, 0.15, (n_systems, n_queries))
        frame = {"dataset": f"task{task:02}", "name": names, "qid": qids, "value": value.ravel()}
        parts.append(pd.DataFrame(frame).assign(measure="nDCG@10"))
    return pd.concat(parts, ignore_index=True)


def inseparable(values, uncertainty, n_draws=1000):
    """Neighbours and pairs that do not differ, and the mean width of rank intervals."""
    board = leaderboard(values, uncertainty=uncertainty, inference=Inference(n_draws=n_draws, level=0.95))
    table = board.systems
    pairs = [share_letter(*pair) for pair in combinations(table["letters"], 2)]
    return board.n_inseparable, sum(pairs), (table["rank_high"] - table["rank_low"]).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print("planted: systems, topics, spread: covered, best covered, width; of drawn ranks; no wrong pair")
        for shape in ((20, 25, 0.08), (20, 50, 0.08), (20, 50, 0.02), (40, 50, 0.05), (40, 50, 0.002)):
            print(*shape, *np.round(planted_coverage(*shape), 3))
        print("rank correlations (tau, tau_ap, rbo): covered by shifted quantiles, by quantiles")
        for spread, bias in ((0.1, 0.01), (0.05, 0.03), (0.02, 0.005)):
            print(spread, bias, *(np.round(each, 2) for each in correlation_coverage(spread, bias)))
        print("shared: share of judgments removed, topics: covered, width", flush=True)
        for name in ("TREC DL 2019", "TREC Web 2012"):
            collection = COLLECTIONS[name](data)
            for share, n_topics in ((0.3, 0), (0.5, 0), (0.0, 20), (0.3, 20)):
                covered, width = shared_coverage(collection.runs, collection.qrels, share, n_topics)
                print(f"{name}: {share:g} {n_topics or 'all'}: {covered:.3f} {width:.1f} of {len(collection.runs)}")
        print("groups left out: systems, ranks recovered, ranks covered, mean change of rank")
        collection = COLLECTIONS["TREC DL 2019"](data)
        groups = {name: re.match("[A-Za-z]+", name)[0] for name in collection.runs}
        for measure in ("nDCG@10", "ENDCG@10"):
            table = leaderboard(
                collection.runs, collection.qrels, measure, groups=groups, inference=Inference(n_draws=500)
            ).reusability
            moved = (table["rank_without"] - table["rank"]).abs().mean()
            print(measure, len(table), table["recovered"].sum(), table["covered"].sum(), f"{moved:.2f}")
        print("181 systems, 15 tasks of 100 queries: neighbours of 180 and pairs of 16,290 that do not differ, width")
        for seed in range(3):
            values = benchmark(seed)
            for source in ("topics", "collections"):
                print(seed, source, *np.round(inseparable(values, source), 1))
