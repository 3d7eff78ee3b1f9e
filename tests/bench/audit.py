"""Error rates of verdicts on judges, coverage and errors of corrected scores: ``python tests/bench/audit.py DATA``.

DATA is the folder of the collections that ``tests/data`` reads; complete judgments are the truth. Options:
``--table verdicts`` (the default): humans judge some topics completely; the verdicts on the order and on the levels,
and the scores that complete topics correct. ``--table documents``: humans judge some random documents of each topic.
``--table shares``: humans judge a random share of all judged documents. ``--samples N``, ``--only COLLECTION``.

Judges: language models (two families, of TREC DL 2019), and simulated ones: errors of a grade in both directions
(honest, slight), overrating (generous), grades of other documents (half random), preference for the documents of some
groups (prefers a group), and honest errors with systems that rank by the labels (ranks by labels). Prints the tables of
``docs/how-to/audit.md``.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS, LABELLERS, markdown, short, trec_dl19, trec_web

import vbterrier
from vbterrier.evaluate.audit import audit_judge
from vbterrier.evaluate.judge_scores import (
    cross_fitted_estimates,
    evidence_runs,
    scores_of_topics,
    topic_table,
)
from vbterrier.evaluate.judge_topics import JudgedTopics
from vbterrier.evaluate.judge_verdict import MOST_REVERSED, NOT_TRUSTED, TRUSTED, levels_verdict, order_verdict
from vbterrier.frames.ranking import Run, ranked
from vbterrier.settings import Inference
from vbterrier.unjudged.evidence import collect_evidence
from vbterrier.unjudged.model import DEFAULT_POOL_CUTOFF
from vbterrier.unjudged.pool import Judgments, MachineLabels

FAMILY = {"TREC DL 2019": "idst", "TREC Web 2012": None}
OF_VERDICTS = ("TREC DL 2019", "CODEC", "Robust 2003", "eHealth 2018")
CUTOFF, MARGIN, MOST_SYSTEMS = 10, 0.02, 16
COMPLETE, DOCUMENTS = (10, 15, 25, 40), (5, 20, 60)


def simulated(collection, family, seed=0):
    """Labels of an honest, an overrating and a correlated judge."""
    rng = np.random.default_rng(seed)
    qrels, grade = collection.qrels, collection.qrels["label"].to_numpy()
    most, chance = grade.max(), rng.random(len(grade))
    down, up = np.maximum(grade - 1, 0), np.minimum(grade + 1, most)
    honest = np.where(chance < 0.15, down, np.where(chance < 0.3, up, grade))
    overrating = np.where(chance < 0.05, down, np.where(chance < 0.6, up, grade))
    members = [name for name, group in collection.groups.items() if group == family]
    cut = [collection.runs[name].sort_values("score").groupby("qid").tail(10)[["qid", "docno"]] for name in members]
    liked = qrels.merge(pd.concat(cut).drop_duplicates(), how="left", indicator=True)["_merge"].eq("both").to_numpy()
    correlated = np.where(liked & (rng.random(len(grade)) < 0.7), np.minimum(grade + 2, most), honest)
    labels = {"honest": honest, "overrating": overrating, "correlated": correlated}
    return {name: qrels.assign(label=label) for name, label in labels.items()}


def row(collection, truth, name, judge, share, seeds):
    """Coverage, RMSE and bias of the corrected scores and differences, and of the others."""
    parts, pairs = [], []
    for seed in seeds:
        human = vbterrier.unjudged.subsample_qrels(collection.qrels, 1 - share, seed)
        audit = audit_judge(collection.runs, human, labels={name: judge}, budget=1, inference=Inference(n_draws=500))
        parts.append(audit.systems.assign(truth=audit.systems["name"].map(truth)))
        gap = audit.pairs["name_a"].map(truth) - audit.pairs["name_b"].map(truth)
        pairs.append(audit.pairs.assign(truth=gap, value=audit.pairs["diff"]))
    cells = {"labels": share, "judge": name}
    for what, frames in (("", parts), (" of differences", pairs)):
        every = pd.concat([frame.assign(sample=sample) for sample, frame in enumerate(frames)])
        for estimate in ("judge alone", "humans alone", "corrected"):
            rows = every[every["estimate"] == estimate]
            error = rows["value"] - rows["truth"]
            cells[f"RMSE{what}, {estimate}"] = float(np.sqrt((error**2).mean()))
            if estimate != "judge alone":
                covered = rows["truth"].between(rows["low"], rows["high"]).groupby(rows["sample"]).mean()
                cells[f"covered{what}, {estimate}"] = float(covered.mean())
                # The systems of a sample share most of their error: samples are independent, systems are not.
                cells[f"standard error of covered{what}, {estimate}"] = float(covered.sem())
                cells[f"width{what}, {estimate}"] = float((rows["high"] - rows["low"]).mean())
    return cells


def judged_collection(name, data):
    """The collection on the topics with a relevant document, with grades of at least 0."""
    collection = COLLECTIONS[name](data)
    qrels = collection.qrels.assign(label=collection.qrels["label"].clip(lower=0))
    topics = set(qrels.loc[qrels["label"] > 0, "qid"])
    runs = {name: run[run["qid"].isin(topics)] for name, run in collection.runs.items()}
    return collection._replace(qrels=qrels[qrels["qid"].isin(topics)], runs=runs)


def planted(collection, name, data):
    """Labels of each judge, and the runs that it labels: those of the collection, or some that rank by its labels."""
    rng, qrels, runs = np.random.default_rng(0), collection.qrels, collection.runs
    grade, chance = qrels["label"].to_numpy(), rng.random(len(qrels))
    most = grade.max()
    down, up = np.maximum(grade - 1, 0), np.minimum(grade + 1, most)
    honest = np.where(chance < 0.15, down, np.where(chance < 0.3, up, grade))
    sizes = (
        pd.Series(collection.groups).value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    )
    liked_groups = set(sizes.index[: max(1, round(len(sizes) / 4))])
    cuts = [
        run.sort_values("score").groupby("qid").tail(CUTOFF)[["qid", "docno"]]
        for system, run in runs.items()
        if collection.groups[system] in liked_groups
    ]
    liked = qrels.merge(pd.concat(cuts).drop_duplicates(), how="left", indicator=True)["_merge"].eq("both").to_numpy()
    half_random = np.where(chance < 0.5, rng.permutation(grade), grade)
    labels = {
        "slight": np.where(chance < 0.05, down, np.where(chance < 0.1, up, grade)),
        "honest": honest,
        "generous": np.where(chance < 0.6, up, grade),
        "half random": half_random,
        "prefers a group": np.where(liked & (rng.random(len(grade)) < 0.7), np.minimum(grade + 2, most), honest),
    }
    judges = {judge: (qrels.assign(label=label), runs) for judge, label in labels.items()}
    by_labels = qrels.assign(label=half_random)
    reranked = dict(runs)
    for system in list(runs)[::5]:
        both = runs[system].merge(by_labels[["qid", "docno", "label"]], how="left").fillna({"label": 0})
        ranks = both.groupby("qid")["score"].rank()
        reranked[system] = both.assign(score=both["label"] * 1e6 + ranks)[["qid", "docno", "score"]]
    judges["ranks by labels"] = (by_labels, reranked)
    if name == "TREC DL 2019":
        for labeller in LABELLERS:
            path = data / "trec_dl19" / f"labels.{labeller}.txt.gz"
            judges[labeller] = (vbterrier.frames.read_labels(path), runs)
    return judges


def table_of(labels, runs, topics):
    """nDCG by some labels, shape (n_systems, n_topics)."""
    result, table = topic_table(labels, {name: Run(run) for name, run in runs.items()}, f"nDCG@{CUTOFF}")
    return pd.DataFrame(table.T, result).reindex(topics).fillna(0).to_numpy().T


def share_reversed(human, judge):
    """The share of the pairs that a judge separates by the margin whose true difference is reversed beyond it."""
    a, b = np.triu_indices(len(human), 1)
    gap, true = judge.mean(axis=1)[a] - judge.mean(axis=1)[b], human.mean(axis=1)[a] - human.mean(axis=1)[b]
    apart = np.abs(gap) >= MARGIN
    return float((gap[apart] * true[apart] < 0)[np.abs(true[apart]) > MARGIN].sum() / max(apart.sum(), 1))


def verdict_rows(name, data, n_samples):
    """A row per judge and number of complete topics: shares of verdicts, errors and coverage of corrected scores."""
    collection = judged_collection(name, data)
    topics = sorted(set(collection.qrels["qid"]))
    for judge, (labels, runs) in planted(collection, name, data).items():
        human, by_judge = table_of(collection.qrels, runs, topics), table_of(labels, runs, topics)
        for k in COMPLETE:
            rng, samples = np.random.default_rng(k), []
            for seed in range(n_samples):
                systems = np.sort(rng.permutation(len(runs))[:MOST_SYSTEMS])
                chosen = np.sort(rng.permutation(len(topics))[:k])
                samples.append(sample_of(human[systems], by_judge[systems], chosen, seed))
            yield {"collection": name, "judge": judge, "topics": k, **summarised(pd.DataFrame(samples))}


def sample_of(human, judge, chosen, seed):
    """Verdicts of one sample of complete topics, and whether they and the corrected scores are right."""
    names = [f"s{place:02}" for place in range(len(human))]
    topics = [f"{place:03}" for place in range(judge.shape[1])]
    corrections = (human - judge)[:, chosen]
    judged = JudgedTopics(topics, judge, [topics[place] for place in chosen], corrections)
    order, levels = order_verdict(judged, names, MARGIN, seed)[0], levels_verdict(judged, names, MARGIN)
    systems, pairs = scores_of_topics(names, judge, corrections, 0.9, None, "corrected")
    truth = pd.Series(human.mean(axis=1), names)
    error, gap = (
        systems["value"] - truth.to_numpy(),
        truth[pairs["name_a"]].to_numpy() - truth[pairs["name_b"]].to_numpy(),
    )
    alone = judge.mean(axis=1) - truth.to_numpy()
    return {
        "reversed": share_reversed(human, judge),
        "shifted": bool((np.abs(alone) > 2 * MARGIN).any()),
        "order": order["order"],
        "levels": levels["levels"],
        "squared": (error**2).mean(),
        "squared, alone": (alone**2).mean(),
        "covered": ((systems["low"] <= truth.to_numpy()) & (truth.to_numpy() <= systems["high"])).mean(),
        "squared differences": ((pairs["diff"] - gap) ** 2).mean(),
        "covered differences": ((pairs["low"] <= gap) & (gap <= pairs["high"])).mean(),
    }


def summarised(frame):
    """Shares of verdicts where they are right and where they are wrong, RMSE and coverage."""
    few, shifted = frame["reversed"] <= MOST_REVERSED, frame["shifted"]
    cells = {"reversed": frame["reversed"].mean(), "few reversed": few.mean()}
    for what, right in (("order", few), ("levels", ~shifted)):
        for verdict in (TRUSTED, NOT_TRUSTED):
            for word, rows in (
                ("right", right if verdict == TRUSTED else ~right),
                ("wrong", ~right if verdict == TRUSTED else right),
            ):
                cells[f"{what} {verdict}, {word}"] = (frame.loc[rows, what] == verdict).mean() if rows.any() else np.nan
    for what in ("squared", "squared, alone", "squared differences"):
        cells[what.replace("squared", "RMSE")] = float(np.sqrt(frame[what].mean()))
    return cells | {
        "covered": frame["covered"].mean(),
        "covered differences": frame["covered differences"].mean(),
        "samples": len(frame),
    }


def compact(frame):
    """A row per collection and judge: numbers by the numbers of complete topics, separated by slashes."""
    rows = []
    for (collection, judge), part in frame.groupby(["collection", "judge"], sort=False):

        def cells(*columns, part=part, digits=2):
            values = part[list(columns)].bfill(axis=1).iloc[:, 0]
            return "/".join("" if np.isnan(value) else short(value, digits) for value in values)

        levels = (f"levels {TRUSTED}, right", f"levels {NOT_TRUSTED}, right")
        shifted = part[levels[1]].notna().all()
        rows.append(
            {
                "collection": collection,
                "judge": judge,
                "reversed": short(part["reversed"].mean(), 2),
                "order TRUSTED": cells(f"order {TRUSTED}, right").strip("/"),
                "order NOT TRUSTED": cells(f"order {NOT_TRUSTED}, right").strip("/"),
                "levels": cells(levels[int(shifted)]) + (" NOT" if shifted else ""),
                "RMSE": cells("RMSE", digits=3),
                "alone": short(part["RMSE, alone"].mean(), 3),
                "covered": cells("covered"),
            }
        )
    return pd.DataFrame(rows)


def document_rows(name, data, n_samples):
    """A row per judge and number of random documents of each topic: errors and coverage of corrected scores."""
    collection = judged_collection(name, data)
    topics = sorted(set(collection.qrels["qid"]))
    judges = planted(collection, name, data)
    for judge in ("honest", "llama3-70b-criteria"):
        if judge not in judges:
            continue
        labels, runs = judges[judge]
        human, by_judge = table_of(collection.qrels, runs, topics), table_of(labels, runs, topics)
        for n in DOCUMENTS:
            samples = []
            for seed in range(n_samples):
                rng = np.random.default_rng(seed)
                systems = np.sort(rng.permutation(len(runs))[:8])
                some = {list(runs)[place]: runs[list(runs)[place]] for place in systems}
                judged = collection.qrels.sample(frac=1, random_state=seed).groupby("qid").head(n)
                estimate = corrected_by_documents(some, judged, labels, topics, seed)
                samples.append(errors_of(estimate, human[systems], by_judge[systems]))
            frame = pd.DataFrame(samples)
            squared = frame.filter(like="squared").mean()
            cells = {column.replace("squared", "RMSE"): float(np.sqrt(value)) for column, value in squared.items()}
            cells |= frame.drop(columns=squared.index).mean().to_dict()
            yield {"collection": name, "judge": judge, "documents": n, **cells, "samples": n_samples}


def corrected_by_documents(runs, judged, labels, topics, seed):
    """The cross-fitted estimates of an audit, without its other tables."""
    top = {name: ranked(run, max(DEFAULT_POOL_CUTOFF, CUTOFF)) for name, run in runs.items()}
    every, depth = evidence_runs(top, labels[labels["qid"].isin(topics)], judged, topics, CUTOFF)
    judgments = Judgments(judged)
    evidence = collect_evidence(every, judgments, CUTOFF, depth, MachineLabels({"judge": labels}))
    (estimate,) = cross_fitted_estimates(evidence, judgments.grades, list(runs), 300, seed, [topics])
    return estimate.tables("corrected", 0.9, None)


def errors_of(tables, human, judge):
    """Squared errors and coverage of corrected scores and differences of one sample."""
    systems, pairs = tables
    truth = human.mean(axis=1)
    a, b = np.triu_indices(len(truth), 1)
    gap, alone = truth[a] - truth[b], judge.mean(axis=1)
    return {
        "squared": ((systems["value"] - truth) ** 2).mean(),
        "bias": (systems["value"] - truth).mean(),
        "squared, alone": ((alone - truth) ** 2).mean(),
        "covered": ((systems["low"] <= truth) & (truth <= systems["high"])).mean(),
        "squared differences": ((pairs["diff"] - gap) ** 2).mean(),
        "squared differences, alone": ((alone[a] - alone[b] - gap) ** 2).mean(),
        "covered differences": ((pairs["low"] <= gap) & (gap <= pairs["high"])).mean(),
    }


def shares(frame):
    """Print the tables of random shares of all judged documents."""
    for collection, read in (("TREC DL 2019", trec_dl19), ("TREC Web 2012", trec_web)):
        if frame.only not in (None, collection):
            continue
        result = read(frame.data)
        truth = vbterrier.score(result.runs, result.qrels, ["nDCG@10"]).means()["nDCG@10"]
        judges = simulated(result, FAMILY[collection] or next(iter(result.groups)))
        if collection == "TREC DL 2019":
            folder = frame.data / "trec_dl19"
            judges |= {name: vbterrier.frames.read_labels(folder / f"labels.{name}.txt.gz") for name in LABELLERS}
        rows = []
        for share in frame.shares:
            for name, judge in judges.items():
                started = time.process_time()
                rows.append(row(result, truth, name, judge, share, range(frame.samples)))
                print(rows[-1], f"{time.process_time() - started:.0f} s", file=sys.stderr)
        table = pd.DataFrame(rows)
        means = [column for column in table if "differences" not in column]
        pairs = [column for column in table if "differences" in column]
        print(f"{collection}\n\n{markdown(table[means])}\n\n{markdown(table[['labels', 'judge', *pairs]])}\n")


def main():
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--table", choices=["verdicts", "documents", "shares"], default="verdicts")
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--only", choices=[*OF_VERDICTS, "TREC Web 2012"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.table == "shares":
        shares(arguments)
        return
    made = verdict_rows if arguments.table == "verdicts" else document_rows
    rows = []
    for name in OF_VERDICTS:
        if arguments.only in (None, name):
            for each in made(name, arguments.data, arguments.samples):
                rows.append(each)
                print(each, file=sys.stderr, flush=True)
    frame = pd.DataFrame(rows)
    print(markdown(frame))
    if arguments.table == "verdicts":
        print(f"\n{markdown(compact(frame))}")


if __name__ == "__main__":
    main()
