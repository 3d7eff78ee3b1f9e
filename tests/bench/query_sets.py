"""F1 and discriminative power by the number of queries: ``python tests/bench/query_sets.py DATA [SVG]``.

DATA is the folder of the collections that ``tests/data`` reads. Prints the tables of the page on query sets, and draws
its figure: figures 1 and 4 of Mertens et al. (FIRE 2014) on the gold mentions of AIDA-CoNLL, in their order. The
27 runs of the paper are not public: systems are three linkers, and 24 that take part of their answers from another one.
"""

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from aida import aida

import vbterrier
from vbterrier.design import discriminative_power, score_by_size
from vbterrier.linking import linking_report
from vbterrier.settings import Inference
from vbterrier.stats.agreement import rank_correlations

LINKERS = {"genre": "GENRE", "refined": "ReFinED", "wat": "WAT"}
SHARES = (0.1, 0.25, 0.5, 0.75)
MEASURE = "LinkingF1"
SHOWN = (50, 100, 250, 500, 1000, 2500, 5000)
SPAN = ["docno", 1, 2]


def queries(data):
    """The gold mentions in the order of the file, and the entities that each linker has for their spans."""
    links = aida(data).links
    gold = links["gold"].drop_duplicates(SPAN).reset_index(drop=True)
    gold["qid"] = gold["docno"] + ":" + gold[1].astype(str) + "-" + gold[2].astype(str)
    entity = {"gold": gold["entity_id"]}
    for name, linker in LINKERS.items():
        mentions = links[name].drop_duplicates(SPAN)
        entity[linker] = gold[SPAN].merge(mentions[[*SPAN, "entity_id"]], on=SPAN, how="left")["entity_id"]
    return (
        gold["qid"],
        gold["docno"],
        {name: ids.where(ids.str.fullmatch(r"Q\d+"), "NIL") for name, ids in entity.items()},
    )


def systems(docno, entity):
    """The linkers, and each with the answers of another for the first documents of a random order."""
    order = pd.Series(np.random.default_rng(0).permutation(docno.unique()))
    made = {name: entity[name] for name in LINKERS.values()}
    for one, other in permutations(LINKERS.values(), 2):
        for share in SHARES:
            taken = set(order.head(round(share * len(order))))
            made[f"{one}, {share:.0%} {other}"] = entity[one].where(~docno.isin(taken), entity[other])
    return made


def main(data, figure=None):
    """Print the tables, and draw the figure."""
    qid, docno, entity = queries(Path(data))
    gold = pd.DataFrame({"qid": qid, "entity_id": entity["gold"]})
    answers = {name: gold.assign(entity_id=ids) for name, ids in systems(docno, entity).items()}
    report = linking_report(answers, gold, inference=Inference(n_resamples=2))
    values = report.answers.assign(measure=MEASURE)
    sizes = sorted({*np.unique(np.geomspace(10, len(qid), 40).astype(int)).tolist(), *SHOWN, len(qid)})
    scores = score_by_size(values, sizes=sizes)
    power = [
        discriminative_power(values, sizes=sizes, order=order, n_subsets=20, seed=0) for order in ("given", "random")
    ]
    table = scores.pivot(index="n_qids", columns="name", values="mean")
    whole = table.iloc[-1]
    counts = [each.set_index("n_qids")["n_not_worse"] for each in power]
    rows = [
        (
            n,
            (table.loc[n] - whole).abs().mean(),
            (table.loc[n] - whole).abs().max(),
            rank_correlations(whole.to_numpy(), table.loc[n].to_numpy()).tau,
            *(each[n] for each in counts),
        )
        for n in (*SHOWN, len(qid))
    ]
    columns = ["queries", "mean deviation", "largest", "tau", "not worse", "not worse, random"]
    print(f"{len(qid)} queries, {(entity['gold'] == 'NIL').mean():.3f} NIL, {len(answers)} systems")
    print(pd.DataFrame(rows, columns=columns).round(3).to_string(index=False))
    print(whole.sort_values(ascending=False).round(4).to_string())
    if figure:
        draw(figure, scores, pd.concat(power))


def draw(path, scores, power):
    """Draw both figures beside each other."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vbterrier", "savefig.facecolor": "white"}):
        sheet, axes = plt.subplots(1, 2, figsize=(9, 3.6))
        vbterrier.plots.score_by_size(scores, highlight=list(LINKERS.values()), ax=axes[0])
        vbterrier.plots.not_worse_by_size(power, ax=axes[1])
        sheet.tight_layout()
        sheet.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
