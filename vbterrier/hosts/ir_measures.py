"""Assumptions about ir_measures: its registries, engines, columns, converters and parser."""

from __future__ import annotations

import ast
import os
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import ir_measures
import pandas as pd

from vbterrier.errors import InputError
from vbterrier.frames.ranking import Run
from vbterrier.hosts import require_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Values = Iterable[tuple[str, ir_measures.Measure, float]]


NAME = "vbterrier"
# Engines of ir_measures, by their names in its registry of providers.
TREC_EVAL, NDEVAL, JUDGED = "pytrec_eval", "pyndeval", "judged"

_NAMES = (
    "DefaultPipeline.providers.insert ERR Evaluator MeanAgg Measure.AT_PARAM Measure.SUPPORTED_PARAMS "
    "Measure.aggregator Measure.validate_params Metric ParamInfo Provider.install_instructions Provider.is_available "
    "Provider.supports evaluator measures.registry parse_trec_measure util.QrelsConverter.as_pd_dataframe "
    "util.QrelsConverter.predict_type util.RunConverter.as_pd_dataframe util.RunConverter.predict_type"
)
_ENGINES = [f"providers.registry.{engine}" for engine in (TREC_EVAL, NDEVAL, JUDGED)]
require_api(ir_measures, "ir_measures", "0.4.3", [*_NAMES.split(), *_ENGINES])


def repair_parser() -> None:
    """Let ``ir_measures.parse_measure`` read parameters with Python 3.12 and newer.

    Version 0.4.3 reads them through classes of :mod:`ast` that are deprecated since Python 3.12 and removed in 3.14.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            ir_measures.parse_measure("nDCG@10")
    except (AttributeError, DeprecationWarning):
        ir_measures.util._ast_to_value = ast.literal_eval  # noqa: SLF001


repair_parser()
MEASURES: dict[str, type[ir_measures.Measure]] = ir_measures.measures.registry
ENGINES: Mapping[str, ir_measures.Provider] = ir_measures.providers.registry

TO_IR_MEASURES = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
FROM_IR_MEASURES = {host: column for column, host in TO_IR_MEASURES.items()}


def registered_measure(name: str, params: dict[str, Any]) -> ir_measures.Measure:
    """Make a measure from the name under which it is registered.

    Measures are pickled with this function, not by their class: ``import pyterrier`` sets ``__module__`` of every
    registered class to ``"pyterrier.measures"``, where pickle then looks for the class.
    """
    return MEASURES[name](**params)


class Provider(ir_measures.Provider):  # type: ignore[misc]
    """A provider of measures whose evaluation is given as a function.

    The runtime provider of ir_measures evaluates any measure that has ``runtime_impl``, but sorts the whole run in
    pandas and calls each measure separately.

    - ``prepare``: takes measures, and qrels as a frame with the columns of this package; returns the topics and a
      function that takes measures and a run and yields (topic, measure, value)
    """

    NAME = NAME

    def __init__(
        self,
        kind: type,
        prepare: Callable[[list[Any], pd.DataFrame], tuple[Iterable[str], Callable[[list[Any], Run], Values]]],
    ) -> None:
        super().__init__()
        self._kind, self._prepare = kind, prepare

    def supports(self, measure: Any) -> bool:
        """Return True if the provider evaluates a measure."""
        return isinstance(measure, self._kind)

    def run_inputs(self, measures: Iterable[ir_measures.Measure]) -> list[str]:
        """Columns that runs need."""
        return sorted({column for measure in measures for column in measure.RUN_INPUTS})

    def qrel_inputs(self, measures: Iterable[ir_measures.Measure]) -> list[str]:
        """Columns that qrels need."""
        return sorted({column for measure in measures for column in measure.QREL_INPUTS})

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> Evaluator:
        # Hosts pass a set, whose order changes with the hash seed, and tables have the order of the values.
        measures_in_order = sorted(measures, key=str)
        topics, values = self._prepare(measures_in_order, _frame(qrels, "qrels", ir_measures.util.QrelsConverter))
        return Evaluator(measures_in_order, set(topics), values)


class Evaluator(ir_measures.Evaluator):  # type: ignore[misc]
    """Evaluation of any number of runs against qrels that were prepared once."""

    def __init__(
        self, measures: list[ir_measures.Measure], topics: set[str], values: Callable[[list[Any], Run], Values]
    ) -> None:
        super().__init__(measures, topics)
        self._values = values

    def iter_calc(self, run: Any) -> Iterator[ir_measures.Metric]:
        """Yield the value of each measure and topic."""
        frame = _frame(run, "run", ir_measures.util.RunConverter)
        if not len(frame):
            # Some hosts pass an empty frame without these columns for topics that retrieved nothing.
            frame = pd.DataFrame({"qid": [], "docno": [], "score": []}, dtype=object)
        for topic, measure, value in self._values(self.measures, Run(frame, duplicates="error")):
            yield ir_measures.Metric(query_id=topic, measure=measure, value=value)


def _frame(data: Any, what: str, converter: Any) -> pd.DataFrame:
    """Qrels or a run, in any form that ir_measures accepts, as a frame with the columns of this package."""
    if isinstance(data, (str, os.PathLike)):
        raise InputError(f"{what}: found a path; read it first with vbterrier.read_{what}, or use vbterrier.score")
    if not isinstance(data, pd.DataFrame):
        made = converter(data, strict=False)
        _, problem = made.predict_type()
        if problem:
            raise InputError(f"{what}: {problem}; convert polars frames with .to_pandas(), or use vbterrier.score")
        data = made.as_pd_dataframe()
    if len(data) and "query_id" not in data.columns:
        columns = ", ".join(map(str, data.columns))
        raise InputError(
            f"{what}: ir_measures needs the column query_id, found {columns}; rename it, or use vbterrier.score"
        )
    # Several times faster than rename and set_axis for small frames.
    frame: pd.DataFrame = data.copy(deep=False)
    frame.columns = _names(tuple(data.columns))
    return frame


@cache
def _names(columns: tuple[Any, ...]) -> pd.Index[Any]:
    """The columns of this package for those of ir_measures; frames with the same columns share their index."""
    index: pd.Index[Any] = pd.Index([FROM_IR_MEASURES.get(column, column) for column in columns], dtype=object)
    return index


def install(provider: Provider) -> None:
    """Put a provider first in the default pipeline of ir_measures, unless one of this package is already there."""
    ir_measures.providers.registry.setdefault(NAME, provider)
    pipeline = ir_measures.DefaultPipeline.providers
    if NAME not in [installed.NAME for installed in pipeline]:
        pipeline.insert(0, ir_measures.providers.registry[NAME])


_ORIGINAL = "_before_vbterrier"


def of_trec_eval(name: str) -> list[ir_measures.Measure]:
    """Return the measures of a name of trec_eval, such as ``ndcg_cut_10``; none for other names."""
    parse = getattr(ir_measures.parse_trec_measure, _ORIGINAL, ir_measures.parse_trec_measure)
    try:
        measures: list[ir_measures.Measure] = parse(name)
    except ValueError:
        return []
    return measures


def replace_parser(fallback: Callable[[str], list[ir_measures.Measure]] | None) -> None:
    """Parse the texts that ``ir_measures.parse_trec_measure`` rejects with another parser, or undo this with ``None``.

    ``pt.Experiment`` calls ``ir_measures.parse_trec_measure`` for text, which knows only the names of trec_eval.
    """
    current = ir_measures.parse_trec_measure
    original = getattr(current, _ORIGINAL, None)
    if fallback is None:
        ir_measures.parse_trec_measure = current if original is None else original
    elif original is None:

        def parse_trec_measure(measure: str) -> list[ir_measures.Measure]:
            try:
                measures: list[ir_measures.Measure] = current(measure)
            except ValueError:
                return fallback(measure)
            return measures

        setattr(parse_trec_measure, _ORIGINAL, current)
        ir_measures.parse_trec_measure = parse_trec_measure
