"""The folder that what is finished is kept in: of ``resume=``, for one call at a time, or one that goes."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vbterrier.errors import FileError, InputError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = logging.getLogger(__name__)


@contextmanager
def opened(folder: Path | None) -> Iterator[Path]:
    """A folder that stays, which nobody else writes to meanwhile, or one that goes.

    Raises
    ------
    FileError
        It cannot be made, or is in use.
    """
    if folder is None:
        with _temporary() as made:
            yield Path(made)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(folder, f"cannot be made: {error.strerror or error}; resume= wants a folder") from error
    with _alone(folder):
        yield folder


def _temporary() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="vbterrier-")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"temporary files cannot be made ({reason}): let TMPDIR name a folder with room, or use resume="
        ) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a folder from other processes, which would write other parts under the same names. A kill lets it go."""
    try:
        import fcntl

        file = (folder / "lock").open("ab")
    except (ImportError, OSError):
        # Windows; or a folder that nobody can write to.
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = "is in use by another call: wait until it ends, or name another folder for resume="
            raise FileError(folder, message) from error
        except OSError:
            # A file system without locks.
            _LOG.debug("%s: no lock", printable(folder))
        yield
