"""Rated lists of search teams: Quepid and other tables of query, document and rating; ``_rank_eval`` of OpenSearch."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from vbterrier.errors import FileError, InputError, ParameterError, examples, printable
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.files.reading import MAX_BYTES, read_qrels, read_run, simplified, with_scores
from vbterrier.frames.files.source import (
    REMARK,
    Layout,
    MisfitError,
    RepeatedMemberError,
    Source,
    json_of,
    split,
)
from vbterrier.frames.files.tables import require_columns, text_table, workbook_as_csv
from vbterrier.frames.files.writing import replacing, write_table
from vbterrier.frames.notebook import Panel, Shown, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.annotations import StrPath

# Headers of each column, without punctuation and in lower case; the first one that a table has.
_HEADS = {
    "qid": ("qid", "queryid", "topicid", "querytext", "query", "searchquery", "searchterm"),
    "docno": ("docno", "docid", "documentid", "doc", "document"),
    "label": ("rating", "label", "grade", "relevance", "judgment", "judgement"),
    "rank": ("docposition", "position", "rank"),
    "score": ("score",),
    "weight": ("weight", "traffic", "frequency", "count", "volume"),
    "segment": ("segment", "category", "group"),
}
_LARGEST = 2**31
# Spreadsheets run cells that begin with one of these signs; an apostrophe before them, and before those that have one
# already, guards cells that go to people, and is removed from cells that come back.
_FORMULA, _GUARDED = re.compile(r"^('*[=+\-@\t\r])"), re.compile(r"^'('*[=+\-@\t\r])")
SPELLING = "case, blanks or Unicode form; use one spelling"


@dataclass(frozen=True, eq=False, repr=False)
class RatedList(Shown):
    """Ratings of documents, and the format of their file.

    - ``frame``: qid (the query's id, or its text if the file has no ids), docno, label; ``iteration`` of TREC qrels,
      ``index`` of ``_rank_eval``
    - ``form``: ``"trec"``, ``"table"`` or ``"rank_eval"``
    - ``heads``: the headers of query, document and rating of a table
    - ``separator``: the separator of a table
    - ``n_unrated``: number of rows without a rating, which are left out: their documents are unjudged
    """

    frame: pd.DataFrame
    form: str = "trec"
    heads: tuple[str, ...] = ("query", "docid", "rating")
    separator: str = "\t"
    n_unrated: int = 0

    def _line(self) -> str:
        return f"{counted(len(self.frame), 'rating')} of {self.frame['qid'].nunique()} queries, {self.form}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Ratings", self.frame, heads=2)


def read_rated_list(
    path: StrPath, *, scale: tuple[int, int] | None = None, max_bytes: int | None = MAX_BYTES
) -> RatedList:
    r"""Read ratings: TREC qrels, a table with a header, or a ``_rank_eval`` request or response, plain or gzip.

    Parameters
    ----------
    path
        The file; its content decides how it is read. A table (CSV, TSV, .xlsx) names columns for the query (query,
        Query Text, qid), the document (docid, doc_id, Doc ID) and the rating, as the exports of Quepid do; other
        columns are ignored. A request of the ranking evaluation API of OpenSearch or Elasticsearch has ``requests``
        with ``ratings``, its response ``details`` with rated ``hits``.
    scale
        The smallest and the largest rating; by default any whole number from 0, and of TREC qrels any whole number.
    max_bytes
        Limit of the unpacked size; ``None`` for no limit.

    Returns
    -------
    RatedList

    Raises
    ------
    FileError
        The file cannot be read; a rating that is not a whole number of the scale; a document that is rated twice; a
        query in two spellings, which differ in case, blanks or Unicode form.
    ParameterError
        A scale that is not two increasing whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "quepid.csv")
    >>> _ = path.write_text('query,docid,rating\n"shoes, red",d1,3\n"shoes, red",d2,\n')
    >>> found = read_rated_list(path, scale=(0, 3))
    >>> found.frame.to_numpy().tolist(), found.n_unrated
    ([['shoes, red', 'd1', 3]], 1)
    """
    require_ends(scale)
    source, found = _opened(path, max_bytes)
    if found is None:
        frame = read_qrels(path, max_bytes=max_bytes)
        if scale is not None and (message := misrated(frame, ~frame["label"].between(*scale), scale)):
            raise FileError(source.path, message)
        return RatedList(frame)
    if isinstance(found, dict):
        listed = RatedList(
            pd.DataFrame(_ratings(source, found), columns=["qid", "docno", "label", "index"]), "rank_eval"
        )
    else:
        wanted = ("qid", "docno", "label")
        require_columns(source.path, found.names, wanted, line=found.header)
        heads = dict(zip(found.names, found.form.split("\t"), strict=True))
        listed = RatedList(
            _table(source, found)[[*wanted]], "table", tuple(heads[name] for name in wanted), found.separator
        )
    given = listed.frame["label"]
    rated = given.notna() & (given.astype(str).str.strip() != "")
    frame = listed.frame[rated].reset_index(drop=True)
    # As text, True is no number.
    label = pd.to_numeric(frame["label"].astype(str), errors="coerce").to_numpy(dtype=np.float64)
    low, high = scale or (0, _LARGEST)
    if message := misrated(frame, ~((label >= low) & (label <= high) & (label == np.round(label))), scale):
        raise FileError(source.path, message)
    twice = frame.duplicated(["qid", "docno"])
    if twice.any():
        qid, docno = frame.loc[twice, ["qid", "docno"]].iloc[0]
        raise FileError(source.path, f"document {docno!r} of query {qid!r} is rated twice; keep one rating")
    if not len(frame):
        raise FileError(source.path, "has no rating; rate some of its documents")
    if pair := spellings(frame["qid"].unique()):
        raise FileError(source.path, f"queries {pair[0]!r} and {pair[1]!r} differ only in {SPELLING}")
    return replace(listed, frame=frame.assign(label=label.astype(np.int64)), n_unrated=int((~rated).sum()))


def read_hits(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read a run: as :func:`vbterrier.read_run`, a ``_rank_eval`` response, or a table of queries and documents.

    Parameters
    ----------
    path
        The file. Hits of a response are ranked in its order. A table, such as a snapshot exported by Quepid, has
        columns for the query, the document, and the position or the score.
    max_bytes
        Limit of the unpacked size; ``None`` for no limit.

    Returns
    -------
    pandas.DataFrame
        qid, docno, score, rank if known, and ``index`` of a response.

    Raises
    ------
    FileError
        The file cannot be read; a response with failed queries.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "new.json")
    >>> hits = [{"hit": {"_index": "shop", "_id": "d7", "_score": 2.5}, "rating": None}]
    >>> _ = path.write_text(json.dumps({"details": {"red shoes": {"hits": hits}}}))
    >>> read_hits(path).to_numpy().tolist()
    [['red shoes', 'd7', -1.0, 1, 'shop']]
    """
    source, found = _opened(path, max_bytes)
    if found is None:
        return read_run(path, max_bytes=max_bytes)
    if not isinstance(found, dict):
        require_columns(source.path, found.names, ("qid", "docno"), line=found.header)
        return with_scores(source.path, _table(source, found).drop(columns="label", errors="ignore"))
    details = found.get("details")
    if not isinstance(details, dict):
        raise FileError(source.path, "wanted the response of _rank_eval with details; a request has no hits")
    if failures := found.get("failures"):
        raise FileError(source.path, f"the search failed for {len(failures)} queries ({examples(failures)}); repeat it")
    rows = [
        (qid, docno, -float(rank), rank, index)
        for qid, hits in _hits(source, details)
        for rank, (docno, index, _) in enumerate(hits, 1)
    ]
    return pd.DataFrame(rows, columns=["qid", "docno", "score", "rank", "index"])


def read_traffic(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> pd.DataFrame:
    """Read weights and segments of queries: a table with a header, a column for the query, weight, segment or both."""
    source, found = _opened(path, max_bytes)
    if not isinstance(found, Layout):
        raise FileError(source.path, "wanted a table with a header line: query, weight, segment")
    require_columns(source.path, found.names, ("qid",), line=found.header)
    return _table(source, found)


def write_rated_list(frame: Any, path: StrPath, like: RatedList) -> None:
    """Write documents without ratings in the format of a rated list, to be rated and added to it.

    Parameters
    ----------
    frame
        qid, docno, and optionally ``reason`` and, for ``_rank_eval``, ``index`` (by default that of most ratings).
    path
        The file; an existing one is replaced once the new one is complete.
    like
        The list: a table gets its headers and separator with empty ratings, and an apostrophe before cells that a
        spreadsheet would run as a formula, which :func:`read_rated_list` and :func:`read_hits` remove; a ``_rank_eval``
        request ratings of null; TREC qrels, whose lines must have a label, the plan of
        :func:`vbterrier.unjudged.judge_next.write_judging`.

    Raises
    ------
    InputError
        A missing column; a tab or a line end in a table separated by tabs.
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "next.csv")
    >>> like = RatedList(pd.DataFrame(), "table", ("Query Text", "Doc ID", "Rating"), ",")
    >>> write_rated_list(pd.DataFrame({"qid": ["shoes, red"], "docno": ["d9"]}), path, like)
    >>> print(path.read_text(), end="")
    Query Text,Doc ID,Rating
    "shoes, red",d9,
    """
    frame = frame_of(frame, "documents")
    require(frame, ("qid", "docno"), "documents")
    if like.form == "trec":
        write_table(frame.assign(reason=frame.get("reason", "unjudged")), path, "plan", ("qid", "docno", "reason"), ())
        return
    if like.form == "table":
        quoting: Literal[0, 3] = 0 if like.separator == "," else 3  # csv.QUOTE_MINIMAL, csv.QUOTE_NONE
        cells = {name: frame[name].astype(str).str.replace(_FORMULA, r"'\1", regex=True) for name in ("qid", "docno")}
        table = pd.DataFrame(cells).assign(rating="").set_axis(list(like.heads), axis=1)
        try:
            text = table.to_csv(index=False, sep=like.separator, quoting=quoting, quotechar='"', lineterminator="\n")
        except csv.Error as error:
            raise InputError("documents: a query or document holds a tab or a line end; replace it") from error
    else:
        usual = like.frame["index"].mode().iloc[0]
        index = frame.get("index", pd.Series(usual, index=frame.index)).fillna(usual)
        requests: dict[str, list[Any]] = {}
        for qid, docno, name in zip(frame["qid"], frame["docno"], index, strict=True):
            requests.setdefault(qid, []).append({"_index": name, "_id": docno, "rating": None})
        listed = [{"id": qid, "ratings": ratings} for qid, ratings in requests.items()]
        text = json.dumps({"requests": listed}, indent=2, ensure_ascii=False) + "\n"
    with replacing(Path(path)) as file:
        file.write(text.encode())


def spellings(queries: Iterable[str], others: Iterable[str] = ()) -> tuple[str, str] | None:
    """A query in two spellings, which differ in case, blanks or Unicode form, as in others first; or ``None``."""
    known = {_folded(query): query for query in others}
    for query in queries:
        if known.setdefault(_folded(query), query) != query:
            return known[_folded(query)], query
    return None


def _folded(query: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", str(query)).casefold().split())


def _opened(path: StrPath, max_bytes: int | None) -> tuple[Source, dict[str, Any] | Layout | None]:
    """The file with its JSON object, or the layout of its table; ``None`` for TREC and Parquet files."""
    source = Source.at(path, max_bytes)
    if source.is_parquet:
        return source, None
    source = workbook_as_csv(source) if source.is_workbook else source
    number, line = source.first(REMARK)
    if line.lstrip()[:1] == b"{":
        return source, _rank_eval(source)
    separator = "\t" if b"\t" in line else ","
    try:
        given = split(line, separator, blanks=False)
    except MisfitError as error:
        raise FileError(source.path, str(error), line=number) from error
    words = [simplified(name) for name in given]
    # Columns that are not used may share a name.
    names = [f"{name} ({place})" for place, name in enumerate(given)]
    for name, heads in _HEADS.items():
        if first := next((head for head in heads if head in words), None):
            names[words.index(first)] = name
    if "qid" not in names and ("docno" not in names or "label" not in names):
        if separator == "," and len(given) > 1:
            message = (
                f"wanted a header line with columns for the query, the document and the rating; found {examples(given)}"
            )
            raise FileError(source.path, message, line=number)
        return source, None
    numeric = tuple(name for name in ("rank", "score", "weight") if name in names)
    return source, Layout(tuple(names), numeric, separator, blanks=False, header=number, form="\t".join(given))


def _rank_eval(source: Source) -> dict[str, Any]:
    try:
        found = json_of(source.text())
    except RepeatedMemberError as error:
        raise FileError(source.path, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise FileError(source.path, f"is not one JSON object ({error}); wanted that of _rank_eval") from error
    found = found.get("rank_eval", found)
    if not isinstance(found, dict) or not {"requests", "details"} & set(found):
        raise FileError(source.path, "wanted a JSON object with requests or details, those of _rank_eval")
    return found


def _table(source: Source, layout: Layout) -> pd.DataFrame:
    """The known columns of a table."""
    frame: pd.DataFrame = text_table(source, replace(layout, form="")).to_pandas()
    for name in {"qid", "docno"}.intersection(frame.columns):
        frame[name] = frame[name].str.replace(_GUARDED, r"\1", regex=True)
    return frame[[name for name in frame.columns if name in _HEADS]]


def require_ends(scale: Any) -> None:
    """Raise ParameterError for a scale that is not two increasing whole numbers."""
    if scale is None:
        return
    is_pair = isinstance(scale, (tuple, list)) and len(scale) == 2  # noqa: PLR2004 - both ends
    if not is_pair or not all(hasattr(end, "__index__") for end in scale) or scale[0] >= scale[1]:
        raise ParameterError(f"scale={scale!r}: wanted the smallest and the largest rating, as (0, 3)")


def misrated(frame: pd.DataFrame, odd: Any, scale: tuple[int, int] | None) -> str:
    """The message about the first odd rating; empty if none is odd."""
    if not np.any(odd):
        return ""
    row = frame[odd].iloc[0]
    wanted = f"from {scale[0]} to {scale[1]}" if scale else "from 0"
    return (
        f"the rating of {row['docno']!r} for query {row['qid']!r} is {printable(row['label'])}, wanted a whole number "
        f"{wanted}; correct it, or leave it empty if it is unrated"
    )


def _ratings(source: Source, found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Rows of qid, docno, rating and index of a request, or of the hits in a response."""
    if "requests" not in found:
        listed = _hits(source, found["details"])
        return [(qid, docno, rating, index) for qid, hits in listed for docno, index, rating in hits]
    rows = []
    for place, request in enumerate(found["requests"] if isinstance(found["requests"], list) else [None]):
        ratings = request.get("ratings") if isinstance(request, dict) else None
        if not isinstance(ratings, list):
            raise FileError(source.path, f"request {place} has no list of ratings; wanted id and ratings")
        qid = _text(source, request.get("id"), f"id of request {place}")
        for one in ratings:
            docno, index = _document(source, one, qid)
            rows.append((qid, docno, one.get("rating"), index))
    return rows


def _hits(source: Source, details: Any) -> list[tuple[str, list[tuple[str, str, Any]]]]:
    """The hits of each query of a response: docno, index and rating."""
    found = []
    for qid, detail in details.items() if isinstance(details, dict) else [("details", None)]:
        hits = detail.get("hits") if isinstance(detail, dict) else None
        if not isinstance(hits, list) or not all(isinstance(one, dict) for one in hits):
            raise FileError(source.path, f"query {qid!r} has no list of hits; wanted the whole response of _rank_eval")
        found.append((qid, [(*_document(source, one.get("hit"), qid), one.get("rating")) for one in hits]))
    return found


def _document(source: Source, given: Any, qid: str) -> tuple[str, str]:
    """The id and the index of a document."""
    if not isinstance(given, dict):
        raise FileError(source.path, f"query {qid!r}: wanted objects with _index and _id, found {examples([given])}")
    return _text(source, given.get("_id"), f"_id of a document of {qid!r}"), str(given.get("_index", ""))


def _text(source: Source, value: Any, what: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise FileError(source.path, f"{what} is {value!r}, wanted text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise FileError(source.path, f"{what} holds half of a surrogate pair; write the file again") from error
    return value
