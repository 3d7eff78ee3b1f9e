"""Neural rerankers on AIDA: ``python tests/bench/neural.py DATA [--links gold wat genre] [--models NAME ...]``.

DATA is the folder of the collections that ``tests/data`` reads. Prints the tables of ``docs/explanation/neural.md``:
MAP in the open world and on the documents that entities reach, with the entities that the queries mean ("gold") and
with consensus entities, CPU seconds of training in five folds, and documents per CPU second of scoring without and with
the encoding of texts. Last, the AUC of entity rankers on held-out binary labels of the first 20 consensus entities.

The text of the documents cannot be redistributed: a document is the sequence of the surface forms of its gold mentions.
"""

import argparse
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from aida import aida as read_aida
from scipy.stats import ttest_rel

import vbterrier
from vbterrier.entities import NeuralEntityRanker, NeuralReranker, OverlapReranker, entity_labels, link_pool
from vbterrier.entities.neural.models import MODELS
from vbterrier.errors import DegenerateWarning
from vbterrier.evaluate.settings import evaluate_settings


def aida(data):
    """AIDA-CoNLL with queries and texts in the run, the entity that each query mostly means, and names of entities.

    A document is relevant to a name if it uses it for the entity that the name mostly means.
    """
    found = read_aida(data)
    text = found.links["gold"].groupby("docno", sort=False)["surface"].agg(" ".join)
    run = found.runs["bm25"]
    query = found.topics.set_index("qid")["query"]
    meant = found.intents.loc[found.intents.groupby("qid", sort=False)["p"].idxmax(), ["qid", "entity_id"]]
    entities = pd.read_csv(found.folder / "entities.tsv", sep="\t", dtype=str, keep_default_na=False)
    return SimpleNamespace(
        run=run.assign(query=run["qid"].map(query), text=run["docno"].map(text).fillna("")),
        qrels=found.qrels,
        meant=meant.rename(columns={"entity_id": "docno"}).assign(score=1.0),
        tags=found.tags,
        names=dict(zip(entities["qid"], entities["name"], strict=True)),
    )


def trained(found, links, entities, model, encoded):
    """The run of a model in five folds, and its costs."""
    stage = NeuralReranker(links, entities, model=model, names=found.names)
    # Texts are encoded once for all models, as in one process that compares them.
    stage._encoded = encoded or stage._encoded
    first = not stage._encoded._known
    start = time.process_time()
    if first:
        for text in [*found.run["text"].unique(), *found.names.values(), *found.run["query"].unique()]:
            stage._encoded(text)
        print(f"{len(stage._encoded._known)} texts encoded in {time.process_time() - start:.0f} CPU s", flush=True)
    start = time.process_time()
    prepared = stage._prepared(found.run)
    features = time.process_time() - start
    stage._prepared = lambda inp: prepared if inp is found.run else NeuralReranker._prepared(stage, inp)
    start = time.process_time()
    run = stage.cross_validated(found.run, found.qrels)
    training = time.process_time() - start
    stage.epochs = 1
    stage.fit(found.run, found.qrels)
    start = time.process_time()
    stage.transform(found.run)
    scoring = features + time.process_time() - start
    costs = {"parameters": stage.n_parameters, "train s": training, "docs/s": len(found.run) / scoring}
    return (run, stage._encoded), costs


def table(found, linker, models, encoded):
    """MAP of all models in both settings, with gold query entities and with consensus entities."""
    links = link_pool(found.run, found.tags[linker])
    consensus = vbterrier.ConsensusEntities(links, cutoff=20)(found.run)
    columns = []
    for kind, entities in (("gold", found.meant), ("consensus", consensus)):
        systems = {"BM25": found.run, "overlap": OverlapReranker(links, entities)(found.run)}
        costs = {}
        for model in models:
            (systems[model], encoded), costs[model] = trained(found, links, entities, model, encoded)
        result = evaluate_settings(
            systems, found.qrels, ["AP"], links=links, entities=entities, pool=found.run, n_resamples=100
        )
        for setting, values in result.values.groupby("setting", sort=False):
            wide = values.pivot(index="qid", columns="name", values="value").dropna()[list(systems)]
            columns.append(wide.mean().rename(f"{kind}, {setting}"))
            if setting == "open-world":
                p = [ttest_rel(wide[name], wide["BM25"]).pvalue if name != "BM25" else np.nan for name in wide]
                columns.append(pd.Series(p, wide.columns, name=f"{kind}, p"))
        if kind == "gold":
            columns.insert(0, pd.DataFrame(costs).T)
    made = pd.concat(columns, axis=1).reindex(["BM25", "overlap", *models])
    return made, encoded


def entity_ranker(found, linker):
    """AUC on binary labels of held-out topics: consensus, and MonoBERT trained on the labels of other topics."""
    links = link_pool(found.run, found.tags[linker], found.qrels)
    run = vbterrier.ConsensusEntities(links, cutoff=20)(found.run)
    labels = entity_labels(links).dropna(subset="label").rename(columns={"entity_id": "docno"})
    rows = []
    for name, options in {"consensus": None, "head": {"layers": 0}, "two layers": {"layers": 2}}.items():
        start = time.process_time()
        scored = (
            run
            if options is None
            else NeuralEntityRanker(links, found.names, **options).cross_validated(run, found.qrels)
        )
        seconds = time.process_time() - start
        joined = scored.merge(labels[["qid", "docno", "label"]], on=["qid", "docno"])
        found_auc = []
        for _, group in joined.groupby("qid"):
            ours, theirs = (group.loc[group["label"] == label, "score"].to_numpy()[:, None] for label in (1, 0))
            if len(ours) and len(theirs):
                found_auc.append(((ours > theirs.T) + 0.5 * (ours == theirs.T)).mean())
        rows.append((name, len(joined), len(found_auc), float(np.mean(found_auc)), seconds))
    return pd.DataFrame(rows, columns=["ranker", "pairs", "topics", "AUC", "CPU s"])


def main():
    """Print the tables."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("data", type=Path)
    asked.add_argument("--links", nargs="+", default=["gold", "wat", "genre"])
    asked.add_argument("--models", nargs="*", default=list(MODELS))
    asked.add_argument("--rankers", action="store_true", help="entity rankers, too")
    given = asked.parse_args()
    warnings.simplefilter("ignore", DegenerateWarning)
    found = aida(given.data)
    encoded = None
    for linker in given.links:
        print(f"\n{linker} links")
        if given.models:
            made, encoded = table(found, linker, given.models, encoded)
            print(made.round(4).to_string(), flush=True)
        if given.rankers:
            print(entity_ranker(found, linker).round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
