"""``--verbose`` of every command: what is being done, on standard error."""

from __future__ import annotations

import inspect
import logging
import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vbterrier.log import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    ToStream = logging.StreamHandler[Any]
else:
    # Python 3.10 knows no types of streams.
    ToStream = logging.StreamHandler

SAID = "Say what is being done; twice: in detail."
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help=SAID)]
LEVELS = (logging.INFO, logging.DEBUG)


class _Lines(ToStream):
    """Lines on standard error that leave bars of progress whole."""

    def emit(self, record: logging.LogRecord) -> None:
        if "tqdm" in sys.modules:
            from tqdm import tqdm

            with tqdm.external_write_mode(file=self.stream):
                super().emit(record)
        else:
            super().emit(record)


def verbose(function: Callable[..., None]) -> Callable[..., None]:
    """A command with ``--verbose``."""

    @wraps(function)
    def command(*arguments: Any, verbose: int = 0, **options: Any) -> None:
        listen(verbose)
        function(*arguments, **options)

    # Typer reads the parameters off the signature, and types off the annotations.
    own = inspect.signature(function, eval_str=True)
    option = inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=Verbose)
    parameters = [*own.parameters.values(), option]
    command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def listen(times: int) -> None:
    """Show messages from INFO on, asked for twice from DEBUG; what stands before and behind a command counts alike."""
    log = logging.getLogger(NAME)
    if not times:
        return
    level = LEVELS[min(times, len(LEVELS)) - 1]
    if not any(isinstance(handler, _Lines) for handler in log.handlers):
        handler = _Lines(sys.stderr)
        handler.setFormatter(logging.Formatter("vbterrier: %(message)s"))
        log.addHandler(handler)
        log.setLevel(level)
    log.setLevel(min(level, log.level))


@contextmanager
def quiet_again() -> Iterator[None]:
    """What a command listens with goes with it: whoever calls it from Python has handlers of his own."""
    log = logging.getLogger(NAME)
    before = log.level
    try:
        yield
    finally:
        log.setLevel(before)
        for handler in [one for one in log.handlers if isinstance(one, _Lines)]:
            log.removeHandler(handler)
