"""Reference of the measures, generated from their declarations and docstrings.

``.. measures:: unjudged`` lists a family of measures, ``.. measure-table::`` all of them; each has a page, which
``public_names`` writes.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import numpy as np
from docutils import nodes
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.util.docutils import SphinxDirective

import vbterrier.measures as ours
from vbterrier.measures.intents import CandidateMeasure
from vbterrier.measures.linking import LinkingMeasure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

    from vbterrier.measures.base import Measure, Param

FAMILIES = {
    "unjudged": tuple(
        measure
        for measure in ours.MEASURES
        if not (isinstance(measure, (CandidateMeasure, LinkingMeasure)) or measure in ours.ENTITY)
    ),
    "intents": tuple(measure for measure in ours.MEASURES if isinstance(measure, CandidateMeasure)),
    "entities": ours.ENTITY,
    "linking": ours.LINKING,
}
NEEDS = {
    "unjudged": "a run (qid, docno, score) and qrels (qid, docno, label)",
    "intents": "a run (qid, docno, score), intents (qid, entity_id, prob) and tags (docno, entity_id)",
    "entities": "an entity run (qid, docno, score; docno is an entity), links of a pool (:doc:`/reference/frames`)",
    "linking": "answers (qid, docno, score; docno is an entity's id or NIL) and a gold standard (qid, entity_id)",
}
PAPERS = {
    "unjudged": "Fröbe, Gienapp, Potthast, Hagen, ECIR 2023",
    "intents": "Ding 2025; Clarke et al. 2008, 2009; Chapelle et al. 2009; Sakai and Song 2011",
    "entities": "Chatterjee, arXiv 2604.05204",
    "linking": "Mertens, Demeester, Deleu, Feys, Develder, FIRE 2014",
}
_RANGE = re.compile(r"in (?:``)?(\[[^\]]*\])|(at least 0|0 or 1)")
_MIN_MEMORY_LIMIT = 1e6
# Options of napoleon as in conf.py.
_NAPOLEON = Config(napoleon_use_rtype=False, napoleon_use_ivar=True, napoleon_preprocess_types=True)


def direction(measure: Measure) -> str:
    """The better values of a measure, in a phrase."""
    phrase = f"{measure.better} is better" if measure.better else "neither is better by itself"
    return f"{phrase}; with ``stat='std'``, neither is" if "stat" in measure.SUPPORTED_PARAMS else phrase


def limits(measure: Measure) -> str:
    """The range that the docstring names, or the declared one; empty if it has no limits."""
    if isinstance(measure, LinkingMeasure):
        return "[0, 1], of single queries any"
    if named := _RANGE.search(docstring(measure)):
        return named[named.lastindex or 0]
    low, high = measure.score_range(str(measure))
    return f"[{low:g}, {high:g}]" if np.isfinite([low, high]).all() else ""


def docstring(measure: Measure) -> str:
    """The description of a measure, the docstring of its class."""
    return inspect.cleandoc(type(measure).__doc__ or "")


def legal(param: Param) -> str:
    """The values that a parameter takes."""
    kinds = param.dtype if isinstance(param.dtype, tuple) else (param.dtype,)
    if param.legal:
        choices = ", ".join(f"``{choice!r}``" for choice in param.legal)
        return f"{choices}, or a mapping of grade to probability" if dict in kinds else choices
    text = " or ".join(
        {str: "text", int: "whole number", float: "number", bool: "True, False", dict: "dict"}[kind] for kind in kinds
    )
    if param.low is None:
        return text
    return (
        f"{text}, {param.low:g} to {param.high:g}"
        if param.high and param.high < _MIN_MEMORY_LIMIT
        else f"{text}, at least {param.low:g}"
    )


def default(param: Param) -> str:
    """The default of a parameter, as text; empty if it has none."""
    return f"``{param.default!r}``" if isinstance(param.default, (str, int, float)) else ""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]], widths: str, style: str) -> Iterator[str]:
    """A list-table."""
    yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", f"   :class: {style}", "")
    for row in (head, *rows):
        for place, cell in enumerate(row):
            yield f"   {'* -' if place == 0 else '  -'} {cell}"
    yield ""


def parameters(measure: Measure) -> Iterator[str]:
    """All parameters of a measure."""
    rows = [
        (
            "``@k``" if name == "cutoff" else f"``{name}``",
            legal(param),
            default(param),
            param.desc,
        )
        for name, param in measure.SUPPORTED_PARAMS.items()
    ]
    yield from table(("parameter", "values", "default", "meaning"), rows, "18 34 14 34", "parameters")


def described(measure: Measure, family: str) -> Iterator[str]:
    """The reference of a measure, as lines of reStructuredText."""
    yield from (f".. py:data:: vbterrier.{measure.NAME}", "")
    body = [
        f"*{measure.PRETTY_NAME}*: {measure.SHORT_DESC}.",
        "",
        ".. rst-class:: facts",
        "",
        f":Direction: {direction(measure)}",
        f":Range: {limits(measure) or 'see below'}",
        f":Needs: {NEEDS[family]}",
        f":Paper: {PAPERS[family]}",
        "",
        *NumpyDocstring(docstring(measure), _NAPOLEON, what="data").lines(),
        "",
        ".. rubric:: All parameters",
        "",
        *parameters(measure),
    ]
    yield from (f"   {line}" if line else "" for line in body)


class MeasureTable(SphinxDirective):
    """All measures in one table."""

    def measures(self) -> list[Measure]:
        """The measures, in the order of the families."""
        return [measure for measures in FAMILIES.values() for measure in measures]

    def run(self) -> list[nodes.Node]:
        """The table."""
        rows = [
            (f":py:data:`~vbterrier.{measure.NAME}`", measure.SHORT_DESC, limits(measure) or "any", direction(measure))
            for measure in self.measures()
        ]
        return self.parse_text_to_nodes(
            "\n".join(table(("measure", "what it says", "range", "direction"), rows, "15 45 15 25", "columns"))
        )


class Measures(MeasureTable):
    """The measures of a family in a table, whose rows have the anchors of the sections that this page once had."""

    required_arguments = 1

    def measures(self) -> list[Measure]:
        """The measures of the family."""
        return list(FAMILIES[self.arguments[0]])

    def run(self) -> list[nodes.Node]:
        """The table."""
        tables = super().run()
        body = next(iter(tables[0].findall(nodes.tbody)))
        for measure, row in zip(self.measures(), body.children, strict=True):
            row.children[0].children[0].insert(0, nodes.target("", "", ids=[f"vbterrier.{measure.NAME}"]))
        return tables


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("measures", Measures)
    app.add_directive("measure-table", MeasureTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
