"""Results that show themselves in notebooks: tables with small bars of intervals, how numbers came about, plots."""

from __future__ import annotations

from vbterrier.frames.html import STYLE, cell, table

import importlib
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import ParameterError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    # What each function is given, by the function's name.
    Figures = Mapping[str, Callable[[], dict[str, Any]]]

# Where figures are drawn: a floor above everything that has results, so it is known by its name alone.
PLOTS = "vbterrier.report.plots"
# Measures that a line names.
_LISTED = 6


@dataclass(frozen=True, eq=False)
class Panel:
    """A table of a result, as notebooks show it.

    Parameters
    ----------
    title
        What the table is.
    frame
        Its rows. Columns that say how all of them came about, such as level, method and seed, become its caption.
    value
        The column that lies between ``low`` and ``high``, which are drawn; empty for none.
    by
        A column whose values have scales of their own.
    rule
        Where a dotted line stands, such as 0 for differences.
    rows
        The most that are shown.
    heads
        How many of the first columns name their row.
    """

    title: str
    frame: pd.DataFrame
    value: str = ""
    by: str | None = None
    rule: float | None = None
    rows: int = 20
    heads: int = 1

    def html(self) -> str:
        """The table, its title and what its rows share in the caption."""
        said, rest = told(self.frame)
        # What no row has is not shown.
        if len(rest):
            rest = rest[[name for name in rest.columns if not (rest[name].isna() | (rest[name] == "")).all()]]
        barred = self.value in rest.columns and {"low", "high"} <= set(rest.columns)
        return table(
            rest,
            caption=f"{self.title}: {said}" if said else self.title,
            rows=self.rows,
            heads=self.heads,
            bar=(self.value, "low", "high") if barred else None,
            by=self.by if self.by in rest.columns else None,
            rule=self.rule,
        )


class Shown:
    """A result that shows itself: a line of text, tables in notebooks, figures on request.

    Subclasses give the line (``_line``), the tables (``_panels``), and which figures of ``vbterrier.report.plots`` are
    of them, the first being the usual one, with what each is given (``_figures``).
    """

    def _line(self) -> str:
        raise NotImplementedError

    def _panels(self) -> Iterable[Panel]:
        raise NotImplementedError

    def _figures(self) -> Figures:
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._line()})"

    def _repr_html_(self) -> str:
        tables = "\n".join(panel.html() for panel in self._panels())
        title = cell(repr(self))
        return f'<div style="overflow-x:auto"><style>{STYLE}</style>\n<p>{title}</p>\n{tables}\n</div>'

    def plot(self, kind: str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw it, by a function of :mod:`vbterrier.report.plots`.

        Parameters
        ----------
        kind
            The name of the function; the first of those that the error names by default.
        ax
            Where to draw; a new figure by default.
        **options
            What else the function takes, such as ``measure=`` and ``width=``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ParameterError
            A function that does not draw such results, or a result that none draws.
        ImportError
            matplotlib is missing: ``pip install 'vbterrier[plot]'``.
        """
        figures = self._figures()
        wanted = next(iter(figures), "") if kind is None else kind
        if wanted not in figures:
            known = ", ".join(map(repr, figures)) or "none"
            raise ParameterError(f"kind={kind!r}: plots of a {type(self).__name__}: {known}.{nearest(wanted, figures)}")
        function = getattr(importlib.import_module(PLOTS), wanted)
        return function(**{**figures[wanted](), "ax": ax, **options})


def told(frame: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """What all rows of a frame share of how they came about, in words, and the frame less these columns.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"name": ["a", "b"], "measure": "AP", "value": [0.1, 0.2], "level": 0.95, "n_qids": 50,
    ...                       "method": "topics (percentile)", "n_resamples": 2000, "seed": [1, 2]})
    >>> said, rest = told(frame)
    >>> said, list(rest)
    ('AP; 50 topics; 95% intervals: topics (percentile); 2,000 resamples', ['name', 'value', 'seed'])
    """
    shared = [name for name in _WORDS if name in frame.columns and len(frame[name].drop_duplicates()) == 1]
    said: list[str] = []
    for column in shared:
        value = frame[column].iloc[0]
        if isinstance(value, float) and math.isnan(value):
            continue
        words = _WORDS[column](value)
        if column == "method" and "level" in shared and said:
            said[-1] += f": {words}" if words else ""
        elif words:
            said.append(words)
    return "; ".join(said), frame.drop(columns=shared)


def facts(given: Mapping[str, Any]) -> pd.DataFrame:
    """Single numbers and words, a row each.

    >>> facts({"topics": 2, "mean": 0.5}).to_numpy().tolist()
    [['topics', 2], ['mean', 0.5]]
    """
    return pd.DataFrame({"what": list(given), "value": pd.Series(list(given.values()), dtype=object)})


def systems_line(intervals: pd.DataFrame) -> str:
    """How many systems, which measures, how many topics: of a C frame."""
    measures = intervals["measure"].unique()
    more = f" and {len(measures) - _LISTED} more" if len(measures) > _LISTED else ""
    n_qids = intervals["n_qids"]
    topics = counted(int(n_qids.max()), "topic") if len(n_qids) else "no topics"
    if len(n_qids) and n_qids.min() < n_qids.max():
        topics = f"{n_qids.min():,} to {topics}"
    return ", ".join([counted(intervals["name"].nunique(), "system"), *measures[:_LISTED]]) + f"{more}, {topics}"


def of_means(intervals: pd.DataFrame, *, title: str = "Means", heads: int = 1) -> Iterator[Panel]:
    """The tables of a C frame: means over topics, and means over replicas where intervals lie around these."""
    replicated = intervals["mean"].notna() if "mean" in intervals.columns else pd.Series(False, intervals.index)
    plain = intervals[~replicated].drop(columns="mean", errors="ignore")
    # Measures differ in scale; those of one system are not compared with others.
    by = "measure" if len(intervals) > intervals["measure"].nunique() else None
    if len(plain) or not replicated.any():
        yield Panel(title, plain, value="value", by=by, heads=heads)
    if replicated.any():
        yield Panel(f"{title} over replicas", intervals[replicated], value="mean", by=by, heads=heads)


def joined_names(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """A C frame whose systems have several parts to their name, as one name.

    >>> joined_names(pd.DataFrame({"name": ["a"], "setting": ["open"]}), "name", "setting")["name"].tolist()
    ['a, open']
    """
    parts = [frame[column].astype(str) for column in columns]
    return frame.assign(name=[", ".join(each) for each in zip(*parts, strict=True)])


def counted(n: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "topic"), counted(2000, "query")
    ('1 topic', '2,000 queries')
    """
    if n != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{n:,} {noun}"


def _number(value: Any, noun: str) -> str:
    return counted(int(value), noun) if value else ""


_WORDS: dict[str, Callable[[Any], str]] = {
    "measure": str,
    "n_qids": partial(_number, noun="topic"),
    "n_pilot": "pilot of {} topics".format,
    "level": lambda level: f"{100 * level:g}% intervals",
    "method": lambda method: "" if method == "none" else str(method),
    "test": "{} test".format,
    "correction": lambda by: "p not corrected" if by == "none" else f"p corrected: {by}",
    "n_resamples": partial(_number, noun="resample"),
    "n_draws": partial(_number, noun="draw"),
    "n_simulations": partial(_number, noun="simulation"),
    "n_subsets": partial(_number, noun="subset"),
    "n_permutations": partial(_number, noun="permutation"),
    "seed": "seed {}".format,
}
