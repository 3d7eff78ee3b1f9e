"""Parameters of calibration from labelled candidates."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning, InputError
from vbterrier.kernels.candidates import cross_entropy
from vbterrier.kernels.probability import normalised, peaks
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Parameters = Mapping[str, float | list[float]]

# Temperatures are looked for between these multiples of the distance of the scores of a query.
_REACH = 1e3
# Losses that differ by less are equal.
_FLAT = 1e-9


def fitted_temperature(score: Floats, target: Floats, topic: Ints, n_topics: int) -> Parameters:
    """The T that makes labels most probable under ``softmax(s/T)``: the least mean cross-entropy over topics.

    The loss is convex in 1/T, so there is one minimum.

    Parameters
    ----------
    score, target
        Score and labelled probability of each candidate, shape (n,). Labels count by their share among the candidates;
        topics without any say nothing.

    Raises
    ------
    InputError
        No topic with a label whose scores differ.
    """
    span = peaks(score, topic, n_topics) + peaks(-score, topic, n_topics)
    telling = (per_topic(target, topic, n_topics) > 0) & (span > 0)
    if not telling.any():
        raise InputError("no query has a labelled candidate and scores that differ: there is nothing to fit T to")
    rows = telling[topic]
    score, topic = score[rows], topic[rows]
    target = normalised(target[rows], topic, n_topics)
    from scipy.optimize import minimize_scalar

    def loss(log_t: float) -> float:
        return cross_entropy(score * math.exp(-log_t), target, topic, n_topics) / int(telling.sum())

    low, high = math.log(span[telling].min() / _REACH), math.log(span[telling].max() * _REACH)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10, "maxiter": 500})
    temperature = math.exp(found.x)
    for edge, why in ((low, "the best score is always the labelled one"), (high, "scores say nothing of the labels")):
        if loss(edge) <= found.fun + _FLAT:
            _warn(f"T = {temperature:g} is one of many at the edge of the range: {why}")
    return {"temperature": temperature}


def fitted_platt(score: Floats, correct: Floats) -> Parameters:
    """Slope and intercept of ``1/(1 + exp(-(a s + b)))`` (Platt 1999), by scikit-learn's logistic regression.

    Labels of 0 and 1 are softened as Platt did, ``(n_1 + 1)/(n_1 + 2)`` and ``1/(n_0 + 2)``, so that scores that part
    them fully have a finite slope.

    Raises
    ------
    InputError
        All labels are alike.
    """
    _require_two_classes(correct)
    from sklearn.linear_model import LogisticRegression

    if np.isin(correct, (0.0, 1.0)).all():
        n_correct = correct.sum()
        correct = np.where(correct > 0, (n_correct + 1) / (n_correct + 2), 1 / (len(correct) - n_correct + 2))
    centre, scale = float(score.mean()), float(score.std()) or 1.0
    # A label of .3 is .3 of a correct and .7 of an incorrect one.
    x = np.tile((score - centre) / scale, 2)[:, None]
    y = np.repeat([1, 0], len(score))
    weight = np.concatenate([correct, 1 - correct])
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, y, sample_weight=weight)
    slope = float(model.coef_[0, 0]) / scale
    if slope <= 0:
        _warn(f"slope {slope:g}: candidates with higher scores are correct no more often")
    return {"slope": slope, "intercept": float(model.intercept_[0]) - slope * centre}


def fitted_isotonic(score: Floats, correct: Floats) -> Parameters:
    """Scores and probabilities at the corners of the rising function that is closest, by scikit-learn.

    Raises
    ------
    InputError
        All labels are alike.
    """
    _require_two_classes(correct)
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True).fit(score, correct)
    if model.y_thresholds_[0] == model.y_thresholds_[-1]:
        _warn("the function is flat: candidates with higher scores are correct no more often")
    return {"scores": model.X_thresholds_.tolist(), "probs": model.y_thresholds_.tolist()}


def _require_two_classes(correct: Floats) -> None:
    if correct.min() == correct.max():
        raise InputError(
            f"all {len(correct)} labelled candidates are {'correct' if correct[0] else 'incorrect'}: wanted both kinds"
        )


def _warn(message: str) -> None:
    warnings.warn(message, DegenerateWarning, stacklevel=4)
