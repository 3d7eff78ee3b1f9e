"""The command that writes all that runs are worth to one page."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - Typer reads annotations at run time
from typing import Annotated

import typer

from vbterrier.cli.evaluation import Runs  # noqa: TC001 - Typer reads annotations at run time
from vbterrier.cli.output import echo


def report(
    runs: Runs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.", show_default=False)],
    qrels: Annotated[Path | None, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.")] = None,
    intents: Annotated[Path | None, typer.Option(help="Candidate intents: qid, entity_id, prob.")] = None,
    tags: Annotated[Path | None, typer.Option(help="Tags of documents: docno, entity_id[, weight, qid].")] = None,
    links: Annotated[
        Path | None, typer.Option(help="A linked pool, a Parquet file: the runs are runs of entities.")
    ] = None,
    measures: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="As 'BNDCG@10'; may be given again.")
    ] = None,
    topics: Annotated[Path | None, typer.Option(help="The text of queries: qid, query.")] = None,
    title: Annotated[str, typer.Option(help="What the page is called.")] = "",
    baseline: Annotated[str | None, typer.Option(help="The run that all others are compared with.")] = None,
    test: Annotated[str, typer.Option(help="randomisation, t, wilcoxon or bootstrap.")] = "randomisation",
    correction: Annotated[str, typer.Option(help="Over pairs: holm, bh, max-t or none.")] = "holm",
    on_topics: Annotated[str, typer.Option(help="same (refuse runs whose topics differ), all, or common.")] = "same",
    duplicates: Annotated[str, typer.Option(help="error, or first: keep a repeated document's best rank.")] = "error",
    interval: Annotated[
        str, typer.Option(help="Over topics: percentile, bca, studentised, poisson or normal.")
    ] = "percentile",
    level: Annotated[float, typer.Option(help="Of intervals and tests: significant is p up to 1 - level.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Resamples of the topics and of the test.", min=2)] = 10_000,
    seed: Annotated[int, typer.Option(help="Decides the resamples.", min=0)] = 0,
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
    echo("\n".join([*page.verdict, f"{page.path}: {page.n_bytes / 1e6:.2f} MB"]))


COMMANDS = (report,)
