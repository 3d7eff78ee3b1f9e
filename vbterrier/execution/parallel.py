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


# Items in flight for each process: the current and the next one.
_AHEAD = 2
# An item may kill as many processes as it may kill workers of a cluster.
_TRIES = 4
# Seconds after which idle processes end, as in joblib.
_IDLE = 300
_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")


class _Task:
    """An item and the future of its result."""

    def __init__(self, item: Any, future: Any) -> None:
        self.item, self.future = item, future

    @property
    def is_lost(self) -> bool:
        future = self.future
        return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


def in_processes(
    function: Callable[[T], R], items: Iterable[T], n_jobs: int, max_bytes: int | None = None
) -> Iterator[R]:
    """Yield the result of every item in order; see :func:`mapped`."""
    from joblib.externals.loky.backend.reduction import dumps

    n = n_processes(n_jobs)
    tasks: list[_Task] = []
    # Shared values are written here: errors of the thread that sends items would be those of loky.
    dumps(function)

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
            # All items in flight are lost with the process that died.
            for each in (task, *behind):
                if each.is_lost:
                    each.future = _submitted(n, function, each.item)
        tasks.remove(task)
        result: R = task.future.result()
        return result

    try:
        yield from windowed(items, sent, received, lambda: _AHEAD * n, max_bytes)
    finally:
        if tasks:
            _stopped(n, tasks)


def n_processes(n_jobs: int) -> int:
    """Number of processes; -1 stands for all processors."""
    import joblib

    return int(joblib.cpu_count()) if n_jobs == -1 else n_jobs


def _stopped(n: int, tasks: Sequence[_Task]) -> None:
    """End work whose results are not needed."""
    # Work that its thread has not started makes loky fail; threads start it immediately.
    for _ in range(1000):
        if all(task.future.running() or task.future.done() for task in tasks):
            break
        time.sleep(0.005)
    _executor(n).shutdown(wait=True, kill_workers=True)


def _submitted(n: int, function: Callable[[T], R], item: T) -> Any:
    try:
        return _executor(n).submit(function, item)
    except BrokenExecutor:
        # The executor broke in the meantime.
        return _executor(n).submit(function, item)


def _executor(n: int) -> Any:
    """Processes of the last call, or new ones if some died."""
    from joblib.externals.loky import get_reusable_executor

    # The threads of all processes share the processors.
    each = str(max(n_processes(-1) // n, 1))
    limits = {f"{name}_NUM_THREADS": os.environ.get(f"{name}_NUM_THREADS", each) for name in _THREADS}
    return get_reusable_executor(max_workers=n, timeout=_IDLE, kill_workers=False, env=limits)


def mapped(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    n_jobs: int = 1,
    client: Any = None,
    max_bytes: int | None = None,
    progress: bool = False,
    description: str = "",
) -> Iterator[R]:
    """Return the result of every item in order, each as soon as it and all items before it are done.

    ``function``: a function of one item; several processes need a function that can be pickled, so no lambda. Its
    results must depend on the item alone. ``items``: the items; only as many are requested as keep all workers busy.
    ``n_jobs``: number of processes on this machine; -1 for the number of processors. ``client``: a
    ``distributed.Client``, or the address of a Dask scheduler such as ``"tcp://host:8786"``; its workers do the work.
    ``max_bytes``: for items of bytes: maximum number of bytes in flight. ``progress, description``: show a progress
    bar, and its description. Raises ParameterError: ``n_jobs`` is neither a whole number of at least 1 nor -1;
    ``client`` is neither client nor address; both are given. Raises ServiceError: no scheduler at the address; no
    worker; a lost cluster; workers that died during an item. Raises ImportError: a ``client`` without Dask.

    The function is pickled for every item; put large values into a :class:`Shared`. Exceptions of the function are
    raised unchanged. The work of a worker or process that dies is repeated by another.

    >>> list(mapped(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    require_workers(n_jobs, client)
    n_items = len(items) if isinstance(items, Sized) else None
    if client is not None:
        results = on_cluster(function, items, client, max_bytes)
    elif n_jobs == 1 or (n_items is not None and n_items < 2):  # noqa: PLR2004 - one item keeps one process busy
        results = map(function, items)
    else:
        results = in_processes(function, items, n_jobs, max_bytes)
    return iter(tracked(results, description, shown=progress, total=n_items))


class Workers:
    """Processes of this machine, or the workers of a cluster; see :func:`workers`.

    ``n_jobs, client``: see :func:`mapped`.
    """

    def __init__(self, n_jobs: int = 1, client: Any = None) -> None:
        self.n_jobs, self.client = n_jobs, client

    @property
    def n(self) -> int:
        """Current number of workers; on a cluster, waits for at least one."""
        if self.client is None:
            return n_processes(self.n_jobs)
        require_worker(self.client)
        return max(n_threads(self.client), 1)

    @property
    def are_processes(self) -> bool:
        """True if work is done by other processes."""
        return self.client is not None or self.n > 1

    def mapped(self, function: Callable[[T], R], items: Iterable[T], **options: Any) -> Iterator[R]:
        """See :func:`mapped`."""
        return mapped(function, items, n_jobs=self.n_jobs, client=self.client, **options)


@contextmanager
def workers(n_jobs: int, client: Any) -> Iterator[Workers]:
    """Yield processes of this machine, or connect to a cluster once.

    Raises ParameterError, ServiceError, ImportError: see :func:`mapped`.
    """
    require_workers(n_jobs, client)
    if client is None:
        yield Workers(n_jobs)
        return
    with connected(client) as cluster:
        yield Workers(client=cluster)


def require_workers(n_jobs: int, client: Any) -> None:
    """Refuse arguments that are no workers, before any work is done.

    Raises ParameterError: see :func:`mapped`. Raises ImportError: a ``client`` without Dask.
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or (n_jobs < 1 and n_jobs != -1):
        raise ParameterError(f"n_jobs={n_jobs!r}: wanted a whole number of at least 1, or -1 for all processors")
    if client is None:
        return
    if n_jobs != 1:
        raise ParameterError(f"n_jobs={n_jobs} and client=: wanted one of them, processes of this machine or a cluster")
    require_client(client)
