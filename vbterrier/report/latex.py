"""Text and tables as LaTeX."""

from __future__ import annotations

import math
import re
import unicodedata
from contextvars import ContextVar
from itertools import zip_longest
from typing import TYPE_CHECKING

from vbterrier.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd


# Decimals of the numbers in all tables, as --digits sets them; None for those of each table.
TABLE_DIGITS: ContextVar[int | None] = ContextVar("digits", default=None)
_SIGNS = (
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"†": r"\textdagger{}", "‡": r"\textdaggerdbl{}"}
    # At the start of a row, [ or * would be an argument of the line break above.
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "*": "{*}"}
    # Babel makes quotation marks commands in some languages, as in German.
    | {'"': r"\symbol{34}", "–": "--", "—": "---", "’": "'", "‘": "`", "“": "``", "”": "''", "…": r"\dots{}"}
    | {"ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}"}
    | {"å": r"\aa{}", "Å": r"\AA{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}"}
    | {"≤": r"\ensuremath{\le}", "≥": r"\ensuremath{\ge}", "×": r"\ensuremath{\times}", "±": r"\ensuremath{\pm}"}
    | {"−": r"\ensuremath{-}", "·": r"\ensuremath{\cdot}"}
    | dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f", "~")
)
_ENDS = re.compile(r"-?\d+\.\d+ to -?\d+\.\d+")
# The parts of a tabular, and the number of lines that fit a page.
_TABULAR = re.compile(
    r"\\begin{tabular}{(\w*)}\n\\toprule\n(.*?)\n\\midrule\n(.*)\n\\bottomrule\n\\end{tabular}", re.DOTALL
)
_PAGE_LINES = 50
# Tables with more columns have smaller type.
_MAX_SMALL_COLUMNS = 6
# In points: the column of a two-column paper, padding, and the mean width of a character in each type size.
_COLUMN_POINTS, _PADDING_POINTS = 225.0, 8.0
_SIGN = {r"\small": 4.4, r"\footnotesize": 3.8, r"\scriptsize": 3.3}
_MARKUP = re.compile(r"\\[a-zA-Z]+|[{}\\]")
# TeX's ligatures: two hyphens would be a dash, two quotes a quotation mark.
_JOINED = re.compile(r"(?<=[-`'?!])(?=[-`'])")
# Accents of TeX's first encoding, which has no ogonek.
_ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": "."}
_ACCENTS |= {"\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c"}
_GREEK = "αβγδεζηθικλμνξπρστυφχψω"
_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi "
    "pi rho sigma tau upsilon phi chi psi omega"
)
_LETTERS = {letter: rf"\ensuremath{{\{name}}}" for letter, name in zip(_GREEK, _NAMES.split(), strict=True)}


def escaped_text(text: object) -> str:
    r"""Escape text as LaTeX in ASCII: special characters, accents, Greek; other letters become code points.

    Other scripts need fonts and an engine that only the author knows; a code point compiles with any engine and names
    the letter.

    >>> print(*map(escaped_text, ("50% of_x", "Müller", "α=1", "漢", "--k")))
    50\% of\_x M\"{u}ller \ensuremath{\alpha}=1 U+6F22 -{}-k
    """
    return "".join(map(_sign, _JOINED.sub("\0", printable(text))))


def _sign(sign: str) -> str:
    if sign == "\0":
        return "{}"
    if sign in _SIGNS or sign in _LETTERS:
        return _SIGNS.get(sign) or _LETTERS[sign]
    if sign.isascii():
        return sign
    parts = unicodedata.normalize("NFD", sign)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:  # noqa: PLR2004 - a pair
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"U+{ord(sign):04X}"


def number(text: str) -> str:
    """Replace the hyphen of a negative number by a minus sign."""
    return rf"\ensuremath{{-}}{text[1:]}" if re.match(r"-[\d.]", text) else text


def ends(text: str) -> str:
    r"""Replace hyphens by minus signs in the ends of an interval; other text, as an id, is unchanged.

    >>> print(ends("-0.25 to 0.50"), ends("-5"))
    \ensuremath{-}0.25 to 0.50 -5
    """
    return " to ".join(map(number, text.split(" to "))) if _ENDS.match(text) else text


def tabular(heads: Sequence[str], rows: Sequence[Sequence[str]], columns: str) -> str:
    """Format a tabular with the rules of booktabs; an empty row is a small space."""
    head, *lines = [" & ".join(row) + r" \\" if row else r"\addlinespace" for row in (heads, *rows)]
    start = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
    return "\n".join([*start, *lines, r"\bottomrule", r"\end{tabular}"])


def floating_table(body: str, caption: Sequence[str], label: str = "") -> str:
    """Put a tabular into a floating table, with the caption (escaped sentences) above and a label.

    If it is wider than a column of a two-column paper, it spans both (``table*``, in one column the same as ``table``).
    If it has more rows than a page, it becomes a ``longtable``, which needs that package and pages of one column. The
    list of tables has the first sentence only.
    """
    columns = re.search(r"\\begin{tabular}{(\w*)}", body)
    size = r"\footnotesize" if columns and len(columns[1]) > _MAX_SMALL_COLUMNS else r"\small"
    # Names of measures do not break, so lines of captions may be stretched.
    kind = "table*" if _width(body, _SIGN[size]) > _COLUMN_POINTS else "table"
    first, *rest = caption
    # Braces, because a bracket would end the short caption.
    short = f"[{{{first}}}]" if rest else ""
    title = [rf"\caption{short}{{" + "\n".join([first, *rest]) + "}", *([rf"\label{{{label}}}"] if label else [])]
    stretch, narrow = r"\emergencystretch=3em", r"\setlength{\tabcolsep}{4pt}"
    if body.count("\n") > _PAGE_LINES and (parts := _TABULAR.fullmatch(body)):
        spec, head, rows = parts.groups()
        note = r"% Wants \usepackage{longtable} and pages of one column."
        start = [note, r"\begingroup", stretch, size, narrow, rf"\begin{{longtable}}{{{spec}}}", *title, r"\\"]
        rules = [r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
        return "\n".join([*start, *rules, rows, r"\end{longtable}", r"\endgroup"])
    start = [rf"\begin{{{kind}}}", r"\centering", stretch, *title]
    return "\n".join([*start, r"\smallskip", size, narrow, body, rf"\end{{{kind}}}"])


def _width(body: str, sign: float) -> float:
    """Approximate width of a tabular in points, for characters of this width."""
    rows = [line.removesuffix(r"\\").split(" & ") for line in body.splitlines() if line.endswith(r"\\")]
    small = r"\scriptsize"

    def width(cell: str) -> float:
        return (_SIGN[small] if small in cell else sign) * len(_MARKUP.sub("", cell).strip())

    widths = [list(map(width, row)) for row in rows]
    return sum(max(column) + _PADDING_POINTS for column in zip_longest(*widths, fillvalue=0.0))


# Maximal number of columns of means that fit a page.
MAX_MEAN_COLUMNS = 4


def by_measure(
    means: pd.DataFrame, ends: Sequence[tuple[str, pd.Series[str]]], shown: Mapping[str, str], *, head: str = "run"
) -> str:
    """Format a tabular of means.

    ``means``: name, measure, cell (LaTeX). ``ends``: rows below the means: a word for each kind of interval, and its
    cells by name and measure, empty for no interval. ``shown``: names of systems as LaTeX. ``head``: the title of
    their column.
    """
    measures = list(means["measure"].unique())
    cells = means.set_index(["name", "measure"])["cell"]
    rows: list[list[str]] = []
    for name in means["name"].unique():
        if rows and ends:
            rows.append([])
        rows.append([shown[name], *(cells.get((name, measure), "") for measure in measures)])
        for word, kind in ends:
            below = [kind.get((name, measure), "") for measure in measures]
            if any(below):
                rows.append([rf"{{\scriptsize {text}}}" if text else "" for text in (word, *below)])
    return tabular([head, *map(escaped_text, measures)], rows, "l" + "c" * len(measures))


def fixed_number(value: float, digits: int = 4) -> str:
    """Format a number with ``digits`` decimals, or with those that ``TABLE_DIGITS`` sets for a table."""
    chosen = TABLE_DIGITS.get()
    return f"{value:.{digits if chosen is None else chosen}f}"


def brackets(low: float, high: float) -> str:
    """Format an interval as LaTeX; empty if there is none."""
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{number(fixed_number(low))}, {number(fixed_number(high))}]"
