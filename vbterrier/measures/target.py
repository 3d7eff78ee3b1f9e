"""Evaluation target: judgments, a run, and the intermediate results that measures share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd
import pyarrow.compute as pc

from vbterrier.entities.coverage import Selection
from vbterrier.entities.links import COLUMNS
from vbterrier.entities.oer import EntityTable
from vbterrier.entities.pool import LinkedPool
from vbterrier.errors import InputError, examples, warn
from vbterrier.frames.contracts import require
from vbterrier.frames.ids import ids_of, require_same_kind
from vbterrier.unjudged.pool import JudgedTop, Judgments

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from vbterrier.frames.ranking import Run

    T = TypeVar("T")


_FIRST_ROWS, _FEW = 10_000, 100


def warn_of_id_mismatch(target: EvaluationTarget, run: Run, *, only_misspelt: bool = False) -> None:
    """Say it when a run and the judgments share topics, but not a single document.

    Parameters
    ----------
    target, run
        The judgments and the run.
    only_misspelt
        Whether only where ids differ in how they are written: integers, which hosts make text before anybody can refuse
        them, against text; blanks at the ends; Unicode forms. Parts of runs may well hold nothing that is judged.
    """
    # The documents of entity runs are entities: nobody judges them.
    if target.is_links or not {"docno", "label"} <= set(target.frame.columns) or not len(run):
        return
    known = target.memo("judged documents", lambda: ids_of(target.frame["docno"], "qrels column 'docno'").text)
    if not _any_in(run.docno.text, known) and not (only_misspelt and not _are_misspelt(run.docno.text, known)):
        retrieved, judged_ones = (examples(ids[:4].to_pylist()) for ids in (run.docno.text, known))
        warn(
            f"{run.name}: none of its documents is judged: it has {retrieved}; qrels has {judged_ones}; look for "
            "other prefixes, trailing blanks or another Unicode form"
        )


def _are_misspelt(ids: Any, known: Any) -> bool:
    """Whether ids are those that are known, written otherwise, as far as the first of them tell."""
    are_numbers = [bool(pc.all(pc.utf8_is_decimal(some.slice(0, _FEW))).as_py()) for some in (ids, known)]
    return are_numbers[0] != are_numbers[1] or _any_in(_tidied(ids.slice(0, _FIRST_ROWS)), _tidied(known))


def _tidied(ids: Any) -> Any:
    return pc.utf8_normalize(pc.utf8_trim_whitespace(ids), form="NFKC")


def _any_in(ids: Any, known: Any) -> bool:
    """Whether one of the ids is known; most runs tell with their first rows."""
    first, rest = ids.slice(0, _FIRST_ROWS), ids.slice(_FIRST_ROWS)
    return any(pc.any(pc.is_in(part, value_set=known)).as_py() for part in (first, rest) if len(part))


class Memo:
    """Values computed when they are first asked for, and kept."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made at the first time."""
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value


class EvaluationTarget(Memo):
    """The frame given as qrels: judgments, intents or a pool's links, prepared once for many runs.

    Parameters
    ----------
    frame
        Any frame with a column qid.
    intents, tags
        Candidate intents and tags that stand beside judgments; ``None`` to look for them in the frame and the run.

    Raises
    ------
    InputError
        No column qid, or no row.
    """

    def __init__(
        self, frame: pd.DataFrame, *, intents: pd.DataFrame | None = None, tags: pd.DataFrame | None = None
    ) -> None:
        super().__init__()
        self.intents, self.tags = intents, tags
        require(frame, ("qid",), "qrels")
        if not len(frame):
            raise InputError("qrels: no rows; a run is evaluated over the topics that stand here")
        self.frame = frame
        self.qid = ids_of(frame["qid"], "qrels column 'qid'")
        self.topics, _ = self.qid.codes()

    @classmethod
    def of_links(cls, pool: LinkedPool) -> EvaluationTarget:
        """A target that holds a linked pool, which no frame of all its links need be made of."""
        target = cls(pd.DataFrame({"qid": pool.topics}))
        target.memo("links", lambda: pool)
        return target

    @property
    def is_links(self) -> bool:
        """Whether the frame is that of a linked pool, a K frame."""
        return {"docno", "entity_id", "label", "rank"} <= set(self.frame.columns)

    @property
    def is_diversity(self) -> bool:
        """Whether intents would be read off the iterations of judgments."""
        return self.intents is None and {"iteration", "docno", "label"} <= set(self.frame.columns)

    def judgments(self, *, drop_negative: bool = False) -> Judgments:
        """The frame as judgments."""
        return self.memo(("judgments", drop_negative), lambda: Judgments(self.frame, drop_negative=drop_negative))

    def linked(self) -> LinkedPool:
        """The frame as a linked pool.

        Raises
        ------
        InputError
            It is no K frame, or holds what a pool cannot.
        """
        return self.memo("links", self._linked)

    def _linked(self) -> LinkedPool:
        if not self.is_links:
            found = ", ".join(map(str, self.frame.columns))
            raise InputError(
                f"qrels: measures of entity runs want a pool's links there, a frame with {', '.join(COLUMNS)}; found "
                f"{found}; make it with vbterrier.entities.link_pool(pool, tags, qrels).frame()"
            )
        return LinkedPool.from_frame(self.frame, name="qrels")

    def entity_table(self, rel: int) -> EntityTable:
        """The entities of the linked pool beside relevance."""
        return self.memo(("entities", rel), lambda: EntityTable(self.linked(), rel))


class Scoring(Memo):
    """A run against a target.

    Parameters
    ----------
    target
        What stands in the qrels target.
    run
        The run.
    depth
        The largest cutoff of the measures to come, ``None`` if one has none.
    """

    def __init__(self, target: EvaluationTarget, run: Run, depth: int | None) -> None:
        super().__init__()
        self.target, self.run, self.depth = target, run, depth

    def judged(self, cutoff: int | None, *, drop_negative: bool = False) -> JudgedTop:
        """The first ``cutoff`` documents with their judgments."""
        judgments = self.target.judgments(drop_negative=drop_negative)
        deepest = self.memo(("judged", drop_negative), lambda: judgments.judge(self.run, self.depth))
        return self.memo(("cut", drop_negative, cutoff), lambda: deepest.cut(cutoff))

    def selection(self) -> Selection:
        """The run as one of entities on the linked pool."""

        def make() -> Selection:
            pool = self.target.linked()
            require_same_kind(self.target.qid, self.run.topic_ids, "qrels column 'qid'", f"{self.run.name} column 'qid'")
            return Selection(pool, self.run, self.depth)

        return self.memo("selection", make)


def require_one_tagger(runs: Iterable[Run]) -> None:
    """Refuse runs that are known to be tagged in different ways: the tagger decides more than the system does.

    Raises
    ------
    InputError
        Names the taggers.
    """
    known: dict[str, str] = {}
    for run in runs:
        if "tagger" in run.frame.columns and len(run):
            for tagger in run.frame["tagger"].dropna().unique():
                known.setdefault(str(tagger), run.name)
    if len(known) > 1:
        (first, one), (second, other) = list(known.items())[:2]
        raise InputError(
            f"{one} is tagged by {first}, {other} by {second}: systems are compared under one tagger only; tag all "
            "with the same one, or give tags= for all"
        )


def restricted(target: EvaluationTarget, runs: Mapping[str, Run], on_topics: str) -> EvaluationTarget:
    """The target with the topics to average over."""
    known = set(target.topics)
    found = {name: known.intersection(run.topics) for name, run in runs.items()}
    if on_topics == "same":
        names = list(found)
        for name in names[1:]:
            if found[name] != found[names[0]]:
                odd = sorted(found[name] ^ found[names[0]])
                raise InputError(
                    f"run {names[0]!r} has {len(found[names[0]])} of the {len(known)} topics, run {name!r} has "
                    f"{len(found[name])}, and they differ in {examples(odd)}: averages over different topics compare "
                    "nothing; ask for on_topics='common' (only those that all runs have) or on_topics='all' (missing "
                    "topics score 0)"
                )
    if on_topics != "common":
        return target
    common = set.intersection(known, *found.values())
    if not common:
        raise InputError("no topic that all runs and the qrels have in common")
    kept = target.frame[target.frame["qid"].astype(str).isin(common)].reset_index(drop=True)
    return EvaluationTarget(kept, intents=target.intents, tags=target.tags)


def aligned(
    judged: EvaluationTarget, runs: Mapping[str, Run], on_topics: str
) -> tuple[EvaluationTarget, dict[str, Run]]:
    """The target with the topics to average over, and the runs on them; says it when a run is not judged at all."""
    target = restricted(judged, runs, on_topics)
    for run in runs.values():
        warn_of_id_mismatch(judged, run)
    return target, {name: run.only(target.topics) if on_topics == "common" else run for name, run in runs.items()}
