"""The command line ``vbterrier``.

Exit codes: 0 success, 1 invalid input, 2 invalid usage; of ``gate``: 0 PASS, 2 FAIL, 3 UNKNOWN, 1 any error; after a
signal, 128 and its number. Errors are one line on stderr, where ``--verbose`` reports progress.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

import vbterrier
from vbterrier.cli import comparison, evaluation, judging, preparation, queries
from vbterrier.cli.options import VERBOSE, CommandGroup, in_options, restored_logging, shared, show_log
from vbterrier.errors import DegenerateWarning, ParameterError, VBTerrierError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD_INPUT, BAD_USAGE = 1, 2

app = typer.Typer(
    name="vbterrier",
    cls=CommandGroup,
    rich_markup_mode=None,
    help="Evaluate retrieval systems where ground truth is missing, incomplete or ambiguous.",
    no_args_is_help=True,
    # Inherited by groups and their commands.
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vbterrier {vbterrier.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
    verbose: Annotated[
        int, Option("--verbose", "-v", count=True, callback=show_log, help=VERBOSE, show_default=False)
    ] = 0,
) -> None:
    pass


for command in (*evaluation.COMMANDS, *judging.COMMANDS, *comparison.COMMANDS, *preparation.COMMANDS):
    app.command()(shared(command))
app.add_typer(preparation.app)
app.add_typer(queries.app)


@cache
def _group() -> Any:
    """The commands, built once for the call and for its errors and warnings."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line; the console script."""
    called = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    # A script must not take an error of usage for a release that fails.
    usage = BAD_INPUT if called == "gate" else BAD_USAGE
    with warnings.catch_warnings(), restored_logging(), _stopped_by_signals():
        warnings.simplefilter("always", DegenerateWarning)
        seen: set[str] = set()

        def shown(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            line = _line(message)
            if issubclass(category, DegenerateWarning) and line not in seen:
                seen.add(line)
                sys.stderr.write(f"vbterrier: warning: {line}\n")

        warnings.showwarning = shown
        try:
            sys.exit(_group()(standalone_mode=False))
        except VBTerrierError as error:
            _exit(error, usage if isinstance(error, ParameterError) else BAD_INPUT)
        except MemoryError as error:
            size = str(error) or "an allocation failed"
            _exit(
                f"not enough memory: {size}; score and report read runs in chunks with memory='1 GiB'; or use fewer "
                "topics, runs or draws",
                BAD_INPUT,
            )
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            _exit(f"{where}{error.strerror or error}", BAD_INPUT)
        except _Stopped as error:
            sys.stderr.write(f"vbterrier: stopped by {signal.Signals(error.number).name}\n")
            raise
        except Exception as error:
            # Typer's usage errors, whose module depends on its release.
            if not hasattr(error, "format_message"):
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(error.format_message(), err=True)
                sys.exit(usage)
            _exit(error.format_message(), usage)


class _Stopped(SystemExit):
    """The exit after a signal, which leaves the blocks that remove unfinished files."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Turn signals that stop the process into exits."""

    def stop(number: int, _: Any) -> None:
        # Another one, while files are removed, must not interrupt that.
        signal.signal(number, signal.SIG_IGN)
        raise _Stopped(number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # Those that are ignored, as under nohup, stay ignored.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(error: Exception | str, code: int) -> None:
    sys.stderr.write(f"vbterrier: error: {_line(error)}\n")
    sys.exit(code)


def _line(message: Exception | Warning | str) -> str:
    """Return a message as one printable line that names options instead of parameters."""
    return in_options(printable(" ".join(str(message).split())), _group(), sys.argv[1:])
