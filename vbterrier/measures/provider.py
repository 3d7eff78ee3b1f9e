"""Our own provider in ir_measures: one preparation of the qrels for many runs, one pass over a run for all measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ir_measures

from vbterrier.measures.base import Measure, metrics, qrels_frame, run_of
from vbterrier.measures.scoring import Slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAME = "vbterrier"


class Provider(ir_measures.Provider):  # type: ignore[misc]
    """Evaluates the measures of this package.

    ir_measures' runtime provider would do it too (measures have ``runtime_impl``), but sorts the whole run in pandas
    before it calls each measure by itself.
    """

    NAME = NAME

    def supports(self, measure: Any) -> bool:
        """Whether a measure is ours."""
        return isinstance(measure, Measure)

    def run_inputs(self, measures: Iterable[Measure]) -> list[str]:
        """Columns that runs need."""
        return sorted({column for measure in measures for column in measure.RUN_INPUTS})

    def qrel_inputs(self, measures: Iterable[Measure]) -> list[str]:
        """Columns that qrels need."""
        return sorted({column for measure in measures for column in measure.QREL_INPUTS})

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> Evaluator:
        return Evaluator(measures, qrels)


class Evaluator(ir_measures.Evaluator):  # type: ignore[misc]
    """Qrels prepared once, for any number of runs."""

    def __init__(self, measures: Iterable[Measure], qrels: Any) -> None:
        self._slot = Slot(qrels_frame(qrels))
        super().__init__(list(measures), set(self._slot.topics))

    def iter_calc(self, run: Any) -> Iterator[ir_measures.Metric]:
        """Yield the value of each measure and topic; topics that a measure leaves out stay out."""
        yield from metrics(self.measures, self._slot, run_of(run))


def install() -> None:
    """Put the provider first in ir_measures' default pipeline, once."""
    ir_measures.providers.registry.setdefault(NAME, Provider())
    pipeline = ir_measures.DefaultPipeline.providers
    if NAME not in [provider.NAME for provider in pipeline]:
        pipeline.insert(0, ir_measures.providers.registry[NAME])
