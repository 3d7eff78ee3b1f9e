"""The columns that frames must have, and frames of other libraries made ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from vbterrier.errors import InputError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OF_IDS = ("qid", "docno", "entity_id", "iteration", "name", "query", "mention", "source", "tagger", "measure")
_OF_NUMBERS = ("score", "rank", "label", "prob", "weight", "grade_prob", "value")
_OURS = frozenset((*_OF_IDS, *_OF_NUMBERS))


def is_frame(data: Any) -> bool:
    """Whether it is a table: columns speak Arrow too, those of pandas 3 and polars.

    >>> is_frame(pd.DataFrame()), is_frame(pd.Series(["d1"])), is_frame(["d1"])
    (True, False, False)
    """
    names = ("columns", "column_names", "schema")
    return isinstance(data, pd.DataFrame) or (
        hasattr(data, "__arrow_c_stream__") and any(hasattr(data, name) for name in names)
    )


def frame_of(data: Any, what: str) -> pd.DataFrame:
    """A pandas frame from a pandas frame (as it is) or from any table that speaks Arrow (polars, pyarrow).

    Raises
    ------
    InputError
        Anything else: a generator above all, which could be read only once. A column that we may read stands twice.
    """
    if isinstance(data, pd.DataFrame):
        _require_single(data, what)
        return data
    if is_frame(data):
        table = pa.table(data)
        plain = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
        frame: pd.DataFrame = table.cast(plain).to_pandas()
        return frame
    if hasattr(data, "__next__"):
        raise InputError(f"{what}: found a generator, which can be read only once; pass a frame, or list(...) of it")
    raise InputError(f"{what}: wanted a data frame, found {type(data).__name__}; pass a pandas or polars frame")


def _require_single(frame: pd.DataFrame, what: str) -> None:
    """Refuse two columns of one name where we could read one of them, wanted or not."""
    if not frame.columns.is_unique:
        for name in frame.columns[frame.columns.duplicated()]:
            if name in _OURS:
                raise InputError(f"{what}: column {name!r} stands {list(frame.columns).count(name)} times; keep one")


def _plain(kind: Any) -> Any:
    """The type of a column as pandas knows it: what polars calls text it does not, by itself or in lists."""
    if str(kind) == "string_view":
        return pa.large_string()
    if pa.types.is_dictionary(kind):
        # Categories of polars are numbered without a sign, which older versions of pyarrow do not hand to pandas.
        return pa.dictionary(pa.int64(), _plain(kind.value_type), kind.ordered)
    return pa.large_list(_plain(kind.value_type)) if pa.types.is_large_list(kind) else kind


def require(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Check that a frame has some columns, each once.

    Raises
    ------
    InputError
        Lists what was wanted and found, with the nearest name for the first missing column.

    >>> import pandas as pd
    >>> require(pd.DataFrame({"qid": [], "doc_no": []}), ("qid", "docno"), "run")
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: run: wanted columns qid, docno; missing docno; found qid, doc_no. Did you mean doc_no?
    """
    found = [str(name) for name in frame.columns]
    missing = [name for name in columns if name not in found]
    if missing:
        raise InputError(
            f"{what}: wanted columns {', '.join(columns)}; missing {', '.join(missing)}; "
            f"found {', '.join(found) or 'none'}.{nearest(missing[0], found)}"
        )
    twice = [name for name in columns if found.count(name) > 1]
    if twice:
        raise InputError(f"{what}: column {twice[0]!r} stands {found.count(twice[0])} times; keep one")


def systems_of(runs: Any) -> Iterator[tuple[str, Any]]:
    """Names and runs from a mapping, refusing repeated names in a sequence of pairs.

    Raises
    ------
    InputError
        The same name twice.
    """
    seen: set[str] = set()
    for name, run in runs.items() if hasattr(runs, "items") else runs:
        if name in seen:
            raise InputError(f"two systems are called {name!r}; give each its own name")
        seen.add(name)
        yield name, run
