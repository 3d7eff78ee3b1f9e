"""Reference of the public names: ``.. public-names:: stats`` documents the names that live in these packages.

New public names appear without a change here; ``rest`` stands for the packages that no other page names.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyterrier as pt
from sphinx.util.docutils import SphinxDirective

import vbterrier
from vbterrier.measures.base import Measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils import nodes
    from sphinx.application import Sphinx

REST = "rest"
# The packages with a page in the reference.
PACKAGES = ("settings", "evaluate", "unjudged", "stats", "design", "intents", "linking", "entities", "frames", "errors")


def public() -> dict[str, Any]:
    """Return the public objects by name, those of namespaces as ``stats.Dirichlet``."""
    found = {}
    for name in vbterrier.__all__:
        value = getattr(vbterrier, name)
        if inspect.ismodule(value):
            found.update({f"{name}.{inner}": getattr(value, inner) for inner in value.__all__})
        else:
            found[name] = value
    return found


def package_of(value: Any) -> str | None:
    """Return the package of a public object; ``None`` for measures, stages and figures, which other pages list."""
    if isinstance(value, (Measure, dict, float, tuple)) or value.__module__.startswith("vbterrier.report.plots"):
        return None
    if inspect.isclass(value) and issubclass(value, pt.Transformer):
        return None
    package = value.__module__.split(".")[1]
    return package if package in PACKAGES else REST


def described(names: list[str]) -> Iterator[str]:
    """Yield directives of autodoc, functions first."""
    objects = public()
    for name in sorted(names, key=lambda name: (inspect.isclass(objects[name]), name)):
        value = objects[name]
        if inspect.isclass(value) and issubclass(value, Exception):
            yield from (f".. autoexception:: vbterrier.{name}", "")
        elif inspect.isclass(value):
            yield from (f".. autoclass:: vbterrier.{name}", "   :members:", "")
        else:
            yield from (f".. autofunction:: vbterrier.{name}", "")


class PublicNames(SphinxDirective):
    """The public names of some packages."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return their descriptions."""
        packages = self.arguments[0].split()
        names = [name for package in packages for name, value in public().items() if package_of(value) == package]
        if not names:
            raise self.error(f"public-names: nothing public in {', '.join(packages)}")
        return self.parse_text_to_nodes("\n".join(described(names)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
