"""Registration with ir_measures: the provider, and measures from text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import ir_measures

from vbterrier.errors import ParameterError, nearest
from vbterrier.measures.base import Measure, metrics, qrels_frame, run_of
from vbterrier.measures.target import EvaluationTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_FORM = "a measure reads as Name, Name@10 or Name(parameter=value,...)@10"
_ORIGINAL = "_before_vbterrier"


def measures_from(*texts: str | ir_measures.Measure) -> list[ir_measures.Measure]:
    """Measures from their text, ours and those of ir_measures alike.

    ``pt.Experiment`` reads text as the names of trec_eval and knows no parameters; it takes Measure objects.

    Parameters
    ----------
    texts
        As ``"VB(alpha=1)@10"``, ``"nDCG@10"``, ``"AP"``; Measure objects pass through.

    Returns
    -------
    list of ir_measures.Measure

    Raises
    ------
    ParameterError
        Text that is no measure: says why, with the nearest name.

    Examples
    --------
    >>> measures_from("VB(alpha=0.5)@10", "nDCG@10")
    [VB(alpha=0.5)@10, nDCG@10]
    """
    return [_measure(text) for text in texts]


def _measure(text: str | ir_measures.Measure) -> ir_measures.Measure:
    if isinstance(text, ir_measures.Measure):
        return text
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, AttributeError, TypeError, MemoryError, RecursionError) as error:
        raise ParameterError(f"{text!r}: {_FORM}") from error
    params: dict[str, Any] = {}
    at: list[Any] = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        at, node = [_value(node.right, text)], node.left
    if isinstance(node, ast.Call):
        if node.args or any(keyword.arg is None for keyword in node.keywords):
            raise ParameterError(f"{text!r}: parameters are given by name; {_FORM}")
        for keyword in node.keywords:
            _give(params, str(keyword.arg), _value(keyword.value, text), text)
        node = node.func
    if not isinstance(node, ast.Name):
        raise ParameterError(f"{text!r}: {_FORM}")
    known = ir_measures.measures.registry
    if node.id not in known:
        raise ParameterError(f"{text!r}: no measure is called {node.id!r}.{nearest(node.id, known)}")
    kind = known[node.id]
    if at:
        _give(params, kind.AT_PARAM, at[0], text)
    return _made(kind, params, text)


def _give(params: dict[str, Any], name: str, value: Any, text: str) -> None:
    if name in params:
        raise ParameterError(f"{text!r}: {name!r} is given twice; {_FORM}")
    params[name] = value


def _value(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"{text!r}: values are numbers, quoted texts, True or False; {_FORM}") from error


def _made(kind: Any, params: dict[str, Any], text: str) -> ir_measures.Measure:
    """Make a measure and check it: others' measures are checked late, with an assertion or an abort."""
    legal = kind.SUPPORTED_PARAMS
    unknown = [name for name in params if name not in legal]
    if unknown:
        raise ParameterError(
            f"{text!r}: no parameter {unknown[0]!r}; wanted one of {', '.join(legal)}.{nearest(unknown[0], legal)}"
        )
    try:
        measure = kind(**params)
        measure.validate_params()
    except AssertionError as error:
        raise ParameterError(f"{text!r}: {error}") from error
    except ParameterError as error:
        raise ParameterError(f"{text!r}: {error}") from error
    if isinstance(measure, Measure):
        # Ours have checked their numbers, and some know a rel of 0.
        return measure
    for name, meaning in (("cutoff", "as in @10"), ("rel", "the lowest label that counts as relevant")):
        value = params.get(name)
        if isinstance(value, bool) or (isinstance(value, int) and value < 1):
            raise ParameterError(f"{text!r}: {name} {value}: wanted a whole number of at least 1, {meaning}")
    return measure


def enable_string_measures(*, enabled: bool = True) -> None:
    """Let ``pt.Experiment`` take our text for measures, as in ``eval_metrics=["map", "VB@10"]``.

    It asks ``ir_measures.parse_trec_measure``, which knows the names of trec_eval only; this puts a parser before it
    that leaves those names as they are and reads everything else as :func:`measures_from` does. Process-wide, hence
    opt-in; ``enable_string_measures(enabled=False)`` takes it back.

    Examples
    --------
    >>> import ir_measures
    >>> enable_string_measures()
    >>> ir_measures.parse_trec_measure("VB@10")
    [VB@10]
    >>> enable_string_measures(enabled=False)
    """
    current = ir_measures.parse_trec_measure
    original = getattr(current, _ORIGINAL, None)
    if enabled and original is None:
        ir_measures.parse_trec_measure = _with_text(current)
    elif not enabled and original is not None:
        ir_measures.parse_trec_measure = original


def _with_text(original: Any) -> Any:
    def parse_trec_measure(measure: str) -> list[ir_measures.Measure]:
        try:
            found: list[ir_measures.Measure] = original(measure)
        except ValueError:
            return measures_from(measure)
        return found

    setattr(parse_trec_measure, _ORIGINAL, original)
    return parse_trec_measure


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
        self._slot = EvaluationTarget(qrels_frame(qrels))
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
