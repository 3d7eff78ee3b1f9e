"""Numbers beside the rows and below the columns of a figure."""

from __future__ import annotations

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


def number_columns(ax: Any, n: int, room: float) -> None:
    """Number the columns 1 to n, which share ``room`` inches: as many as can be read, the first among them."""
    widest = style.text_width(f"{n}", style.SIZE) + 0.05
    step = next((step for step in (1, 5, 10, 20, 50) if max(step - 1, 1) * room / n >= widest), 100)
    ax.set_xlim(0.5, n + 0.5)
    ax.set_xticks(range(1, n + 1) if step == 1 else [1, *range(step, n + 1, step)])
