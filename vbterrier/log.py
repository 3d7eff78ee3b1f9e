"""What is being done, for whoever listens: ``logging.getLogger("vbterrier")``, silent until a handler is added.

INFO has what a call is made of: files read, systems scored, answers found in caches; DEBUG its parts. Messages name
files, runs, measures and numbers, never texts, answers or tokens.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vbterrier.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "vbterrier"
# Without it, Python would print warnings by itself; where messages go is for the application to say.
logging.getLogger(NAME).addHandler(logging.NullHandler())


@contextmanager
def timed(log: logging.Logger, what: str, *arguments: object, level: int = logging.INFO) -> Iterator[list[str]]:
    """Say what was done and how long it took, when it is done; nothing of what fails, which is said by its error.

    Parameters
    ----------
    log
        That of the module.
    what, arguments
        The message, with a place for each argument, which may hold anything.
    level
        How much it matters.

    Yields
    ------
    list of str
        What is found on the way, to be said behind it.

    >>> with timed(logging.getLogger("vbterrier.example"), "read %s", "run") as found:
    ...     found.append("3 rows")
    """
    found: list[str] = []
    started = time.perf_counter()
    yield found
    if log.isEnabledFor(level):
        told = "".join(f", {part}" for part in found)
        said = [printable(argument) for argument in arguments]
        log.log(level, f"{what}%s (%.2f s)", *said, told, time.perf_counter() - started)  # noqa: G004 - a constant
