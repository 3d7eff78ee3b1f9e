"""Thousands of random topics in one call, real runs, and the answers of other programs to both.

A topic is an input: a call over 2,000 of them compares 2,000 inputs, at the price of one.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyndeval
import pytest
import pytrec_eval
from night import at_night

import vbterrier
from vbterrier.settings import Data, Inference

N_TOPICS = 2000
# Engines of diversity measures are slow.
N_DIVERSE = 1000
RUNS_2012 = ("indri-ql-catb-filtered", "indri-ql-cata", "indri-rm-cata-filtered", "dssa-indri")
WEB = [*((2012, name) for name in RUNS_2012), (2011, "dssa-indri")]
# Scores of trec_eval are single floats: 1 and 1 + 1e-9 tie.
SCORES = np.array([-2.5, 0.0, 1.0, 1.0 + 1e-9, 1.5, 2.0, 40.0, 1e6])


def nested(frame, value):
    """{topic: {document: value}}, as pytrec_eval takes it."""
    made = {}
    for qid, docno, one in zip(frame["qid"], frame["docno"], frame[value].tolist(), strict=True):
        made.setdefault(qid, {})[docno] = one
    return made


def trec_eval(qrels, run, names, **options):
    """A row a topic of the qrels, a column a measure; topics that retrieved nothing score 0, as in trec_eval -c."""
    evaluator = pytrec_eval.RelevanceEvaluator(nested(qrels, "label"), set(names), **options)
    result = evaluator.evaluate(nested(run, "score"))
    return pd.DataFrame.from_dict(result, orient="index").reindex(sorted(qrels["qid"].unique())).fillna(0.0)


def ndeval(qrels, run, names, **options):
    """The same of ndeval, for judgments of subtopics. It settles ties otherwise: it gets places instead of scores."""
    evaluator = pyndeval.RelevanceEvaluator(
        list(qrels[["qid", "iteration", "docno", "label"]].itertuples(index=False, name=None)), list(names), **options
    )
    placed = vbterrier.frames.ranked(run)
    rows = zip(placed["qid"], placed["docno"], (-placed["rank"].astype(float)).tolist(), strict=True)
    result = evaluator.evaluate(list(rows))
    return pd.DataFrame.from_dict(result, orient="index").reindex(sorted(qrels["qid"].unique())).fillna(0.0)


def scored(run, qrels, measures, **options):
    """A row a topic, a column a measure, of this package."""
    how = {"data": Data(on_topics="all"), "inference": Inference(n_resamples=2)}
    values = vbterrier.score(run, qrels, measures, **how, **options).values
    return values.pivot(index="qid", columns="measure", values="value").sort_index()


def largest_difference(ours, theirs):
    """Between two tables of the same topics, column by column in their order."""
    assert list(ours.index) == list(theirs.index)
    assert ours.shape[1] == theirs.shape[1]
    return np.abs(ours.to_numpy() - theirs.to_numpy()).max()


def _chosen(rng, n_topics, n_docs, most):
    """Pairs of topic and document, each topic with a share of its own of the documents; never none."""
    taken = rng.random((n_topics, n_docs)) < rng.uniform(0, most, (n_topics, 1))
    taken[np.arange(n_topics), rng.integers(n_docs, size=n_topics)] = True
    topic, document = np.nonzero(taken)
    # Ids whose order as text is not that of their numbers.
    return pd.DataFrame({"qid": [f"q{t}" for t in topic], "docno": [f"d{d}" for d in document]})


def adhoc_of(seed):
    """Unjudged documents, ties, lists of 1 to 30, topics without a relevant document or a list, labels from -1 to 3."""
    rng = np.random.default_rng(seed)
    qrels = _chosen(rng, N_TOPICS, 30, 1.0)
    qrels["label"] = rng.choice([-1, 0, 0, 1, 2, 3], len(qrels))
    run = _chosen(rng, N_TOPICS, 30, 1.0)
    run["score"] = rng.choice(SCORES, len(run))
    run = run[~run["qid"].isin([f"q{t}" for t in range(0, N_TOPICS, 50)])]
    return SimpleNamespace(qrels=qrels, run=run.sample(frac=1, random_state=seed).reset_index(drop=True))


@pytest.fixture(scope="session")
def adhoc():
    """2,000 random topics."""
    return adhoc_of(1)


@pytest.fixture(scope="session")
def diverse():
    """1,000 random topics with 1 to 6 subtopics, some of which no document covers."""
    rng = np.random.default_rng(2)
    pairs = _chosen(rng, N_DIVERSE, 25, 1.0)
    qrels = pairs.merge(pd.DataFrame({"iteration": [str(i) for i in range(1, 7)]}), how="cross")
    last = qrels["qid"].str[1:].astype(int) % 6 + 1
    qrels = qrels[qrels["iteration"].astype(int) <= last]
    qrels = qrels.assign(label=rng.choice([-2, 0, 0, 0, 1, 2], len(qrels))).sample(frac=1, random_state=2)
    run = _chosen(rng, N_DIVERSE, 30, 0.8)
    run["score"] = rng.choice(SCORES, len(run))
    return SimpleNamespace(qrels=qrels.reset_index(drop=True), run=run)


@pytest.fixture(scope="session")
def covid(shared_data):
    """TREC-COVID: two runs, and the judgments before and after they were completed."""
    folder = shared_data / "trec-covid"
    return SimpleNamespace(
        runs=[vbterrier.read_run(folder / f"run.{name}.top100.txt.gz") for name in ("ance", "BBGhelani2")],
        qrels=[vbterrier.read_qrels(folder / f"qrels.{name}.txt.gz") for name in ("incomplete", "complete")],
    )


@pytest.fixture(scope="session", params=[*map(at_night, WEB[:-1]), WEB[-1]], ids=lambda case: "-".join(map(str, case)))
def web(request, shared_data):
    """Each run of the TREC Web tracks, with its judgments of subtopics."""
    year, name = request.param
    folder = shared_data / "trec_web_diversity"
    return SimpleNamespace(
        qrels=vbterrier.read_qrels(folder / f"qrels.{year}.diversity.gz"),
        run=vbterrier.read_run(folder / "runs" / f"{name}.{year}.run.gz"),
    )


@pytest.fixture(scope="session")
def peers():
    """The programs, and this package, as functions of frames."""
    return SimpleNamespace(
        trec_eval=trec_eval, ndeval=ndeval, scored=scored, largest_difference=largest_difference, adhoc_of=adhoc_of
    )
