"""Parallel maps over the workers of a Dask cluster."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Sized
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier._version import __version__
from vbterrier.errors import ParameterError, ServiceError, VBTerrierError
from vbterrier.execution.pending import Shared, windowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    T = TypeVar("T")
    R = TypeVar("R")


# Seconds for a scheduler to answer, and for a first worker to.
SCHEDULER, WORKER = 10, 60
# Seconds for a worker to come back when there is none, looked for that often while work goes on.
ALONE, _LOOK = 600, 5
# Items sent ahead for each thread: the cluster holds that many, whatever their number.
_AHEAD = 2
# Warnings are caught and frames are remembered by process: its threads take turns.
_TURN = Lock()


def require_client(client: Any) -> None:
    """Refuse what is neither client nor address.

    Raises
    ------
    ParameterError, ImportError
    """
    Client = _distributed().Client
    if not isinstance(client, (str, Client)):
        raise ParameterError(
            f"client={client!r}: wanted a distributed.Client, or the address of a scheduler as 'tcp://host:8786'"
        )
    if isinstance(client, Client) and client.asynchronous:
        raise ParameterError("client=: is asynchronous; wanted distributed.Client(..., asynchronous=False)")


def on_cluster(function: Callable[[T], R], items: Iterable[T], client: Any, room: int | None = None) -> Iterator[R]:
    """The result of every item, in their order; see :func:`vbterrier.execution.parallel.mapped`."""
    if isinstance(items, Sized) and not len(items):
        return
    with connected(client) as cluster:
        require_worker(cluster)
        kept: dict[int, tuple[Shared, Any]] = {}

        def sent(item: T) -> Any:
            packed, shared = _packed((function, item))
            for value in shared:
                if id(value) not in kept:
                    # A task, not scattered data: those are gone with the worker that holds them.
                    kept[id(value)] = value, _submitted(cluster, _unpacked, _packed(value.value)[0])
            values = [kept[id(value)][1] for value in shared]
            return _submitted(cluster, _called, packed, _version(), *values)

        def ahead() -> int:
            return _AHEAD * max(n_threads(cluster), 1)

        yield from windowed(items, sent, lambda future, _: _result(future, cluster), ahead, room)


def _submitted(cluster: Any, *task: Any) -> Any:
    with warnings.catch_warnings():
        # Whoever has a large frame in memory can only send it.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        with _lost(cluster, Exception):
            return cluster.submit(*task, pure=False)


def n_threads(cluster: Any) -> int:
    """How many items a cluster works on at a time."""
    with _lost(cluster, Exception):
        return sum(cluster.nthreads().values())


@contextmanager
def _lost(cluster: Any, *kinds: type[BaseException]) -> Iterator[None]:
    """Say of errors of Dask's own that there is no cluster any more."""
    try:
        yield
    except kinds as error:
        raise ServiceError(
            _address(cluster),
            f"client: the scheduler at {_address(cluster)} went away ({str(error) or type(error).__name__}); start it "
            "and call again",
        ) from error


def _result(future: Any, cluster: Any) -> Any:
    from concurrent.futures import CancelledError

    distributed = _distributed()
    alone = 0.0
    try:
        with _lost(cluster, CancelledError, distributed.comm.CommClosedError):
            while True:
                try:
                    return future.result(timeout=_LOOK)
                except distributed.TimeoutError:
                    # What the function itself raised is there at once when asked for again.
                    if future.done():
                        return future.result()
                alone = 0.0 if n_threads(cluster) else alone + _LOOK
                if alone >= ALONE:
                    raise ServiceError(
                        _address(cluster),
                        f"client: all workers of the scheduler at {_address(cluster)} went away, and none came for "
                        f"{ALONE} seconds; start some and call again",
                    )
    except distributed.KilledWorker as error:
        raise ServiceError(
            _address(cluster),
            f"client: {error}; workers that die of the same work mostly lack memory: give them more, or the work less, "
            "as with memory=",
        ) from error


def _called(packed: bytes, version: str, *values: Any) -> Any:
    """On a worker: the function of the item."""
    if version != _version():
        raise VBTerrierError(
            f"client: a worker has vbterrier {_version()}, the process that asks {version}; install the same on both"
        )
    with _TURN:
        function, item = _unpacked(packed, *values)
        return function(item)


def _version() -> str:
    # The package itself stands above all floors, and is there when this is called.
    version: str = __version__
    return version


def _packed(what: Any) -> tuple[bytes, list[Shared]]:
    """Something pickled without the shared values that it holds, and those."""
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


def _unpacked(packed: bytes, *values: Any) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, number: int) -> Shared:
            return Shared(values[number])

    # The pickle is of the user's own client, by whose leave the worker runs anything.
    return Unpickler(io.BytesIO(packed)).load()


@contextmanager
def connected(client: Any) -> Iterator[Any]:
    """The client itself, or one of an address, closed afterwards."""
    if not isinstance(client, str):
        yield client
        return
    try:
        made = _distributed().Client(client, timeout=SCHEDULER, set_as_default=False)
    except Exception as error:  # Dask raises what sockets and parsers raise, and bare assertions.
        raise ServiceError(
            client,
            f"client={client!r}: no Dask scheduler answers there ({str(error) or type(error).__name__}); wanted the "
            "address that `dask scheduler` prints, as 'tcp://host:8786', and a way to it",
        ) from error
    with made:
        yield made


def require_worker(cluster: Any) -> None:
    """Wait for a worker, for which clusters that grow with their work are given some."""
    try:
        _submitted(cluster, _version).result(timeout=WORKER)
    except _distributed().TimeoutError as error:
        raise ServiceError(
            _address(cluster),
            f"client: the scheduler at {_address(cluster)} has no worker that answers within {WORKER} seconds; start "
            "some, as `dask worker ADDRESS --nthreads 1`, or wait for them first: client.wait_for_workers(1)",
        ) from error


def _address(cluster: Any) -> str:
    return str(cluster.scheduler.address) if cluster.scheduler else "?"


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError("client= wants Dask: pip install 'vbterrier[dask]'") from error
    return distributed
