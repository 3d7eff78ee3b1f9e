"""Models of relevance that predict a topic without having seen it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import DegenerateWarning
from vbterrier.kernels.resample import stream
from vbterrier.parallel import tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Model = Callable[[Floats], Floats]

# The last features are of what is around a document, not of itself.
N_AROUND = 2


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
    for part in tracked(np.unique(fold).tolist(), "models", shown=progress, unit="fold"):
        asked = fold == part
        learned = known if part < 0 else known & ~asked
        relevant = level[learned] > 0
        if relevant.all() or not relevant.any():
            alike = True
            chance[asked] = _share(relevant)
        else:
            chance[asked] = METHODS[method](features[learned], relevant)(features[asked])
    if alike:
        warnings.warn(
            "judged documents to learn from are all relevant, or none is: unjudged ones get the same probability each",
            DegenerateWarning,
            stacklevel=3,
        )
    return chance


def _logistic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression on the features that relevance rises with: the one that it falls with most goes, in turn."""
    from sklearn.linear_model import LogisticRegression

    kept = np.arange(features.shape[1])
    while len(kept):
        model = LogisticRegression(tol=1e-8, max_iter=1000).fit(features[:, kept], relevant)
        slopes = model.coef_[0]
        if (slopes >= 0).all():
            return lambda asked: np.asarray(model.predict_proba(asked[:, kept])[:, 1])
        kept = np.delete(kept, int(np.argmin(slopes)))
    return lambda asked: np.full(len(asked), _share(relevant))


def _isotonic(features: Floats, relevant: Bools) -> Model:
    """Logistic regression on the logit of an isotonic regression on the first feature, and on what is around."""
    from scipy.special import logit
    from sklearn.isotonic import IsotonicRegression

    least = 0.5 / (len(relevant) + 1)
    rising = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(features[:, 0], relevant)

    def bent(given: Floats) -> Floats:
        return np.column_stack([logit(rising.predict(given[:, 0])), given[:, -N_AROUND:]])

    model = _logistic(bent(features), relevant)
    return lambda asked: model(bent(asked))


def _share(relevant: Bools) -> float:
    return float((relevant.sum() + 0.5) / (len(relevant) + 1))


METHODS: dict[str, Callable[[Floats, Bools], Model]] = {"logistic": _logistic, "isotonic": _isotonic}
