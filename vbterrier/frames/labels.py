"""Labels that seem to be no grades: with leading zeros, or too large."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import excerpt
from vbterrier.remedies import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable


# Larger labels are rarely grades.
_LARGEST_GRADE = 100
_PADDED = re.compile(r"0[0-9]+")


def text_of_padded_labels(labels: Iterable[Any]) -> str:
    """Description of labels with leading zeros, as of bit masks of aspects; empty for others."""
    texts = (label.strip() for label in labels if isinstance(label, str))
    padded = next((text for text in texts if _PADDED.fullmatch(text)), None)
    if padded is None:
        return ""
    return (
        f"labels have leading zeros, as {excerpt(padded)}, and are read as whole numbers; if they are bit masks of "
        "aspects, write a row for each aspect, as qid aspect docno 1"
    )


def fraction_remedy(label: Any) -> str:
    """The remedy for a label that is a fraction, to be added to a message; empty for others."""
    value = pd.to_numeric(str(label), errors="coerce")
    if not math.isfinite(value) or value % 1 == 0:
        return ""
    return f"; read fractions with {UNIT.text()}, the smallest step of their scale"


def text_of_large_labels(labels: Any) -> str:
    """Description of labels that seem to be no grades, with the remedy; empty if all are at most 100."""
    largest = pd.to_numeric(pd.Series(labels), errors="coerce").max()
    # Labels beyond 64 bits are refused.
    if not _LARGEST_GRADE < largest < 2.0**63:
        return ""
    return (
        f"labels up to {largest:,.15g} are gains of measures such as nDCG; are they grades? Map bit masks of aspects, "
        "ids and years to grades first"
    )
