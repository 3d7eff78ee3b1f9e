"""Benchmarks of the measures beside other packages: ``python -m suite`` in ``tests/bench``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from vbterrier.cli import options

# Queries of the largest collection of a quick run.
QUICK = 250


def bench(
    folder: Annotated[Path, typer.Argument(help="Where benchmarks.json and benchmarks.md are written.")],
    quick: Annotated[bool, typer.Option("--quick", help="Up to 250 queries only.")] = False,
    note: Annotated[str, typer.Option(help="A paragraph of the page on the machine.")] = "",
    rounds: Annotated[int, typer.Option(help="How often each is timed.", min=1)] = 3,
    seed: options.Seed = 0,
) -> None:
    """Time every measure beside other packages that do the nearest thing, on synthetic collections."""
    from suite.report import bench_report
    from suite.suite import SIZES, benchmark

    # Before half an hour of work, which a missing folder would lose.
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [size for size in SIZES if size[0] <= QUICK or not quick]
    results = benchmark(sizes=sizes, rounds=rounds, seed=seed, notify=_say)
    results["note"] = note
    (folder / "benchmarks.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (folder / "benchmarks.md").write_text(bench_report(results), encoding="utf-8")


def _say(what: str) -> None:
    sys.stderr.write(f"suite: {what}\n")


if __name__ == "__main__":
    typer.run(bench)
