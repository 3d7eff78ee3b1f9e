"""Models of relevance that predict a topic without having seen it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Model = Callable[[Floats], Floats]


def folds(topics: Sequence[str], judged: Ints, n_folds: int, seed: int) -> Ints:
    """The part of each topic; -1 where nothing can be learned from it, and of a topic that is the only one."""
    fold = np.full(len(topics), -1, dtype=np.int64)
    if len(judged) == 1:
        warnings.warn(
            f"documents of topic {topics[judged[0]]!r} alone are judged: it predicts itself",
            DegenerateWarning,
            stacklevel=3,
        )
        return fold
    turn = sorted(judged.tolist(), key=lambda place: (stream(seed, "fold", topics[place]).random(), topics[place]))
    fold[turn] = np.arange(len(turn)) % n_folds
    return fold


def cross_fitted(method: str, features: Floats, level: Ints, fold: Ints, *, progress: bool = False) -> Floats:
    """The probability of relevance by models that saw no document of the same part, shape (m,)."""
    known = level >= 0
    chance = np.empty(len(features))
    alike = False
    for part in _tracked(np.unique(fold).tolist(), shown=progress):
        asked = fold == part
        learned = known if part < 0 else known & ~asked
        relevant = level[learned] > 0
        if relevant.all() or not relevant.any():
            alike = True
            chance[asked] = (relevant.sum() + 0.5) / (len(relevant) + 1)
        else:
            chance[asked] = METHODS[method](features[learned], relevant)(features[asked])
    if alike:
        warnings.warn(
            "judged documents to learn from are all relevant, or none is: unjudged ones get the same probability each",
            DegenerateWarning,
            stacklevel=3,
        )
    return chance


def _tracked(parts: list[int], *, shown: bool) -> Iterable[int]:
    from tqdm.auto import tqdm

    tracked: Iterable[int] = tqdm(parts, desc="models", unit="fold", disable=not shown, leave=False)
    return tracked


def _logistic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression; features but the last are in units of their own spread."""
    from sklearn.linear_model import LogisticRegression

    # The pool's share is a prediction by itself, on its own scale: made larger where topics hardly differ, it would say
    # which documents are relevant, which are those whose pool without them has fewer.
    spread = np.append(features[:, :-1].std(axis=0), 0.0)
    centre, scale = features.mean(axis=0), np.where(spread > 0, spread, 1.0)
    model = LogisticRegression(max_iter=1000).fit((features - centre) / scale, relevant)
    return lambda asked: np.asarray(model.predict_proba((asked - centre) / scale)[:, 1])


def _isotonic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression on the logit of an isotonic regression on the first feature, and on the last feature."""
    from scipy.special import logit
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    least = 0.5 / (len(relevant) + 1)
    rising = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(features[:, 0], relevant)

    def bent(given: Floats) -> Floats:
        return np.column_stack([logit(rising.predict(given[:, 0])), given[:, -1]])

    shaped = bent(features)
    centre = shaped.mean(axis=0)
    model = LogisticRegression(max_iter=1000).fit(shaped - centre, relevant)
    if model.coef_[0, 0] < 0:
        alone = _logistic(features[:, -1:], relevant)
        return lambda asked: alone(asked[:, -1:])
    return lambda asked: np.asarray(model.predict_proba(bent(asked) - centre)[:, 1])


METHODS: dict[str, Callable[[Floats, Bools], Model]] = {"logistic": _logistic, "isotonic": _isotonic}
