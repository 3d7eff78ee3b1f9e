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
        self.is_over = False

    def add(self, opened: socket.socket) -> None:
        """Watch a socket for as long as it lives."""
        self._sockets.add(opened)

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
        self.is_over = True
        for opened in list(self._sockets):
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
        def connect(self) -> None:
            super().connect()
            watch.add(self.sock)

    return type(pool.__name__, (pool,), {"ConnectionCls": Connection})
