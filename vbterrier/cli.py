"""The command line ``vbterrier``.

Exit codes: 0 done, 1 bad input, 2 bad usage. Errors are one line on stderr.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import vbterrier
from vbterrier.errors import DegenerateWarning, ParameterError, VBTerrierError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

BAD_INPUT, BAD_USAGE = 1, 2

app = typer.Typer(
    name="vbterrier",
    help="Evaluate retrieval systems where ground truth is missing, incomplete or ambiguous.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Runs = Annotated[list[Path], typer.Argument(help="TREC runs; .gz and Parquet too.", show_default=False)]
Qrels = Annotated[Path, typer.Option("--qrels", "-q", help="TREC qrels, adhoc or diversity.", show_default=False)]
Format = Annotated[str, typer.Option("--format", "-f", help="table, csv, json, latex or markdown.")]
Seed = Annotated[int, typer.Option(help="Decides the resamples of topics.", min=0)]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vbterrier {vbterrier.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    save: Annotated[Path | None, typer.Option(help="Also write the demo's files to this folder.")] = None,
    seed: Seed = 0,
) -> None:
    """Show what unjudged documents do to a comparison, on a small collection that comes with the package."""
    from vbterrier.report.demo import demo_report

    _echo(demo_report(save, seed=seed))


@app.command()
def doctor(runs: Runs, qrels: Qrels, style: Format = "table") -> None:
    """Say what the files hold, what is unjudged, and which measures they support."""
    from vbterrier.evaluate.doctor import diagnose
    from vbterrier.evaluate.inputs import named_runs
    from vbterrier.frames.contracts import systems_of
    from vbterrier.report.doctor import doctor_report

    _require_format(style)
    loaded = {name: vbterrier.read_run(path) for name, path in systems_of(named_runs(runs))}
    _echo(doctor_report(diagnose(loaded, vbterrier.read_qrels(qrels)), style))


@app.command()
def score(
    runs: Runs,
    qrels: Qrels,
    measures: Annotated[list[str], typer.Option("--measure", "-m", help="As 'BNDCG@10'; may be given again.")],
    per_query: Annotated[bool, typer.Option("--per-query", help="A row for each topic.")] = False,
    style: Format = "table",
    topics: Annotated[str, typer.Option(help="same (refuse runs whose topics differ), all, or common.")] = "same",
    duplicates: Annotated[str, typer.Option(help="error, or first: keep a repeated document's best rank.")] = "error",
    interval: Annotated[str, typer.Option(help="Over topics: percentile or bca.")] = "percentile",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Resamples of the topics.", min=1)] = 2000,
    seed: Seed = 0,
) -> None:
    """Score runs, with intervals."""
    from vbterrier.evaluate import score as score_runs
    from vbterrier.report import tables

    _require_format(style)
    scores = score_runs(
        runs,
        qrels,
        measures,
        topics=topics,
        duplicates=duplicates,
        interval=interval,
        level=level,
        n_resamples=resamples,
        seed=seed,
        progress=sys.stderr.isatty(),
    )
    frame = tables.per_query(scores, style) if per_query else tables.summary(scores, style)
    _echo(tables.rendered(frame, style))
    if style == "table" and not per_query:
        _echo(tables.footing(scores))


def _require_format(style: str) -> None:
    from vbterrier.report.tables import FORMATS

    if style not in FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(FORMATS)}")


def _show_once() -> Callable[..., None]:
    """Warnings as one line each, once for each text: Python's own "once" forgets whenever filters change."""
    seen: set[str] = set()

    def shown(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = printable(" ".join(str(message).split()))
        if issubclass(category, DegenerateWarning) and line not in seen:
            seen.add(line)
            sys.stderr.write(f"vbterrier: warning: {line}\n")

    return shown


def main(run: Callable[..., Any] = app) -> None:
    """Run the command line; the console script."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DegenerateWarning)
        warnings.showwarning = _show_once()
        try:
            sys.exit(run(standalone_mode=False))
        except ParameterError as error:
            _leave(error, BAD_USAGE)
        except VBTerrierError as error:
            _leave(error, BAD_INPUT)
        except Exception as error:
            # Typer's own, wherever its release keeps them: a command line that cannot be parsed.
            if not hasattr(error, "format_message"):
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(error.format_message(), err=True)
                sys.exit(BAD_USAGE)
            _leave(error.format_message(), BAD_USAGE)


def _echo(text: str) -> None:
    """Print what a command found."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Rules and ids that the terminal's encoding does not have are no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    try:
        typer.echo(text)
    except BrokenPipeError:
        # The reader went away, as `head` does; nothing is left to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(error: Exception | str, code: int) -> None:
    sys.stderr.write(f"vbterrier: error: {printable(' '.join(str(error).split()))}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
