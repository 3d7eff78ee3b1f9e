"""Measures from text."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ir_measures

from vbterrier.errors import ParameterError, nearest
from vbterrier.hosts.ir_measures import MEASURES, NAME, of_trec_eval, replace_parser
from vbterrier.measures.adhoc import is_computed_here
from vbterrier.measures.base import Measure
from vbterrier.remedies import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterable

# Names of trec_eval: letters, then cutoffs behind a point or an underscore.
_TREC_EVAL_NAME = re.compile(r"[A-Za-z]+(_[A-Za-z]+)*([._]\d+(\.\d+)?)?(,\d+)*")
# Measures by their names in other tools, without case and punctuation.
_ELSEWHERE = {
    **dict.fromkeys(("hit", "hits", "hitrate", "hitratio", "accuracyat"), "Success"),
    **dict.fromkeys(("ndcg", "ndcgcut"), "nDCG"),
    **dict.fromkeys(("map", "averageprecision", "mapcut"), "AP"),
    **dict.fromkeys(("mrr", "reciprocalrank", "reciprank"), "RR"),
    "recall": "R",
    "precision": "P",
    "rprecision": "Rprec",
    "success": "Success",
}
_FORM = "a measure is written as Name, Name@10 or Name(parameter=value,...)@10"

_RECALL_DIGITS = 2
_WITHOUT_VALUE = re.compile(r"invalid param (\w+)=<object .*")


def measures_from(*texts: str | ir_measures.Measure) -> list[ir_measures.Measure]:
    """Parse measures of this package and of ir_measures; Measure objects are returned unchanged.

    Names of trec_eval that mean one measure, such as ``ndcg_cut_10`` and ``recall.2``, are accepted, too.

    ``pt.Experiment`` accepts text only for the names of trec_eval, without parameters; it accepts Measure objects.

    Parameters
    ----------
    texts
        Measures as text, such as ``"BNDCG(prior='pool')@10"``, or as objects.

    Returns
    -------
    list of ir_measures.Measure
        The measures, in the order of ``texts``.

    Raises
    ------
    ParameterError
        Text that is no measure; the message gives the reason and the nearest name.

    Examples
    --------
    >>> measures_from("VB(alpha=0.5)@10", "nDCG@10")
    [VB(alpha=0.5)@10, nDCG@10]
    >>> measures_from("ndcg_cut_10", "recip_rank")
    [nDCG@10, RR]
    """
    return [text if isinstance(text, ir_measures.Measure) else _measure(text) for text in texts]


def distinct_measures(measures: Any, example: str = "BNDCG@10") -> list[ir_measures.Measure]:
    """Return the distinct measures of a list of measures and texts, or of a single one; each needs an engine."""
    alone = isinstance(measures, (str, ir_measures.Measure))
    parsed = [] if measures is None else measures_from(*([measures] if alone else measures))
    if not parsed:
        raise ParameterError(f"no measures; name at least one, as {example!r}")
    for measure in parsed:
        if not isinstance(measure, Measure) and (remedy := _missing_engine(measure)):
            raise ParameterError(f"{measure}: no engine of ir_measures evaluates this; {remedy}")
    return list(dict.fromkeys(parsed))


# Measures in which gains are proportional to labels, and measures that do not depend on labels.
_PROPORTIONAL = frozenset(("nDCG", "BNDCG", "ENDCG", "NDCGBound", "Judged", "Unjudged", "NumQ", "NumRet"))


def require_proportional(measures: Iterable[str | ir_measures.Measure]) -> None:
    """Refuse measures that change if all labels are multiplied by a number, unless they say which are relevant."""
    for measure in measures_from(*measures):
        is_linear = str(measure.params.get("dcg", "log2")) == "log2" and "gains" not in measure.params
        if "rel" not in measure.params and not (measure.NAME in _PROPORTIONAL and is_linear):
            raise ParameterError(
                f"{measure}: is not proportional to ratings, which {UNIT.available_text() or 'unit='} counts in steps; "
                "use nDCG, BNDCG or ENDCG, or say from how many steps a document is relevant, as P(rel=2)@5"
            )


def _missing_engine(measure: ir_measures.Measure) -> str:
    """Return the remedy if no installed engine of ir_measures evaluates a measure; empty if one does."""
    if is_computed_here(measure):
        return ""
    recall = measure.params.get("recall")
    if recall is not None and not (0 <= recall <= 1 and round(recall, _RECALL_DIGITS) == recall):
        # pytrec_eval rounds it, and would evaluate another measure.
        return f"give a recall from 0 to 1 with at most {_RECALL_DIGITS} digits, as IPrec@0.25"
    # The provider of this package supports further measures.
    others = [engine for engine in ir_measures.DefaultPipeline.providers if engine.NAME != NAME]
    able = [engine for engine in others if engine.supports(measure)]
    if any(engine.is_available() for engine in able):
        return ""
    hints = [" ".join((engine.install_instructions() or engine.NAME).split()) for engine in able]
    return f"install one that does: {', or '.join(hints)}" if hints else "change its parameters"


# Calls name the same few measures in many places.
@lru_cache(maxsize=256)
def _measure(text: str) -> ir_measures.Measure:
    name = str(text).strip()
    if _TREC_EVAL_NAME.fullmatch(name) and name not in MEASURES and (translated := _of_trec_eval(name)):
        return translated
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, AttributeError, TypeError, MemoryError, RecursionError) as error:
        raise ParameterError(f"{text!r}: {_FORM}") from error
    arguments: list[tuple[str, ast.expr]] = []
    cutoff: ast.expr | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        cutoff, node = node.right, node.left
    if isinstance(node, ast.Call):
        if node.args or any(keyword.arg is None for keyword in node.keywords):
            raise ParameterError(f"{text!r}: parameters are given by name; {_FORM}")
        arguments = [(str(keyword.arg), keyword.value) for keyword in node.keywords]
        node = node.func
    if not isinstance(node, ast.Name):
        raise ParameterError(f"{text!r}: {_FORM}")
    if node.id not in MEASURES:
        raise ParameterError(f"{text!r}: no measure is called {node.id!r}.{_suggestion(node.id, text)}")
    kind = MEASURES[node.id]
    if cutoff is not None:
        arguments.append((kind.AT_PARAM, cutoff))
    return _valid_measure(kind, _literals(arguments, text), text)


def _of_trec_eval(name: str) -> ir_measures.Measure | None:
    """Return the measure of a name of trec_eval, ``None`` for other names."""
    translated = of_trec_eval(name)
    if len(translated) > 1:
        several = ", ".join(map(str, translated[:3]))
        raise ParameterError(f"{name!r}: names {len(translated)} measures of trec_eval ({several}, ...); name one")
    return translated[0] if translated else None


def _suggestion(name: str, text: str) -> str:
    """Suggest the measure that other tools call so, with the cutoff and parameters of the text, or the nearest."""
    word = re.sub(r"[\W_]", "", name.casefold()).rstrip("0123456789")
    cutoff = name[len(name.rstrip("0123456789")) :]
    suggestion = _ELSEWHERE.get(word)
    if suggestion is None:
        return nearest(name, MEASURES)
    rest = text.strip().removeprefix(name)
    return f" Did you mean {suggestion}{rest or (f'@{cutoff}' if cutoff else '')}?"


def _literals(arguments: list[tuple[str, ast.expr]], text: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name, value in arguments:
        if name in params:
            raise ParameterError(f"{text!r}: {name!r} is given twice; {_FORM}")
        try:
            params[name] = ast.literal_eval(value)
        except (ValueError, TypeError) as error:
            raise ParameterError(f"{text!r}: values are numbers, quoted texts, True or False; {_FORM}") from error
    return params


def _valid_measure(kind: Any, params: dict[str, Any], text: str) -> ir_measures.Measure:
    """Make a measure and check it, because ir_measures checks its measures late, with an assertion or an abort."""
    legal = kind.SUPPORTED_PARAMS
    unknown = [name for name in params if name not in legal]
    if unknown:
        raise ParameterError(
            f"{text!r}: no parameter {unknown[0]!r}; wanted one of {', '.join(legal)}.{nearest(unknown[0], legal)}"
        )
    try:
        measure = kind(**params)
        if isinstance(measure, Measure):
            # These check their parameters when they are made, and some accept rel=0.
            return measure
        measure.validate_params()
    except (AssertionError, ParameterError) as error:
        # ir_measures shows the object that stands for a parameter without a value.
        reason = _WITHOUT_VALUE.sub(r"needs the parameter \1", str(error))
        raise ParameterError(
            f"{text!r}: {reason}; {_FORM}" if reason != str(error) else f"{text!r}: {error}"
        ) from error
    for name, meaning in (("cutoff", "as in @10"), ("rel", "the lowest label that counts as relevant")):
        value = params.get(name)
        if isinstance(value, bool) or (isinstance(value, int) and value < 1):
            raise ParameterError(f"{text!r}: {name} {value}: wanted a whole number of at least 1, {meaning}")
    return measure


def enable_string_measures(*, enabled: bool = True) -> None:
    """Let ``pt.Experiment`` accept measures of this package as text, as in ``eval_metrics=["map", "VB@10"]``.

    ``pt.Experiment`` parses text with ``ir_measures.parse_trec_measure``, which knows only the names of trec_eval. This
    function wraps it: names of trec_eval keep their meaning, all other text is parsed by :func:`measures_from`. The
    change holds for the whole process, so it is opt-in.

    Parameters
    ----------
    enabled
        ``False`` restores the parser of ir_measures.

    Notes
    -----
    ``pt.GridSearch`` and ``pt.KFoldGridSearch`` look the measure up by its text and fail on every measure object with a
    ``KeyError``: call this function first and pass text in the form of ``str(measure)``, as ``"VB@10"``.

    Examples
    --------
    >>> import ir_measures
    >>> enable_string_measures()
    >>> ir_measures.parse_trec_measure("VB@10")
    [VB@10]
    >>> enable_string_measures(enabled=False)
    """
    replace_parser(measures_from if enabled else None)
