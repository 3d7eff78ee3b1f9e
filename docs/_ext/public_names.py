"""Reference of the public names: ``.. public-names:: evaluate adapters`` documents those that live in these packages.

What is made public later appears by itself; ``rest`` stands for the packages that no other page names.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pyterrier as pt
from sphinx.util.docutils import SphinxDirective

import vbterrier
from vbterrier.measures import Measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils import nodes
    from sphinx.application import Sphinx

REST = "rest"
# The packages that pages of their own are about.
FLOORS = (
    "evaluate",
    "judgments",
    "uncertainty",
    "queryset",
    "intents",
    "tags",
    "linking",
    "entities",
    "frames",
    "errors",
)


def floor(name: str) -> str | None:
    """The package of a public name, nothing for measures and stages, which other pages list."""
    value = getattr(vbterrier, name)
    if name.startswith("__") or isinstance(value, Measure):
        return None
    if inspect.isclass(value) and issubclass(value, pt.Transformer):
        return None
    package = value.__module__.split(".")[1]
    return package if package in FLOORS else REST


def described(names: list[str]) -> Iterator[str]:
    """Directives of autodoc, functions first."""
    for name in sorted(names, key=lambda name: (inspect.isclass(getattr(vbterrier, name)), name)):
        value = getattr(vbterrier, name)
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
        """Their descriptions."""
        packages = self.arguments[0].split()
        names = [name for package in packages for name in vbterrier.__all__ if floor(name) == package]
        if not names:
            raise self.error(f"public-names: nothing public in {', '.join(packages)}")
        return self.parse_text_to_nodes("\n".join(described(names)))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
