"""Rerankers that are trained once: equal to single calls, and no judgment of a test topic reaches its scores."""

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.model_selection import KFold
from words import encoder, linked

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
    made = linked(n_topics=16, n_documents=20, n_relevant=6)
    every = ConsensusEntities(made.links, min_documents=1, cutoff=10)
    entities = {"open": every, "random": RandomEntities(seed=1)(every(made.run))}
    return SimpleNamespace(**vars(made), pool=made.run, entities=entities, every=every)


def reranker(entities, **options):
    options |= {"encoder": encoder, "training": Training(epochs=2)}
    return NeuralReranker(data().links, entities, model="duet", cutoff=CUTOFF, **options)


def selector():
    return data().every >> EntitySelector(data().links, rounds=5, parameters={"min_data_in_leaf": 2})


def evaluated(own, qrels=None, **options):
    given = data()
    options = {
        "entities": given.entities,
        "folds": FOLDS,
        "options": ReachOptions(cutoff=CUTOFF),
        "inference": Inference(n_resamples=50),
    } | options
    return evaluate_frozen(
        given.pool,
        given.qrels if qrels is None else qrels,
        ["AP"],
        reranker=reranker(own),
        **options,
    )


@cache
def crossed():
    return evaluated(selector())


def test_each_fold_is_a_reranker_that_is_fitted_once_and_frozen():
    given, found = data(), crossed()
    fold = next(iter(Folds(FOLDS, given.pool["qid"].unique(), 0)))
    training, checked, test = (
        given.pool[given.pool["qid"].isin(part)] for part in (fold.training, fold.validation, fold.test)
    )
    # The entities of the training: each topic by a selector of other training topics.
    own = selector()
    first = own[-1].cross_validated(given.every(training), given.qrels, folds=KFold(5, shuffle=True, random_state=0))
    own[-1].fit(given.every(training), given.qrels, given.every(checked), given.qrels)
    entities = pd.concat([first, own(checked)]).drop(columns="judgments")
    reach = EntityReachable(given.links, entities, cutoff=CUTOFF)
    model = reranker(entities).fit(reach(training), given.qrels, reach(checked), given.qrels)
    for name, ranker in {"training": own, "open": given.every}.items():
        frozen = model.with_entities(ranker)
        ours = found.runs[name][found.runs[name]["qid"].isin(fold.test)].reset_index(drop=True)
        expected = frozen(test)
        assert_frame_equal(ours, expected[ours.columns], check_exact=True)
        # The gap is that of single calls on the reachable documents and on all.
        assert len(found.entity_runs[name].query("qid in @fold.test")) == len(ranker(test))
    assert found.runs["open"]["qid"].nunique() == 16


def test_gaps_are_those_of_scores():
    given, found = data(), crossed()
    table = found.gaps.set_index(["name", "entities"])
    assert table.index.tolist() == [(name, e) for e in ("training", "open", "random") for name in ("reranker", "pool")]
    own = found.entity_runs["random"]
    reach = EntityReachable(given.links, own, cutoff=CUTOFF)
    reached = given.qrels.merge(reach(given.pool)[["qid", "docno"]])
    known = reached[reached["label"] > 0]["qid"].unique()
    within = reached[reached["qid"].isin(known)]
    conditional = vbterrier.score({"pool": reach(given.pool)}, within, ["AP"]).values.set_index("qid")["value"]
    opened = vbterrier.score({"pool": given.pool}, given.qrels, ["AP"]).values.set_index("qid")["value"].loc[known]
    row = table.loc[("pool", "random")]
    assert row[["conditional", "open_world", "n_qids"]].tolist() == pytest.approx(
        [conditional.loc[known].mean(), opened.mean(), len(known)]
    )
    assert row["gap"] == pytest.approx(conditional.loc[known].mean() - opened.mean())
    documents = found.report.documents.set_index("name")["value"]
    for name, run in {**found.runs, "pool": given.pool}.items():
        means = vbterrier.score({"it": run}, given.qrels, ["AP"]).means()
        assert documents[name] == pytest.approx(means.loc["it", "AP"])
    printed = str(found)
    for title in ("Conditional minus open world", "Differences a - b, open world", "By the coverage of training"):
        assert title in printed


def average_precision(run, relevant):
    """AP of a ranking: by score, ties by docno, both descending; precision at each relevant document."""
    ordered = run.assign(score=run["score"].astype(np.float32)).sort_values(["score", "docno"], ascending=False)
    hits = np.isin(ordered["docno"], list(relevant))
    return (np.cumsum(hits)[hits] / (np.flatnonzero(hits) + 1)).sum() / len(relevant)


def test_gaps_of_the_reranker_equal_a_loop_over_folds_and_topics():
    given = data()
    found = evaluated(given.every).gaps.set_index(["name", "entities"])
    relevant = given.qrels[given.qrels["label"] > 0].groupby("qid")["docno"].agg(set)
    mentioned = given.links.to_frame().groupby("entity_id")["docno"].agg(set)
    values = {"training": [], "random": []}

    def reached(rows, entities):
        """The documents that mention one of the first entities of their topic."""
        own = entities[entities["rank"] < CUTOFF].groupby("qid")["docno"].agg(list)
        is_reached = [any(d in mentioned[e] for e in own.get(q, [])) for q, d in rows[["qid", "docno"]].to_numpy()]
        return rows[is_reached].reset_index(drop=True)

    for fold in Folds(FOLDS, given.pool["qid"].unique(), 0):
        training, checked, test = (
            given.pool[given.pool["qid"].isin(part)] for part in (fold.training, fold.validation, fold.test)
        )
        entities = pd.concat([given.every(training), given.every(checked)], ignore_index=True)
        model = reranker(entities)
        model.fit(reached(training, entities), given.qrels, reached(checked, entities), given.qrels)
        random = given.entities["random"]
        for name, own in (("training", given.every(test)), ("random", random[random["qid"].isin(fold.test)])):
            frozen = model.with_entities(own)
            within = reached(test, own)
            runs = frozen(within), frozen(test)
            for qid in fold.test:
                known = relevant[qid] & set(within.loc[within["qid"] == qid, "docno"])
                if known:
                    wanted = known, relevant[qid]
                    pairs = zip(runs, wanted, strict=True)
                    values[name].append([average_precision(run[run["qid"] == qid], of) for run, of in pairs])
    for name, pairs in values.items():
        conditional, opened = np.mean(pairs, axis=0)
        row = found.loc["reranker", name]
        assert row[["conditional", "open_world", "gap", "n_qids"]].tolist() == pytest.approx(
            [conditional, opened, conditional - opened, len(pairs)]
        )


def test_flipped_judgments_of_test_topics_change_no_score_of_these():
    given, before = data(), crossed()
    test = next(iter(Folds(FOLDS, given.pool["qid"].unique(), 0))).test
    label = given.qrels["label"]
    flipped = given.qrels.assign(label=np.where(given.qrels["qid"].isin(test), 1 - label, label))
    after = evaluated(selector(), flipped)
    for name, run in before.runs.items():
        rows, other = run["qid"].isin(test), after.runs[name]
        assert_frame_equal(other[rows], run[rows], check_exact=True)
        assert not other["score"].equals(run["score"])


def test_runs_of_other_rerankers_are_compared_in_the_open_world():
    given = data()
    reversed_pool = given.pool.assign(score=-given.pool["score"])[["qid", "docno", "score"]]
    found = evaluated(
        selector(), runs={"reversed": reversed_pool}, options=ReachOptions(cutoff=CUTOFF, train_on="open-world")
    )
    assert found.report.documents["name"].tolist() == ["pool", "training", "open", "random", "reversed"]
    table = found.comparisons.set_index("name_a")
    assert set(table["name_b"]) == {"pool"}
    ap = vbterrier.score({"a": reversed_pool, "b": given.pool}, given.qrels, ["AP"]).means()["AP"]
    assert table.loc["reversed", "diff"] == pytest.approx(ap["a"] - ap["b"])
    # The pools of the training differ.
    assert not found.runs["open"]["score"].equals(crossed().runs["open"]["score"])
    assert repr(found) == "FrozenReranker(3 entity runs; AP; 16 topics)"


def test_candidates_from_labels_are_reported_and_cross_validated_ones_refused():
    given = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closed = closed_entities(link_pool(given.pool, given.tags, given.qrels), given.every(given.pool), balanced=True)
    with pytest.warns(DegenerateWarning, match="entities of the reranker: .* depend on judgments of the same topics"):
        found = evaluated(closed)
    gaps = found.gaps.set_index(["name", "entities"])["gap"]
    # The candidates carry the judgments, for the pool as for the reranker.
    assert gaps["pool", "training"] > gaps["pool", "open"] + 0.05
    trained = selector()[-1].cross_validated(given.every(given.pool), given.qrels, folds=FOLDS)
    with pytest.raises(InputError, match=r"entities of the reranker: .* are cross-validated"):
        evaluated(trained)
    # They are no leak where the frozen reranker is only applied to them.
    assert "trained" in evaluated(given.every, entities={"trained": trained}).runs


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
    given = data()
    for entities in (given.every, selector()):
        with pytest.raises(ParameterError, match="wanted a trained stage with entities, such as NeuralReranker"):
            evaluate_frozen(given.pool, given.qrels, reranker=OverlapReranker(given.links, entities), entities={})
