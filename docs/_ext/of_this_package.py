"""What Sphinx cannot know of this package: its public names, its transformers' signatures, what is no address."""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from command_line import FOLDER as COMMANDS
from command_line import all_commands, slug
from docutils import nodes
from inventories import packages
from public_names import FOLDER as NAMES
from public_names import pages
from public_names import public as public_names
from sphinx.addnodes import pending_xref
from sphinx.util.inspect import signature, stringify_signature

import vbterrier

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

_SHORT = {"pt": "pyterrier", "pd": "pandas", "np": "numpy"}
_ANYTHING = "(*args, **kwargs)"


def within(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Links that lead out of this folder, for readers of the repository, stay within the site."""
    source[0] = source[0].replace("](../SECURITY.md)", "](security.md)")


def plain(_app: Sphinx, tree: nodes.document) -> None:
    """BNDCG@10 is no address of a person, and tcp://host:8786 none of a page."""
    for link in list(tree.findall(nodes.reference)):
        if link.get("refuri", "").startswith(("mailto:", "tcp:")):
            link.parent.replace(link, link.children)


def parameters(
    _app: Sphinx, what: str, _name: str, value: Any, _options: Any, arguments: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """The parameters of transformers, which PyTerrier makes by ``__new__(*args, **kwargs)``."""
    if what == "class" and arguments == _ANYTHING and inspect.isfunction(value.__init__):
        constructor = signature(value.__init__, bound_method=True)
        return stringify_signature(constructor, show_annotation=False), returns
    return arguments, returns


def public(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element) -> nodes.Element | None:
    """Docstrings name things by where they live; the reference lists them as they are imported."""
    name = node.get("reftarget", "").rpartition(".")[2]
    names = {page.rpartition(".")[2]: page for page in pages()}
    names.update({name: f"vbterrier.{name}" for name in (*vbterrier.__all__, *vbterrier.measures.__all__)})
    if node.get("refdomain") != "py" or node["reftype"] == "mod" or name not in names:
        return None
    target = names[name]
    if isinstance(content, nodes.TextElement) and content.astext().removesuffix("()") != name:
        content = type(content)("", content.astext().replace(node["reftarget"], target), classes=content["classes"])
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], target, node, content
    )


def linked(_app: Sphinx, tree: nodes.document) -> None:
    """Names in code, such as ``pt.Experiment`` and ``vbterrier.score``, are links to their documentation."""
    for literal in list(tree.findall(nodes.literal)):
        name = re.sub(r"^(pt|pd|np)\.", lambda short: f"{_SHORT[short[1]]}.", literal.astext().removesuffix("()"))
        if name not in _linkable() or isinstance(literal.parent, (nodes.reference, pending_xref)):
            continue
        link = pending_xref(refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=True)
        literal.replace_self(link)
        link += literal


@cache
def _linkable() -> set[str]:
    """Names of other packages with a known page, and our own public names, whole."""
    foreign = {row.split()[0] for _, rows in packages().values() for row in rows}
    return foreign | {f"vbterrier.{name}" for name in public_names()}


def _module_of_measure(value: Any) -> Any:
    """Return the module that declares a measure, which its class does not name: PyTerrier replaces ``__module__``."""
    declaring = (module for name, module in sys.modules.items() if name.startswith("vbterrier.measures."))
    return next((one for one in declaring if vars(one).get(type(value).__name__) is type(value)), None)


def sourced(_app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """The button "edit this page" of a generated page leads to the module that it describes."""
    folder, _, name = page.rpartition("/")
    if folder == NAMES:
        value, parent = resolve_name(name), name.rpartition(".")[0]
        module = _module_of_measure(value) or inspect.getmodule(value) or resolve_name(parent)
    elif folder == COMMANDS:
        commands = {slug(command): each for command, each in all_commands().items()}
        module = inspect.getmodule(commands[name].callback)
    else:
        return
    place = f"https://github.com/vbterrier/vbterrier/{{}}/main/{module.__name__.replace('.', '/')}"
    file = f"{place}/__init__.py" if hasattr(module, "__path__") else f"{place}.py"
    context["theme_source_edit_link"], context["theme_source_view_link"] = file.format("edit"), file.format("blob")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all of it."""
    app.connect("source-read", within)
    app.connect("doctree-read", plain)
    app.connect("doctree-read", linked)
    app.connect("html-page-context", sourced)
    app.connect("autodoc-process-signature", parameters)
    app.connect("missing-reference", public)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
