"""Measures of this package as methods of TrecTools' ``TrecEval``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import ParameterError, nearest
from vbterrier.frames.ranking import Run
from vbterrier.hosts.trectools import TrecEval, frames_of, objects_of
from vbterrier.measures import MEASURES
from vbterrier.measures.base import evaluate
from vbterrier.measures.intents import ES, VB
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.unjudged import Bootstrapped, NDCGBound, Unjudged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trectools import TrecQrel, TrecRun

    from vbterrier.measures.base import Measure


class VBTrecEval(TrecEval):  # type: ignore[misc]
    """``trectools.TrecEval`` with measures for unjudged documents and ambiguous queries.

    The added methods have the parameters ``depth`` and ``per_query`` of TrecTools. They rank documents in the order of
    trec_eval and average over all topics of the qrels; a topic that is missing from the run counts as an empty ranking.
    TrecTools reads ids that look like numbers as numbers (007 becomes 7). To keep ids as text, read files with
    :func:`vbterrier.read_run` and :func:`vbterrier.read_qrels`, and use :meth:`from_frames`.

    Parameters
    ----------
    run
        A ``TrecRun``.
    qrels
        A ``TrecQrel``; the second column holds the intents for :meth:`get_vb_score` and :meth:`get_expected_success`.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["b", "a"], "score": [2.0, 1.0]})
    >>> round(VBTrecEval.from_frames(run, qrels).get_bootstrapped_ndcg(depth=10), 4)
    0.6309
    """

    def __init__(self, run: TrecRun, qrels: TrecQrel) -> None:
        super().__init__(run, qrels)
        # Refuse objects without data now, not at the first measure.
        frames_of(run, qrels)

    @classmethod
    def from_frames(cls, run: pd.DataFrame, qrels: pd.DataFrame, *, name: str = "vbterrier") -> VBTrecEval:
        """Build from frames with columns qid, docno, score and qid, docno, label [, iteration]; ids stay text.

        The columns entity_id and grade_prob of the run are kept for the measures that read them.
        """
        return cls(*objects_of(run, qrels, name))

    def get_bootstrapped_ndcg(
        self, depth: int = 10, per_query: bool = False, **parameters: Any
    ) -> pd.DataFrame | float:
        """Bootstrapped nDCG, column ``BNDCG@depth``; see :meth:`get_bootstrapped` and :data:`vbterrier.BNDCG`."""
        return self.get_bootstrapped("BNDCG", depth, per_query, **parameters)

    def get_bootstrapped(
        self, measure: str, depth: int = 10, per_query: bool = False, **parameters: Any
    ) -> pd.DataFrame | float:
        """A bootstrapped measure: the mean of its distribution over the grades of unjudged documents, or a ``stat``.

        Parameters
        ----------
        measure
            ``"BNDCG"``, ``"BRBP"``, ``"BP"``, ``"BAP"``, ``"BERR"`` or ``"BQ"``.
        depth, per_query
            Rank cutoff; ``True`` returns a frame indexed by query, with a column named as ``BAP@10``, instead of the
            mean over queries.
        parameters
            Parameters of the measure, such as ``rel=2`` for :data:`vbterrier.BAP`.

        Raises
        ------
        ParameterError
            An unknown measure, or an unknown parameter of the measure.
        """
        known = {found.NAME: found for found in MEASURES if isinstance(found, Bootstrapped)}
        if measure not in known:
            wanted = ", ".join(map(repr, known))
            raise ParameterError(f"measure={measure!r}: wanted one of {wanted}.{nearest(str(measure), known)}")
        return self._get({f"{measure}@{depth}": known[measure](**parameters) @ depth}, per_query=per_query)

    def get_ndcg_bounds(
        self, depth: int = 10, per_query: bool = False, kind: str = "naive", **parameters: Any
    ) -> pd.DataFrame | pd.Series[float]:
        """Lower and upper bound of nDCG: columns ``lower@depth`` and ``upper@depth``, or the means of both."""
        sides = ("lower", "upper")
        frame = self._frame(
            {f"{side}@{depth}": NDCGBound(side=side, kind=kind, **parameters) @ depth for side in sides}
        )
        return frame if per_query else frame.mean()

    def get_unjudged(self, depth: int = 10, per_query: bool = False, trec_eval: bool = True) -> pd.DataFrame | float:
        """Share of unjudged documents among the first ``depth`` retrieved: column ``UNJ@depth``.

        TrecTools divides by depth even if fewer documents were retrieved. The order is always that of trec_eval.
        """
        return self._get({f"UNJ@{depth}": Unjudged @ depth}, per_query=per_query)

    def get_vb_score(self, depth: int = 10, per_query: bool = False, **parameters: Any) -> pd.DataFrame | float:
        """VB-Score: column ``VB@depth``; for parameters see :data:`vbterrier.VB`."""
        return self._get({f"VB@{depth}": VB(**parameters) @ depth}, per_query=per_query)

    def get_expected_success(self, depth: int = 10, per_query: bool = False, **parameters: Any) -> pd.DataFrame | float:
        """Expected success: column ``ES@depth``; for parameters see :data:`vbterrier.ES`."""
        return self._get({f"ES@{depth}": ES(**parameters) @ depth}, per_query=per_query)

    def _get(self, measures: Mapping[str, Measure], *, per_query: bool) -> pd.DataFrame | float:
        frame = self._frame(measures)
        return frame if per_query else float(frame.iloc[:, 0].mean())

    def _frame(self, measures: Mapping[str, Measure]) -> pd.DataFrame:
        run, qrels = frames_of(self.run, self.qrels)
        labels = {measure: label for label, measure in measures.items()}
        found = evaluate(measures.values(), EvaluationTarget(qrels), Run(run))
        rows = [(qid, labels[measure], value) for qid, measure, value in found]
        long = pd.DataFrame(rows, columns=["query", "measure", "value"])
        return long.pivot(index="query", columns="measure", values="value")[list(measures)].rename_axis(columns=None)
