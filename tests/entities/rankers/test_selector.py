from itertools import product

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from ir_measures import AP
from pandas.testing import assert_frame_equal

from vbterrier.entities.cross_validation import fold_number
from vbterrier.entities.pool import link_pool
from vbterrier.entities.rankers.base import RunOnPool
from vbterrier.entities.rankers.consensus import ConsensusEntities
from vbterrier.entities.rankers.selector import FEATURES, EntitySelector, feature_table, refuse_copies
from vbterrier.entities.supervision import entity_labels
from vbterrier.errors import DegenerateWarning, InputError, ParameterError
from vbterrier.frames.linked_pool import LinkedPool

pytest.importorskip("lightgbm")


def planted(seed=0, topics=40):
    """Documents of two kinds with distinct entities; relevant documents mention entities named as the query."""
    rng = np.random.default_rng(seed)
    rows = []
    for q, d in product(range(topics), range(20)):
        relevant = d % 2
        for e in rng.choice(8, 3, replace=False):
            name = f"Fuel_{q}_r{e}" if relevant else f"Other_n{e}"
            rows.append((f"q{q}", f"d{q}.{d}", -float(rng.random()), name, relevant))
    links = pd.DataFrame(rows, columns=["qid", "docno", "score", "entity_id", "label"])
    run = links.groupby(["qid", "docno"], as_index=False, sort=False)["score"].first()
    qrels = links[["qid", "docno", "label"]].drop_duplicates(ignore_index=True)
    pool = link_pool(run, links[["docno", "entity_id"]])
    topics_of = pd.DataFrame({"qid": run["qid"].unique()})
    topics_of["query"] = ["fuel " + qid[1:] for qid in topics_of["qid"]]
    # Entities of relevant documents are named after the query in their own topic alone.
    return pool, ConsensusEntities(pool, min_documents=1)(topics_of), qrels, links


def labels_of(run, links):
    """The label of each row of an entity run."""
    label = links.groupby(["qid", "entity_id"])["label"].first()
    return label[pd.MultiIndex.from_frame(run[["qid", "docno"]])].to_numpy()


def entity_qrels(links):
    return links[["qid", "entity_id", "label"]].drop_duplicates().rename(columns={"entity_id": "docno"})


@pytest.fixture(scope="module")
def data():
    return planted()


FAST = {"rounds": 15, "patience": 5}


def mean_ap(run, links):
    return pt.Evaluate(run, entity_qrels(links), [AP])["AP"]


def test_a_selector_finds_planted_entities_in_unseen_topics(data):
    pool, run, qrels, links = data
    result = EntitySelector(pool, **FAST).cross_validated(run, qrels)
    assert mean_ap(run, links) < 0.75
    assert mean_ap(result, links) > 0.99
    assert sorted(zip(result["qid"], result["docno"], strict=True)) == sorted(
        zip(run["qid"], run["docno"], strict=True)
    )


def test_a_selector_finds_nothing_where_nothing_was_planted():
    pool, run, _, _ = planted(1)
    rng = np.random.default_rng(1)
    noise = run[["qid", "docno"]].assign(label=rng.integers(0, 2, len(run)))
    learner = EntitySelector(pool, supervision="entities", **FAST)
    with np.errstate(all="ignore"):
        result = learner.cross_validated(run, noise)
    by_chance = pt.Evaluate(run.assign(score=rng.random(len(run))), noise, [AP])["AP"]
    assert abs(pt.Evaluate(result, noise, [AP])["AP"] - by_chance) < 0.08
    # The model knows the topics that it was trained on.
    assert pt.Evaluate(learner.fit(run, noise)(run), noise, [AP])["AP"] > by_chance + 0.08


def test_no_topic_is_scored_by_a_model_that_has_seen_it(data):
    pool, run, qrels, _ = data
    # Of these features there is nothing to learn: when to stop is an accident of the topics that say so.
    learner = EntitySelector(pool, features=["df", "rank_support"], rounds=30, patience=3)
    before = learner.cross_validated(run, qrels)
    for fold in range(5):
        tested = {qid for qid in run["qid"].unique() if fold_number(qid, 5, 0) == fold}
        # Turned judgments of a fold change nothing in that fold.
        turned = qrels.assign(label=np.where(qrels["qid"].isin(tested), 1 - qrels["label"], qrels["label"]))
        after = learner.cross_validated(run, turned)
        assert_frame_equal(after[after["qid"].isin(tested)], before[before["qid"].isin(tested)], check_exact=True)


def test_folds_depend_on_seed_and_topic_alone(data):
    folds = [fold_number(f"q{each}", 5, 0) for each in range(1000)]
    assert np.bincount(folds).min() > 150
    assert folds != [fold_number(f"q{each}", 5, 1) for each in range(1000)]


@pytest.mark.slow
def test_neither_order_nor_batches_change_anything(data):
    pool, run, qrels, _ = data
    again = LinkedPool.from_frame(pool.to_frame().sample(frac=1, random_state=5))

    def in_order(frame):
        return frame.sort_values(["qid", "rank"], ignore_index=True)

    learner, other = EntitySelector(pool, **FAST), EntitySelector(again, **FAST)
    mixed, judged = run.sample(frac=1, random_state=6), qrels.sample(frac=1, random_state=7)
    one, two = learner.cross_validated(run, qrels), other.cross_validated(mixed, judged)
    assert_frame_equal(in_order(one), in_order(two), check_exact=True)
    fitted = in_order(learner.fit(run, qrels)(run))
    assert_frame_equal(in_order(other.fit(mixed, judged)(mixed)), fitted, check_exact=True)
    parts = pd.concat([learner(each) for _, each in run.groupby("qid")])
    assert_frame_equal(in_order(parts), fitted, check_exact=True)


def test_features_are_those_of_a_loop(collection):
    data = collection(3, entities=3)
    pool = link_pool(data["run"], data["tags"])
    run = ConsensusEntities(pool, min_documents=1)(data["topics"])
    run["query"] = "query E1 of"
    run = pd.concat([run, run.head(1).assign(docno="nobody", score=-1.0)], ignore_index=True)
    names = {"E1": "E1 of Query, query"}
    result = feature_table(RunOnPool.on(pool, run), FEATURES, names)
    frame = pool.to_frame()
    for row, values in zip(run.itertuples(), result, strict=True):
        documents = frame[frame["qid"] == row.qid].dropna(subset="entity_id")
        content = documents.groupby("docno").apply(
            lambda links: frozenset(zip(links["entity_id"], links["mentions"], strict=True)), include_groups=False
        )
        linked = documents[documents["entity_id"] == row.docno]
        name = set(names.get(row.docno, row.docno).lower().replace(",", "").split())
        query = set(row.query.lower().split())
        expected = [
            len(linked),
            len({content[docno] for docno in linked["docno"]}),
            linked["mentions"].sum(),
            (1 / (linked["rank"] + 1)).sum(),
            row.score,
            1 + (run[run["qid"] == row.qid]["score"] > row.score).sum(),
            len(name & query),
            len(name & query) / len(name | query),
            len(name & query) / len(query),
        ]
        assert values.tolist() == pytest.approx(expected)
    assert (result[:, 1] < result[:, 0]).any(), "some documents have equal entities"


COPIES = {"equal": lambda label: label, "recoded": lambda label: 7 - 3 * label}


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("column", ["innocent", "score"])
def test_features_that_copy_the_labels_are_refused(data, copy, column):
    pool, run, qrels, links = data
    leaky = run.assign(**{column: COPIES[copy](labels_of(run, links)).astype(float)})
    learner = EntitySelector(pool, features=["df", column], **FAST)
    for call in (learner.fit, learner.cross_validated):
        with pytest.raises(
            InputError, match=rf"feature '{column}' is a copy of the label .* made from judgments: drop it"
        ):
            call(leaky, qrels)
    selector = EntitySelector(pool, features=["df", column], supervision="entities", **FAST)
    with pytest.raises(InputError, match=f"feature '{column}' is a copy of the label"):
        selector.fit(leaky, entity_qrels(links))


def test_other_features_are_not_copies():
    label = np.array([1, 0, 1, 0])
    refuse_copies({"finer": np.array([3.0, 0.0, 2.0, 0.0]), "coarser": np.array([1.0, 1.0, 1.0, 0.0])}, label)
    refuse_copies({"constant": np.ones(4), "equal": label[[0, 0, 0, 0]].astype(float)}, np.ones(4, dtype=int))
    refuse_copies({"two values in two rows": np.array([0.3, 0.7])}, np.array([0, 1]))
    with pytest.raises(InputError, match="'equal' is a copy of the label in all 2 rows"):
        refuse_copies({"equal": np.array([0.0, 1.0])}, np.array([0, 1]))


def test_a_feature_that_equals_few_labels_is_refused(data):
    pool, run, qrels, links = data
    few = run[run["qid"] == "q3"].head(4)
    few = few.assign(mine=labels_of(few, links).astype(float))
    assert 0 < few["mine"].sum() < 4
    with pytest.raises(InputError, match="'mine' is a copy of the label in all 4 rows"):
        EntitySelector(pool, features=["mine"]).fit(few, qrels)


def test_further_columns_are_features(data):
    pool, run, qrels, links = data
    rng = np.random.default_rng(3)
    hinted = run.assign(hint=labels_of(run, links) + rng.normal(0, 0.7, len(run)))
    blind = EntitySelector(pool, features=["rank_support"], **FAST).cross_validated(hinted, qrels)
    result = EntitySelector(pool, features=["rank_support", "hint"], **FAST).cross_validated(hinted, qrels)
    assert mean_ap(result, links) > mean_ap(blind, links) + 0.1
    with pytest.raises(pt.validate.InputValidationError):
        EntitySelector(pool, features=["hint"]).fit(run, qrels)
    with pytest.raises(InputError, match=r"column 'hint': row 0 holds 'x'.*wanted a number"):
        EntitySelector(pool, features=["hint"]).fit(run.assign(hint="x"), qrels)


def test_entities_of_both_kinds_of_documents_are_left_out(data):
    pool, run, qrels, links = data
    # With both labels in the documents of many entities, the model is that of the labels of all other entities.
    mixed = qrels.assign(label=np.where(qrels["qid"] == "q1", np.arange(len(qrels)) % 4 < 2, qrels["label"]))
    kinds = links.drop(columns="label").merge(mixed).groupby(["qid", "entity_id"])["label"].agg(["min", "max"])
    assert (kinds["min"] < kinds["max"]).sum() > 5
    judged = kinds[kinds["min"] == kinds["max"]]["min"].rename("label").reset_index()
    by_documents = EntitySelector(pool, **FAST).fit(run, mixed)(run)
    by_entities = EntitySelector(pool, supervision="entities", **FAST).fit(run, judged)(run)
    assert_frame_equal(by_documents, by_entities, check_exact=True)


def test_labels_of_the_supervision_give_the_same_model(data):
    pool, run, qrels, links = data
    judged = link_pool(links.drop_duplicates(["qid", "docno"]), links[["docno", "entity_id"]], qrels)
    by_documents = EntitySelector(pool, **FAST).cross_validated(run, qrels)
    by_entities = EntitySelector(pool, supervision="entities", **FAST).cross_validated(run, entity_labels(judged))
    assert_frame_equal(by_documents, by_entities, check_exact=True)


def test_chance_follows_the_seed(data):
    pool, run, qrels, _ = data
    drawn = {"parameters": {"bagging_fraction": 0.5, "bagging_freq": 1}, "rounds": 5}
    models = [EntitySelector(pool, seed=seed, **drawn).fit(run, qrels)(run)["score"].tolist() for seed in (0, 0, 1)]
    assert models[0] == models[1] != models[2]


def test_validation_topics_stop_early(data):
    pool, run, qrels, _ = data
    teach, check = (run[run["qid"].isin([f"q{each}" for each in part])] for part in (range(25), range(25, 40)))
    models = [
        EntitySelector(pool, rounds=60, patience=patience).fit(teach, qrels, check, qrels)._learned.count("Tree=")
        for patience in (3, None)
    ]
    assert models[0] < models[1]


def test_a_selector_is_a_stage_of_pyterrier_pipelines(data):
    pool, run, qrels, links = data
    topics = run[["qid", "query"]].drop_duplicates()
    pipeline = ConsensusEntities(pool, min_documents=1) >> EntitySelector(pool, **FAST) % 20
    pipeline.fit(topics.head(25), qrels, topics.iloc[25:30], qrels)
    rest = topics.iloc[30:]
    expected = entity_qrels(links)
    systems = [ConsensusEntities(pool, min_documents=1), pipeline]
    result = pt.Experiment(systems, rest, expected, [AP], batch_size=3, plan="tree")["AP"]
    assert result[1] > 0.99 > result[0] + 0.2
    learner = EntitySelector(pool)
    assert set(pt.inspect.transformer_inputs(learner)[0]) == {"qid", "docno", "score", "query"}
    columns = ["qid", "query", "docno", "score", "rank"]
    assert pt.inspect.transformer_outputs(learner, columns) == [*columns, "judgments"]
    assert len(learner(run.iloc[:0])) == 0


def test_nothing_to_learn_from(data):
    pool, run, qrels, _ = data
    with pytest.raises(InputError, match=r"fold \d of 5: no topic has positive and negative"):
        EntitySelector(pool).cross_validated(run, qrels.assign(label=1))
    with pytest.warns(DegenerateWarning, match="10 topics are not in qrels and are not used"):
        EntitySelector(pool, rounds=2).fit(run, qrels[~qrels["qid"].str.startswith("q1") | (qrels["qid"] == "q1")])
    with pytest.warns(DegenerateWarning, match="nothing learned from 4 rows"):
        EntitySelector(pool).fit(run[run["qid"] == "q3"].head(4), qrels)


def test_stages_are_what_parameters_and_model_are(data):
    pool, run, qrels, _ = data
    one, two = (EntitySelector(pool, rounds=3) for _ in range(2))
    assert one == two
    assert one.fit(run, qrels) != two
    assert hash(one) == hash(two)
    assert one == two.fit(run, qrels)
    assert one != EntitySelector(pool, rounds=4).fit(run, qrels)
    assert repr(one) == "EntitySelector(40 topics, rounds=3)"


@pytest.mark.parametrize("name", ["seed", "random_state", "n_jobs", "application", "n_estimators", "early_stopping"])
def test_parameters_that_the_stage_sets_are_refused_under_their_aliases(data, name):
    """LightGBM would drop some without a word, and take others instead of the stage's own."""
    pool, run, qrels, _ = data
    with pytest.raises(ParameterError, match=f"parameters: '{name}' is set by the stage"):
        EntitySelector(pool, features=["df"], parameters={name: 1}).fit(run, qrels)


def test_other_parameters_are_taken(data):
    pool, run, qrels, _ = data
    fitted = EntitySelector(pool, features=["df"], rounds=1, parameters={"num_leaves": 3}).fit(run, qrels)
    assert "[num_leaves: 3]" in fitted._learned
