"""Bounded queues of tasks in flight, and values that are sent to each worker once."""

from __future__ import annotations

from collections import deque
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    T = TypeVar("T")


class Shared:
    """A value for several processes: written once, and read once by each process, which keeps it.

    A context manager, which removes the file at its end. In one process nothing is written.

    ``value``: any object that can be pickled. Changes in one process do not reach other processes. Raises InputError:
    the file cannot be written.

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
            try:
                self._folder = TemporaryDirectory(prefix="vbterrier-")
                joblib.dump(self.value, f"{self._folder.name}/shared")
            except OSError as error:
                self.__exit__()
                raise InputError(
                    f"temporary files cannot be written ({error.strerror or error}): set TMPDIR to a folder with free "
                    "space, or leave out n_jobs="
                ) from error
        return _read, (f"{self._folder.name}/shared",)


# Only the last value that this process has read, so that a long-lived process does not collect all.
_kept: dict[str, Shared] = {}


def _read(path: str) -> Shared:
    import joblib

    if path not in _kept:
        _kept.clear()
        _kept[path] = Shared(joblib.load(path, mmap_mode="r"))
    return _kept[path]


_NO_MORE = object()


def windowed(
    items: Iterable[T],
    send: Callable[[T], Any],
    receive: Callable[[Any, Iterable[Any]], Any],
    n_ahead: Callable[[], int],
    max_bytes: int | None = None,
) -> Iterator[Any]:
    """Yield the result of every item in order, as soon as it is available.

    ``items``: the items; an item is requested when it can be sent. ``send``: sends an item to a worker and returns a
    task. ``receive``: waits for the result of a task, given it and the tasks sent after it. ``n_ahead``: maximum number
    of tasks in flight. ``max_bytes``: maximum total length of the items in flight; a single item may be longer.
    ``None`` for no limit.

    If the iterator of items raises an error, results of items in flight are yielded first: errors come in the order of
    the items, and no work is lost.

    >>> list(windowed([1, 2, 3], str, lambda first, others: first, lambda: 2))
    ['1', '2', '3']
    """
    sent: deque[tuple[Any, int]] = deque()
    left = iter(items)
    weight = 0

    def received() -> Any:
        nonlocal weight
        task, n_bytes = sent.popleft()
        weight -= n_bytes
        return receive(task, (other for other, _ in sent))

    while True:
        try:
            item: Any = next(left, _NO_MORE)
        except Exception:
            while sent:
                yield received()
            raise
        if item is _NO_MORE:
            break
        n_bytes = 0 if max_bytes is None else len(item)
        while sent and max_bytes is not None and weight + n_bytes > max_bytes:
            yield received()
        sent.append((send(item), n_bytes))
        weight += n_bytes
        del item
        while len(sent) >= max(n_ahead(), 1):
            yield received()
    while sent:
        yield received()
