"""Fusion of entity rankers, and a filter of entity runs by OER."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from vbterrier.entities.provenance import OWN_TOPIC, with_mark, with_strongest_mark
from vbterrier.entities.rankers.base import RunOnPool, RunReranker, Topics
from vbterrier.entities.stage import EntityStage, require_judged, required_columns
from vbterrier.errors import (
    InputError,
    ParameterError,
    agreeing,
    choice,
    examples,
    excerpt,
    number,
    warn,
    whole,
    whole_or_none,
)
from vbterrier.frames.entity_coverage import ALPHA, SHRINKAGE, EntityTable
from vbterrier.frames.ids import Ids, column_ids
from vbterrier.frames.ranking import Run, places, ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vbterrier.annotations import Floats


FUSIONS = ("rrf", "linear")
NORMS = ("minmax", "none")


class HybridEntities(EntityStage):
    """Fuse entity rankers by reciprocal rank or by normalised score.

    ``"rrf"``: ``score(e) = sum_i w_i / (k + rank_i(e))``, ranks from 1 (Cormack et al. 2009).
    ``"linear"``: ``score(e) = sum_i w_i (s_i(e) - min s_i)/(max s_i - min s_i)`` with the extremes of each topic.
    A ranker that does not rank an entity contributes 0.

    Parameters
    ----------
    rankers, weights
        Transformers that rank entities, such as :class:`~vbterrier.entities.ConsensusEntities`, or pipelines of them;
        each receives the input. Their weights ``w``, at least 0; 1 by default.
    fusion, k
        ``"rrf"`` or ``"linear"``; the constant of the former, which reduces the influence of the first ranks.
    norm
        For ``"linear"``: ``"minmax"``, or ``"none"`` for unchanged scores. The latter equals PyTerrier's ``+`` and
        ``*``, except that those lose the query of entities that the first ranker does not rank.
    cutoff
        The number of entities of each topic to keep; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value; a number of weights other than that of rankers; no weight above 0.
    InputError
        An infinite score, for ``"linear"``.

    Notes
    -----
    If a ranker gives all entities of a topic the same score, ``"minmax"`` makes it 1. Cutoffs change the normalisation:
    the lowest score of the first 20 entities differs from that of the whole ranking.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.6.8. Cormack, Clarke, Büttcher: Reciprocal
    Rank Fusion, SIGIR 2009.

    Examples
    --------
    >>> import pandas as pd
    >>> import pyterrier as pt
    >>> one = pt.Transformer.from_df(pd.DataFrame({"qid": "q1", "docno": ["Rome", "Paris"], "score": [9.0, 1.0]}))
    >>> two = pt.Transformer.from_df(pd.DataFrame({"qid": "q1", "docno": ["Paris", "Texas"], "score": [0.3, 0.1]}))
    >>> topics = pd.DataFrame({"qid": ["q1"], "query": ["capitals"]})
    >>> HybridEntities([one, two], weights=[0.5, 1])(topics)[["docno", "score"]].round(4).values.tolist()
    [['Paris', 0.0245], ['Texas', 0.0161], ['Rome', 0.0082]]
    >>> HybridEntities([one, two], fusion="linear")(topics)["score"].tolist()
    [1.0, 1.0, 0.0]
    """

    def __init__(
        self,
        rankers: Sequence[pt.Transformer],
        *,
        weights: Sequence[float] | None = None,
        fusion: str = "rrf",
        k: float = 60.0,
        norm: str = "minmax",
        cutoff: int | None = None,
    ) -> None:
        super().__init__()
        self.rankers = list(rankers) if isinstance(rankers, (list, tuple)) else []
        n = len(self.rankers)
        if not n or not all(isinstance(ranker, pt.Transformer) for ranker in self.rankers):
            raise ParameterError(f"rankers={excerpt(rankers)}: wanted a list of transformers, as [one, two]")
        self.weights = None if weights is None else [number("weights", weight, low=0) for weight in weights]
        if self.weights is not None and (len(self.weights) != n or not any(self.weights)):
            raise ParameterError(f"weights={excerpt(weights)}: wanted one for each of {n} rankers, and one above 0")
        self.fusion, self.norm = choice("fusion", fusion, FUSIONS), choice("norm", norm, NORMS)
        self.k, self.cutoff = number("k", k, low=0), whole_or_none("cutoff", cutoff)

    def transform_inputs(self) -> list[list[str]]:
        """Return the input columns that the rankers need."""
        return [list(dict.fromkeys(chain(["qid"], *map(required_columns, self.rankers))))]

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank the union of the rankers' entities."""
        self.require_columns(inp, *self.transform_inputs()[0])
        topics = Topics(inp)
        runs = [Run(ranker(inp), name=f"run of ranker {place}") for place, ranker in enumerate(self.rankers)]
        weights = self.weights or [1.0] * len(runs)
        score = np.concatenate([weight * self._contributions(run) for weight, run in zip(weights, runs, strict=True)])
        topic = np.concatenate([places(run.topics, topics.names)[run.topic] for run in runs])
        docno = pd.concat([run.frame["docno"] for run in runs], ignore_index=True)
        coded = column_ids(docno, "runs column 'docno'").text.dictionary_encode()
        # Indices in byte order, which breaks ties.
        id_ranks, in_order = Ids(coded.dictionary).ranks(), Ids(coded.dictionary).order()
        entity = id_ranks[coded.indices.to_numpy()] if len(docno) else np.empty(0, dtype=np.int64)
        size = max(len(coded.dictionary), 1)
        pairs, pair = np.unique((topic * size + entity)[topic >= 0], return_inverse=True)
        fused = np.bincount(pair, score[topic >= 0], minlength=len(pairs)).astype(np.float64, copy=False)
        made = topics.entity_run(pairs // size, pairs % size, Ids(coded.dictionary).take(in_order), fused, self.cutoff)
        return with_strongest_mark(made, *(run.frame for run in runs))

    def _contributions(self, run: Run) -> Floats:
        """Return the contribution of each row of a run at weight 1."""
        if self.fusion == "rrf":
            return np.asarray(1.0 / (self.k + 1 + run.ranks()), dtype=np.float64)
        if not np.isfinite(run.score).all():
            raise InputError(f"{run.name}: infinite scores cannot be added; fuse by ranks, with fusion='rrf'")
        if self.norm == "none":
            return run.score
        grouped = pd.Series(run.score).groupby(run.topic)
        low, high = (grouped.transform(name).to_numpy() for name in ("min", "max"))
        share: Floats = np.divide(run.score - low, high - low, out=np.ones(len(run)), where=high > low)
        return share


class OERFilter(RunReranker):
    """Keep the entities whose observable entity relevance reaches a threshold, a diagnostic only: E -> E.

    The filter reads the judgments with which its result is evaluated. It measures how much a better selection could
    gain, not the effectiveness of a system.

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.LinkedPool` with judgments, or its K frame.
    threshold
        Keep entities of the pool with ``OER >= threshold``.
    alpha, shrinkage, rel
        The pseudo-count and the shrinkage of OER, above 0, and the lowest relevant label; unjudged documents are
        non-relevant.
    pool_cutoff
        The number of documents in the pool of each topic; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        Links without any judgment.

    Notes
    -----
    An entity that no document of the pool mentions has no OER and is removed, whatever the threshold. Topics
    without relevant or without non-relevant documents have no OER: their entities are removed, with a warning.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.5.

    Examples
    --------
    >>> import pandas as pd
    >>> import warnings
    >>> from vbterrier.entities import link_pool
    >>> pool = pd.DataFrame({"qid": "q1", "docno": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> tags = pd.DataFrame({"docno": ["d1", "d2"], "entity_id": ["Paris", "Texas"]})
    >>> links = link_pool(pool, tags, pd.DataFrame({"qid": ["q1"], "docno": ["d1"], "label": [1]}))
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["Texas", "Paris"], "score": [2.0, 1.0]})
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     stage = OERFilter(links, threshold=0.1)
    >>> stage
    OERFilter(diagnostic, reads judgments: 1 topics, threshold=0.1)
    >>> stage(run)["docno"].tolist()
    ['Paris']
    """

    def __init__(
        self,
        links: Any,
        *,
        threshold: float = 0.0,
        alpha: float = ALPHA,
        shrinkage: float = SHRINKAGE,
        rel: int = 1,
        pool_cutoff: int | None = None,
    ) -> None:
        super().__init__()
        self._set_links(links, pool_cutoff)
        self.threshold = number("threshold", threshold)
        self.alpha = number("alpha", alpha, low=0, open_low=True)
        self.shrinkage = number("shrinkage", shrinkage, low=0, open_low=True)
        self.rel = whole("rel", rel)
        require_judged(self.links, "OERFilter")
        self._table = EntityTable(self._pool, self.rel)
        self._oer = self._table.oer(self.alpha, self.shrinkage)
        warn(
            "OERFilter reads the judgments with which its result is evaluated: use it as a diagnostic, not as a system"
        )

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep rows of an entity run, with new ranks; the column ``judgments`` says that judgments decide."""
        self.require_columns(inp, "qid", "docno", "score")
        aligned = RunOnPool.on(self._pool, inp)
        has = np.append(self._table.contrasts, False)[aligned.topic]
        if not has.all():
            lost = [aligned.run.topics[place] for place in np.unique(aligned.run.topic[~has]).tolist()]
            why = "have no relevant or no non-relevant documents in links and are removed"
            warn(f"entity run: {agreeing(len(lost), f'topics {why}')} ({examples(lost)})")
        kept = has & (aligned.pair >= 0) & (aligned.of_pairs(self._oer) >= self.threshold)
        return with_mark(ranked(inp[kept].reset_index(drop=True), name="entity run"), OWN_TOPIC)

    def __repr__(self) -> str:
        return super().__repr__().replace("(", "(diagnostic, reads judgments: ", 1)
