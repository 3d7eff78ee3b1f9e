"""Several systems in one table: the column that names them, and one table of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, examples, printable
from vbterrier.frames.columns import simplified_name
from vbterrier.frames.ids import distinct_blocks, lazy_ids, repeated_pairs
from vbterrier.remedies import ONE_SYSTEM, SYSTEM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vbterrier.annotations import Ints


# Names of columns that may name the system of a row, without case and punctuation.
NAMES = ("name", "system", "model", "tag", "runid")
# The value of ``system=`` for tables that are one run, for any names of their columns.
ONE = "none"
# Rows that mostly show whether documents or ranks repeat across systems.
_SAMPLED_ROWS = 100_000


def columns_of_systems(names: Iterable[Any], system: str | None) -> list[Any]:
    """The columns of a table that may name the systems of its rows; ``system`` as in :func:`split_systems`."""
    if system == ONE:
        return []
    if system is not None:
        return [name for name in names if str(name) == system]
    return [name for name in names if simplified_name(name) in NAMES]


@dataclass(frozen=True)
class EvaluatedColumns:
    """The columns of runs that evaluations read beside those of every run: optional ones, and names of systems."""

    optional: frozenset[str]
    system: str | None = None

    def __contains__(self, name: object) -> bool:
        """Return True for a column that is read."""
        return name in self.optional or bool(columns_of_systems([name], self.system))


def split_systems(name: str, frame: pd.DataFrame, system: str | None = None, what: str = "run") -> dict[str, Any]:
    """Return the runs in a table by name: one of each system if a column names several, else the table itself.

    A column called name, system, model, tag or run_id names systems if documents of a topic, or its ranks, repeat
    across its values. If it varies and nothing repeats, it may as well be a property of documents.

    Parameters
    ----------
    name, what
        The name of a single run, and that of the table in messages.
    frame
        Columns qid and docno; others pass through.
    system
        The column that names systems; ``"none"`` if the table is one run; by default found by its name.

    Returns
    -------
    dict
        Frames by the name of the system, in order of appearance.

    Raises
    ------
    InputError
        A column that varies while nothing repeats; two such columns; a row without a system; no column of this name.

    Notes
    -----
    A table whose columns do not vary, as that of one run, costs a comparison of neighbours in these columns.

    Examples
    --------
    >>> tags = ["BM25", "BM25", "QL"]
    >>> table = pd.DataFrame({"qid": "1", "docno": ["a", "b", "a"], "score": [2.0, 1.0, 1.0], "tag": tags})
    >>> {name: run["docno"].tolist() for name, run in split_systems("runs", table).items()}
    {'BM25': ['a', 'b'], 'QL': ['a']}
    >>> list(split_systems("runs", table.iloc[:2]))
    ['runs']
    >>> list(split_systems("runs", table.assign(docno=["a", "b", "c"])))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    vbterrier.errors.InputError: run: column 'tag' has 2 values ('BM25', 'QL'), and no document or rank of a topic ...
    """
    systems = systems_in(frame, system, what)
    if systems is None:
        return {name: frame}
    _, numbers, names = systems
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers, kind="stable")
        frame, numbers = frame.iloc[order], numbers[order]
    # Rows of one system are contiguous: slices are not copied.
    ends = np.searchsorted(numbers, np.arange(len(names) + 1)).tolist()
    return {
        system_name: frame.iloc[ends[place] : ends[place + 1]].reset_index(drop=True)
        for place, system_name in enumerate(names)
    }


def systems_in(frame: pd.DataFrame, system: str | None, what: str) -> tuple[Any, Ints, list[str]] | None:
    """The column of a table that names several systems, the number of the system of each row, and their names.

    ``None`` for one run, and for a table that lacks the columns of runs, which is refused as a run.
    """
    column = _system_column(frame, system, what)
    if column is None or not {"qid", "docno"} <= set(frame.columns):
        return None
    if system is None and frame[column].isna().any() and not frame.duplicated(["qid", "docno"]).any():
        # Pipelines that join runs keep such a column of one of them.
        return None
    numbers, names = _codes(frame[column], f"{what} column {column!r}")
    if system is None and not _repeats(frame, numbers, what):
        raise InputError(
            f"{what}: column {column!r} has {len(names)} values ({examples(names)}), and no document or rank of a "
            f"topic repeats across them: give {SYSTEM.text(str(column))} if it names the system of a row, and "
            f"{ONE_SYSTEM.text()} if the table is one run"
        )
    return column, numbers, names


def _system_column(frame: pd.DataFrame, system: str | None, what: str) -> Any:
    """The column of a table that names several systems, ``None`` if none has more than one value."""
    columns = columns_of_systems(frame.columns, system)
    if system not in (None, ONE) and not columns:
        raise InputError(f"{what}: {missing_system(str(system), frame.columns)}")
    varying = [column for column in columns if varies(frame[column])]
    if not varying:
        return None
    first, *others = varying
    if others:
        number = _codes(frame[first], f"{what} column {first!r}")[0]
        for other in others:
            pairs = pd.DataFrame({"one": number, "two": _codes(frame[other], f"{what} column {other!r}")[0]})
            distinct = pairs.drop_duplicates()
            if distinct["one"].duplicated().any() or distinct["two"].duplicated().any():
                raise InputError(
                    f"{what}: columns {first!r} and {other!r} vary, each in its own way; give "
                    f"{SYSTEM.text(str(first))} or {SYSTEM.text(str(other))}, or {ONE_SYSTEM.text()} if the table is "
                    "one run"
                )
    return first


def missing_system(system: str, columns: Iterable[Any]) -> str:
    """The message about a table without the column that ``system=`` names."""
    return f"no column {printable(system)!r}, which {SYSTEM.text()} names; found {', '.join(map(str, columns))}"


def named_once(runs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Runs by name; of the systems of several tables, none may have the name of another."""
    named: dict[str, Any] = {}
    for name, run in runs:
        if name in named:
            raise InputError(f"two systems are called {name!r}; give each its own name")
        named[name] = run
    return named


def varies(column: pd.Series[Any]) -> bool:
    """True if a column has more than one value."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.codes
    if column.dtype != object:
        missing = column.isna()
        if missing.any():
            return not bool(missing.all())
        return len(column) > 0 and bool((column != column.iloc[0]).any())
    values = column.to_numpy()
    # Readers repeat one object, whose address is compared at once.
    addresses = np.ndarray(values.shape, np.intp, np.ascontiguousarray(values))
    others = values[addresses != addresses[:1]]
    try:
        return bool((others != values[0]).any()) if len(others) else False
    except (TypeError, ValueError):  # such as lists of different lengths, or pandas.NA
        return len(set(map(repr, values))) > 1


def _codes(column: pd.Series[Any], where: str) -> tuple[Ints, list[str]]:
    """The number of the value of each row, and the values as text, in order of appearance."""
    missing = column.isna().to_numpy()
    if missing.any() and not missing.all():
        raise InputError(f"{where}: row {int(np.argmax(missing))} names no system; give it the name of one")
    if column.dtype.kind in "fb" or (column.dtype == object and not isinstance(column.iloc[0], (str, int))):
        column = column.astype(str)
    ids, numbers = distinct_blocks(column, where).distinct(len(column))
    return numbers, ids.text.to_pylist()


def _repeats(frame: pd.DataFrame, system: Ints, what: str) -> bool:
    """True if a document of a topic, or its rank, is that of several systems; ranks of one system do not repeat."""
    topic = distinct_blocks(frame["qid"], f"{what} column 'qid'").distinct(len(frame))[1]
    few = topic <= topic[min(_SAMPLED_ROWS, len(topic)) - 1]
    # The first topics decide almost always.
    for rows in (np.flatnonzero(few), np.arange(len(frame))):
        part, number, of_topic = frame.iloc[rows], system[rows], topic[rows]
        if "rank" in part.columns and _repeated_ranks(part["rank"], number, of_topic):
            return True
        docno = lazy_ids(part["docno"], f"{what} column 'docno'")
        pairs = repeated_pairs(of_topic, docno)
        if len(pairs):
            keys = pd.DataFrame({"topic": of_topic[pairs], "docno": docno.take(pairs).fingerprints})
            if keys.assign(system=number[pairs]).drop_duplicates().duplicated(["topic", "docno"]).any():
                return True
        if len(rows) == len(frame):
            break
    return False


def _repeated_ranks(column: pd.Series[Any], system: Ints, topic: Ints) -> bool:
    rank = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    table = pd.DataFrame({"topic": topic, "rank": rank, "system": system})
    of_one = table.duplicated().any()
    return not of_one and bool(table.duplicated(["topic", "rank"]).any())
