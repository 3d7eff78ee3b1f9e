"""Labels that several judges gave to the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError
from vbterrier.frames.contracts import frame_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def labels_of(labels: Any) -> pd.DataFrame:
    """Labels as a frame, a column a judge.

    Raises
    ------
    InputError
        Another shape, fewer than two judges.
    """
    if isinstance(labels, (list, tuple, np.ndarray)):
        array = np.asarray(labels)
        if array.ndim != 2:  # noqa: PLR2004 - items and judges
            raise InputError(f"labels: wanted a row an item and a column a judge, found the shape {array.shape}")
        frame = pd.DataFrame(array)
    else:
        frame = frame_of(labels, "labels")
    if frame.shape[1] < 2:  # noqa: PLR2004 - one judge agrees with nobody
        raise InputError(f"labels: found {frame.shape[1]} columns; agreement wants at least two judges, a column each")
    return frame


def codes_of(labels: pd.DataFrame, categories: Sequence[Any] | None, weights: str | None) -> tuple[Ints, int]:
    """Labels as places among the categories, shape (n_items, n_judges), and how many categories there are.

    Raises
    ------
    InputError
        No item; a label that is missing or not among the categories.
    ParameterError
        Weights for text without categories; a category twice.
    """
    if not len(labels):
        raise InputError("labels: no items; agreement is of labels that several judges gave to the same items")
    missing = labels.isna().to_numpy()
    if missing.any():
        row, column = (int(place[0]) for place in np.nonzero(missing))
        raise InputError(
            f"labels: item {row} has no label of judge {labels.columns[column]!r}; keep the items that all judged"
        )
    flat = labels.to_numpy().ravel()
    if categories is None:
        numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in labels.dtypes)
        if weights is not None and not numeric:
            raise ParameterError(f"weights={weights!r} want an order of labels; give categories, from low to high")
        known = pd.Index(pd.unique(pd.Series(flat))).sort_values()
    else:
        known = pd.Index(list(categories))
        if not known.is_unique:
            raise ParameterError(f"categories={list(categories)}: wanted each label once")
    codes = np.asarray(known.get_indexer(pd.Index(flat)), dtype=np.int64)
    if (codes < 0).any():
        odd = int(np.argmax(codes < 0))
        legal = ", ".join(map(_shown, known))
        raise InputError(f"labels: item {odd // labels.shape[1]} has {_shown(flat[odd])}, wanted one of {legal}")
    return codes.reshape(labels.shape), len(known)


def _shown(label: Any) -> str:
    """A label as Python writes it."""
    return repr(label.item() if isinstance(label, np.generic) else label)
