"""Calibration of candidate scores to probabilities."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyterrier as pt

from vbterrier.errors import (
    FileError,
    InputError,
    ParameterError,
    choice,
    examples,
    excerpt,
    number,
    path_parameter,
    warn,
)
from vbterrier.frames.files.source import parse_json, read_content
from vbterrier.frames.files.writing import replacing
from vbterrier.intents.calibration import align_labels
from vbterrier.intents.candidates import warn_of_no_weight
from vbterrier.intents.stage import Candidates, IntentStage, warn_of_queries
from vbterrier.kernels.candidates import (
    cross_entropy,
    normalise_weights,
    peaks,
    proportional,
    softmax,
    temperature_softmax,
    tempered_prob,
)
from vbterrier.kernels.vb import per_topic

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from vbterrier.annotations import Floats, Ints
    from vbterrier.intents.calibration import Targets

    Parameters = Mapping[str, float | list[float]]


# Temperatures are searched between these multiples of the score ranges of queries.
_MAX_TEMPERATURE_RATIO = 1e3
# Losses that differ by less are equal.
_LOSS_TOLERANCE = 1e-9


def fitted_temperature(score: Floats, target: Floats, topic: Ints, n_topics: int) -> Parameters:
    """Fit the T of ``softmax(s/T)`` that minimises the mean cross-entropy over topics, which is convex in 1/T.

    Labels are normalised over the candidates of a topic; topics without labels are ignored.
    """
    span = peaks(score, topic, n_topics) + peaks(-score, topic, n_topics)
    informative = (per_topic(target, topic, n_topics) > 0) & (span > 0)
    if not informative.any():
        raise InputError("no query has a labelled candidate and different scores, which the fit of T needs")
    rows = informative[topic]
    score, topic = score[rows], topic[rows]
    target = normalise_weights(target[rows], topic, n_topics)
    from scipy.optimize import minimize_scalar

    def loss(log_t: float) -> float:
        return cross_entropy(score * math.exp(-log_t), target, topic, n_topics) / int(informative.sum())

    low, high = (
        math.log(span[informative].min() / _MAX_TEMPERATURE_RATIO),
        math.log(span[informative].max() * _MAX_TEMPERATURE_RATIO),
    )
    optimum = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10, "maxiter": 500})
    temperature = math.exp(optimum.x)
    for edge, why in ((low, "the highest score is always labelled"), (high, "scores do not predict the labels")):
        if loss(edge) <= optimum.fun + _LOSS_TOLERANCE:
            warn(f"T = {temperature:g} is at the edge of the range, and the loss is flat: {why}")
    return {"temperature": temperature}


def fitted_platt(score: Floats, correct: Floats) -> Parameters:
    """Fit slope and intercept of ``1/(1 + exp(-(a s + b)))`` (Platt 1999) by scikit-learn's logistic regression.

    Labels of 0 and 1 are smoothed as by Platt, ``1/(n_0 + 2)`` and ``(n_1 + 1)/(n_1 + 2)``, so that the slope is finite
    for scores that separate them.
    """
    from sklearn.linear_model import LogisticRegression

    if np.isin(correct, (0.0, 1.0)).all():
        n_correct = correct.sum()
        correct = np.where(correct > 0, (n_correct + 1) / (n_correct + 2), 1 / (len(correct) - n_correct + 2))
    centre, scale = float(score.mean()), float(score.std()) or 1.0
    # A label of 0.3 is a correct candidate of weight 0.3 and an incorrect one of weight 0.7.
    x = np.tile((score - centre) / scale, 2)[:, None]
    y = np.repeat([1, 0], len(score))
    weight = np.concatenate([correct, 1 - correct])
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, y, sample_weight=weight)
    slope = float(model.coef_[0, 0]) / scale
    if slope <= 0:
        warn(f"slope {slope:g}: candidates with higher scores are not correct more often")
    return {"slope": slope, "intercept": float(model.intercept_[0]) - slope * centre}


def fitted_isotonic(score: Floats, correct: Floats) -> Parameters:
    """Fit scores and probabilities of a non-decreasing step function by scikit-learn's isotonic regression."""
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True).fit(score, correct)
    if model.y_thresholds_[0] == model.y_thresholds_[-1]:
        warn("the function is flat: candidates with higher scores are not correct more often")
    return {"scores": model.X_thresholds_.tolist(), "probs": model.y_thresholds_.tolist()}


# The parameters that each method fits to labelled data.
_FITTED_PARAMETERS = {"temperature": ("temperature",), "platt": ("slope", "intercept"), "isotonic": ("scores", "probs")}
_TEMPERED = ("softmax", "prior")
METHODS = (*_TEMPERED, "uniform", *_FITTED_PARAMETERS)
_KIND = "vbterrier.Calibrate"
_MAX_BYTES = 1 << 26


class Calibrate(IntentStage, pt.Estimator):  # type: ignore[misc]
    """Calibrate candidate scores to probabilities: I -> I, or R -> I for the results of a retriever over entities.

    Parameters
    ----------
    method
        ``"softmax"``: ``π ∝ exp(s/T)``, the label-free choice of the paper; ``"prior"``: ``π ∝ (s + a)^(1/T)``, for
        scores that are probabilities or counts, such as clicks; ``"uniform"``. With labels, after :meth:`fit`:
        ``"temperature"``, softmax with the T of the highest likelihood; ``"platt"`` and ``"isotonic"``, the probability
        that a candidate with this score is correct, normalised over the candidates of a query.
    temperature
        T of softmax and prior, above 0; higher values make probabilities more uniform.
    smoothing
        a of the prior, at least 0. With counts, 1 leaves a candidate without any a small probability.
    parameters
        Parameters from an earlier :meth:`fit`, instead of fitting: ``{"temperature": T}``, ``{"slope": a, "intercept":
        b}`` or ``{"scores": [...], "probs": [...]}``.

    Raises
    ------
    ParameterError, InputError
        A method that needs :meth:`fit` and is not fitted; a score that is missing, infinite, or negative for a prior; a
        duplicated entity; output of :class:`vbterrier.RelaxConstraints`, whose weights would be lost.

    Notes
    -----
    ``prob`` is computed from ``score``; docno becomes entity_id, other columns are kept, and NIL keeps its mass. If all
    candidates of a query get 0, they become uniform, with a warning. Fit and apply on different queries: a calibration
    error on the training data is too low.

    Examples
    --------
    >>> import pandas as pd
    >>> results = pd.DataFrame({"qid": "q1", "docno": ["Q1", "Q2"], "score": [2.0, 1.0], "rank": [0, 1]})
    >>> Calibrate(temperature=0.5)(results)[["qid", "entity_id", "prob"]].round(3).values.tolist()
    [['q1', 'Q1', 0.881], ['q1', 'Q2', 0.119]]
    """

    def __init__(
        self,
        method: str = "softmax",
        *,
        temperature: float = 1.0,
        smoothing: float = 0.0,
        parameters: Mapping[str, float | list[float]] | None = None,
    ) -> None:
        super().__init__()
        self.method = choice("method", method, METHODS)
        self.temperature = number("temperature", temperature, low=0, open_low=True)
        if method not in _TEMPERED and self.temperature != 1:
            raise ParameterError(f"temperature={excerpt(temperature)}: method {method!r} has none")
        self.smoothing = number("smoothing", smoothing, low=0)
        if method != "prior" and self.smoothing:
            raise ParameterError(
                f"smoothing={excerpt(smoothing)}: method {method!r} has none; it is that of method 'prior'"
            )
        self.parameters = None if parameters is None else _fitted_numbers(method, parameters)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Set the probability of every candidate."""
        candidates = self._candidates(inp)
        if "delta" in inp.columns:
            raise InputError(
                f"{candidates.name}: column 'delta' shows that RelaxConstraints has weighted the candidates, and "
                "calibration would discard the weights; put Calibrate before RelaxConstraints"
            )
        needs_fit = self.method in _FITTED_PARAMETERS and self.parameters is None
        if needs_fit and len(inp):
            raise ParameterError(f"{self!r} is not fitted; call fit(candidates, labels), or Calibrate.load(path)")
        topic = candidates.topic[candidates.entities]
        if self.method == "uniform" or needs_fit:
            prob = proportional(np.ones(len(topic)), topic, candidates.n)
        else:
            prob = self._prob(candidates.scores(), topic, candidates)
        return candidates.with_prob(candidates.beside_nil(prob)).rename(columns={_entity_column(inp): "entity_id"})

    def _candidates(self, inp: pd.DataFrame) -> Candidates:
        score = [] if self.method == "uniform" else ["score"]
        entity = _entity_column(inp)
        self.require_columns(inp, "qid", entity, *score)
        return Candidates(inp, entity=entity, name="retrieved entities" if entity == "docno" else "intents")

    def transform_inputs(self) -> list[list[str]]:
        """Return the columns of intents, and of retrieved entities, that the method reads."""
        score = [] if self.method == "uniform" else ["score"]
        return [["qid", entity, *score] for entity in ("entity_id", "docno")]

    def _prob(self, score: Floats, topic: Ints, candidates: Candidates) -> Floats:
        n = candidates.n
        if self.method == "softmax":
            return temperature_softmax(score, self.temperature, topic, n)
        if self.method == "prior":
            if (score < 0).any():
                row = int(candidates.entities[int(np.argmin(score))])
                raise InputError(
                    f"{candidates.name}: {candidates.owner(row)} has score {score.min():g}, wanted at least 0 for a "
                    "prior; use 'softmax'"
                )
            weight = score + self.smoothing
            warn_of_no_weight(weight, topic, candidates.topics)
            return tempered_prob(weight, self.temperature, topic, n)
        fitted = {name: np.asarray(value) for name, value in (self.parameters or {}).items()}
        if self.method == "temperature":
            return temperature_softmax(score, float(fitted["temperature"]), topic, n)
        if self.method == "platt":
            # The logarithm of the sigmoid keeps the difference of candidates at 1e-300 and 1e-310.
            log_prob = -np.logaddexp(0.0, -(fitted["slope"] * score + fitted["intercept"]))
            return softmax(log_prob, topic, n)
        weight = np.interp(score, fitted["scores"], fitted["probs"])
        warn_of_no_weight(weight, topic, candidates.topics)
        return proportional(weight, topic, n)

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: Any = None,  # noqa: ARG002 - PyTerrier's signature
        qrels_va: Any = None,  # noqa: ARG002
    ) -> Calibrate:
        """Fit the parameters to labelled candidates, and return the stage.

        Parameters
        ----------
        topics_or_res_tr, qrels_tr
            Candidates with scores, as for :meth:`transform`, and labels, as for
            :func:`vbterrier.intents.calibration_error`. Other candidates of a labelled query are incorrect. Warnings
            count queries without labels and labelled entities that are no candidates, which are left out.
        topics_or_res_va, qrels_va
            Ignored.

        Raises
        ------
        ParameterError, InputError
            A method without parameters to fit; no query or entity in common, labels of one class, equal scores.
        """
        if self.method not in _FITTED_PARAMETERS:
            raise ParameterError(
                f"method {self.method!r} has no parameters to fit; use one of {', '.join(_FITTED_PARAMETERS)}"
            )
        candidates = self._candidates(topics_or_res_tr)
        targets = align_labels(candidates, qrels_tr)
        if targets.mismatch:
            raise InputError(f"labels: {targets.mismatch}")
        _warn_of_missed(targets, candidates.topics)
        warn_of_queries(targets.unlabelled, "without labels, left out of the fit")
        if targets.labelled.sum() == 1:
            warn_of_queries([candidates.topics[int(np.argmax(targets.labelled))]], "is the only one with labels")
        used = targets.labelled[candidates.topic[candidates.entities]]
        rows, score = candidates.entities[used], candidates.scores()[used]
        if self.method == "temperature":
            parameters = fitted_temperature(score, targets.target[rows], candidates.topic[rows], candidates.n)
        else:
            correct = targets.correct[rows]
            if correct.min() == correct.max():
                kind = "correct" if correct[0] else "incorrect"
                raise InputError(f"all {len(correct)} labelled candidates are {kind}: wanted both kinds")
            parameters = (fitted_platt if self.method == "platt" else fitted_isotonic)(score, correct)
        self.parameters = _fitted_numbers(self.method, parameters)
        return self

    def __hash__(self) -> int:
        # Without the parameters, which a fit changes.
        return hash((type(self), self.method, self.temperature, self.smoothing))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write method and parameters as JSON; raise FileError if the file cannot be written."""
        content = {name: getattr(self, name) for name in ("method", "temperature", "smoothing", "parameters")}
        with replacing(path_parameter("path", path)) as file:
            file.write(f"{json.dumps({'kind': _KIND, **content}, indent=1)}\n".encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrate:
        """Read what :meth:`save` wrote; raise FileError if the file is missing or not a saved calibration."""
        path = path_parameter("path", path)
        try:
            text = read_content(path, _MAX_BYTES)
        except OSError as error:
            raise FileError(path, f"cannot be read: {error.strerror or error}") from error
        try:
            content = parse_json(text)
        except (ValueError, RecursionError) as error:
            raise FileError(path, f"wanted JSON of Calibrate.save: {error}") from error
        if not isinstance(content, dict) or content.pop("kind", None) != _KIND:
            raise FileError(path, f"wanted a saved calibration ({_KIND!r}), found another file")
        try:
            return cls(**content)
        except (TypeError, ValueError) as error:
            raise FileError(path, str(error)) from error


def _warn_of_missed(targets: Targets, topics: Sequence[str]) -> None:
    """Warn of labelled entities that are no candidates, which no temperature gives a probability."""
    topic, n_missed = np.unique(targets.missed_topic, return_counts=True)
    if len(topic):
        counts = examples(f"{topics[place]} ({n})" for place, n in zip(topic.tolist(), n_missed.tolist(), strict=True))
        share = targets.missed.sum() / targets.labelled.sum()
        warn(
            f"{len(targets.missed)} labelled entities of {len(topic)} queries ({counts}) are no candidates, "
            f"{share:.1%} of the labelled probability: the fit leaves them out, so that candidates get too much of it"
        )


def _entity_column(inp: pd.DataFrame) -> str:
    return "docno" if "docno" in inp.columns and "entity_id" not in inp.columns else "entity_id"


def _fitted_numbers(method: str, parameters: Any) -> dict[str, float | list[float]]:
    """Return fitted parameters as plain numbers."""
    names = _FITTED_PARAMETERS.get(method, ())
    if not hasattr(parameters, "keys") or set(parameters) != set(names):
        raise ParameterError(f"parameters={excerpt(parameters)}: method {method!r} has {', '.join(names) or 'none'}")
    if method == "temperature":
        return {"temperature": number("temperature", parameters["temperature"], low=0, open_low=True)}
    if method == "platt":
        return {name: number(name, parameters[name], low=-math.inf) for name in names}
    scores, probs = ([number(name, value, low=-math.inf) for value in parameters[name]] for name in names)
    ascending = all(np.all(np.diff(values) >= 0) for values in (scores, probs))
    if not (len(scores) == len(probs) > 0 and ascending and probs[0] >= 0 and probs[-1] <= 1):
        raise ParameterError("parameters: wanted as many scores as probs, both ascending, probs from 0 to 1")
    return {"scores": scores, "probs": probs}
