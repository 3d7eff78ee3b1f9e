"""The numbers of the public calls on what the package ships: ``python tests/golden/make_numbers.py [--write]``.

Prints a digest of every bit, which no hash seed, optimisation or order may change; ``--write`` keeps the numbers in
``numbers.json``, which every supported environment must repeat within a billionth.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import vbterrier
from vbterrier.demo import demo_folder
from vbterrier.evaluate import IntentOptions
from vbterrier.settings import Data, Inference
from vbterrier.stats.perturbations import Dirichlet, IntentBootstrap, TagConfusion, TemperatureJitter
from vbterrier.unjudged.distribution import KINDS, SIDES

sys.path.insert(0, str(Path(__file__).parents[2] / "notebooks"))
from planted import planted_collection

FILE = Path(__file__).parent / "numbers.json"
SYSTEMS = ("lexical", "words", "dense")
OF_JUDGMENTS = [
    *(f"BNDCG(stat='{stat}')@10" for stat in ("mean", "std", "mode", "median", "q5", "hi")),
    *(f"{name}(prior='{prior}')@10" for name in ("BAP", "BRBP", "BP", "BERR", "BQ") for prior in ("pool", "pool+run")),
    *(f"BNDCG(prior='{prior}')@5" for prior in ("pool", "run", "pool+run")),
    "BNDCG(method='mc',n_draws=200,seed=3)@10",
    "BNDCG(prior_strength=8)@10",
    "BNDCG(stat='mode',compat='ecir23')@10",
    *(f"ENDCG(stat='{stat}')@10" for stat in ("mean", "std", "median", "q5", "hi")),
    *(f"{name}@10" for name in ("EAP", "ERBP", "EP", "EERR", "EQ")),
    *(f"NDCGBound(side='{side}',kind='{kind}',max_grade=2)@10" for side in SIDES for kind in KINDS),
    "Unjudged@10",
    "nDCG@10",
    "nDCG(judged_only=True)@10",
    "AP",
]
OF_INTENTS = [
    "ES@5",
    "ES(gain='dcg')@5",
    "VB@5",
    "VB(variance='intent',gain='dcg')@5",
    "TopIntent@1",
    "WeightedAlphaNDCG@5",
    "WeightedERRIA@5",
]
OF_LINKS = ["RelCov@5", "NonRelCov@5", "DiscRatio@5", "OER@5", "SignalRate@5", "BaitRate@5", "OracleCov@5"]
METHODS = ("percentile", "bca", "studentised", "normal")
TESTS = ("randomisation", "bootstrap", "t", "wilcoxon")
PERTURB = (Dirichlet(10.0), TemperatureJitter(), IntentBootstrap(), TagConfusion(0.1, by="mention"))


def _demo():
    folder = demo_folder()
    return (
        {name: vbterrier.read_run(folder / f"{name}.run") for name in SYSTEMS},
        vbterrier.read_qrels(folder / "qrels.txt"),
        vbterrier.read_intents(folder / "intents.tsv"),
        vbterrier.read_tags(folder / "tags.tsv"),
    )


def _of_judgments(runs, qrels):
    scores = vbterrier.score(
        runs, qrels, OF_JUDGMENTS, data=Data(on_topics="all"), inference=Inference(n_resamples=300)
    )
    yield "score", scores.intervals
    yield "values", scores.values[scores.values["name"] == "dense"]
    values = scores.values[scores.values["measure"].isin(["BNDCG@10", "AP"])]
    for method in METHODS:
        yield f"intervals {method}", vbterrier.stats.intervals(values, method=method, n_resamples=300, seed=1)
    for test in TESTS:
        comparison = vbterrier.compare(values, inference=Inference(test=test, n_resamples=500, margin=0.05, seed=2))
        yield f"pairs {test}", comparison.pairs
        yield f"letters {test}", comparison.systems
    yield "best first", vbterrier.rank_systems(runs, qrels, "BNDCG@10", inference=Inference(n_draws=300)).systems
    yield "best first by estimates", vbterrier.rank_systems(runs, qrels, inference=Inference(n_draws=300)).systems
    yield "judge next", vbterrier.judge_next(runs, qrels, budget=10).documents.drop(columns="reason")
    yield "shares", vbterrier.evaluate.variance_shares(runs, qrels, inference=Inference(n_draws=200)).shares
    yield "sizes", vbterrier.design.score_by_size(values, order="random", n_subsets=50)
    yield "power", vbterrier.design.discriminative_power(values, sizes=[6, 12], n_subsets=10, n_resamples=100)
    yield "thinned", vbterrier.unjudged.subsample_qrels(qrels, 0.4, seed=5)
    yield (
        "detectable",
        vbterrier.design.detectable_difference([0.1, -0.1, 0, 0.2, -0.2, 0.1, 0.3], [50, 200], n_simulations=500),
    )


def _of_intents(runs, intents, tags):
    yield (
        "intents",
        vbterrier.score(
            runs, intents=intents, tags=tags, measures=OF_INTENTS, inference=Inference(n_resamples=300)
        ).intervals,
    )
    topics = vbterrier.read_topics(demo_folder() / "topics.tsv")
    evaluation = vbterrier.evaluate_intents(
        runs,
        topics,
        intents=intents,
        tagger=tags,
        inference=Inference(n_resamples=300),
        options=IntentOptions(cutoff=[5], n_replicas=50, perturb=PERTURB),
    )
    yield "replicas", evaluation.intervals
    yield "oracle", vbterrier.intents.oracle_success(intents, tags, 5)


def _of_links():
    made = planted_collection(n_topics=8, n_documents=60, n_relevant=15, linker_recall=0.8, seed=3)
    yield "planted", made.tags
    pool = vbterrier.entities.link_pool(made.pool, made.tags, made.qrels)
    runs = {name: run.assign(qid=run["qid"].astype(str)) for name, run in made.runs.items()}
    yield "links", vbterrier.score(runs, pool.to_frame(), [f"{m[:-2]}(undefined='zero')@5" for m in OF_LINKS]).intervals
    report = vbterrier.coverage_report(runs, pool, cutoff=5, inference=Inference(n_resamples=200))
    yield "coverage", report.entities
    sample = vbterrier.design.sample_queries(
        made.tags.rename(columns={"entity_id": "mention"})[["docno", "mention"]], 20, method="random-mention", seed=4
    )
    yield "sample", sample.queries


def tables():
    """Every table by name."""
    runs, qrels, intents, tags = _demo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vbterrier.errors.DegenerateWarning)
        return dict([*_of_judgments(runs, qrels), *_of_intents(runs, intents, tags), *_of_links()])


def digest(result):
    """One word for every bit of every table."""
    bits = hashlib.sha256()
    for name, table in result.items():
        bits.update(repr((name, list(table.columns), len(table))).encode())
        for column in table:
            cells = table[column].tolist()
            bits.update(repr([cell.hex() if isinstance(cell, float) else str(cell) for cell in cells]).encode())
    return bits.hexdigest()


def numbers(result):
    """{table: {column: cells}}; of many rows some, and the sum of each column of numbers."""
    kept = {}
    for name, table in result.items():
        some = table.iloc[:: max(1, len(table) // 40)]
        kept[name] = {
            str(column): [None if pd.isna(cell) else cell for cell in some[column].tolist()] for column in table
        }
        of_numbers = table.select_dtypes([np.number])
        kept[name] |= {f"sum of {column}": [float(of_numbers[column].sum())] for column in of_numbers}
    return kept


if __name__ == "__main__":
    made = tables()
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(numbers(made), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print(digest(made))
