"""Kinds of files: the columns of their frames, and the layouts of their lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError
from vbterrier.frames import columns
from vbterrier.frames.columns import HEADINGS, ID_WORDS, ColumnNames, simplified_name
from vbterrier.frames.files.lines import (
    ENTITY_LINES,
    LABELS_LINES,
    PRELS_FIELDS,
    PRELS_LINES,
    QRELS_LINES,
    RUN_LINES,
    is_number,
    line_layout,
    white,
)
from vbterrier.frames.files.markup import equal_intents, topics_of_markup, web_topics
from vbterrier.frames.files.source import COMMENT, REMARK, WHOLE_COLUMNS, Layout, MisfitError, Source, split_fields
from vbterrier.frames.files.tables import require_columns

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Container, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from vbterrier.frames.files.lines import LineLayout


@dataclass(frozen=True)
class FileKind:
    r"""A kind of file: the columns of its frame, and the layout of its lines."""

    columns: tuple[str, ...]  # the first columns of the frame, in order
    numeric: tuple[str, ...] = ()  # columns of numbers; all others are text
    defaults: Mapping[str, Any] = field(default_factory=dict)  # values of the columns that a file may lack
    others: Container[str] | None = None  # the other columns that are kept; ``None`` for all
    # The layouts of TREC files, of which the first that recognises a line is taken: of lines with more fields than
    # ``fields`` has.
    trec: tuple[LineLayout, ...] = ()
    # Words that mark the first line as a header; without any, the first line never is one.
    header_words: frozenset[str] = frozenset()
    needs_header: bool = False  # True if the first line is always a header
    # The separator without a header: ``" "`` for any white space, ``"\t"`` if fields hold blanks, ``"\t "`` for tabs if
    # the first line has one.
    separator: str = " "
    # The columns of lines without a header, by their number; the first describes lines with any other number.
    fields: tuple[tuple[str, ...], ...] = ()
    remedy: str = ""  # the advice for a line without a header that has another number of fields
    markup: Callable[[Source], pd.DataFrame] | None = None  # the reader of XML and SGML; ``None`` for none
    optional: tuple[str, ...] = ()  # columns that a file may lack and that then are missing
    flags: tuple[str, ...] = ()  # other columns that are True or False
    counts: tuple[str, ...] = ()  # other columns that are whole numbers
    near: tuple[str, ...] = ()  # optional columns that are refused under another name
    # The names of the columns in headers and JSON.
    vocabulary: ColumnNames = field(default_factory=lambda: ColumnNames(()))
    is_pairs: bool = False  # True for queries with documents, whose header names both
    whole: frozenset[str] = WHOLE_COLUMNS  # columns of whole numbers
    unrated: str = ""  # the column that is empty in rows without a rating, or without a document
    links: str = ""  # the rows of linked mentions (run, tags, answers, mentions); empty for files that are none
    dataset: str = ""  # the part of a dataset of ir_datasets (queries, qrels); empty for none
    is_ranked: bool = False  # True if rows without scores are ranked by their ranks or their order
    expects: bool = False  # True if labels may be given by the probabilities of grades

    @property
    def required_columns(self) -> tuple[str, ...]:
        """Columns that every file must have."""
        return tuple(name for name in self.columns if name not in self.defaults and name not in self.optional)

    @property
    def comment(self) -> re.Pattern[bytes] | None:
        """Comments among lines of words, which may have as many words as a row has fields; ``None`` for other lines."""
        if self.trec:
            return COMMENT
        return None if self.separator == "\t" or self.needs_header else REMARK

    def positional(self, names: Sequence[str]) -> list[str]:
        """The columns of a header between blanks: those of a TREC file if all that are known have their places."""
        concepts = {*self.columns, *self.vocabulary.named}
        for each in self.trec:
            layout_names = each.layout.names
            if len(layout_names) == len(names) and all(
                name in (other, "Q0") or name not in concepts for name, other in zip(names, layout_names, strict=True)
            ):
                return list(layout_names)
        return list(names)

    def standard_names(self, names: Sequence[str]) -> list[str]:
        """The columns of a table with the names of this package; others that share a name are numbered."""
        names = self.vocabulary.standard_names(names)
        concepts = {*self.columns, *self.vocabulary.named, *self.vocabulary.optional}
        counts, places = Counter(names), Counter[str]()
        for place, name in enumerate(names):
            places[name] += 1
            if counts[name] > 1 and name not in concepts and places[name] > 1:
                names[place] = f"{name} ({places[name]})"
        return names


def first_line(kind: FileKind, source: Source) -> tuple[int, bytes]:
    """Return the number and bytes of the first line that is neither blank nor a comment; a header may begin with #."""
    number, line = source.first()
    if kind.comment is None or not kind.comment.match(line):
        return number, line
    if kind.is_pairs and header_layout(kind, source.path, number, line) is not None:
        return number, line
    return source.first(kind.comment)


def header_layout(kind: FileKind, path: Path, number: int, line: bytes, *, must: bool = False) -> Layout | None:
    """Return the layout that a header line names, or None if the line is none; ``must``: the first row of a sheet."""
    for separator in "," if must else _separators(kind, line):
        try:
            header = split_fields(line, separator, blanks=separator == " ")
        except MisfitError as error:
            if kind.is_pairs:
                return None
            raise FileError(path, str(error), line=number) from error
        names = kind.standard_names(header)
        if must or kind.needs_header or _is_header(kind, header, names, is_spaced=separator == " "):
            require_columns(path, names, kind.required_columns, number, header)
            numeric = tuple(name for name in names if name in kind.numeric)
            unrated = kind.unrated if kind.unrated in names and "score" not in names else ""
            heads = dict(zip(names, header, strict=True))
            if separator == " ":
                names = kind.positional(names)
            return Layout(
                tuple(names),
                numeric,
                separator,
                blanks=separator == " ",
                header=number,
                whole=kind.whole,
                unrated=unrated,
                heads=tuple(heads[name] for name in kind.required_columns) if kind.is_pairs else (),
                comment=kind.comment if separator == " " else None,
            )
    return None


def _separators(kind: FileKind, line: bytes) -> str:
    """The separators that the header of a table may have, in the order in which they are tried."""
    if kind.needs_header:
        return "\t" if b"\t" in line else ";" if b";" in line and b"," not in line else ","
    if kind.is_pairs:
        # Names between blanks behind # are a comment, as in trec_eval: the rows below may have other fields.
        return "\t" if b"\t" in line else ",;" if COMMENT.match(line) else ",; "
    every = "" if not kind.header_words else "\t,;" if kind.separator == "\t" else "\t,; "
    # Commas may belong to a text, which may be longer than the csv module allows.
    return "".join(
        each for each in every if not (each in ",;" and (b"\t" in line or (each == ";" and b";" not in line)))
    )


def _is_header(kind: FileKind, header: Sequence[str], names: Sequence[str], *, is_spaced: bool) -> bool:
    """Return True for a header.

    It names query and document, or one of them and a rating; in other files it names a header word, begins with the
    name of an id, or holds nothing but headings.
    """
    if kind.is_pairs:
        recognised = {"qid", "docno", *kind.numeric, *kind.vocabulary.named}.intersection(names)
        if is_spaced and not kind.fields:
            # Words between blanks may be ids and a tag, too.
            return {"qid", "docno"} <= recognised and not any(map(is_number, header))
        return {"qid", "docno"} <= recognised or (len(recognised) > 1 and not recognised.isdisjoint(("qid", "docno")))
    words = list(map(simplified_name, header))
    named = kind.header_words.intersection((*header, *words))
    # A text beside an id may be a name, too: two columns must be known.
    recognised = {*kind.vocabulary.named, *kind.vocabulary.optional}.intersection(names)
    are_known = len(recognised) > 1 and recognised.issuperset(kind.vocabulary.named)
    return bool(words[0] in ID_WORDS or HEADINGS.issuperset(words) or named or are_known)


def plain_layout(kind: FileKind, path: Path, number: int, line: bytes) -> Layout:
    """Return the layout of lines without a header."""
    separator = "\t" if kind.separator == "\t" else white(line)
    blanks = kind.separator == " " or separator == " "
    n_fields = len(line.split() if blanks else line.split(b"\t"))
    longest = max(kind.fields, key=len, default=())
    has_levels = any(each.layout.level and each.recognises(line) for each in kind.trec)
    if kind.trec and (has_levels or n_fields > len(longest) or not kind.fields):
        return replace(line_layout(kind.trec, path, number, line), whole=kind.whole)
    names = next((names for names in kind.fields if len(names) == n_fields), kind.fields[0])
    return Layout(
        names,
        tuple(name for name in names if name in kind.numeric),
        separator,
        blanks,
        remedies=dict.fromkeys((1, 2, 3, 4), kind.remedy),
        for_header=f"name its columns as {'<tab>'.join(longest)}, or remove the line",
        whole=kind.whole,
    )


# One of these is enough in tables of ids, which hold no texts.
_ENTITY_WORDS = ID_WORDS | {"topic", "doc", "entity", "entity_id"}
_OR_HEADER = "or name the columns in a header line"
_ENTITIES = ColumnNames(("qid", "entity_id"), (), {"entity_id": "entity"})

RUN = FileKind(
    ("qid", "docno", "score", "rank"),
    ("score", "rank"),
    trec=RUN_LINES,
    optional=("score", "rank"),
    vocabulary=columns.RUN,
    is_pairs=True,
    unrated="rank",
    links="run",
    is_ranked=True,
)
# Documents to rate.
PAIRS = replace(RUN, columns=("qid", "docno"), numeric=(), optional=(), links="", is_ranked=False)
QRELS = FileKind(
    ("qid", "iteration", "docno", "label"),
    ("label",),
    {"iteration": "0"},
    trec=QRELS_LINES,
    vocabulary=columns.QRELS,
    is_pairs=True,
    unrated="label",
    dataset="qrels",
)
# Judgments of sampled documents, with their inclusion probabilities.
PRELS = FileKind(
    PRELS_FIELDS,
    ("label", "prob"),
    trec=PRELS_LINES,
    optional=("method",),
    vocabulary=replace(columns.QRELS, optional=(*columns.QRELS.optional, "prob")),
    is_pairs=True,
)
# Judgments on a scale with fractions.
FRACTIONS = replace(QRELS, whole=frozenset())
# Ratings of search teams, which are checked against their scale.
RATINGS = replace(QRELS, numeric=(), others=("index",))
LABELS = FileKind(
    ("qid", "docno", "label"),
    ("label",),
    trec=LABELS_LINES,
    fields=(("qid", "docno", "label"),),
    remedy=f"write qid iteration docno label, or qid docno label, {_OR_HEADER}",
    vocabulary=columns.LABELS,
    optional=("label",),
    is_pairs=True,
    whole=frozenset(),
    unrated="label",
    dataset="qrels",
    expects=True,
)
# Labels of several judges: a column a judge, or a row for each label with the name of its judge.
BOOK = replace(LABELS, numeric=(), expects=False)
# Segments and covariates, which may be missing, are among the other columns.
QUERIES = FileKind(
    ("qid", "weight", "drawn"),
    ("weight", "drawn"),
    optional=("weight", "drawn"),
    vocabulary=columns.QUERIES,
    needs_header=True,
)
TOPICS = FileKind(
    ("qid", "query"),
    header_words=frozenset(("qid",)),
    separator="\t",
    fields=(("qid", "query"),),
    remedy=f"write qid<tab>query, {_OR_HEADER}",
    markup=topics_of_markup,
    vocabulary=columns.TOPICS,
    dataset="queries",
)
DOCUMENTS = FileKind(
    ("docno",),
    header_words=frozenset(("docno",)),
    separator="\t",
    fields=(("docno", "text"),),
    remedy=f"write docno<tab>text, {_OR_HEADER}",
    vocabulary=columns.DOCUMENTS,
)
INTENTS = FileKind(
    ("qid", "entity_id", "prob"),
    ("prob", "score"),
    header_words=_ENTITY_WORDS | {"prob"},
    fields=(("qid", "entity_id", "prob"),),
    remedy="name the columns in a header line, as qid<tab>entity_id<tab>prob, or remove the extra fields",
    markup=equal_intents,
    vocabulary=columns.INTENTS,
)
SUBTOPICS = FileKind(
    ("qid", "entity_id"),
    ("prob",),
    near=("prob",),
    header_words=_ENTITY_WORDS | {"prob"},
    fields=(("qid", "entity_id"), ("qid", "entity_id", "prob")),
    remedy=f"write qid<tab>entity_id, {_OR_HEADER}",
    markup=web_topics,
    vocabulary=ColumnNames(("qid", "entity_id"), (), {"entity_id": "entity subtopic subtopicid"}),
)
TAGS = FileKind(
    ("docno", "entity_id", "weight"),
    ("weight",),
    {"weight": 1.0},
    flags=("tied",),
    counts=("n_abstained",),
    near=("weight", "qid"),
    header_words=_ENTITY_WORDS,
    fields=(("docno", "entity_id", "weight"), ("docno", "entity_id")),
    remedy="name the columns in a header line, as docno<tab>entity_id<tab>weight, or remove the extra fields",
    links="tags",
    vocabulary=columns.TAGS,
)
SIMILARITIES = FileKind(
    ("entity_id", "other_id", "similarity"),
    ("similarity",),
    near=("qid",),
    header_words=_ENTITY_WORDS | {"other_id", "similarity"},
    needs_header=True,
)
POPULARITY = FileKind(("entity_id", "count"), ("count",), header_words=_ENTITY_WORDS | {"count"}, needs_header=True)
DESCRIPTIONS = FileKind(
    ("entity_id", "text"),
    header_words=_ENTITY_WORDS | {"text"},
    needs_header=True,
    vocabulary=ColumnNames(("entity_id", "text"), (), {"entity_id": "entity id", "text": "description"}),
)
SPELLINGS = FileKind(
    ("attribute", "value", "name"), (), header_words=frozenset({"attribute", "value", "name"}), needs_header=True
)
ANSWERS = FileKind(
    ("qid", "entity_id"),
    ("score",),
    trec=ENTITY_LINES,
    header_words=_ENTITY_WORDS,
    separator="\t ",
    fields=(("qid", "entity_id"), ("qid", "entity_id", "score")),
    remedy=f"write qid<tab>entity_id, NIL where there is no entity, {_OR_HEADER}",
    vocabulary=_ENTITIES,
    links="answers",
)
MENTIONS = FileKind(
    ("docno", "mention"),
    header_words=frozenset(("docno", "mention")),
    separator="\t",
    fields=(("docno", "mention"), ("docno", "mention", "entity_id")),
    remedy=f"write docno<tab>mention<tab>entity_id, NIL where there is none, {_OR_HEADER}",
    vocabulary=ColumnNames(("docno",)),
    links="mentions",
)
# Ids of entities that are redirects, or of another space, and those that they mean.
REDIRECTS = FileKind(
    ("entity_id", "target"),
    header_words=frozenset(("entity_id", "target")),
    separator="\t",
    fields=(("entity_id", "target"),),
    remedy=f"write entity_id<tab>target, {_OR_HEADER}",
)
ANNOTATIONS = FileKind(
    ("qid", "entity_id", "label"), needs_header=True, vocabulary=ColumnNames(("qid", "entity_id", "label"))
)
DOCUMENT_ANNOTATIONS = FileKind(
    ("qid", "docno", "annotation"), needs_header=True, vocabulary=ColumnNames(("qid", "docno"))
)
GROUPS = FileKind(
    ("name", "group"),
    header_words=frozenset(("name", "group")),
    separator="\t ",
    fields=(("name", "group"),),
    remedy=f"write name<tab>group, {_OR_HEADER}",
)
COSTS = FileKind(
    ("qid", "cost"),
    ("cost",),
    header_words=frozenset(("qid", "cost")),
    separator="\t ",
    fields=(("qid", "cost"),),
    remedy=f"write qid<tab>cost, {_OR_HEADER}",
    vocabulary=ColumnNames(("qid",)),
)
VALUES = FileKind(
    ("name", "qid", "measure", "value"),
    ("value",),
    others=("dataset", "model", "gold", "answer", *columns.QUERIES.optional),
    needs_header=True,
    vocabulary=ColumnNames(("qid",)),
)
