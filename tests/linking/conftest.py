"""A local HTTP service with scripted answers."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest

# Seconds of slow replies, and between their bytes.
_LONG, _PAUSE = 60, 0.03


class Request(NamedTuple):
    method: str
    path: str
    params: dict
    headers: dict
    body: bytes
    port: int


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        service = self.server.service
        body, parts = self.rfile.read(int(self.headers.get("Content-Length", 0))), urlsplit(self.path)
        is_form = self.headers.get("Content-Type") == "application/x-www-form-urlencoded"
        params = parse_qs(body.decode() if is_form else parts.query)
        request = Request(self.command, parts.path, params, dict(self.headers), body, self.client_address[1])
        service.requests.append(request)
        reply = service.replies.pop(0) if len(service.replies) > 1 else service.replies[0]
        try:
            reply(self) if callable(reply) else service.send(json.dumps(reply))(self)
        except OSError:
            self.close_connection = True

    def log_message(self, *args):
        pass


Handler.do_GET = Handler.do_POST = Handler.do_CONNECT = Handler.answer


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignore clients that disconnect."""


class Service:
    """A service that answers each request with the next of its replies (JSON or a function), and repeats the last."""

    def __init__(self):
        self.requests, self.replies, self.over = [], [], threading.Event()
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.service = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def texts(self):
        return [request.params["text"][0] for request in self.requests]

    def answers(self, *replies):
        self.replies[:] = replies

    def stop(self):
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @staticmethod
    def send(body, status=200, **headers):
        """Return a reply with a body, which is encoded as UTF-8 unless it is bytes."""
        content = body.encode() if isinstance(body, str) else body

        def reply(handler):
            handler.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": len(content), **headers}.items():
                handler.send_header(name.replace("_", "-"), str(value))
            handler.end_headers()
            handler.wfile.write(content)

        return reply

    def silent(self, handler):
        """Send nothing until the service stops; a client without a time limit waits long, and gets another error."""
        self.over.wait(_LONG)
        handler.close_connection = True

    def drip(self, handler, head=b"Content-Length: 100000\r\n\r\n", piece=b" "):
        """Send the body slowly, one byte at a time."""
        handler.close_connection = True
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head)
        for _ in range(int(_LONG / _PAUSE)):
            if self.over.wait(_PAUSE):
                break
            handler.wfile.write(piece)
            handler.wfile.flush()

    def drip_chunk(self, handler):
        self.drip(handler, b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n")

    def drip_headers(self, handler):
        self.drip(handler, b"", b"X-More: a\r\n")

    def drip_trailers(self, handler):
        self.drip(handler, b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"X-More: a\r\n")

    def drip_continue(self, handler):
        """Send "100 Continue" again and again, as a server may before its answer."""
        more = b"HTTP/1.1 100 Continue\r\n\r\n"
        handler.close_connection = True
        while not self.over.wait(_PAUSE):
            handler.wfile.write(more)

    def drip_unstated(self, handler):
        """Send a body that ends where the connection ends."""
        self.drip(handler, b'Connection: close\r\n\r\n{"annotations": []}')

    @staticmethod
    def hang_up(sent):
        """Return a reply that sends bytes and closes the connection."""

        def reply(handler):
            handler.wfile.write(sent)
            handler.wfile.flush()
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True

        return reply

    def endless(self, piece, head=b"", start=b""):
        """Return a reply with an endless body of unknown length; ``n_pieces`` counts what the client took of it."""

        def reply(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n" + start)
            handler.close_connection = True
            for self.n_pieces in range(100_000):
                handler.wfile.write(piece)

        return reply


@pytest.fixture
def service():
    started = Service()
    yield started
    started.stop()
