"""Thumbnails of a page's plots: ``.. thumbnails::`` shows all of them, each a link to its figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class Thumbnails(SphinxDirective):
    """The place of the thumbnails, which are known when the page was read."""

    def run(self) -> list[nodes.Node]:
        """Return an empty box."""
        return [nodes.container(classes=["thumbnails"])]


def number(image: nodes.image) -> str:
    """The number of a plot: 2 of ``gallery-2.png``."""
    return str(image["uri"]).rpartition("-")[2].partition(".")[0]


def filled(_app: Sphinx, tree: Any) -> None:
    """Name the figures of plots, and fill the box with their pictures."""
    boxes = [box for box in tree.findall(nodes.container) if "thumbnails" in box["classes"]]
    # A plot is a figure for HTML, then one for each other kind of output.
    plots = [image for image in tree.findall(nodes.image) if "plot-directive" in image["classes"]]
    first = {number(image): image for image in reversed(plots)}
    for place, image in reversed(first.items()):
        image.parent["ids"].append(f"plot-{place}")
        for box in boxes:
            small = nodes.image(uri=image["uri"], alt=image.get("alt", ""))
            text = nodes.inline("", image.get("alt", ""))
            box.append(nodes.paragraph("", "", nodes.reference("", "", small, text, refid=f"plot-{place}")))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive; images are collected after the thumbnails exist."""
    app.add_directive("thumbnails", Thumbnails)
    app.connect("doctree-read", filled, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
