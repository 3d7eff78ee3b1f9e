"""Pictures of intervals on one labelled axis, as characters for terminals and as SVG for pages."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from vbterrier.errors import printable
from vbterrier.kernels.tolerances import WHOLE_ROUNDING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Characters of the longest name, and of the axis at least and at most.
_MAX_NAME_LENGTH, _MIN_AXIS_LENGTH, _MAX_AXIS_LENGTH = 28, 24, 60
# Units of the axis of SVG, which fits into a narrow screen beside short names, and of its rows and lines.
_AXIS, _ROW, _LINE = 300, 24, 15
# Units that a character, or a character of SVG's text, is wide.
_CHARACTER = 7.2
# An interval that reaches farther from its value, in multiples of the median distance, would squeeze the others.
_FARTHEST = 4.0
# Systems that a picture of all systems shows.
MAX_BARS = 15
# Signs of dotted lines, which the legend below explains.
_RULES = "┊╎"


class Bar(NamedTuple):
    """A named value with the ends of its interval, NaN without one."""

    name: str
    value: float
    low: float
    high: float


class Rule(NamedTuple):
    """A position of the axis with a meaning, such as no difference."""

    value: float
    label: str


@dataclass(frozen=True)
class IntervalPicture:
    """Intervals below each other, on an axis with ticks, and dotted lines with labels.

    >>> picture = IntervalPicture("a - b, nDCG@10", (Bar("a - b", -0.1, -0.2, 0.05),), (Rule(0, "no difference"),))
    >>> print(picture.text(60))
    a - b  ├───────────────────●───────────────────┊─────────┤
           ┬─────────┬─────────┬─────────┬─────────┬─────────┬
           -0.20   -0.15     -0.10     -0.05     0.00      0.05
           a - b, nDCG@10; ┊ 0: no difference
    """

    axis: str
    bars: tuple[Bar, ...]
    rules: tuple[Rule, ...] = ()

    def span(self) -> tuple[float, float]:
        """The ends of the axis, see :func:`limits`."""
        low, high = limits([bar[1:] for bar in self.bars], [rule.value for rule in self.rules])
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def text(self, columns: int | None = None) -> str:
        """The picture in characters, in at most ``columns``."""
        names = [_short_name(bar.name) for bar in self.bars]
        left = max(map(len, names), default=0) + 2
        width = max(min((columns or _MAX_AXIS_LENGTH + left) - left - 2, _MAX_AXIS_LENGTH), _MIN_AXIS_LENGTH)
        low, high = self.span()

        def at(number: float) -> int:
            return round((min(max(number, low), high) - low) / (high - low) * (width - 1))

        lines = []
        for name, bar in zip(names, self.bars, strict=True):
            row = [" "] * width
            if math.isfinite(bar.low) and math.isfinite(bar.high):
                first, last = at(bar.low), at(bar.high)
                row[first : last + 1] = "─" * (last - first + 1)
                row[first], row[last] = "◂" if bar.low < low else "├", "▸" if bar.high > high else "┤"
            for rule, sign in zip(self.rules, _RULES, strict=False):
                row[at(rule.value)] = sign
            if math.isfinite(bar.value):
                row[at(bar.value)] = "●"
            lines.append(f"{name:<{left}}{''.join(row)}".rstrip())
        places, axis, labels = ticks(low, high), ["─"] * width, [" "] * (width + 8)
        digits = decimals(places)
        for place in places:
            axis[at(place)] = "┬"
            label = f"{place:.{digits}f}"
            start = max(at(place) - len(label) // 2, 0)
            # A label that would touch the one before it is left out.
            if "".join(labels[max(start - 1, 0) : start + len(label) + 1]).strip() == "":
                labels[start : start + len(label)] = label
        signs = [f"{sign} {rule.value:.4g}: {rule.label}" for rule, sign in zip(self.rules, _RULES, strict=False)]
        below = [f"{'':<{left}}{''.join(axis)}", f"{'':<{left}}{''.join(labels)}".rstrip()]
        return "\n".join([*lines, *below, f"{'':<{left}}{'; '.join([printable(self.axis), *signs])}"])

    def svg(self) -> str:
        """The picture as inline SVG, in the colour of the surrounding text."""
        low, high = self.span()
        left = round(_CHARACTER * max((len(_short_name(bar.name)) for bar in self.bars), default=0) + 16, 1)
        right, top = round(left + _AXIS, 1), 7 + _LINE * len(self.rules)
        width = round(right + 20)

        def at(number: float) -> float:
            return round(left + (min(max(number, low), high) - low) / (high - low) * (right - left), 1)

        bottom = top + _ROW * len(self.bars)
        parts = []
        for line, rule in enumerate(self.rules, 1):
            # Each label has a separate line, so that labels of near rules do not overlap.
            text, x = f"{rule.label} {rule.value:.4g}", at(rule.value)
            middle = _within(x, text, width)
            parts.append(f'<path d="M{x} {_LINE * line + 2}V{bottom}" stroke-dasharray="3 3" opacity=".7"/>')
            parts.append(f'<text x="{middle:g}" y="{_LINE * line - 2}" text-anchor="middle">{_html(text)}</text>')
        for place, bar in enumerate(self.bars):
            y = top + _ROW * (place + 0.5)
            name = html.escape(_short_name(bar.name))
            parts.append(f'<text x="{left - 10}" y="{y + 4:g}" text-anchor="end">{name}</text>')
            if math.isfinite(bar.low) and math.isfinite(bar.high):
                a, b = at(bar.low), at(bar.high)
                ends = interval_end(a, y, 5, cut=bar.low < low), interval_end(b, y, -5, cut=bar.high > high)
                parts.append(f'<path d="M{a} {y:g}H{b}{"".join(ends)}"/>')
            if math.isfinite(bar.value):
                parts.append(f'<circle cx="{at(bar.value)}" cy="{y:g}" r="4" fill="currentColor" stroke="none"/>')
        places = ticks(low, high)
        digits = decimals(places)
        marks = "".join(f"M{at(place)} {bottom}v5" for place in places)
        parts.append(f'<path d="M{left} {bottom}H{right}{marks}"/>')
        parts += [
            f'<text x="{at(place)}" y="{bottom + 18}" text-anchor="middle">{place:.{digits}f}</text>'
            for place in places
        ]
        middle = _within((left + right) / 2, printable(self.axis), width)
        parts.append(f'<text x="{middle:g}" y="{bottom + 36}" text-anchor="middle">{_html(self.axis)}</text>')
        summary = "; ".join(f"{bar.name} {bar.value:.4f} ({bar.low:.4f} to {bar.high:.4f})" for bar in self.bars)
        drawn = "".join(part.replace("<text ", '<text fill="currentColor" stroke="none" ') for part in parts)
        height = bottom + 44
        return (
            f'<svg class="picture" role="img" aria-label="{_html(self.axis)}: {_html(summary)}" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" fill="none" stroke="currentColor" font-size="13">'
            f"{drawn}</svg>"
        )


def _within(x: float, text: str, width: float) -> float:
    """The middle of a text that is as near to a place as its width allows."""
    reach = len(text) * _CHARACTER / 2
    return max(min(x, width - reach), reach)


def limits(intervals: Iterable[tuple[float, float, float]], rules: Iterable[float] = ()) -> tuple[float, float]:
    """Return the ends of a scale that has all values and rules, and all intervals but the farthest ends.

    Intervals are (value, low, high); numbers that are not finite are left out. An end that is more than four times as
    far from its value as the median end is cut there, since one very wide interval would squeeze all others. Without
    any number, the scale is that from 0 to 1.

    >>> limits([(1.0, 0.5, 1.5), (2.0, 1.5, 2.5), (1.0, -9.0, 8.0)], [0.0])
    (-1.0, 3.0)
    """
    pairs = [(value, end) for value, low, high in intervals for end in (low, high)]
    distances = [abs(end - value) for value, end in pairs if math.isfinite(value) and math.isfinite(end)]
    farthest = _FARTHEST * median(distances) if distances else 0.0
    if farthest == 0:
        farthest = math.inf
    numbers = [*rules]
    for value, end in pairs:
        if math.isfinite(value):
            numbers.append(value)
            if math.isfinite(end):
                numbers.append(min(max(end, value - farthest), value + farthest))
        elif math.isfinite(end):
            numbers.append(end)
    return min(numbers, default=0.0), max(numbers, default=1.0)


def interval_end(x: float, y: float, size: float, *, cut: bool) -> str:
    """The SVG path of an end of an interval: a line across, or an arrow where the interval continues.

    ``size`` is half the height; it is negative at the upper end.
    """
    half = abs(size)
    return (
        f"M{x + size:g} {y - half:g}L{x:g} {y:g}L{x + size:g} {y + half:g}"
        if cut
        else f"M{x:g} {y - half:g}v{2 * half:g}"
    )


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Return about ``n`` round numbers from ``low`` to ``high``.

    >>> ticks(-0.28, 0.13)
    [-0.2, -0.1, 0.0, 0.1]
    """
    if not high > low:
        return [low]
    rough = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= rough * 0.999)
    first, last = math.ceil(low / step - WHOLE_ROUNDING), math.floor(high / step + WHOLE_ROUNDING)
    return [round(step * place, 10) + 0.0 for place in range(first, last + 1)]


def decimals(numbers: list[float]) -> int:
    """Return the fewest decimals with which some numbers are exact, at most 6."""
    return next((n for n in range(6) if all(abs(round(one, n) - one) < WHOLE_ROUNDING for one in numbers)), 6)


def _short_name(name: str) -> str:
    text = printable(name)
    return text if len(text) <= _MAX_NAME_LENGTH else f"…{text[1 - _MAX_NAME_LENGTH :]}"


def _html(text: str) -> str:
    return html.escape(printable(text))
