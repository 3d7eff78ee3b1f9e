"""The directive ``schematic`` of PyTerrier's own documentation, for the pages that both sites share.

Its content is Python whose last line is a pipeline, drawn by :func:`pyterrier.schematic.draw`; what stands above a line
``# FOLD`` is run but not shown. Options: ``show_code``, ``input_columns``.
"""

from __future__ import annotations

import ast
import os
import tempfile
from typing import TYPE_CHECKING, Any, ClassVar
from unittest import mock

import pyterrier as pt
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLD = "# FOLD"


def pipeline_of(code: str) -> Any:
    """The value of the last line of a script, which runs in a folder of its own."""
    *body, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        raise TypeError("the last line of a schematic is the pipeline to draw")
    names: dict[str, Any] = {"pt": pt}
    here = os.getcwd()  # noqa: PTH109 - to go back to
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(compile(ast.Module(body, []), "schematic", "exec"), names)  # noqa: S102 - the pages are ours
            return eval(compile(ast.Expression(last.value), "schematic", "eval"), names)  # noqa: S307
        finally:
            os.chdir(here)


def drawn(pipeline: Any, columns: list[str] | None) -> str:
    """A pipeline as HTML. Links to classes would be looked up in the network, and are left out."""
    with mock.patch.object(pt.documentation, "url_for_class", return_value=None):
        html: str = pt.schematic.draw(pipeline, input_columns=columns)
    return html


class Schematic(SphinxDirective):
    """A pipeline, drawn."""

    has_content = True
    option_spec: ClassVar = {"show_code": directives.flag, "input_columns": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """The drawing, under the code where that is to be shown."""
        code = "\n".join(self.content)
        columns = [name.strip() for name in self.options.get("input_columns", "").split(",") if name.strip()]
        try:
            html = drawn(pipeline_of(code), columns or None)
        except Exception as error:
            raise self.error(f"schematic: {type(error).__name__}: {error}") from error
        drawing: list[nodes.Node] = [nodes.container("", nodes.raw("", html, format="html"), classes=["schematic"])]
        if "show_code" in self.options:
            code = code.rpartition(FOLD)[2].strip()
            drawing.insert(0, nodes.literal_block(code, code, language="python"))
        return drawing


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("schematic", Schematic)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
