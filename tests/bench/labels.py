"""ES and VB under gold tags from a few annotated documents: ``python tests/bench/labels.py DATA [--draws N]``.

DATA is the folder of the collections that ``tests/data`` reads. Prints, by collection, share of annotated documents and
design: RMSE of scores, Kendall's tau of ES@3, the share of tags right, the coverage of 90 % intervals of ES and VB, and
the wrong orders among those that 95 % intervals state. The table leaves each collection out of the priors that it is
evaluated with; ``--constants`` prints those of all collections, which ``vbterrier.evaluate.ambiguous_documents`` has.

Systems are rankings of the documents of a query: that of the source, by the names of candidates, diversified by
similarity or machine tags, of one meaning, random, and three made from gold tags.
"""

import argparse
import csv
import gzip
import io
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from aida import aida, json_lines
from scipy.stats import kendalltau
from scipy.stats import t as student
from sklearn.feature_extraction.text import TfidfVectorizer

import vbterrier
from vbterrier.evaluate.ambiguous_documents import CONSTANTS, N_DRAWS, AnnotationConstants, ambiguous_documents
from vbterrier.evaluate.document_annotation import intent_estimates
from vbterrier.kernels.annotation_model import CoefficientPriors

# Coverage of the other collections from which the factor of standard errors follows.
TARGET = 0.91
# Coefficients of features that a collection has not, such as similarities without texts.
START = np.array([1.5, 0.5, 3.0, 3.0, 0.5, 0.3, 0.0, 0.5, -0.3, 0.0])
SHARES, CUTOFFS, DEPTH = (0.05, 0.1, 0.2, 0.3), (3, 5), 10
LEVEL = 0.9
# Topics below which a sample of whole topics, and documents below which any sample, has no interval.
FEWEST_TOPICS, FEWEST_DOCUMENTS = 8, 60


@dataclass
class Collection:
    """Frames of a collection: as the calls take them, and gold tags of all documents (qid, docno, entity_id)."""

    runs: dict
    topics: pd.DataFrame
    intents: pd.DataFrame
    gold: pd.DataFrame
    documents: pd.DataFrame | None = None
    tags: pd.DataFrame | None = None

    def prepared(self):
        """Documents of the first ranks as arrays, with the share of each candidate in their gold tags."""
        result = ambiguous_documents(
            self.runs, self.topics, intents=self.intents, documents=self.documents, tags=self.tags, cutoffs=CUTOFFS
        )
        pairs = {(qid, docno): part for (qid, docno), part in self.gold.groupby(["qid", "docno"])["entity_id"]}
        share = np.zeros(len(result.table.document))
        for document, docno in enumerate(result.docno):
            topic = result.table.topic[document]
            here = share[result.table.starts[document] : result.table.starts[document + 1]]
            entities = pairs.get((result.qids[topic], docno), ())
            places = [result.entities[topic].index(one) for one in entities if one in result.entities[topic]] or [-1]
            here[places] = 1 / len(places)
        return result, share


def systems(order, text, tags, gold, prob, query, seed):
    """Twelve rankings by name of the documents of a query."""
    rng = np.random.default_rng([7, seed])
    n = len(order)
    similar = np.zeros((n, n))
    to_query = np.linspace(1, 0, n)
    if any(text):
        vectors = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b").fit_transform([*text, query])
        similar = np.asarray((vectors[:-1] @ vectors[:-1].T).todense())
        to_query = to_query + np.asarray((vectors[:-1] @ vectors[-1].T).todense()).ravel()
    entities = list(prob)

    def relevance_minus(weight):
        left, made = list(range(n)), []
        while left:
            best = max(left, key=lambda d: to_query[d] - weight * max((similar[d, e] for e in made), default=0))
            left.remove(best)
            made.append(best)
        return made

    def in_turns(about, weights):
        """Documents in turns of the candidates, most probable first."""
        served, left, made = dict.fromkeys(weights, 0), list(range(n)), []
        while left:
            best = max(left, key=lambda d: (max((weights[e] / (1 + served[e]) for e in about[d]), default=0), -d))
            left.remove(best)
            made.append(best)
            for one in about[best]:
                served[one] += 1
        return made

    top = max(entities, key=prob.get)
    oracle = in_turns(gold, prob)
    noisy = sorted(range(n), key=lambda d: oracle.index(d) + rng.normal(0, 3))
    made = {
        "source": list(range(n)),
        "noise": sorted(range(n), key=lambda d: d + rng.normal(0, 4)),
        "random": list(rng.permutation(n)),
        "reversed": list(range(n))[: n // 2][::-1] + list(range(n))[n // 2 :],
        "mmr": relevance_minus(1.0),
        "mmr strong": relevance_minus(3.0),
        "like the first": sorted(range(n), key=lambda d: (-similar[0, d], d)),
        "tags in turns": in_turns(tags, prob),
        "top tag": sorted(range(n), key=lambda d: (top not in tags[d], d)),
        "gold in turns": oracle,
        "gold top": sorted(range(n), key=lambda d: (top not in gold[d], d)),
        "gold noisy": noisy,
    }
    return {name: [order[d] for d in ranking[:DEPTH]] for name, ranking in made.items()}


def collection(topics, pools, text, intents, gold, tags):
    """A collection with the systems above; topics with fewer than four documents or one candidate are left out."""
    rows, about = {}, {"gold": {}, "tags": {}}
    for kind, frame in (("gold", gold), ("tags", tags)):
        if frame is not None:
            keys = ["qid", "docno"] if "qid" in frame.columns else ["docno"]
            about[kind] = frame.groupby(keys)["entity_id"].agg(set).to_dict()
    by_query = dict(iter(intents.groupby("qid", sort=False)))
    kept = []
    for number, (qid, query) in enumerate(topics[["qid", "query"]].itertuples(index=False)):
        pool = pools.get(qid, [])
        if len(pool) < 4 or len(by_query.get(qid, ())) < 2:
            continue
        prob = dict(zip(by_query[qid]["entity_id"], by_query[qid]["prob"], strict=True))
        sets = []
        for kind in ("tags", "gold"):
            is_by_query = not about[kind] or isinstance(next(iter(about[kind])), tuple)
            results = [about[kind].get((qid, d) if is_by_query else d, set()) & set(prob) for d in pool]
            sets.append(results)
        ranked = systems(pool, [text.get(d, "") for d in pool], *sets, prob, query, number)
        for name, ranking in ranked.items():
            rows.setdefault(name, []).extend((qid, docno, -rank) for rank, docno in enumerate(ranking))
        kept.append(qid)
    runs = {name: pd.DataFrame(run, columns=["qid", "docno", "score"]) for name, run in rows.items()}
    if "qid" not in gold.columns:
        pairs = pd.DataFrame([(q, d) for q in kept for d in pools[q]], columns=["qid", "docno"])
        gold = pairs.merge(gold, on="docno")
    documents = pd.DataFrame(sorted(text.items()), columns=["docno", "text"]) if text else None
    only = [frame[frame["qid"].isin(kept)].reset_index(drop=True) for frame in (topics, intents, gold)]
    return Collection(runs, only[0][["qid", "query"]], only[1], only[2], documents, tags)


def words_of(text):
    return set(TfidfVectorizer(token_pattern=r"(?u)\b\w+\b").build_analyzer()(text))


def tags_by_words(pairs, text, intents):
    """Tags of the candidate with the most words in the document, the most probable of equals; none without a word."""
    rows, of_query = [], dict(iter(intents.groupby("qid", sort=False)))
    for qid, docno in pairs:
        here, part = words_of(text.get(docno, "")), of_query[qid]
        common = set.intersection(*(words_of(name) for name in part["name"])) if len(part) > 1 else set()
        counts = [
            (len((words_of(name) - common) & here), prob) for name, prob in zip(part["name"], part["prob"], strict=True)
        ]
        best = max(range(len(part)), key=lambda place: counts[place])
        if counts[best][0]:
            rows.append((qid, docno, part["entity_id"].iloc[best]))
    return pd.DataFrame(rows, columns=["qid", "docno", "entity_id"])


def ambient(data):
    folder = data / "ambient"

    def table(name):
        path = folder / name
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return list(csv.DictReader(io.StringIO(raw.decode("utf-8", "replace")), delimiter="\t", quoting=csv.QUOTE_NONE))

    topics = pd.DataFrame([(row["ID"], row["description"]) for row in table("topics.txt")], columns=["qid", "query"])
    names = {row["ID"]: row["description"] for row in table("subTopics.txt")}
    meanings = pd.DataFrame([tuple(row.values())[:2] for row in table("STRel.txt")], columns=["entity_id", "docno"])
    meanings["qid"] = meanings["docno"].str.partition(".")[0]
    rank = meanings["docno"].str.partition(".")[2].astype(int)
    # Priors from results 31 to 100, scores of results 1 to 30.
    counts = meanings[rank > 30].groupby("entity_id").size()
    intents = pd.DataFrame(
        [(one.partition(".")[0], one, name) for one, name in names.items()], columns=["qid", "entity_id", "name"]
    )
    intents["prob"] = intents["entity_id"].map(counts).fillna(0) + 0.5
    intents["prob"] /= intents.groupby("qid")["prob"].transform("sum")
    results = {row["ID"]: f"{row['title']} {row['snippet']}" for row in table("results.txt.gz")}
    pools = {qid: [f"{qid}.{place}" for place in range(1, 31) if f"{qid}.{place}" in results] for qid in topics["qid"]}
    text = {docno: results[docno] for pool in pools.values() for docno in pool}
    pairs = [(qid, docno) for qid, pool in pools.items() for docno in pool]
    return collection(topics, pools, text, intents, meanings, tags_by_words(pairs, text, intents))


def aida_with(data, linker):
    judged = aida(data)
    named = pd.read_csv(judged.folder / "entities.tsv", sep="\t", dtype=str, keep_default_na=False).set_index("qid")[
        "name"
    ]
    intents = judged.intents.merge(named.rename("name"), left_on="entity_id", right_index=True, how="left")
    intents = intents[["qid", "entity_id", "prob", "name"]]
    run = judged.runs["bm25"].sort_values(["qid", "score"], ascending=[True, False])
    linked = judged.tags[linker].assign(text=lambda frame: frame["entity_id"].map(named).fillna(frame["entity_id"]))
    text = linked.groupby("docno")["text"].agg(" ".join).to_dict()
    pools = {qid: list(part["docno"].head(15)) for qid, part in run.groupby("qid")}
    return collection(judged.topics, pools, text, intents, judged.tags["gold"], judged.tags[linker])


def ramdocs(data):
    folder = data / "ramdocs"
    topics = json_lines(folder / "topics.jsonl")
    judged = vbterrier.read_qrels(folder / "qrels.intents.txt").drop_duplicates(ignore_index=True)
    rows = [(t["qid"], f"{t['qid']}.{one['intent']}", one["entity"]) for t in topics for one in t["intents"]]
    intents = pd.DataFrame(rows, columns=["qid", "entity_id", "name"])
    intents["prob"] = 1 / intents.groupby("qid")["qid"].transform("size")
    gold = judged[judged["label"] >= 1]
    gold = gold.assign(entity_id=gold["qid"] + "." + gold["iteration"].astype(str))[["qid", "docno", "entity_id"]]
    everything = {doc["docno"]: doc["text"] for doc in json_lines(folder / "docs.jsonl")}
    query = {t["qid"]: t["query"] for t in topics}
    pools = {}
    for qid, part in judged.groupby("qid"):
        docnos = sorted(part["docno"].unique())
        shared = [-len(words_of(everything[docno]) & words_of(query[qid])) for docno in docnos]
        pools[qid] = [docnos[place] for place in np.lexsort((docnos, shared))]
    text = {docno: everything[docno] for pool in pools.values() for docno in pool}
    pairs = [(qid, docno) for qid, pool in pools.items() for docno in pool]
    frame = pd.DataFrame(topics)[["qid", "query"]]
    return collection(frame, pools, text, intents, gold, tags_by_words(pairs, text, intents))


def congress(data, n_topics=150):
    """Names of several legislators; documents state some facts about one of them, or about others of the last name."""
    folder, rng = data / "kb_us_congress", np.random.default_rng(5)
    about = {one["id"]: one for one in json_lines(folder / "entities.jsonl.gz")}
    table = pd.read_csv(folder / "ambiguous_full_names.tsv", sep="\t", dtype=str)
    table = table[table["ids"].str.count(",") >= 2].head(n_topics)
    last = {}
    for one in about.values():
        for alias in one["aliases"][:1]:
            last.setdefault(alias.split()[-1], []).append(one["id"])
    facts = {
        key: [str(value) for value in one["attributes"].values() if value not in (True, False)]
        for key, one in about.items()
    }
    topics, rows, gold, pools, text = [], [], [], {}, {}
    for number, (name, ids) in enumerate(table[["name", "ids"]].itertuples(index=False)):
        qid, candidates = f"c{number}", ids.split(",")
        topics.append((qid, name))
        weights = rng.dirichlet(np.ones(len(candidates)))
        rows += [
            (qid, one, f"{about[one]['label']} {' '.join(facts[one])}", w)
            for one, w in zip(candidates, weights, strict=True)
        ]
        others = [one for one in last.get(name.split()[-1], []) if one not in candidates] or candidates[:1]
        pools[qid] = []
        for place in range(16):
            is_nil = rng.random() < 0.2
            one = str(rng.choice(others)) if is_nil else str(rng.choice(candidates, p=weights))
            docno = f"{qid}.{place}"
            facts_of_document = rng.permutation(facts[one])[: rng.integers(1, 4)]
            text[docno] = f"{name} {' '.join(facts_of_document)}"
            pools[qid].append(docno)
            if one in candidates:
                gold.append((qid, docno, one))
    intents = pd.DataFrame(rows, columns=["qid", "entity_id", "name", "prob"])
    pairs = [(qid, docno) for qid, pool in pools.items() for docno in pool]
    return collection(
        pd.DataFrame(topics, columns=["qid", "query"]), pools, text, intents,
        pd.DataFrame(gold, columns=["qid", "docno", "entity_id"]), tags_by_words(pairs, text, intents),
    )  # fmt: skip


def web(data, year):
    """Runs and diversity judgments; no texts and no tags, documents without a judgment are about no subtopic."""
    folder = data / "trec_web_diversity"
    topics = pd.DataFrame(json_lines(folder / "topics.jsonl"))
    topics = topics[topics["year"] == year]
    rows = [
        (qid, f"{qid}.{one['number']}", one["text"])
        for qid, several in topics[["qid", "subtopics"]].itertuples(index=False)
        for one in several
    ]
    intents = pd.DataFrame(rows, columns=["qid", "entity_id", "name"])
    intents["prob"] = 1 / intents.groupby("qid")["qid"].transform("size")
    judged = vbterrier.read_qrels(folder / f"qrels.{year}.diversity.gz")
    judged = judged[judged["label"] >= 1]
    gold = judged.assign(entity_id=judged["qid"] + "." + judged["iteration"].astype(str))[["qid", "docno", "entity_id"]]
    run = vbterrier.read_run(folder / "runs" / f"dssa-indri.{year}.run.gz").sort_values(
        ["qid", "score"], ascending=[True, False]
    )
    pools = {qid: list(part["docno"].head(30)) for qid, part in run.groupby("qid")}
    dataset = collection(topics[["qid", "query"]], pools, {}, intents, gold, None)
    qids = set(dataset.topics["qid"])
    for path in sorted((folder / "runs").glob(f"*.{year}.run.gz")):
        frame = vbterrier.read_run(path)
        frame = frame[frame["qid"].isin(qids)]
        if frame["qid"].nunique() == len(qids):
            dataset.runs[path.name.split(".")[0]] = frame
    return dataset


COLLECTIONS = {
    "AMBIENT": ambient,
    "AIDA, WAT": lambda data: aida_with(data, "wat"),
    "AIDA, GENRE": lambda data: aida_with(data, "genre"),
    "RAMDocs": ramdocs,
    "Congress": congress,
    "Web 2011": lambda data: web(data, 2011),
    "Web 2012": lambda data: web(data, 2012),
}


def fitted_priors(prepared):
    """Means and standard deviations over collections of the coefficients of all annotated documents."""
    coefs = []
    for judged, share in prepared:
        table, every = judged.table, np.ones(judged.n_documents, bool)
        wide = np.full(len(START), 1 / 3.0**2)
        features = table.features(share, every)
        coefs.append(table.coefficients(features, share, every, START, wide))
    coefs = np.array(coefs)
    return CoefficientPriors(coefs.mean(axis=0), np.maximum(coefs.std(axis=0, ddof=1), 0.3))


def drawn(judged, share, portion, design, seed, constants, n_draws):
    """Estimates from a sample of a share of the documents; ``None`` if it is too small for an interval."""
    n = round(portion * judged.n_documents)
    sample = judged.sample(design, n, seed)
    n_topics = len(np.unique(judged.table.topic[sample.drawn]))
    if sample.drawn.sum() < FEWEST_DOCUMENTS or (design == "topics" and n_topics < FEWEST_TOPICS):
        return None
    label = np.where(sample.drawn[judged.table.document], share, 0.0)
    return sample, *judged.estimates(
        design, label, sample.drawn, sample.inclusion, constants=constants, n_draws=n_draws, seed=seed
    )


def half_widths(result, level):
    """Half-widths of the intervals of scores."""
    error = np.sqrt(np.einsum("mkss->mks", result.covariance))
    return student.ppf((1 + level) / 2, np.maximum(result.degrees, 2)) * error


def cell(judged, share, portion, design, n_draws, constants, n_tags=N_DRAWS):
    """A row of the table, and the standardised errors of scores."""
    truth = judged.rankings.topic_scores(judged.words(share)).mean(axis=2)
    errors, inside, taus, right, wrong, ordered, z, seconds = [], [], [], [], 0, 0, [], []
    for seed in range(n_draws):
        start = time.process_time()
        made = drawn(judged, share, portion, design, seed, constants, n_tags)
        if made is None:
            return None, None
        sample, estimates, prob = made
        seconds.append(time.process_time() - start)
        errors.append(estimates.score - truth)
        half = half_widths(estimates, LEVEL)
        inside.append(np.abs(errors[-1]) <= half + 1e-9)
        z.append(np.abs(errors[-1]) * constants.widen[design] / np.maximum(half, 1e-12))
        taus.append(kendalltau(estimates.score[0, 0], truth[0, 0])[0])
        best = np.maximum.reduceat(prob, judged.table.starts[:-1])
        is_best = prob == best[judged.table.document]
        hit = np.bincount(judged.table.document, is_best & (share > 0), judged.n_documents) > 0
        right.append(hit[~sample.drawn].mean() if not sample.drawn.all() else np.nan)
        cov = estimates.covariance[0, 0]
        a, b = np.triu_indices(len(cov), 1)
        error = np.sqrt(np.maximum(cov[a, a] + cov[b, b] - 2 * cov[a, b], 0))
        degrees = np.maximum(np.minimum(estimates.degrees[0, 0][a], estimates.degrees[0, 0][b]), 2)
        diff, real = estimates.score[0, 0][a] - estimates.score[0, 0][b], truth[0, 0][a] - truth[0, 0][b]
        is_ordered = np.abs(diff) > student.ppf(0.975, degrees) * error
        ordered += int(is_ordered.sum())
        wrong += int((is_ordered & (np.sign(diff) != np.sign(real))).sum())
    inside = np.mean(inside, axis=(0, 3))
    rmse = np.sqrt(np.mean(np.square(errors), axis=(0, 3)))
    row = {"RMSE ES@3": rmse[0, 0], "RMSE ES@5": rmse[0, 1], "RMSE VB@3": rmse[1, 0], "tau": np.mean(taus)}
    row |= {"tags right": np.mean(right)}
    row |= {f"{m}@{k}": inside[i, j] for i, m in enumerate(("ES", "VB")) for j, k in enumerate(CUTOFFS)}
    row |= {
        "ordered": ordered / n_draws / len(a),
        "wrong": wrong / max(ordered, 1),
        "n ordered": ordered,
        "s": np.mean(seconds),
    }
    return row, np.array(z)


def family(name):
    """Collections that are left out together: the linkers of AIDA, the years of the Web track."""
    return name.replace(",", "").split()[0]


def left_out(rows, ratios):
    """Rows with coverage by intervals that are widened as the other collections ask for, and the factors of all.

    ``ratios``: absolute errors by half-widths that are not widened, of each row.
    """
    for row, ratio in zip(rows, ratios, strict=True):
        others = [
            other.ravel()[:: max(other.size // 5000, 1)]
            for one, other in zip(rows, ratios, strict=True)
            if one["design"] == row["design"] and family(one["collection"]) != family(row["collection"])
        ]
        if others:
            row["widen"] = float(np.quantile(np.concatenate(others), TARGET))
            inside = (ratio <= row["widen"] + 1e-9).mean(axis=(0, 3))
            row |= {f"{m}@{k}": inside[i, j] for i, m in enumerate(("ES", "VB")) for j, k in enumerate(CUTOFFS)}
    return rows


def without(judged, share, constants):
    """Rows of the table without annotations: scores under machine tags, and expected under the model."""
    truth = judged.rankings.topic_scores(judged.words(share)).mean(axis=2)
    rows = []
    machine = judged.rankings.topic_scores(judged.words(judged.table.tagged / 1.0)).mean(axis=2)
    none = np.zeros(judged.n_documents, bool)
    model = judged.mean_expected_scores(judged.table.probabilities(0 * share, none, constants.priors, by_topic=False))
    for name, score in (("machine tags", machine), ("model", model)):
        rmse = np.sqrt(np.mean((score - truth) ** 2, axis=2))
        tau = kendalltau(score[0, 0], truth[0, 0])[0]
        rows.append(
            {"design": name, "RMSE ES@3": rmse[0, 0], "RMSE ES@5": rmse[0, 1], "RMSE VB@3": rmse[1, 0], "tau": tau}
        )
    return rows


def distances(judged, share, portion, n_draws, constants):
    """Mean total variation between the share of each intent in all gold tags, and probabilities given and estimated.

    Topics without a gold tag are left out.
    """
    table, is_intent = judged.table, ~judged.table.is_nil
    counts = np.zeros(judged.rankings.prob.shape)
    np.add.at(counts, (table.topic[table.document[is_intent]], table.place[is_intent]), share[is_intent])
    is_tagged = counts.sum(axis=1) > 0
    truth = np.concatenate(
        [row[: len(entities)] / max(row.sum(), 1) for row, entities in zip(counts, judged.entities, strict=True)]
    )
    topic = np.repeat(np.arange(len(judged.qids)), [len(entities) for entities in judged.entities])

    def distance(values):
        return (np.bincount(topic, np.abs(values - truth)) / 2)[is_tagged].mean()

    rows = []
    for design in ("topics", "documents"):
        errors = []
        for seed in range(n_draws):
            made = drawn(judged, share, portion, design, seed, constants, N_DRAWS)
            if made is not None:
                sample, _, prob = made
                label = np.where(sample.drawn[table.document], share, prob)
                frame = intent_estimates(judged, label)
                errors.append((distance(frame["prob"].to_numpy()), distance(frame["estimate"].to_numpy())))
        if errors:
            error, estimate = np.mean(errors, axis=0)
            rows.append({"share": portion, "design": design, "given": error, "estimate": estimate})
    return rows


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--designs", nargs="+", default=["topics", "documents"])
    parser.add_argument("--collections", nargs="+", default=list(COLLECTIONS))
    parser.add_argument("--constants", action="store_true", help="print the constants of all collections")
    parser.add_argument("--given", action="store_true", help="evaluate the constants of the package")
    parser.add_argument("--tag-draws", type=int, default=N_DRAWS, help="draws of tags of an estimate")
    parser.add_argument("--intents", action="store_true", help="print the errors of estimated probabilities of intents")
    parser.add_argument(
        "--scale",
        type=float,
        nargs=2,
        default=CONSTANTS.scale,
        help="scale of pairs in ES, its factor in VB",
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    prepared = {}
    for name, read in COLLECTIONS.items():
        prepared[name] = read(arguments.data).prepared()
        result = prepared[name][0]
        print(
            f"{name}: {len(result.qids)} topics, {result.n_documents} documents, {len(result.systems)} systems",
            file=sys.stderr,
        )
    if arguments.constants:
        print(fitted_priors(prepared.values()))
    rows, cells, ratios = [], [], []
    for name in arguments.collections:
        result, share = prepared[name]
        others = [pair for other, pair in prepared.items() if family(other) != family(name)]
        priors = CONSTANTS.priors if arguments.given else fitted_priors(others)
        constants = AnnotationConstants(priors, tuple(arguments.scale), CONSTANTS.widen)
        if arguments.intents:
            rows += [
                {"collection": name, **row}
                for portion in arguments.shares
                for row in distances(result, share, portion, arguments.draws, constants)
            ]
            continue
        rows += [{"collection": name, "share": 0.0, **row} for row in without(result, share, constants)]
        for portion in arguments.shares:
            for design in arguments.designs:
                row, ratio = cell(result, share, portion, design, arguments.draws, constants, arguments.tag_draws)
                if row is not None:
                    cells.append({"collection": name, "share": portion, "design": design, **row})
                    ratios.append(ratio)
                    print(pd.DataFrame(cells[-1:]).round(3).to_string(), file=sys.stderr, flush=True)
    print(pd.DataFrame(rows + left_out(cells, ratios)).round(3).to_string())


if __name__ == "__main__":
    main()
