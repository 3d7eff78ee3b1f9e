"""Measures of this package in the style of TrecTools' ``TrecEval``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from trectools import TrecEval

from vbterrier.errors import InputError, ParameterError, nearest
from vbterrier.frames.contracts import frame_of, require
from vbterrier.frames.ranking import Run
from vbterrier.measures import MEASURES
from vbterrier.measures.base import evaluate
from vbterrier.measures.intents import ES, VB
from vbterrier.measures.target import EvaluationTarget
from vbterrier.measures.unjudged import Bootstrapped, NDCGBound, Unjudged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trectools import TrecQrel, TrecRun

    from vbterrier.measures.base import Measure


_COLUMNS = {"query": "qid", "docid": "docno", "rel": "label", "q0": "iteration"}
# What measures read in a run beyond its scores.
_EXTRA = ("entity_id", "grade_prob")


class VBTrecEval(TrecEval):  # type: ignore[misc]
    """``trectools.TrecEval`` with measures for unjudged documents and ambiguous queries.

    The added methods take ``depth`` and ``per_query`` as the others do. They compute with our kernels, in trec_eval's
    order, over all topics of the qrels; a topic that the run has nothing for counts as an empty ranking. Ids that
    TrecTools made numbers when it read a file (007 became 7) stay so: read files with :func:`vbterrier.read_run` and
    :func:`vbterrier.read_qrels`, and use :meth:`from_frames`.

    Parameters
    ----------
    run
        A ``TrecRun``.
    qrels
        A ``TrecQrel``; the second column holds the intents for :meth:`get_vb_score` and :meth:`get_expected_success`.

    Examples
    --------
    >>> import pandas as pd
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["b", "a"], "score": [2.0, 1.0]})
    >>> round(VBTrecEval.from_frames(run, qrels).get_bootstrapped_ndcg(depth=10), 4)
    0.6309
    """

    def __init__(self, run: TrecRun, qrels: TrecQrel) -> None:
        super().__init__(run, qrels)
        self._frames = run.run_data, qrels.qrels_data
        if any(frame is None for frame in self._frames):
            raise InputError("run and qrels must hold data: read a file, or load a data frame, first")

    @classmethod
    def from_frames(cls, run: pd.DataFrame, qrels: pd.DataFrame, *, name: str = "vbterrier") -> VBTrecEval:
        """From frames with qid, docno, score and qid, docno, label [, iteration]; ids stay as they are.

        Columns entity_id and grade_prob of the run are kept for the measures that read them.
        """
        from trectools import TrecQrel, TrecRun

        checked, qrels = Run(run), frame_of(qrels, "qrels")
        require(qrels, ("qid", "docno", "label"), "qrels")
        ranked = checked.frame.assign(rank=checked.ranks() + 1, q0="Q0", system=name)
        trec_run, trec_qrels = TrecRun(), TrecQrel()
        back = {ours: theirs for theirs, ours in _COLUMNS.items()}
        columns = ["query", "q0", "docid", "rank", "score", "system", *(name for name in _EXTRA if name in ranked)]
        trec_run.run_data = ranked.rename(columns=back)[columns]
        iteration = qrels["iteration"] if "iteration" in qrels.columns else "0"
        trec_qrels.qrels_data = qrels.assign(iteration=iteration).rename(columns=back)[["query", "q0", "docid", "rel"]]
        trec_run.filename = trec_qrels.filename = name
        return cls(trec_run, trec_qrels)

    def get_bootstrapped_ndcg(
        self, depth: int = 10, per_query: bool = False, **parameters: Any
    ) -> pd.DataFrame | float:
        """Bootstrapped nDCG: its mean over what the unjudged documents could be, or another ``stat``.

        Parameters
        ----------
        depth
            k.
        per_query
            A frame indexed by query instead of the mean over queries.
        parameters
            Those of :data:`vbterrier.BNDCG`: prior, stat, dcg, compat, method, all_unjudged, prior_strength, level,
            n_draws, seed.

        Returns
        -------
        float or pandas.DataFrame
            Column ``BNDCG@depth``.
        """
        return self.get_bootstrapped("BNDCG", depth, per_query, **parameters)

    def get_bootstrapped(
        self, measure: str, depth: int = 10, per_query: bool = False, **parameters: Any
    ) -> pd.DataFrame | float:
        """A measure over what the unjudged documents could be: its mean, or another ``stat``.

        Parameters
        ----------
        measure
            ``"BNDCG"``, ``"BRBP"``, ``"BP"``, ``"BAP"``, ``"BERR"`` or ``"BQ"``.
        depth
            k.
        per_query
            A frame indexed by query instead of the mean over queries.
        parameters
            Those of the measure, as ``rel=2`` of :data:`vbterrier.BAP`.

        Returns
        -------
        float or pandas.DataFrame
            Column ``BAP@depth``, after the measure.

        Raises
        ------
        ParameterError
            Another measure, or a parameter that it does not have.
        """
        known = {found.NAME: found for found in MEASURES if isinstance(found, Bootstrapped)}
        if measure not in known:
            wanted = ", ".join(map(repr, known))
            raise ParameterError(f"measure={measure!r}: wanted one of {wanted}.{nearest(str(measure), known)}")
        return self._get({f"{measure}@{depth}": known[measure](**parameters) @ depth}, per_query=per_query)

    def get_ndcg_bounds(
        self, depth: int = 10, per_query: bool = False, kind: str = "naive", **parameters: Any
    ) -> pd.DataFrame | pd.Series[float]:
        """Lower and upper bound of nDCG: columns ``lower@depth`` and ``upper@depth``, or their means."""
        bounds = {
            f"{side}@{depth}": NDCGBound(side=side, kind=kind, **parameters) @ depth for side in ("lower", "upper")
        }
        frame = self._frame(bounds)
        return frame if per_query else frame.mean()

    def get_unjudged(self, depth: int = 10, per_query: bool = False, trec_eval: bool = True) -> pd.DataFrame | float:
        """Share of unjudged documents among the first ``depth`` retrieved: column ``UNJ@depth``.

        TrecTools divides by depth even where less was retrieved; the order is always trec_eval's.
        """
        return self._get({f"UNJ@{depth}": Unjudged @ depth}, per_query=per_query)

    def get_vb_score(self, depth: int = 10, per_query: bool = False, **parameters: Any) -> pd.DataFrame | float:
        """VB-Score: column ``VB@depth``; parameters are those of :data:`vbterrier.VB`."""
        return self._get({f"VB@{depth}": VB(**parameters) @ depth}, per_query=per_query)

    def get_expected_success(self, depth: int = 10, per_query: bool = False, **parameters: Any) -> pd.DataFrame | float:
        """Expected success: column ``ES@depth``; parameters are those of :data:`vbterrier.ES`."""
        return self._get({f"ES@{depth}": ES(**parameters) @ depth}, per_query=per_query)

    def _get(self, measures: Mapping[str, Measure], *, per_query: bool) -> pd.DataFrame | float:
        frame = self._frame(measures)
        return frame if per_query else float(frame.iloc[:, 0].mean())

    def _frame(self, measures: Mapping[str, Measure]) -> pd.DataFrame:
        run, qrels = (frame.rename(columns=_COLUMNS) for frame in self._frames)
        labels = {measure: label for label, measure in measures.items()}
        rows = [
            (qid, labels[measure], value)
            for qid, measure, value in evaluate(measures.values(), EvaluationTarget(qrels), Run(run))
        ]
        long = pd.DataFrame(rows, columns=["query", "measure", "value"])
        table = long.pivot(index="query", columns="measure", values="value")
        table.columns.name = None
        return table[list(measures)]
