"""Values that several processes need, sent to each of them once."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any


class Shared:
    """A value that several processes need: written once, read once by each, and kept there.

    A context: behind it the file is gone. In one process nothing is written.

    Parameters
    ----------
    value
        Anything that can be pickled. What a process does to its value stays there.

    Examples
    --------
    >>> with Shared([1, 2]) as shared:
    ...     shared.value
    [1, 2]
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Shared:  # noqa: PYI034 - typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        import joblib

        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="vbterrier-")
            joblib.dump(self.value, f"{self._folder.name}/shared")
        return _read, (f"{self._folder.name}/shared",)


# What this process has read: the last alone, so that a process that lives long does not collect all.
_kept: dict[str, Shared] = {}


def _read(path: str) -> Shared:
    import joblib

    if path not in _kept:
        _kept.clear()
        _kept[path] = Shared(joblib.load(path, mmap_mode="r"))
    return _kept[path]
