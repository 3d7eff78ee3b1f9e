"""Layouts of lines of TREC files: runs, judgments and samples of them, as trec_eval and other tools write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vbterrier.errors import FileError
from vbterrier.frames.files.source import Layout, quoted_text, real_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


_WHOLE_NUMBER = re.compile(rb"[+-]?[0-9]+(\.0*)?")
_PROB = re.compile(rb"0?\.[0-9]+|1(\.0*)?|[0-9]+(\.[0-9]*)?e-[0-9]+")
# A label of NTCIREVAL, and the first two fields of LETOR.
_LEVEL = re.compile(rb"L-?[0-9]{1,9}")
_LETOR = re.compile(rb"\s*[+-]?[0-9.]{1,20}\s+qid:")
_RUN_FIELDS = ("qid", "Q0", "docno", "rank", "score", "name")
PRELS_FIELDS = ("qid", "docno", "label", "method", "prob")
_QRELS_FIELDS = ("qid", "iteration", "docno", "label")
_NONE = Layout((), ())


@dataclass(frozen=True)
class LineLayout:
    """A layout of lines of a TREC file: how its first line is recognised, and its fields or the reason of a refusal."""

    recognises: Callable[[bytes], bool]
    layout: Layout = _NONE
    refusal: str = ""  # the message of a file that is not read; ``{line}`` stands for its first line


def line_layout(layouts: Sequence[LineLayout], path: Path, number: int, line: bytes) -> Layout:
    """Return the layout of the first that recognises a line; the last one of a kind recognises any."""
    chosen = next(each for each in layouts if each.recognises(line))
    if chosen.refusal:
        raise FileError(path, chosen.refusal.replace("{line}", quoted_text(line)), line=number)
    if chosen.layout.separator == ";":
        return chosen.layout
    return replace(chosen.layout, separator=white(line), remarks=_has_remark(line, len(chosen.layout.names)))


def _has_remark(line: bytes, n_fields: int) -> bool:
    """Return True if # follows the fields of a line, as before objects of JSON."""
    fields = line.split(None, n_fields)
    return len(fields) > n_fields and fields[n_fields].startswith(b"#")


def _fields(line: bytes) -> list[bytes]:
    """The fields of a line, without a remark."""
    fields = line.split()
    place = next((place for place, field in enumerate(fields) if place > 2 and field.startswith(b"#")), len(fields))  # noqa: PLR2004
    return fields[:place]


def is_number(field: bytes | str) -> bool:
    """Return True for the text of a number."""
    try:
        real_number(field.decode() if isinstance(field, bytes) else field)
    except ValueError:
        return False
    return True


def _any(_line: bytes) -> bool:
    return True


def white(line: bytes) -> str:
    """Return the separator of a line of fields between tabs, or else blanks."""
    return "\t" if b"\t" in line.strip() else " "


def _run_recogniser(n_fields: int, rank: int, score: int) -> Callable[[bytes], bool]:
    """Return a function that recognises lines of some fields, by the places of a rank and a score."""

    def recognises(line: bytes) -> bool:
        fields = _fields(line)
        return (
            len(fields) == n_fields and _WHOLE_NUMBER.fullmatch(fields[rank]) is not None and is_number(fields[score])
        )

    return recognises


def _is_untagged(line: bytes) -> bool:
    """Return True for ``qid Q0 docno rank score``."""
    fields = _fields(line)
    return len(fields) == len(_RUN_FIELDS) - 1 and fields[1].upper() == b"Q0"


def is_ranked(line: bytes) -> bool:
    """Return True for the first line of a run of MS MARCO, as ``qid docno 1``."""
    fields = line.split()
    return len(fields) == 3 and fields[2] in (b"0", b"1")  # noqa: PLR2004 - qid, docno, rank


_untagged, _unmarked = _run_recogniser(5, 3, 4), _run_recogniser(5, 2, 3)


def _is_span(line: bytes) -> bool:
    """Return True for ``text entity score start end``, of which the last two could be a rank and a score."""
    fields = _fields(line)
    return _untagged(line) and is_number(fields[2]) and not is_number(fields[1])


_WHOLE_RUN = Layout(
    _RUN_FIELDS,
    ("rank", "score"),
    remedies={
        4: "judgments are read with read_qrels",
        5: "five fields are read when every line lacks the run tag (qid Q0 docno rank score) "
        "or Q0 (qid docno rank score tag), rank being a whole number and score a number",
        7: "the run tag or an id seems to hold a blank: replace it",
    },
    form="qid Q0 docno rank score tag",
)
_WITHOUT_TAG = replace(_WHOLE_RUN, names=_RUN_FIELDS[:-1], form="")
_RANKED_REMEDY = (
    "three fields are read as qid docno rank (MS MARCO), ranks from 1; name other columns in a first line, "
)
RUN_LINES = (
    LineLayout(_is_untagged, _WITHOUT_TAG),
    LineLayout(
        lambda line: _untagged(line) and _unmarked(line),
        refusal=f"found 5 fields in {{line}}, which can be read as {' '.join(_RUN_FIELDS[:-1])} and as qid docno rank "
        f"score tag; write all six, {_WHOLE_RUN.form}",
    ),
    LineLayout(
        _is_span,
        refusal=f"found 5 fields in {{line}}, of which the second is no iteration and the third no id, as in "
        f"{' '.join(_RUN_FIELDS[:-1])}; name the columns in a first line",
    ),
    LineLayout(_untagged, _WITHOUT_TAG),
    LineLayout(
        _unmarked, replace(_WHOLE_RUN, names=(_RUN_FIELDS[0], *_RUN_FIELDS[2:]), form="qid docno rank score tag")
    ),
    LineLayout(
        is_ranked,
        replace(
            _WHOLE_RUN, names=("qid", "docno", "rank"), numeric=("rank",), kind="a run of MS MARCO, qid docno rank"
        ),
    ),
    LineLayout(
        lambda line: len(line.split()) == 3,  # noqa: PLR2004 - two ids and a number
        replace(_WHOLE_RUN, remedies={**_WHOLE_RUN.remedies, 3: f"{_RANKED_REMEDY}as qid<tab>docno<tab>score"}),
    ),
    # ColBERT writes ranks from 1, and judgments have no such fractions.
    LineLayout(
        lambda line: _run_recogniser(4, 2, 3)(line) and line.split()[2] == b"1" and b"." in line.split()[3],
        replace(_WHOLE_RUN, names=("qid", "docno", "rank", "score"), kind="a run of ColBERT, qid docno rank score"),
    ),
    LineLayout(_any, _WHOLE_RUN),
)


def is_sampled(fields: Sequence[bytes]) -> bool:
    """Return True for ``qid docno label method probability``, sampled judgments, also with an iteration."""
    *_, label, method, prob = (b"", b"", *fields)
    fits = len(fields) == len(PRELS_FIELDS) or (len(fields) == 6 and fields[1].upper() in (b"0", b"Q0"))  # noqa: PLR2004
    is_prob = _PROB.fullmatch(prob) is not None
    return fits and is_prob and all(map(_WHOLE_NUMBER.fullmatch, (label, method)))


def _is_preference(fields: Sequence[bytes]) -> bool:
    """Return True for ``qid judge group docno label``, the preferences of trec_eval; the label may be a fraction.

    With 0 as the judge, qrels with a blank in an id have as many fields: the group must be a number, the docno none.
    """
    if len(fields) != len(_QRELS_FIELDS) + 1 or not is_number(fields[4]):
        return False
    if fields[1].upper() in (b"0", b"Q0"):
        return is_number(fields[2]) and not is_number(fields[3])
    return True


def _has_levels(line: bytes, n_fields: int, separator: bytes | None = None) -> bool:
    """Return True for judgments of NTCIREVAL, whose labels are L0, L1, ..."""
    fields = line.strip().split(separator) if separator else _fields(line)
    return len(fields) == n_fields and _LEVEL.fullmatch(fields[-1].strip()) is not None


def _is_uniterated(line: bytes) -> bool:
    fields = _fields(line)
    if len(fields) != 3:  # noqa: PLR2004
        return False
    return fields[1].upper() not in (b"0", b"Q0") and _WHOLE_NUMBER.fullmatch(fields[2]) is not None


_WHOLE_QRELS = Layout(
    _QRELS_FIELDS,
    ("label",),
    remedies={
        3: "write the iteration (or the subtopic) between qid and docno, 0 where there is none",
        5: "an id seems to hold a blank: replace it, unless these are preference judgments (qid judge group docno "
        "label), which no measure here reads",
        6: "a run is read with read_run",
    },
)
_UNITERATED = replace(_WHOLE_QRELS, names=("qid", "docno", "label"), kind="qrels without iterations, qid docno label")
_LEVELS = "judgments of NTCIREVAL, with labels L0, L1, ..."
QRELS_LINES = (
    LineLayout(
        lambda line: is_sampled(_fields(line)),
        refusal="is a sample of judgments (prels: qid docno label method probability), whose measures are estimated "
        "with these probabilities: use vbterrier.design.score_sampled, or read it with vbterrier.frames.read_prels",
    ),
    LineLayout(
        lambda line: _is_preference(_fields(line)),
        refusal="holds preference judgments (prefs: qid judge group docno label), which no measure here reads; use "
        "trec_eval's prefs measures, or qrels with one label a document",
    ),
    LineLayout(
        lambda line: _has_levels(line, 4, b";"),
        replace(_WHOLE_QRELS, separator=";", blanks=False, level="L", kind=f"{_LEVELS}, between semicolons"),
    ),
    LineLayout(
        lambda line: _has_levels(line, 3, b";"),
        replace(_UNITERATED, separator=";", blanks=False, level="L", kind=f"{_LEVELS}, between semicolons"),
    ),
    LineLayout(lambda line: _has_levels(line, 4), replace(_WHOLE_QRELS, level="L", kind=_LEVELS)),
    LineLayout(lambda line: _has_levels(line, 3), replace(_UNITERATED, level="L", kind=_LEVELS)),
    LineLayout(
        lambda line: _has_levels(line, 2),
        refusal="is recognised as the judgments of one topic of NTCIREVAL, docno and label; write the topic before "
        "each, as qid docno L1",
    ),
    LineLayout(
        lambda line: _LETOR.match(line) is not None,
        refusal="is recognised as features of LETOR (SVMlight), label qid:1 1:0.5 ...; wanted qid iteration "
        "docno label",
    ),
    LineLayout(_is_uniterated, _UNITERATED),
    LineLayout(_any, _WHOLE_QRELS),
)
PRELS_LINES = (
    LineLayout(
        lambda line: len(line.split()) > len(PRELS_FIELDS),
        Layout(("qid", "iteration", *PRELS_FIELDS[1:]), ("label", "prob"), kind="a sample of judgments (prels)"),
    ),
    LineLayout(_any, Layout(PRELS_FIELDS, ("label", "prob"), kind="a sample of judgments (prels)")),
)
LABELS_LINES = (
    *(each for each in QRELS_LINES if each.layout.level),
    LineLayout(
        _any,
        Layout(_QRELS_FIELDS, ("label",), remedies={5: "an id seems to hold a blank: replace it"}),
    ),
)


def _of_entities(each: LineLayout, recognises: Callable[[bytes], bool]) -> LineLayout:
    names = tuple("entity_id" if name == "docno" else name for name in each.layout.names)
    return LineLayout(recognises, replace(each.layout, names=names), each.refusal)


def _n_fields(line: bytes) -> int:
    return line.count(b"\t") + 1 if white(line) == "\t" else len(line.split())


# TREC qrels and TREC runs over entities.
ENTITY_LINES = (
    _of_entities(QRELS_LINES[-1], lambda line: _n_fields(line) == len(_QRELS_FIELDS)),
    *(_of_entities(each, each.recognises) for each in RUN_LINES),
)
