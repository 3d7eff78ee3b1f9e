"""Results written down as they come, so that who is interrupted goes on where he was."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vbterrier.errors import FileError, printable
from vbterrier.frames.files.writing import kept_in

if TYPE_CHECKING:
    import os

FORMAT = "vbterrier journal 1"
_OF_GRIDS = "pool, links, entity runs, vectors, texts, judgments or measures"


class Journal:
    """A file of results by name, a line each, that belongs to certain inputs.

    Parameters
    ----------
    path
        The file, made where it is missing; ``None`` to keep results in memory alone.
    inputs
        What tells these inputs from others, whatever makes it.
    kinds
        What belongs to the inputs, as messages name it.

    Attributes
    ----------
    done : dict
        The results that there are, by name.

    Raises
    ------
    FileError
        The file cannot be opened or made; it holds something else, or results of other inputs.

    Notes
    -----
    A last line that was cut off in the middle is taken off the file. A result that stands twice counts once.
    """

    def __init__(self, path: str | os.PathLike[str] | None, inputs: str, kinds: str = _OF_GRIDS) -> None:
        self._kinds = kinds
        self._path = None if path is None else Path(path)
        self._head = json.dumps({"format": FORMAT, "inputs": inputs})
        self.done: dict[str, Any] = {}
        if self._path is not None:
            try:
                self._open(self._path)
            except OSError as error:
                raise FileError(self._path, f"cannot be opened: {error.strerror or error}") from error

    def _open(self, path: Path) -> None:
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        if not whole:
            if not f"{self._head}\n".encode().startswith(text):
                raise FileError(path, f"wanted a {FORMAT}, found something else; give another path")
            path.write_text(f"{self._head}\n", encoding="utf-8")
            return
        lines = whole.decode("utf-8", errors="replace").splitlines()
        self._check(path, lines[0])
        for number, line in enumerate(lines[1:], 2):
            name, result = self._entry(path, number, line)
            self.done[name] = result
        _LOG.info("%s: %d results are there", printable(path), len(self.done))
        if len(whole) < len(text):
            with path.open("r+b") as file:
                file.truncate(len(whole))

    @staticmethod
    def _entry(path: Path, number: int, line: str) -> tuple[str, Any]:
        try:
            entry = json.loads(line)
            return str(entry["name"]), entry["result"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FileError(path, f"no result ({error}); repair or remove the line", line=number) from error

    def _check(self, path: Path, line: str) -> None:
        try:
            head = json.loads(line)
        except (ValueError, RecursionError):
            head = None
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise FileError(path, f"wanted a {FORMAT}, found something else; give another path", line=1)
        if head != json.loads(self._head):
            raise FileError(
                path,
                f"holds results of other inputs ({self._kinds}); give another path, or remove the file",
                line=1,
            )

    def add(self, name: str, result: Any) -> None:
        """Write down a result before it counts as done.

        Raises
        ------
        FileError
            It cannot be written down.
        """
        if self._path is not None:
            with kept_in(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": name, "result": result}) + "\n")
            _LOG.debug("%s: %s is done", printable(self._path), printable(name))
        self.done[name] = result
