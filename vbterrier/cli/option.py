"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Runs = Annotated[list[Path], typer.Argument(help="TREC runs; .gz and Parquet too.", show_default=False)]
Qrels = Annotated[Path, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.", show_default=False)]
QrelsIfAny = Annotated[Path | None, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.")]
Intents = Annotated[Path | None, typer.Option(help="Candidate intents: qid, entity_id, prob.")]
Tags = Annotated[Path | None, typer.Option(help="Tags of documents: docno, entity_id[, weight, qid].")]
MeasuresIfAny = Annotated[list[str] | None, typer.Option("--measure", "-m", help="As 'nDCG@10'; may be given again.")]
Bootstrapped = Annotated[str, typer.Option("--measure", "-m", help="A bootstrapped one.")]
OnTopics = Annotated[str, typer.Option(help="same (refuse runs whose topics differ), all, or common.")]
Duplicates = Annotated[str, typer.Option(help="error, or first: keep a repeated document's best rank.")]
Baseline = Annotated[str | None, typer.Option(help="The run that all others are compared with.")]
Test = Annotated[str, typer.Option(help="randomisation, t, wilcoxon or bootstrap.")]
Correction = Annotated[
    str, typer.Option(help="Over pairs: holm, bh, max-t or none; auto: holm, or max-t where pairs are many.")
]
Interval = Annotated[str, typer.Option(help="Over topics: percentile, bca, studentised, poisson or normal.")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
LevelOfTests = Annotated[float, typer.Option(help="Of intervals and tests: significant is p up to 1 - level.")]
Resamples = Annotated[int, typer.Option(help="Resamples of the topics.", min=2)]
ResamplesOfTests = Annotated[int, typer.Option(help="Resamples of the topics and of the test.", min=2)]
Seed = Annotated[int, typer.Option(help="Decides the resamples of topics.", min=0)]
SeedOfTests = Annotated[int, typer.Option(help="Decides the resamples.", min=0)]
SeedOfDraws = Annotated[int, typer.Option(help="Decides the draws.", min=0)]
PerQuery = Annotated[bool, typer.Option("--per-query", help="A row for each topic.")]
