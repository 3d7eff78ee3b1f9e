"""Make the runs and the incomplete judgments of the demo collection: ``python tests/golden/make_demo.py``.

Three systems, none of which sees a label: two older ones that count words, and a newer one that compares meanings. The
judgments that the demo starts from are those of the older systems' first ten documents.
"""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "vbterrier" / "demo"
DEPTH = 20
POOL_DEPTH = 10
POOLED = ("lexical", "words")

STOP_WORDS = (
    "a an and are as at be been by did do does for from had has have how if in into is it its may of off on or than "
    "that the their them then they this to was were what when where which while who why with"
)

# A small thesaurus: a word stands under each of its meanings, as in a dictionary.
THESAURUS = {
    "airline": "airline delta aircraft flight airport jet wing plane",
    "bird": "bird crane phoenix heron eagle nest egg feather",
    "building": "building concrete steel tower site brick stone roof",
    "car": "car jaguar motorcycle truck bonnet motor driver garage",
    "cat": "cat jaguar leopard cheetah lion tiger puma spotted rosette cub whisker",
    "city": "city phoenix capital town downtown",
    "coffee": "coffee java tea bean brew plantation",
    "company": "company amazon delta jaguar firm maker seller sell buy price share trader delivery",
    "danger": "danger dangerous harm kill death die poisonous threat bury collapse disaster risk warn",
    "fish": "fish bass trout salmon cod angler bait fishing lure",
    "forest": "forest rainforest jungle amazon tree wood leaf branch",
    "hunting": "hunt hunter prey predator stalk ambush catch chase kill bite swallow meal feed feeding",
    "island": "island java borneo sumatra hawaii iceland coast",
    "land": "land delta landscape ground soil mud sand silt clay farmland field",
    "language": "language speak spoken alphabet letter delta word grammar dialect",
    "lifting": "lift crane hoist raise winch pulley lever rope load heavy weight counterweight",
    "metal": "mercury metal iron steel copper gold silver lead alloy liquid melt",
    "moon": "moon lunar titan europa enceladus satellite tide",
    "music": "music bass note sing singer song choir chord rhythm beat band jazz orchestra instrument guitar drum "
    "string piano organ octave",
    "myth": "god goddess myth legend greek roman mercury apollo artemis titan amazon phoenix hero temple priestess "
    "serpent",
    "night": "night dark darkness evening dusk shadow sunset day daytime dawn",
    "planet": "planet mercury venus earth mars jupiter saturn uranus neptune sun solar orbit astronomy",
    "programming": "program programming java python javascript code software compile compiled bytecode class object "
    "interface computer interpreter virtual",
    "river": "river amazon nile mississippi ganges mekong delta mouth stream bank channel current sediment silt flow",
    "sea": "sea ocean atlantic mediterranean shore coast tide wave flood",
    "snake": "snake python serpent cobra viper anaconda boa constrictor coil squeeze venom",
    "spaceflight": "apollo spacecraft astronaut mission rocket probe lander launch landing module rover space nasa "
    "orbit parachute",
    "sport": "sport team football basketball race league player season jaguar",
    "temperature": "temperature hot heat warm warmth cold cool freeze frozen frigid scorching bake boil melt degree "
    "celsius thermometer",
    "volcano": "volcano volcanic eruption lava magma ash crater mudflow",
    "weather": "weather climate rain snow wind storm thunderstorm monsoon summer winter desert cloud dust dry mild "
    "forecast",
    "wildlife": "wildlife animal mammal bird fish species dolphin monkey live",
}


def words(text):
    stop_words = STOP_WORDS.split()
    return [word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in stop_words]


def stem(word):
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def stems(text):
    return [stem(word) for word in words(text)]


def bm25(texts, queries, terms, k1=1.2, b=0.75):
    """Scores of every text for every query; the length of a text is that of its characters."""
    counts = [Counter(terms(text)) for text in texts]
    length = np.array([len(text) for text in texts])
    found_in = Counter(term for count in counts for term in count)

    def scores(term):
        n = found_in[term]
        frequency = np.array([count[term] for count in counts])
        saturated = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / length.mean()))
        return math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) * saturated

    return np.array([sum(scores(term) for term in terms(query)) for query in queries])


def unit(vectors):
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def rarity(weights):
    return np.log((1 + len(weights)) / (1 + (weights >= 0.5).sum(axis=0))) + 1


def term_counts(texts, vocabulary):
    counts = [Counter(stems(text)) for text in texts]
    return np.array([[count[term] for term in vocabulary] for count in counts], dtype=float)


def meaning_counts(texts, prior=0.2):
    """How often each meaning of the thesaurus occurs.

    A word with several meanings is shared out by how many other words of its text support each (Lesk's idea).
    """
    kinds = list(THESAURUS)
    meanings = {}
    for kind, listed in THESAURUS.items():
        for word in listed.split():
            meanings.setdefault(stem(word), set()).add(kind)
    counts = np.zeros((len(texts), len(kinds)))
    for row, text in zip(counts, texts, strict=True):
        stems_of_text = [word for word in stems(text) if word in meanings]
        for word in stems_of_text:
            support = {
                kind: prior + sum(kind in meanings[w] for w in stems_of_text if w != word) for kind in meanings[word]
            }
            for kind, share in support.items():
                row[kinds.index(kind)] += share / math.fsum(support.values())
    return counts


def dense(texts, queries, rank=100, word_weight=0.5, n_feedback=5, feedback_weight=0.7):
    """Cosines of latent vectors of meanings and words, after feedback from the first documents (Rocchio)."""
    vocabulary = sorted({term for text in texts for term in stems(text)})
    meanings, terms = meaning_counts(texts), term_counts(texts, vocabulary)
    meaning_idf, term_idf = rarity(meanings), rarity(terms)

    def features(meanings, terms):
        return np.hstack([unit(np.log1p(meanings) * meaning_idf), word_weight * unit(damped(terms) * term_idf)])

    documents = features(meanings, terms)
    axes = np.linalg.svd(documents, full_matrices=False)[2][:rank].T
    latent = unit(documents @ axes)
    query_vectors = unit(features(meaning_counts(queries), term_counts(queries, vocabulary)) @ axes)
    first = np.argsort(-(query_vectors @ latent.T), axis=1, kind="stable")[:, :n_feedback]
    return unit(query_vectors + feedback_weight * unit(latent[first].mean(axis=1))) @ latent.T


def damped(counts):
    return np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0)


def rows(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


def run_lines(name, scores, qids, docnos):
    """Lines of a TREC run; ranks as its readers find them: the rounded score falling, then docno falling."""
    lines = []
    for qid, row in zip(qids, np.round(scores, 4), strict=True):
        ranked = sorted(((score, docno) for score, docno in zip(row, docnos, strict=True) if score > 0), reverse=True)
        places = enumerate(ranked[:DEPTH], start=1)
        lines += [f"{qid} Q0 {docno} {rank} {score:.4f} {name}" for rank, (score, docno) in places]
    return lines


def pooled_lines(runs):
    """The complete judgments, as far as a pooled system has the document in its first ten."""
    fields = [line.split() for name in POOLED for line in runs[name]]
    pool = {(qid, docno) for qid, _, docno, rank, *_ in fields if int(rank) <= POOL_DEPTH}
    complete = (FOLDER / "complete.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in complete if (line.split()[0], line.split()[2]) in pool]


def made():
    """The content of each file that this script makes."""
    docnos, texts = zip(*rows("documents.tsv"), strict=True)
    qids, queries, _ = zip(*rows("topics.tsv"), strict=True)
    systems = {
        "lexical": bm25(texts, queries, stems),
        "words": bm25(texts, queries, words),
        "dense": dense(texts, queries),
    }
    runs = {name: run_lines(name, scores, qids, docnos) for name, scores in systems.items()}
    files = {f"{name}.run": lines for name, lines in runs.items()} | {"qrels.txt": pooled_lines(runs)}
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in files.items()}


if __name__ == "__main__":
    for name, content in made().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
