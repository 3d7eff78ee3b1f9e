"""VB beside diversity measures: ``python tests/bench/diversity.py DATA [N_DRAWS] [FIGURE.svg]``.

DATA is the folder of the collections that ``tests/data`` reads: the years of TREC Web with judgments of subtopics and
runs, and RAMDocs. Prints the tables of docs/explanation/diversity.md, and draws its figure.

- RAMDocs: every system is a real one: PISA's models, stemmers and parameters, and rerankings by maximal marginal
  relevance.
- TREC Web: few runs are at hand. Each is also reranked by xQuAD with judgments that have errors, so that systems differ
  in diversity, and by the judgments of one subtopic, so that they lack it; and its order is disturbed.
"""

import re
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from aida import json_lines
from scipy.stats import kendalltau

import vbterrier
from vbterrier.design import discriminative_power
from vbterrier.settings import Data, Inference

MEASURES = {
    "VB": "VB@{}",
    "VB monotone": "VB(monotone=True)@{}",
    "ES": "ES@{}",
    "D#-nDCG": "DSharpNDCG@{}",
    "D-nDCG": "DNDCG@{}",
    "ERR-IA": "WeightedERRIA@{}",
    "α-nDCG": "WeightedAlphaNDCG@{}",
    "NRBP": "WeightedNRBP@{}",
}
DEPTH = 10
# Documents that rerankings choose from.
POOL = 50


def collections(data):
    """Collections by name: diversity qrels, all subtopics, systems, and the cutoff of the measures."""
    folder = data / "trec_web_diversity"
    topics = json_lines(folder / "topics.jsonl")
    for path in sorted(folder.glob("qrels.*.diversity.gz")):
        year = path.name.split(".")[1]
        qrels = vbterrier.read_qrels(path)
        of_year = [topic for topic in topics if str(topic["year"]) == year and topic["qid"] in set(qrels["qid"])]
        subtopics = [(topic["qid"], str(one["number"])) for topic in of_year for one in topic["subtopics"]]
        runs = {one.name.split(".")[0]: one for one in sorted((folder / "runs").glob(f"*.{year}.run.gz"))}
        if runs:
            real = {name: top_documents(vbterrier.read_run(one), qrels["qid"]) for name, one in runs.items()}
            systems = derived(real, qrels, 5 if len(real) == 1 else 1)
            yield f"TREC Web {year}", prepared(qrels, subtopics, systems, 10)
    yield "RAMDocs", ramdocs(data / "ramdocs")


def prepared(qrels, subtopics, systems, cutoff):
    """Uniform probabilities of all subtopics, in both frames."""
    listed = pd.DataFrame(subtopics, columns=["qid", "entity_id"])
    listed["prob"] = 1 / listed.groupby("qid")["qid"].transform("size")
    return SimpleNamespace(qrels=qrels, subtopics=listed, systems=systems, cutoff=cutoff)


def top_documents(run, qids):
    """The first documents of each judged query, best first."""
    run = run[run["qid"].isin(set(qids))].sort_values(["qid", "score", "docno"], ascending=[True, False, False])
    return {qid: part["docno"].tolist()[:POOL] for qid, part in run.groupby("qid")}


def as_run(lists):
    """A run frame of ranked lists."""
    rows = [(qid, docno, -float(rank)) for qid, docs in lists.items() for rank, docno in enumerate(docs[:DEPTH])]
    return pd.DataFrame(rows, columns=["qid", "docno", "score"])


def derived(real, qrels, n_seeds):
    """Real runs, and their rerankings."""
    about = {}
    for row in qrels[qrels["label"] > 0].itertuples():
        about.setdefault((row.qid, row.iteration), set()).add(row.docno)
    intents = {}
    for qid, subtopic in about:
        intents.setdefault(qid, []).append(subtopic)
    systems = {}
    for name, lists in real.items():
        systems[name] = as_run(lists)
        for seed in range(n_seeds):
            rng = np.random.default_rng([seed, len(name)])
            for error in (0.1, 0.3):
                for weight in (0.5, 0.9):
                    made = {
                        qid: xquad(docs, noisy(docs, qid, intents.get(qid, []), about, error, rng), weight)
                        for qid, docs in lists.items()
                    }
                    systems[f"{name} xquad {error} {weight} {seed}"] = as_run(made)
                made = {
                    qid: xquad(docs, noisy(docs, qid, intents.get(qid, [])[:1], about, error, rng), 0.9)
                    for qid, docs in lists.items()
                }
                systems[f"{name} one subtopic {error} {seed}"] = as_run(made)
            for scale in (5, 20):
                made = {qid: disturbed(docs, scale, rng) for qid, docs in lists.items()}
                systems[f"{name} disturbed {scale} {seed}"] = as_run(made)
    return systems


def noisy(docs, qid, subtopics, about, error, rng):
    """Judgments of each subtopic (rows) with errors."""
    true = np.array([[docno in about[qid, subtopic] for docno in docs] for subtopic in subtopics], dtype=float)
    return np.abs(true.reshape(len(subtopics), len(docs)) - (rng.random((len(subtopics), len(docs))) < error))


def disturbed(docs, scale, rng):
    """A ranking by its ranks with noise."""
    return [docs[place] for place in np.argsort(np.arange(len(docs)) + scale * rng.standard_normal(len(docs)))]


def xquad(docs, covers, weight):
    """The first documents by xQuAD (Santos et al. 2010) with equally probable subtopics."""
    relevance = 1 / (1 + np.arange(len(docs)))
    left, chosen = np.ones(len(covers)), []
    for _ in range(min(DEPTH, len(docs))):
        novel = (covers * left[:, None]).mean(axis=0) if len(covers) else np.zeros(len(docs))
        score = (1 - weight) * relevance + weight * novel
        score[chosen] = -1
        chosen.append(int(np.argmax(score)))
        left = left * (1 - 0.9 * covers[:, chosen[-1]]) if len(covers) else left
    return [docs[place] for place in chosen]


def ramdocs(folder):
    """RAMDocs with the systems that PISA gives, and their rerankings by maximal marginal relevance."""
    import pyterrier_pisa as pisa
    from sklearn.feature_extraction.text import TfidfVectorizer

    topics, documents = json_lines(folder / "topics.jsonl"), json_lines(folder / "docs.jsonl")
    qrels = vbterrier.read_qrels(folder / "qrels.intents.txt").drop_duplicates(ignore_index=True)
    subtopics = [(topic["qid"], one["intent"]) for topic in topics for one in topic["intents"]]
    qrels = qrels[qrels["iteration"].ne("0") & qrels["qid"].isin({qid for qid, _ in subtopics})]
    queries = pd.DataFrame({"qid": [topic["qid"] for topic in topics], "query": [plain(t["query"]) for t in topics]})
    vectors = TfidfVectorizer(sublinear_tf=True).fit_transform([plain(one["text"]) for one in documents])
    place = {one["docno"]: number for number, one in enumerate(documents)}
    systems = {}
    with tempfile.TemporaryDirectory() as home:
        for stemmer in ("none", "porter2"):
            index = pisa.PisaIndex(str(Path(home) / stemmer), text_field="text", stemmer=stemmer)
            index.index({"docno": one["docno"], "text": plain(one["text"])} for one in documents)
            models = {
                "bm25": index.bm25(num_results=POOL),
                "bm25 k1=1.2 b=.75": index.bm25(k1=1.2, b=0.75, num_results=POOL),
                "bm25 b=0": index.bm25(b=0.0, num_results=POOL),
                "dph": index.dph(num_results=POOL),
                "pl2": index.pl2(num_results=POOL),
                "qld": index.qld(num_results=POOL),
            }
            for name, model in models.items():
                lists = top_documents(model(queries), queries["qid"])
                systems[f"{name}, {stemmer}"] = as_run(lists)
                for weight in (0.2, 0.5, 0.8):
                    made = {
                        qid: mmr(docs, vectors[[place[one] for one in docs]], weight) for qid, docs in lists.items()
                    }
                    systems[f"{name}, {stemmer}, mmr {weight}"] = as_run(made)
    return prepared(qrels, subtopics, systems, 5)


def plain(text):
    """Lower case letters and digits."""
    return re.sub("[^a-z0-9]", " ", text.lower())


def mmr(docs, vectors, weight):
    """The first documents by maximal marginal relevance (Carbonell and Goldstein 1998)."""
    alike = (vectors @ vectors.T).toarray()
    relevance, nearest, chosen = 1 / (1 + np.arange(len(docs))), np.zeros(len(docs)), []
    for _ in range(min(DEPTH, len(docs))):
        score = (1 - weight) * relevance - weight * nearest
        score[chosen] = -np.inf
        chosen.append(int(np.argmax(score)))
        nearest = np.maximum(nearest, alike[chosen[-1]])
    return [docs[one] for one in chosen]


def values_of(collection, prob=None):
    """V frame of all measures, named as in the tables, with other probabilities if they are given."""
    subtopics = collection.subtopics if prob is None else collection.subtopics.assign(prob=prob)
    qrels = collection.qrels.merge(subtopics.rename(columns={"entity_id": "iteration"}), on=["qid", "iteration"])
    names = {str(vbterrier.measures_from(text.format(collection.cutoff))[0]): name for name, text in MEASURES.items()}
    values = vbterrier.score(
        collection.systems,
        qrels,
        list(names),
        data=Data(subtopics=subtopics, on_topics="all"),
        inference=Inference(n_resamples=2),
    ).values
    return values.assign(measure=values["measure"].map(names))


def means_of(values):
    """Means: systems in rows, measures in columns."""
    return values.pivot_table(index="name", columns="measure", values="value")[list(MEASURES)]


def wrong(subtopics, kind, rng):
    """Wrong probabilities where all are equal: Dirichlet noise, or confidence in one subtopic at random."""
    qid = subtopics["qid"].to_numpy()
    if kind == "noise":
        made = rng.gamma(1.0, size=len(qid))
    else:
        order = pd.Series(rng.random(len(qid))).groupby(qid).rank().to_numpy()
        n = pd.Series(qid).groupby(qid).transform("size").to_numpy()
        made = np.where(order == 1, 0.8, 0.2 / np.maximum(n - 1, 1))
    return made / pd.Series(made).groupby(qid).transform("sum").to_numpy()


def results_of(collection, n_draws):
    """Tables of a collection: correlations, discriminative power, sensitivity."""
    values = values_of(collection)
    means = means_of(values)
    tau = pd.DataFrame({a: {b: kendalltau(means[a], means[b]).statistic for b in means} for a in means})
    power = discriminative_power(values, sizes=[values["qid"].nunique()], test="t").set_index("measure")
    table = pd.DataFrame({"τ with VB": tau["VB"], "τ with ES": tau["ES"], "τ with D#-nDCG": tau["D#-nDCG"]})
    table["differ"], table["not worse"] = power["share_significant"], power["n_not_worse"]
    for kind in ("noise", "one at .8"):
        changed = [
            means_of(values_of(collection, wrong(collection.subtopics, kind, np.random.default_rng([draw, 5]))))
            for draw in range(n_draws)
        ]
        table[f"{kind}: τ"] = {
            name: np.mean([kendalltau(means[name], one[name]).statistic for one in changed]) for name in means
        }
        table[f"{kind}: shift"] = pd.DataFrame([(one - means).mean() for one in changed]).mean()
    return table.loc[list(MEASURES)], tau, means


def figure(results, n_draws, path):
    """Discriminative power against robustness to wrong probabilities, and VB and ES against D#-nDCG.

    ``results``: by title, the tables of :func:`results_of`.
    """
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "diversity", "font.size": 8})
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(2, len(results), figsize=(3.1 * len(results), 6))
    for column, (title, (table, _, means)) in enumerate(results.items()):
        above, below = axes[:, column]
        above.set(title=title, xlabel="τ under wrong probabilities (one at .8)")
        # Markers with one legend, since labels of neighbours would overlap.
        for marker, (measure, row) in zip("osD^vP*X", table.iterrows(), strict=True):
            colour = "C1" if measure.startswith("VB") else "C0"
            point = row["one at .8: τ"], row["differ"]
            above.plot(*point, marker, color=colour, mfc="none", ms=6, label=measure)
        above.margins(0.15)
        below.plot(means["D#-nDCG"], means["VB"], "o", ms=3, color="C1", label="VB")
        below.plot(means["D#-nDCG"], means["ES"], "s", ms=3, color="C0", label="ES")
        below.set(xlabel="mean D#-nDCG")
    axes[0, 0].set_ylabel("share of pairs that differ")
    axes[1, 0].set_ylabel("mean VB, mean ES")
    axes[1, 0].legend(frameon=False)
    caption = (
        "Above: a point per measure; pairs of systems that differ significantly (two-tailed t, .05, not corrected);\n"
        "Kendall's τ of the order of systems with that under equal probabilities, where one random intent has .8: "
        f"mean of {n_draws} draws (seeds 0 to {n_draws - 1}).\nBelow: a point per system."
    )
    drawn.text(0.01, 0.005, caption, fontsize=7, va="bottom")
    drawn.tight_layout(rect=(0, 0.07, 1, 0.94))
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=len(table), frameon=False)
    drawn.savefig(path, metadata={"Date": None})


def main(data, n_draws, path):
    """Print the tables, and draw the figure."""
    warnings.simplefilter("ignore")
    results = {}
    for name, collection in collections(data):
        table, tau, means = result = results_of(collection, n_draws)
        n_qids = collection.subtopics["qid"].nunique()
        title = f"{name}, @{collection.cutoff}\n{len(means)} systems, {n_qids} queries"
        results[title] = result
        print(f"\n{title}\n{table.round(3).to_string()}")
        print(tau.round(2).to_string(), means.agg(["min", "max"]).round(3).to_string(), sep="\n", flush=True)
    if path:
        figure(results, n_draws, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20, sys.argv[3] if len(sys.argv) > 3 else "")
