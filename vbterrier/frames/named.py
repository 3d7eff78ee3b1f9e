"""Frames known by a name, so that a measure that uses them stays plain text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from vbterrier.errors import InputError, ParameterError, examples, nearest
from vbterrier.frames.contracts import frame_of
from vbterrier.frames.files.reading import read_intents, read_tags

if TYPE_CHECKING:
    import pandas as pd


_READERS = {"intents": read_intents, "tags": read_tags}
# What the names of saved sets begin with.
SET_PREFIX = "intent_set-"
_NAMED: dict[str, dict[str, pd.DataFrame]] = {"intents": {}, "tags": {}}


def _register(kind: str, name: str, frame: Any, *, replace: bool) -> None:
    if not name or not isinstance(name, str):
        raise ParameterError(f"{kind} name {name!r}: wanted a text that is not empty")
    table = frame_of(frame, f"{kind} {name!r}")
    known = _NAMED[kind].get(name)
    if known is not None and not replace and not known.equals(table):
        raise InputError(f"{kind} {name!r} are registered with other data; choose another name, or pass replace=True")
    _NAMED[kind][name] = table.copy()


def register_intents(name: str, frame: Any, *, replace: bool = False) -> None:
    """Make candidate intents known to measures by a name, as in ``VB(intents="wikipedia")@10``.

    Parameters
    ----------
    name
        The name; a file of that name is then no longer looked for.
    frame
        Columns qid, entity_id, prob. A copy is kept.
    replace
        Allow another frame under a name that is taken.

    Raises
    ------
    InputError
        The name is taken by other data.

    Examples
    --------
    >>> import pandas as pd
    >>> register_intents("example", pd.DataFrame({"qid": ["q1"], "entity_id": ["E1"], "prob": [1.0]}))
    """
    _register("intents", name, frame, replace=replace)


def register_tags(name: str, frame: Any, *, replace: bool = False) -> None:
    """Make tags of documents known to measures by a name, as in ``VB(tags="wat")@10``.

    Parameters
    ----------
    name
        The name; a file of that name is then no longer looked for.
    frame
        Columns docno, entity_id, and optionally weight in [0, 1] and qid. A copy is kept.
    replace
        Allow another frame under a name that is taken.

    Raises
    ------
    InputError
        The name is taken by other data.

    Examples
    --------
    >>> import pandas as pd
    >>> register_tags("example", pd.DataFrame({"docno": ["d1"], "entity_id": ["E1"]}))
    """
    _register("tags", name, frame, replace=replace)


def registered(kind: str, name: Any) -> pd.DataFrame | None:
    """The frame that is registered under a name in this process, ``None`` where there is none."""
    return _NAMED[kind].get(name) if isinstance(name, str) else None


def named(kind: str, given: Any) -> pd.DataFrame:
    """A frame as it is, the frame of a registered name, or the file at a path.

    Raises
    ------
    InputError
        Neither name nor file exists; names the nearest registered name.
    """
    if not isinstance(given, (str, os.PathLike)):
        return frame_of(given, kind)
    name = os.fspath(given)
    if name in _NAMED[kind]:
        return _NAMED[kind][name]
    # A name that is too long for a file is none; Path.exists would raise.
    if not os.path.exists(name):  # noqa: PTH110
        known = _NAMED[kind]
        if name.startswith(SET_PREFIX):
            raise InputError(
                f"{kind}={name!r}: the set of this name is not open in this process; ask a measure of it first, as "
                "IntentSet(path).VB, with the path of its folder"
            )
        raise InputError(
            f"{kind}={name!r}: no {kind} are registered under this name and no file is there; registered: "
            f"{examples(known) or 'none'}; use vbterrier.register_{kind}(name, frame) or a path.{nearest(name, known)}"
        )
    return _READERS[kind](name)
