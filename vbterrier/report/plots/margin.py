"""What stands around rows and columns: numbers beside and below them, a legend above names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vbterrier.report.plots import style

if TYPE_CHECKING:
    from collections.abc import Sequence


def beside_rows(ax: Any, texts: Sequence[str], head: str) -> float:
    """Small print right of the rows that are named, under a heading; returns the width that this takes."""
    named = [int(place) for place in ax.get_yticks()]
    size = min(style.SMALL, ax.get_yticklabels()[0].get_fontsize())
    shown = [texts[place] for place in named]
    taken = max(style.text_width(text, size) for text in shown) + 0.06
    look = {"color": style.INK, "ha": "right", "annotation_clip": False, "textcoords": "offset points"}
    for place, text in zip(named, shown, strict=True):
        at = {"xy": (1, place), "xycoords": ax.get_yaxis_transform(), "xytext": (72 * taken, 0)}
        ax.annotate(text, **at, **look, va="center_baseline", fontsize=size)
    ax.annotate(head, (1, 1), xycoords="axes fraction", xytext=(72 * taken, 2), **look, fontsize=style.SMALL)
    return taken


def aligned(numbers: Any) -> list[str]:
    """Numbers with as many decimals as give the least two digits, four at most, nothing for NaN."""
    known = [abs(float(one)) for one in numbers if abs(one) > 0]
    least = min(known, default=1.0)
    decimals = min(max(1 - math.floor(math.log10(least)), 0), 4)
    return ["" if math.isnan(one) else f"{one:.{decimals}f}" for one in numbers]


def number_columns(ax: Any, n: int, room: float) -> None:
    """Number the columns 1 to n, which share ``room`` inches: as many as can be read, the first among them."""
    widest = style.text_width(f"{n}", style.SIZE) + 0.05
    step = next((step for step in (1, 5, 10, 20, 50) if max(step - 1, 1) * room / n >= widest), 100)
    ax.set_xlim(0.5, n + 0.5)
    ax.set_xticks(range(1, n + 1) if step == 1 else [1, *range(step, n + 1, step)])


def legend_from_left(ax: Any, handles: Sequence[Any], names: Sequence[object], room: float, beside: float) -> None:
    """A legend that begins above the names of the rows, which take ``beside`` inches left of the axes' ``room``."""
    from matplotlib.transforms import ScaledTranslation

    made = style.legend(ax, handles, names, room + beside)
    # Inches, whatever width the axes end up with.
    left = ScaledTranslation(-beside - 0.06, 0, ax.figure.dpi_scale_trans)
    made.set_bbox_to_anchor((0, 1), transform=ax.transAxes + left)
