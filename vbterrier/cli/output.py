"""What commands print, and the formats that they print in."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from vbterrier.errors import ParameterError

Format = Annotated[str, typer.Option("--format", "-f", help="table, csv, json, latex or markdown.")]


def require_format(style: str) -> None:
    """Refuse an unknown format before any work."""
    from vbterrier.report.tables import FORMATS

    if style not in FORMATS:
        raise ParameterError(f"--format {style}: wanted one of {', '.join(FORMATS)}")


def echo(text: str) -> None:
    """Print what a command found."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Rules and ids that the terminal's encoding does not have are no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    try:
        typer.echo(text)
    except BrokenPipeError:
        # The reader went away, as `head` does; nothing is left to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
