"""Coverage and errors of audits of judges: ``python tests/bench/audit.py DATA [--seeds N] [--shares .1 .3]``.

DATA is the folder of the collections that ``tests/data`` reads. A random share of the judgments of TREC DL 2019 (and of
TREC Web 2012 for simulated judges) are the human labels, and scores under all judgments are the truth. Judges are four
language models, and simulated ones: honest (errors of a grade in both directions), overrating, and correlated with the
systems of a family. Prints the tables of ``docs/how-to/audit.md``.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from evidence import LABELLERS, markdown, trec_dl19, trec_web

import vbterrier
from vbterrier.evaluate.audit import audit_judge
from vbterrier.settings import Inference

FAMILY = {"TREC DL 2019": "idst", "TREC Web 2012": None}


def simulated(found, family, seed=0):
    """Labels of an honest, an overrating and a correlated judge."""
    rng = np.random.default_rng(seed)
    qrels, grade = found.qrels, found.qrels["label"].to_numpy()
    most, chance = grade.max(), rng.random(len(grade))
    down, up = np.maximum(grade - 1, 0), np.minimum(grade + 1, most)
    honest = np.where(chance < 0.15, down, np.where(chance < 0.3, up, grade))
    overrating = np.where(chance < 0.05, down, np.where(chance < 0.6, up, grade))
    own = [name for name, group in found.groups.items() if group == family]
    cut = [found.runs[name].sort_values("score").groupby("qid").tail(10)[["qid", "docno"]] for name in own]
    liked = qrels.merge(pd.concat(cut).drop_duplicates(), how="left", indicator=True)["_merge"].eq("both").to_numpy()
    correlated = np.where(liked & (rng.random(len(grade)) < 0.7), np.minimum(grade + 2, most), honest)
    labels = {"honest": honest, "overrating": overrating, "correlated": correlated}
    return {name: qrels.assign(label=label) for name, label in labels.items()}


def row(found, truth, name, judge, share, seeds):
    """Coverage, RMSE and bias of the corrected scores and differences, and of the others."""
    parts, pairs = [], []
    for seed in seeds:
        human = vbterrier.unjudged.subsample_qrels(found.qrels, 1 - share, seed)
        audit = audit_judge(found.runs, human, {name: judge}, budget=1, inference=Inference(n_draws=500))
        parts.append(audit.systems.assign(truth=audit.systems["name"].map(truth)))
        gap = audit.pairs["name_a"].map(truth) - audit.pairs["name_b"].map(truth)
        pairs.append(audit.pairs.assign(truth=gap, value=audit.pairs["diff"]))
    cells = {"labels": share, "judge": name}
    for what, frames in (("", parts), (" of differences", pairs)):
        every = pd.concat([frame.assign(sample=sample) for sample, frame in enumerate(frames)])
        for estimate in ("judge alone", "humans alone", "corrected"):
            own = every[every["estimate"] == estimate]
            error = own["value"] - own["truth"]
            cells[f"RMSE{what}, {estimate}"] = float(np.sqrt((error**2).mean()))
            if estimate != "judge alone":
                covered = own["truth"].between(own["low"], own["high"]).groupby(own["sample"]).mean()
                cells[f"covered{what}, {estimate}"] = float(covered.mean())
                # The systems of a sample share most of their error: samples are independent, systems are not.
                cells[f"standard error of covered{what}, {estimate}"] = float(covered.sem())
                cells[f"width{what}, {estimate}"] = float((own["high"] - own["low"]).mean())
    return cells


def main():
    """Print all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--only", choices=list(FAMILY))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for collection, read in (("TREC DL 2019", trec_dl19), ("TREC Web 2012", trec_web)):
        if given.only not in (None, collection):
            continue
        found = read(given.data)
        truth = vbterrier.score(found.runs, found.qrels, ["nDCG@10"]).means()["nDCG@10"]
        judges = simulated(found, FAMILY[collection] or next(iter(found.groups)))
        if collection == "TREC DL 2019":
            folder = given.data / "trec_dl19"
            judges |= {name: vbterrier.frames.read_labels(folder / f"labels.{name}.txt.gz") for name in LABELLERS}
        rows = []
        for share in given.shares:
            for name, judge in judges.items():
                started = time.process_time()
                rows.append(row(found, truth, name, judge, share, range(given.seeds)))
                print(rows[-1], f"{time.process_time() - started:.0f} s", file=sys.stderr)
        table = pd.DataFrame(rows)
        means = [column for column in table if "differences" not in column]
        pairs = [column for column in table if "differences" in column]
        print(f"{collection}\n\n{markdown(table[means])}\n\n{markdown(table[['labels', 'judge', *pairs]])}\n")


if __name__ == "__main__":
    main()
