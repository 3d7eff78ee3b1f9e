"""Folds, and judgments that must not reach the scores of their own topics, for each trained stage alone and stacked."""

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from night import at_night, slow
from pandas.testing import assert_frame_equal
from sklearn.model_selection import KFold
from words import encoder, linked_collection

from vbterrier.entities import (
    ConsensusEntities,
    EntitySelector,
    HybridEntities,
    LocalIDF,
    NeuralEntityRanker,
    NeuralReranker,
    OERFilter,
    OverlapReranker,
    Training,
    closed_entities,
    cross_validated,
    entity_labels,
    link_pool,
)
from vbterrier.entities.cross_validation import Folds
from vbterrier.entities.neural.models import MODELS
from vbterrier.entities.provenance import with_strongest_mark
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

pytest.importorskip("lightgbm")
pytestmark = [
    pytest.mark.usefixtures("neural"),
    # Few topics are enough to see whether judgments matter.
    pytest.mark.filterwarnings("ignore:nothing learned from:vbterrier.errors.DegenerateWarning"),
]
FOLDS = KFold(4, shuffle=True, random_state=1)


@cache
def data():
    made = linked_collection(n_topics=16, n_documents=20, n_relevant=6)
    test = set(next(iter(Folds(FOLDS, made.run["qid"].unique(), 0))).test)
    tested = made.qrels["qid"].isin(test)
    flipped = made.qrels.assign(label=np.where(tested, 1 - made.qrels["label"], made.qrels["label"]))
    return SimpleNamespace(**vars(made), flipped=flipped, test=test)


def selector(**options):
    return EntitySelector(data().links, rounds=5, parameters={"min_data_in_leaf": 2}, **options)


def ranker():
    return NeuralEntityRanker(data().links, layers=0, training=Training(epochs=1))


def reranker(entities, model="duet", **training):
    training = Training(epochs=2, **training)
    return NeuralReranker(data().links, entities, model=model, encoder=encoder, training=training)


def consensus():
    return ConsensusEntities(data().links, min_documents=1, cutoff=10)


PIPELINES = {
    "selector": lambda: consensus() >> selector(),
    "entity ranker": lambda: consensus() >> ranker() >> LocalIDF(data().links),
    **{f"reranker {model}": lambda model=model: reranker(consensus(), model) for model in MODELS},
    "reranker of selected entities": lambda: reranker(consensus() >> selector()),
    "unsupervised reranker of selected entities": lambda: OverlapReranker(
        data().links, consensus() >> selector(), entity_weight="rank"
    ),
    "selector after selector": lambda: consensus() >> selector() >> selector(seed=1),
    "reranker after reranker": lambda: reranker(consensus(), "knrm") >> reranker(consensus()),
    "reranker of selected entities after reranker": lambda: (
        reranker(consensus(), "knrm") >> reranker(consensus() >> selector() % 5)
    ),
    "fusion with a selector": lambda: HybridEntities([consensus(), consensus() >> selector()]),
    "reranker of a fusion with a selector": lambda: reranker(
        HybridEntities([consensus(), consensus() >> selector()], cutoff=10)
    ),
    "selector after entity ranker": lambda: consensus() >> ranker() >> selector(),
    "reranker of ranked entities": lambda: reranker(consensus() >> ranker()),
}
# Cases that others contain, or that take seconds.
SLOW = {f"reranker {model}" for model in MODELS if model not in {"duet", "dreq"}}
SLOW |= {"entity ranker", "selector after selector", "reranker after reranker", "selector after entity ranker"}
SLOW |= {"reranker of ranked entities", "reranker of selected entities", "reranker of a fusion with a selector"}
# The longest one, in which every kind of stage is fitted in the folds of another.
DEEPEST = "reranker of selected entities after reranker"


@pytest.mark.parametrize(
    "name", [at_night(name) if name in SLOW else slow(name) if name == DEEPEST else name for name in PIPELINES]
)
@pytest.mark.slow
def test_flipped_judgments_of_test_topics_change_no_score_of_these(name):
    inputs = data()
    pipeline = PIPELINES[name]()
    before, after = (
        cross_validated(pipeline, inputs.run, qrels, folds=FOLDS) for qrels in (inputs.qrels, inputs.flipped)
    )
    assert set(before["qid"]) == set(inputs.run["qid"])
    tested, others = (
        [frame[frame["qid"].isin(inputs.test) == is_test] for frame in (before, after)] for is_test in (1, 0)
    )
    assert_frame_equal(*tested, check_exact=True)
    # They are training topics elsewhere, so that the test can fail.
    assert not np.array_equal(others[0]["score"], others[1]["score"])
    assert before["judgments"].unique().tolist() == ["cross-validated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["selector", "entity ranker"])
def test_flipped_labels_of_entities_change_no_score_of_their_topics(name):
    inputs = data()
    labels = [entity_labels(link_pool(inputs.run, inputs.tags, qrels)) for qrels in (inputs.qrels, inputs.flipped)]
    # All entities, so that most topics have positive and negative ones.
    every = ConsensusEntities(inputs.links, min_documents=1)
    stages = {
        "selector": lambda supervision: selector(supervision=supervision),
        "entity ranker": lambda supervision: NeuralEntityRanker(
            inputs.links, supervision=supervision, layers=0, training=Training(epochs=1, patience=np.inf)
        ),
    }
    before, after = (
        cross_validated(every >> stages[name](label.dropna(subset="label")), inputs.run, None, folds=FOLDS)
        for label in labels
    )
    tested, others = (
        [frame[frame["qid"].isin(inputs.test) == is_test] for frame in (before, after)] for is_test in (1, 0)
    )
    assert_frame_equal(*tested, check_exact=True)
    assert not np.array_equal(others[0]["score"], others[1]["score"])


@pytest.mark.parametrize("name", ["selector", slow("reranker duet"), slow("reranker of selected entities")])
def test_the_method_of_a_stage_is_the_function(name):
    inputs = data()
    stage = PIPELINES[name]()
    if isinstance(stage, pt.Compose):
        run, stage = stage[0](inputs.run), stage[1]
    else:
        run = inputs.run
    result = stage.cross_validated(run, inputs.qrels, folds=FOLDS)
    assert_frame_equal(result, cross_validated(stage, run, inputs.qrels, folds=FOLDS), check_exact=True)


@pytest.mark.slow
def test_every_fold_has_a_model_of_its_own_and_the_pipeline_remains_as_it_is():
    inputs = data()
    pipeline = reranker(consensus() >> selector())
    result = cross_validated(pipeline, inputs.run, inputs.qrels, folds=FOLDS)
    with pytest.raises(InputError, match="is not fitted"):
        pipeline(inputs.run)
    assert result["qid"].drop_duplicates().tolist() == inputs.run["qid"].drop_duplicates().tolist()
    # By hand: the entities of each training topic are those of a selector that has not seen it.
    for fold in list(Folds(FOLDS, inputs.run["qid"].unique(), 0))[:2]:
        parts = [inputs.run[inputs.run["qid"].isin(part)] for part in (fold.training, fold.validation, fold.test)]
        inner = KFold(5, shuffle=True, random_state=0)
        runs = [consensus()(part) for part in parts]
        chosen = selector().fit(runs[0], inputs.qrels, runs[1], inputs.qrels)
        runs[0] = selector().cross_validated(runs[0], inputs.qrels, folds=inner)
        runs[1:] = [chosen(run) for run in runs[1:]]
        entities = pd.concat(runs, ignore_index=True).drop(columns="judgments")
        fitted = reranker(entities).fit(parts[0], inputs.qrels, parts[1], inputs.qrels)
        expected = fitted(parts[2]).drop(columns="judgments")
        rows = result[result["qid"].isin(fold.test)].drop(columns="judgments").reset_index(drop=True)
        assert_frame_equal(rows, expected, check_exact=True)


# Provenance


def test_runs_that_depend_on_judgments_are_refused_or_reported():
    inputs = data()
    entities = consensus()(inputs.run)
    crossed = selector().cross_validated(entities, inputs.qrels, folds=FOLDS)
    message = (
        r"column 'judgments' says that the rankings of 16 topics \(.*\) are cross-validated.*fitted again in each fold"
    )
    documents = reranker(consensus(), "knrm").cross_validated(inputs.run, inputs.qrels, folds=FOLDS)
    for learner, run in (
        (reranker(crossed), inputs.run),
        (reranker(consensus()), documents),
        (selector(), crossed),
        (ranker(), crossed),
        # Fused, filtered and random entities carry it on, as do reranked documents.
        (reranker(HybridEntities([consensus(), pt.Transformer.from_df(crossed, uniform=True)])), inputs.run),
        (reranker(consensus()), OverlapReranker(inputs.links, crossed)(inputs.run)),
        (selector(), ConsensusEntities(inputs.tags)(documents)),
    ):
        with pytest.raises(InputError, match=message):
            learner.cross_validated(run, inputs.qrels)
    with pytest.warns(DegenerateWarning, match="would change its own scores if they include test topics"):
        reranker(crossed).fit(inputs.run, inputs.qrels)
    fitted = selector().fit(entities, inputs.qrels)(entities)
    assert set(fitted["judgments"]) == {"own topic"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closed = closed_entities(link_pool(inputs.run, inputs.tags, inputs.qrels), entities)
        filtered = OERFilter(link_pool(inputs.run, inputs.tags, inputs.qrels))(entities)
    for run in (fitted, closed, filtered):
        with pytest.warns(DegenerateWarning, match="entities: .* depend on judgments of the same topics"):
            reranker(run).cross_validated(inputs.run, inputs.qrels, folds=FOLDS)


def test_a_ranker_of_other_topics_is_no_leak():
    inputs = data()
    rows = inputs.run["qid"].isin(inputs.test)
    other, tested = inputs.run[~rows], inputs.run[rows]
    entities = (consensus() >> selector().fit(consensus()(other), inputs.qrels))(tested)
    assert set(entities["judgments"]) == {"other topics"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reranker(entities, patience=np.inf).cross_validated(tested, inputs.qrels, folds=KFold(2))


def test_the_strongest_provenance_of_a_topic_is_carried_on():
    frames = [pd.DataFrame({"qid": [1, 1, 2], "judgments": values}) for values in (["other topics", None, None],)]
    frames.append(pd.DataFrame({"qid": ["1"], "judgments": ["own topic"]}))
    made = with_strongest_mark(pd.DataFrame({"qid": [1, 2, 3]}), *frames)
    assert made["judgments"].fillna("").tolist() == ["own topic", "", ""]


def test_a_trained_reranker_takes_other_entities():
    inputs = data()
    learner = reranker(consensus() >> selector()).fit(inputs.run, inputs.qrels)
    frozen = learner.with_entities(consensus())
    assert_frame_equal(frozen.with_entities(learner.entities)(inputs.run), learner(inputs.run), check_exact=True)
    assert not np.array_equal(frozen(inputs.run)["score"], learner(inputs.run)["score"])
    assert frozen.n_parameters == learner.n_parameters > 0


# Folds


def test_given_folds_and_those_of_scikit_learn():
    topics = [f"q{at}" for at in range(10)]
    equal = Folds(KFold(5, shuffle=True, random_state=0), topics, 0)
    assert sorted(len(fold.test) for fold in equal) == [2] * 5
    assert [fold.validation for fold in equal] == [*equal.parts[1:], equal.parts[0]]
    lists = [topics[::2], topics[1::2]]
    mapping = {topic: "ab"[at % 2] for at, topic in enumerate(topics)}
    for folds in (lists, mapping):
        assert [fold.test for fold in Folds(folds, topics, 0)] == [set(part) for part in lists]
    assert all(not fold.validation for fold in Folds(lists, topics, 0))
    # Topics of the division that a run lacks do not matter.
    assert [len(fold.test) for fold in Folds(lists, topics[:4], 0)] == [2, 2]
    hashed = Folds(5, topics, 0)
    assert [fold.test for fold in hashed] == [fold.test for fold in Folds(5, topics[::-1], 0)]


def test_a_splitter_that_cannot_split_the_topics_is_refused():
    with pytest.raises(ParameterError, match="cannot split 3 topics: Cannot have number of splits"):
        list(Folds(KFold(5), ["q0", "q1", "q2"], 0))


def test_few_topics_and_other_stages_are_refused():
    inputs = data()
    some = inputs.run[inputs.run["qid"].isin(inputs.run["qid"].unique()[:2])]
    with pytest.raises(InputError, match="1 training topics are too few for estimators in a sequence"):
        reranker(consensus() >> selector()).cross_validated(some, inputs.qrels, folds=KFold(2))

    class Cache(pt.Transformer):
        def __init__(self, scorer):
            self.scorer = scorer

        def transform(self, inp):
            return self.scorer(inp)

    with pytest.raises(InputError, match="Cache contains an estimator and cannot be copied"):
        cross_validated(consensus() >> Cache(selector()), inputs.run, inputs.qrels)
