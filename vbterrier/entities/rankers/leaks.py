"""Features that know the judgments: refused by what they are called and by what they hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from vbterrier.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# The words of column names that say that a column was made from judgments.
_WORDS = re.compile(
    r"labels?|(df)?(non|ir)?rel(evant|evance)?|qrels?|oer|judged|judge?ments?|grades?|gain|precision|recall|lift|(log)?odds|"
    r"(non)?relcov|truth|gold"
)
# Of fewer rows an honest feature may by accident order all as judgments do.
_FEWEST = 20


def refuse_names(features: Sequence[str]) -> None:
    """Refuse features that are called as what is made from judgments.

    Raises
    ------
    ParameterError
        Names the feature.

    >>> refuse_names(["df", "df_rel"])
    Traceback (most recent call last):
    ...
    vbterrier.errors.ParameterError: feature 'df_rel' is called as what judgments say; what is known from judgments \
alone cannot rank entities for new queries: drop it, or rename a column that is innocent
    """
    for name in features:
        words = re.split(r"[\W_\d]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
        if any(_WORDS.fullmatch(word) for word in words):
            raise ParameterError(
                f"feature {name!r} is called as what judgments say; what is known from judgments alone cannot rank "
                "entities for new queries: drop it, or rename a column that is innocent"
            )


def refuse_copies(features: Mapping[str, Floats], judged: Mapping[str, Floats]) -> None:
    """Refuse features from which something judged can be read off: equal, or each strictly monotone in the other.

    Parameters
    ----------
    features, judged
        Of the same rows, shape (n,) each. What is one value throughout tells nothing; of fewer than 20 rows only equal
        values count.

    Raises
    ------
    InputError
        Names the feature and what it repeats.

    >>> refuse_copies({"x": np.arange(20) % 2 * 0.3}, {"the label": 1.0 - np.arange(20) % 2})
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: feature 'x' repeats the label in all 20 rows; it was made from judgments: drop it
    """
    telling = {what: values for what, values in judged.items() if len(np.unique(values)) > 1}
    for name, values in features.items():
        for what, known in telling.items():
            if np.array_equal(values, known) or (len(values) >= _FEWEST and _same_order(values, known)):
                raise InputError(
                    f"feature {name!r} repeats {what} in all {len(values)} rows; it was made from judgments: drop it"
                )


def _same_order(one: Floats, other: Floats) -> bool:
    """Whether each is a strictly monotone function of the other."""
    places = [np.unique(values, return_inverse=True)[1] for values in (one, other, -other)]
    return np.array_equal(places[0], places[1]) or np.array_equal(places[0], places[2])
