"""Validation of frames: columns, judgments and ranges of measures as checked arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vbterrier.errors import FileError, InputError, agreeing, choice, nearest, number, printable, warn
from vbterrier.frames.columns import QRELS
from vbterrier.frames.ids import (
    MIN_INDEX_KEYS,
    Lookup,
    column_integers,
    column_keys,
    column_numbers,
    repeated_pairs,
    row_describer,
)
from vbterrier.frames.nested import nested_rows
from vbterrier.frames.trectools import frame_of_trectools, is_trectools
from vbterrier.kernels import fingerprints
from vbterrier.remedies import FIRST_LABEL, UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Bounds = tuple[float, float]

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.columns import ColumnNames
    from vbterrier.frames.ids import Ids


# All columns that the package reads.
_COLUMNS = frozenset(
    (
        *("qid", "docno", "entity_id", "iteration", "name", "query", "mention", "source", "tagger", "measure"),
        *("score", "rank", "label", "prob", "weight", "grade_prob", "value", "tied", "n_abstained"),
    )
)


def is_frame(data: Any) -> bool:
    """Return True for a table, and False for a single column, even if it supports Arrow's interface."""
    names = ("columns", "column_names", "schema")
    return isinstance(data, pd.DataFrame) or (
        hasattr(data, "__arrow_c_stream__") and any(hasattr(data, name) for name in names)
    )


def is_arrow_dataset(data: Any) -> bool:
    """Return True for a ``Dataset`` of pyarrow, without the import of its module, which few need."""
    return any(each.__name__ == "Dataset" and each.__module__.startswith("pyarrow.") for each in type(data).__mro__)


def pandas_frame(data: Any, what: str, vocabulary: ColumnNames | None = None) -> pd.DataFrame:
    """Return a pandas frame unchanged, or convert a table of polars or pyarrow, or an object of TrecTools.

    A ``Dataset`` of pyarrow is read whole. With a vocabulary, columns that other tools name otherwise get the names of
    this package, and dictionaries of dictionaries, lists of records and iterators of tuples, as those of ir_measures,
    are tables, too.
    """
    if isinstance(data, pd.DataFrame):
        if len(set(data.columns)) < len(data.columns):
            for name in data.columns[data.columns.duplicated()]:
                if name in _COLUMNS:
                    raise InputError(f"{what}: column {name!r} occurs {list(data.columns).count(name)} times; keep one")
        frame = data
    else:
        frame = _convert_table(data, what, vocabulary)
    if vocabulary is None or (not vocabulary.spelled and set(vocabulary.named).issubset(frame.columns)):
        return frame
    return known_columns(frame, vocabulary)


def known_columns(frame: pd.DataFrame, vocabulary: ColumnNames) -> pd.DataFrame:
    """Return a frame with the columns of a vocabulary, or unchanged if it lacks one under any name."""
    names = vocabulary.standard_names([str(name) for name in frame.columns])
    lacking = set(vocabulary.named).difference(names)
    if lacking == {"score"} and "rank" in names:
        ranked = frame.set_axis(names, axis=1)
        return ranked.assign(score=-column_numbers(ranked["rank"], "column 'rank'"))
    return frame if lacking or names == list(frame.columns) else frame.set_axis(names, axis=1)


def is_nested_table(data: Any) -> bool:
    """Return True for ``{qid: {docno: number}}``, and for lists of tuples with names, as those of ir_measures."""
    if isinstance(data, Mapping):
        rows = list(data.values())
        inner = [next(iter(row.values()), 0) for row in rows if isinstance(row, Mapping)]
        return bool(rows) and len(inner) == len(rows) and all(isinstance(value, (Number, np.number)) for value in inner)
    if hasattr(data, "__next__") and not hasattr(data, "columns"):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(hasattr(row, "_asdict") for row in data)


def _convert_table(data: Any, what: str, vocabulary: ColumnNames | None) -> pd.DataFrame:
    """The frame of a table that is none of pandas."""
    if is_trectools(data):
        return frame_of_trectools(data, what)
    if isinstance(data, pa.RecordBatchReader):
        raise InputError(
            f"{what}: found a RecordBatchReader, which can be read only once; pass the table of its read_all()"
        )
    if is_arrow_dataset(data):
        data = data.to_table()
    if is_frame(data):
        table = pa.table(data)
        plain = pa.schema([field.with_type(_pandas_type(field.type)) for field in table.schema])
        frame: pd.DataFrame = table.cast(plain).to_pandas()
        return frame
    if vocabulary is not None and (isinstance(data, (list, tuple, Mapping)) or hasattr(data, "__next__")):
        return _nested_table(data, what, vocabulary)
    if hasattr(data, "__next__"):
        raise InputError(f"{what}: found a generator, which can be read only once; pass a frame, or list(...) of it")
    raise InputError(f"{what}: wanted a data frame, found {type(data).__name__}; pass a pandas or polars frame")


def _nested_table(data: Any, what: str, vocabulary: ColumnNames) -> pd.DataFrame:
    """The table of nested objects, as dictionaries of dictionaries, or of an iterator of tuples with names."""
    rows = data
    if not isinstance(data, Mapping):
        rows = list(data)
        if not rows:
            hint = "; an iterator can be read only once: pass list(...) of it" if hasattr(data, "__next__") else ""
            raise InputError(f"{what}: no rows in a {type(data).__name__}{hint}")
        if not all(isinstance(row, Mapping) or hasattr(row, "_asdict") for row in rows):
            once = ", which can be read only once" if hasattr(data, "__next__") else ""
            raise InputError(
                f"{what}: found a {type(data).__name__}{once}; pass a frame, records, or tuples with names as those of "
                "ir_measures"
            )
    try:
        frame = nested_rows(rows, vocabulary)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from error
    return frame.infer_objects()


def _pandas_type(kind: Any) -> Any:
    """Return the pandas-compatible type of a column: pandas does not read string_view, also inside lists."""
    if str(kind) == "string_view":
        return pa.large_string()
    if pa.types.is_dictionary(kind):
        # Older versions of pyarrow cannot convert the unsigned codes of polars to pandas.
        return pa.dictionary(pa.int64(), _pandas_type(kind.value_type), kind.ordered)
    return pa.large_list(_pandas_type(kind.value_type)) if pa.types.is_large_list(kind) else kind


def require(frame: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Check that a frame has some columns, each once."""
    names = [str(name) for name in frame.columns]
    missing = [name for name in columns if name not in names]
    if missing:
        raise InputError(
            f"{what}: wanted columns {', '.join(columns)}; missing {', '.join(missing)}; "
            f"found {', '.join(names) or 'none'}.{nearest(missing[0], names)}"
        )
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        raise InputError(f"{what}: column {twice[0]!r} occurs {names.count(twice[0])} times; keep one")


# Names under which optional columns are given, without case and punctuation.
_SHARES = frozenset(
    ["prior", "priors", "prob", "probs", "probability", "probabilities", "p", "score", "scores", "confidence", "conf"]
) | {"rho", "linkprobability"}
_COUNTS = frozenset(("count", "counts", "frequency", "frequencies", "freq", "n", "traffic", "volume"))
_NEAR_NAMES = {
    "prob": _SHARES | {"weight", "weights", "w"},
    "weight": _SHARES | _COUNTS | {"weights", "w"},
    "prior": _SHARES,
    "score": _SHARES | _COUNTS,
    "mentions": _COUNTS | {"nmentions"},
    "qid": frozenset(("queryid", "topicid", "questionid")),
}


def near_miss(columns: Iterable[Any], optional: Iterable[str], *, others: Iterable[str] = ()) -> str:
    """Return the message about a column that seems to be an optional one under another name; empty if there is none.

    Columns that are not read are ignored, so that a column of weights under another name would change nothing.

    - ``others``: further names of columns that are meant to be there

    >>> near_miss(["docno", "entity_id", "Probability"], ["weight"])
    "column 'Probability' is not read; if it is the weight, rename it to 'weight', otherwise drop it"
    """
    names, optional = [str(name) for name in columns], list(optional)
    for column in (column for column in optional if column not in names):
        near = _NEAR_NAMES.get(column, frozenset()) | {column}
        for name in names:
            if re.sub(r"[\W_]", "", name.casefold()) in near and name not in optional and name not in others:
                return f"column {name!r} is not read; if it is the {column}, rename it to {column!r}, otherwise drop it"
    return ""


def refuse_near_misses(frame: pd.DataFrame, optional: Iterable[str], what: str, *, others: Iterable[str] = ()) -> None:
    """Refuse a frame with an optional column under another name."""
    if message := near_miss(frame.columns, optional, others=others):
        raise InputError(f"{what}: {message}")


def system_items(runs: Any) -> Iterator[tuple[str, Any]]:
    """Yield names, as text, and runs from a mapping or from pairs, refusing repeated names."""
    seen: set[str] = set()
    for key, run in runs.items() if hasattr(runs, "items") else runs:
        name = str(key)
        if name in seen:
            raise InputError(f"two systems are called {name!r}; give each its own name")
        seen.add(name)
        yield name, run


class LabelFrame:
    """Judged documents without duplicates: the number of its topic, document and label of each judgment.

    ``drop_negative`` treats labels below 0 as missing; ``ids`` are the columns qid and docno as ids, of a frame with
    these columns and label.
    """

    def __init__(
        self, qrels: Any, *, name: str = "qrels", drop_negative: bool = False, ids: tuple[Ids, Ids] | None = None
    ) -> None:
        self.name = name
        frame = qrels
        if ids is None:
            frame = pandas_frame(qrels, name, QRELS)
            require(frame, ("qid", "docno", "label"), name)
            ids = (
                column_keys(frame["qid"], f"{name} column 'qid'"),
                column_keys(frame["docno"], f"{name} column 'docno'"),
            )
        self.qid, self.docno = ids
        self.path = getattr(frame, "attrs", {}).get(PATH, "")
        self.topics, self.topic = self.qid.codes()
        owner = row_describer(self.topics, self.topic, self.docno)
        self.label = column_integers(frame["label"], f"{name} column 'label'", owner)
        keep = self._first_judgments_mask(frame["iteration"] if "iteration" in frame.columns else None)
        if drop_negative:
            keep &= self.label >= 0
        if not keep.all():
            self.topic, self.label = self.topic[keep], self.label[keep]
            self.docno = self.docno.take(np.flatnonzero(keep))
            # The cached index is of all rows.
            vars(self).pop("lookup", None)

    @cached_property
    def lookup(self) -> Lookup:
        """The index of rows by topic number and document."""
        return Lookup(self.topic, self.docno)

    def _first_judgments_mask(self, iterations: pd.Series[Any] | None) -> NDArray[np.bool_]:
        """Return a mask that keeps one row per judged document."""
        topic, docno, label = self.topic, self.docno, self.label
        keep = np.ones(len(label), dtype=bool)
        # The index of a small frame, which runs are joined with, shows repeats.
        if len(label) <= MIN_INDEX_KEYS and not self.lookup.has_repeats:
            return keep
        rows = repeated_pairs(topic, docno)
        if not len(rows):
            return keep
        prints = docno.take(rows).fingerprints
        same = (topic[rows[1:]] == topic[rows[:-1]]) & (prints[1:] == prints[:-1])
        clash = same & (label[rows[1:]] != label[rows[:-1]])
        if clash.any():
            first, second = rows[int(np.argmax(clash))], rows[int(np.argmax(clash)) + 1]
            is_diversity = iterations is not None and not iterations.astype(str).isin(["0", "Q0"]).all()
            hint = "; diversity qrels? flatten them first with vbterrier.frames.flatten_qrels" if is_diversity else ""
            odd = np.unique(fingerprints.keys(topic[rows[1:]], prints[1:])[clash])
            of_document = rows[(topic[rows] == topic[first]) & (prints == prints[int(np.argmax(clash))])]
            query, document = self.topics[topic[first]], docno.text[int(first)].as_py()
            places = _places_in_file(self.path, (query, document), len(of_document)) or [
                f"row {row}" for row in of_document
            ]
            at = dict(zip(of_document.tolist(), places, strict=True))
            raise InputError(
                f"{self.name}: document {document!r} of query {query!r} has the labels {label[first]} "
                f"({at[int(first)]}) and {label[second]} ({at[int(second)]}); keep one judgment a "
                f"document{hint}; {agreeing(len(odd), 'documents have')} contradicting labels: to choose, ask for "
                f"{FIRST_LABEL.text()} (or last, max)"
            )
        keep[rows[1:][same]] = False
        warn(f"{self.name}: {int(same.sum())} repeated judgments with the same label count once")
        return keep


# The attribute of a frame that was read from a file.
PATH = "path"


def _places_in_file(path: str, ids: tuple[str, str], n_rows: int) -> list[str]:
    """The file and line of each row of a document, if as many lines of the file hold its ids; else nothing."""
    from vbterrier.frames.files.source import Source

    if not path or not Path(path).is_file():
        return []
    fields = [re.compile(rb"(?<![^\s,;\"'])" + re.escape(each.encode()) + rb"(?![^\s,;\"'])") for each in ids]
    try:
        lines = [n for n, line in Source.at(path, None).lines() if all(each.search(line) for each in fields)]
    except FileError:
        return []
    return [f"{printable(path)}:{line}" for line in lines] if len(lines) == n_rows else []


# The meanings of labels below 0.
NEGATIVE = ("nonrelevant", "unjudged")
# Rules that choose one of several labels of a document.
CONTRADICTIONS = ("error", "first", "last", "max")


def chosen_labels(qrels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Return qrels with one label of each document of a topic and iteration: the first, the last or the highest one.

    With ``"error"``, all rows are returned, and contradicting labels are refused where judgments are used. A warning
    has the number of dropped judgments.

    >>> import warnings
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b", "a"], "label": [2, 0, 1]})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     [chosen_labels(qrels, rule)["label"].tolist() for rule in ("first", "last", "max")]
    [[2, 0], [0, 1], [2, 0]]
    """
    choice("contradictions", rule, CONTRADICTIONS)
    if rule == CONTRADICTIONS[0]:
        return qrels
    keys = [column for column in ("qid", "iteration", "docno") if column in qrels.columns]
    # Of equal labels, the first one.
    ordered = qrels.sort_values("label", ascending=False, kind="stable") if rule == "max" else qrels
    is_dropped = ordered.duplicated(keys, keep="last" if rule == "last" else "first")
    kept = qrels[~is_dropped.reindex(qrels.index)].reset_index(drop=True)
    if len(kept) < len(qrels):
        warn(
            f"qrels: {agreeing(len(qrels) - len(kept), 'judgments are')} repeated and dropped: the {rule} label counts"
        )
    return kept


def treat_negative(qrels: pd.DataFrame, negative: str) -> pd.DataFrame:
    """Return qrels with labels below 0 as they are (``"nonrelevant"``), or without them (``"unjudged"``).

    In the whole package a label below 0 is a judgment of a non-relevant document, as in trec_eval's nDCG, AP and P: for
    ``Unjudged``, ``Condense``, measures with ``judged_only=True`` and models of unjudged documents, too. trec_eval
    itself counts such documents as not judged in ``-J``, ``unj`` and ``bpref``, and -2 is spam in Web tracks: drop
    these rows where they mean "not judged". Exceptions are infAP, for which -1 is a document of the pool that was not
    sampled, and ``compat="ecir23"``, which drops them.
    """
    choice("negative", negative, NEGATIVE)
    if negative == "nonrelevant":
        return qrels
    return qrels[qrels["label"] >= 0].reset_index(drop=True)


# Tolerance of a label as a multiple of its unit: half a step is 0.5.
_LABEL_STEP_TOLERANCE = 1e-6


def label_steps(labels: Floats, unit: float) -> tuple[Ints, Bools]:
    """Return labels as numbers of steps of a scale, and True for those that are no multiple of its step."""
    steps = labels / unit
    # Infinity has no distance from itself.
    with np.errstate(invalid="ignore"):
        odd = ~(np.abs(steps - np.rint(steps)) <= (0 if unit == 1 else _LABEL_STEP_TOLERANCE))
    return np.rint(np.where(odd, 0, steps)).astype(np.int64), odd


def in_units(qrels: Any, unit: float, *, name: str = "qrels") -> pd.DataFrame:
    """Divide labels on a scale with fractions by its smallest step, so that they are whole grades.

    Parameters
    ----------
    qrels, name
        Columns qid, docno, label; the name is that in messages.
    unit
        The step of the scale, above 0, as of :func:`vbterrier.read_qrels`, which reads such labels from files.

    Returns
    -------
    pandas.DataFrame
        The frame with whole labels (int64).

    Raises
    ------
    InputError
        A missing column, a label that is no multiple of the step.

    Examples
    --------
    >>> import pandas as pd
    >>> in_units(pd.DataFrame({"qid": "1", "docno": ["a", "b"], "label": [0.25, 1.0]}), 0.25)["label"].tolist()
    [1, 4]
    """
    frame = pandas_frame(qrels, name, QRELS)
    require(frame, ("qid", "docno", "label"), name)
    unit = number("unit", unit, low=0, open_low=True)
    steps, odd = label_steps(column_numbers(frame["label"], f"{name} column 'label'"), unit)
    if odd.any():
        raise InputError(f"{name}: {odd_label_message(frame, odd, unit)}")
    return frame.assign(label=steps)


def odd_label_message(frame: pd.DataFrame, odd: Bools, unit: float) -> str:
    """The message about the first label that is no multiple of the step of its scale."""
    row = frame[odd].iloc[0]
    return (
        f"the label of {row['docno']!r} in topic {row['qid']!r} is {row['label']:g}, wanted a multiple of {unit:g}: "
        f"give the smallest step of the scale as {UNIT.available_text() or 'unit='}"
    )


def flatten_qrels(qrels: Any, *, name: str = "qrels") -> pd.DataFrame:
    """Convert diversity qrels to adhoc qrels: the highest label of each document over all iterations.

    Parameters
    ----------
    qrels, name
        Columns qid, docno, label; a column ``iteration`` is ignored. The name is that in messages.

    Returns
    -------
    pandas.DataFrame
        Columns qid, docno, label; one row per document, in order of appearance.

    Raises
    ------
    InputError
        A missing column or id, a label that is not an integer.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "1", "iteration": ["1", "2"], "docno": "d", "label": [0, 2]})
    >>> flatten_qrels(qrels).values.tolist()
    [['1', 'd', 2]]
    """
    frame = pandas_frame(qrels, name, QRELS)
    require(frame, ("qid", "docno", "label"), name)
    for column in ("qid", "docno"):
        column_keys(frame[column], f"{name} column {column!r}")
    frame = frame.assign(label=column_integers(frame["label"], f"{name} column 'label'"))
    return frame.groupby(["qid", "docno"], sort=False, observed=True)["label"].max().reset_index()
