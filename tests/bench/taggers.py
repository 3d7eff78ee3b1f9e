"""Errors of real taggers, simulated and corrected: ``python tests/bench/taggers.py DATA [N_SAMPLES]``.

DATA is the folder of the collections that ``tests/data`` reads. AIDA-CoNLL, 199 ambiguous names, with the tags of gold
and of two linkers; a sample has 20 % of the documents. Prints the tables of docs/explanation/taggers.md.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from aida import aida as read_aida

import vbterrier
from vbterrier.evaluate.intents import IntentOptions, evaluate_intents
from vbterrier.evaluate.replicas import _retrieved_pairs
from vbterrier.intents.coverage import Intents, Tags
from vbterrier.intents.tagging_quality import tag_quality
from vbterrier.stats import TagConfusion, fit_tagger
from vbterrier.stats.gold_scores import REPETITION, WEIGHT, gold_scores
from vbterrier.stats.matches import Statistic
from vbterrier.stats.perturbations import UNITS
from vbterrier.stats.powered_means import prediction_powered_mean

LINKERS = ("wat", "genre")
CUTOFFS = (1, 3, 5, 10)
STATISTICS = [Statistic(measure, cutoff) for measure in ("ES", "VB") for cutoff in CUTOFFS]
SHARE = 0.2
# Weight of the labels and standard deviation of the logarithm of repetition; the first are those in use.
CONSTANTS = ((WEIGHT, REPETITION), (1.0, 0.3), (1.0, 0.6), (0.5, 0.3), (0.4, 0.8))
LEVELS = (0.9, 0.95)


def sample(aida, number):
    """Gold tags of a random sample of documents."""
    documents = np.array(sorted(aida.tags["gold"]["docno"].unique()))
    drawn = np.random.default_rng([7, number]).permutation(documents)[: round(SHARE * len(documents))]
    return aida.tags["gold"][aida.tags["gold"]["docno"].isin(drawn)]


def evaluated(aida, tagger, *, cutoff=(1, 10), **options):
    """C frame of BM25 under the tags of a tagger."""
    intents = aida.intents[["qid", "entity_id", "prob"]].sort_values(["qid", "entity_id"], ignore_index=True)
    return evaluate_intents(
        {"bm25": aida.runs["bm25"]},
        aida.topics,
        intents=intents,
        tagger=aida.tags[tagger],
        measures=["ES", "VB"],
        options=IntentOptions(cutoff=list(cutoff), **options),
    ).intervals


def forward(aida, n_samples):
    """Scores of BM25 under simulated and real tags: the mean of 300 replicas from gold tags, and the linker's score."""
    rows = []
    for linker in LINKERS:
        quality = tag_quality(aida.tags[linker], aida.tags["gold"])
        share = 1 - quality.micro.recall
        lost = max(0.0, 1 - (quality.n_tags - quality.n_correct) / (quality.n_gold - quality.n_correct))
        noises = {f'by="{unit}"': [TagConfusion(share, lost=lost, by=unit)] for unit in reversed(UNITS)}
        fits = [fit_tagger(aida.tags[linker], sample(aida, n), intents=aida.intents) for n in range(n_samples)]
        noises["fitted, 20 % labelled"] = [fit.errors for fit in fits]
        noises["fitted, all labelled"] = [fit_tagger(aida.tags[linker], aida.tags["gold"], intents=aida.intents).errors]
        for name, several in noises.items():
            made = pd.concat([evaluated(aida, "gold", n_replicas=300, perturb=[noise]) for noise in several])
            means = made[made["method"].str.startswith("replicas")].groupby("measure")["mean"].mean()
            rows.append({"linker": linker, "errors": name, **means})
        real = evaluated(aida, linker).set_index("measure")["value"]
        rows.append({"linker": linker, "errors": "real", **real})
    return pd.DataFrame(rows)


def backward(aida, linker, system, n_samples, constants):
    """Errors of estimates, and by constants and level the coverage and mean width of intervals, of each statistic."""
    run = vbterrier.frames.ranking.Run(aida.runs[system])
    intents, tags, gold = Intents(aida.intents), Tags(aida.tags[linker]), Tags(aida.tags["gold"])
    truth = _scores(_pairs(run, intents, tags, gold, set(aida.tags["gold"]["docno"])), "gold")
    naive = _scores(_pairs(run, intents, tags, gold, set(aida.tags["gold"]["docno"])), "tagged")
    errors = {name: [] for name in ("labels replace tags", "documents", "queries", "model")}
    ends = {}
    for number in range(n_samples):
        drawn = sample(aida, number)
        pairs = _pairs(run, intents, tags, Tags(drawn), set(drawn["docno"]))
        errors["labels replace tags"].append(_scores(pairs, "both"))
        errors["documents"].append(double_sampled(pairs))
        errors["queries"].append(of_labelled_queries(pairs))
        for weight, repetition in constants:
            options = {"n_replicas": 100, "seed": number, "weight": weight, "repetition": repetition}
            estimates, draws = gold_scores(pairs, STATISTICS, **options)
            for level in LEVELS:
                quantiles = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=1)
                ends.setdefault((weight, repetition, level), []).append(quantiles)
        errors["model"].append(estimates.mean(axis=1))
    rmse = {"tags": np.abs(naive - truth)}
    rmse |= {name: np.sqrt(np.mean((np.array(actual) - truth) ** 2, axis=0)) for name, actual in errors.items()}
    covered = {}
    for key, result in ends.items():
        low, high = np.moveaxis(np.array(result), 1, 0)
        covered[key] = ((low <= truth + 1e-9) & (truth <= high + 1e-9)).mean(axis=0), (high - low).mean(axis=0)
    return {"truth": truth, "mean": np.mean(errors["model"], axis=0), **rmse}, covered


def _pairs(run, intents, tags, gold, labelled):
    return _retrieved_pairs("run", run, intents, {"tags": tags, "model": tags, "gold": gold}, labelled, max(CUTOFFS))


def _scores(pairs, kind):
    """Statistics of one of the columns, or of labels where they are known and tags elsewhere."""
    about = np.where(pairs.labelled, pairs.gold, pairs.tagged) if kind == "both" else getattr(pairs, kind)
    results = []
    for statistic in STATISTICS:
        covered = pairs.sums(about & (pairs.rank < statistic.cutoff)) > 0
        success = np.clip(np.bincount(pairs.topic, pairs.prob * covered), 0, 1)
        results.append(success - (statistic.measure == "VB") * np.sqrt(success * (1 - success)))
    return np.array([one.mean() for one in results])


def double_sampled(pairs):
    """Double sampling of documents: the unbiased estimate of ``1 - Π (1 - gold)``; NaN for VB, which is not linear."""
    factor = 1 - (pairs.tagged + pairs.labelled * (pairs.gold * 1.0 - pairs.tagged) / SHARE)
    result = np.full(len(STATISTICS), np.nan)
    for row, cutoff in enumerate(CUTOFFS):
        uncovered = np.ones(len(pairs.prob))
        shown = pairs.rank < cutoff
        np.multiply.at(uncovered, pairs.intent[shown], factor[shown])
        result[row] = np.bincount(pairs.topic, pairs.prob * (1 - uncovered)).mean()
    return result


def of_labelled_queries(pairs):
    """Prediction-powered means from the queries whose retrieved documents are all labelled; NaN without two."""
    results = []
    for statistic in STATISTICS:
        shown = pairs.rank < statistic.cutoff
        topic = pairs.topic[pairs.intent]
        complete = np.bincount(topic, shown & ~pairs.labelled, minlength=len(pairs.topics)) == 0
        scores = []
        for about in (np.where(pairs.labelled, pairs.gold, pairs.tagged), pairs.tagged):
            success = np.clip(np.bincount(pairs.topic, pairs.prob * (pairs.sums(about & shown) > 0)), 0, 1)
            scores.append(success - (statistic.measure == "VB") * np.sqrt(success * (1 - success)))
        gold, tags = scores
        few = complete.sum() < 2
        results.append(
            np.nan if few else prediction_powered_mean(gold[complete], tags[complete], tags[~complete]).value
        )
    return np.array(results, dtype=float)


def main(data, n_samples):
    """Print the tables."""
    warnings.simplefilter("ignore")
    aida = read_aida(data)
    print(forward(aida, min(n_samples, 10)).round(3).to_string(index=False))
    names = list(map(str, STATISTICS))
    errors, coverage, chosen = [], [], []
    for linker in LINKERS:
        for system in aida.runs:
            constants = CONSTANTS if system == "bm25" else CONSTANTS[:1]
            rmse, covered = backward(aida, linker, system, n_samples, constants)
            errors += [
                {"linker": linker, "system": system, "": kind, **dict(zip(names, one, strict=True))}
                for kind, one in rmse.items()
            ]
            for (*pair, level), (share, width) in covered.items():
                row = {"linker": linker, "system": system, "constants": pair, "level": level}
                chosen.append({**row, "mean coverage": share.mean()})
                if tuple(pair) == CONSTANTS[0]:
                    coverage.append({**row, "": "coverage", **dict(zip(names, share, strict=True))})
                    coverage.append({**row, "": "width", **dict(zip(names, width, strict=True))})
    for table in (errors, coverage, chosen):
        print(pd.DataFrame(table).round(3).to_string(index=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
