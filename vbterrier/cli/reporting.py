"""The command that writes all that runs are worth to one page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vbterrier.cli import option
from vbterrier.cli.output import echo


def report(
    runs: option.Runs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.", show_default=False)],
    qrels: option.QrelsIfAny = None,
    intents: option.Intents = None,
    tags: option.Tags = None,
    links: Annotated[
        Path | None, typer.Option(help="A linked pool, a Parquet file: the runs are runs of entities.")
    ] = None,
    measures: option.MeasuresIfAny = None,
    topics: Annotated[Path | None, typer.Option(help="The text of queries: qid, query.")] = None,
    title: Annotated[str, typer.Option(help="What the page is called.")] = "",
    baseline: option.Baseline = None,
    test: option.Test = "randomisation",
    correction: option.Correction = "auto",
    on_topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    interval: option.Interval = "percentile",
    level: option.LevelOfTests = 0.95,
    resamples: option.ResamplesOfTests = 10_000,
    seed: option.SeedOfTests = 0,
    plots: Annotated[
        bool | None, typer.Option("--plots/--no-plots", help="Figures; by default where matplotlib is installed.")
    ] = None,
) -> None:
    """Write one HTML page: the verdict, means, figures, pairs, and every topic to be searched and opened."""
    from vbterrier.report.page import write_report

    page = write_report(
        runs,
        output,
        qrels,
        measures,
        intents=intents,
        tags=tags,
        links=links,
        topics=topics,
        title=title,
        baseline=baseline,
        test=test,
        correction=correction,
        on_topics=on_topics,
        duplicates=duplicates,
        interval=interval,
        level=level,
        n_resamples=resamples,
        seed=seed,
        plots=plots,
        command=["vbterrier", *sys.argv[1:]],
        progress=sys.stderr.isatty(),
    )
    against = [f"{caveat.about}, weighs heavily: {caveat.text}" for caveat in page.caveats if caveat.grave]
    echo("\n".join([*page.verdict, *against, f"{page.path}: {page.n_bytes / 1e6:.2f} MB"]))


COMMANDS = (report,)
