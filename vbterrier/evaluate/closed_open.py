"""The four combinations of closed and open entity candidates with the closed and the open document pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from vbterrier.errors import InputError, ParameterError, choice, whole
from vbterrier.evaluate.inputs import input_table
from vbterrier.evaluate.scores import score
from vbterrier.evaluate.settings import (
    UNREACHED,
    Reachability,
    ReachableQrels,
    ReachOptions,
    as_linked_pool,
    concatenation,
    judged_topics,
    mean_and_interval,
)
from vbterrier.frames.files.reading import read_qrels
from vbterrier.frames.notebook import Panel
from vbterrier.frames.pipelines import is_pipeline
from vbterrier.frames.ranges import score_bounds
from vbterrier.frames.ranking import loaded_run, ranked
from vbterrier.frames.results import Shown, joined_names, of_means
from vbterrier.frames.score_table import refuse_ratios
from vbterrier.frames.systems import ONE
from vbterrier.measures.text import distinct_measures
from vbterrier.settings import Data, Inference, with_defaults
from vbterrier.stats.topic_intervals import N_RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import ir_measures

    from vbterrier.frames.ranking import Run
    from vbterrier.frames.results import Figures


DOCUMENT_SIDES = ("closed", "open")
JUDGMENTS = ("all", "reachable")
UNMATCHED = ("append", "drop")
EFFECTS = ("entity side", "document side", "interaction")
_CELL_COLUMNS = ["entity_side", "document_side"]


@dataclass(frozen=True, eq=False, repr=False)
class ClosedOpen(Shown):
    """Result of :func:`evaluate_closed_open`.

    - ``values``: entity_side, document_side, qid, measure, value
    - ``intervals``: one row per cell and measure: entity_side, document_side, and the columns of a C frame but name
    - ``effects``: measure, effect, value, low, high, level, method, n_qids, over the topics that all four cells share.
      ``entity side``: mean of the two cells with the first entity run minus the mean with the second; ``document
      side``: closed minus open; ``interaction``: closed minus open with the first entity run, minus the same difference
      with the second.
    - ``coverage``: entity_side, and the columns of ``coverage`` of :class:`vbterrier.evaluate.settings.Settings`
    """

    values: pd.DataFrame
    intervals: pd.DataFrame
    effects: pd.DataFrame
    coverage: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return ``intervals``: a row per cell and measure."""
        return self.intervals

    def _line(self) -> str:
        first = self.intervals.iloc[0]
        return f"{', '.join(self.intervals['measure'].unique())}; {first['n_qids']} topics"

    def _panels(self) -> Iterator[Panel]:
        yield from of_means(self.intervals, heads=2)
        yield Panel("Effects", self.effects, value="value", by="measure", rule=0, heads=2)

    def _figures(self) -> Figures:
        return {"forest": lambda: {"intervals": joined_names(self.intervals, "entity_side", "document_side")}}

    def means(self) -> pd.DataFrame:
        """Mean scores: one row per cell, one column per measure."""
        table = self.intervals.drop_duplicates([*_CELL_COLUMNS, "measure"])
        index = pd.MultiIndex.from_product([table[name].unique() for name in _CELL_COLUMNS], names=_CELL_COLUMNS)
        wide = table.pivot(index=_CELL_COLUMNS, columns="measure", values="value")
        return wide.reindex(index=index, columns=table["measure"].unique())


@with_defaults
def evaluate_closed_open(
    system: Callable[[pd.DataFrame], Any] | Mapping[str, Any],
    qrels: Any,
    measures: Sequence[str | ir_measures.Measure],
    *,
    links: Any,
    pool: Any,
    entities: Mapping[str, Any],
    options: ReachOptions = ReachOptions(cutoff=20, rel=1, unreached="skip", unmatched="append", judgments="all"),
    inference: Inference = Inference(interval="unseen", level=0.95, n_resamples=N_RESAMPLES, seed=0),
) -> ClosedOpen:
    """Evaluate a system with two entity runs, on the documents that each reaches and on the whole pool.

    The four cells give the effect of the entity run and the effect of the document pool. Closed documents mention at
    least one of the first ``cutoff`` entities of the entity run.

    Parameters
    ----------
    system
        A function from an entity run to a pipeline that reranks documents (or to a run, which is restricted to the
        documents of the cell); or a mapping of entity run name to run.
    qrels, measures
        See :func:`evaluate_settings`.
    links, pool
        As in :func:`evaluate_settings`; ``pool`` are the documents to rerank, a run.
    entities
        Two entity runs by name, as ``{"closed": trained_on_labels, "open": of_the_whole_pool}``.
    options
        A :class:`vbterrier.evaluate.ReachOptions`: ``cutoff``, ``rel``, ``unreached``, ``unmatched``, ``judgments``.
        ``unreached`` applies to reachable judgments.
    inference
        An :class:`vbterrier.Inference`: ``interval`` (``"unseen"``), ``level`` (0.95), ``n_resamples`` (2,000),
        ``seed`` (0).

    Returns
    -------
    ClosedOpen
        ``intervals``: a row per cell and measure; ``effects``: of the entity side, of the document side, and their
        interaction.

    Source: Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 3.4, Table 4.

    Examples
    --------
    >>> from vbterrier.entities.rerank import OverlapReranker
    >>> pool = pd.DataFrame({"qid": ["1", "1", "2", "2"], "docno": ["a", "b", "c", "d"], "score": [2.0, 1.0, 2.0, 1.0]})
    >>> qrels = pool[["qid", "docno"]].assign(label=[0, 1, 0, 1])
    >>> tags = pd.DataFrame({"docno": ["a", "b", "c", "d"], "entity_id": ["bait", "core"] * 2})
    >>> sides = {name: pd.DataFrame({"qid": ["1", "2"], "docno": name, "score": 1.0}) for name in ("core", "bait")}
    >>> def system(run):
    ...     return OverlapReranker(tags, run, weight=0.9)
    >>> result = evaluate_closed_open(system, qrels, ["RR"], links=tags, pool=pool, entities=sides)
    >>> result.means()["RR"].tolist()
    [1.0, 1.0, 0.5, 0.5]
    >>> result.effects["value"].tolist()
    [0.5, 0.0, 0.0]
    """
    cutoff, rel, unreached, unmatched, judgments = (
        options.cutoff,
        options.rel,
        options.unreached,
        options.unmatched,
        options.judgments,
    )
    interval, level, n_resamples, seed = inference.interval, inference.level, inference.n_resamples, inference.seed
    refuse_ratios(map(str, distinct_measures(measures)), "vbterrier.score")
    choice("judgments", judgments, JUDGMENTS)
    choice("unreached", unreached, UNREACHED)
    choice("unmatched", unmatched, UNMATCHED)
    if unmatched == "append" and judgments == "reachable":
        raise ParameterError(
            "judgments='reachable' leaves out the judgments of documents that unmatched='append' keeps; ask for "
            "unmatched='drop'"
        )
    if not hasattr(entities, "items") or len(entities) != len(DOCUMENT_SIDES):
        raise InputError("entities: wanted two entity runs by name, as {'closed': run, 'open': run}")
    judged = input_table(qrels, "qrels", read_qrels, ())
    linked_pool, documents = as_linked_pool(links, pool, is_ranked=True), loaded_run("pool", pool)
    how: dict[str, Any] = {"interval": interval, "level": level, "n_resamples": n_resamples, "seed": seed}
    results, coverage = {}, {}
    for side, source in entities.items():
        run = loaded_run(f"entities {side!r}", source)
        reachability = Reachability(linked_pool, run, whole("cutoff", cutoff))
        labelled = ReachableQrels(judged, reachability, whole("rel", rel))
        closed = judged if judgments == "all" else labelled.conditional(unreached)
        within, every = _rankings(system, side, run, documents, reachability)
        if unmatched == "append":
            # The same documents in both cells, also of runs that lack some of the pool or have others.
            within, every = _concatenation(within, documents.frame, every), _concatenation(every, documents.frame)
        cells = (judged_topics(within, closed), closed), (every, judged)
        for where, (ranking, labels) in zip(DOCUMENT_SIDES, cells, strict=True):
            name = f"{side} entities, {where} documents"
            results[side, where] = score(
                {name: ranking}, labels, measures, data=Data(on_topics="all", system=ONE), inference=inference
            )
        coverage[side] = labelled.coverage()
    values, intervals = (
        concatenation({cell: getattr(scores, name) for cell, scores in results.items()}, _CELL_COLUMNS)
        for name in ("values", "intervals")
    )
    values, intervals = values.drop(columns="name"), intervals.drop(columns="name")
    effects = _effects(values, list(entities), **how)
    return ClosedOpen(values, intervals, effects, concatenation(coverage, ["entity_side"]))


def _rankings(system: Any, side: str, entities: Run, documents: Run, reachability: Reachability) -> list[pd.DataFrame]:
    """Rankings of the closed and of the open documents."""
    if callable(system) and not is_pipeline(system):
        ranker = system(entities.frame)
    elif hasattr(system, "items") and side in system:
        ranker = system[side]
    else:
        raise InputError(
            f"system: no run for entities {side!r}; wanted a function from an entity run to a pipeline or run, or a "
            "mapping of entity run name to run"
        )
    if is_pipeline(ranker):
        return [ranker.transform(reachability.reachable(documents)), ranker.transform(documents.frame)]
    run = loaded_run(f"system {side!r}", ranker)
    return [reachability.reachable(run), run.frame]


def _concatenation(*rankings: pd.DataFrame) -> pd.DataFrame:
    """The documents of several rankings, one ranking after another, without repetitions."""
    parts = [ranked(frame)[["qid", "docno", "rank"]] for frame in rankings]
    longest = max(map(len, parts))
    scored = [part.assign(score=-(part.pop("rank") + at * longest).astype(np.float64)) for at, part in enumerate(parts)]
    return pd.concat(scored, ignore_index=True).drop_duplicates(["qid", "docno"])


def _effects(values: pd.DataFrame, sides: list[str], **options: Any) -> pd.DataFrame:
    rows = []
    for measure, group in values.groupby("measure", sort=False):
        cells = group.pivot(index="qid", columns=_CELL_COLUMNS, values="value").dropna()
        closed, opened = ([cells[side, where] for side in sides] for where in DOCUMENT_SIDES)
        low, high = score_bounds(f"{measure} - ")
        contrasts = (
            ((closed[0] - closed[1]) + (opened[0] - opened[1])) / 2,
            ((closed[0] - opened[0]) + (closed[1] - opened[1])) / 2,
            (closed[0] - opened[0]) - (closed[1] - opened[1]),
        )
        for effect, contrast, scale in zip(EFFECTS, contrasts, (1, 1, 2), strict=True):
            interval = mean_and_interval(contrast, (scale * low, scale * high), **options)
            rows.append((measure, effect, *interval, len(contrast)))
    return pd.DataFrame(rows, columns=["measure", "effect", "value", "low", "high", "level", "method", "n_qids"])
