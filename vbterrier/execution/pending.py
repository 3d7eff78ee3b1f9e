"""Work in flight: bounded, in order, with values sent to each worker once."""

from __future__ import annotations

from collections import deque
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    T = TypeVar("T")


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


_NO_MORE = object()


def windowed(
    items: Iterable[T],
    send: Callable[[T], Any],
    receive: Callable[[Any, Iterable[Any]], Any],
    n_ahead: Callable[[], int],
    room: int | None = None,
) -> Iterator[Any]:
    """The result of every item, each as soon as it and those before it are there.

    Parameters
    ----------
    items
        What to work on; no item is asked for before there is room for it.
    send
        Hands an item to a worker, and gives what it is known by from then on.
    receive
        Waits for the result of the first that was sent, given it and those sent after it.
    n_ahead
        How many may be on their way.
    room
        How many bytes may be, by the length of each; one may be longer. ``None``: items are not weighed.

    Notes
    -----
    When there is no next item because of an error, what was sent is waited for: errors come in the order of the items,
    and no work is lost.

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
        n_bytes = 0 if room is None else len(item)
        while sent and room is not None and weight + n_bytes > room:
            yield received()
        sent.append((send(item), n_bytes))
        weight += n_bytes
        del item
        while len(sent) >= max(n_ahead(), 1):
            yield received()
    while sent:
        yield received()
