r"""Means as papers print them: a row a system, a column a measure, intervals in small type below."""

from __future__ import annotations

from vbterrier.report.latex import escaped, number, tabular

import math
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

# More columns of means than these do not fit beside names.
MOST = 4


def by_measure(means: pd.DataFrame, ends: Sequence[tuple[str, pd.Series[str]]], shown: Mapping[str, str]) -> str:
    r"""A tabular of means.

    Parameters
    ----------
    means
        name, measure, cell: a row a system and measure, cells as LaTeX.
    ends
        What stands below: a word for each kind of interval, and its cells by name and measure, empty where there is
        none.
    shown
        What each system is called, as LaTeX.

    >>> import pandas as pd
    >>> means = pd.DataFrame({"name": ["a"], "measure": ["AP"], "cell": ["0.5"]})
    >>> ends = pd.Series(["[0.4, 0.6]"], index=pd.MultiIndex.from_tuples([("a", "AP")]))
    >>> print(by_measure(means, [("topics", ends)], {"a": "a"}))
    \begin{tabular}{lc}
    \toprule
    run & AP \\
    \midrule
    a & 0.5 \\
    {\scriptsize topics} & {\scriptsize [0.4, 0.6]} \\
    \bottomrule
    \end{tabular}
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
                rows.append([_small(text) for text in (word, *below)])
    return tabular(["run", *map(escaped, measures)], rows, "l" + "c" * len(measures))


def brackets(low: float, high: float, digits: int = 4) -> str:
    r"""An interval as LaTeX; nothing where there is none.

    >>> print(brackets(-0.25, 0.5), repr(brackets(float("nan"), 0.5)))
    [\ensuremath{-}0.2500, 0.5000] ''
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"[{number(f'{low:.{digits}f}')}, {number(f'{high:.{digits}f}')}]"


def _small(text: str) -> str:
    return rf"{{\scriptsize {text}}}" if text else ""
