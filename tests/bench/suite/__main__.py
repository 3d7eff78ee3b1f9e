"""Benchmarks of the measures beside other packages: ``python -m suite`` in ``tests/bench``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from vbterrier.cli import options
from vbterrier.cli.options import echo
from vbterrier.errors import ParameterError

_DEPTH = 1000


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="250 queries only, in memory and from files.")] = False,
    size: Annotated[
        list[str] | None, typer.Option(help="Queries, or queries x documents as 6980x1000; may be given again.")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="As BNDCG; may be given again [all].")
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(help="ir_measures, pytrec_eval, pyndeval, ranx, trectools; may be given again [all]."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often each is timed.", min=1)] = 3,
    memory: Annotated[bool, typer.Option(help="Measure peaks of memory, each in a process of its own.")] = True,
    growth: Annotated[bool | None, typer.Option(help="Measure growth [unless measures are chosen].")] = None,
    targets: Annotated[bool | None, typer.Option(help="Measure targets [unless measures are chosen].")] = None,
    patience: Annotated[float, typer.Option(help="What takes longer, in seconds, is timed once.", min=0)] = 60.0,
    seed: options.Seed = 0,
    json: Annotated[Path | None, typer.Option("--json", help="Keep all numbers here.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write the tables here, not on screen.")] = None,
    from_json: Annotated[
        list[Path] | None, typer.Option("--from-json", help="Measure nothing: join what was kept; may be given again.")
    ] = None,
) -> None:
    """Time every measure beside other packages that do the nearest thing, on synthetic collections."""
    from suite.kept import joined, read_numbers, write_numbers
    from suite.report import bench_report
    from suite.suite import SIZES, benchmark

    if quick and size:
        raise ParameterError("--quick is --size 250: leave one of them out")
    if from_json:
        found = joined([read_numbers(path) for path in from_json])
    else:
        sizes = SIZES[:1] if quick else [_size(text) for text in size or []] or SIZES
        found = benchmark(
            sizes=sizes,
            measures=measure,
            peers=peer,
            rounds=rounds,
            memory=memory,
            grown=growth,
            targets=targets,
            patience=patience,
            seed=seed,
            said=_say,
        )
    if json is not None:
        write_numbers(found, json)
    page = bench_report(found)
    if markdown is None:
        echo(page.rstrip("\n"))
    else:
        markdown.write_text(page, encoding="utf-8")


def _size(text: str) -> tuple[int, int]:
    """Queries and documents of each."""
    found = re.fullmatch(r"([1-9]\d*)(?:x([1-9]\d*))?", text)
    if found is None:
        raise ParameterError(f"--size {text}: wanted a number of queries, or queries x documents as 6980x1000")
    return int(found[1]), int(found[2] or _DEPTH)


def _say(what: str) -> None:
    sys.stderr.write(f"suite: {what}\n")


if __name__ == "__main__":
    typer.run(bench)
