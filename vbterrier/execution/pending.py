"""Bounded queues of tasks in flight, values that are sent to each worker once, and processes of this machine."""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from concurrent.futures import BrokenExecutor
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import InputError, VBTerrierError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    T = TypeVar("T")
    R = TypeVar("R")


class Shared:
    """A value for several processes: written once, at the first pickle, and read once by each process, which keeps it.

    A context manager, which removes the file at its end. Changes in one process do not reach other processes. Raises
    InputError: the file cannot be written.
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
        return _shared_value, (f"{self._folder.name}/shared",)


# Only the last value that this process has read, so that a long-lived process does not collect all.
_kept: dict[str, Shared] = {}


def _shared_value(path: str) -> Shared:
    import joblib

    if path not in _kept:
        _kept.clear()
        _kept[path] = Shared(joblib.load(path, mmap_mode="r"))
    return _kept[path]


# Items in flight for each process: the current and the next one.
_ITEMS_PER_PROCESS = 2
# An item may kill as many processes as it may kill workers of a cluster.
_TRIES = 4
# Seconds after which idle processes end, as in joblib.
_IDLE = 300
_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")
_NO_MORE = object()


def results_in_order(
    items: Iterable[T],
    send: Callable[[T], Any],
    receive: Callable[[Any, Iterable[Any]], Any],
    n_ahead: Callable[[], int],
    max_bytes: int | None = None,
) -> Iterator[Any]:
    """Yield the result of every item in order, as soon as it is available.

    ``send`` sends an item to a worker and returns a task, ``receive`` waits for the result of a task, given it and the
    tasks sent after it. At most ``n_ahead()`` tasks of at most ``max_bytes`` in total (or a single longer one) are in
    flight. If the items raise an error, results of items in flight are yielded first, so that no work is lost.
    """
    sent: deque[tuple[Any, int]] = deque()
    left = iter(items)
    weight = 0

    def next_result() -> Any:
        nonlocal weight
        task, n_bytes = sent.popleft()
        weight -= n_bytes
        return receive(task, (other for other, _ in sent))

    while True:
        try:
            item: Any = next(left, _NO_MORE)
        except Exception:
            while sent:
                yield next_result()
            raise
        if item is _NO_MORE:
            break
        n_bytes = 0 if max_bytes is None else len(item)
        while sent and max_bytes is not None and weight + n_bytes > max_bytes:
            yield next_result()
        sent.append((send(item), n_bytes))
        weight += n_bytes
        del item
        while len(sent) >= max(n_ahead(), 1):
            yield next_result()
    while sent:
        yield next_result()


class _Task:
    """An item and the future of its result."""

    def __init__(self, item: Any, future: Any) -> None:
        self.item, self.future = item, future

    @property
    def is_lost(self) -> bool:
        future = self.future
        return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


class Sent:
    """A function for another process; errors that cannot be sent back become errors of this package.

    Errors of clients of web services are often such: their class wants more arguments than their text.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> Any:
        """Return the result of the function."""
        try:
            return self.function(item)
        except Exception as error:
            if _is_sendable(error):
                raise
            message = f"{type(error).__name__}: {error}"
        # Outside the handler, whose error would be sent as the context of this one.
        raise VBTerrierError(message)


def _is_sendable(error: Exception) -> bool:
    from joblib.externals.loky.backend.reduction import dumps

    try:
        pickle.loads(dumps(error))  # noqa: S301 - it was just pickled here
    except Exception:  # noqa: BLE001 - pickling may run any code
        return False
    return True


def unsendable(argument: str, error: BaseException) -> InputError:
    """Return the error of work that cannot be pickled."""
    # The cause of an error of the thread that sends items is a traceback as text.
    lines = [line for line in str(error.__cause__ or error).splitlines() if line.strip(' "')]
    return InputError(
        f"{argument}: the work cannot be sent to other processes ({lines[-1].strip() if lines else error!r}); leave it "
        "out, or pass functions and objects without open files, locks and connections"
    )


def _require_sendable(function: Any, argument: str) -> None:
    """Write shared values, and raise the errors of pickling here: those of the thread that sends items are loky's."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(function)
    except VBTerrierError:
        raise
    except Exception as error:
        raise unsendable(argument, error) from error


def _result(future: Any, n_jobs: int) -> Any:
    try:
        return future.result()
    except pickle.PicklingError as error:
        raise unsendable(f"n_jobs={n_jobs}", error) from error


def in_processes(
    function: Callable[[T], R], items: Iterable[T], n_jobs: int, max_bytes: int | None = None
) -> Iterator[R]:
    """Yield the result of every item in order; see :func:`vbterrier.execution.parallel.map_items`."""
    n = n_processes(n_jobs)
    tasks: list[_Task] = []
    _require_sendable(function, f"n_jobs={n_jobs}")
    function = Sent(function)

    def send_item(item: T) -> _Task:
        tasks.append(_Task(item, _future(n, function, item)))
        return tasks[-1]

    def receive_result(task: _Task, others: Iterable[_Task]) -> R:
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
                    each.future = _future(n, function, each.item)
        tasks.remove(task)
        result: R = _result(task.future, n_jobs)
        return result

    try:
        yield from results_in_order(items, send_item, receive_result, lambda: _ITEMS_PER_PROCESS * n, max_bytes)
    finally:
        if tasks:
            # Work that its thread has not started makes loky fail; threads start it immediately.
            for _ in range(1000):
                if all(task.future.running() or task.future.done() for task in tasks):
                    break
                time.sleep(0.005)
            _executor(n).shutdown(wait=True, kill_workers=True)


def n_processes(n_jobs: int) -> int:
    """Number of processes; -1 stands for all processors."""
    if n_jobs != -1:
        return n_jobs
    import joblib

    return int(joblib.cpu_count())


def _future(n: int, function: Callable[[T], R], item: T) -> Any:
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
