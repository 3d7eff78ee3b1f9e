"""Figures of a report as SVG."""

from __future__ import annotations

import importlib.util
import io
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from markupsafe import Markup

from vbterrier.errors import printable
from vbterrier.report.page.evaluated import rows_of
from vbterrier.report.page.verdict import listed
from vbterrier.report.plots.style import COLOURS, INK, MUTED, RULE, SAVING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vbterrier.report.page.evaluated import ReportNumbers


_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# Classes of colours in the style sheet of the page.
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
_WIDTH = 5.0
_MOST_TOPICS, _MOST_PAIRS, _MOST_MEASURES = 30, 45, 4


class Figure(NamedTuple):
    """A title, a description for screen readers, and the drawing."""

    title: str
    alt: str
    svg: Markup


def inline(figure: Any, prefix: str) -> str:
    """Convert a figure to an SVG element with prefixed ids, and with colours as classes of the page.

    No ``style`` attributes remain, because the content security policy of the page forbids them.
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


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _restyle(element: ET.Element) -> None:
    """Convert declarations of ``style`` to attributes, and colours of the palette to classes."""
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


def can_draw() -> bool:
    """Return True if matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def figures(found: ReportNumbers) -> list[Figure]:
    """All figures for which there are data."""
    with _unshown():
        drawn = (_forest(found), _differences(found), _distributions(found))
        return [one for one in drawn if one is not None]


@contextmanager
def _unshown() -> Iterator[None]:
    """Draw for a file: no window with any backend, no warnings about fonts."""
    import logging
    import warnings

    import matplotlib as mpl

    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    with mpl.rc_context({"interactive": False}), warnings.catch_warnings():
        # Browsers have glyphs that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


def _forest(found: ReportNumbers) -> Figure | None:
    from vbterrier.report.plots import forest

    measures = list(found.compared[:_MOST_MEASURES]) or list(found.measures[:1])
    frame = found.scores.intervals
    shown = frame[frame["measure"].isin(measures) & ~frame["method"].str.startswith("unjudged")]
    if not len(shown):
        return None
    first = shown[shown["measure"] == measures[0]].sort_values("value", ascending=False, kind="stable")
    ends = rows_of(first, "name", "value", "low", "high")
    said = [f"{name} {value:.3f} ({low:.3f} to {high:.3f})" for name, value, low, high in ends]
    alt = f"Means with intervals over topics. By {measures[0]}: {listed(said, 20)}."
    return _figure(forest(shown, sort=True, width=_WIDTH), "Means and their intervals", alt, "forest")


def _figure(ax: Any, title: str, alt: str, prefix: str) -> Figure:
    try:
        return Figure(title, alt, Markup(inline(ax.figure, prefix)))  # noqa: S704 - matplotlib escapes texts
    finally:
        from matplotlib import pyplot as plt

        plt.close(ax.figure)


def _differences(found: ReportNumbers) -> Figure | None:
    from vbterrier.report.plots import differences

    if found.comparison is None:
        return None
    measure = found.compared[0]
    pairs = found.comparison.pairs[found.comparison.pairs["measure"] == measure]
    baseline = found.comparison.baseline
    if baseline is None and len(pairs) > _MOST_PAIRS:
        # Too many for one figure: draw those of the best system.
        baseline = str(pairs["name_a"].iloc[0])
    significant = int(found.comparison.significant()[pairs.index].sum())
    alt = f"Differences of {measure} with their intervals; {significant} of {len(pairs)} are significant, drawn filled."
    drawn = differences(pairs, baseline=baseline, sort=True, width=_WIDTH)
    return _figure(drawn, "Differences", alt, "differences")


def _distributions(found: ReportNumbers) -> Figure | None:
    from vbterrier.report.plots import score_distributions

    n_unjudged = {name: int(distribution.n_unjudged.sum()) for name, distribution in found.distributions.items()}
    if not any(n_unjudged.values()):
        return None
    name = max(n_unjudged, key=n_unjudged.__getitem__)
    distribution = found.distributions[name]
    most = np.argsort(-distribution.n_unjudged, kind="stable")[:_MOST_TOPICS]
    topics = [distribution.topics[place] for place in sorted(most[distribution.n_unjudged[most] > 0].tolist())]
    title = f"Possible scores of {printable(name)}"
    alt = (
        f"Distributions of the scores of {printable(name)}, the system with the most unjudged documents, over the "
        f"labels of these, for the {len(topics)} topics with the most."
    )
    drawn = score_distributions(distribution, topics=topics, width=_WIDTH)
    return _figure(drawn, title, alt, "distributions")
