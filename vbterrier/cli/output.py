"""What commands print or write, and the formats that they do it in."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vbterrier.errors import FileError, ParameterError

Format = Annotated[str, typer.Option("--format", "-f", help="table, csv, json, latex or markdown.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="A file in place of the screen: .tex, .md, .csv (its caption in a file beside it), .json or .txt.",
        show_default=False,
    ),
]


def require_format(style: str, output: Path | None = None) -> str:
    """The format to write, before any work: that of a file is what its name says.

    Raises
    ------
    ParameterError
        No such format, or two of them.
    """
    from vbterrier.report.paper import style_of
    from vbterrier.report.tables import FORMATS

    if style not in FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(FORMATS)}")
    if output is None:
        return style
    if style not in ("table", style_of(output)):
        raise ParameterError(f"--format {style}: {output} asks for {style_of(output)}; leave one of them out")
    return style_of(output)


def deliver(found: Any, style: str, output: Path | None = None, **options: Any) -> None:
    """Print a table, or write it to a file in the format that its name says."""
    from vbterrier.report.paper import paper_table, save_table

    if output is None:
        echo(paper_table(found, style, **options))
    else:
        save_table(found, output, **options)


def echo(text: str) -> None:
    """Print what a command found."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Rules and ids that the terminal's encoding does not have are no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    try:
        typer.echo(text)
    except BrokenPipeError:
        # The reader went away, as `head` does; nothing is left to flush to.
        _leave_stdout()
    except OSError as error:
        _leave_stdout()
        raise FileError("standard output", f"cannot be written: {error.strerror or error}") from error


def _leave_stdout() -> None:
    """Let what is left in its buffer go nowhere when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
