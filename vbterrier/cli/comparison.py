"""The commands ``compare``, ``coverage`` and ``report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import vbterrier
from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output, deliver, echo, require_format
from vbterrier.errors import ParameterError

OptionalRuns = Annotated[list[Path] | None, typer.Argument(help="TREC runs; .gz and Parquet too.", show_default=False)]


def compare(
    runs: OptionalRuns = None,
    measures: option.MeasuresIfAny = None,
    qrels: option.QrelsIfAny = None,
    intents: option.Intents = None,
    tags: option.Tags = None,
    values: Annotated[Path | None, typer.Option(help="In place of runs: name, qid, measure, value.")] = None,
    baseline: option.Baseline = None,
    test: option.Test = "randomisation",
    correction: option.Correction = "auto",
    margin: Annotated[float | None, typer.Option(help="Also test whether differences are below this.")] = None,
    systems: Annotated[bool, typer.Option("--systems", help="In csv: a row for each system, not each pair.")] = False,
    style: Format = "table",
    topics: option.OnTopics = "same",
    duplicates: option.Duplicates = "error",
    interval: option.Interval = "percentile",
    level: option.LevelOfTests = 0.95,
    resamples: option.ResamplesOfTests = 10_000,
    seed: option.SeedOfTests = 0,
    output: Output = None,
) -> None:
    """Compare runs topic by topic: which are distinguishable, by how much, and how sure that is."""
    from vbterrier.evaluate.comparison import compare as compare_systems

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
        on_topics=topics,
        duplicates=duplicates,
        n_resamples=resamples,
        seed=seed,
        progress=sys.stderr.isatty(),
        **given,
    )
    deliver(found, style, output, systems=systems)


EntityRuns = Annotated[
    list[Path], typer.Argument(help="Entity runs: TREC runs whose documents are entities.", show_default=False)
]


def coverage(
    runs: EntityRuns,
    pool: Annotated[Path | None, typer.Option(help="The candidate pool, a TREC run.")] = None,
    tags: Annotated[Path | None, typer.Option(help="Entities of documents: docno, entity_id[, weight, qid].")] = None,
    links: Annotated[Path | None, typer.Option(help="In place of both: a linked pool, a Parquet file.")] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", "-q", help="TREC qrels.")] = None,
    k: Annotated[list[int] | None, typer.Option("-k", help="Entities a topic [20]; may be given again.")] = None,
    depth: Annotated[int | None, typer.Option(help="How many documents of each topic make the pool.", min=1)] = None,
    rel: Annotated[int, typer.Option(help="The lowest relevant label.", min=1)] = 1,
    alpha: Annotated[float, typer.Option(help="Pseudo-count of OER.")] = 0.5,
    shrinkage: Annotated[float, typer.Option(help="Documents at which the support of OER is 63 %.")] = 5.0,
    per_query: option.PerQuery = False,
    style: Format = "table",
    level: option.Level = 0.95,
    resamples: option.Resamples = 2000,
    seed: option.Seed = 0,
    output: Output = None,
) -> None:
    """Say what entity runs reach of a pool, and whether their entities tell relevant documents apart."""
    from vbterrier.evaluate.coverage import coverage_report

    style = require_format(style, output)
    options: dict[str, Any] = {"level": level, "n_resamples": resamples, "seed": seed}
    linked = _linked(pool, tags, links, qrels, depth)
    reports = [
        coverage_report(runs, linked, cutoff=one, rel=rel, alpha=alpha, shrinkage=shrinkage, **options)
        for one in sorted(set(k or [20]))
    ]
    deliver(reports, style, output, per_query=per_query)


def _linked(pool: Path | None, tags: Path | None, links: Path | None, qrels: Path | None, depth: int | None) -> Any:
    """The linked pool, from its own file or from those it is made of."""
    judged = None if qrels is None else vbterrier.read_qrels(qrels)
    if links is None:
        if pool is None or tags is None or judged is None:
            raise ParameterError("wanted --pool, --tags and --qrels, or --links in place of the first two")
        return vbterrier.entities.link_pool(vbterrier.read_run(pool), vbterrier.read_tags(tags), judged, cutoff=depth)
    if pool is not None or tags is not None:
        raise ParameterError("--links holds a pool and its entities: leave out --pool and --tags")
    found = vbterrier.entities.read_links(links)
    if judged is None and depth is None:
        return found
    frame = found.frame()
    documents = frame.drop_duplicates(["qid", "docno"])
    if judged is None:
        judged = documents.loc[documents["label"] >= 0, ["qid", "docno", "label"]]
    linked = frame.loc[frame["entity_id"].notna(), ["qid", "docno", "entity_id", "weight"]]
    return vbterrier.entities.link_pool(documents.assign(score=-documents["rank"]), linked, judged, cutoff=depth)


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
    from vbterrier.report.page.build import write_report

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


COMMANDS = (compare, report, coverage)
