"""Parallel maps over processes or a Dask cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Sized
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import ParameterError, VBTerrierError
from vbterrier.execution.dask import connected, n_threads, on_cluster, require_client, require_worker
from vbterrier.execution.pending import windowed
from vbterrier.log import tracked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    T = TypeVar("T")
    R = TypeVar("R")


# Items sent ahead for each process: one to work on, and the next.
_AHEAD = 2
# As many processes may die of an item as workers of a cluster may.
_TRIES = 4
# Seconds after which idle processes go, as joblib's do.
_IDLE = 300
_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")


class _Task:
    """An item and its result to come."""

    def __init__(self, item: Any, future: Any) -> None:
        self.item, self.future = item, future

    @property
    def is_lost(self) -> bool:
        future = self.future
        return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


def in_processes(function: Callable[[T], R], items: Iterable[T], n_jobs: int, room: int | None = None) -> Iterator[R]:
    """The result of every item, in their order; see :func:`vbterrier.execution.parallel.mapped`."""
    n = n_processes(n_jobs)
    tasks: list[_Task] = []

    def sent(item: T) -> _Task:
        tasks.append(_Task(item, _submitted(n, function, item)))
        return tasks[-1]

    def received(task: _Task, others: Iterable[_Task]) -> R:
        behind, n_lost = [*others], 0
        while isinstance(task.future.exception(), BrokenExecutor):
            n_lost += 1
            if n_lost == _TRIES:
                raise VBTerrierError(
                    f"n_jobs={n_jobs}: {_TRIES} processes died one after the other of the same work; mostly they lack "
                    "memory: ask for fewer, or for work that takes less, as with memory="
                )
            # All that was on its way is gone with the process that died.
            for each in (task, *behind):
                if each.is_lost:
                    each.future = _submitted(n, function, each.item)
        tasks.remove(task)
        result: R = task.future.result()
        return result

    try:
        yield from windowed(items, sent, received, lambda: _AHEAD * n, room)
    finally:
        if tasks:
            _stopped(n, tasks)


def n_processes(n_jobs: int) -> int:
    """How many processes are asked for."""
    import joblib

    return int(joblib.cpu_count()) if n_jobs == -1 else n_jobs


def _stopped(n: int, tasks: Sequence[_Task]) -> None:
    """End work that nobody waits for."""
    # Work that its thread has not yet taken up makes loky fail; it does that at once.
    for _ in range(1000):
        if all(task.future.running() or task.future.done() for task in tasks):
            break
        time.sleep(0.005)
    _executor(n).shutdown(wait=True, kill_workers=True)


def _submitted(n: int, function: Callable[[T], R], item: T) -> Any:
    try:
        return _executor(n).submit(function, item)
    except BrokenExecutor:
        # It broke just now.
        return _executor(n).submit(function, item)


def _executor(n: int) -> Any:
    """Processes that wait for work: those of the last call, or new ones where some died."""
    from joblib.externals.loky import get_reusable_executor

    # Threads of each share the processors.
    each = str(max(n_processes(-1) // n, 1))
    limits = {f"{name}_NUM_THREADS": os.environ.get(f"{name}_NUM_THREADS", each) for name in _THREADS}
    return get_reusable_executor(max_workers=n, timeout=_IDLE, kill_workers=False, env=limits)


def mapped(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    n_jobs: int = 1,
    client: Any = None,
    room: int | None = None,
    progress: bool = False,
    description: str = "",
) -> Iterator[R]:
    """The result of every item, in their order, each as soon as it and those before it are done.

    Parameters
    ----------
    function
        Of one item; with several processes it is pickled, so no lambda. Its results must depend on the item alone.
    items
        What to work on; no more of them are asked for than keep everybody busy.
    n_jobs
        Processes of this machine; -1 for as many as there are processors.
    client
        A ``distributed.Client``, or the address of a Dask scheduler as ``"tcp://host:8786"``: its workers do the work.
    room
        Where items are bytes: how many may be on their way at a time.
    progress, description
        Show a progress bar, and what it says.

    Raises
    ------
    ParameterError
        ``n_jobs`` is no whole number of at least 1, nor -1; ``client`` is neither client nor address; both are given.
    ServiceError
        No scheduler at the address, no worker, a cluster that went away or whose workers died of an item.
    ImportError
        A ``client`` without Dask.

    Notes
    -----
    What the function holds is pickled for every item; what is large belongs into a :class:`Shared`. What the function
    raises arrives as it was raised. The work of a worker that dies is done again by another, that of a process too.

    Examples
    --------
    >>> list(mapped(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    require_workers(n_jobs, client)
    n_items = len(items) if isinstance(items, Sized) else None
    if client is not None:
        results = on_cluster(function, items, client, room)
    elif n_jobs == 1 or (n_items is not None and n_items < 2):  # noqa: PLR2004 - one item keeps one process busy
        results = map(function, items)
    else:
        results = in_processes(function, items, n_jobs, room)
    return iter(tracked(results, description, shown=progress, total=n_items))


class Workers:
    """Who works, for as long as the context of :func:`workers` lasts.

    Parameters
    ----------
    n_jobs, client
        As in :func:`mapped`.
    """

    def __init__(self, n_jobs: int = 1, client: Any = None) -> None:
        self.n_jobs, self.client = n_jobs, client

    @property
    def n(self) -> int:
        """How many there are now; on a cluster, at least one is waited for."""
        if self.client is None:
            return n_processes(self.n_jobs)
        require_worker(self.client)
        return max(n_threads(self.client), 1)

    @property
    def are_processes(self) -> bool:
        """Whether they are other processes than this one."""
        return self.client is not None or self.n > 1

    def mapped(self, function: Callable[[T], R], items: Iterable[T], **options: Any) -> Iterator[R]:
        """See :func:`mapped`."""
        return mapped(function, items, n_jobs=self.n_jobs, client=self.client, **options)


@contextmanager
def workers(n_jobs: int, client: Any) -> Iterator[Workers]:
    """Processes of this machine, or a cluster that is connected to once.

    Raises
    ------
    ParameterError, ServiceError, ImportError
        As :func:`mapped`.
    """
    require_workers(n_jobs, client)
    if client is None:
        yield Workers(n_jobs)
        return
    with connected(client) as cluster:
        yield Workers(client=cluster)


def require_workers(n_jobs: int, client: Any) -> None:
    """Refuse what names no workers, before anything is done.

    Raises
    ------
    ParameterError
        As :func:`mapped`.
    ImportError
        A ``client`` without Dask.
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ParameterError(f"n_jobs={n_jobs!r}: wanted a whole number of at least 1, or -1 for all processors")
    if client is None:
        return
    if n_jobs != 1:
        raise ParameterError(f"n_jobs={n_jobs} and client=: wanted one of them, processes of this machine or a cluster")
    require_client(client)
