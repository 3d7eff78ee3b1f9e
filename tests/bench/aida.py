"""AIDA-CoNLL, as tests on real data and benchmarks read it."""

import gzip
import json
from types import SimpleNamespace

import pandas as pd

import vbterrier


def json_lines(path):
    """The records of a JSON lines file, plain or gzip."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def aida(data):
    """Ambiguous names with the shares of their gold mentions, tags of four sources, two runs.

    ``qrels`` has the documents that use a name for the entity that it mostly means; of equals the first.
    """
    folder = data / "aida_ambiguous_labels"
    topics = json_lines(folder / "topics.jsonl")
    names = {"gold": "links.gold", "refined": "candidates.refined", "genre": "links.genre", "wat": "links.wat"}
    links = {
        tagger: pd.DataFrame(
            [(doc["doc"], *link) for doc in json_lines(folder / f"{name}.jsonl.gz") for link in doc["links"]]
        ).rename(columns={0: "docno", 3: "entity_id", 4: "surface"})
        for tagger, name in names.items()
    }
    intents = pd.DataFrame([{"qid": topic["qid"], **one} for topic in topics for one in topic["intents"]])
    dominant = intents.loc[intents.groupby("qid")["p"].idxmax(), ["qid", "intent"]]
    names_of = ["qid", "intent", "docno", "label"]
    qrels = pd.read_csv(folder / "qrels.intents.txt", sep=" ", names=names_of, dtype=str, keep_default_na=False)
    intents = intents.drop(columns="intent").rename(columns={"entity": "entity_id"})
    # The file has six decimals, which do not sum to 1.
    intents["prob"] = intents["mentions"] / intents.groupby("qid")["mentions"].transform("sum")
    return SimpleNamespace(
        folder=folder,
        topics=pd.DataFrame(topics)[["qid", "query"]],
        intents=intents[["qid", "entity_id", "prob", "mentions", "p"]],
        links=links,
        qrels=qrels.merge(dominant).astype({"label": int})[["qid", "docno", "label"]],
        # Other links say that there is no entity.
        tags={
            tagger: frame[frame["entity_id"].str.fullmatch(r"Q\d+")][["docno", "entity_id"]].drop_duplicates()
            for tagger, frame in links.items()
        },
        runs={name: vbterrier.read_run(folder / "runs" / f"{name}.run.gz") for name in ("bm25", "dph")},
    )
