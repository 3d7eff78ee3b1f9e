"""Rerankers that are trained once: equal to single calls, and no judgment of a test topic reaches its scores."""

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.model_selection import KFold
from words import encoder, linked_collection

import vbterrier
from vbterrier.entities import (
    ConsensusEntities,
    EntityReachable,
    EntitySelector,
    NeuralReranker,
    OverlapReranker,
    RandomEntities,
    Training,
    closed_entities,
    link_pool,
)
from vbterrier.entities.cross_validation import Folds
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.evaluate import evaluate_frozen
from vbterrier.evaluate.settings import ReachOptions
from vbterrier.settings import Inference

pytest.importorskip("lightgbm")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("neural"),
    # Few topics, whose entities are drawn at random.
    pytest.mark.filterwarnings("ignore:.*(nothing learned|reachable one|is in stratum|no interval|same score)"),
]
FOLDS = KFold(4, shuffle=True, random_state=1)
CUTOFF = 4


@cache
def data():
    made = linked_collection(n_topics=16, n_documents=20, n_relevant=6)
    every = ConsensusEntities(made.links, min_documents=1, cutoff=10)
    entities = {"open": every, "random": RandomEntities(seed=1)(every(made.run))}
    return SimpleNamespace(**vars(made), pool=made.run, entities=entities, every=every)


def reranker(entities, **options):
    options |= {"encoder": encoder, "training": Training(epochs=2)}
    return NeuralReranker(data().links, entities, model="duet", cutoff=CUTOFF, **options)


def selector():
    return data().every >> EntitySelector(data().links, rounds=5, parameters={"min_data_in_leaf": 2})


def evaluated(collection, qrels=None, **options):
    everything = data()
    options = {
        "entities": everything.entities,
        "folds": FOLDS,
        "options": ReachOptions(cutoff=CUTOFF),
        "inference": Inference(n_resamples=50),
    } | options
    return evaluate_frozen(
        everything.pool,
        everything.qrels if qrels is None else qrels,
        ["AP"],
        reranker=reranker(collection),
        **options,
    )


@cache
def crossed():
    return evaluated(selector())


def test_each_fold_is_a_reranker_that_is_fitted_once_and_frozen():
    collection, result = data(), crossed()
    fold = next(iter(Folds(FOLDS, collection.pool["qid"].unique(), 0)))
    training, checked, test = (
        collection.pool[collection.pool["qid"].isin(part)] for part in (fold.training, fold.validation, fold.test)
    )
    # The entities of the training: each topic by a selector of other training topics.
    alone = selector()
    first = alone[-1].cross_validated(
        collection.every(training), collection.qrels, folds=KFold(5, shuffle=True, random_state=0)
    )
    alone[-1].fit(collection.every(training), collection.qrels, collection.every(checked), collection.qrels)
    entities = pd.concat([first, alone(checked)]).drop(columns="judgments")
    reach = EntityReachable(collection.links, entities, cutoff=CUTOFF)
    model = reranker(entities).fit(reach(training), collection.qrels, reach(checked), collection.qrels)
    for name, ranker in {"training": alone, "open": collection.every}.items():
        frozen = model.with_entities(ranker)
        ours = result.runs[name][result.runs[name]["qid"].isin(fold.test)].reset_index(drop=True)
        expected = frozen(test)
        assert_frame_equal(ours, expected[ours.columns], check_exact=True)
        # The gap is that of single calls on the reachable documents and on all.
        assert len(result.entity_runs[name].query("qid in @fold.test")) == len(ranker(test))
    assert result.runs["open"]["qid"].nunique() == 16


def test_gaps_are_those_of_scores():
    collection, result = data(), crossed()
    table = result.gaps.set_index(["name", "entities"])
    assert table.index.tolist() == [(name, e) for e in ("training", "open", "random") for name in ("reranker", "pool")]
    random = result.entity_runs["random"]
    reach = EntityReachable(collection.links, random, cutoff=CUTOFF)
    reached = collection.qrels.merge(reach(collection.pool)[["qid", "docno"]])
    topics = reached[reached["label"] > 0]["qid"].unique()
    within = reached[reached["qid"].isin(topics)]
    conditional = vbterrier.score({"pool": reach(collection.pool)}, within, ["AP"]).values.set_index("qid")["value"]
    opened = (
        vbterrier.score({"pool": collection.pool}, collection.qrels, ["AP"])
        .values.set_index("qid")["value"]
        .loc[topics]
    )
    row = table.loc[("pool", "random")]
    assert row[["conditional", "open_world", "n_qids"]].tolist() == pytest.approx(
        [conditional.loc[topics].mean(), opened.mean(), len(topics)]
    )
    assert row["gap"] == pytest.approx(conditional.loc[topics].mean() - opened.mean())
    documents = result.report.documents.set_index("name")["value"]
    for name, run in {**result.runs, "pool": collection.pool}.items():
        means = vbterrier.score({"it": run}, collection.qrels, ["AP"]).means()
        assert documents[name] == pytest.approx(means.loc["it", "AP"])
    printed = str(result)
    for title in ("Conditional minus open world", "Differences a - b, open world", "By the coverage of training"):
        assert title in printed


def average_precision(run, relevant):
    """AP of a ranking: by score, ties by docno, both descending; precision at each relevant document."""
    ordered = run.assign(score=run["score"].astype(np.float32)).sort_values(["score", "docno"], ascending=False)
    hits = np.isin(ordered["docno"], list(relevant))
    return (np.cumsum(hits)[hits] / (np.flatnonzero(hits) + 1)).sum() / len(relevant)


def test_gaps_of_the_reranker_equal_a_loop_over_folds_and_topics():
    collection = data()
    table = evaluated(collection.every).gaps.set_index(["name", "entities"])
    relevant = collection.qrels[collection.qrels["label"] > 0].groupby("qid")["docno"].agg(set)
    mentioned = collection.links.to_frame().groupby("entity_id")["docno"].agg(set)
    values = {"training": [], "random": []}

    def reached(rows, entities):
        """The documents that mention one of the first entities of their topic."""
        ids = entities[entities["rank"] < CUTOFF].groupby("qid")["docno"].agg(list)
        is_reached = [any(d in mentioned[e] for e in ids.get(q, [])) for q, d in rows[["qid", "docno"]].to_numpy()]
        return rows[is_reached].reset_index(drop=True)

    for fold in Folds(FOLDS, collection.pool["qid"].unique(), 0):
        training, checked, test = (
            collection.pool[collection.pool["qid"].isin(part)] for part in (fold.training, fold.validation, fold.test)
        )
        entities = pd.concat([collection.every(training), collection.every(checked)], ignore_index=True)
        model = reranker(entities)
        model.fit(reached(training, entities), collection.qrels, reached(checked, entities), collection.qrels)
        random = collection.entities["random"]
        for name, rows in (("training", collection.every(test)), ("random", random[random["qid"].isin(fold.test)])):
            frozen = model.with_entities(rows)
            within = reached(test, rows)
            runs = frozen(within), frozen(test)
            for qid in fold.test:
                reached_relevant = relevant[qid] & set(within.loc[within["qid"] == qid, "docno"])
                if reached_relevant:
                    kept = reached_relevant, relevant[qid]
                    pairs = zip(runs, kept, strict=True)
                    values[name].append([average_precision(run[run["qid"] == qid], of) for run, of in pairs])
    for name, pairs in values.items():
        conditional, opened = np.mean(pairs, axis=0)
        row = table.loc["reranker", name]
        assert row[["conditional", "open_world", "gap", "n_qids"]].tolist() == pytest.approx(
            [conditional, opened, conditional - opened, len(pairs)]
        )


def test_flipped_judgments_of_test_topics_change_no_score_of_these():
    collection, before = data(), crossed()
    test = next(iter(Folds(FOLDS, collection.pool["qid"].unique(), 0))).test
    label = collection.qrels["label"]
    flipped = collection.qrels.assign(label=np.where(collection.qrels["qid"].isin(test), 1 - label, label))
    after = evaluated(selector(), flipped)
    for name, run in before.runs.items():
        rows, other = run["qid"].isin(test), after.runs[name]
        assert_frame_equal(other[rows], run[rows], check_exact=True)
        assert not other["score"].equals(run["score"])


def test_runs_of_other_rerankers_are_compared_in_the_open_world():
    collection = data()
    reversed_pool = collection.pool.assign(score=-collection.pool["score"])[["qid", "docno", "score"]]
    result = evaluated(
        selector(), runs={"reversed": reversed_pool}, options=ReachOptions(cutoff=CUTOFF, train_on="open-world")
    )
    assert result.report.documents["name"].tolist() == ["pool", "training", "open", "random", "reversed"]
    table = result.comparisons.set_index("name_a")
    assert set(table["name_b"]) == {"pool"}
    ap = vbterrier.score({"a": reversed_pool, "b": collection.pool}, collection.qrels, ["AP"]).means()["AP"]
    assert table.loc["reversed", "diff"] == pytest.approx(ap["a"] - ap["b"])
    # The pools of the training differ.
    assert not result.runs["open"]["score"].equals(crossed().runs["open"]["score"])
    assert repr(result) == "FrozenReranker(3 entity runs; AP; 16 topics)"


def test_candidates_from_labels_are_reported_and_cross_validated_ones_refused():
    collection = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closed = closed_entities(
            link_pool(collection.pool, collection.tags, collection.qrels),
            collection.every(collection.pool),
            balanced=True,
        )
    with pytest.warns(DegenerateWarning, match="entities of the reranker: .* depend on judgments of the same topics"):
        result = evaluated(closed)
    gaps = result.gaps.set_index(["name", "entities"])["gap"]
    # The candidates carry the judgments, for the pool as for the reranker.
    assert gaps["pool", "training"] > gaps["pool", "open"] + 0.05
    trained = selector()[-1].cross_validated(collection.every(collection.pool), collection.qrels, folds=FOLDS)
    with pytest.raises(InputError, match=r"entities of the reranker: .* are cross-validated"):
        evaluated(trained)
    # They are no leak where the frozen reranker is only applied to them.
    assert "trained" in evaluated(collection.every, entities={"trained": trained}).runs


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"options": ReachOptions(train_on="closed")}, ParameterError, "train_on='closed'"),
        ({"entities": {"pool": None}}, ParameterError, "entities, runs: 'pool' occurs twice"),
        ({"runs": {"open": None}}, ParameterError, "entities, runs: 'open' occurs twice"),
        ({"folds": 40}, InputError, "16 topics are too few for 40 folds"),
        ({"qrels": pd.DataFrame({"qid": ["x"], "docno": "d", "label": 1})}, InputError, "pool: no topic is judged"),
    ],
)
def test_bad_input_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        evaluated(data().every, **options)


def test_untrained_rerankers_are_refused():
    collection = data()
    for entities in (collection.every, selector()):
        with pytest.raises(ParameterError, match="wanted a trained stage with entities, such as NeuralReranker"):
            evaluate_frozen(
                collection.pool, collection.qrels, reranker=OverlapReranker(collection.links, entities), entities={}
            )
