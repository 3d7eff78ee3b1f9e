"""Work in processes of this machine, joblib's own."""

from __future__ import annotations

import os
import time
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import VBTerrierError
from vbterrier.parallel.window import windowed

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
    """The result of every item, in their order; see :func:`vbterrier.parallel.mapped`."""
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
