"""The command that says what entity runs reach and whether they tell relevant documents apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import vbterrier
from vbterrier.cli import option
from vbterrier.cli.output import Format, Output, deliver, require_format
from vbterrier.errors import ParameterError

Runs = Annotated[
    list[Path], typer.Argument(help="Entity runs: TREC runs whose documents are entities.", show_default=False)
]


def coverage(
    runs: Runs,
    pool: Annotated[Path | None, typer.Option(help="The candidate pool, a TREC run.")] = None,
    tags: Annotated[Path | None, typer.Option(help="Entities of documents: docno, entity_id[, weight, qid].")] = None,
    links: Annotated[Path | None, typer.Option(help="In place of both: a linked pool, a Parquet file.")] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", "-q", help="TREC qrels.")] = None,
    k: Annotated[list[int] | None, typer.Option("-k", help="Entities a topic [20]; may be given again.")] = None,
    depth: Annotated[int | None, typer.Option(help="How many documents of each topic make the pool.", min=1)] = None,
    rel: Annotated[int, typer.Option(help="The lowest relevant label.", min=1)] = 1,
    alpha: Annotated[float, typer.Option(help="Pseudo-count of OER.")] = 0.5,
    tau: Annotated[float, typer.Option(help="How many documents make support for OER.")] = 5.0,
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
        coverage_report(runs, linked, k=one, rel=rel, alpha=alpha, tau=tau, **options) for one in sorted(set(k or [20]))
    ]
    deliver(reports, style, output, per_query=per_query)


def _linked(pool: Path | None, tags: Path | None, links: Path | None, qrels: Path | None, depth: int | None) -> Any:
    """The linked pool, from its own file or from those it is made of."""
    judged = None if qrels is None else vbterrier.read_qrels(qrels)
    if links is None:
        if pool is None or tags is None or judged is None:
            raise ParameterError("wanted --pool, --tags and --qrels, or --links in place of the first two")
        return vbterrier.link_pool(vbterrier.read_run(pool), vbterrier.read_tags(tags), judged, depth=depth)
    if pool is not None or tags is not None:
        raise ParameterError("--links holds a pool and its entities: leave out --pool and --tags")
    found = vbterrier.read_links(links)
    if judged is None and depth is None:
        return found
    frame = found.frame()
    documents = frame.drop_duplicates(["qid", "docno"])
    if judged is None:
        judged = documents.loc[documents["label"] >= 0, ["qid", "docno", "label"]]
    linked = frame.loc[frame["entity_id"].notna(), ["qid", "docno", "entity_id", "weight"]]
    return vbterrier.link_pool(documents.assign(score=-documents["rank"]), linked, judged, depth=depth)


COMMANDS = (coverage,)
