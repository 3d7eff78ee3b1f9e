"""Common style of all figures: sizes, colours, and escaped text that fits."""

from __future__ import annotations

import math
import re
import warnings
from bisect import bisect_right
from contextlib import contextmanager, suppress
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from vbterrier.errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # Measures, methods or estimators to draw: one, several, or all (None).
    Names = str | Sequence[str] | None

# Width in inches of a column of a two-column paper, and of its page.
COLUMN, FULL = 3.3, 7.0
# Usable height of a page in inches; figures with very many rows are higher.
PAGE = 8.6
# Okabe and Ito's palette, safe for colour-blind readers; without its yellow (#F0E442), which is too light on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# The same for adjacent areas: neighbours differ in lightness, which remains in grey print.
FILLS = ("#0072B2", "#E69F00", "#D55E00", "#56B4E9", "#009E73", "#000000", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
INK, MUTED, RULE = "#222222", "#9a9a9a", "#e4e4e4"
SIZE, SMALL_TEXT_POINTS, MIN_TEXT_POINTS = 7.0, 6.0, 4.5
# Dots per inch of new figures: text of 6 points has 12 pixels on the screen of a notebook.
DPI = 150
# Line breaks are not allowed within these parts: a number does not begin a line.
_UNBROKEN = re.compile(r"\S+ = \S+|seed \S+|\S+")
# Longer texts are cut before they are measured: no width has space for more characters.
_MAX_MEASURED_LENGTH = 400
SAVING = {"svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}
# Padding around a figure in inches.
_PAD = 0.03
# Caption lines may be wider than measured, because glyphs are aligned to pixels.
_HINTED = 0.95

_RC = {
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize"), SIZE),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), "white"),
    "axes.grid": False,
    "axes.axisbelow": True,
    "lines.linewidth": 1.0,
    "figure.constrained_layout.h_pad": _PAD,
    "figure.constrained_layout.w_pad": _PAD,
    # Ids are not TeX.
    "text.usetex": False,
    "text.parse_math": True,
}


@contextmanager
def canvas(ax: Any, width: float, inner: float | None) -> Iterator[Any]:
    """Axes to draw on, with the common style: the given ones, or those of a new figure.

    A new figure is ``width`` inches wide and as high as axes of ``inner`` inches (square for ``None``) and the text
    around them need.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'vbterrier[plot]'") from error
    if ax is None:
        # The backend of notebooks changes settings when it is loaded, so it must be loaded outside rc_context. Of
        # pyplot's public functions, this one loads it without creating a figure. Import errors surface below.
        from matplotlib import pyplot as plt
        from matplotlib.figure import Figure

        with suppress(ImportError):
            plt.draw_if_interactive()
    with mpl.rc_context(_RC):
        drawn = ax
        if ax is None:
            size: dict[str, Any] = {"figsize": (width, 3.0), "layout": "constrained", "dpi": DPI}
            try:
                drawn = plt.figure(**size).add_subplot()
            except ImportError:
                # The chosen backend cannot run: a figure that notebooks and ``pyplot.show`` do not know.
                drawn = Figure(**size).add_subplot()
        for side in ("top", "right"):
            drawn.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            drawn.spines[side].set(color=INK, linewidth=0.6)
        drawn.tick_params(labelsize=SIZE, width=0.6, length=2.5, color=INK, labelcolor=INK, pad=2)
        for axis in (drawn.xaxis, drawn.yaxis):
            axis.label.set(fontsize=SIZE, color=INK)
        yield drawn
        if ax is None:
            with warnings.catch_warnings():
                # matplotlib warns of missing glyphs when it draws them.
                warnings.simplefilter("ignore", UserWarning)
                around = drawn.get_tightbbox().height - drawn.bbox.height
                beside = _outline(drawn).width - drawn.bbox.width
            if inner is None:
                inner = drawn.figure.get_figwidth() - beside / drawn.figure.dpi - 2 * _PAD
            drawn.figure.set_figheight(inner + around / drawn.figure.dpi + 2 * _PAD)


def cell(ax: Any) -> tuple[float, float]:
    """Width and height in inches of the grid cell of axes, labels included."""
    width, height = (float(inches) for inches in ax.figure.bbox.size / ax.figure.dpi)
    spec = ax.get_subplotspec()
    if spec is None:
        return width, height
    grid = spec.get_gridspec()
    return width * len(spec.colspan) / grid.ncols, height * len(spec.rowspan) / grid.nrows


def look(place: int) -> tuple[str, str]:
    """Colour and marker of the series with this number; 49 combinations."""
    return COLOURS[place % len(COLOURS)], MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]


def text_width(text: str, size: float) -> float:
    """Width of a line in inches, in the current font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():
        # matplotlib warns of missing glyphs when it draws them.
        warnings.simplefilter("ignore", UserWarning)
        points, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(points) / 72


def safe(text: object) -> str:
    """Escape text: control characters are spelt out, dollar signs do not start mathematics."""
    return printable(text).replace("$", r"\$")


def fitted_text(text: object, width: float, size: float = SIZE) -> str:
    """Return escaped text of at most ``width`` inches, shortened in the middle, since versions differ at the end."""
    return safe(shortened_text(text, width, size))


def shortened_text(text: object, width: float, size: float = SIZE) -> str:
    """Shorten text like :func:`fitted_text`, without escaping it."""
    shown = printable(text)
    shown = _shorten_middle(shown, _MAX_MEASURED_LENGTH) if len(shown) > _MAX_MEASURED_LENGTH else shown
    if text_width(shown, size) <= width:
        return shown
    return _widest(lambda kept: _shorten_middle(shown, kept), len(shown) - 1, width, size)


def distinct(names: Sequence[object], width: float, size: float = SIZE) -> list[str]:
    """Shorten names like :func:`shortened_text`; names that would look the same are shown without their common prefix.

    Names that differ at the start and far from it may still look the same.
    """
    printed = [printable(name) for name in names]
    texts = {name: shortened_text(name, width, size) for name in printed}
    starts = dict.fromkeys(printed, -1)
    while True:
        alike: dict[str, list[str]] = {}
        for name, text in texts.items():
            alike.setdefault(text, []).append(name)
        shared = {name: _n_shared(group) for group in alike.values() if group[1:] for name in group}
        later = {name: start for name, start in shared.items() if start > starts[name]}
        if not later:
            return [texts[name] for name in printed]
        starts |= later
        texts |= {name: _ending(name, start, width, size) for name, start in later.items()}


def _n_shared(names: Sequence[str]) -> int:
    """Length of the common prefix."""
    return sum(1 for _ in takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False)))


def _ending(text: str, start: int, width: float, size: float) -> str:
    """Text from a position on, shortened at the end."""
    rest, before = text[start : start + _MAX_MEASURED_LENGTH], "…" * (start > 0)
    if start + len(rest) == len(text) and text_width(before + rest, size) <= width:
        return before + rest
    return _widest(lambda kept: f"{before}{rest[:kept]}…", len(rest), width, size)


def _widest(made: Callable[[int], str], most: int, width: float, size: float) -> str:
    """Return the longest text that fits the width."""
    return made(bisect_right(range(1, most + 1), width, key=lambda kept: text_width(made(kept), size)))


def _shorten_middle(text: str, kept: int) -> str:
    tail = kept // 2
    return f"{text[: kept - tail]}…{text[len(text) - tail :]}"


def wrapped_lines(text: str, width: float, size: float) -> str:
    """Escape text and break it into lines of at most ``width`` inches."""
    lines: list[str] = []
    for word in _UNBROKEN.findall(text):
        if lines and text_width(printable(f"{lines[-1]} {word}"), size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(fitted_text(line, width, size) for line in lines)


def caption(ax: Any, *sentences: str) -> Any:
    """Print a caption in small type under the axes."""
    text = wrapped_lines("; ".join(filter(None, sentences)), _HINTED * (cell(ax)[0] - 0.12), SMALL_TEXT_POINTS)
    place = {"xy": (0, 0), "xycoords": partial(_outline, ax), "xytext": (0, -3), "textcoords": "offset points"}
    return ax.annotate(text, **place, ha="left", va="top", fontsize=SMALL_TEXT_POINTS, color=INK, annotation_clip=False)


def _outline(ax: Any, renderer: Any = None) -> Any:
    """Bounding box of the axes with tick labels and axis labels."""
    from matplotlib.transforms import Bbox

    boxes = [axis.get_tightbbox(renderer) for axis in (ax.xaxis, ax.yaxis)]
    return Bbox.union([ax.bbox, *(box for box in boxes if box is not None)])


def legend(ax: Any, handles: Sequence[Any], names: Sequence[object], space: float) -> Any:
    """Legend above the axes, in as many columns as fit ``space`` inches."""
    texts = list(map(safe, distinct(names, space - 0.35)))
    widest = max(text_width(text, SIZE) for text in texts) + 0.36
    rows = math.ceil(len(texts) / max(1, int((space + 0.12) / widest)))
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": math.ceil(len(texts) / rows)}
    pads = {"borderaxespad": 0.1, "borderpad": 0.2, "handletextpad": 0.5, "columnspacing": 1.2, "labelspacing": 0.3}
    # matplotlib omits names that begin with an underscore, so the names are set afterwards.
    numbers = [str(number) for number in range(len(handles))]
    made = ax.legend(handles, numbers, **place, **pads, frameon=False, handlelength=1.8, labelcolor=INK)
    for shown, text in zip(made.get_texts(), texts, strict=True):
        shown.set_text(text)
    return made


def row_labels(ax: Any, names: Sequence[object], height: float, space: float) -> float:
    """Name the rows 0, 1, ... from top to bottom, each ``height`` inches high; returns the width of the names.

    If rows are lower than the smallest type, every second or third is named.
    """
    size = min(SIZE, max(MIN_TEXT_POINTS, 0.92 * 72 * height))
    step = max(1, math.ceil(round(MIN_TEXT_POINTS / (72 * height), 6)))
    rows = range(0, len(names), step)
    texts = [safe(text) for text in distinct([names[row] for row in rows], space, size)]
    ax.set_yticks(list(rows), texts, fontsize=size, color=INK)
    ax.tick_params(axis="y", length=0, labelsize=size)
    ax.set_ylim(len(names) - 0.5, -0.5)
    return max((text_width(text, size) for text in texts), default=0.0)


def nothing(ax: Any, what: str) -> Any:
    """Empty axes with a message."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, f"no {what}", ha="center", va="center", color=INK, transform=ax.transAxes)
    return ax
