"""Contamination of derived labels, and grids of entity rankers and of document rerankers, on AIDA.

python tests/bench/entity_grids.py DATA [--texts] [LINKER...]

DATA is the folder of the collections. With ``--texts``, rankers by text embed names with MiniLM (extra ``embed``);
entities without a name keep their id. Vectors of entities are random projections of the documents that mention them, 64
dimensions, seed 0. The labels of conceptual relevance (CER) are not those of language models: three rules compare the
query with the name of the entity (words, trigrams of letters, cosine of MiniLM), and the majority decides.
"""

import re
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
from aida import aida
from closed_open import collection
from evidence import markdown

import vbterrier
from vbterrier.entities import NeuralEntityRanker, closed_entities, judge_entities, supervision_report
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.rankers.selector import EntitySelector
from vbterrier.evaluate import GridOptions, entity_grid, rerank_grid
from vbterrier.settings import Execution

LINKERS = ("gold", "wat", "genre")


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


def judges(embed):
    """Rules in place of language models: grades 0 to 2 from the query and the name of an entity in the prompt."""

    def rule(similarity, related, core):
        def grade(prompt):
            query, name = (
                re.search(rf"^{field}: (.*)$", prompt, re.MULTILINE)[1].lower() for field in ("Query", "Entity")
            )
            return str(int(similarity(query, name) >= related) + int(similarity(query, name) >= core))

        return grade

    def words(query, name):
        return len(set(query.split()) & set(name.split())) / len(set(query.split()))

    def trigrams(query, name):
        ours, theirs = ({text[at : at + 3] for at in range(len(text) - 2)} for text in (f" {query} ", f" {name} "))
        return len(ours & theirs) / len(ours | theirs)

    @cache
    def vector(text):
        result = np.asarray(embed([text])[0])
        return result / np.linalg.norm(result)

    def cosine(query, name):
        return float(vector(query) @ vector(name))

    return {"words": rule(words, 0.5, 1), "trigrams": rule(trigrams, 0.1, 0.3), "cosine": rule(cosine, 0.4, 0.6)}


def supervised(links, names, topics, embed):
    """Six trained entity rankers, cross-validated in the call of the grid; without ``embed``, that of LightGBM."""
    first = ConsensusEntities(links, cutoff=100)
    lgbm = {"LGBM": first >> EntitySelector(links, names=names)}
    if embed is None:
        return lgbm
    labels = judge_entities(first(topics), judges(embed), names=names)
    closed = pt.Transformer.from_df(closed_entities(links, first(topics)))
    bert, cer = (NeuralEntityRanker(links, names, kind, layers=0) for kind in ("binary", labels))
    return {
        "BERT (binary, closed candidates)": closed >> bert,
        "BERT (binary)": first >> bert,
        "BERT (CER)": first >> cer,
        "BERT (CER) + IDF": first >> cer >> vbterrier.entities.LocalIDF(links),
        **lgbm,
        "LGBM (CER)": first >> EntitySelector(links, names=names, supervision=labels),
    }


def grids(data, linkers, embed):
    """Sizes, CPU seconds and frontiers of both grids."""
    table = pd.read_csv(Path(data) / "aida_ambiguous_labels" / "entities.tsv", sep="\t", keep_default_na=False)
    names = dict(zip(table["qid"], table["name"], strict=True))
    # The text cannot be redistributed: a document is the sequence of the surface forms of its gold mentions.
    text = aida(Path(data)).links["gold"].groupby("docno", sort=False)["surface"].agg(" ".join)
    rows = []
    for linker in linkers:
        links, bm25, qrels = collection(data, linker)
        bm25 = bm25.assign(text=bm25["docno"].map(text).fillna(""))
        vectors = vectors_of(links)
        consensus = ConsensusEntities(links, cutoff=50)(bm25)
        queries = consensus.groupby("qid").head(1).rename(columns={"docno": "entity_id"})[["qid", "entity_id"]]
        started = time.process_time()
        topics = bm25[["qid", "query"]].drop_duplicates()
        resources = GridOptions(embeddings=vectors, query_entities=queries, embed=embed, texts=names, qrels=qrels)
        runs = supervised(links, names, topics, embed)
        grid = entity_grid(links, topics, runs=runs, options=resources, execution=Execution(progress=False))
        named = np.mean([each in names for each in links.entities.text.to_pylist()])
        print(f"{linker}: {named:.3f} of {len(links.entities)} entities have a name", file=sys.stderr)
        seconds, frontier = time.process_time() - started, grid.frontier()
        r, inside = frontier.correlation.iloc[0], frontier.targets["n_inside"].tolist()
        means = frontier.runs[["RelCov@20", "NonRelCov@20"]].agg(["min", "max"]).to_numpy().T
        started = time.process_time()
        documents = rerank_grid(
            bm25,
            qrels,
            links=links,
            entity_runs={"consensus": consensus},
            execution=Execution(progress=False),
            options=GridOptions(embeddings=vectors, texts=names),
        )
        spent, gains = time.process_time() - started, documents.runs.set_index("family")
        resources = grid.runs[grid.runs["family"] == "given"].pivot(
            index="configuration", columns="measure", values="value"
        )
        print(resources.round(3).to_string(), file=sys.stderr, flush=True)
        rows.append(
            (
                linker,
                f"{grid.runs['configuration'].nunique()} ({grid.n_distinct}) in {seconds:.0f} s",
                *(f"{low:.3f} to {high:.3f}" for low, high in means),
                f"{r['value']:.3f} ({r['low']:.3f} to {r['high']:.3f})",
                f"{inside[0]}, {inside[1]}, {inside[2]}",
                f"{len(documents.runs)} ({documents.n_distinct}) in {spent:.0f} s",
                f"{gains.loc['pool', 'value']:.3f}",
                f"{documents.runs['value'].mean():.3f}, {documents.runs['value'].max():.3f}",
            )
        )
    columns = "links", "entity runs", "RelCov@20", "NonRelCov@20", "r (Fisher z)", "in the target regions"
    return pd.DataFrame(rows, columns=[*columns, "document runs", "AP of BM25", "mean, best AP"])


if __name__ == "__main__":
    warnings.simplefilter("ignore", vbterrier.errors.DegenerateWarning)
    data, *options = sys.argv[1:]
    linkers = [each for each in LINKERS if each in options] or LINKERS
    print(markdown(contamination(data)), end="\n\n", flush=True)
    print(markdown(grids(data, linkers, vbterrier.intents.MiniLM() if "--texts" in options else None)))
