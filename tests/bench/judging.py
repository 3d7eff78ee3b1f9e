"""Judging plans compared with pooling order and random order: ``python tests/bench/judging.py DATA [--seeds N]``.

DATA is the folder of the collections that ``tests/data`` reads. The best-ranked document of each topic is judged first.
Then ``judge_next``, the order of best ranks (pooling, by turns in each topic) and a random order of the pool of depth
10 spend the same number of judgments. True scores are the nDCG@10 of complete judgments. Prints the table of
``docs/how-to/machine-labels.md``.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS, DOCS, markdown, short, write_table
from few_judgments import CUTOFF, by_topic, collected, measured, shared_topics
from scipy import stats

import vbterrier

NAMES = ("CODEC", "Robust 2003", "eHealth 2018", "TREC DL 2019")
# Judgments a topic that are evaluated, and those after which judge_next plans again.
BUDGETS, ROUNDS = (1, 2, 5, 10, 20), (1, 2, 3, 5, 7, 10, 15, 20)
MOST_RUNS, MOST_TOPICS = 8, 30


def pool_of(runs, qrels):
    """The judged documents of the first ten ranks: qid, docno, label, rank (the best)."""
    cut = pd.concat([run.assign(rank=_rank(run)) for run in runs.values()])
    best = cut[cut["rank"] <= CUTOFF].groupby(["qid", "docno"])["rank"].min().reset_index()
    return best.merge(qrels[["qid", "docno", "label"]], on=["qid", "docno"])


def _rank(run):
    return run.groupby("qid")["score"].rank(ascending=False, method="first").astype(int)


def pooled(pool, budget, _):
    """The first documents of each topic by best rank."""
    return pool.sort_values(["rank", "qid", "docno"]).groupby("qid").head(budget)


def at_random(pool, budget, seed):
    """The best document of each topic, then random ones."""
    first = pooled(pool, 1, seed)
    others = pool.drop(first.index).sample(frac=1, random_state=seed)
    return pd.concat([first, others.groupby("qid").head(budget - 1)])


def planned(runs, pool):
    """Yield the budget and the judgments by ``judge_next``, round by round."""
    judged, n_topics = pooled(pool, 1, 0), pool["qid"].nunique()
    yield ROUNDS[0], judged
    for budget in ROUNDS[1:]:
        n = min(budget * n_topics, len(pool)) - len(judged)
        if n > 0:
            plan = vbterrier.judge_next(runs, judged[["qid", "docno", "label"]], budget=n).documents
            chosen = plan[["qid", "docno"]].merge(pool, on=["qid", "docno"])
            judged = pd.concat([judged, chosen], ignore_index=True)
        yield budget, judged


def ndcg(runs, judged):
    """The mean nDCG@10 of each run in which unjudged documents are non-relevant, 0 for topics without relevant ones."""
    discount = 1 / np.log2(np.arange(2, CUTOFF + 2))
    ideal = judged.sort_values("label", ascending=False).groupby("qid")["label"]
    ideal = ideal.apply(lambda label: label.to_numpy()[:CUTOFF] @ discount[: min(len(label), CUTOFF)])
    means = {}
    for name, run in runs.items():
        result = run.assign(rank=_rank(run)).query(f"rank <= {CUTOFF}")[["qid", "docno", "rank"]]
        result = result.merge(judged[["qid", "docno", "label"]], on=["qid", "docno"])
        gain = (result["label"] * discount[result["rank"] - 1]).groupby(result["qid"]).sum()
        means[name] = (gain.reindex(ideal.index).fillna(0) / ideal.where(ideal > 0)).fillna(0).mean()
    return pd.Series(means)


def rows(name, data, seeds):
    """A row for each sample, budget and order of judging."""
    collection = COLLECTIONS[name](data)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        names = rng.permutation(sorted(collection.runs))[:MOST_RUNS]
        runs, qrels = shared_topics(collection, {each: collection.runs[each] for each in sorted(names)})
        topics = rng.permutation(sorted(qrels["qid"].unique()))[:MOST_TOPICS]
        qrels = qrels[qrels["qid"].isin(topics)].assign(label=lambda frame: frame["label"].clip(lower=0))
        runs = {each: run[run["qid"].isin(topics)] for each, run in runs.items()}
        truth, pool = by_topic(runs, qrels), pool_of(runs, qrels)
        true, plans = truth.mean(), dict(planned(runs, pool))
        samples = [(budget, "judge_next", plans[budget]) for budget in BUDGETS]
        samples += [(b, "pooling", pooled(pool, b, seed)) for b in BUDGETS]
        samples += [(b, "random", at_random(pool, b, seed)) for b in BUDGETS]
        samples += [("pool", "all", pool)]
        for budget, order, sample in samples:
            judged = sample[["qid", "docno", "label"]]
            plain = ndcg(runs, judged).reindex(true.index)
            row = {"collection": name, "seed": seed, "budget": str(budget), "order": order}
            row |= {"plain squared": ((plain - true) ** 2).mean(), "plain tau": stats.kendalltau(plain, true).statistic}
            yield row | {"n": len(judged) / len(topics), **measured(runs, truth, judged, None, seed)}


def table(frame):
    """One row per collection, budget and order: RMSE, bias, tau and coverage of E, RMSE and tau of nDCG."""
    result = frame.drop(columns=["seed", "n"]).groupby(["collection", "budget", "order"], sort=False).mean()
    result["RMSE"], result["RMSE, nDCG"] = np.sqrt(result["squared, means"]), np.sqrt(result["plain squared"])
    names = {"covered, means": "covered", "plain tau": "tau, nDCG"}
    columns = ["RMSE", "bias", "tau", "covered", "width", "RMSE, nDCG", "tau, nDCG"]
    return result.rename(columns=names)[columns].reset_index()


def by_budget(frame):
    """One row per collection and budget: RMSE, tau and coverage of E by ``judge_next``, pooling and random order."""
    result = table(frame)
    wide = result[result["order"] != "all"].pivot(index=["collection", "budget"], columns="order")
    wide = wide.reindex(pd.MultiIndex.from_product([result["collection"].unique(), map(str, BUDGETS)]))
    cells = {"collection": wide.index.get_level_values(0), "budget": wide.index.get_level_values(1)}
    for what in ("RMSE", "tau", "covered", "RMSE, nDCG", "tau, nDCG"):
        digits = 3 if "RMSE" in what else 2
        shown = [
            ", ".join(short(value, digits) for value in row)
            for row in wide[what][["judge_next", "pooling", "random"]].to_numpy()
        ]
        cells[what] = shown
    return pd.DataFrame(cells)


def main():
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", nargs="+", choices=list(COLLECTIONS), default=list(NAMES))
    parser.add_argument("--csv", type=Path, help="the file of the rows of all samples, which is read if it exists")
    parser.add_argument("--write", action="store_true", help="replace the table of the page")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    frame = collected(arguments, rows)
    if arguments.write:
        write_table(DOCS / "how-to" / "machine-labels.md", "orders of judging", markdown(by_budget(frame)))
    print(markdown(table(frame)), markdown(by_budget(frame)), sep="\n\n")


if __name__ == "__main__":
    main()
