"""Answers that were paid for once: kept in memory, and in a file when the user names one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from vbterrier.errors import FileError
from vbterrier.frames.files.source import Source

if TYPE_CHECKING:
    from os import PathLike

_START = b'{"key": "'


class AnswerCache:
    """Answers by key; a file has a line an answer, ``{"key": ..., "answer": ...}``.

    Lines are written when answers come, so that a run that was broken off resumes. Half a line at the end of the file,
    which a process leaves that was killed as it wrote, is cut off. One process at a time may write to a file.

    Parameters
    ----------
    path
        The file, made with the first answer; ``None`` keeps answers in memory alone.

    Raises
    ------
    FileError
        The file cannot be read or written, or is no such file; names the line.
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._answers: dict[str, str] = {}
        self._whole = 0
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def __getitem__(self, key: str) -> str:
        return self._answers[key]

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, key: str, answer: str) -> None:
        """Keep an answer, a JSON text on one line."""
        self._answers[key] = answer
        if self.path is None:
            return
        line = f'{{"key": "{key}", "answer": {answer}}}\n'.encode()
        try:
            with self.path.open("ab") as file:
                if file.tell() > self._whole:
                    file.truncate(self._whole)
                file.write(line)
        except OSError as error:
            raise FileError(self.path, f"cannot be written: {error.strerror or error}") from error
        self._whole += len(line)

    def _load(self, path: Path) -> None:
        # As it lies on the disk: lines cannot be added to a packed file, nor does one unpack without end.
        with Source.at(path, None).raw() as file:
            text = bytes(file.read())
        self._whole = text.rfind(b"\n") + 1
        *lines, rest = text.split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                key, answer = record["key"], record["answer"]
            except (ValueError, KeyError, TypeError, RecursionError):
                key = None
            if not isinstance(key, str):
                raise _no_cache(path, number)
            self._answers[key] = json.dumps(answer)
        # What no process of ours left half done is not cut off.
        if not rest.startswith(_START[: len(rest)]):
            raise _no_cache(path, len(lines) + 1)


def _no_cache(path: Path, line: int) -> FileError:
    return FileError(path, 'wanted {"key": ..., "answer": ...}: no cache of answers? name another file', line=line)
