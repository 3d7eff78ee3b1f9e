"""Long work: in one process, in several, or on a Dask cluster, and how far it is. The only home of joblib and Dask."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from vbterrier.errors import ParameterError
from vbterrier.parallel.cluster import on_cluster, require_client
from vbterrier.parallel.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    T = TypeVar("T")
    R = TypeVar("R")

__all__ = ["Shared", "mapped", "require_workers", "tracked"]


def mapped(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    n_jobs: int = 1,
    client: Any = None,
    progress: bool = False,
    description: str = "",
) -> Iterator[R]:
    """The result of every item, in their order, each as soon as it and those before it are done.

    Parameters
    ----------
    function
        Of one item; with several processes it is pickled, so no lambda. Its results must depend on the item alone.
    items
        What to work on.
    n_jobs
        Processes of this machine; -1 for as many as there are processors.
    client
        A ``distributed.Client``, or the address of a Dask scheduler as ``"tcp://host:8786"``: its workers do the work.
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
    raises arrives as it was raised. The work of a worker that dies is done again by another.

    Examples
    --------
    >>> list(mapped(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    require_workers(n_jobs, client)
    results = _results(function, items, n_jobs) if client is None else on_cluster(function, items, client)
    return iter(tracked(results, description, shown=progress, total=len(items)))


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


def _results(function: Callable[[T], R], items: Sequence[T], n_jobs: int) -> Iterator[R]:
    if n_jobs == 1 or len(items) < 2:  # noqa: PLR2004 - one item keeps one process busy
        yield from map(function, items)
        return
    import joblib

    # One item at a time: what is done is handed on at once.
    workers = joblib.Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)
    results = workers(joblib.delayed(function)(item) for item in items)
    try:
        for result in results:  # noqa: UP028 - closed below, not by a delegation that warns
            yield result
    finally:
        with warnings.catch_warnings():
            # Who asks for no more of them knows that the rest is not used.
            warnings.simplefilter("ignore", UserWarning)
            results.close()


def tracked(items: Iterable[T], what: str, *, shown: bool, total: int | None = None, unit: str = "it") -> Iterable[T]:
    """The same items, with a bar on standard error that says how far they are and goes when they end.

    Parameters
    ----------
    items
        What is worked on, one after the other.
    what, unit
        What the bar says of the work, and of an item.
    shown
        Whether to show it.
    total
        How many items there are, where they do not know it.

    Examples
    --------
    >>> list(tracked([1, 2], "counting", shown=False))
    [1, 2]
    """
    if not shown:
        return items
    from tqdm.auto import tqdm

    bar: Iterable[T] = tqdm(items, desc=what or None, total=total, unit=unit, leave=False)
    return bar
