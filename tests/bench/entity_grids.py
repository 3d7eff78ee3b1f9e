"""Contamination of derived labels, and grids of entity rankers and of document rerankers, on AIDA.

python tests/bench/entity_grids.py DATA [--texts]

DATA is the folder of the collections. With ``--texts``, rankers by text embed names with MiniLM (extra ``embed``);
entities without a name keep their id. Vectors of entities are random projections of the documents that mention them, 64
dimensions, seed 0.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from closed_open import collection
from evidence import markdown

import vbterrier
from vbterrier.entities import supervision_report
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.evaluate import entity_grid, rerank_grid

LINKERS = ("gold", "wat", "genre")
WEIGHTS = [round(0.1 * tenth, 1) for tenth in range(1, 10)]
CUTOFFS = [5, 10, 20, 50]
ALL = ["uniform", "rank", "score", "idf"]
# 436 configurations and the pool.
DOCUMENTS = {
    "overlap": [
        {"cutoff": CUTOFFS, "weight": WEIGHTS, "entity_weight": ALL},
        {"link_weight": "entity", "entity_weight": "score", "weight": [0.2, 0.4, 0.6, 0.8]},
    ],
    "propagation": {"cutoff": CUTOFFS, "damping": WEIGHTS, "steps": [1, 2], "entity_weight": ["uniform", "idf"]},
    "embedding": {"cutoff": CUTOFFS, "weight": WEIGHTS, "entity_weight": ALL},
}


def vectors_of(links):
    """Vectors of entities from the documents of the pool that mention them."""
    documents = np.random.default_rng(0).normal(size=(len(links), 64))
    table = np.zeros((len(links.entities), 64))
    np.add.at(table, links.entity, documents[links.document])
    return dict(zip(links.entities.text.to_pylist(), table, strict=True))


def contamination(data):
    """Contamination of all, random and hard negatives."""
    rows = []
    for linker in LINKERS:
        links, _, _ = collection(data, linker)
        for negatives in ("all", "random", "hard"):
            report = supervision_report(links, negatives=negatives)
            row = report.contamination.iloc[0]
            partition = "negative" if negatives == "all" else f"negative ({negatives})"
            df = report.frequencies.set_index(["partition", "quantity"]).loc[(partition, "df")]
            n = int(report.topics["n_sampled"].sum())
            rows.append((linker, negatives, n, row["pooled"], row["mean"], row["std"], df["median"]))
    return pd.DataFrame(rows, columns=["links", "negatives", "pairs", "pooled", "mean", "std", "median df"])


def grids(data, embed):
    """Sizes, CPU seconds and frontiers of both grids."""
    table = pd.read_csv(Path(data) / "aida_ambiguous_labels" / "entities.tsv", sep="\t", keep_default_na=False)
    names = dict(zip(table["qid"], table["name"], strict=True))
    rows = []
    for linker in LINKERS:
        links, bm25, qrels = collection(data, linker)
        vectors = vectors_of(links)
        consensus = ConsensusEntities(links, cutoff=50)(bm25)
        queries = consensus.groupby("qid").head(1).rename(columns={"docno": "entity_id"})[["qid", "entity_id"]]
        started = time.process_time()
        topics = bm25[["qid", "query"]].drop_duplicates()
        found = entity_grid(
            links, topics, embeddings=vectors, query_entities=queries, embed=embed, texts=names, progress=False
        )
        named = np.mean([each in names for each in links.entities.text.to_pylist()])
        print(f"{linker}: {named:.3f} of {len(links.entities)} entities have a name", file=sys.stderr)
        seconds, frontier = time.process_time() - started, found.frontier()
        r, inside = frontier.correlation.iloc[0], frontier.targets["n_inside"].tolist()
        means = frontier.runs[["RelCov@20", "NonRelCov@20"]].agg(["min", "max"]).to_numpy().T
        started = time.process_time()
        documents = rerank_grid(
            links, bm25, {"consensus": consensus}, DOCUMENTS, ["AP"], qrels, embeddings=vectors, progress=False
        )
        spent, gains = time.process_time() - started, documents.set_index("family")
        rows.append(
            (
                linker,
                f"{len(frontier.runs)} in {seconds:.0f} s",
                *(f"{low:.3f} to {high:.3f}" for low, high in means),
                f"{r['value']:.3f} ({r['low']:.3f} to {r['high']:.3f})",
                f"{inside[0]}, {inside[1]}, {inside[2]}",
                f"{len(documents)} in {spent:.0f} s",
                f"{gains.loc['pool', 'value']:.3f}",
                f"{documents['value'].mean():.3f}, {documents['value'].max():.3f}",
            )
        )
    columns = "links", "entity runs", "RelCov@20", "NonRelCov@20", "r (Fisher z)", "in the target regions"
    return pd.DataFrame(rows, columns=[*columns, "document runs", "AP of BM25", "mean, best AP"])


if __name__ == "__main__":
    warnings.simplefilter("ignore", vbterrier.DegenerateWarning)
    data, *options = sys.argv[1:]
    print(markdown(contamination(data)), end="\n\n")
    print(markdown(grids(data, vbterrier.intents.MiniLM() if options else None)))
