"""Figures of matplotlib as part of a page: no styles of their own, colours that follow light and dark."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree as ET

from vbterrier.report.plots.style import COLOURS, INK, MUTED, RULE, SAVING

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# What colours are called in the page's style sheet.
_CLASSES = {
    INK: "ink",
    "#000000": "ink",
    "#ffffff": "paper",
    MUTED: "muted",
    RULE: "rule",
    "#9ecae1": "pale",
    **{colour.lower(): f"c{place}" for place, colour in enumerate(COLOURS) if colour != "#000000"},
}
_DROPPED = {"metadata", "style", "title"}


def inline(figure: Any, prefix: str) -> str:
    """A figure as an SVG element whose ids begin with a prefix and whose colours are classes of the page.

    Nothing is left in ``style``: a page that forbids styles which are not its own shows it as it is.
    """
    import matplotlib as mpl

    page = io.StringIO()
    with mpl.rc_context({**SAVING, "svg.hashsalt": prefix}):
        figure.savefig(page, format="svg", metadata={"Date": None})
    root = ET.fromstring(page.getvalue())  # noqa: S314 - what matplotlib wrote
    _clean(root, prefix)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    text = ET.tostring(root, encoding="unicode")
    return re.sub(r"\s+(?=[<\n])|(?<=\n)\s+", "", text)


def _clean(parent: ET.Element, prefix: str) -> None:
    for child in list(parent):
        if _local(child.tag) in _DROPPED:
            parent.remove(child)
        else:
            _clean(child, prefix)
    parent.tag = _local(parent.tag)
    if parent.tag == "svg":
        parent.set("xmlns", _SVG)
    _restyle(parent)
    for key in list(parent.attrib):
        value = parent.attrib[key]
        if key == "id":
            parent.set(key, f"{prefix}-{value}")
        elif key == f"{{{_LINK}}}href":
            del parent.attrib[key]
            parent.set("href", f"#{prefix}-{value[1:]}")
        elif "url(#" in value:
            parent.set(key, value.replace("url(#", f"url(#{prefix}-"))
        elif key == "d":
            parent.set(key, re.sub(r"(\d+\.\d\d)\d+", r"\1", " ".join(value.split())))


def _restyle(element: ET.Element) -> None:
    """Declarations of ``style`` as attributes, colours of the palette as classes."""
    classes = []
    for declaration in element.attrib.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if not value or name == "font-family":
            continue
        if name == "font":
            name, value = "font-size", next(iter(re.findall(r"[\d.]+px", value)), "7px")
        colour = _CLASSES.get(value.lower()) if name in ("fill", "stroke") else None
        if colour is None:
            element.set(name, value)
        else:
            classes.append(f"{name}-{colour}")
    if _local(element.tag) == "text" and not any(one.startswith("fill-") for one in classes):
        classes.append("fill-ink")
    if classes:
        element.set("class", " ".join(classes))


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]
