"""Results of calls: the base class with the answer and four verbs, and the tables that several results have."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from inspect import signature
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from vbterrier.errors import ParameterError, encodable, excerpt, nearest, path_parameter, printable
from vbterrier.frames.answer import Answer, Caveat, Finding, sentence, with_warnings
from vbterrier.frames.files.writing import replace_files
from vbterrier.frames.notebook import STYLE, Panel, count_text
from vbterrier.remedies import call_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from typing_extensions import Self

    from vbterrier.annotations import StrPath
    from vbterrier.frames.pictures import IntervalPicture
    from vbterrier.remedies import Call

    Figures = Mapping[str, Callable[[], dict[str, Any]]]

_MAX_MEASURES, _MOST_ON_PAGE = 6, 1000


# Modules of higher layers, which this module cannot import. The package's ``__init__.py`` registers a function that
# imports and returns each; "plots" is the module with the figures of results, "page" the function that makes HTML pages
# of tables, "text" the function that formats a panel as text, "prose" the one that folds sentences to the terminal, and
# "table" the function that formats a result as a table.
LOADERS: dict[str, Callable[[], Any]] = {}


# Suffixes of files of results, and their formats.
SUFFIXES = {
    ".html": "page",
    ".tex": "latex",
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".txt": "table",
}


class Shown:
    """A result with a one-line ``repr``, its answer and first table as ``str``, tables in notebooks, and four verbs.

    ``to_frame()`` returns its data, ``plot()`` draws it, ``page()`` is its HTML page, and ``save(path)`` writes a file.
    ``answer()`` is the :class:`~vbterrier.frames.answer.Answer` that every output begins with.

    Subclasses implement ``to_frame``, ``_line`` (the text), ``_panels`` (the tables) and ``_figures``: the functions of
    ``vbterrier.plots`` that draw the result, the default first, with the arguments of each. The parts of the answer are
    ``_verdict`` (sentences, of which the first is the verdict and the others are the reason), ``_caveats``,
    ``_evidence``, ``_next`` (of the call that made the result) and ``_decision``; ``_picture`` is its picture.
    """

    # The number of tables that ``print`` shows, ``None`` for all.
    PRINTED: ClassVar[int | None] = 1
    # The call that made the result, with its warnings.
    _call: Call | None

    def __new__(cls, *_: Any, **__: Any) -> Self:  # noqa: D102
        made = super().__new__(cls)
        object.__setattr__(made, "_call", call_in_use())
        return made

    def to_frame(self) -> pd.DataFrame:
        """Return the rows that the result is about, with all digits."""
        raise NotImplementedError

    def _line(self) -> str:
        raise NotImplementedError

    def _panels(self) -> Iterable[Panel]:
        raise NotImplementedError

    def _figures(self) -> Figures:
        return {}

    def _verdict(self) -> Iterable[str]:
        return (sentence(repr(self).partition("(")[2].removesuffix(")")),)

    def _caveats(self) -> Iterable[Caveat]:
        return ()

    def _evidence(self) -> Iterable[Finding]:
        return ()

    def _next(self, call: Call) -> str:  # noqa: ARG002 - of subclasses
        return ""

    def _decision(self) -> str:
        return ""

    def _picture(self) -> IntervalPicture | None:
        return None

    def picture_text(self, columns: int | None = None) -> str:
        """Return the picture of the answer in characters, in at most some columns; empty without one."""
        picture = self._picture()
        return "" if picture is None else picture.text(columns)

    def answer(self) -> Answer:
        """Return the verdict with its reason, next step and caveats, the queries behind it and the call that made it.

        Warnings of the call are caveats.
        """
        call = self._call
        verdict, *reasons = self._verdict()
        return Answer(
            verdict,
            " ".join(reasons),
            "" if call is None else self._next(call),
            with_warnings(self._caveats(), () if call is None else map(call.warning_text, call.warnings)),
            tuple(self._evidence()),
            "" if call is None else call.text(),
            self._decision(),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._line()})"

    def __str__(self) -> str:
        answer, text, folded = self.answer(), LOADERS["text"](), LOADERS["prose"]()
        tables = map(text, islice(self._panels(), self.PRINTED))
        lines = "\n".join(filter(None, [folded(answer.head()), *tables, folded(answer.foot())]))
        return encodable(lines, getattr(sys.stdout, "encoding", None))

    def _repr_html_(self) -> str:
        tables = "\n".join(panel.html() for panel in self._panels())
        return f"<div><style>{STYLE}</style>\n{self.answer().html()}\n{tables}\n</div>"

    def page(self) -> str:
        """Return the result as one HTML page with the parts of the report: verdict, caveats, contents, tables.

        Tables can be sorted, searched and saved as CSV, and the address keeps their state. All text is escaped. Tables
        have at most 1,000 rows; a last line counts the others.
        """
        # JudgeAudit is a "Judge audit".
        title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()
        panels = [replace(panel, rows=max(panel.rows, _MOST_ON_PAGE)) for panel in self._panels()]
        page: str = LOADERS["page"]()(title, self.answer(), self._picture(), panels)
        return page

    def save(self, path: StrPath) -> Path:
        """Write the result to a file in the format of the path's suffix, and return the path.

        Parameters
        ----------
        path
            ``.html``: the page. ``.csv``, ``.json``: the rows of :meth:`to_frame` with all digits; in JSON, missing and
            infinite numbers are null. ``.tex``, ``.md``, ``.txt``: a table for readers, rounded and with a caption, as
            ``vbterrier.report.paper.paper_table`` makes it. An existing file is replaced once the new one is complete.

        Raises
        ------
        ParameterError, FileError
            Another suffix; the file cannot be written.
        """
        file = path_parameter("path", path)
        if file.suffix not in SUFFIXES:
            raise ParameterError(f"{printable(file)}: wanted a name that ends in {', '.join(SUFFIXES)}")
        style = SUFFIXES[file.suffix]
        replace_files({file: self.page() if style == "page" else f"{LOADERS['table']()(self, style)}\n"})
        return file

    def plot(self, kind: str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw the result with a function of ``vbterrier.plots``.

        Parameters
        ----------
        kind
            The name of the function; by default the first one that the error message lists.
        ax, **options
            The Axes to draw on, by default of a new figure, and further parameters of the function, such as
            ``measure=``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError, ImportError
            The function does not draw such results, or none does; an argument that it needs beside the result is
            missing; matplotlib is missing (``vbterrier[plot]``).
        """
        figures = self._figures()
        figure = next(iter(figures), "") if kind is None else kind
        result = type(self).__name__
        if not figures:
            raise ParameterError(f"{result} has no plots; docs/how-to/results.md lists the results that have some")
        if figure not in figures:
            choices = ", ".join(map(repr, figures))
            raise ParameterError(f"kind={excerpt(kind)}: plots of {result}: {choices}.{nearest(figure, figures)}")
        function = getattr(LOADERS["plots"](), figure)
        arguments = {**figures[figure](), "ax": ax, **options}
        needed = [name for name, each in signature(function).parameters.items() if each.default is each.empty]
        if missing := [f"{name}=" for name in needed if name not in arguments]:
            raise ParameterError(
                f"plot {figure!r} of {result} also needs {', '.join(missing)}; see help(vbterrier.plots.{figure})"
            )
        return function(**arguments)


def facts(values: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame with one row for each entry of a mapping."""
    return pd.DataFrame({"what": list(values), "value": pd.Series(list(values.values()), dtype=object)})


def systems_line(intervals: pd.DataFrame) -> str:
    """Summarise the systems, measures and topics of a C frame in one line."""
    measures = first_names(intervals["measure"].unique(), _MAX_MEASURES)
    n_qids = intervals["n_qids"]
    topics = count_text(int(n_qids.max()), "topic") if len(n_qids) else "no topics"
    if len(n_qids) and n_qids.min() < n_qids.max():
        topics = f"{n_qids.min():,} to {topics}"
    return ", ".join([count_text(intervals["name"].nunique(), "system"), *filter(None, [measures]), topics])


def measure_text(measure: str, estimand: str) -> str:
    """A measure with the score that it estimates, as ``"ENDCG@10 (nDCG@10, judged to depth 28)"``."""
    return f"{measure} ({estimand})" if estimand else measure


def first_names(names: Iterable[object], most: int) -> str:
    """Join the first names with commas, and count the others.

    >>> first_names(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    every = [printable(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def of_means(intervals: pd.DataFrame, *, title: str = "Means", heads: int = 1) -> Iterator[Panel]:
    """Yield the tables of a C frame: means over topics, and means over replicas if the frame has them."""
    replicated = intervals["mean"].notna() if "mean" in intervals.columns else pd.Series(False, intervals.index)
    plain = intervals[~replicated].drop(columns=["mean", "lists"], errors="ignore")
    # Measures differ in scale; measures of a single system are not compared.
    by = "measure" if len(intervals) > intervals["measure"].nunique() else None
    if len(plain) or not replicated.any():
        yield Panel(title, plain, value="value", by=by, heads=heads)
    if replicated.any():
        yield Panel(f"{title} over replicas", intervals[replicated], value="mean", by=by, heads=heads)


def joined_names(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Join several columns of a C frame into the names of its systems."""
    parts = [frame[column].astype(str) for column in columns]
    return frame.assign(name=[", ".join(each) for each in zip(*parts, strict=True)])
