"""The command line ``vbterrier``.

Exit codes: 0 success, 1 invalid input, 2 invalid usage; of ``gate``: 0 PASS, 2 FAIL, 3 UNKNOWN, 1 any error; after a
signal, 128 and its number. Errors are one line on stderr, where ``--verbose`` reports progress.
"""

from __future__ import annotations

import atexit
import gc
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
from vbterrier.cli.commands import Command, CommandGroup, help_example, restored_logging, show_log, with_common_options
from vbterrier.cli.options import VERBOSE
from vbterrier.cli.output import PRINTED_TEXTS, in_options
from vbterrier.errors import DegenerateWarning, ParameterError, VBTerrierError, encodable, nearest, printable
from vbterrier.frames.answer import message_counts, text_key

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


def _version(is_on: bool) -> None:
    if is_on:
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


# The groups of the help, in this order.
for group in ("Start", "Evaluate", "Decide", "Entities"):
    for module in (evaluation, comparison, judging, preparation):
        for command in module.COMMANDS.get(group, ()):
            made = with_common_options(command, answers=module is not preparation)
            app.command(cls=Command, rich_help_panel=group, epilog=help_example(command.__name__))(made)
app.add_typer(preparation.app, rich_help_panel="Queries")
app.add_typer(queries.app, rich_help_panel="Queries")


@cache
def _group() -> Any:
    """The commands, built once for the call and for its errors and warnings."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line; the console script."""
    # At its end, the process would look for garbage among all objects that were imported.
    atexit.register(gc.freeze)
    called = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    # A script must not take an error of usage for a release that fails.
    usage = BAD_INPUT if called == "gate" else BAD_USAGE
    with warnings.catch_warnings(), restored_logging(), _stopped_by_signals():
        warnings.simplefilter("always", DegenerateWarning)
        try:
            with _counted_warnings():
                # Not that of the process, which is `python -m vbterrier` or a test: commands are shown to be run.
                code = _group()(prog_name="vbterrier", standalone_mode=False)
            sys.exit(code)
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
            _exit(_without_guesses(error), usage)


@contextmanager
def _counted_warnings() -> Iterator[None]:
    """Write the warnings that the answer has not shown, one for each cause, at the end: the verdict comes first."""
    messages: list[str] = []

    def keep_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, DegenerateWarning):
            messages.append(_line(message))

    warnings.showwarning = keep_warning
    shown: set[str] = set()
    token = PRINTED_TEXTS.set(shown)
    try:
        yield
    finally:
        PRINTED_TEXTS.reset(token)
        for line, n in message_counts([message for message in messages if text_key(message) not in shown]):
            sys.stderr.write(f"vbterrier: warning: {line}{f' ({n} times)' if n > 1 else ''}\n")


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


# Commands that the message of an option names at most.
_MAX_NAMED = 8


def _without_guesses(error: Any) -> str:
    """The message of an error of usage, with the commands that have the option, or the nearest one."""
    wrong, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if wrong is None or context is None or not str(error.message).startswith("No such option"):
        return str(error.format_message())
    near = nearest(wrong, _options(context.command))
    others = [name for name, command in _commands(_group()) if wrong in _options(command)]
    of_others = f" {wrong} is an option of {', '.join(others)}." if 0 < len(others) <= _MAX_NAMED else ""
    return f"{error.message}.{of_others or near or f' {context.command_path} --help lists all.'}"


def _options(command: Any) -> list[str]:
    return [name for each in command.params for name in each.opts if name.startswith("--")]


def _commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The commands of a group and of the groups in it, with their names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def _exit(error: Exception | str, code: int) -> None:
    sys.stderr.write(f"vbterrier: error: {_line(error)}\n")
    sys.exit(code)


def _line(message: Exception | Warning | str) -> str:
    """Return a message as one printable line that names options instead of parameters."""
    line = in_options(printable(" ".join(str(message).split())), _group(), sys.argv[1:])
    return encodable(line, sys.stderr.encoding)
