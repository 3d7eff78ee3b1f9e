"""Conditional and open-world scores with label-derived and with open candidates, random and trained rankers.

python tests/bench/closed_open.py DATA [LINKER...]

DATA is the folder of the collections. Documents are reranked by the overlap with the first 20 entities (weight .9);
closed documents mention one of them, and the others follow in BM25's order.
"""

import sys
import warnings
from pathlib import Path

import pandas as pd
from aida import aida
from evidence import markdown

import vbterrier
from vbterrier.entities import closed_entities, link_pool
from vbterrier.entities.rankers.consensus import ConsensusEntities, RandomEntities
from vbterrier.entities.rankers.selector import EntitySelector
from vbterrier.entities.rerank.overlap import OverlapReranker
from vbterrier.evaluate import ReachOptions, evaluate_closed_open

MEASURES = ["AP", "nDCG@20", "R@100"]


def collection(data, linker):
    """The linked pool, topics, pool and judgments of AIDA: a document of the dominant intent is relevant."""
    result = aida(Path(data))
    bm25, qrels = result.runs["bm25"].query("rank < 100").merge(result.topics), result.qrels.assign(label=1)
    tags = vbterrier.linking.read_spans(result.folder / f"links.{linker}.jsonl.gz", nil="drop")
    return link_pool(bm25, tags, qrels, cutoff=100), bm25, qrels


def entity_runs(links, bm25, qrels):
    """Ranker -> (closed candidates, open candidates)."""
    every = ConsensusEntities(links, min_documents=1)(bm25)
    closed, balanced = (closed_entities(links, every, balanced=balanced) for balanced in (False, True))
    trained = EntitySelector(links)
    candidates = {"closed": closed, "closed, balanced": balanced, "open": every}
    learned = {name: trained.cross_validated(run, qrels) for name, run in candidates.items()}
    random = {name: RandomEntities(seed=1)(run) for name, run in candidates.items()}
    for kind in ("closed", "closed, balanced"):
        yield f"random ({kind})", {"closed": random[kind], "open": random["open"]}
        yield f"trained ({kind})", {"closed": learned[kind], "open": learned["open"]}
    positives = closed[closed["label"] == 1]
    yield "exclusive positives", {"closed": positives, "open": every}


def table(data, linker, unmatched):
    """One row per ranker and cell: means and recall."""
    links, bm25, qrels = collection(data, linker)
    rows = []
    for name, runs in entity_runs(links, bm25, qrels):
        tops = {side: run[run["rank"] < 20] for side, run in runs.items()}
        result = evaluate_closed_open(
            lambda run: OverlapReranker(links, run, weight=0.9),
            qrels,
            MEASURES,
            links=links,
            pool=bm25,
            entities=tops,
            options=ReachOptions(unmatched=unmatched),
        )
        means = result.means()
        cover = result.coverage.groupby("entity_side")["RelCov"].mean()
        for (side, documents), row in means.iterrows():
            rows.append((linker, name, side, documents, *row[MEASURES], cover[side]))
    columns = ["links", "entity ranker", "entities", "documents", *MEASURES, "RelCov@20"]
    return pd.DataFrame(rows, columns=columns)


if __name__ == "__main__":
    warnings.simplefilter("ignore", vbterrier.errors.DegenerateWarning)
    data, *linkers = sys.argv[1:]
    for unmatched in ("append", "drop"):
        print(f"\nUnmatched documents: {unmatched}\n")
        made = pd.concat([table(data, linker, unmatched) for linker in linkers or ["gold", "wat", "genre"]])
        print(markdown(made.round(3)))
