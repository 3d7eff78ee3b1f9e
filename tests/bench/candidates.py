"""Candidates of queries that name entities with counts: ``python tests/bench/candidates.py DATA``.

DATA is the folder of the collections that ``tests/data`` reads. Prints, by collection and class of spelling, the mean
log loss of the intended entity (probabilities are at least 1e-4, also without candidates), the share of queries whose
intended entity is first, and the share without candidates. Intended entities are drawn in proportion to counts:
invented ones (log-normal) of legislators, supporting documents of RAMDocs, mentions of AIDA.
"""

import argparse
import tempfile
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from aida import json_lines

import vbterrier
from vbterrier.linking import QueryLinker, build_kb

LEAST, N_QUERIES = 1e-4, 300


def legislators(data, rng):
    """Entities with aliases and counts, and by class of spelling the query of each."""
    records = []
    for one in json_lines(data / "kb_us_congress" / "entities.jsonl.gz"):
        count = int(np.ceil(rng.lognormal(2, 2)))
        records.append({"id": one["id"], "label": one["label"], "aliases": one["aliases"], "count": count})

    def name(one):
        return next((alias for alias in one["aliases"] if " " in alias), one["label"])

    def plain(text):
        return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()

    def swapped(text):
        at = len(text) - 3
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]

    classes = {
        "full name": name,
        "last name": lambda one: name(one).split()[-1],
        "first name": lambda one: name(one).split()[0],
        "full name, lower case": lambda one: plain(name(one)).lower(),
        "last name, two letters swapped": lambda one: swapped(name(one).split()[-1]),
    }
    return records, classes


def questions(data, _):
    """Titles of pages with numbers of supporting documents; queries are the titles without qualifiers."""
    records = {}
    for topic in json_lines(data / "ramdocs" / "topics.jsonl"):
        for one in topic["intents"]:
            result = records.setdefault(one["entity"], {"id": one["entity"], "label": one["entity"], "count": 0})
            result["count"] += one["n_supporting_docs"]
    base = {"title without qualifier": lambda one: one["label"].partition(" (")[0]}
    base["last word"] = lambda one: one["label"].partition(" (")[0].split()[-1]
    return [one for one in records.values() if one["count"]], base


def news(data, _):
    """Entities of ambiguous names with numbers of mentions; queries are the names."""
    folder = data / "aida_ambiguous_labels"
    names = pd.read_csv(folder / "entities.tsv", sep="\t", dtype=str, keep_default_na=False).set_index("qid")["name"]
    records, mentions = {}, {}
    for topic in json_lines(folder / "topics.jsonl"):
        for one in topic["intents"]:
            label = names.get(one["entity"], one["name"])
            result = records.setdefault(one["entity"], {"id": one["entity"], "label": label, "aliases": [], "count": 0})
            result["aliases"].append(topic["query"])
            result["count"] += one["mentions"]
            mentions[one["entity"]] = topic["query"]
    return list(records.values()), {"surface form": lambda one: mentions[one["id"]]}


COLLECTIONS = {"legislators": legislators, "RAMDocs": questions, "AIDA": news}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    warnings.simplefilter("ignore")
    rows = []
    for collection, read in COLLECTIONS.items():
        rng = np.random.default_rng(3)
        records, classes = read(data, rng)
        count = np.array([one["count"] for one in records], dtype=float)
        intended = [records[place] for place in rng.choice(len(records), N_QUERIES, p=count / count.sum())]
        with (
            tempfile.TemporaryDirectory() as folder,
            build_kb(Path(folder) / "made.kb", records, id_space="own", progress=False) as base,
        ):
            linker = QueryLinker(base)
            for spelling, text in classes.items():
                texts = [text(one) for one in intended]
                topics = pd.DataFrame({"qid": [f"q{i}" for i in range(len(texts))], "query": texts})
                frame = vbterrier.CandidateIntents(linker)(topics)
                frame = frame[frame["entity_id"] != "NIL"]
                answer = dict(zip(topics["qid"], (one["id"] for one in intended), strict=True))
                right = frame[frame["entity_id"] == frame["qid"].map(answer)].set_index("qid")["prob"]
                first = frame.drop_duplicates("qid").set_index("qid")["entity_id"]
                prob = right.reindex(topics["qid"]).fillna(0.0).clip(lower=LEAST)
                rows.append(
                    {
                        "collection": collection,
                        "spelling": spelling,
                        "log loss": -np.log(prob).mean(),
                        "first": (first.reindex(topics["qid"]) == topics["qid"].map(answer).to_numpy()).mean(),
                        "without": 1 - topics["qid"].isin(frame["qid"]).mean(),
                    }
                )
    print(pd.DataFrame(rows).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
