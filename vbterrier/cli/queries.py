"""The command group ``queries``: sampling, profiles and power."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbterrier.cli import options as option
from vbterrier.cli.options import Format, Output, deliver, echo, require_format, verbose
from vbterrier.errors import InputError, ParameterError, warn

if TYPE_CHECKING:
    import pandas as pd


Values = Annotated[
    Path, typer.Argument(help="The pilot: name, qid, measure, value; CSV, TSV, Parquet.", show_default=False)
]


def power(
    values: Values,
    delta: Annotated[
        float | None,
        typer.Option(help="The difference to detect; above 0 the first run of a pair is better.", show_default=False),
    ] = None,
    queries: Annotated[
        list[int] | None,
        typer.Option("--queries", "-n", help="Instead: which difference so many detect; may be given again.", min=2),
    ] = None,
    power: Annotated[float, typer.Option(help="How likely it should be detected.")] = 0.8,
    baseline: option.Baseline = None,
    measure: Annotated[str | None, typer.Option("--measure", "-m", help="One of several.")] = None,
    level: Annotated[float, typer.Option(help="Of the test, and of the intervals.")] = 0.95,
    curve: Annotated[bool, typer.Option("--curve", help="With --delta: power at each number of queries.")] = False,
    simulations: Annotated[int, typer.Option(help="Simulated query sets of each size.", min=1)] = 10_000,
    style: Format = "table",
    seed: Annotated[int, typer.Option(help="Decides the simulations.", min=0)] = 0,
    output: Output = None,
) -> None:
    """Say how many queries it takes to detect a difference, from what each query of a pilot scores."""
    from vbterrier.frames.files.reading import read_values

    style = require_format(style, output)
    if (delta is None) == (not queries):
        raise ParameterError("wanted either --delta, the difference to detect, or --queries, how many there will be")
    if curve and delta is None:
        raise ParameterError("--curve is that of a difference: wanted --delta")
    options: dict[str, Any] = {"power": power, "level": level, "n_simulations": simulations, "seed": seed}
    frame = _plans(read_values(values), delta, queries or [], baseline, measure, curve=curve, **options)
    if style not in ("csv", "json"):
        shared = ["level", "test", "n_simulations", "seed"] + ([] if curve else ["power"])
        frame = frame.drop(columns=shared)
    how = (
        f"power {power:g}, paired t test at {1 - level:.2g}, {simulations} simulations, seed {seed}; low, high: "
        f"{100 * level:g}% intervals, as the pilot leaves the spread uncertain."
    )
    caption = ["Queries needed." if delta is not None else "Differences that are detected.", how]
    deliver(frame, style, output, caption=caption, label="tab:power")


def _plans(
    values: pd.DataFrame,
    delta: float | None,
    queries: list[int],
    baseline: str | None,
    measure: str | None,
    *,
    curve: bool,
    **options: Any,
) -> pd.DataFrame:
    """A row a pair and plan; pairs that nothing can be planned from are told of."""
    import pandas as pd

    from vbterrier.design.pilot import paired_pilots
    from vbterrier.design.planning import detectable_difference, queries_needed

    parts = []
    for name, one, other, differences in paired_pilots(values, baseline, measure):
        try:
            if delta is None:
                found = detectable_difference(differences, queries, **options)
            else:
                plan = queries_needed(differences, delta, **options)
                found = plan.curve if curve else plan.frame()
        except InputError as error:
            warn(f"{one} and {other}, {name}: left out: {error}")
            continue
        found.insert(0, "measure", name)
        found.insert(0, "name_b", other)
        found.insert(0, "name_a", one)
        parts.append(found)
    if not parts:
        raise InputError("values: no two systems that anything can be planned from")
    return pd.concat(parts, ignore_index=True)


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
    from vbterrier.design.sampling import sample_queries
    from vbterrier.frames.files.writing import write_queries

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
    from vbterrier.design.profile import query_profile

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
