"""What Sphinx cannot know of this package: its public names, its transformers' signatures, what is no address."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.inspect import signature, stringify_signature

import vbterrier

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

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
        found = signature(value.__init__, bound_method=True)
        return stringify_signature(found, show_annotation=False), returns
    return arguments, returns


def public(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element) -> nodes.Element | None:
    """Docstrings name things by where they live; the reference lists them as they are imported."""
    name = node.get("reftarget", "").rpartition(".")[2]
    names = {*vbterrier.__all__, *vbterrier.measures.__all__}
    if node.get("refdomain") != "py" or node["reftype"] == "mod" or name not in names:
        return None
    target = f"vbterrier.{name}"
    if isinstance(content, nodes.TextElement) and content.astext().removesuffix("()") != name:
        content = type(content)("", content.astext().replace(node["reftarget"], target), classes=content["classes"])
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], target, node, content
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all of it."""
    app.connect("source-read", within)
    app.connect("doctree-read", plain)
    app.connect("autodoc-process-signature", parameters)
    app.connect("missing-reference", public)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
