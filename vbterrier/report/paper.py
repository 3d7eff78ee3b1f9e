"""Tables for papers from whatever was found, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from vbterrier.errors import ParameterError, printable
from vbterrier.evaluate.comparing import Comparison
from vbterrier.evaluate.coverage_result import CoverageReport
from vbterrier.evaluate.ranking import SystemRanking
from vbterrier.evaluate.scores import Scores
from vbterrier.frames.files.writing import replacing
from vbterrier.linking.quality import LinkingReport

if TYPE_CHECKING:
    import os

SUFFIXES = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".json": "json", ".txt": "table"}


def paper_table(found: Any, style: str = "latex", **options: Any) -> str:
    r"""What was found as a table with a caption that says measures, k, n, method and seed.

    Parameters
    ----------
    found
        What :func:`vbterrier.score`, :func:`vbterrier.evaluate_intents`, :func:`vbterrier.compare`,
        :func:`vbterrier.rank_systems`, :func:`vbterrier.coverage_report` or :func:`vbterrier.linking_report` gave; or a
        frame, whose caption (sentences) and label are then options.
    style
        ``"latex"`` (needs the package booktabs alone), ``"markdown"`` (the caption below, as Pandoc reads it),
        ``"csv"`` or ``"json"`` (frames with all digits, which hold methods and seeds in columns), or ``"table"``.
    **options
        ``topics=True`` for scores by topic, ``pairs=True`` for who beats whom, ``per_query=True`` of coverage,
        ``systems=True`` for the systems of a comparison in csv.

    Raises
    ------
    ParameterError
        Something else, or another style.

    >>> print(paper_table(pd.DataFrame({"run": ["a_b"], "AP": [-0.5]}), caption=["Mine."], label="tab:mine"))
    \begin{table}
    \centering
    \emergencystretch=3em
    \caption{Mine.}
    \label{tab:mine}
    \smallskip
    \small
    \setlength{\tabcolsep}{4pt}
    \begin{tabular}{lr}
    \toprule
    run & AP \\
    \midrule
    a\_b & \ensuremath{-}0.5000 \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    from vbterrier.report.comparison import comparison_report
    from vbterrier.report.coverage import coverage_table
    from vbterrier.report.linking import linking_table
    from vbterrier.report.ranking import ranking_report
    from vbterrier.report.scores import scores_report
    from vbterrier.report.tables import rendered

    if isinstance(found, Scores):
        return scores_report(found, style, **options)
    if isinstance(found, Comparison):
        return comparison_report(found, style, **options)
    if isinstance(found, SystemRanking):
        return ranking_report(found, style, **options)
    if isinstance(found, LinkingReport):
        return linking_table(found, style, **options)
    if isinstance(found, pd.DataFrame):
        said = options.get("caption", ()) if style == "table" else ()
        return "\n".join([rendered(found, style, **options), *map(printable, said)])
    return coverage_table(_reports(found), style, **options)


def caption_of(found: Any, **options: Any) -> list[str]:
    """The caption of a table, for where it cannot stand beside it; with the options of :func:`paper_table`."""
    from vbterrier.report.comparison_notes import comparison_caption, pairs_caption
    from vbterrier.report.coverage import coverage_caption
    from vbterrier.report.linking import linking_caption
    from vbterrier.report.ranking import ranking_caption
    from vbterrier.report.scores import scores_caption

    if isinstance(found, Scores):
        return scores_caption(found, **options)
    if isinstance(found, Comparison):
        return comparison_caption(found) if options.get("systems") else pairs_caption(found)
    if isinstance(found, SystemRanking):
        return ranking_caption(found, **options)
    if isinstance(found, LinkingReport):
        return linking_caption(found)
    if isinstance(found, pd.DataFrame):
        return list(options.get("caption", []))
    return coverage_caption(_reports(found), **options)


def save_table(found: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a table in the format that the file's name says; beside CSV, its caption in a file of its own.

    Parameters
    ----------
    found, **options
        As :func:`paper_table` takes them.
    path
        Ends in .tex, .md, .csv, .json or .txt. The caption of ``means.csv`` goes to ``means.caption.txt``: inside, its
        lines would be rows.

    Raises
    ------
    ParameterError
        Another ending, or something that is no table.
    FileError
        The file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.csv"
    ...     save_table(pd.DataFrame({"run": ["a"], "AP": [0.5]}), path, caption=["Mine."])
    ...     print(path.read_text(), path.with_suffix(".caption.txt").read_text())
    run,AP
    a,0.5
     Mine.
    <BLANKLINE>
    """
    where = Path(path)
    style = style_of(where)
    pages = {where: paper_table(found, style, **options)}
    caption = caption_of(found, **options) if style == "csv" else []
    if caption:
        pages[where.with_suffix(".caption.txt")] = "\n".join(map(printable, caption))
    for target, page in pages.items():
        with replacing(target) as file:
            file.write(f"{page}\n".encode())


def style_of(path: Path) -> str:
    """The format that the name of a file asks for.

    Raises
    ------
    ParameterError
        It asks for none.
    """
    if path.suffix not in SUFFIXES:
        raise ParameterError(f"{path}: wanted a name that ends in {', '.join(SUFFIXES)}")
    return SUFFIXES[path.suffix]


def _reports(found: Any) -> list[CoverageReport]:
    reports = [found] if isinstance(found, CoverageReport) else found
    if isinstance(reports, list) and reports and all(isinstance(one, CoverageReport) for one in reports):
        return reports
    raise ParameterError(
        "found: wanted what score, evaluate_intents, compare, rank_systems, coverage_report (or a list of these) or "
        f"linking_report gives, or a frame; found {type(found).__name__}"
    )
