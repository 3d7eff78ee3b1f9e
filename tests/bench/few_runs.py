"""Estimates by number of runs, and the warning of them: ``python tests/bench/few_runs.py DATA FILE [--samples N]``.

DATA is the folder of the collections that ``tests/data`` reads. Random subsets of 1, 2, 3, 6 and 20 runs of six
collections are evaluated by ``ENDCG@10`` with reduced judgments, and compared with the nDCG@10 of complete judgments.
FILE gets a line of JSON for each setting, a subset and its judgments, and settings that it has are not computed again.
Prints errors and coverage by number of runs, and of settings with and without a warning, and ``--write`` replaces the
tables of ``docs/explanation/evidence.md`` and ``evidence-one-run.md``.
"""

import argparse
import json
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS, DOCS, markdown, short, write_table
from scipy.stats import kendalltau

import vbterrier
from vbterrier.settings import Data, Inference
from vbterrier.unjudged.incomplete import (
    budget_pool,
    hidden_runs,
    leave_group_out,
    shallow_pool,
    subsample_qrels,
    subsample_topics,
)

CUTOFF, N_DRAWS = 10, 200
SIZES = (1, 2, 3, 6, 20)
LEVELS = (0.5, 0.8, 0.9, 0.95)


def regimes(collection, names, seed):
    """The reduced judgments of each regime, for some of the runs of a collection."""
    runs, qrels, groups, _ = collection
    some = {name: runs[name] for name in names}
    yield "thinned by 30%", lambda: subsample_qrels(qrels, 0.3, seed)
    yield "thinned by 70%", lambda: subsample_qrels(qrels, 0.7, seed)
    yield "judged by topic", lambda: subsample_topics(qrels, 0.3, 0.8, seed)
    yield "pool of depth 5 of all runs", lambda: shallow_pool(runs, qrels, cutoff=5)
    yield "pool of depth 5", lambda: shallow_pool(some, qrels, cutoff=5)
    yield "a budget of 20 documents", lambda: budget_pool(some, qrels, budget=20)
    yield "a group left out", lambda: left_out(runs, qrels, groups, groups[names[0]])
    if len(names) > 1:
        chosen_groups = {name: groups[name] for name in names}
        if len(set(chosen_groups.values())) > 1:
            half = hidden_runs(some, qrels, groups=chosen_groups, cutoff=CUTOFF, n_replicas=1, seed=seed)
            yield "hidden half", lambda: next(iter(half)).qrels


def left_out(runs, qrels, groups, group):
    """The judgments without those of one group."""
    return next(part.qrels for part in leave_group_out(runs, qrels, groups=groups) if part.name == group)


def by_topic(runs, qrels):
    """The nDCG@10 of each topic that all runs have, a column for each run."""
    values = vbterrier.score(
        runs, qrels, [f"nDCG@{CUTOFF}"], data=Data(on_topics="common"), inference=Inference(n_resamples=2)
    ).values
    return values.pivot(index="qid", columns="name", values="value")


def interval(draws, level):
    """The ends of the interval between the quantiles ``(1 ± level)/2`` of the draws."""
    return np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=-1)


def covered(draws, truth, levels=LEVELS):
    """Which of some true values are in the intervals of their draws, shape (n_levels, n)."""
    if not len(truth):
        return np.empty((len(levels), 0))
    ends = [interval(draws, level) for level in levels]
    return np.array([(low <= truth + 1e-9) & (truth <= high + 1e-9) for low, high in ends])


def measured(runs, truth, qrels):
    """Errors, coverage, and what warnings depend on, of one setting; ``None`` if nothing is unjudged."""
    model = vbterrier.unjudged.fit(runs, qrels, cutoff=CUTOFF)
    fitted = model.at(CUTOFF)
    evidence = fitted.evidence
    judged = model.judgments
    errors, in_topics, means, true_means, draws_of = [], [], [], [], []
    for name, run in runs.items():
        scores = model.run_distribution(run, CUTOFF, n_draws=N_DRAWS)
        places = [place for place, qid in enumerate(scores.topics) if qid in truth.index]
        topics = [scores.topics[place] for place in places]
        true, draws = truth.loc[topics, name].to_numpy(), scores.draws.T[places]
        is_open = draws.max(axis=1) - draws.min(axis=1) > 1e-9
        errors.append((draws.mean(axis=1) - true)[is_open])
        in_topics.append(covered(draws[is_open], true[is_open]))
        means.append(draws.mean())
        true_means.append(true.mean())
        draws_of.append(draws.mean(axis=0))
    error = np.concatenate(errors)
    if not len(error):
        return None
    draws_of, true_means = np.array(draws_of), np.array(true_means)
    spread = np.ptp(draws_of, axis=1) > 1e-9
    in_means = covered(draws_of[spread], true_means[spread])
    pairs = [(a, b) for a, b in combinations(range(len(runs)), 2) if np.ptp(draws_of[a] - draws_of[b]) > 1e-9]
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    in_pairs = covered(draws_of[first] - draws_of[second], true_means[first] - true_means[second])
    share = evidence.n_unjudged.sum(axis=1) / evidence.n_cut.sum(axis=1)
    ends = interval(draws_of, 0.9)
    row = {
        "n": len(error),
        "squared": float((error**2).mean()),
        "bias": float(error.mean()),
        "n_means": int(spread.sum()),
        "n_pairs": len(pairs),
        "width": float((ends[1] - ends[0])[spread].mean()),
        "squared_means": float(((draws_of.mean(axis=1) - true_means)[spread] ** 2).mean()),
        "estimates": draws_of.mean(axis=1).tolist(),
        "truth": true_means.tolist(),
        "caution": model.caution(CUTOFF).split(":")[0],
        "unjudged": sorted(share.tolist()),
        "sigma": fitted.sigma,
        "ks": fitted.ks,
        "gate": fitted.gate,
        "n_effective": evidence.n_effective,
        "depth": evidence.depth,
        "judged": len(judged.label),
        "from_others": fitted.n_from_others,
        "relevance": fitted.relevance_of_unjudged,
    }
    for kind, shares in (("topics", np.concatenate(in_topics, axis=1)), ("means", in_means), ("pairs", in_pairs)):
        for level, of_level in zip(LEVELS, shares, strict=True):
            row[f"{kind} {level:.0%}"] = float(of_level.mean()) if len(of_level) else None
    return row


def settings(name, data, n_samples):
    """Settings of a collection: key, runs, judgments (computed when called), and true scores."""
    collection = COLLECTIONS[name](data)
    truth = by_topic(collection.runs, collection.qrels)
    for size in SIZES:
        for seed in range(n_samples):
            if size > len(collection.runs) or (size == len(collection.runs) and seed):
                continue
            rng = np.random.default_rng([size, seed])
            names = sorted(collection.runs)
            names = [names[place] for place in rng.permutation(len(names))[:size]]
            some = {each: collection.runs[each] for each in names}
            for regime, qrels in regimes(collection, names, seed):
                yield (name, regime, size, seed), some, qrels, truth
    if name == "TREC-COVID":
        incomplete = vbterrier.read_qrels(data / "trec-covid" / "qrels.incomplete.txt.gz")
        for names in (["ance"], ["BBGhelani2"], list(collection.runs)):
            runs = {each: collection.runs[each] for each in names}
            yield (name, f"really missing, {names[0]}", len(names), 0), runs, lambda: incomplete, truth


def computed(data, path, names, n_samples, seconds):
    """Compute settings that the file lacks, until the time is over; return all of them."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    present = {tuple(row["key"]) for row in rows}
    with path.open("a") as file:
        for name in names:
            for key, runs, qrels, truth in settings(name, data, n_samples):
                if key in present:
                    continue
                if time.process_time() > seconds:
                    return rows
                row = measured(runs, truth, qrels())
                rows.append({"key": key, **(row or {"n": 0})})
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
    return rows


def table(rows):
    """Settings with something unjudged as a frame."""
    frame = pd.DataFrame([row for row in rows if row["n"]])
    keys = pd.DataFrame(frame["key"].tolist(), columns=["collection", "regime", "runs", "seed"])
    return keys.join(frame.drop(columns="key")).assign(warned=frame["caution"].ne("").to_numpy())


def with_error(values, collection):
    """The mean and its standard error over collections, as text."""
    of_collections = values.groupby(collection).mean().dropna()
    if of_collections.empty:
        return ""
    if len(of_collections) == 1:
        return short(of_collections.item())
    return f"{short(of_collections.mean())} ({short(of_collections.std(ddof=1) / np.sqrt(len(of_collections)))})"


def by(frame, keys):
    """A row per group: RMSE of topics and means, bias, and coverage of 90 % intervals with standard errors."""
    made = []
    for key, part in frame.groupby(list(keys), sort=True):
        made.append(
            {
                **dict(zip(keys, map(str, key), strict=True)),
                "settings": str(len(part)),
                "RMSE of topics": short(np.sqrt(part["squared"].mean()), 3),
                "of means": short(np.sqrt(part["squared_means"].mean()), 3),
                "bias": short(part["bias"].mean(), 3),
                **{
                    kind: with_error(part[f"{kind} 90%"].astype(float), part["collection"])
                    for kind in ("topics", "means", "pairs")
                },
            }
        )
    return pd.DataFrame(made)


def tau(rows):
    """The mean of Kendall's tau of the means of runs, over settings of three runs and more."""
    correlations = [
        kendalltau(row["estimates"], row["truth"]).statistic for _, row in rows[rows["runs"] > 2].iterrows()
    ]
    return short(float(np.nanmean(correlations))) if correlations else ""


def levels(frame):
    """A row per number of runs: coverage of topics, means and differences at each level, and tau."""
    made = []
    for n, part in frame.groupby("runs"):
        row = {"runs": str(n), "settings": str(len(part))}
        for kind, name in (("topics", "topics"), ("means", "means"), ("pairs", "differences")):
            shares = [part[f"{kind} {level:.0%}"].astype(float).groupby(part["collection"]).mean() for level in LEVELS]
            row[name] = " ".join(short(share.mean()) for share in shares) if shares[0].notna().any() else ""
        made.append(row | {"tau": tau(part)})
    return pd.DataFrame(made)


def cells(frame):
    """A row per kind of judgments and collection, and a cell per number of runs: RMSE of topics and of means; bias;
    coverage of 90 % intervals of topics, means and differences.
    """
    made = {}
    for (regime, name, n), part in frame.groupby(["regime", "collection", "runs"]):
        shares = [short(part[f"{kind} 90%"].astype(float).mean()) for kind in ("topics", "means", "pairs")]
        errors = [short(np.sqrt(part[column].mean()), 3) for column in ("squared", "squared_means")]
        made.setdefault((regime, name), {})[str(n)] = (
            f"{' '.join(errors)}; {short(part['bias'].mean(), 3)}; " + " ".join(filter(None, shares))
        )
    sizes = [str(n) for n in SIZES]
    rows = [{"judgments": regime, "collection": name} | row for (regime, name), row in made.items()]
    return pd.DataFrame(rows, columns=["judgments", "collection", *sizes]).fillna("")


def warnings_by_runs(frame):
    """A row per number of runs: the share of settings with a warning, and coverage with and without one."""
    made = []
    for n, part in [*frame.groupby("runs"), ("all", frame)]:
        kept = part[~part["warned"]]
        of_kept = {
            kind: with_error(kept[f"{kind} 90%"].astype(float), kept["collection"])
            for kind in ("topics", "means", "pairs")
        }
        lowest = kept["means 90%"].astype(float).groupby(kept["collection"]).mean().min()
        warned = part[part["warned"]]
        made.append(
            {
                "runs": str(n),
                "settings": str(len(part)),
                "warned": with_error(part["warned"].astype(float), part["collection"]),
                "topics": of_kept["topics"],
                "means": of_kept["means"],
                "lowest collection": short(lowest),
                "differences": of_kept["pairs"],
                "means, warned": with_error(warned["means 90%"].astype(float), warned["collection"]),
            }
        )
    return pd.DataFrame(made)


def main():
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(COLLECTIONS), default=list(COLLECTIONS))
    parser.add_argument("--samples", type=int, default=2, help="subsets of each size (2)")
    parser.add_argument("--seconds", type=float, default=600, help="processor time after which it stops (600)")
    parser.add_argument("--write", action="store_true", help="replace the tables of the pages")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    frame = table(computed(arguments.data, arguments.file, arguments.only, arguments.samples, arguments.seconds))
    for keys in (("runs",), ("regime",), ("collection",), ("warned",), ("warned", "collection")):
        print(f"{markdown(by(frame, keys))}\n")
    pages = DOCS / "explanation"
    for page, name, made in (
        ("evidence.md", "warnings", warnings_by_runs(frame)),
        ("evidence-one-run.md", "levels by number of runs", levels(frame)),
        ("evidence-one-run.md", "cells by number of runs", cells(frame)),
    ):
        print(f"{name}\n\n{markdown(made)}\n")
        if arguments.write:
            write_table(pages / page, name, markdown(made))


if __name__ == "__main__":
    main()
