"""Reference of the public names, a page each.

``.. public-names:: stats`` lists the public names that live in these packages, ``.. names::`` those of its content,
such as classes of results. Each name has a page in ``reference/api``, written when a build begins: its docstring, and
links to the examples that use it. New public names appear without a change here; ``rest`` stands for the packages that
no other page names. Measures, and the stages on the pages that PyTerrier collects, have such pages, too.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pyterrier as pt
from docutils import nodes
from examples import DOCS, links, uses, write
from measures import FAMILIES, described, table
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import vbterrier
from vbterrier.measures.base import Measure

if TYPE_CHECKING:
    from sphinx.application import Sphinx

REST, PLOTS = "rest", "plots"
FOLDER = "reference/api"
# The packages with a page in the reference.
PACKAGES = (
    *("settings", "evaluate", "unjudged", "stats", "design", "intents", "linking", "entities", "frames", "errors"),
    PLOTS,
)
_LISTS = re.compile(r"^\.\. (public-names|names)::(.*)\n((?:\n|   .*\n)*)", re.MULTILINE)
# A class or a function on a page that PyTerrier collects, with its options.
_COLLECTED = re.compile(r"^\.\. auto(?:class|function):: (\S+)\n?((?:   :.*\n?)*)", re.MULTILINE)
_COLLECTION = DOCS.parent / "vbterrier/pt_docs"


def public() -> dict[str, Any]:
    """Return the public objects by name, those of namespaces as ``stats.Dirichlet``."""
    names = {}
    for name in vbterrier.__all__:
        value = getattr(vbterrier, name)
        if inspect.ismodule(value):
            names.update({f"{name}.{inner}": getattr(value, inner) for inner in value.__all__})
        else:
            names[name] = value
    return names


def package_of(value: Any) -> str | None:
    """Return the package of a public object; ``None`` for measures, stages and constants, which other pages list."""
    if isinstance(value, (Measure, dict, float, tuple)):
        return None
    if inspect.isclass(value) and issubclass(value, pt.Transformer):
        return None
    if value.__module__.startswith("vbterrier.report.plots"):
        return PLOTS
    package = value.__module__.split(".")[1]
    return package if package in PACKAGES else REST


def of_packages(packages: list[str]) -> list[str]:
    """Return the whole names of these packages, functions first."""
    objects = public()
    names = [name for package in packages for name, value in objects.items() if package_of(value) == package]
    return [f"vbterrier.{name}" for name in sorted(names, key=lambda name: (inspect.isclass(objects[name]), name))]


def listed(text: str) -> list[str]:
    """Return the whole names that the directives of a page list."""
    return [
        name
        for kind, packages, content in _LISTS.findall(text)
        for name in (of_packages(packages.split()) if kind == "public-names" else content.split())
    ]


@cache
def stages() -> dict[str, tuple[str, str]]:
    """Return the page of PyTerrier that has a stage, and the options of its description, by whole name."""
    return {
        name: (path.stem, options)
        for path in sorted(_COLLECTION.glob("*.rst"))
        for name, options in _COLLECTED.findall(path.read_text(encoding="utf-8"))
        if ":no-index:" not in options
    }


def pages() -> dict[str, str]:
    """Return the page that lists it, by whole name."""
    of_names = {
        name: f"reference/{path.stem}"
        for path in sorted((DOCS / "reference").glob("*.rst"))
        for name in listed(path.read_text(encoding="utf-8"))
    }
    of_measures = {
        f"vbterrier.{measure.NAME}": f"reference/measures-{family}"
        for family, measures in FAMILIES.items()
        for measure in measures
    }
    return {**of_names, **of_measures, **{name: f"pyterrier/{stem}" for name, (stem, _) in stages().items()}}


def collected(_app: Sphinx, path: Path, _parent: str, source: list[str]) -> None:
    """Lists of names instead of descriptions, on the pages that PyTerrier collects: each name has a page here."""
    if "pt_docs" in Path(path).parts:
        # Blank lines between the descriptions are those of the list.
        names = _COLLECTED.sub(r".. names:: \1\n", source[0])
        source[0] = re.sub(r"(?:^\.\. names:: \S+\n\n?)+", _joined, names, flags=re.MULTILINE)


def _joined(lists: re.Match[str]) -> str:
    names = re.findall(r"\.\. names:: (\S+)", lists[0])
    return "\n".join([".. names::", "", *(f"   {name}" for name in names), "", ""])


def page(name: str, parent: str) -> str:
    """Return the page of a name: its docstring, then the examples that use it."""
    measures = {f"vbterrier.{one.NAME}": (one, family) for family, some in FAMILIES.items() for one in some}
    value = measures[name][0] if name in measures else resolve_name(name)
    if name in measures:
        directive = (*described(*measures[name]), "")
    elif name in stages():
        directive = (f".. autoclass:: {name}", *stages()[name][1].splitlines(), "")
    elif inspect.isclass(value) and issubclass(value, Exception):
        directive = (f".. autoexception:: {name}", "")
    elif inspect.isclass(value):
        directive = (f".. autoclass:: {name}", "   :members:", "")
    elif callable(value):
        directive = (f".. autofunction:: {name}", "")
    else:
        directive = (f".. autodata:: {name}", "   :no-value:", "")
    short = name.removeprefix("vbterrier.") if value is public().get(name.removeprefix("vbterrier.")) else name
    lines = (":orphan:", "", short, "=" * len(short), "", f":doc:`/reference/index`: :doc:`/{parent}`", "")
    return "\n".join([*lines, *directive, *links(uses().get(name, ()))])


def write_pages(_app: Sphinx) -> None:
    """Write the pages of all names."""
    write(FOLDER, {name: page(name, parent) for name, parent in pages().items()})


def summary(name: str) -> str:
    """The first paragraph of a docstring, or the comment above a constant."""
    value, (module, _, constant) = resolve_name(name), name.rpartition(".")
    if callable(value):
        return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return " ".join(ModuleAnalyzer.for_module(module).find_attr_docs()["", constant])


class Names(SphinxDirective):
    """A table of names: each with its summary, and a link to its page."""

    has_content = True

    def names(self) -> list[str]:
        """The names of the content."""
        return " ".join(self.content).split()

    def run(self) -> list[nodes.Node]:
        """Return the table, whose rows have the anchors that whole names had when pages described them."""
        names = self.names()
        if not names:
            raise self.error(f"nothing public in {' '.join(self.arguments)}")
        rows = [(f":py:obj:`{name.removeprefix('vbterrier.')} <{name}>`", summary(name)) for name in names]
        tables = self.parse_text_to_nodes("\n".join(table(("name", "what it is"), rows, "40 60", "names")))
        body = next(iter(tables[0].findall(nodes.tbody)))
        for name, row in zip(names, body.children, strict=True):
            row.children[0].children[0].insert(0, nodes.target("", "", ids=[name]))
        return tables


class PublicNames(Names):
    """The public names of some packages."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = False

    def names(self) -> list[str]:
        """The names of the packages."""
        return of_packages(self.arguments[0].split())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("public-names", PublicNames)
    app.add_directive("names", Names)
    app.connect("builder-inited", write_pages)
    app.connect("include-read", collected)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
