"""Audits, LARA and PRECISE at equal budgets: ``python tests/bench/label_budgets.py DATA [--seeds N] [--budgets .1]``.

DATA is the folder of the collections that ``tests/data`` reads. Each method spends the same number of human judgments
of TREC DL 2019, with labels of a language model for all documents, on the mean nDCG@10 of 37 systems over the 43
topics; scores under all judgments are the truth. Prints the table of ``docs/how-to/audit.md``.

LARA: Takehi et al., LLM-assisted relevance assessments, SIGIR 2025. PRECISE: Divekar and Majumder, AAAI 2026. Both are
written from the definitions of the papers, for graded labels without probabilities.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import LABELLERS, markdown, trec_dl19
from scipy import special
from sklearn.linear_model import LogisticRegression

import vbterrier
from vbterrier.evaluate.audit import audit_judge
from vbterrier.settings import Data, Inference

BATCH, GROUPS, LEVEL = 32, 3, 0.9


def lara(qrels, labels, budget, seed):
    """Qrels of LARA: human grades where the calibrated model is least certain, and its grades elsewhere.

    Topics are in three groups with equal budgets, which take turns. In a turn, humans judge the 32 documents with the
    smallest difference between the two largest probabilities; ties, which labels without probabilities have, are in
    random order. The model is a logistic regression of each threshold of the grade on the label, fitted again after
    each turn; before the first, the probability of the label is 1.
    """
    both = qrels.merge(labels, on=["qid", "docno"], suffixes=("", "_machine"))
    grade, machine = (both[column].to_numpy().astype(int) for column in ("label", "label_machine"))
    levels = int(max(grade.max(), machine.max())) + 1
    features = np.eye(levels)[machine]
    rng = np.random.default_rng(seed)
    topics = rng.permutation(both["qid"].unique())
    group = both["qid"].map({topic: place % GROUPS for place, topic in enumerate(topics)}).to_numpy()
    probability, is_judged = features.copy(), np.zeros(len(both), dtype=bool)
    turn = 0
    while is_judged.sum() < budget:
        open_ = rng.permutation(np.flatnonzero(~is_judged & (group == turn % GROUPS)))
        turn += 1
        ordered = np.sort(probability[open_], axis=1)
        certain = ordered[:, -1] - ordered[:, -2]
        is_judged[open_[np.argsort(certain, kind="stable")][: min(BATCH, budget - is_judged.sum())]] = True
        probability = _calibrated(features, features[is_judged], grade[is_judged])
    return both.assign(label=np.where(is_judged, grade, probability.argmax(axis=1)))[["qid", "docno", "label"]]


def _calibrated(features, labelled, grade):
    """Probabilities of grades by logistic regressions of ``grade >= t``, made monotone in t."""
    above = np.ones((len(features), features.shape[1] + 1))
    above[:, -1] = 0
    for least in range(1, features.shape[1]):
        is_above = grade >= least
        if is_above.min() == is_above.max():
            above[:, least] = is_above[0]
        else:
            above[:, least] = LogisticRegression(C=10.0).fit(labelled, is_above).predict_proba(features)[:, 1]
    return -np.diff(np.minimum.accumulate(above, axis=1), axis=1)


def precise(human, machine, judged):
    """Prediction-powered means of PRECISE, with the half width of their intervals.

    ``human``, ``machine``: scores of topics by human judgments and by machine labels, shape (T, S). ``judged``: the
    topics of which humans judged all documents. The estimate is ``λ mean(f) + mean_judged(y - λ f)`` with the tuned
    ``λ = cov(y, f)/var(f)``, from 0 to 1; its variance is that of a sample without replacement from these topics.
    """
    y, f = human[judged], machine[judged]
    n, n_topics = len(y), len(human)
    covariance = ((y - y.mean(axis=0)) * (f - f.mean(axis=0))).sum(axis=0)
    variance = ((f - f.mean(axis=0)) ** 2).sum(axis=0)
    weight = np.clip(np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 0), 0, 1)
    rest = y - weight * f
    error = np.sqrt((1 - n / n_topics) * rest.var(axis=0, ddof=1) / n)
    return weight * machine.mean(axis=0) + rest.mean(axis=0), error * special.ndtri((1 + LEVEL) / 2)


def _by_topic(runs, qrels):
    values = vbterrier.score(
        runs, qrels, ["nDCG@10"], data=Data(on_topics="all"), inference=Inference(n_resamples=2)
    ).values
    return values.pivot(index="qid", columns="name", values="value")[list(runs)]


def _judged_topics(qrels, budget, seed):
    """Topics in random order while their documents are within the budget, at least two."""
    sizes = qrels.groupby("qid").size().sample(frac=1, random_state=seed)
    return sizes.index[: max(int((sizes.cumsum() <= budget).sum()), 2)]


def estimates(collection, labels, share, seed):
    """Estimates and half widths of means and of differences, by method; NaN for methods without intervals."""
    runs, qrels = collection.runs, collection.qrels
    budget = round(share * len(qrels))
    a, b = np.triu_indices(len(runs), 1)
    human = vbterrier.unjudged.subsample_qrels(qrels, 1 - share, seed)
    audit = audit_judge(
        runs, human, labels={"judge": labels}, budget=1, inference=Inference(n_draws=500, level=LEVEL, seed=seed)
    )
    made = {}
    for name in ("humans alone", "corrected"):
        parts = [frame[frame["estimate"] == name] for frame in (audit.systems, audit.pairs)]
        if parts[0]["value"].isna().all():
            # Too few judgments correct no scores.
            continue
        made[name] = [
            (part[column].to_numpy(), ((part["high"] - part["low"]) / 2).to_numpy())
            for part, column in zip(parts, ("value", "diff"), strict=True)
        ]
    means = _by_topic(runs, lara(qrels, labels, budget, seed)).mean().to_numpy()
    made["LARA"] = [(means, np.full(len(means), np.nan)), (means[a] - means[b], np.full(len(a), np.nan))]
    truth, machine = (_by_topic(runs, frame) for frame in (qrels, labels))
    judged = truth.index.isin(_judged_topics(qrels, budget, seed))
    tables = truth.to_numpy(), machine.loc[truth.index].to_numpy()
    made["PRECISE"] = [precise(*tables, judged), precise(*(each[:, a] - each[:, b] for each in tables), judged)]
    exact = truth.mean().to_numpy()
    return made, (exact, exact[a] - exact[b])


def rows(collection, labels, judge, share, seeds):
    """RMSE and coverage of each method over systems, pairs and seeds."""
    errors = {}
    for seed in seeds:
        made, truths = estimates(collection, labels, share, seed)
        for method, parts in made.items():
            for what, (value, half), truth in zip(("means", "differences"), parts, truths, strict=True):
                errors.setdefault((method, what), []).append((value - truth, half))
    table = {}
    for (method, what), parts in errors.items():
        error, half = (np.concatenate(part) for part in zip(*parts, strict=True))
        row = table.setdefault(method, {"judge": judge, "budget": share, "method": method})
        row[f"RMSE, {what}"] = float(np.sqrt((error**2).mean()))
        row[f"covered, {what}"] = float("nan") if np.isnan(half).any() else float((np.abs(error) <= half).mean())
    return list(table.values())


def by_budget(table):
    """One row per judge and method, one column per budget: RMSE (coverage) of means, and of differences."""

    def cell(row, what):
        covered = row[f"covered, {what}"]
        shown = f"{row[f'RMSE, {what}']:.3f}" + ("" if np.isnan(covered) else f" ({covered:.2f})")
        return shown.replace("0.", ".")

    cells = [f"{cell(row, 'means')}, {cell(row, 'differences')}" for row in table.to_dict("records")]
    alone = table["method"] == "humans alone"
    table = table.assign(cell=cells, judge=table["judge"].mask(alone, "none")).drop_duplicates(
        ["judge", "method", "budget"]
    )
    wide = table.pivot(index=["judge", "method"], columns="budget", values="cell").reset_index()
    order = table[["judge", "method"]].drop_duplicates()
    return order.merge(wide, how="left").rename(columns=lambda name: f"{name:.0%}" if isinstance(name, float) else name)


def main():
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.3])
    parser.add_argument("--judges", nargs="+", default=list(LABELLERS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    result, table = trec_dl19(arguments.data), []
    for judge in arguments.judges:
        labels = vbterrier.frames.read_labels(arguments.data / "trec_dl19" / f"labels.{judge}.txt.gz")
        for share in arguments.budgets:
            started = time.process_time()
            table += rows(result, labels, judge, share, range(arguments.seeds))
            print(pd.DataFrame(table[-4:]).to_string(), f"{time.process_time() - started:.0f} s", file=sys.stderr)
    print(markdown(by_budget(pd.DataFrame(table))))


if __name__ == "__main__":
    main()
