"""Parallel maps over processes or the workers of a Dask cluster."""

from __future__ import annotations

import io
import logging
import pickle
import time
import warnings
from collections import deque
from collections.abc import Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier._version import __version__
from vbterrier.errors import FileError, ParameterError, ServiceError, VBTerrierError, excerpt
from vbterrier.execution.pending import Sent, Shared, in_processes, n_processes, results_in_order, unsendable
from vbterrier.log import tracked_items
from vbterrier.settings import check_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    T = TypeVar("T")
    R = TypeVar("R")


_LOG = logging.getLogger(__name__)


def map_items(
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

    ``n_jobs``: number of processes on this machine; -1 for the number of processors. ``client``: a
    ``distributed.Client``, or the address of a Dask scheduler such as ``"tcp://host:8786"``. ``max_bytes``: for items
    of bytes: maximum number of bytes in flight. Raises ParameterError: see :func:`require_workers`. Raises
    ServiceError: no scheduler at the address; no worker; a lost cluster; workers that died during an item. Raises
    ImportError: a ``client`` without Dask.

    The function is pickled for every item, so put large values into a :class:`Shared`; its results must depend on the
    item alone. Its exceptions are raised unchanged. The work of a worker or process that dies is repeated by another.
    """
    require_workers(n_jobs, client)
    n_items = len(items) if isinstance(items, Sized) else None
    if client is not None:
        results = on_cluster(function, items, client, max_bytes)
    elif n_jobs == 1 or (n_items is not None and n_items < 2):  # noqa: PLR2004 - one item keeps one process busy
        results = map(function, items)
    else:
        results = in_processes(function, items, n_jobs, max_bytes)
    return iter(tracked_items(results, description, shown=progress, total=n_items))


# Seconds that processes need to start and to import the package.
STARTUP_SECONDS = 2.0
# Addresses of schedulers of this machine.
_HERE = ("127.", "localhost", "[::1]")


class Workers:
    """Processes of this machine, or the workers of a cluster; see :func:`map_items`."""

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

    @property
    def is_here(self) -> bool:
        """True for processes of this machine, and for a cluster whose scheduler is one."""
        if self.client is None:
            return True
        return _address(self.client).startswith("inproc:") or _address(self.client).rpartition("://")[2].startswith(
            _HERE
        )

    def shared_out(self, function: Callable[[T], R], items: Iterable[T], here: Callable[[T], R]) -> Iterator[R]:
        """Yield the result of every item in order: by ``here`` in this process until workers pay, then with workers.

        They pay if they save more time than they need to start, judged by the fastest item so far, of at least two:
        the first one may have imported packages. This process goes on beside processes of this machine.
        """
        left = deque(items)
        seconds: list[float] = []
        while left and self._gain(seconds, len(left)) <= STARTUP_SECONDS:
            started = time.perf_counter()
            result = here(left.popleft())
            seconds.append(time.perf_counter() - started)
            yield result
        if left:
            _LOG.info("%d items are left for %d workers", len(left), self.n)
            yield from self._beside(function, left, here) if self.client is None else self.map_items(function, left)
        elif seconds:
            _LOG.info("%d workers would not have paid for %d items of %.2f s", self.n, len(seconds), min(seconds))

    def _beside(self, function: Callable[[T], R], left: deque[T], here: Callable[[T], R]) -> Iterator[R]:
        """Yield the result of every item in order: the first ones by ``here``, the last ones by n - 1 processes.

        This process has read its items already, and works while the others start.
        """
        last: list[R] = []

        def last_items() -> Iterator[T]:
            # Both ends of a deque may be taken by two threads.
            with suppress(IndexError):
                while True:
                    yield left.pop()

        with ThreadPoolExecutor(1) as thread:
            behind = thread.submit(lambda: last.extend(in_processes(function, last_items(), self.n - 1)))
            try:
                while not (behind.done() and behind.exception()):
                    try:
                        item = left.popleft()
                    except IndexError:
                        break
                    yield here(item)
            finally:
                # After an error here, the processes end with the items that they have.
                left.clear()
            behind.result()
        yield from reversed(last)

    def _gain(self, seconds: Sequence[float], n_left: int) -> float:
        """The seconds that workers would save.

        Those of a cluster read each run again and have none of the results that runs share here: twice the work.
        """
        n_busy = self.n if self.client is None else self.n / 2
        return 0.0 if len(seconds) < 2 else min(seconds) * n_left * (1 - 1 / n_busy)  # noqa: PLR2004

    def map_items(self, function: Callable[[T], R], items: Iterable[T], **options: Any) -> Iterator[R]:
        """See :func:`map_items`."""
        return map_items(function, items, n_jobs=self.n_jobs, client=self.client, **options)


@contextmanager
def workers(n_jobs: int, client: Any) -> Iterator[Workers]:
    """Yield processes of this machine, or connect to a cluster once; errors as in :func:`map_items`."""
    require_workers(n_jobs, client)
    if client is None:
        yield Workers(n_jobs)
        return
    with cluster_client(client) as cluster:
        yield Workers(client=cluster)


def require_workers(n_jobs: int, client: Any) -> None:
    """Refuse arguments that are no workers, before any work is done."""
    check_jobs(n_jobs)
    if client is None:
        return
    if n_jobs != 1:
        raise ParameterError(f"n_jobs={n_jobs} and client=: wanted one of them, processes of this machine or a cluster")
    require_client(client)


# Seconds to wait for a scheduler, and for a first worker.
SCHEDULER, WORKER = 10, 60
# Seconds to wait for a worker when there is none, seconds without any task at work, and seconds between two checks.
NO_WORKER_SECONDS, STALLED_SECONDS, _CHECK_SECONDS = 600, 60, 5
# Items in flight for each thread.
_ITEMS_PER_THREAD = 2
# Caught warnings and kept frames belong to a process, so its threads take turns.
_TURN = Lock()


def require_client(client: Any) -> None:
    """Refuse a value that is neither client nor address."""
    Client = _import_distributed().Client
    if not isinstance(client, (str, Client)):
        raise ParameterError(
            f"client={excerpt(client)}: wanted a distributed.Client, or the address of a scheduler as 'tcp://host:8786'"
        )
    if isinstance(client, Client) and client.asynchronous:
        raise ParameterError("client=: is asynchronous; wanted distributed.Client(..., asynchronous=False)")


def on_cluster(
    function: Callable[[T], R], items: Iterable[T], client: Any, max_bytes: int | None = None
) -> Iterator[R]:
    """Yield the result of every item in order; see :func:`vbterrier.execution.parallel.map_items`."""
    if isinstance(items, Sized) and not len(items):
        return
    with cluster_client(client) as cluster:
        require_worker(cluster)
        kept: dict[int, tuple[Shared, Any]] = {}

        def send_item(item: T) -> Any:
            try:
                packed, shared = _pickle((Sent(function), item))
            except Exception as error:
                raise unsendable("client=", error) from error
            for value in shared:
                if id(value) not in kept:
                    # A task, because scattered data are lost with the worker that holds them.
                    kept[id(value)] = value, _future(cluster, _object, _pickle(value.value)[0])
            values = [kept[id(value)][1] for value in shared]
            return _future(cluster, _call_on_worker, packed, _version(), *values)

        def ahead() -> int:
            return _ITEMS_PER_THREAD * max(n_threads(cluster), 1)

        yield from results_in_order(
            items, send_item, lambda future, _: _awaited_result(future, cluster), ahead, max_bytes
        )


def _future(cluster: Any, *task: Any) -> Any:
    with warnings.catch_warnings():
        # A large frame in memory can only be sent.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        with _convert_errors(cluster, Exception):
            return cluster.submit(*task, pure=False)


def n_threads(cluster: Any) -> int:
    """Number of threads of a cluster."""
    with _convert_errors(cluster, Exception):
        return sum(cluster.nthreads().values())


@contextmanager
def _convert_errors(cluster: Any, *kinds: type[BaseException]) -> Iterator[None]:
    """Convert errors of Dask into the error of a lost cluster."""
    try:
        yield
    except kinds as error:
        raise ServiceError(
            _address(cluster),
            f"client: the scheduler at {_address(cluster)} went away "
            f"({' '.join(str(error).split()) or type(error).__name__}); start it and call again",
        ) from error


def _losses() -> tuple[type[BaseException], ...]:
    """Errors of a client whose scheduler is lost."""
    from concurrent.futures import CancelledError

    return CancelledError, _import_distributed().comm.CommClosedError


def _awaited_result(future: Any, cluster: Any) -> Any:
    distributed = _import_distributed()
    alone, idle = 0.0, 0.0
    try:
        with _convert_errors(cluster, *_losses()):
            while True:
                try:
                    return future.result(timeout=_CHECK_SECONDS)
                except distributed.TimeoutError:
                    # A TimeoutError of the function itself is raised immediately at the second call.
                    if future.done():
                        return future.result()
                alone = 0.0 if n_threads(cluster) else alone + _CHECK_SECONDS
                executing = sum(n for _, n in cluster.run_on_scheduler(_workers))
                idle = idle + _CHECK_SECONDS if n_threads(cluster) and not executing else 0.0
                if idle >= STALLED_SECONDS:
                    raise ServiceError(_address(cluster), _stall(cluster))
                if alone >= NO_WORKER_SECONDS:
                    raise ServiceError(
                        _address(cluster),
                        f"client: all workers of the scheduler at {_address(cluster)} went away, and none came for "
                        f"{NO_WORKER_SECONDS} seconds; start some and call again",
                    )
    except distributed.KilledWorker as error:
        raise ServiceError(
            _address(cluster),
            f"client: {error}; workers that die of the same work mostly lack memory: give them more, or the work less, "
            "as with memory=",
        ) from error


def _workers(dask_scheduler: Any = None) -> list[tuple[str, int]]:
    """Return the status of each worker and the number of its tasks at work, on the scheduler."""
    return [(state.status.name, int(state.metrics.get("executing", 0))) for state in dask_scheduler.workers.values()]


def _stall(cluster: Any) -> str:
    status = [name for name, _ in cluster.run_on_scheduler(_workers)]
    paused = status.count("paused")
    cause = (
        f"{paused} of {len(status)} workers are paused, which Dask does near their memory limit: give workers more "
        "memory, or pass memory="
        if paused
        else "the logs of the workers name the cause, such as an object that cannot be pickled"
    )
    return (
        f"client: no worker of the scheduler at {_address(cluster)} did any work for {STALLED_SECONDS} seconds; {cause}"
    )


def _call_on_worker(packed: bytes, version: str, *values: Any) -> Any:
    """Apply the function to the item, on a worker."""
    if version != _version():
        raise VBTerrierError(
            f"client: a worker has vbterrier {_version()}, the process that asks {version}; install the same on both"
        )
    with _TURN:
        function, item = _object(packed, *values)
        try:
            return function(item)
        except FileError as error:
            address = _import_distributed().get_worker().address
            error.args = (f"{error} (on the worker {address}, which reads files from the same paths)",)
            raise


def _version() -> str:
    return __version__


def _pickle(what: Any) -> tuple[bytes, list[Shared]]:
    """Return an object as a pickle without its shared values, and these values."""
    import cloudpickle  # type: ignore[import-untyped]

    shared: list[Shared] = []

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> int | None:
            if not isinstance(value, Shared):
                return None
            shared.append(value)
            return len(shared) - 1

    stream = io.BytesIO()
    Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(what)
    return stream.getvalue(), shared


def _object(packed: bytes, *values: Any) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Shared:
            return Shared(values[number])

    # The pickle comes from the client of the user, who may run any code on the worker.
    return Unpickler(io.BytesIO(packed)).load()


@contextmanager
def cluster_client(client: Any) -> Iterator[Any]:
    """Yield the client itself, or a client of an address, which is closed afterwards."""
    if not isinstance(client, str):
        yield client
        return
    distributed = _import_distributed()
    log = logging.getLogger("distributed.client")
    try:
        if not client.startswith("inproc:"):
            # A client that fails at its address closes late, with a traceback of its own.
            distributed.comm.get_address_host_port(client)
        made = distributed.Client(client, timeout=SCHEDULER, set_as_default=False)
    except Exception as error:  # Dask raises what sockets and parsers raise, and bare assertions.
        raise ServiceError(
            client,
            f"client={excerpt(client)}: no Dask scheduler answers there "
            f"({str(error) or type(error).__name__}); wanted the "
            "address that `dask scheduler` prints, as 'tcp://host:8786', and a way to it",
        ) from error
    # A lost connection becomes an error here; Dask would log its tracebacks, too.
    before, log.disabled = log.disabled, True
    try:
        with made:
            yield made
    finally:
        log.disabled = before


def require_worker(cluster: Any) -> None:
    """Wait for a worker; a task makes adaptive clusters start one."""
    try:
        with _convert_errors(cluster, *_losses()):
            _future(cluster, _version).result(timeout=WORKER)
    except _import_distributed().TimeoutError as error:
        raise ServiceError(
            _address(cluster),
            f"client: the scheduler at {_address(cluster)} has no worker that answers within {WORKER} seconds; start "
            "some, as `dask worker ADDRESS --nthreads 1`, or wait for them first: client.wait_for_workers(1)",
        ) from error


def _address(cluster: Any) -> str:
    return str(cluster.scheduler.address) if cluster.scheduler else "?"


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("client= wants Dask: pip install 'vbterrier[dask]'") from error
    return distributed
