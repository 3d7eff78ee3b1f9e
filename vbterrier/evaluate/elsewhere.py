"""What other processes do not know: sets that are registered by name in this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vbterrier.frames.named import register_intents, register_tags, registered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import ir_measures
    import pandas as pd

    Sets = Mapping[tuple[str, str], pd.DataFrame]

_REGISTER = {"intents": register_intents, "tags": register_tags}


def registered_sets(measures: Iterable[ir_measures.Measure]) -> Sets:
    """Intents and tags that measures know by name, by kind and name."""
    given = {(kind, measure.params.get(kind)) for measure in measures for kind in _REGISTER}
    found = {(kind, name): registered(kind, name) for kind, name in given}
    return {key: frame for key, frame in found.items() if frame is not None}


def register(sets: Sets) -> None:
    """On a worker: make them known."""
    for (kind, name), frame in sets.items():
        _REGISTER[kind](name, frame, replace=True)
