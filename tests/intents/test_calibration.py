"""Calibration error by hand and against scikit-learn."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.intents.calibration import calibration_error, query_ambiguity

INTENTS = pd.DataFrame({"qid": ["a", "a", "b", "b"], "entity_id": ["A", "B", "A", "B"], "prob": [0.8, 0.2, 0.6, 0.4]})
LABELS = pd.DataFrame({"qid": ["a", "b"], "entity_id": ["A", "B"]})


def test_all_three_by_hand():
    error = calibration_error(INTENTS, LABELS, n_bins=2)
    assert error.brier == pytest.approx((0.2**2 + 0.2**2 + 0.6**2 + 0.6**2) / 2)
    assert error.log_loss == pytest.approx(-(math.log(0.8) + math.log(0.4)) / 2)
    assert error.ece == pytest.approx((2 * abs(0.3 - 0.5) + 2 * abs(0.7 - 0.5)) / 4)
    assert (error.n_queries, error.missed) == (2, 0.0)
    assert error.bins.columns.tolist() == ["low", "high", "predicted", "observed", "n"]
    expected = [[0.2, 0.4, 0.3, 0.5, 2], [0.6, 0.8, 0.7, 0.5, 2]]
    assert error.bins.to_numpy() == pytest.approx(np.array(expected))


def test_a_human_distribution_is_a_label():
    human = INTENTS.assign(prob=[0.7, 0.3, 0.6, 0.4])
    error = calibration_error(INTENTS, human)
    assert error.brier == pytest.approx(0.01)
    label, prob = np.array([0.7, 0.3, 0.6, 0.4]), np.array([0.8, 0.2, 0.6, 0.4])
    assert error.log_loss == pytest.approx(-np.sum(label * np.log(prob)) / 2)
    perfect = calibration_error(INTENTS, INTENTS)
    assert (perfect.ece, perfect.brier) == (0.0, 0.0)


def test_several_correct_ones_share_alike():
    both = pd.DataFrame({"qid": "a", "entity_id": ["A", "B"], "label": [2, 1]})
    with pytest.warns(DegenerateWarning, match=r"1 query \('b'\) without labels, left out"):
        assert calibration_error(INTENTS, both).brier == pytest.approx(0.3**2 * 2)


def test_the_log_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(4)
    prob = rng.dirichlet(np.ones(3), 50)
    right = rng.integers(0, 3, 50)
    qids = [f"q{i}" for i in range(50)]
    intents = pd.DataFrame({"qid": np.repeat(qids, 3), "entity_id": np.tile(list("ABC"), 50), "prob": prob.ravel()})
    labels = pd.DataFrame({"qid": qids, "entity_id": ["ABC"[i] for i in right]})
    error = calibration_error(intents, labels)
    assert error.log_loss == pytest.approx(log_loss(right, prob, labels=[0, 1, 2]))
    assert error.bins["n"].sum() == 150
    assert error.bins["n"].max() - error.bins["n"].min() <= 1, "bins of equal mass"
    shuffled = calibration_error(intents.sample(frac=1, random_state=1), labels.iloc[::-1])
    assert shuffled.ece == pytest.approx(error.ece, abs=1e-12)


def test_entities_that_are_no_candidates_count_as_impossible():
    labels = pd.DataFrame({"qid": ["a", "a"], "entity_id": ["A", "Z"], "prob": [0.75, 0.25]})
    one = INTENTS[:2]
    error = calibration_error(one, labels, floor=1e-3)
    assert error.missed == 0.25
    assert error.brier == pytest.approx(0.05**2 + 0.2**2 + 0.25**2)
    assert error.log_loss == pytest.approx(-(0.75 * math.log(0.8) + 0.25 * math.log(1e-3)))
    assert error.bins["n"].sum() == 3


def test_labels_of_another_id_space_are_warned_of():
    labels = pd.DataFrame({"qid": ["z", "b", "a"], "entity_id": ["A", "m/01n7q", "m/02"]})
    message = r"^no labelled entity is a candidate: 'm/01n7q' against '/m/01n7q'; check the entity ids$"
    with pytest.warns(DegenerateWarning, match=message):
        error = calibration_error(INTENTS.assign(entity_id=["A", "B", "/m/01n7q", "B"]), labels)
    assert error.missed == 1.0


def test_equal_probabilities_share_a_bin():
    uniform = INTENTS.assign(prob=0.5)
    assert calibration_error(uniform, LABELS, n_bins=4).bins.values.tolist() == [[0.5, 0.5, 0.5, 0.5, 4]]


def test_ambiguity_by_hand_and_in_any_order():
    probs = [0.25, 0.25, 1.0, 0.25, 0.25, 0.5, 0.5, 0.0]
    intents = pd.DataFrame({"qid": list("bbabbccc"), "entity_id": list("ZYXWVABC"), "prob": probs})
    result = query_ambiguity(intents, alpha=0.5)
    by_hand = {}
    for qid, group in intents.groupby("qid"):
        probs = [prob for prob in group["prob"] if prob > 0]
        bits, top = -sum(prob * math.log2(prob) for prob in probs), max(probs)
        by_hand[qid] = [len(probs), bits, 2**bits, top, top - 0.5 * math.sqrt(top * (1 - top))]
    columns = ["n_intents", "entropy", "n_effective", "top_prob", "top_VB"]
    assert result.set_index("qid")[columns].T.to_dict("list") == by_hand
    assert result.set_index("qid")["top"].to_dict() == {"a": "X", "b": "V", "c": "A"}
    again = query_ambiguity(intents.iloc[::-1], alpha=0.5)
    again, result = (frame.sort_values("qid", ignore_index=True) for frame in (again, result))
    pd.testing.assert_frame_equal(again, result)
    assert query_ambiguity(intents.iloc[:0]).columns.tolist() == result.columns.tolist()
    with pytest.raises(InputError, match=r"has probability 1\.5, wanted 0 to 1"):
        query_ambiguity(intents.replace({"prob": {1.0: 1.5}}))
