"""Labels of machines beside few human judgments: ``python tests/bench/few_judgments.py DATA [--seeds N]``.

DATA is the folder of the collections that ``tests/data`` reads. Humans judge 1 to 50 random documents of each topic, or
5 % of all, machines label all documents, and ``ENDCG@10`` estimates the nDCG@10 of complete judgments, with the labels
as evidence and without. Without any human judgment there is no model, and the labels are the judgments of nDCG@10.
Three judges are simulated, and one is a language model where the collection has its labels.
Prints the tables of ``docs/how-to/machine-labels.md`` and ``docs/explanation/evidence-labels.md``.
"""

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS, DOCS, markdown, short, write_table
from scipy import special, stats

import vbterrier
from vbterrier.settings import Inference

CUTOFF, LEVEL, N_DRAWS = 10, 0.9, 300
MOST_RUNS = 8
BUDGETS = (0, 1, 2, 5, 10, 20, 50, "5%")
LANGUAGE_MODEL = "llama3-70b-criteria"
JUDGES = ("accurate", "generous", "half random", LANGUAGE_MODEL)


def judges(name, data, qrels, seed):
    """Labels of all judged documents by simulated judges, and by a language model if the collection has them.

    Accurate: a grade more or less in 20 % of the documents. Generous: a grade more in 60 %. Half random: in half of the
    documents, the grade of another random one.
    """
    rng = np.random.default_rng(seed)
    grade = qrels["label"].to_numpy().clip(0)
    chance = rng.random(len(grade))
    step = np.where(chance < 0.1, -1, np.where(chance < 0.2, 1, 0))
    labels = {
        "accurate": grade + step,
        "generous": grade + (rng.random(len(grade)) < 0.6),
        "half random": np.where(rng.random(len(grade)) < 0.5, rng.permutation(grade), grade),
    }
    made = {judge: qrels.assign(label=label.clip(0, grade.max())) for judge, label in labels.items()}
    if name == "TREC DL 2019":
        made[LANGUAGE_MODEL] = vbterrier.frames.read_labels(data / "trec_dl19" / f"labels.{LANGUAGE_MODEL}.txt.gz")
    return made


def sample(qrels, budget, seed):
    """Random judgments of each topic, more with a larger budget; ``"5%"`` a random share of all."""
    if budget == "5%":
        return vbterrier.unjudged.subsample_qrels(qrels, 0.95, seed)
    return qrels.sample(frac=1, random_state=seed).groupby("qid").head(budget).sort_index()


def some_runs(collection):
    """At most eight runs, of as many groups as possible."""
    order = pd.Series(collection.groups).reset_index().groupby(0).cumcount().sort_values(kind="stable").index
    names = [list(collection.groups)[place] for place in order[:MOST_RUNS]]
    return {name: collection.runs[name] for name in sorted(names)}


def estimated(runs, judged, labels, seed):
    """Estimates of topics, and ends of the intervals of topics and means, by run."""
    model = vbterrier.unjudged.fit(runs, judged, cutoff=CUTOFF, labels=labels)
    reach = special.ndtri((1 + LEVEL) / 2)
    for name, run in runs.items():
        scores = model.run_distribution(run, CUTOFF, n_draws=N_DRAWS, seed=seed)
        mean = scores.draws.mean(axis=1)
        half = reach * mean.std()
        yield name, pd.Series(scores.mean, scores.topics), *scores.interval(LEVEL), mean.mean(), half


def measured(runs, truth, judged, labels, seed):
    """Errors and coverage of topics and means, and tau of means, of one sample."""
    topics, means = [], []
    for name, value, low, high, mean, half in estimated(runs, judged, labels, seed):
        true = truth[name].reindex(value.index).to_numpy()
        topics.append(np.stack([value.to_numpy() - true, (low <= true + 1e-9) & (true <= high + 1e-9)]))
        means.append((mean - true.mean(), half, mean, true.mean()))
    error, covered = np.concatenate(topics, axis=1)
    of_mean, half, mean, true = np.array(means).T
    return {
        "n": len(error),
        "squared, topics": (error**2).mean(),
        "covered, topics": covered.mean(),
        "squared, means": (of_mean**2).mean(),
        "bias": of_mean.mean(),
        "covered, means": (np.abs(of_mean) <= half).mean(),
        "width": 2 * half.mean(),
        "tau": stats.kendalltau(mean, true).statistic,
    }


def alone(runs, truth, labels):
    """Errors of topics and means, and tau of means, of nDCG@10 with labels as judgments."""
    labels = labels[labels["qid"].isin(truth.index)]
    result = by_topic(runs, labels.assign(label=labels["label"].round().astype(int)))
    error = (result.reindex(index=truth.index, columns=truth.columns).fillna(0) - truth).to_numpy()
    return {
        "n": error.size,
        "squared, topics": (error**2).mean(),
        "squared, means": (error.mean(axis=0) ** 2).mean(),
        "bias": error.mean(),
        "tau": stats.kendalltau(result.mean(), truth.mean()).statistic,
    }


def by_topic(runs, qrels):
    """The nDCG@10 of each topic, a column for each run."""
    values = vbterrier.score(runs, qrels, [f"nDCG@{CUTOFF}"], inference=Inference(n_resamples=2)).values
    return values.pivot(index="qid", columns="name", values="value")


def shared_topics(collection, runs):
    """Runs and judgments of the topics that all runs and relevant documents have."""
    topics = set(collection.qrels.loc[collection.qrels["label"] > 0, "qid"]).intersection(
        *(run["qid"] for run in runs.values())
    )
    return {name: run[run["qid"].isin(topics)] for name, run in runs.items()}, collection.qrels[
        collection.qrels["qid"].isin(topics)
    ]


def rows(name, data, seeds, budgets=BUDGETS):
    """One row per budget, judge and sample."""
    collection = COLLECTIONS[name](data)
    runs, qrels = shared_topics(collection, some_runs(collection))
    truth = by_topic(runs, qrels)
    for seed in seeds:
        labels = judges(name, data, qrels, seed)
        for budget in budgets:
            if budget == 0:
                for judge, labelled in labels.items():
                    about = {"collection": name, "budget": "0", "judge": judge, "seed": seed, "judged": 0.0}
                    yield about | alone(runs, truth, labelled)
                continue
            judged = sample(qrels, budget, seed)
            each = len(judged) / truth.shape[0]
            for judge in ("none", *labels):
                row = measured(runs, truth, judged, {judge: labels[judge]} if judge != "none" else None, seed)
                yield {"collection": name, "budget": str(budget), "judge": judge, "seed": seed, "judged": each, **row}


def summary(frame):
    """One row per collection, budget and judge: RMSE, bias, coverage, width and tau over samples."""
    keys = ["collection", "budget", "judge"]
    table = frame.drop(columns="seed").groupby(keys, sort=False).mean().reset_index()
    for what in ("topics", "means"):
        table[f"RMSE, {what}"] = np.sqrt(table.pop(f"squared, {what}"))
        none = table[table["judge"] == "none"].set_index(keys[:2])[f"RMSE, {what}"]
        index = pd.MultiIndex.from_frame(table[keys[:2]])
        table[f"ratio, {what}"] = table[f"RMSE, {what}"] / none.reindex(index).to_numpy()
    return table


def every_cell(table):
    """A row per collection and budget, and a cell per judge: RMSE and coverage of topics; of means; bias."""
    rows = []
    for (name, budget), part in table[table["budget"] != "0"].groupby(["collection", "budget"], sort=False):
        row = {"collection": name, "budget": budget, "judgments": short(part["judged"].iloc[0], 1)}
        row["n"] = f"{part['n'].iloc[0]:.0f}"
        for judge, one in part.set_index("judge").iterrows():
            of_topics, of_means = (
                f"{short(one[f'RMSE, {what}'], 3)} {short(one[f'covered, {what}'])}" for what in ("topics", "means")
            )
            row[judge] = f"{of_topics}; {of_means}; {short(one['bias'], 3)}"
        rows.append(row)
    return pd.DataFrame(rows).fillna("")


def ratios(table):
    """A row per budget: RMSE without labels, and by judge its ratio with labels, mean and largest, topics and means."""
    rows = []
    for budget, part in table[table["budget"] != "0"].groupby("budget", sort=False):
        none = part[part["judge"] == "none"]
        row = {"judgments a topic": budget.replace("%", " %")}
        for what in ("topics", "means"):
            row[f"{what}, without"] = short(np.sqrt((none[f"RMSE, {what}"] ** 2).mean()), 3)
        for judge in JUDGES:
            chosen = part[part["judge"] == judge]
            cells = [chosen[f"ratio, {what}"] for what in ("topics", "means")]
            row[judge] = "; ".join(
                short(np.exp(np.log(cell).mean())) + (f" ({short(cell.max())})" if len(cell) > 1 else "")
                for cell in cells
            )
        rows.append(row)
    return pd.DataFrame(rows)


def without_humans(table):
    """A row per judge: RMSE of topics and of means with labels as judgments, over collections and the largest."""
    rows = []
    for judge, part in table[table["budget"] == "0"].groupby("judge", sort=False):
        row = {"labels alone": judge, "collections": str(len(part))}
        for what in ("topics", "means"):
            error = part[f"RMSE, {what}"]
            row[f"RMSE, {what}"] = f"{short(np.sqrt((error**2).mean()), 3)} ({short(error.max(), 3)})"
        rows.append(row | {"bias": f"{short(part['bias'].min(), 3)} to {short(part['bias'].max(), 3)}"})
    return pd.DataFrame(rows)


def least_budget(table, tolerance=1.0):
    """The smallest number of judgments a topic from which on no judge makes an error larger, by collection."""
    worst = table[(table["judge"] != "none") & (table["budget"] != "5%")]
    worst = worst.assign(worse=worst[["ratio, topics", "ratio, means"]].max(axis=1) > tolerance)
    return worst[worst["worse"]].astype({"budget": int}).groupby("collection")["budget"].max()


def collected(parts, rows):
    """The rows of all samples, made by ``rows(name, data, seeds)`` or read from a file."""
    if parts.csv and parts.csv.exists():
        return pd.read_csv(parts.csv, dtype={"budget": str})
    results = []
    for name in parts.only:
        started = time.process_time()
        results += rows(name, parts.data, range(parts.seeds))
        print(f"{name}: {time.process_time() - started:.0f} s", file=sys.stderr)
    frame = pd.DataFrame(results)
    if parts.csv:
        frame.to_csv(parts.csv, index=False)
    return frame


def main():
    """Print all tables as Markdown, or write them to the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(COLLECTIONS), default=list(COLLECTIONS))
    parser.add_argument("--budgets", nargs="+", choices=list(map(str, BUDGETS)), default=list(map(str, BUDGETS)))
    parser.add_argument("--csv", type=Path, help="the file of the rows of all samples, which is read if it exists")
    parser.add_argument("--write", action="store_true", help="replace the tables of the pages")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    budgets = [int(budget) if budget.isdigit() else budget for budget in arguments.budgets]
    frame = collected(arguments, partial(rows, budgets=budgets))
    cells = summary(frame)
    tables = []
    if 0 in budgets:
        tables.append(("how-to/machine-labels.md", "labels alone", without_humans(cells)))
    if budgets != [0]:
        print(least_budget(cells).to_string(), file=sys.stderr)
        tables.append(("how-to/machine-labels.md", "labels beside few judgments", ratios(cells)))
        tables.append(("explanation/evidence-labels.md", "labels beside few judgments", every_cell(cells)))
    for page, name, table in tables:
        if arguments.write:
            write_table(DOCS / page, name, markdown(table))
        print(markdown(table), end="\n\n")


if __name__ == "__main__":
    main()
