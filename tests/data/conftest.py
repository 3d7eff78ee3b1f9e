"""What tests on real collections share: files, and the measures as their papers print them."""

import math
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from aida import aida as read_aida
from aida import json_lines

import vbterrier

ALPHA = 0.5  # of the diversity measures; their default, and the TREC Web tracks'


def rankings(run):
    """The documents of each query, best first: scores as float32, ties by falling docno, as trec_eval has it."""
    keyed = run.assign(score=run["score"].astype("float32")).sort_values(["score", "docno"], ascending=False)
    return {qid: group["docno"].tolist() for qid, group in keyed.groupby("qid", sort=False)}


def about(tags, qids):
    """Entities of documents: query -> docno -> set of entities; tags without a query count for all queries."""
    result = defaultdict(lambda: defaultdict(set))
    for row in tags.itertuples():
        result[getattr(row, "qid", None)][row.docno].add(row.entity_id)
    return result if "qid" in tags.columns else dict.fromkeys(qids, result[None])


def success(ranking, intents, entities, k):
    """``ES@k``, and what is left to 1: the probability of the intents that one, or none, of the first k is about."""
    seen = set().union(*(entities.get(docno, ()) for docno in ranking[:k]))
    return [math.fsum(prob for intent, prob in intents.items() if (intent in seen) is met) for met in (True, False)]


def vb(es, failure, alpha):
    """``VB_α = ES - α sqrt(ES (1 - ES))``; 1 - ES is summed for itself, for its root does not forgive rounding."""
    return es - alpha * math.sqrt(es * failure)


def novelty(documents, entities):
    """The gain of each document: ``(1 - α)`` to the times that each of its subtopics was seen before."""
    seen, result = Counter(), []
    for docno in documents:
        result.append(sum((1 - ALPHA) ** seen[topic] for topic in entities.get(docno, ())))
        seen.update(entities.get(docno, ()))
    return result


def alpha_dcg(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def ideal_ranking(entities, k):
    """The ranking that α-DCG is divided by: greedy (Clarke et al. 2008), of equal gains the larger docno first."""
    alike = defaultdict(list)
    for docno in sorted((docno for docno in entities if entities[docno]), reverse=True):
        alike[frozenset(entities[docno])].append(docno)
    # Of documents about the same, no more than k are ever taken.
    left, ideal = [docno for documents in alike.values() for docno in documents[:k]], []
    while left and len(ideal) < k:
        seen = Counter(topic for docno in ideal for topic in entities[docno])
        ideal.append(max(left, key=lambda docno: (sum((1 - ALPHA) ** seen[topic] for topic in entities[docno]), docno)))
        left.remove(ideal[-1])
    return ideal


def alpha_ndcg(ranking, ideal, entities, k):
    """α-nDCG@k (Clarke et al. 2008)."""
    best = alpha_dcg(novelty(ideal, entities))
    return alpha_dcg(novelty(ranking[:k], entities)) / best if best else 0.0


def err_ia(ranking, entities, k):
    """ERR-IA@k (Chapelle et al. 2009) as ndeval prints it: over a ranking whose documents have all subtopics."""
    n_subtopics = len(set().union(*entities.values())) if entities else 0
    ideal = sum(n_subtopics * (1 - ALPHA) ** (rank - 1) / rank for rank in range(1, k + 1))
    result = sum(gain / rank for rank, gain in enumerate(novelty(ranking[:k], entities), 1))
    return result / ideal if ideal else 0.0


def st_recall(ranking, entities, k):
    """Share of the subtopics that have any relevant document that the first k documents hold."""
    ids = set().union(*entities.values())
    result = set().union(*(entities.get(docno, ()) for docno in ranking[:k]))
    return len(result) / len(ids) if ids else 0.0


def expected(runs, intents, tags, cutoffs, alphas=(1.0,)):
    """V frame of plain loops, for every query with intents: ES and VB at the cutoffs."""
    rows = []
    for name, run in runs.items():
        ranked = rankings(run)
        entities = about(tags, ranked)
        for qid, group in intents.groupby("qid", sort=False):
            probs = dict(zip(group["entity_id"], group["prob"], strict=True))
            for k in cutoffs:
                es, failure = success(ranked.get(qid, []), probs, entities.get(qid, {}), k)
                rows.append((name, qid, f"ES@{k}", es))
                rows += [(name, qid, str(vbterrier.VB(alpha=alpha) @ k), vb(es, failure, alpha)) for alpha in alphas]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def expected_diversity(runs, tags, qids, k):
    """V frame of plain loops: the diversity measures at a cutoff; queries without relevant documents score 0."""
    entities, rows = about(tags, qids), []
    ranked = {name: rankings(run) for name, run in runs.items()}
    for qid in qids:
        ideal = ideal_ranking(entities[qid], k)
        for name in runs:
            ranking = ranked[name].get(qid, [])
            results = {
                "alpha_nDCG": alpha_ndcg(ranking, ideal, entities[qid], k),
                "ERR_IA": err_ia(ranking, entities[qid], k),
                "StRecall": st_recall(ranking, entities[qid], k),
            }
            rows += [(name, qid, f"{measure}@{k}", value) for measure, value in results.items()]
    return pd.DataFrame(rows, columns=["name", "qid", "measure", "value"])


def assert_values(values, reference, *, tolerance=1e-9):
    """That two V frames hold the same systems, queries, measures and numbers."""
    ours, theirs = (frame.set_index(["name", "qid", "measure"])["value"].sort_index() for frame in (values, reference))
    assert not ours.index.has_duplicates
    assert ours.index.tolist() == theirs.index.tolist()
    np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), rtol=0, atol=tolerance)


@pytest.fixture(scope="session")
def textbook():
    """The measures by plain loops, and JSON lines."""
    functions = {"expected": expected, "expected_diversity": expected_diversity, "json_lines": json_lines}
    return SimpleNamespace(assert_values=assert_values, **functions)


@pytest.fixture(scope="session")
def aida(shared_data):
    return read_aida(shared_data)
