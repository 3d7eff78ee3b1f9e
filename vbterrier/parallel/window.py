"""Work on its way: as much of it as keeps everybody busy, results in the order of the items."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    T = TypeVar("T")

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
