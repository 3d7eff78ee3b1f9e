"""Intervals of differences inspected while documents are judged: ``python tests/bench/peeking.py DATA``.

Two runs of a collection start with half of the judgments, and documents are judged as ``judge_next`` lists them.
Printed are the shares of pairs whose interval excludes the difference that the two runs have when all of their first
ten documents are judged, at any look. DATA is the folder of the collections that ``tests/data`` reads.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS

import vbterrier
from vbterrier.settings import Data, Inference

N_PAIRS, N_LOOKS, BUDGET, LEVEL = 60, 8, 40, 0.9


def looks(runs, qrels, seed):
    """Return True if any interval excludes the final difference: with ordinary intervals, and with numbered looks."""
    pair = tuple(runs)
    first = pd.concat([run.sort_values("score", ascending=False).groupby("qid").head(10) for run in runs.values()])
    labels = qrels.sample(frac=0.5, random_state=seed)
    judged = qrels.merge(first[["qid", "docno"]].drop_duplicates(), on=["qid", "docno"])
    final = pd.concat([labels, judged]).drop_duplicates(["qid", "docno"])
    means = vbterrier.score(
        runs, final, ["nDCG@10"], data=Data(on_topics="all"), inference=Inference(interval="normal")
    ).means()["nDCG@10"]
    truth = means[pair[0]] - means[pair[1]]
    missed = [False, False]
    for look in range(1, N_LOOKS + 1):
        plans = [
            vbterrier.judge_next(
                runs,
                labels,
                budget=BUDGET,
                difference=pair,
                look=numbered,
                data=Data(on_topics="all"),
                inference=Inference(level=LEVEL),
            )
            for numbered in (None, look)
        ]
        missed = [before or not plan.low <= truth <= plan.high for before, plan in zip(missed, plans, strict=True)]
        listed = plans[0].documents[["qid", "docno"]].merge(qrels, on=["qid", "docno"], how="left")
        if not len(listed):
            break
        labels = pd.concat([labels, listed.assign(label=listed["label"].fillna(0).astype(int))])
    return missed[0], missed[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("TREC DL 2019", "TREC Web 2012"):
            collection = COLLECTIONS[name](data)
            draws, names = np.random.default_rng(1), sorted(collection.runs)
            pairs = [draws.choice(len(names), 2, replace=False) for _ in range(N_PAIRS)]
            missed = [
                looks(
                    {names[a]: collection.runs[names[a]], names[b]: collection.runs[names[b]]}, collection.qrels, seed
                )
                for seed, (a, b) in enumerate(pairs)
            ]
            ordinary, numbered = np.mean(missed, axis=0)
            print(f"{name}: any of {N_LOOKS} ordinary intervals {ordinary:.2f}, numbered looks {numbered:.2f}")
