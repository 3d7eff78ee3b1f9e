"""Rated lists of search teams: Quepid and other tables of query, document and rating; ``_rank_eval`` of OpenSearch."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import FileError, ParameterError, excerpt, number, printable, warn
from vbterrier.frames.contracts import label_steps, pandas_frame, require
from vbterrier.frames.files.exports import json_text, table_text, write_text
from vbterrier.frames.files.json_tables import STATUS, is_json
from vbterrier.frames.files.kinds import BOOK, RATINGS, first_line, header_layout
from vbterrier.frames.files.loading import PROB, is_dataset, load
from vbterrier.frames.files.reading import read_labels
from vbterrier.frames.files.source import MAX_BYTES, Source
from vbterrier.frames.files.tables import warn_of_zeros
from vbterrier.frames.files.writing import write_table
from vbterrier.frames.labels import fraction_remedy
from vbterrier.frames.notebook import Panel, count_text
from vbterrier.frames.results import Shown
from vbterrier.remedies import FIRST_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from vbterrier.annotations import StrPath

_MAX_RATING = 2**31
# The member of a judgement in a book of Quepid that names its rater.
_RATER = "user_email"
SPELLING = "case, blanks or Unicode form; use one spelling"


@dataclass(frozen=True, eq=False, repr=False)
class RatedList(Shown):
    """Ratings of documents, and the format of their file.

    - ``labels``: qid (the query's id, or its text if the file has no ids), docno, label; ``iteration`` of TREC qrels,
      ``index`` of ``_rank_eval``
    - ``form``: ``"trec"``, ``"table"``, ``"rank_eval"`` or ``"workbench"``
    - ``heads``: the headers of query, document and rating of a table
    - ``separator``: the separator of a table
    - ``n_unrated``: number of rows without a rating, which are left out: their documents are unjudged
    """

    labels: pd.DataFrame
    form: str = "trec"
    heads: tuple[str, ...] = ("query", "docid", "rating")
    separator: str = "\t"
    n_unrated: int = 0

    def to_frame(self) -> pd.DataFrame:
        """Return ``labels``: a row per rating."""
        return self.labels

    def _line(self) -> str:
        return f"{count_text(len(self.labels), 'rating')} of {self.labels['qid'].nunique()} queries, {self.form}"

    def _panels(self) -> Iterator[Panel]:
        yield Panel("Ratings", self.labels, heads=2)


def read_rated_list(
    path: StrPath, *, scale: tuple[int, int] | None = None, unit: float = 1.0, max_bytes: int | None = MAX_BYTES
) -> RatedList:
    r"""Read ratings: TREC qrels, a table with a header, JSON of any tool, or a book of Quepid, plain or packed.

    Parameters
    ----------
    path
        The file; its content decides how it is read. A table (CSV, TSV, .xlsx) names columns for the query (query,
        Query Text, qid), the document (docid, doc_id, Doc ID) and the rating, as the exports of Quepid do; other
        columns are ignored. A request of the ranking evaluation API of OpenSearch or Elasticsearch has ``requests``
        with ``ratings``, its response ``details`` with rated ``hits``. In a book of Quepid, which has ratings of
        several raters, a document has the lower median of its ratings.
    scale
        The smallest and the largest rating; by default any whole number from 0, and of TREC qrels any whole number.
    unit
        The step of a scale with fractions, by which ratings are divided, as in :func:`vbterrier.read_qrels`.
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
    >>> result = read_rated_list(path, scale=(0, 3))
    >>> result.labels.to_numpy().tolist(), result.n_unrated
    ([['shoes, red', 'd1', 3]], 1)
    """
    require_ends(scale)
    unit = number("unit", unit, low=0, open_low=True)
    book = _book(path, max_bytes)
    if book is not None:
        return _rated_by_several(path, book, scale, unit)
    loaded = load(path, max_bytes, RATINGS if unit == 1 else replace(RATINGS, whole=frozenset()))
    frame = loaded.frame
    if loaded.form == "lines":
        steps, odd = label_steps(frame["label"].to_numpy(dtype=np.float64), unit)
        if scale is not None:
            odd |= ~frame["label"].between(*scale).to_numpy()
        if message := odd_rating_message(frame, odd, scale, unit):
            raise FileError(Path(path), message)
        return RatedList(frame if unit == 1 else frame.assign(label=steps))
    form = loaded.form if loaded.form in ("rank_eval", "workbench") else "table"
    kept = ["qid", "docno", "label", *(["index"] if form == "rank_eval" else [])]
    listed = RatedList(frame[kept], form, loaded.heads or RatedList.heads, loaded.separator)
    labels = listed.labels["label"]
    rated = labels.notna() & (labels.astype(str).str.strip() != "")
    frame = listed.labels[rated].reset_index(drop=True)
    warn_of_zeros(Path(path), (text for text in frame["label"].unique() if isinstance(text, str)))
    # As text, True is no number.
    label = pd.to_numeric(frame["label"].astype(str), errors="coerce").to_numpy(dtype=np.float64)
    low, high = scale or (0, _MAX_RATING)
    steps, odd = label_steps(label, unit)
    if message := odd_rating_message(frame, odd | ~((label >= low) & (label <= high)), scale, unit):
        raise FileError(Path(path), message)
    twice = frame.duplicated(["qid", "docno"])
    if twice.any():
        qid, docno = frame.loc[twice, ["qid", "docno"]].iloc[0]
        raise FileError(
            Path(path), f"document {docno!r} of query {qid!r} is rated twice; keep one, as with {FIRST_LABEL.text()}"
        )
    if not len(frame):
        raise FileError(Path(path), "has no rating; rate some of its documents")
    if pair := spellings(frame["qid"].unique()):
        raise FileError(Path(path), f"queries {pair[0]!r} and {pair[1]!r} differ only in {SPELLING}")
    return replace(listed, labels=frame.assign(label=steps), n_unrated=loaded.n_unrated + int((~rated).sum()))


def read_judges(path: StrPath, *, max_bytes: int | None = MAX_BYTES) -> dict[str, pd.DataFrame]:
    r"""Read the labels of each judge of a book of Quepid, or of one judge from any other file of labels.

    Parameters
    ----------
    path
        A CSV export of a book has columns query, docid, and one for each rater, empty where a rater gave no rating; its
        JSON export a list of pairs with their judgements. For other files see :func:`vbterrier.frames.read_labels`.
    max_bytes
        Limit of the unpacked size; ``None`` for no limit.

    Returns
    -------
    dict
        Frames qid, docno, label (float64) by judge; a single one is called after the file.

    Raises
    ------
    FileError
        The file cannot be read; a rating that is no number.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "book.csv")
    >>> _ = path.write_text("query,docid,Ann,Ben\nhat,d1,3.0,2.0\nhat,d2,,0.0\n")
    >>> {name: labels["label"].tolist() for name, labels in read_judges(path).items()}
    {'Ann': [3.0], 'Ben': [2.0, 0.0]}
    """
    book = _book(path, max_bytes)
    if book is None:
        name = Path(path).name.removesuffix(".gz")
        return {Path(name).stem or name: read_labels(path, max_bytes=max_bytes)}
    parts = book.groupby("judge", sort=False)
    return {str(name): part[["qid", "docno", "label"]].reset_index(drop=True) for name, part in parts}


def _book(path: StrPath, max_bytes: int | None) -> pd.DataFrame | None:
    """The ratings of a book of Quepid: qid, docno, label, judge; ``None`` for other files."""
    if is_dataset(path) or not _is_book(Source.at(path, max_bytes)):
        return None
    frame = load(path, max_bytes, BOOK).frame
    if _RATER in frame.columns:
        long = frame.rename(columns={_RATER: "judge"})
    else:
        long = frame.melt(["qid", "docno"], var_name="judge", value_name="label", ignore_index=False)
        long = long.sort_index(kind="stable").reset_index(drop=True)
    labels = long["label"].astype(str).str.strip()
    long = long[labels != ""].assign(label=pd.to_numeric(labels[labels != ""], errors="coerce").astype("float64"))
    if long["label"].isna().any():
        row = long[long["label"].isna()].iloc[0]
        about = f"{row['docno']!r} for query {row['qid']!r} by {row['judge']!r}"
        cell = labels[labels != ""][long["label"].isna()].iloc[0]
        raise FileError(Path(path), f"the rating of {about} is {printable(cell)}, wanted a number")
    return long.assign(judge=long["judge"].map(lambda name: name if isinstance(name, str) and name else "Unknown"))


def _is_book(source: Source) -> bool:
    """Return True for a book in JSON, or a table of queries and documents without columns of labels or scores."""
    if source.is_parquet or source.is_workbook:
        return False
    number, line = first_line(BOOK, source)
    if is_json(line):
        return b'"query_doc_pairs"' in source.text()
    try:
        layout = header_layout(BOOK, source.path, number, line)
    except FileError:
        return False
    concepts = {"qid", "docno", *BOOK.columns, *BOOK.vocabulary.optional, "score", "rank", "iteration", STATUS}
    names = () if layout is None else layout.names
    if layout is None or layout.heads != ("query", "docid"):
        return False
    return len(names) > 2 and concepts.intersection(names) == {"qid", "docno"} and not any(map(PROB.fullmatch, names))  # noqa: PLR2004


def _rated_by_several(path: StrPath, every: pd.DataFrame, scale: tuple[int, int] | None, unit: float) -> RatedList:
    """The lower median of the ratings of each document."""
    low, high = scale or (0, _MAX_RATING)
    steps, odd = label_steps(every["label"].to_numpy(), unit)
    if message := odd_rating_message(every, odd | ~every["label"].between(low, high), scale, unit):
        raise FileError(Path(path), message)
    n_raters = every["judge"].nunique()
    warn(f"{printable(path)}: ratings by {n_raters} raters; the lower median of those of a document counts")
    median = (
        every.assign(label=steps).groupby(["qid", "docno"], sort=False)["label"].quantile(0.5, interpolation="lower")
    )
    return RatedList(median.astype(np.int64).reset_index(), "table", separator=",")


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
        spreadsheet would run as a formula, which all readers remove; a ``_rank_eval``
        request, and judgments of the Search Relevance Workbench, ratings of null; TREC qrels, whose lines must have a
        label, the plan of :func:`vbterrier.unjudged.judge_next.write_judging`.

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
    frame = pandas_frame(frame, "documents")
    require(frame, ("qid", "docno"), "documents")
    if like.form == "trec":
        write_table(frame.assign(reason=frame.get("reason", "unjudged")), path, "plan", ("qid", "docno", "reason"), ())
        return
    frame = frame.drop(columns="label", errors="ignore")
    if like.form == "table":
        text = table_text(frame, like.heads, like.separator)
    else:
        usual = like.labels["index"].mode().iloc[0] if "index" in like.labels.columns else ""
        text = json_text(frame, like.form, usual)
    write_text(path, text)


def spellings(queries: Iterable[str], others: Iterable[str] = ()) -> tuple[str, str] | None:
    """A query in two spellings, which differ in case, blanks or Unicode form, as in others first; or ``None``."""
    by_form = {_folded_query(query): query for query in others}
    for query in queries:
        if by_form.setdefault(_folded_query(query), query) != query:
            return by_form[_folded_query(query)], query
    return None


def _folded_query(query: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", str(query)).casefold().split())


def require_ends(scale: Any) -> None:
    """Raise ParameterError for a scale that is not two increasing whole numbers."""
    if scale is None:
        return
    is_pair = isinstance(scale, (tuple, list)) and len(scale) == 2  # noqa: PLR2004 - both ends
    if not is_pair or not all(hasattr(end, "__index__") for end in scale) or scale[0] >= scale[1]:
        raise ParameterError(f"scale={excerpt(scale)}: wanted the smallest and the largest rating, as (0, 3)")


def odd_rating_message(frame: pd.DataFrame, odd: Any, scale: tuple[int, int] | None, unit: float = 1.0) -> str:
    """The message about the first odd rating; empty if none is odd."""
    if not np.any(odd):
        return ""
    row = frame[odd].iloc[0]
    requirement = f"from {scale[0]} to {scale[1]}" if scale else "from 0"
    kind = "a whole number" if unit == 1 else f"a multiple of {unit:g}"
    return (
        f"the rating of {row['docno']!r} for query {row['qid']!r} is {printable(row['label'])}, wanted {kind} "
        f"{requirement}; correct it, or leave it empty if it is unrated"
        f"{fraction_remedy(row['label']) if unit == 1 else ''}"
    )
