"""Long work: in one process, in several, or on a Dask cluster, and how far it is. The only home of joblib and Dask."""

from __future__ import annotations

from collections.abc import Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import ParameterError
from vbterrier.parallel.bars import tracked
from vbterrier.parallel.cluster import connected, n_threads, on_cluster, require_client, require_worker
from vbterrier.parallel.processes import in_processes, n_processes
from vbterrier.parallel.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    T = TypeVar("T")
    R = TypeVar("R")

__all__ = ["Shared", "Workers", "mapped", "require_workers", "tracked", "workers"]


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
    def are_elsewhere(self) -> bool:
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
