"""What an entity run would be without entities that tell nothing of relevance: a diagnostic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyterrier as pt

from vbterrier.entities.rankers.base import RunReranker, warn
from vbterrier.entities.table import ALPHA, TAU, EntityTable
from vbterrier.errors import InputError, examples
from vbterrier.frames.parameters import number, whole
from vbterrier.frames.ranked import ranked

if TYPE_CHECKING:
    import pandas as pd


class OERFilter(RunReranker):
    """Keep the entities whose observable entity relevance is high enough, a diagnostic only: E -> E.

    It reads the judgments that the result is then evaluated with. What follows it says how much better selection could
    do, never how well a system does.

    Parameters
    ----------
    links
        A :class:`~vbterrier.entities.pool.LinkedPool` that was linked with judgments, or its K frame.
    threshold
        Keep entities with ``OER >= threshold``.
    alpha, tau
        Pseudo-count and support of OER, above 0.
    rel
        The lowest relevant label; unjudged documents are not relevant.
    depth
        How many documents of each topic make the pool; ``None`` for all.

    Raises
    ------
    ParameterError
        An illegal value.
    InputError
        Links without any judgment.

    Notes
    -----
    An entity that the pool does not mention has ``OER = 0``, as the formula gives for ``df = 0``. Topics without
    relevant or without other documents have no OER: nothing of them is kept, with a warning.

    References
    ----------
    Chatterjee: Entities as Retrieval Signals, arXiv 2604.05204, section 2.5.

    Examples
    --------
    >>> import pandas as pd
    >>> import warnings
    >>> from vbterrier.entities.pool import link_pool
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
        tau: float = TAU,
        rel: int = 1,
        depth: int | None = None,
    ) -> None:
        super().__init__()
        self._set_links(links, depth)
        self.threshold = number("threshold", threshold)
        self.alpha = number("alpha", alpha, low=0, open_low=True)
        self.tau = number("tau", tau, low=0, open_low=True)
        self.rel = whole("rel", rel)
        if len(self.links) and (self.links.label < 0).all():
            raise InputError("OERFilter: no document of the links is judged; give link_pool the qrels")
        self._table = EntityTable(self._pool, self.rel)
        self._oer = self._table.oer(self.alpha, self.tau)
        warn("OERFilter reads the judgments that its result is evaluated with: a diagnostic, no system")

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Keep rows of an entity run, ranked anew."""
        pt.validate.result_frame(inp, extra_columns=["score"])
        placed = self._placed(inp)
        has = np.append(self._table.contrasts, False)[placed.topic]
        if not has.all():
            lost = np.unique(placed.run.topic[~has])
            shown = examples(placed.run.topics[place] for place in lost.tolist())
            warn(f"entity run: {len(lost)} topics have no relevant or no other documents in links; none kept ({shown})")
        kept = has & (placed.of_pairs(self._oer) >= self.threshold)
        return ranked(inp[kept].reset_index(drop=True), name="entity run")

    def __repr__(self) -> str:
        return super().__repr__().replace("(", "(diagnostic, reads judgments: ", 1)
