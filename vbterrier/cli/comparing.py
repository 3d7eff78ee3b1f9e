"""The command that compares runs, or values that were computed elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vbterrier.cli.output import Format, Output, deliver, require_format
from vbterrier.errors import ParameterError

Runs = Annotated[list[Path] | None, typer.Argument(help="TREC runs; .gz and Parquet too.", show_default=False)]
Measures = Annotated[list[str] | None, typer.Option("--measure", "-m", help="As 'nDCG@10'; may be given again.")]


def compare(
    runs: Runs = None,
    measures: Measures = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.")] = None,
    intents: Annotated[Path | None, typer.Option(help="Candidate intents: qid, entity_id, prob.")] = None,
    tags: Annotated[Path | None, typer.Option(help="Tags of documents: docno, entity_id[, weight, qid].")] = None,
    values: Annotated[Path | None, typer.Option(help="In place of runs: name, qid, measure, value.")] = None,
    baseline: Annotated[str | None, typer.Option(help="The run that all others are compared with.")] = None,
    test: Annotated[str, typer.Option(help="randomisation, t, wilcoxon or bootstrap.")] = "randomisation",
    correction: Annotated[str, typer.Option(help="Over pairs: holm, bh, max-t or none.")] = "holm",
    margin: Annotated[float | None, typer.Option(help="Also test whether differences are below this.")] = None,
    systems: Annotated[bool, typer.Option("--systems", help="In csv: a row for each system, not each pair.")] = False,
    style: Format = "table",
    topics: Annotated[str, typer.Option(help="same (refuse runs whose topics differ), all, or common.")] = "same",
    duplicates: Annotated[str, typer.Option(help="error, or first: keep a repeated document's best rank.")] = "error",
    interval: Annotated[
        str, typer.Option(help="Over topics: percentile, bca, studentised, poisson or normal.")
    ] = "percentile",
    level: Annotated[float, typer.Option(help="Of intervals and tests: significant is p up to 1 - level.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Resamples of the topics and of the test.", min=2)] = 10_000,
    seed: Annotated[int, typer.Option(help="Decides the resamples.", min=0)] = 0,
    output: Output = None,
) -> None:
    """Compare runs topic by topic: which are distinguishable, by how much, and how sure that is."""
    from vbterrier.evaluate.comparing import compare as compare_systems

    style = require_format(style, output)
    given: dict[str, Any] = {"qrels": qrels, "intents": intents, "tags": tags}
    if values is not None and (runs or any(value is not None for value in given.values())):
        raise ParameterError("--values hold scores already: leave out runs, --qrels, --intents and --tags")
    if values is None and not runs:
        raise ParameterError("nothing to compare: wanted two runs and --qrels, or --values")
    if values is None and qrels is None and intents is None:
        raise ParameterError("nothing to score against: wanted --qrels, --intents, or both")
    if systems and style != "csv":
        raise ParameterError("--systems chooses what csv holds; other formats show systems and pairs")
    found = compare_systems(
        runs if values is None else values,
        measures=measures,
        baseline=baseline,
        test=test,
        correction=correction,
        interval=interval,
        level=level,
        margin=margin,
        topics=topics,
        duplicates=duplicates,
        n_resamples=resamples,
        seed=seed,
        progress=sys.stderr.isatty(),
        **given,
    )
    deliver(found, style, output, systems=systems)


COMMANDS = (compare,)
