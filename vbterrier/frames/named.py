"""Registered frames, which measures refer to by name in their text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import InputError, ParameterError, examples, excerpt, nearest
from vbterrier.frames.columns import INTENTS, TAGS
from vbterrier.frames.contracts import known_columns, pandas_frame
from vbterrier.frames.files.reading import read_intents, read_similarities, read_tags
from vbterrier.frames.ids import column_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

_READERS = {"intents": read_intents, "tags": read_tags, "similarities": read_similarities}
# Prefix of the names of saved intent sets.
SET_PREFIX = "intent_set-"
_NAMED: dict[str, dict[str, pd.DataFrame]] = {kind: {} for kind in _READERS}
# Package of the function that registers frames of a kind.
_PACKAGES = {"similarities": "vbterrier.frames"}


def _register(kind: str, name: str, frame: Any, *, replace: bool) -> None:
    if not name or not isinstance(name, str):
        raise ParameterError(f"{kind} name {name!r}: wanted text that is not empty")
    table = pandas_frame(frame, f"{kind} {name!r}", TAGS if kind == "tags" else None)
    registered_table = _NAMED[kind].get(name)
    if registered_table is not None and not replace and not registered_table.equals(table):
        raise InputError(f"{kind} {name!r} are registered with other data; choose another name, or pass replace=True")
    _NAMED[kind][name] = table.copy()


def register_intents(name: str, frame: Any, *, replace: bool = False) -> None:
    """Register candidate intents under a name for measures, as in ``VB(intents="wikipedia")@10``.

    Parameters
    ----------
    name, frame, replace
        The name, which takes precedence over a file of this name; columns qid, entity_id, prob, copied; True to replace
        a different frame of this name.

    Raises
    ------
    InputError
        The name is registered with other data.

    Examples
    --------
    >>> import pandas as pd
    >>> register_intents("example", pd.DataFrame({"qid": ["q1"], "entity_id": ["E1"], "prob": [1.0]}))
    """
    _register("intents", name, frame, replace=replace)


def register_tags(name: str, frame: Any, *, replace: bool = False) -> None:
    """Register tags of documents under a name for measures, as in ``VB(tags="wat")@10``.

    Parameters
    ----------
    name, frame, replace
        As in :func:`register_intents`; columns docno, entity_id, and optionally weight in [0, 1] and qid.

    Examples
    --------
    >>> import pandas as pd
    >>> register_tags("example", pd.DataFrame({"docno": ["d1"], "entity_id": ["E1"]}))
    """
    _register("tags", name, frame, replace=replace)


def register_similarities(name: str, frame: Any, *, replace: bool = False) -> None:
    """Register similarities of intents under a name for measures, as in ``ES(similarities="vectors")@10``.

    Parameters
    ----------
    name, frame, replace
        As in :func:`register_intents`; columns entity_id, other_id, similarity in [0, 1], and optionally qid.

    Examples
    --------
    >>> import pandas as pd
    >>> register_similarities("example", pd.DataFrame({"entity_id": ["E1"], "other_id": ["E2"], "similarity": [0.5]}))
    """
    _register("similarities", name, frame, replace=replace)


def registered_frame(kind: str, name: Any) -> pd.DataFrame | None:
    """Return the frame that is registered under a name in this process, or ``None``."""
    return _NAMED[kind].get(name) if isinstance(name, str) else None


def _candidates(frame: pd.DataFrame) -> Callable[[int], str] | None:
    """Return a function that names the candidate and query of a row in messages, for frames that have both."""
    if not {"qid", "entity_id"} <= set(frame.columns):
        return None
    return lambda row: f" (candidate {str(frame['entity_id'].iloc[row])!r} of query {str(frame['qid'].iloc[row])!r})"


def named_frame(kind: str, source: Any) -> pd.DataFrame:
    """Return a given frame, the frame of a registered name, or the frame of a file."""
    if not isinstance(source, (str, os.PathLike)):
        frame = pandas_frame(source, kind, TAGS if kind == "tags" else None)
        if kind == "intents" and not {"qid", "entity_id", "prob"} <= set(frame.columns):
            frame = known_columns(frame, INTENTS)
        if "prob" in frame.columns and not pd.api.types.is_float_dtype(frame["prob"].dtype):
            # As readers give it, so that nothing behind compares texts.
            frame = frame.assign(prob=column_numbers(frame["prob"], f"{kind} column 'prob'", _candidates(frame)))
        return frame
    name = os.fspath(source)
    if name in _NAMED[kind]:
        return _NAMED[kind][name]
    # Path.exists would raise for a name that is too long for a file.
    if not os.path.exists(name):  # noqa: PTH110
        tables = _NAMED[kind]
        if name.startswith(SET_PREFIX):
            raise InputError(
                f"{kind}={name!r}: the set of this name is not open in this process; use one of its measures first, as "
                "IntentSet(path).VB, with the path of its folder"
            )
        raise InputError(
            f"{kind}={excerpt(name)}: no {kind} are registered under this name and no such file exists; registered: "
            f"{examples(tables) or 'none'}; use {_PACKAGES.get(kind, 'vbterrier')}.register_{kind}(name, frame) or a "
            f"path.{nearest(name, tables)}"
        )
    return _READERS[kind](name)
