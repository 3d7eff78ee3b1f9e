"""Evaluation of entity linking over mentions: spans of documents that a system finds and links itself."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, agreeing, choice, examples, warn, whole
from vbterrier.frames.contracts import pandas_frame, require, system_items
from vbterrier.frames.entity_answers import checked_nil, plain_entities, warn_of_foreign_answers
from vbterrier.frames.files.entity_links import linked_mentions
from vbterrier.frames.id_spaces import NIL, entity_ids
from vbterrier.frames.ids import column_ids, column_integers, column_keys, column_numbers, require_same_kind
from vbterrier.frames.notebook import Panel
from vbterrier.frames.results import Shown, of_means
from vbterrier.kernels.resample import constant_limits, stream
from vbterrier.linking.clusters import SCORES, cluster_scores
from vbterrier.settings import Inference, with_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.annotations import Bools, Floats, Ints
    from vbterrier.frames.ids import Ids
    from vbterrier.frames.results import Figures


MATCHES = ("strong", "weak")
AVERAGES = ("micro", "macro")
# Scores of clusters that are also reported with the right entity, as neleval's b_cubed_plus and mention_ceaf_plus.
_PLUS = ("B3", "CEAFm")
_CLUSTERS = ("name", "mentions", "measure", "precision", "recall", "f1")
# The mentions that each measure counts: those with an entity, those without, all, and all as spans alone.
KINDS = ("Link", "Nil", "All", "Span")
_INTERVALS = ("name", "measure", "value", "low", "high", "level", "method", "n_qids", "n_resamples", "seed")


class MentionSet:
    """Linked mentions of documents, one entity each: of several candidates the one with the highest score, or the first
    row if all lack one.

    ``docs`` are the documents; ``doc``, ``start``, ``end`` (half-open), ``ids`` and ``is_nil`` have one element for
    each mention, in the order of documents and offsets; ``mention`` (the number of each), ``candidates`` and
    ``has_no_entity`` one for each of the first ``n_best`` candidates of a mention, best first.
    """

    def __init__(
        self, source: Any, name: str, *, nil: str = NIL, space: str = "", is_gold: bool = False, n_best: int = 1
    ) -> None:
        self.name = name
        is_file = isinstance(source, (str, os.PathLike))
        frame = linked_mentions(source, is_gold=is_gold) if is_file else pandas_frame(source, name)
        require(frame, ("docno", "start", "end", "entity_id"), name)
        self.docno = column_keys(frame["docno"], f"{name} column 'docno'")
        self.docs, doc = self.docno.codes()
        start, end = (column_integers(frame[column], f"{name} column {column!r}") for column in ("start", "end"))
        bad = (start < 0) | (end <= start)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{name}: row {row} (document {self.docs[doc[row]]!r}) has start {start[row]} and end {end[row]}, "
                "wanted 0 <= start < end; for answers without offsets, use linking_report"
            )
        self.unit = ""
        if "qid" in frame.columns and len(frame):
            in_words = column_ids(frame["qid"], f"{name} column 'qid'").text[0].as_py().startswith(f"{self.docs[0]}:w")
            self.unit = "words" if in_words else "characters"
        plain = plain_entities(column_ids(frame["entity_id"], f"{name} column 'entity_id'"), nil, name, space=space)
        score = np.zeros(len(frame))
        if "score" in frame.columns:
            score = column_numbers(frame["score"].fillna(-np.inf), f"{name} column 'score'")
        _, code = plain.ids.distinct()
        table = pd.DataFrame({"doc": doc, "start": start, "end": end, "entity": np.where(plain.is_nil, -1, code)})
        order = np.lexsort((-score, end, start, doc))
        table = table.iloc[order]
        first = ~table.duplicated(["doc", "start", "end"]).to_numpy()
        self._refuse_tied(table, score[order], first)
        rows = order[first]
        self.doc, self.start, self.end = doc[rows], start[rows], end[rows]
        self.ids, self.is_nil, self.space = plain.ids.take(rows), plain.is_nil[rows], plain.space
        mention = np.cumsum(first) - 1
        distinct = np.flatnonzero(~table.assign(mention=mention).duplicated(["mention", "entity"]).to_numpy())
        place = pd.Series(mention[distinct]).groupby(mention[distinct]).cumcount().to_numpy()
        kept = distinct[place < n_best]
        self.mention = mention[kept]
        self.candidates, self.has_no_entity = plain.ids.take(order[kept]), plain.is_nil[order[kept]]

    def __len__(self) -> int:
        return len(self.doc)

    def _refuse_tied(self, table: pd.DataFrame, score: Floats, first: Bools) -> None:
        """Refuse a mention with two entities of the same score; candidates without one are in their order."""
        best = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0)) if len(first) else np.empty(0, int)
        entity = table["entity"].to_numpy()
        bad = (score == score[best]) & (score > -np.inf) & (entity != entity[best])
        if bad.any():
            row = table.iloc[int(np.argmax(bad))]
            span = f"{self.docs[row['doc']]}:{row['start']}-{row['end']}"
            raise InputError(
                f"{self.name}: mention {span!r} has two entities; keep one, or add a column 'score' to rank candidates"
            )

    def entities_in(self, space: str, ids: Ids | None = None) -> Ids:
        """Return the entities, or some ``ids`` of them, as they are spelled in the space of the other side."""
        ids = self.ids if ids is None else ids
        return ids if space == self.space else entity_ids(ids, self.name, space=space).ids


def mention_counts(gold: MentionSet, system: MentionSet, match: str, kind: str) -> Ints:
    """Return numbers of gold, predicted and right mentions of each document, shape (n_documents, 3).

    Documents are those of the gold standard, then the further ones of the system.
    """
    place = {docno: at for at, docno in enumerate(gold.docs)}
    number = np.array([place.setdefault(docno, len(place)) for docno in system.docs], dtype=np.int64)
    space = next(iter({gold.space, system.space} - {""}), "")
    of_gold = gold.entities_in(space).text.to_pylist()
    names = of_gold + system.entities_in(space, system.candidates).text.to_pylist()
    codes = pd.factorize(np.array(names, dtype=object))[0]
    entity = np.where(gold.is_nil, -1, codes[: len(gold)])
    candidate = np.where(system.has_no_entity, -1, codes[len(gold) :])
    docs = (gold.doc, number[system.doc] if len(system) else system.doc)
    parts = []
    for one, doc in zip((gold, system), docs, strict=True):
        kept = {"Link": ~one.is_nil, "Nil": one.is_nil}.get(kind, np.ones(len(one), dtype=bool))
        frame = pd.DataFrame({"doc": doc, "start": one.start, "end": one.end, "row": np.arange(len(one))})
        parts.append(frame[kept].sort_values(["doc", "start", "end"], ignore_index=True))
    pairs = [part["row"].to_numpy()[rows] for part, rows in zip(parts, _pairs(parts[0], parts[1], match), strict=True)]
    # Of the candidates of a mention, any may be right.
    n_codes = len(codes) + 2
    is_right = np.isin(pairs[1] * n_codes + entity[pairs[0]] + 1, system.mention * n_codes + candidate + 1)
    right = docs[0][pairs[0]][is_right | (kind == "Span")]
    counts = (np.bincount(each, minlength=len(place)) for each in (parts[0]["doc"], parts[1]["doc"], right))
    return np.stack(list(counts), axis=1)


def _pairs(gold: pd.DataFrame, system: pd.DataFrame, match: str) -> tuple[Ints, Ints]:
    """Return the rows of gold and predicted mentions that are paired, each at most once.

    Equal spans are pairs. In a weak match, each other prediction, in the order of offsets, takes the first gold mention
    that it overlaps and that is not taken.
    """
    spans = ["doc", "start", "end"]
    equal = gold[spans].reset_index(names="gold").merge(system[spans].reset_index(names="system"))
    first, second = equal["gold"].to_numpy(dtype=np.int64), equal["system"].to_numpy(dtype=np.int64)
    if match == "strong":
        return first, second
    free = np.setdiff1d(np.arange(len(gold)), first).tolist()
    docs, starts, ends = (gold[column].tolist() for column in spans)
    pairs: list[tuple[int, int]] = []
    open_from = 0
    rows = np.setdiff1d(np.arange(len(system)), second)
    for row, (doc, start, end) in zip(rows.tolist(), system.loc[rows, spans].itertuples(index=False), strict=True):
        # Gold mentions that end before a prediction cannot overlap those that begin after it.
        while open_from < len(free) and (docs[free[open_from]], ends[free[open_from]]) <= (doc, start):
            open_from += 1
        for at in range(open_from, len(free)):
            if (docs[free[at]], starts[free[at]]) >= (doc, end):
                break
            if docs[free[at]] == doc and ends[free[at]] > start:
                pairs.append((free.pop(at), row))
                break
    more = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return np.concatenate([first, more[:, 0]]), np.concatenate([second, more[:, 1]])


def ratios(counts: Any) -> Floats:
    """Return precision, recall and F1 of numbers of gold, predicted and right mentions, shape (..., 3).

    ``P = right/predicted``, ``R = right/gold``, ``F1 = 2 right/(predicted + gold)``; NaN if the denominator is 0.
    """
    gold, predicted, right = np.moveaxis(np.asarray(counts, dtype=np.float64), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack([right / predicted, right / gold, 2 * right / (predicted + gold)], axis=-1)


def document_ratios(counts: Ints) -> Floats:
    """Return precision, recall and F1 of each document, shape (n, 3): 1 if nothing is to be found and nothing is, 0 if
    the denominator is 0 otherwise, as GERBIL has it.
    """
    values = np.nan_to_num(ratios(counts))
    values[(counts[:, :2] == 0).all(axis=1)] = 1.0
    return values


@dataclass(frozen=True, eq=False, repr=False)
class MentionReport(Shown):
    """Mentions and figures of systems, returned by :func:`mention_report`.

    - ``counts``: one row per system and kind: name, kind, gold, predicted, right (mentions)
    - ``intervals``: one row per system and measure: name, measure, value, low, high, level, method, n_qids (documents,
      which are resampled), n_resamples, seed; NaN if a measure is undefined
    - ``clusters``: if all NILs of the gold standard have a number (NIL0012), in a strong match: one row per system,
      mentions (``"nil"`` or ``"all"``) and score: name, mentions, measure, precision, recall, f1
    """

    counts: pd.DataFrame
    intervals: pd.DataFrame
    clusters: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(_CLUSTERS)))

    def to_frame(self) -> pd.DataFrame:
        """Return ``intervals``: a row per system and measure."""
        return self.intervals

    def _line(self) -> str:
        n_systems, n_docs = self.intervals["name"].nunique(), int(self.intervals["n_qids"].max())
        return f"{agreeing(n_systems, 'systems')}, {agreeing(n_docs, 'documents')}"

    def _panels(self) -> Iterator[Panel]:
        yield from of_means(self.intervals, title="Figures")
        yield Panel("Mentions", self.counts, heads=2)
        if len(self.clusters):
            yield Panel("Clusters", self.clusters, heads=3)

    def _figures(self) -> Figures:
        is_f1 = self.intervals["measure"].str.endswith("F1")
        return {"forest": lambda: {"intervals": self.intervals[is_f1].reset_index(drop=True)}}

    def figures(self) -> pd.DataFrame:
        """Return the values with one row per system and one column per measure."""
        table = self.intervals.pivot(index="name", columns="measure", values="value")
        return table.loc[self.intervals["name"].unique(), list(self.intervals["measure"].unique())]


@with_defaults
def mention_report(
    systems: Any,
    gold: Any,
    *,
    match: str = "strong",
    average: str = "micro",
    nil: str = NIL,
    n_best: int = 1,
    inference: Inference = Inference(level=0.95, n_resamples=2000, seed=0),
) -> MentionReport:
    """Report precision, recall and F1 of linked mentions, where systems find the mentions themselves.

    ``P = right/predicted``, ``R = right/gold``, ``F1 = 2PR/(P + R)`` over (document, span, entity). A span that is not
    in the gold standard counts in the precision. ``LinkP``, ``LinkR`` and ``LinkF1`` are over mentions with an entity
    (neleval's ``strong_link_match``, GERBIL's InKB), ``Nil...`` over those without (``strong_nil_match``), ``All...``
    over both (``strong_all_match``; HIPE's strict, or fuzzy if weak), ``Span...`` over spans with any entity
    (``strong_mention_match``).

    Parameters
    ----------
    systems
        A mapping of name to linked mentions: a frame (docno, start, end, entity_id [, score]) with half-open offsets,
        or the path of a file of :func:`vbterrier.frames.read_entity_links`. Of several candidates of a span, the one
        with the highest score is the answer, or the first row if the column ``score`` has none of them.
    gold
        The linked mentions of the gold standard, likewise.
    match
        ``"strong"``: the same span. ``"weak"``: overlapping spans. Equal spans are paired first; each other prediction,
        in the order of offsets, takes the first gold mention that it overlaps and that no other has taken.
    average
        ``"micro"``: ratios of sums over documents. ``"macro"``: means of the ratios of documents, which are 1 if
        neither side has a mention, and 0 if only one has.
    nil
        A further string that means no entity, as in :func:`linking_report`.
    n_best
        The number of candidates of a predicted mention, best first, any of which may be right (HIPE-scorer's
        ``n_best``). A mention is a link or a NIL by its first candidate.
    inference
        An :class:`vbterrier.Inference`: ``level`` (0.95), ``n_resamples`` (2,000), ``seed`` (0).

    Returns
    -------
    MentionReport
        ``intervals``: a row per system and measure; ``counts`` of gold, predicted and right mentions; ``clusters``.

    Raises
    ------
    InputError
        Invalid frames or files; a mention with two entities; offsets in words against offsets in characters; no shared
        documents; ids of two spaces.
    ParameterError
        An unknown option.

    Notes
    -----
    Documents are those of the gold standard and of the system: links in a document without gold mentions are wrong.
    Intervals are percentiles over resampled documents, and every resample is a ratio of its own sums; those of figures
    of 0 or 1 are the limits of Clopper and Pearson for the number of documents.

    NIL0012 and NIL0013 are different clusters of mentions without an entity, and one answer in the figures. If all NILs
    of the gold standard have a number, ``clusters`` has the scores of :func:`.cluster_scores`
    for clusters of NIL (neleval's ``b_cubed:is_nil:span`` and others) and for all clusters, entities included
    (``b_cubed``, ``mention_ceaf``, ``entity_ceaf``, ``muc``, ``pairwise``), and B3+ and CEAFm+ for mentions that also
    have the right entity (``b_cubed_plus``, ``mention_ceaf_plus``). A NIL without a number is a separate cluster;
    neleval puts all of them into one. They have no intervals.

    Files of HIPE have the mentions of HIPE-scorer (:func:`vbterrier.frames.read_entity_links`). It differs in two
    cases: a prediction that overlaps a mention whose exact span follows counts as right there, and equal spans do not
    take precedence over those that begin before them.

    References
    ----------
    Hachey et al.: Cheap and easy entity evaluation, ACL 2014. Usbeck et al.: GERBIL, WWW 2015. Ehrmann et al.:
    HIPE-2022, CLEF 2022.

    Examples
    --------
    >>> columns = ["docno", "start", "end", "entity_id"]
    >>> gold = pd.DataFrame([("d1", 0, 5, "Q90"), ("d1", 9, 12, "NIL"), ("d2", 3, 7, "Q64")], columns=columns)
    >>> rows = [("d1", 0, 5, "wd:Q90"), ("d1", 9, 12, "Q5"), ("d2", 3, 6, "Q64"), ("d2", 8, 9, "Q1")]
    >>> mine = pd.DataFrame(rows, columns=columns)
    >>> mention_report({"mine": mine}, gold).figures().loc["mine", ["LinkP", "LinkR", "LinkF1"]].round(3).tolist()
    [0.25, 0.5, 0.333]
    >>> mention_report({"mine": mine}, gold, match="weak").figures().loc["mine", "LinkF1"].round(3).item()
    0.667
    """
    choice("match", match, MATCHES)
    choice("average", average, AVERAGES)
    checked_nil(nil)
    whole("n_best", n_best, low=1)
    level, n_resamples, seed = inference.level, inference.n_resamples, inference.seed
    if not hasattr(systems, "items") or hasattr(systems, "columns"):
        raise InputError(f"systems: wanted a mapping of name to linked mentions, found {type(systems).__name__}")
    right = MentionSet(gold, "gold", nil=nil, is_gold=True)
    if not len(right):
        raise InputError("gold: no rows; wanted the mentions over which systems are evaluated")
    numbers, rows, clusters = [], [], []
    nils = pd.Series(right.ids.text.to_pylist(), dtype=object)[right.is_nil]
    has_clusters = match == "strong" and len(nils) > 0 and nils.str.fullmatch(r"NIL\d+").all()
    for name, system in system_items(systems):
        annotated = MentionSet(system, f"system {name!r}", nil=nil, space=right.space, n_best=n_best)
        _require_comparable(right, annotated)
        clusters += [(name, *row) for row in _clusters(right, annotated)] if has_clusters else []
        for kind in KINDS:
            counts = mention_counts(right, annotated, match, kind)
            numbers.append((name, kind, *counts.sum(axis=0).tolist()))
            values, limits = _figures(counts, average, level, n_resamples, seed)
            for at, figure in enumerate(("P", "R", "F1")):
                # Without errors, or without anything right, resamples do not differ.
                way, n_drawn = ("bounded", 0) if values[at] in {0.0, 1.0} else ("percentile", n_resamples)
                drawn = level, f"documents ({way}), {average}, {match}", len(counts), n_drawn, seed
                rows.append((name, kind + figure, values[at], *limits[:, at], *drawn))
    return MentionReport(
        pd.DataFrame(numbers, columns=["name", "kind", "gold", "predicted", "right"]),
        pd.DataFrame(rows, columns=list(_INTERVALS)),
        pd.DataFrame(clusters, columns=list(_CLUSTERS)),
    )


def _clusters(gold: MentionSet, system: MentionSet) -> list[tuple[str, str, float, float, float]]:
    """Rows of the clusters of NIL, and of all clusters, with "+" of those whose mentions also have the right entity.

    A mention without an entity and without a number of a cluster is a cluster of its own.
    """
    spaces = {gold.space, system.space} - {""}
    sides = []
    for one in (gold, system):
        entity = np.array(one.entities_in(next(iter(spaces), "")).text.to_pylist(), dtype=object)
        docs = np.array(one.docs, dtype=object)[one.doc]
        mention = pd.Series(list(zip(docs, one.start.tolist(), one.end.tolist(), strict=True)), dtype=object)
        is_single = one.is_nil & ~pd.Series(entity).str.fullmatch(r"NIL\d+").to_numpy(dtype=bool)
        cluster = np.where(is_single, [f"\0{at}" for at in range(len(one))], entity)
        frame = pd.DataFrame({"mention": mention, "cluster": cluster, "is_nil": one.is_nil})
        frame["linked"] = list(zip(mention, np.where(one.is_nil, "", entity), strict=True))
        sides.append(frame)
    rows: list[tuple[str, str, float, float, float]] = []
    for mentions, plus in (("nil", False), ("all", False), ("all", True)):
        used = [side[side["is_nil"]] if mentions == "nil" else side for side in sides]
        first, second = (side.assign(mention=side["linked"]) if plus else side for side in used)
        named = zip(SCORES, cluster_scores(first, second).tolist(), strict=True)
        rows += [(mentions, f"{name}{'+' * plus}", *values) for name, values in named if not plus or name in _PLUS]
    return rows


def _require_comparable(gold: MentionSet, system: MentionSet) -> None:
    if not len(system):
        warn(f"{system.name}: no mentions; none of {len(gold)} mentions of gold is found")
        return
    require_same_kind(gold.docno, system.docno, "gold column 'docno'", f"{system.name} column 'docno'")
    if gold.unit and system.unit and gold.unit != system.unit:
        raise InputError(
            f"{system.name}: offsets count {system.unit}, those of gold {gold.unit}; wanted one unit for both"
        )
    if not set(gold.docs) & set(system.docs):
        raise InputError(
            f"{system.name}: no document in common with gold: it has {examples(system.docs)}, gold has "
            f"{examples(gold.docs)}; check the document ids"
        )
    space = next(iter({gold.space, system.space} - {""}), "")
    # Any candidate may be right.
    ids = system.entities_in(space, system.candidates).take(np.flatnonzero(~system.has_no_entity))
    gold_ids = gold.entities_in(space).take(np.flatnonzero(~gold.is_nil))
    warn_of_foreign_answers(ids, gold_ids, system.name, "gold")


def _figures(counts: Ints, average: str, level: float, n_resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return precision, recall and F1, shape (3,), and the limits of their intervals, shape (2, 3)."""
    n = len(counts)
    drawn = stream(seed, "mention report").multinomial(n, np.full(n, 1 / n), size=n_resamples)
    if average == "micro":
        values, resampled = ratios(counts.sum(axis=0)), ratios(drawn @ counts)
    else:
        of_documents = document_ratios(counts)
        values, resampled = of_documents.mean(axis=0), drawn @ of_documents / n
    quantiles = [(1 - level) / 2, (1 + level) / 2]
    limits = np.full((2, 3), np.nan)
    defined = ~np.isnan(values)
    limits[:, defined] = np.nanquantile(resampled[:, defined], quantiles, axis=0)
    constant = constant_limits(values, np.full(3, n), (0, 1), quantiles)
    return values, np.where((values == 0) | (values == 1), constant, limits)
