"""Connections whose whole exchange can be ended from outside when its time is up."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterator


class Watch:
    """Shuts sockets at a deadline, whatever the reader waits for.

    The time-outs of requests are of single reads: a server that sends a byte now and then, in its headers or its body,
    is never late for any of them.
    """

    def __init__(self) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()
        self.is_over = False

    def add(self, opened: socket.socket) -> None:
        """Watch a socket for as long as it lives; one that comes after the deadline is shut at once."""
        with self._lock:
            self._sockets.add(opened)
            if self.is_over:
                _shut(opened)

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Shut all sockets if the block takes longer; ``is_over`` tells."""
        self.is_over = False
        timer = threading.Timer(seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            # One that is at it must not meet the connections of the next request.
            timer.join()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            for opened in self._sockets:
                _shut(opened)


def _shut(opened: socket.socket) -> None:
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def watched_adapter(watch: Watch) -> Any:
    """An adapter of requests, one connection at a time, that shows each socket it opens to a watch."""
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    pools = {"http": _watched(HTTPConnectionPool, watch), "https": _watched(HTTPSConnectionPool, watch)}

    class Adapter(HTTPAdapter):  # type: ignore[misc]
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(*args, **kwargs)
            self.poolmanager.pool_classes_by_scheme = pools

        def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
            manager = super().proxy_manager_for(*args, **kwargs)
            manager.pool_classes_by_scheme = pools
            return manager

    return Adapter(pool_connections=1, pool_maxsize=1)


def _watched(pool: Any, watch: Watch) -> Any:
    class Connection(pool.ConnectionCls):  # type: ignore[misc]
        # Watched as soon as it is there: a proxy is spoken to before the connection counts as made.
        @property
        def sock(self) -> Any:
            return self._sock

        @sock.setter
        def sock(self, opened: Any) -> None:
            self._sock = opened
            if opened is not None:
                watch.add(opened)

        def _tunnel(self) -> None:
            super()._tunnel()
            # A proxy that was cut off looks like one that has said all, and TLS would begin.
            if watch.is_over:
                raise TimeoutError

    return type(pool.__name__, (pool,), {"ConnectionCls": Connection})
