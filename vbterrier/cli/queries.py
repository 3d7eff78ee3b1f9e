"""Commands about the queries of a test collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vbterrier.cli import option
from vbterrier.cli.output import Format, Output, deliver, echo, require_format
from vbterrier.cli.queries_power import power
from vbterrier.cli.verbosity import verbose
from vbterrier.errors import ParameterError

app = typer.Typer(
    name="queries",
    help="Draw queries from a corpus of mentions, describe them, say how many are needed.",
    no_args_is_help=True,
    add_completion=False,
)

Mentions = Annotated[
    Path, typer.Argument(help="docno, mention[, entity_id, ...]; TSV, CSV, Parquet; .gz too.", show_default=False)
]


def sample(
    mentions: Mentions,
    n: Annotated[int, typer.Option("-n", help="How many draws.", min=1)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A TSV to write; .gz packs it.", show_default=False)
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="random-document: a document, then one of its mentions; random-mention: a mention, then one of its "
            "documents; uniform; weighted."
        ),
    ] = "random-document",
    replace: Annotated[bool, typer.Option("--replace", help="With replacement.")] = False,
    strata: Annotated[
        str | None, typer.Option(help="A column, or a number of bins of mention frequency.", show_default=False)
    ] = None,
    allocation: Annotated[
        str, typer.Option(help="proportional, equal, neyman, or sizes as 'rare=50,frequent=20'.")
    ] = "proportional",
    variances: Annotated[
        str | None, typer.Option(help="For neyman: of each stratum, as 'rare=0.2,frequent=0.1'.", show_default=False)
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="For weighted: the column of weights.", show_default=False)
    ] = None,
    style: Format = "table",
    seed: option.SeedOfDraws = 0,
) -> None:
    """Draw queries, each with its probability of being drawn."""
    from vbterrier.frames.files import write_queries
    from vbterrier.queryset.sampling import sample_queries

    require_format(style)
    found = sample_queries(
        mentions,
        n,
        method=method,
        replace=replace,
        strata=int(strata) if strata is not None and strata.isdecimal() else strata,
        allocation=_sizes(allocation) if "=" in allocation else allocation,
        variances=None if variances is None else _numbers("--variances", variances),
        weights=weights,
        seed=seed,
    )
    if output is not None:
        write_queries(found, output)
        echo(f"{output}: {found!r}")
        return
    deliver(found.frame, style, caption=[repr(found)], label="tab:sample")


def profile(
    queries: Annotated[
        Path,
        typer.Argument(
            help="A sample or a corpus: docno, mention[, entity_id]; TSV, CSV, Parquet.", show_default=False
        ),
    ],
    mentions: Annotated[
        Path | None, typer.Option(help="The corpus, to have its profile beside the sample's.", show_default=False)
    ] = None,
    nil: Annotated[list[str] | None, typer.Option(help="How NIL is spelt [NIL]; may be given again.")] = None,
    level: option.Level = 0.95,
    style: Format = "table",
    output: Output = None,
) -> None:
    """Describe queries: links and NIL, frequent and rare mentions, ambiguous ones."""
    from vbterrier.queryset.profile import query_profile

    style = require_format(style, output)
    found = query_profile(queries, mentions, nil=nil or "NIL", level=level)
    if style not in ("csv", "json"):
        found = found.drop(columns="level").dropna(axis="columns", how="all")
    caption = [f"Profile of queries; low, high: {100 * level:g}% Wilson intervals of shares of draws."]
    if mentions is not None:
        caption.append(
            "uniform, random_document, random_mention: expected of draws from the corpus by each method "
            "(counts: those of the corpus)."
        )
    deliver(found, style, output, digits=3, caption=caption, label="tab:profile")


def _sizes(text: str) -> dict[str, Any]:
    """Whole numbers by name; what is none is refused with the strata."""
    found = _numbers("--allocation", text)
    return {name: int(size) if size.is_integer() else size for name, size in found.items()}


def _numbers(option: str, text: str) -> dict[str, float]:
    """Numbers by name, from ``name=number,name=number``; a name may hold what a number does not."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    try:
        return {name: float(value) for name, _, value in pairs}
    except ValueError as error:
        raise ParameterError(f"{option} {text}: wanted strata and numbers, as rare=50,frequent=20") from error


for command in (sample, profile, power):
    app.command()(verbose(command))
