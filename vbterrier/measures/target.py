"""Evaluation target: judgments, a run, and the intermediate results that measures share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.affixes import affix_text
from vbterrier.frames.contracts import require
from vbterrier.frames.entity_coverage import EntityTable, Selection
from vbterrier.frames.ids import (
    FEW_ROWS,
    MANY_ROWS,
    Ids,
    column_keys,
    lazy_ids,
    near_matches,
    require_same_kind,
    warn_of_near_matches,
)
from vbterrier.frames.labels import text_of_large_labels, text_of_padded_labels
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.pool_links import COLUMNS
from vbterrier.frames.ranking import own_queries, text_of_own_queries
from vbterrier.intents.coverage import Coverage
from vbterrier.intents.sources import Iterations, iteration_codes, names_subtopics, subtopic_gaps
from vbterrier.kernels import rankings
from vbterrier.remedies import ALL_TOPICS, COMMON_TOPICS, SUBTOPICS
from vbterrier.unjudged.model import is_identified
from vbterrier.unjudged.pool import JudgedTop, Judgments

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    import ir_measures

    from vbterrier.annotations import Ints
    from vbterrier.frames.ranking import Run
    from vbterrier.unjudged.fitted import EvidenceModel

    T = TypeVar("T")


class Memo:
    """Values that are computed at first use and ``kept`` by key."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, Any] = {}

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key; compute it at first use."""
        if key not in self.kept:
            self.kept[key] = make()
        value: T = self.kept[key]
        return value


@dataclass(frozen=True, eq=False)
class EvaluationTarget:
    """The frame given as qrels, prepared once for many runs: judgments, intents or the links of a pool.

    - ``frame``: has a column qid
    - ``intents``, ``tags``: candidate intents and tags beside judgments; otherwise they are looked for in the frame and
      the run
    - ``subtopics``: all subtopics of diversity judgments, by default those with a judged document
    - ``pool``: the links of a pool, of which the frame may then have the topics alone
    """

    frame: pd.DataFrame
    intents: pd.DataFrame | None = field(default=None, kw_only=True)
    tags: pd.DataFrame | None = field(default=None, kw_only=True)
    subtopics: pd.DataFrame | None = field(default=None, kw_only=True)
    pool: LinkedPool | None = field(default=None, kw_only=True)
    # Results that measures share, and evaluators of other packages, made once in each process.
    results: Memo = field(default_factory=Memo, init=False, repr=False)
    evaluators: Memo = field(default_factory=Memo, init=False, repr=False)

    def __post_init__(self) -> None:
        require(self.frame, ("qid",), "qrels")
        if not len(self.frame):
            raise InputError("qrels: no rows; a run is evaluated over the topics of this frame")
        _ = self.topics

    def __getstate__(self) -> dict[str, Any]:
        # Evaluators of other packages cannot be pickled. Values are copied, since threads of a worker may add some.
        results = Memo()
        results.kept |= self.results.kept
        return {**vars(self), "results": results, "evaluators": Memo()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @classmethod
    def of_links(cls, pool: LinkedPool) -> EvaluationTarget:
        """Return a target for a linked pool, without a frame of all its links."""
        return cls(pd.DataFrame({"qid": pool.topics}), pool=pool)

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a result that measures share, computed at first use."""
        return self.results.memo(key, make)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns of the frame."""
        return frozenset(map(str, self.frame.columns))

    @cached_property
    def qid(self) -> Ids:
        """The column qid of the frame."""
        return lazy_ids(self.frame["qid"], "qrels column 'qid'")

    @cached_property
    def topics(self) -> list[str]:
        """The topics, in order of appearance."""
        return self.qid.codes()[0]

    @cached_property
    def docno(self) -> Ids:
        """The column docno of the frame."""
        return column_keys(self.frame["docno"], "qrels column 'docno'")

    @cached_property
    def first_judged(self) -> Ids:
        """The first documents of the frame, whose spelling represents that of all."""
        return Ids(self.docno.text.slice(0, MANY_ROWS))

    @property
    def is_links(self) -> bool:
        """True if the frame is that of a linked pool, a K frame."""
        return {"docno", "entity_id", "label", "rank"} <= self.columns

    @property
    def is_diversity(self) -> bool:
        """True if intents are taken from the iterations of judgments."""
        return self.intents is None and {"iteration", "docno", "label"} <= self.columns

    def part(self, rows: Any) -> EvaluationTarget:
        """Return a target with some rows, a mask, and the same intents, tags and subtopics."""
        return replace(self, frame=self.frame[rows].reset_index(drop=True))

    def of_topics(self, topics: Collection[str]) -> EvaluationTarget:
        """Return :meth:`part` with the rows of some topics; costs as much as they are, after a first call."""
        order, stops, place = self.memo("rows by topic", self._rows_by_topic)
        wanted = np.array([place[topic] for topic in topics if topic in place], dtype=np.int64)
        starts = np.append(0, stops)[wanted]
        rows = np.sort(order[rankings.spans(starts, stops[wanted])[1]])
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True))

    def _rows_by_topic(self) -> tuple[Ints, Ints, dict[str, int]]:
        """Rows by topic, the end of the rows of each topic, and the number of each topic."""
        names, number = self.qid.codes()
        stops = np.cumsum(np.bincount(number, minlength=len(names)))
        return np.argsort(number, kind="stable"), stops, {name: place for place, name in enumerate(names)}

    def only(self, topics: Collection[str]) -> EvaluationTarget:
        """Return the target restricted to some topics."""
        selection = set(topics)
        return self if selection.issuperset(self.topics) else self.part(self.frame["qid"].astype(str).isin(selection))

    @cached_property
    def iterations(self) -> Iterations:
        """The queries and iterations of diversity judgments."""
        return iteration_codes(self.frame, qid=self.qid)

    def judgments(self, *, drop_negative: bool = False) -> Judgments:
        """The frame as judgments."""
        kept, key = self.results.kept, ("judgments", drop_negative)
        if key not in kept:
            require(self.frame, ("qid", "docno", "label"), "qrels")
            kept[key] = Judgments(self.frame, drop_negative=drop_negative, ids=(self.qid, self.docno))
        judgments: Judgments = kept[key]
        return judgments

    @cached_property
    def linked_pool(self) -> LinkedPool:
        """The frame as a linked pool; another frame than a K frame is an error."""
        if self.pool is not None:
            return self.pool
        if not self.is_links:
            columns = ", ".join(map(str, self.frame.columns))
            raise InputError(
                f"qrels: measures of entity runs need the links of a pool, a frame with {', '.join(COLUMNS)}; "
                f"found {columns}; make it with vbterrier.entities.link_pool(pool, tags, qrels).to_frame()"
            )
        return LinkedPool.from_frame(self.frame, name="qrels")

    def entity_table(self, rel: int) -> EntityTable:
        """The entities of the linked pool with their relevance statistics."""
        return self.memo(("entities", rel), lambda: EntityTable(self.linked_pool, rel))


class Scoring(Memo):
    """A run and its target.

    - ``depth``: the largest cutoff of the measures, ``None`` if a measure has none
    - ``models``: fitted models of unjudged documents by name; the empty name is that of the call
    """

    def __init__(
        self, target: EvaluationTarget, run: Run, depth: int | None, models: Mapping[str, EvidenceModel] | None = None
    ) -> None:
        super().__init__()
        self.target, self.run, self.depth, self.models = target, run, depth, models or {}

    def judged_top(self, cutoff: int | None, *, drop_negative: bool = False) -> JudgedTop:
        """The documents up to a cutoff with their judgments."""
        whole, cut = ("judged", drop_negative), ("cut", drop_negative, cutoff)
        if whole not in self.kept:
            self.kept[whole] = self.target.judgments(drop_negative=drop_negative).judge(self.run, self.depth)
        if cut not in self.kept:
            self.kept[cut] = self.kept[whole].cut_to(cutoff)
        top: JudgedTop = self.kept[cut]
        return top

    @property
    def reads_judgments(self) -> bool:
        """True if a measure looked up the judgments of documents."""
        return any(isinstance(made, JudgedTop) for made in self.kept.values())

    @property
    def has_judged(self) -> bool:
        """True if a measure looked at a judged document of the run."""
        return any(
            bool((made.levels >= 0).any()) if isinstance(made, JudgedTop) else made.has_judged
            for made in self.kept.values()
            if isinstance(made, (JudgedTop, Coverage))
        )

    def selection(self) -> Selection:
        """The run as a run of entities over the linked pool."""
        pool, run = self.target.linked_pool, self.run
        # Pools hold all ids as text.
        if self.target.pool is None:
            require_same_kind(self.target.qid, run.topic_ids, "qrels column 'qid'", f"{run.name} column 'qid'")
        return self.memo("selection", lambda: Selection(pool, run, self.depth))


def require_one_tagger(runs: Iterable[Run]) -> None:
    """Refuse runs with tags of different taggers, because the tagger has a larger effect than the system."""
    taggers: dict[str, str] = {}
    for run in runs:
        if "tagger" in run.frame.columns and len(run):
            for tagger in run.frame["tagger"].dropna().unique():
                taggers.setdefault(str(tagger), run.name)
    if len(taggers) > 1:
        (first, one), (second, other) = list(taggers.items())[:2]
        raise InputError(
            f"{one} is tagged by {first}, {other} by {second}: systems are compared under one tagger only; tag all "
            "with the same one, or drop the columns entity_id, weight and tagger, and name the tags of all in the "
            "measures, as ES(tags='tags.tsv')@10"
        )


def check_subtopics(target: EvaluationTarget, *, is_part: bool = False) -> None:
    """Refuse ordinary judgments where subtopics are wanted; warn of gaps in the numbers of unknown subtopics.

    ``is_part``: the judgments may be those of some topics only, which may have one subtopic.
    """
    if not target.is_diversity or target.subtopics is not None:
        return
    if not names_subtopics(target.iterations, is_part=is_part):
        raise InputError(
            f"qrels: their iterations ({examples(target.iterations.entities)}) are no subtopics, so that queries have "
            "no intents and no subtopics; give intents= and tags=, name them in the measure, as "
            "VB(intents='...',tags='...')@10, or use diversity qrels"
        )
    gaps = subtopic_gaps(target.iterations)
    if gaps:
        warn(
            f"qrels: the subtopic numbers of {len(gaps)} of {len(target.topics)} topics have gaps "
            f"({examples(gaps)}): subtopics without a judged document do not count, nor do those after the last "
            f"judged one; give the topic file with {SUBTOPICS.text('topics.xml')}, or VB(intents='topics.xml') as a "
            "measure"
        )


def warn_of_few_non_relevant(measures: Iterable[ir_measures.Measure], target: EvaluationTarget) -> None:
    """Warn if measures draw grades from judgments with hardly any non-relevant document."""
    drawn = [measure for measure in measures if getattr(measure, "draws_from_judgments", False)]
    if not drawn:
        return
    judgments = target.judgments()
    if not is_identified(judgments):
        n_non_relevant, n = judgments.counts[:, 0].sum(), judgments.counts.sum()
        warn(
            f"{judgments.name}: {n_non_relevant:,} of {n:,} judged documents have grade 0, so that "
            f"{_first_few(drawn)} would treat nearly all unjudged documents as relevant: a run of invented "
            "documents scores as high as a real one; use nDCG or RR with NDCGBound, an explicit prior=, or judgments "
            "of non-relevant documents"
        )


def _first_few(measures: Sequence[ir_measures.Measure], n: int = 3) -> str:
    return ", ".join(map(str, measures[:n])) + (", ..." if len(measures) > n else "")


def _topics_remedy() -> str:
    """Remedies for runs with different topics, as the interface in use has them."""
    ways = {
        COMMON_TOPICS.available_text(): "only those that all runs have",
        ALL_TOPICS.available_text(): "missing topics score 0",
    }
    offered = [f"{text} ({effect})" for text, effect in ways.items() if text]
    return f"ask for {' or '.join(offered)}" if offered else "give runs of the same topics"


def restricted_target(target: EvaluationTarget, runs: Mapping[str, Run], on_topics: str) -> EvaluationTarget:
    """Return the target with the topics to average over."""
    topics = set(target.topics)
    shared = {name: topics.intersection(run.topics) for name, run in runs.items()}
    if on_topics == "same":
        names = list(shared)
        for name in names[1:]:
            if shared[name] != shared[names[0]]:
                odd = sorted(shared[name] ^ shared[names[0]])
                raise InputError(
                    f"run {names[0]!r} has {len(shared[names[0]])} of the {len(topics)} topics, run {name!r} has "
                    f"{len(shared[name])}, and they differ in {examples(odd)}: means over different topics are not "
                    f"comparable; {_topics_remedy()}"
                )
    if on_topics != "common":
        return target
    common = set.intersection(topics, *shared.values())
    if not common:
        raise InputError("no topic that all runs and the qrels have in common")
    return target.only(common)


def align_topics(
    judged: EvaluationTarget, runs: Mapping[str, Run], on_topics: str, *, warns: bool = True
) -> tuple[EvaluationTarget, dict[str, Run]]:
    """Return the target with the topics to average over, and the runs on them; ``warns`` of runs that do not fit it."""
    target = restricted_target(judged, runs, on_topics)
    if warns:
        warn_of_labels(judged)
    for run in runs.values() if warns else ():
        run.warn_of_ranks()
        warn_of_id_mismatch(judged, run)
        warn_of_own_queries(judged, run)
    return target, {name: run.only(target.topics) if on_topics == "common" else run for name, run in runs.items()}


def warn_of_labels(target: EvaluationTarget) -> None:
    """Warn of labels that seem to be no grades."""
    if target.is_links or "label" not in target.columns:
        return
    labels = target.frame["label"]
    texts: Any = [] if pd.api.types.is_numeric_dtype(labels.dtype) else labels.astype(str).unique()
    if text := text_of_padded_labels(texts) or text_of_large_labels(labels):
        warn(f"qrels: {text}")


def warn_of_own_queries(target: EvaluationTarget, run: Run) -> None:
    """Warn if a run retrieves the query itself first in most topics, see :func:`own_queries`."""
    if target.is_links or not {"docno", "label"} <= target.columns:
        return
    if topics := own_queries(run, target.frame):
        warn(f"{run.name}: {text_of_own_queries(run, topics)}")


_FIRST_ROWS, _SAMPLED_IDS = 10_000, 100
# The documents of a topic, the topics, and the share of judged documents below which ids are of different spaces.
CHECKED_RANKS, _MIN_TOPICS, _MIN_JUDGED_SHARE = 10, 5, 0.01
# The share of topics without documents from which on a run may be incomplete.
MAX_MISSING_SHARE = 0.1
# Topics whose documents are looked up at first, and those with examples.
_SOME_TOPICS, _EXAMPLE_TOPICS = 16, 20


def warn_of_id_mismatch(
    target: EvaluationTarget, run: Run, *, only_misspelt: bool = False, all_topics: bool = True
) -> None:
    """Warn if a run and the judgments share topics but hardly a document, or documents in another spelling.

    Of five or more topics, less than 1 % of the first ten documents are judged. Of fewer topics, none of all documents
    is judged. With ``only_misspelt``, as a part of a run may well hold no judged document, fewer topics only count if
    ids differ in their spelling: integers, which hosts convert to text, against text, or see :func:`near_matches`;
    without ``all_topics``, as measures of intents may not read judgments, this holds for any number of topics.
    """
    # The documents of entity runs are entities, which are not judged.
    if target.is_links or not {"docno", "label"} <= target.columns or not len(run):
        return
    if all_topics and (text := mismatch_text(target, run)):
        warn(f"{run.name}: {text}")
        return
    docnos, n_first = target.docno.text, min(len(run), _SAMPLED_IDS if only_misspelt else FEW_ROWS)
    # The rows whose spelling is compared become text once.
    first = run.docno.take(np.arange(n_first))
    if _any_in(first, docnos) or _any_in(run.docno, docnos):
        if not only_misspelt:
            name = f"{run.name}, first {len(first)} rows"
            warn_of_near_matches(first, target.first_judged, name, "documents", "the qrels")
    elif not only_misspelt or _are_misspelt(run.docno, target.docno):
        retrieved, judged_ones = (examples(ids[:4].to_pylist()) for ids in (run.docno.text, docnos))
        difference = affix_text([(first.text.to_pylist(), docnos.to_pylist())], "the run", "the qrels")
        warn(
            f"{run.name}: none of its documents is judged: it has {retrieved}; qrels has {judged_ones}; "
            + (difference or "look for other prefixes, trailing blanks or another Unicode form")
        )


def missing_text(name: str, n_missing: int, n_topics: int) -> str:
    """Description of a run without documents for a tenth of five or more topics; empty for other and empty runs."""
    if n_topics < _MIN_TOPICS or not MAX_MISSING_SHARE <= n_missing / n_topics < 1:
        return ""
    return (
        f"{name}: no documents for {n_missing:,} of {n_topics:,} topics, which score as empty rankings: it may be "
        f"incomplete; {COMMON_TOPICS.text()} leaves these topics out"
    )


def warn_of_missing_topics(target: EvaluationTarget, run: Run) -> None:
    """Warn of a run that :func:`missing_text` describes."""
    if text := missing_text(run.name, len(set(target.topics).difference(run.topics)), len(target.topics)):
        warn(text)


def mismatch_text(target: EvaluationTarget, run: Run) -> str:
    """Description of a run whose first documents are hardly judged, with the remedy; empty for other runs.

    Topics are looked up until enough documents are judged, as a rule a few of them.
    """
    qids, topic = target.qid.codes()
    place = {qid: number for number, qid in enumerate(qids)}
    common = [(row, place[qid]) for row, qid in enumerate(run.topics) if qid in place]
    if len(common) < _MIN_TOPICS:
        return ""
    first = run.best_scored(CHECKED_RANKS)
    own_topics = np.array([row for row, _ in common])
    n_documents = int(np.count_nonzero(first[own_topics] >= 0))
    least, n_judged, begin, size = _MIN_JUDGED_SHARE * n_documents, 0, 0, _SOME_TOPICS
    while begin < len(common) and n_judged < least:
        some = common[begin : begin + size]
        n_judged += sum(
            len(set(ids).intersection(judged)) for ids, judged in _documents(target, topic, run, first, some)
        )
        begin, size = begin + size, 2 * size
    if n_judged >= least:
        return ""
    groups = _documents(target, topic, run, first, common[:_EXAMPLE_TOPICS])
    retrieved, judged_ones = (examples(ids) for ids in groups[0])
    difference = affix_text(groups, "the run", "the qrels")
    return (
        f"{n_judged} of the first {n_documents:,} documents of {len(common)} topics are judged, at most "
        f"{CHECKED_RANKS} a topic: it has {retrieved}; qrels has {judged_ones}; "
        + (difference or "look for other prefixes or suffixes, passages of documents, or another collection")
    )


def _documents(
    target: EvaluationTarget, topic: Ints, run: Run, first: Ints, pairs: Sequence[tuple[int, int]]
) -> list[tuple[list[str], list[str]]]:
    """The first documents of a run and the judged ones, for pairs of the topic of the run and that of the target."""
    numbers = np.array([number for _, number in pairs])
    rows = np.flatnonzero(np.isin(topic, numbers))
    judged: dict[int, list[str]] = {int(number): [] for number in numbers}
    for number, docno in zip(topic[rows].tolist(), target.docno.take(rows).text.to_pylist(), strict=True):
        judged[number].append(docno)
    own_rows = [first[row][first[row] >= 0] for row, _ in pairs]
    docnos = iter(run.docno.take(np.concatenate(own_rows)).text.to_pylist())
    return [
        (list(islice(docnos, len(some))), judged[number]) for some, (_, number) in zip(own_rows, pairs, strict=True)
    ]


def _are_misspelt(ids: Ids, documents: Ids) -> bool:
    """Return True if ids are known ids in another spelling, judged by the first of them."""
    are_numbers = [
        bool(pc.all(pc.utf8_is_decimal(some.text.slice(0, _SAMPLED_IDS))).as_py()) for some in (ids, documents)
    ]
    return are_numbers[0] != are_numbers[1] or bool(
        near_matches(ids.take(np.arange(min(len(ids), FEW_ROWS))), documents)
    )


def _any_in(ids: Ids, documents: Any) -> bool:
    """Return True if any id is known; in most runs the first rows decide, which are the only ones to become text."""
    for n_rows in (_SAMPLED_IDS, _FIRST_ROWS):
        first = ids.take(np.arange(min(len(ids), n_rows))).text
        if pc.any(pc.is_in(documents.slice(0, _FIRST_ROWS), value_set=first)).as_py():
            return True
    return bool(pc.any(pc.is_in(ids.text, value_set=documents)).as_py())


def deepest(measures: Iterable[ir_measures.Measure]) -> int | None:
    """Largest number of ranks that a measure depends on, ``None`` if one depends on all."""
    depths = [getattr(measure, "depth", measure.params.get("cutoff")) for measure in measures]
    return None if None in depths else max(depths, default=None)
