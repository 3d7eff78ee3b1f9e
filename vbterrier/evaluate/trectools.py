"""Measures of this package as methods of TrecTools' ``TrecEval``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from trectools import TrecEval, TrecRun

from vbterrier.errors import InputError, ParameterError, excerpt, nearest, whole
from vbterrier.evaluate.experiment import scores_on_all_topics
from vbterrier.frames.contracts import system_items
from vbterrier.frames.linked_pool import LinkedPool
from vbterrier.frames.trectools import name_of_trectools
from vbterrier.hosts.trectools import (
    EvaluationResult,
    check_run_topics,
    over_run_topics,
    qrels_frame,
    run_frame,
    trectools_qrels,
    trectools_run,
)
from vbterrier.measures import MEASURES
from vbterrier.measures.bounds import NDCGBound, Unjudged
from vbterrier.measures.intents import ES, VB
from vbterrier.measures.text import distinct_measures
from vbterrier.measures.unjudged import Bootstrapped, needs_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import ir_measures
    from trectools import TrecQrel

    from vbterrier.evaluate.scores import Scores
    from vbterrier.unjudged.fitted import EvidenceModel


class VBTrecEval(TrecEval):  # type: ignore[misc]
    """``trectools.TrecEval`` with the measures of this package, of ir_measures and of trec_eval.

    :meth:`get` and the methods with the parameters ``depth`` and ``per_query`` of TrecTools give the values of
    :func:`vbterrier.score`. They rank documents in the order of trec_eval and average over all topics of the qrels for
    which the measure has a value; a topic that is missing from the run counts as an empty ranking. The methods of
    TrecTools average over the topics of the run, and warn where these are others; data that TrecTools would miscount,
    such as a document twice in a ranking, is refused.

    TrecTools reads ids that look like numbers as numbers (007 becomes 7). To keep ids as text, read files with
    :func:`vbterrier.read_run` and :func:`vbterrier.read_qrels`, and use :meth:`from_frames`.

    Parameters
    ----------
    run
        A ``TrecRun``; for entity measures, a run of entities.
    qrels
        A ``TrecQrel``, whose second column holds the subtopics for measures of intents; for entity measures, a
        :class:`~vbterrier.entities.LinkedPool`.
    runs
        All runs of the experiment, to which measures of the E family, as ENDCG, fit their model: a list of ``TrecRun``
        or a mapping of name to ``TrecRun`` or frame. The run itself may be among them, and is added if it is not.
    model
        A model for measures of the E family, instead of ``runs``: the result of :func:`vbterrier.unjudged.fit`, or its
        name.
    pool_cutoff
        The rank to which complete judgments judge the runs, of the model that measures of the E family fit to ``runs``;
        by default the depth that the judgments show. Notes of results name it.
    intents, tags
        For measures of intents, as in :func:`vbterrier.score`.

    Raises
    ------
    InputError
        Objects without data; another run with the name of the run.

    Examples
    --------
    >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
    >>> run = pd.DataFrame({"qid": "q1", "docno": ["b", "a"], "score": [2.0, 1.0]})
    >>> evaluation = VBTrecEval.from_frames(run, qrels, name="mine")
    >>> evaluation.get("RR@10")
    0.5
    >>> evaluation.results(["P@1", "P@2"]).get_results_for_metric("P@2")
    {'q1': 0.5}
    """

    def __init__(
        self,
        run: TrecRun,
        qrels: TrecQrel | LinkedPool,
        *,
        runs: Sequence[TrecRun] | Mapping[str, Any] | None = None,
        model: EvidenceModel | str | None = None,
        pool_cutoff: int | None = None,
        intents: Any = None,
        tags: Any = None,
    ) -> None:
        super().__init__(run, trectools_qrels(qrels.to_frame(), "links") if isinstance(qrels, LinkedPool) else qrels)
        # Refuse objects without data now, not at the first measure.
        frame, self._judged = run_frame(run), qrels_frame(self.qrels)
        self._name, self._model, self._given = name_of_trectools(run), model, {"intents": intents, "tags": tags}
        self._pool_cutoff = None if pool_cutoff is None else whole("pool_cutoff", pool_cutoff)
        if runs is not None and model is not None:
            raise ParameterError("runs=, model=: a model is fitted to runs or given; leave one of them out")
        if pool_cutoff is not None and model is not None:
            raise ParameterError("pool_cutoff= applies to fits; give it to vbterrier.unjudged.fit")
        self._runs = _with_run(self._name, frame, runs)

    @classmethod
    def from_frames(
        cls, run: pd.DataFrame, qrels: pd.DataFrame | LinkedPool, *, name: str = "vbterrier", **options: Any
    ) -> VBTrecEval:
        """Build from frames with columns qid, docno, score and qid, docno, label [, iteration]; ids stay text.

        The columns entity_id and grade_prob of the run are kept for the measures that read them. The qrels may be
        the links of a pool or intents (qid, entity_id, prob). ``options`` are those of the class.
        """
        judged = qrels.to_frame() if isinstance(qrels, LinkedPool) else qrels
        return cls(trectools_run(run, name), trectools_qrels(judged, name), **options)

    def get(self, measure: str | ir_measures.Measure, per_query: bool = False) -> pd.DataFrame | float:
        """Return the mean of any measure, by its text, or a frame of its values, indexed by query.

        Examples
        --------
        >>> qrels = pd.DataFrame({"qid": "q1", "docno": ["a", "b"], "label": [1, 0]})
        >>> run = pd.DataFrame({"qid": "q1", "docno": ["b", "a"], "score": [2.0, 1.0]})
        >>> VBTrecEval.from_frames(run, qrels).get("P@2", per_query=True).reset_index().values.tolist()
        [['q1', 0.5]]
        """
        (parsed,) = distinct_measures([measure])
        return self._get({str(parsed): parsed}, per_query=per_query)

    def results(
        self, measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure], per_query: bool = True
    ) -> EvaluationResult:
        """Return values and means (query "all") of the run as a ``TrecRes``, for the functions of TrecTools."""
        parsed = distinct_measures(measures)
        return _result(self._scores(parsed), self._name, per_query=per_query)

    def results_of_runs(
        self, measures: str | ir_measures.Measure | Sequence[str | ir_measures.Measure], per_query: bool = True
    ) -> list[EvaluationResult]:
        """Return the results of all ``runs``, evaluated at once, as ``trectools.misc.sort_systems_by`` takes them."""
        scores = self._scores(distinct_measures(measures), every=True)
        return [_result(scores, name, per_query=per_query) for name in self._runs]

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
            The name of a measure of the B family, such as ``"BNDCG"`` or ``"BAP"``.
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
        measures = {kind.NAME: kind for kind in MEASURES if isinstance(kind, Bootstrapped)}
        if measure not in measures:
            legal = ", ".join(map(repr, measures))
            raise ParameterError(f"measure={excerpt(measure)}: wanted one of {legal}.{nearest(str(measure), measures)}")
        return self._get({f"{measure}@{depth}": measures[measure](**parameters) @ depth}, per_query=per_query)

    def get_ndcg_bounds(
        self, depth: int = 10, per_query: bool = False, kind: str = "guaranteed", **parameters: Any
    ) -> pd.DataFrame | pd.Series[float]:
        """Lower and upper bound of nDCG: columns ``lower@depth`` and ``upper@depth``, or the means of both.

        All kinds but ``"naive"`` need ``max_grade``, the highest grade of the scale; see :data:`vbterrier.NDCGBound`.
        """
        sides = ("lower", "upper")
        measures = {f"{side}@{depth}": NDCGBound(side=side, kind=kind, **parameters) @ depth for side in sides}
        frame = self._frame(measures)
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

    def evaluate_all(self, per_query: bool = False) -> Any:
        """Evaluate the run by all measures of TrecTools."""
        check_run_topics(self, "evaluate_all")
        return TrecEval(self.run, self.qrels).evaluate_all(per_query)

    get_reciprocal_rank = over_run_topics(TrecEval.get_reciprocal_rank)
    get_geometric_map = over_run_topics(TrecEval.get_geometric_map)
    get_map = over_run_topics(TrecEval.get_map)
    get_rprec = over_run_topics(TrecEval.get_rprec)
    get_ndcg = over_run_topics(TrecEval.get_ndcg)
    get_bpref = over_run_topics(TrecEval.get_bpref)
    get_ubpref = over_run_topics(TrecEval.get_ubpref)
    get_precision = over_run_topics(TrecEval.get_precision)
    get_recall = over_run_topics(TrecEval.get_recall)
    get_rbp = over_run_topics(TrecEval.get_rbp)
    get_urbp = over_run_topics(TrecEval.get_urbp)
    get_alpha_urbp = over_run_topics(TrecEval.get_alpha_urbp)

    def _get(self, measures: Mapping[str, ir_measures.Measure], *, per_query: bool) -> pd.DataFrame | float:
        if per_query:
            return self._frame(measures)
        means = self._scores(measures.values()).means()
        return float(means.to_numpy()[list(means.index).index(self._name), 0])

    def _frame(self, measures: Mapping[str, ir_measures.Measure]) -> pd.DataFrame:
        """Values of the run: a row per query, a column per measure with its name in TrecTools."""
        values = self._scores(measures.values()).values
        of_run = values[values["name"] == self._name]
        table = of_run.pivot(index="qid", columns="measure", values="value").reindex(
            columns=list(map(str, measures.values()))
        )
        return table.set_axis(list(measures), axis=1).rename_axis(index="query", columns=None)

    def _scores(self, measures: Iterable[ir_measures.Measure], *, every: bool = False) -> Scores:
        """Scores of the run, and of all runs if they are wanted or are evidence."""
        reported = list(measures)
        fits = needs_model(reported) and self._model is None
        if fits and len(self._runs) == 1:
            raise InputError(
                f"{reported[0]}: estimates need a model of unjudged documents: give runs=, all runs of the experiment, "
                "or model=, the result of vbterrier.unjudged.fit"
            )
        runs = self._runs if fits or every else {self._name: self._runs[self._name]}
        # Methods of one evaluation compute measures that need no model, too.
        of_model: dict[str, Any] = (
            {"model": self._model, "pool_cutoff": self._pool_cutoff} if needs_model(reported) else {}
        )
        return scores_on_all_topics(runs, self._judged, reported, **self._given, **of_model)


def _with_run(name: str, frame: pd.DataFrame, runs: Any) -> dict[str, pd.DataFrame]:
    """Frames of all runs by name; the run itself is added if it is not among them."""
    requirement = "a list of TrecRun, or a mapping of names to TrecRun or frames"
    if runs is None:
        runs = {}
    if hasattr(runs, "columns") or isinstance(runs, (str, TrecRun)) or not hasattr(runs, "__iter__"):
        raise ParameterError(f"runs={excerpt(runs)}: wanted {requirement}")
    if not hasattr(runs, "items"):
        listed = list(runs)
        if odd := [run for run in listed if not isinstance(run, TrecRun)]:
            raise ParameterError(f"runs: holds {excerpt(odd[0])}, wanted {requirement}")
        runs = [(name_of_trectools(run), run) for run in listed]
    every = {str(other): run_frame(run) for other, run in system_items(runs)}
    ranked = ["qid", "docno", "score"]
    if name in every and not every[name][ranked].equals(frame[ranked]):
        raise InputError(f"runs: another run than that of the evaluation is called {name!r}; give each its own name")
    return every | {name: frame}


def _result(scores: Scores, name: str, *, per_query: bool) -> EvaluationResult:
    """The values and means of a run."""
    of_run = scores.means().loc[[name]].T
    means = pd.DataFrame({"metric": of_run.index, "query": "all", "value": of_run[name].to_numpy()})
    by_query = scores.values[scores.values["name"] == name].rename(columns={"measure": "metric", "qid": "query"})
    parts = [by_query, means] if per_query else [means]
    table = pd.concat([part[["metric", "query", "value"]] for part in parts], ignore_index=True)
    return EvaluationResult(table, name, scores.notes)
