"""The playground's web server: for this machine alone, without state, asking nobody for anything."""

from __future__ import annotations

import json
import select
import socket
import socketserver
import threading
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from careof.errors import InputError
from careof.playground import page
from careof.playground.simulate import AbandonedError, answer
from careof.report.page import STYLE, VIEWER, resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

HOST = "127.0.0.1"
PORT = 8734
"""Where the playground is if nobody says otherwise."""

_LARGEST = 1 << 16
"""Bytes of what a page may send."""
LINES = 32
"""Connections that are answered at once, each by a thread. A browser opens six to one server at most."""
WAITING = 4
"""Pages whose runs may wait for their turn. A page has one under way, and gives it up when something is chosen anew."""
_CAREFUL = {
    # The page's own files, and nothing else from anywhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Playground(ThreadingHTTPServer):
    """The server, which listens from the beginning; a context manager that ends it.

    Raises:
        InputError: nobody can listen at this port.
    """

    # Browsers keep lines open on which nothing comes: those are not waited for.
    daemon_threads = True

    def __init__(self, port: int = PORT) -> None:
        self.is_closing = threading.Event()
        # One at a time: more would share the cores, and the page waits for the last only.
        self.turn = threading.Lock()
        self.queue = threading.BoundedSemaphore(1 + WAITING)
        self._lines = threading.BoundedSemaphore(LINES)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InputError(
                f"{HOST}:{port}: cannot listen there: {error.strerror or error}",
                hint="name another port with --port; 0 takes a free one",
            ) from error

    def server_bind(self) -> None:
        """Bind without asking the name service what this host is called, as the standard library would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_closing.set()
        # For good: no run is under way when the interpreter goes, and none begins.
        self.turn.acquire()
        super().__exit__(kind, value, trace)

    def __enter__(self) -> Self:
        return self

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; hang up where there are as many as there may be."""
        if not self._lines.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._lines.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, in a thread of its own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._lines.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that hung up; what else goes wrong is a fault and is shown."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: Playground
    timeout = 10
    server_version = "careof"
    sys_version = ""

    def do_GET(self) -> None:
        if not self._is_for_us():
            return
        name = self.path.partition("?")[0]
        found = _files().get(name)
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        else:
            self._send(HTTPStatus.OK, *found)

    def do_POST(self) -> None:
        if not self._is_for_us():
            return
        # Other sites' pages cannot send this type without asking first, which nobody answers.
        if self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        elif self.path != "/run":
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")
        elif (given := self._choices()) is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "expected an object of texts in JSON")
        else:
            self._run(given)

    def _run(self, given: dict[str, str]) -> None:
        if not self.server.queue.acquire(blocking=False):
            why = f"{WAITING} pages wait for their turn already: close some of them"
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, why)
            return
        try:
            with self._turn():
                found = answer(given, self._is_wanted)
        except AbandonedError:
            return
        finally:
            self.server.queue.release()
        self._send(HTTPStatus.OK, "application/json", json.dumps(found, separators=(",", ":")).encode())

    def _choices(self) -> dict[str, str] | None:
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 <= length <= _LARGEST:
                return None
            given = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            return None
        if not isinstance(given, dict) or not all(isinstance(one, str) for one in given.values()):
            return None
        return given

    def _is_for_us(self) -> bool:
        """Whether the browser means this host. A name of somebody else's may lead here as well (DNS rebinding)."""
        port = self.server.server_port
        names = {f"{name}:{port}" for name in (HOST, "localhost")} | ({HOST, "localhost"} if port == 80 else set())
        if self.headers.get("Host", "").lower() not in names:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, f"this is {HOST}:{port} and nobody else")
            return False
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in names}:
            self._refuse(HTTPStatus.FORBIDDEN, "this is for its own page")
            return False
        return True

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the turn.

        Raises:
            AbandonedError: the page has hung up meanwhile.
        """
        while not self.server.turn.acquire(timeout=0.05):
            if not self._is_wanted():
                raise AbandonedError("nobody waits for it")
        try:
            yield
        finally:
            self.server.turn.release()

    def _is_wanted(self) -> bool:
        """Whether the page still waits: one that has changed its mind hangs up."""
        if self.server.is_closing.is_set():
            return False
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return not readable or self.connection.recv(1, socket.MSG_PEEK) != b""
        except OSError:
            return False

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{why}\n".encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **_CAREFUL}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Say nothing: people look at the page."""


@cache
def _files() -> dict[str, tuple[str, bytes]]:
    """What there is to get, with its type."""
    return {
        "/": ("text/html; charset=utf-8", page.html().encode()),
        "/playground.css": ("text/css", "".join([*map(resource, STYLE), page.resource("playground.css")]).encode()),
        "/playground.js": ("text/javascript", page.resource("playground.js").encode()),
        **{f"/{name}": ("text/javascript", resource(name).encode()) for name in VIEWER},
    }
