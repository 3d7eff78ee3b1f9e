"""The command that says how many queries a comparison needs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbterrier.cli import option
from vbterrier.cli.output import Format, Output, deliver, require_format
from vbterrier.errors import DegenerateWarning, InputError, ParameterError

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
    from vbterrier.frames.files.values import read_values

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

    from vbterrier.queryset.pilot import paired_pilots
    from vbterrier.queryset.planning import detectable_difference, queries_needed

    parts = []
    for name, one, other, differences in paired_pilots(values, baseline, measure):
        try:
            if delta is None:
                found = detectable_difference(differences, queries, **options)
            else:
                plan = queries_needed(differences, delta, **options)
                found = plan.curve if curve else plan.frame()
        except InputError as error:
            warnings.warn(f"{one} and {other}, {name}: left out: {error}", DegenerateWarning, stacklevel=2)
            continue
        found.insert(0, "measure", name)
        found.insert(0, "name_b", other)
        found.insert(0, "name_a", one)
        parts.append(found)
    if not parts:
        raise InputError("values: no two systems that anything can be planned from")
    return pd.concat(parts, ignore_index=True)
