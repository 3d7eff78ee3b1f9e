"""Linked mentions of a file as tags, answers, mentions or runs of entities, in one id space."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vbterrier.errors import FileError, agreeing, printable, warn
from vbterrier.frames.id_spaces import NIL, NILS, is_no_entity, normalised_ids, space_and_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from vbterrier.frames.files.source import Source


_LOG = logging.getLogger(__name__)
# The kinds of rows that mentions give, runs of entities excepted.
LINKED = ("tags", "answers", "mentions")


class Mention(NamedTuple):
    """A mention in a document: its entities are tuples of id, space of an id that is no address, and score.

    Ids of one candidate in several spaces have one number in ``candidates``, which is empty if each entity is one
    candidate, or all are, see :class:`LinkLayout`.
    """

    line: int | None
    docno: str
    start: int  # half-open; -1 without offsets
    end: int
    text: str
    entities: list[tuple[str, str, float | None]]
    candidates: list[int] = []  # noqa: RUF012 - a default of a named tuple, never changed
    part: str = ""  # of the document, with separate offsets


@dataclass(frozen=True)
class LinkLayout:
    """A layout of linked mentions."""

    name: str
    read: Callable[[Source], Iterator[Mention]] = field(repr=False)
    unit: str = "characters"  # of offsets: characters, words, or empty without offsets
    has_documents: bool = True
    has_texts: bool = True
    has_alternatives: bool = False  # True if the entities of a mention are one entity in several id spaces
    has_main: bool = False  # True if the first of these is the one to read unless another space is chosen
    read_gold: Callable[[Source], Iterator[Mention]] | None = field(default=None, repr=False)  # if it differs

    def frame(self, source: Source, *, is_gold: bool = False) -> pd.DataFrame:
        """Return the columns qid, docno, start, end, mention, entity_id, score, space, number and candidate.

        ``score`` is NaN if there is none; ``space`` is that of ids that are no addresses; ``number`` counts mentions
        from 0, and ``candidate`` the candidates of a mention.
        """
        read = self.read_gold if is_gold and self.read_gold else self.read
        rows, lines = [], list[int | None]()
        mark = "w" if self.unit == "words" else ""
        for number, mention in enumerate(read(source)):
            line, docno, start, end, text, entities, candidates, part = mention
            _check_span(source, mention)
            qid = f"{docno}:{part}{mark}{start}-{end}" if self.unit else docno
            lines.append(line)
            for at, (entity, space, score) in enumerate(entities or [("", "", None)]):
                candidate = candidates[at] if candidates else 0 if self.has_alternatives else at
                # TAC's clusters keep their numbers.
                known = NIL if is_no_entity(entity) and not NILS.fullmatch(entity) else entity
                rows.append((qid, docno, start, end, text, known, score, space, number, candidate))
        names = ["qid", "docno", "start", "end", "mention", "entity_id", "score", "space", "number", "candidate"]
        _LOG.info("%s: recognised as %s, %s mentions", printable(source.path), self.name, f"{len(lines):,}")
        frame = pd.DataFrame(rows, columns=names).astype(
            {"start": "int64", "end": "int64", "score": "float64", "number": "int64", "candidate": "int64"}
        )
        keys = ["qid"] if self.unit else ["qid", "entity_id"]
        twice = frame.drop_duplicates("number" if self.unit else ["number", "entity_id"]).duplicated(keys)
        if twice.any():
            row = frame.loc[twice.index[int(np.argmax(twice))]]
            message = f"mention {row['qid']!r} occurs twice; keep one, with all its candidates in it"
            raise FileError(source.path, message, line=lines[int(row["number"])])
        return frame


def in_one_space(
    source: Source,
    layout: LinkLayout,
    ids: str | None = None,
    mapping: Any = None,
    redirects: Any = None,
    *,
    is_gold: bool = False,
) -> pd.DataFrame:
    """Return the frame of a file of linked mentions, with ids of one space if ``ids`` names it."""
    frame, candidate = layout.frame(source, is_gold=is_gold), ["number", "candidate"]
    if ids is None:
        return frame.drop_duplicates(candidate, ignore_index=True) if layout.has_main else frame
    if layout.has_alternatives:
        spaces = [space_and_id(*pair)[0] for pair in zip(frame["entity_id"], frame["space"], strict=True)]
        frame["is_other"] = [space != ids for space in spaces]
        # Mentions without an id of the space keep one that a mapping may relate to it.
        frame = frame.sort_values([*candidate, "is_other"], kind="stable").drop_duplicates(candidate, ignore_index=True)
    own, name = frame["space"].tolist(), str(source.path)
    entities = normalised_ids(frame["entity_id"].tolist(), own, ids, mapping=mapping, redirects=redirects, name=name)
    return frame.assign(entity_id=entities)


def linked_rows(
    source: Source, layout: LinkLayout, kind: str, ids: str | None = None, mapping: Any = None, redirects: Any = None
) -> pd.DataFrame:
    """Return linked mentions as ``"tags"``, ``"answers"``, ``"mentions"``, or a ``"run"`` of entities.

    With ``ids``, entities are of that id space.
    """
    lacks = {"tags": layout.has_documents, "mentions": layout.has_texts and layout.has_documents}
    if not lacks.get(kind, True):
        what = "documents" if kind == "tags" else "texts of mentions"
        raise FileError(source.path, f"is recognised as {layout.name}, which has no {what}; wanted {kind}")
    frame = in_one_space(source, layout, ids, mapping, redirects)
    if kind != "mentions" and layout.has_alternatives and frame.duplicated(["number", "candidate"]).any():
        row = frame[frame.duplicated(["number", "candidate"], keep=False)].iloc[0]
        message = f"is recognised as {layout.name}; mention {row['qid']!r} has several entities"
        raise FileError(source.path, f"{message}; choose an id space, as ids='wikidata' or --ids wikidata")
    if kind in ("tags", "mentions"):
        frame = _best(frame)
    if kind == "mentions":
        return frame[["docno", "mention", "entity_id", "start", "end"]]
    if kind == "tags":
        is_nil = frame["entity_id"].str.fullmatch(NILS.pattern)
        if is_nil.any():
            warn(f"{printable(source.path)}: {agreeing(int(is_nil.sum()), 'mentions without an entity give no tags')}")
        tags = frame.loc[~is_nil, ["docno", "entity_id", "start", "end", "mention"]].reset_index(drop=True)
        tags.insert(2, "weight", _weights(frame.loc[~is_nil, "score"].to_numpy(), source, layout))
        return tags
    # The candidates of a mention without scores are in the order of the file.
    lacks_scores = frame["score"].isna().groupby(frame["number"]).transform("any")
    frame["score"] = frame["score"].mask(lacks_scores, 0.0 - frame.groupby("number").cumcount())
    if kind == "run":
        return frame.rename(columns={"entity_id": "docno", "docno": "of"})[["qid", "docno", "score"]]
    return frame[["qid", "entity_id", "score", "mention"]]


def _weights(score: NDArray[np.float64], source: Source, layout: LinkLayout) -> NDArray[np.float64]:
    """The scores of links as weights, 1 if the file has none; scores of another scale give 1, too, with a warning."""
    if np.isnan(score).any():
        return np.ones(len(score))
    if ((score < 0) | (score > 1)).any():
        warn(
            f"{printable(source.path)}: recognised as {layout.name}, whose scores are {score.min():g} to "
            f"{score.max():g}, so that every tag gets the weight 1; for weights, convert them to probabilities first, "
            "as with exp(x) of log probabilities: read_entity_links keeps the scores"
        )
        return np.ones(len(score))
    return score


def _best(frame: pd.DataFrame) -> pd.DataFrame:
    """The candidate of each mention with the highest score, or the first."""
    ranked = frame.sort_values(["number", "score"], ascending=[True, False], kind="stable")
    return ranked.drop_duplicates("number", ignore_index=True)


def _check_span(source: Source, mention: Mention) -> None:
    if not mention.docno:
        raise FileError(source.path, "a mention has no document; name it", line=mention.line)
    if mention.start > mention.end:
        message = f"the mention in {mention.docno!r} ends at {mention.end}, before its start at {mention.start}"
        raise FileError(source.path, f"{message}; repair the line", line=mention.line)
