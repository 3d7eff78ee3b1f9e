"""Writers of ratings and runs in the formats of other tools."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, choice, path_parameter
from vbterrier.frames.columns import LABELS
from vbterrier.frames.contracts import pandas_frame, require
from vbterrier.frames.files.writing import replacing, write_qrels, write_run
from vbterrier.frames.ids import column_ids, column_numbers
from vbterrier.frames.ranking import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import StrPath


RATINGS = ("trec", "beir", "quepid", "rank_eval", "workbench")
RUNS = ("trec", "beir", "quepid")
# Spreadsheets run cells that begin with one of these signs; an apostrophe before them, and before those that have one
# already, guards cells that go to people, and readers of tables remove it.
_FORMULA = re.compile(r"^('*[=+\-@\t\r])")


def write_ratings(frame: Any, path: StrPath, form: str = "quepid", *, index: str = "") -> None:
    """Write qrels, labels, or documents to be rated in the format of another tool.

    Parameters
    ----------
    frame
        Columns qid, docno and optionally label; documents without a label are to be rated. ``index`` is a column of
        ``"rank_eval"``.
    path
        The file, compressed if its name ends in ``.gz``; an existing one is replaced once the new one is complete.
    form
        ``"trec"`` (all documents need a whole label); ``"beir"``: query-id, corpus-id and score between tabs;
        ``"quepid"``: query, docid and rating between commas, as Quepid imports them; ``"rank_eval"``: a request of the
        ranking evaluation API of OpenSearch and Elasticsearch; ``"workbench"``: judgments that OpenSearch's Search
        Relevance Workbench imports.
    index
        The index of the documents in a ``"rank_eval"`` request, where the frame has none.

    Raises
    ------
    InputError
        A missing column or id; a missing label in TREC qrels; a tab or a line end in a table separated by tabs.
    ParameterError
        Another form.
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "ratings.csv")
    >>> write_ratings(pd.DataFrame({"qid": ["shoes, red", "+tv"], "docno": ["d9", "d1"], "label": [2, None]}), path)
    >>> print(path.read_text(), end="")
    query,docid,rating
    "shoes, red",d9,2
    '+tv,d1,
    """
    choice("form", form, RATINGS)
    frame = pandas_frame(frame, "ratings", LABELS)
    require(frame, ("qid", "docno"), "ratings")
    if form == "trec":
        write_qrels(frame, path)
    elif form in ("beir", "quepid"):
        heads = ("query-id", "corpus-id", "score") if form == "beir" else ("query", "docid", "rating")
        write_text(path, table_text(frame, heads, "\t" if form == "beir" else ","))
    else:
        write_text(path, json_text(frame, form, index))


def write_ranking(frame: Any, path: StrPath, form: str = "beir", *, name: str = "vbterrier") -> None:
    """Write a run in the format of another tool, topics in order of appearance and documents in trec_eval's order.

    Parameters
    ----------
    frame
        Columns qid, docno, score.
    path
        As in :func:`write_ratings`.
    form
        ``"trec"``; ``"beir"``: JSON of query, document and score, which pytrec_eval, ranx and MTEB read, too;
        ``"quepid"``: a snapshot, as Quepid imports it.
    name
        The name of the run in TREC files and snapshots.

    Raises
    ------
    InputError, ParameterError, FileError
        As for :func:`write_ratings` and :func:`vbterrier.frames.write_run`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run.json")
    >>> write_ranking(pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [0.5, 2.0]}), path)
    >>> print(path.read_text(), end="")
    {"q1": {"d2": 2.0, "d1": 0.5}}
    """
    choice("form", form, RUNS)
    run = Run(frame, name="run")
    rows = run.ordered_rows()[0]
    qid = np.array(run.topics, dtype=object)[run.topic[rows]]
    docno = run.docno.take(rows).text.to_pylist()
    ranked = pd.DataFrame({"qid": qid, "docno": docno, "score": run.score[rows]})
    ranked["rank"] = ranked.groupby("qid", sort=False).cumcount() + 1
    if form == "trec":
        write_run(ranked, path, name)
    elif form == "beir":
        groups = ranked.groupby("qid", sort=False)
        scores = {str(qid): dict(zip(part["docno"], part["score"].tolist(), strict=True)) for qid, part in groups}
        write_text(path, json.dumps(scores, ensure_ascii=False) + "\n")
    else:
        about = {
            "Snapshot Name": name,
            "Query Text": guarded_texts(ranked["qid"]),
            "Doc ID": guarded_texts(ranked["docno"]),
        }
        table = pd.DataFrame({**about, "Doc Position": ranked["rank"]})
        write_text(path, table.to_csv(index=False, lineterminator="\n"))


def guarded_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """Texts with an apostrophe before the signs of formulas."""
    return column.astype(str).str.replace(_FORMULA, r"'\1", regex=True)


def write_text(path: StrPath, text: str) -> None:
    """Write a text to a file that appears once it is complete."""
    with replacing(path_parameter("path", path)) as file:
        file.write(text.encode())


def table_text(frame: pd.DataFrame, heads: Sequence[str], separator: str) -> str:
    """The text of a table of queries, documents and ratings, which are empty for documents without a label."""
    cells = {name: guarded_texts(frame[name]) for name in ("qid", "docno")}
    table = (
        pd.DataFrame(cells)
        .assign(rating=pd.Series(_labels(frame, ""), frame.index, dtype=object))
        .set_axis(list(heads), axis=1)
    )
    return delimited_text(table, separator, "documents: a query or document holds a tab or a line end; replace it")


def delimited_text(table: pd.DataFrame, separator: str, refused: str) -> str:
    """The text of a table; between tabs, a quote is an ordinary character, and tabs and line ends are refused."""
    quoting: Literal[0, 3] = 0 if separator == "," else 3  # csv.QUOTE_MINIMAL, csv.QUOTE_NONE
    try:
        return table.to_csv(index=False, sep=separator, quoting=quoting, quotechar='"', lineterminator="\n")
    except csv.Error as error:
        raise InputError(refused) from error


def json_text(frame: pd.DataFrame, form: str, index: str) -> str:
    """The text of a ``_rank_eval`` request, or of judgments of the Search Relevance Workbench."""
    indices = frame.get("index", pd.Series(index, index=frame.index)).fillna(index)
    queries: dict[str, list[Any]] = {}
    qid, docno = (column_ids(frame[name], f"ratings column {name!r}").text.to_pylist() for name in ("qid", "docno"))
    for query, document, name, label in zip(qid, docno, indices, _labels(frame, None), strict=True):
        rated = {"_index": name, "_id": document, "rating": label}
        if form == "workbench":
            rated = {"docId": document, "rating": None if label is None else str(label)}
        queries.setdefault(query, []).append(rated)
    if form == "workbench":
        listed = [{"query": query, "ratings": ratings} for query, ratings in queries.items()]
        exported: dict[str, Any] = {"type": "IMPORT_JUDGMENT", "judgmentRatings": listed}
    else:
        exported = {"requests": [{"id": query, "ratings": ratings} for query, ratings in queries.items()]}
    return json.dumps(exported, indent=2, ensure_ascii=False) + "\n"


def _labels(frame: pd.DataFrame, missing: Any) -> list[Any]:
    """Labels, whole ones as integers; ``missing`` for documents without one."""
    if "label" not in frame.columns:
        return [missing] * len(frame)
    rated = frame["label"].notna().to_numpy()
    labels = np.full(len(frame), missing, dtype=object)
    numbers = column_numbers(frame["label"][rated], "ratings column 'label'")
    labels[rated] = [int(number) if number % 1 == 0 else number for number in numbers.tolist()]
    return list(labels)
