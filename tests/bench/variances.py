"""Standard deviations of differences between systems on real collections: ``python tests/bench/variances.py DATA``.

They are the table of ``vbterrier.design.planning`` for plans without a pilot. DATA is the folder of the collections
that ``tests/data`` reads.
"""

import argparse
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import COLLECTIONS

import vbterrier
from vbterrier.settings import Data, Inference

MEASURES = ["nDCG@10", "nDCG@20", "P@10", "RR@10", "ERR@10", "Success@5", "nDCG", "AP"]


def runs_of(name, data):
    """All runs as they were submitted."""
    if name == "TREC-COVID":
        return COLLECTIONS[name](data).runs
    folder = data / ("trec_dl19" if name == "TREC DL 2019" else "trec_web_diversity") / "runs"
    paths = sorted(folder.glob("run.*" if name == "TREC DL 2019" else "*2012*"))
    return {path.name: vbterrier.read_run(path) for path in paths}


def table(data):
    """Collection, measure, number of systems and topics, and quantiles of the standard deviation over pairs."""
    rows = []
    for name, read in COLLECTIONS.items():
        # Runs of the deep learning track are stored to rank 10.
        measures = [
            measure for measure in MEASURES if name != "TREC DL 2019" or ("@" in measure and "@20" not in measure)
        ]
        result = vbterrier.score(
            runs_of(name, data),
            read(data).qrels,
            measures,
            data=Data(on_topics="common"),
            inference=Inference(interval="normal"),
        )
        for measure, group in result.values.groupby("measure", sort=False):
            scores = group.pivot(index="qid", columns="name", values="value").to_numpy()
            pairs = combinations(range(scores.shape[1]), 2)
            std = [(scores[:, a] - scores[:, b]).std(ddof=1) for a, b in pairs]
            rows.append((name, measure, scores.shape[1], len(scores), *np.quantile(std, [0.1, 0.5, 0.9])))
    return pd.DataFrame(rows, columns=["collection", "measure", "n_systems", "n_qids", "q10", "median", "q90"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(table(parser.parse_args().data).round(3).to_string())
