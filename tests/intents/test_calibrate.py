import json
import math

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from vbterrier.errors import DegenerateWarning, FileError, InputError, ParameterError
from vbterrier.intents.calibrate import Calibrate

FITTED = ("temperature", "platt", "isotonic")


def scored(*rows, columns=("qid", "entity_id", "score")):
    return pd.DataFrame(rows, columns=list(columns))


PAIR = scored(("b", "B", 1.0), ("a", "A", 2.0), ("a", "B", 1.0))


@pytest.fixture(scope="module")
def sample():
    """Queries of five candidates, and labels drawn from the softmax of their scores at T = 20."""
    rng = np.random.default_rng(11)
    n, m = 300, 5
    pairs = [(f"q{i:03}", f"e{j}") for i in range(n) for j in range(m)]
    frame = pd.DataFrame(pairs, columns=["qid", "entity_id"]).assign(score=rng.normal(100, 30, n * m))
    true = Calibrate(temperature=20)(frame)
    drawn = [(qid, rng.choice(group["entity_id"], p=group["prob"])) for qid, group in true.groupby("qid")]
    return frame, true, pd.DataFrame(drawn, columns=["qid", "entity_id"])


def test_softmax_is_that_of_the_paper_and_does_not_overflow():
    prob = Calibrate()(PAIR)["prob"]
    assert prob.tolist() == pytest.approx([1.0, math.e / (1 + math.e), 1 / (1 + math.e)])
    assert Calibrate(temperature=0.5)(PAIR)["prob"].tolist()[1:] == pytest.approx(softmax([4.0, 2.0]).tolist())
    assert Calibrate()(PAIR.assign(score=[1e3, 1e3, 1e3]))["prob"].tolist() == [1.0, 0.5, 0.5]
    assert Calibrate(temperature=1e-300)(PAIR)["prob"].tolist() == [1.0, 1.0, 0.0]


def test_priors_are_shares_and_tempered_priors_shares_of_powers():
    assert Calibrate("prior")(PAIR)["prob"].tolist() == pytest.approx([1.0, 2 / 3, 1 / 3])
    assert Calibrate("prior", temperature=0.5)(PAIR)["prob"].tolist() == pytest.approx([1.0, 0.8, 0.2])
    with pytest.raises(InputError, match="candidate 'A' of query 'a' has score -2, wanted at least 0 for a prior"):
        Calibrate("prior")(PAIR.assign(score=[1.0, -2.0, 1.0]))
    with pytest.warns(DegenerateWarning, match=r"1 query \('a'\) with candidates of weight 0 only") as seen:
        assert Calibrate("prior")(PAIR.assign(score=[1.0, 0.0, 0.0]))["prob"].tolist() == [1.0, 0.5, 0.5]
    assert len(seen) == 1


def test_results_of_a_retriever_become_intents():
    results = scored(("a", "007", 2.0, 0), ("a", "NIL", 1.0, 1), columns=("qid", "docno", "score", "rank"))
    made = Calibrate()(results.assign(name=["x", "y"], prob=[9, 9]))
    assert made.columns.tolist() == ["qid", "entity_id", "score", "rank", "name", "prob"]
    assert made["entity_id"].tolist() == ["007", "NIL"]
    assert made["prob"].tolist() == pytest.approx(softmax([2.0, 1.0]).tolist()), "no document is the NIL intent"


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(-50, 50)), min_size=1, max_size=12), st.floats(0.1, 100))
def test_probabilities_sum_to_one_follow_the_scores_and_not_the_rows(probs, rows, temperature):
    frame = scored(*[(qid, f"E{i}", score) for i, (qid, score) in enumerate(rows)])
    made = Calibrate(temperature=temperature)(frame)
    assert made.groupby("qid")["prob"].sum().to_numpy() == pytest.approx(1)
    assert probs(Calibrate(temperature=temperature)(frame[::-1])) == pytest.approx(probs(made))
    assert all(group.sort_values("score")["prob"].is_monotonic_increasing for _, group in made.groupby("qid"))
    hot, uniform = Calibrate(temperature=1e9)(frame), Calibrate("uniform")(frame)
    assert hot["prob"].tolist() == pytest.approx(uniform["prob"].tolist(), abs=1e-6)


def test_uniform_needs_no_scores_and_nil_keeps_its_mass():
    assert Calibrate("uniform")(PAIR.drop(columns="score"))["prob"].tolist() == [1.0, 0.5, 0.5]
    frame = pd.concat([PAIR.assign(prob=[1.0, 0.1, 0.7]), scored(("a", "NIL", np.nan)).assign(prob=0.2)])
    made = Calibrate()(frame)
    assert made["prob"].tolist() == pytest.approx([1.0, 0.8 * math.e / (1 + math.e), 0.8 / (1 + math.e), 0.2])
    assert Calibrate("uniform")(frame)["prob"].tolist() == pytest.approx([1.0, 0.4, 0.4, 0.2])


def test_the_temperature_of_the_labels_is_found(sample):
    frame, true, _ = sample
    labels = true[["qid", "entity_id", "prob"]]
    fitted = Calibrate("temperature").fit(frame, labels)
    assert fitted.parameters["temperature"] == pytest.approx(20, rel=1e-6)
    assert fitted(frame)["prob"].tolist() == pytest.approx(true["prob"].tolist(), abs=1e-6)


def test_platt_is_logistic_regression_on_softened_labels():
    scores, correct = np.array([-3.0, -1.0, 0.5, 1.0, 2.0, 4.0]), np.array([0, 0, 1, 0, 1, 1])
    frame = scored(*[(f"q{i // 2}", f"E{i}", score) for i, score in enumerate(scores)])
    labels = frame[["qid", "entity_id"]].assign(label=correct)
    fitted = Calibrate("platt").fit(frame, labels).parameters
    soft = np.where(correct > 0, 4 / 5, 1 / 5)

    def loss(slope, intercept):
        logits = slope * scores + intercept
        return np.sum(np.logaddexp(0, logits) - soft * logits)

    best = loss(fitted["slope"], fitted["intercept"])
    for step in (-1e-2, 1e-2):
        assert loss(fitted["slope"] + step, fitted["intercept"]) > best
        assert loss(fitted["slope"], fitted["intercept"] + step) > best


def test_platt_divides_sigmoids_even_where_they_underflow():
    stage = Calibrate("platt", parameters={"slope": 1.0, "intercept": 0.0})
    sigmoid = 1 / (1 + np.exp(-np.array([2.0, 1.0])))
    assert stage(PAIR)["prob"].tolist()[1:] == pytest.approx((sigmoid / sigmoid.sum()).tolist())
    tiny = stage(PAIR.assign(score=[0, -2000.0, -2001.0]))["prob"].tolist()
    assert tiny[1:] == pytest.approx(softmax([1, 0]).tolist())


def test_isotonic_is_that_of_scikit_learn(sample):
    from sklearn.isotonic import IsotonicRegression

    frame, _, labels = sample
    fitted = Calibrate("isotonic").fit(frame, labels)
    correct = frame.merge(labels.assign(y=1.0), how="left", on=["qid", "entity_id"])["y"].fillna(0)
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(frame["score"], correct)
    other = frame.assign(score=np.random.default_rng(2).normal(110, 60, len(frame)))
    weight = model.predict(other["score"])
    expected = weight / other.assign(weight=weight).groupby("qid")["weight"].transform("sum")
    assert fitted(other)["prob"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-12)


def test_isotonic_probabilities_of_nothing_are_alike_with_a_warning():
    stage = Calibrate("isotonic", parameters={"scores": [0.0, 5.0, 6.0], "probs": [0.0, 0.0, 1.0]})
    with pytest.warns(DegenerateWarning, match=r"2 queries \('b', 'a'\) with candidates of weight 0 only"):
        assert stage(PAIR)["prob"].tolist() == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("method", FITTED)
def test_labels_come_in_three_forms_under_two_names_and_in_any_order(method, sample):
    frame, _, labels = sample
    reference = Calibrate(method).fit(frame, labels).parameters
    every = frame[["qid", "entity_id"]].merge(labels.assign(label=2), how="left").fillna({"label": 0})
    for form in (every, every.rename(columns={"entity_id": "docno"}), labels.assign(prob=1.0)):
        shuffled = form.sample(frac=1, random_state=1)
        parameters = Calibrate(method).fit(frame.sample(frac=1, random_state=2), shuffled).parameters
        for name, value in parameters.items():
            assert value == pytest.approx(reference[name], rel=1e-6, abs=1e-9)


def test_what_cannot_be_used_for_a_fit_is_said(sample):
    frame, _, labels = sample
    left_out = pytest.warns(DegenerateWarning, match=r"299 queries .* without labels, left out of the fit")
    with left_out, pytest.warns(DegenerateWarning, match=r"1 query \('q000'\) is the only one with labels"):
        Calibrate("isotonic").fit(frame, labels[:1])
    with pytest.raises(InputError, match="labels: none of the 1 queries is in the intents"):
        Calibrate("platt").fit(frame, labels[:1].assign(qid="elsewhere"))
    for method in FITTED:
        message = "labels: no labelled entity is a candidate: '/m/.*' against '.*'; check the entity ids"
        with pytest.raises(InputError, match=message):
            Calibrate(method).fit(frame, labels.assign(entity_id="/m/" + labels["entity_id"]))
    for method in ("platt", "isotonic"):
        with pytest.raises(InputError, match="all 1500 labelled candidates are incorrect: wanted both kinds"):
            Calibrate(method).fit(frame, labels.assign(label=0))
    for same in ((frame, labels.assign(label=0)), (frame.assign(score=1.0), labels)):
        with pytest.raises(InputError, match="which the fit of T needs"):
            Calibrate("temperature").fit(*same)
    with pytest.raises(InputError, match="is in rows"):
        Calibrate("platt").fit(frame, pd.concat([labels, labels]))
    with pytest.raises(InputError, match="labels column 'entity_id' holds integers, intents entities holds text"):
        Calibrate("platt").fit(frame, labels.assign(entity_id=1))
    with pytest.raises(ParameterError, match="method 'softmax' has no parameters to fit; use one of temperature, plat"):
        Calibrate().fit(frame, labels)


@pytest.mark.parametrize(
    ("method", "sign", "message"),
    [
        ("temperature", 1, "at the edge of the range, and the loss is flat: the highest score is always labelled"),
        ("temperature", -1, "at the edge of the range, and the loss is flat: scores do not predict the labels"),
        ("platt", -1, "candidates with higher scores are not correct more often"),
        ("isotonic", -1, "the function is flat"),
    ],
)
def test_scores_that_tell_all_or_nothing_are_said_to(method, sign, message):
    frame = scored(*[(f"q{i}", one, score) for i in range(9) for one, score in (("A", i + 1.0), ("B", float(i)))])
    labels = pd.DataFrame({"qid": [f"q{i}" for i in range(9)], "entity_id": "A"})
    with pytest.warns(DegenerateWarning, match=message):
        Calibrate(method).fit(frame.assign(score=frame["score"] * sign), labels)


def test_labels_of_entities_that_are_no_candidates_do_not_weigh(sample):
    frame, true, _ = sample
    labels = true[["qid", "entity_id", "prob"]]
    odd = labels["qid"].str[-1].isin(list("13579"))
    elsewhere = labels[odd].drop_duplicates("qid").assign(entity_id="elsewhere", prob=0.9)
    missed = pd.concat([labels[~odd], labels[odd].assign(prob=labels["prob"] * 0.1), elsewhere])
    with pytest.warns(DegenerateWarning, match=r"150 labelled entities of 150 queries \('q001 \(1\)', .*45\.0% of the"):
        result = Calibrate("temperature").fit(frame.assign(score=frame["score"] * (1 + odd)), missed)
    same = Calibrate("temperature").fit(frame.assign(score=frame["score"] * (1 + odd)), labels)
    assert result.parameters["temperature"] == pytest.approx(same.parameters["temperature"], rel=1e-6)


def test_a_pipeline_is_fitted_through_its_stages(sample):
    frame, _, labels = sample
    topics = pd.DataFrame({"qid": frame["qid"].unique(), "query": "a query"})
    retriever = pt.Transformer.from_df(frame.rename(columns={"entity_id": "docno"}).assign(rank=0))
    stage = Calibrate("temperature")
    (retriever >> stage).fit(topics, labels, None, None)
    assert stage.parameters == Calibrate("temperature").fit(frame, labels).parameters


@pytest.mark.parametrize("method", FITTED)
def test_what_is_not_fitted_says_so_also_when_loaded(method, tmp_path):
    Calibrate(method).save(tmp_path / "stage.json")
    for stage in (Calibrate(method), Calibrate.load(tmp_path / "stage.json")):
        with pytest.raises(ParameterError, match=rf"Calibrate\('{method}'\) is not fitted; call fit"):
            stage(PAIR)


@pytest.mark.parametrize("method", FITTED)
def test_fits_are_saved_to_the_last_digit(method, sample, tmp_path):
    frame, _, labels = sample
    fitted = Calibrate(method).fit(frame, labels)
    fitted.save(tmp_path / "fit.json")
    loaded = Calibrate.load(tmp_path / "fit.json")
    assert loaded == fitted
    assert hash(loaded) == hash(fitted)
    pd.testing.assert_frame_equal(loaded(frame), fitted(frame))
    assert fitted != Calibrate(method)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "wanted JSON of Calibrate.save"),
        ("[" * 100_000, "wanted JSON"),
        ("\udcff".encode("utf-8", "surrogateescape"), "wanted JSON"),
        ("[]", "wanted a saved calibration"),
        ('{"kind": "other"}', "wanted a saved calibration"),
        ({"method": "magic"}, "method='magic': wanted one of"),
        ({"method": "platt", "parameters": {"slope": 1}}, "method 'platt' has slope, intercept"),
        ({"method": "platt", "parameters": {"slope": float("nan"), "intercept": 0}}, "slope=nan"),
        ({"method": "temperature", "parameters": {"temperature": 0}}, "temperature=0: wanted a number above 0"),
        ({"method": "isotonic", "parameters": {"scores": [1, 0], "probs": [0, 1]}}, "both ascending"),
        ({"method": "isotonic", "parameters": {"scores": [0, 1], "probs": [0]}}, "as many scores as probs"),
        ({"method": "isotonic", "parameters": {"scores": [0, 1], "probs": [0, 2]}}, "probs from 0 to 1"),
        ({"method": "isotonic", "parameters": {"scores": [], "probs": []}}, "as many scores as probs"),
        ({"method": "isotonic", "parameters": {"scores": 1, "probs": 1}}, "not iterable"),
        ({"method": "softmax", "parameters": {"slope": 1}}, "method 'softmax' has none"),
        ({"method": "softmax", "strange": 1}, "strange"),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    path = tmp_path / "bad.json"
    if isinstance(content, dict):
        content = json.dumps({"kind": "vbterrier.Calibrate", **content})
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError, match=message) as error:
        Calibrate.load(path)
    assert error.value.path == path


def test_files_that_are_missing_or_endless_are_refused(tmp_path, monkeypatch):
    with pytest.raises(FileError, match="cannot be read: No such file"):
        Calibrate.load(tmp_path / "missing.json")
    with pytest.raises(FileError, match="cannot be written"):
        Calibrate().save(tmp_path)
    Calibrate(temperature=0.3).save(tmp_path / "stage.json")
    assert Calibrate.load(tmp_path / "stage.json") == Calibrate(temperature=0.3)
    monkeypatch.setattr("vbterrier.intents.calibrate._MAX_BYTES", 10)
    with pytest.raises(FileError, match="larger than 10 bytes"):
        Calibrate.load(tmp_path / "stage.json")


def test_smoothing_leaves_candidates_without_clicks_a_probability(tmp_path):
    clicks = pd.DataFrame({"qid": ["q1", "q1", "q2"], "entity_id": ["A", "B", "A"], "score": [7.0, 0.0, 0.0]})
    stage = Calibrate("prior", smoothing=1)
    assert stage(clicks)["prob"].tolist() == pytest.approx([8 / 9, 1 / 9, 1])
    assert Calibrate("prior")(clicks[clicks["qid"] == "q1"])["prob"].tolist() == [1, 0]
    stage.save(tmp_path / "stage.json")
    assert Calibrate.load(tmp_path / "stage.json") == stage != Calibrate("prior")
    with pytest.raises(ParameterError, match="smoothing=1: method 'softmax' has none"):
        Calibrate(smoothing=1)
