"""The web server at the far side of `careof shell`: something to fetch for programs that come from the mobile node.

Started as a program in the correspondent's host: ``python far_side.py ADDRESS PORT [DIRECTORY]``. It needs nothing else
of careof.
"""

from __future__ import annotations

import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLOCK = bytes(range(256)) * 256
_MOST = 10**15
_HELP = """GET /bytes/N      N bytes: 0, 1, ..., 255, and again
POST or PUT /...  takes what it is sent and answers with how many bytes that were
GET /...          files of the directory that was given with --serve
"""


def content(count: int) -> Iterator[bytes]:
    """What `/bytes/COUNT` answers, in pieces."""
    while count > 0:
        piece = _BLOCK[:count]
        yield piece
        count -= len(piece)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *parts: Any, directory: str | None, **how: Any) -> None:
        self._has_files = directory is not None
        super().__init__(*parts, directory=directory, **how)

    def do_GET(self) -> None:
        """Answer with bytes, with a file, or with what there is."""
        kind, _, number = self.path.lstrip("/").partition("/")
        if kind == "bytes" and number.isdecimal() and len(number) <= len(str(_MOST)) and int(number) <= _MOST:
            self._begin("application/octet-stream", int(number))
            for piece in content(int(number)):
                self.wfile.write(piece)
        elif self._has_files:
            super().do_GET()
        elif self.path == "/":
            self._begin("text/plain; charset=utf-8", len(_HELP))
            self.wfile.write(_HELP.encode())
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        """Of files alone, and of none where none are served."""
        if self._has_files:
            super().do_HEAD()
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Count what is sent."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > len(str(_MOST)):
            # What comes without a length that can be read cannot be told from the next request.
            self.close_connection = True
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
            return
        left = count = int(length)
        while left > 0:
            piece = self.rfile.read(min(left, len(_BLOCK)))
            if not piece:
                return
            left -= len(piece)
        answer = f"{count}\n".encode()
        self._begin("text/plain; charset=utf-8", len(answer))
        self.wfile.write(answer)

    do_PUT = do_POST  # noqa: N815 - the name is that of the method of HTTP

    def log_message(self, *words: object) -> None:
        """Say nothing: what is printed is kept until the end."""

    def _begin(self, kind: str, length: int) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        # HTTPServer would look for the name of the address, and there is nobody to ask.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, *_: object) -> None:
        """Take it that a client went away."""


class _ServerOfIpv6(_Server):
    address_family = AF_INET6


def server(address: str, port: int, directory: str | None = None) -> ThreadingHTTPServer:
    """The server, which accepts connections from here on; with port 0 at one that is free."""
    kind = _ServerOfIpv6 if ":" in address else _Server
    return kind((address, port), partial(_Handler, directory=directory))


def _main(words: Sequence[str]) -> None:
    address, port, *directory = words
    with server(address, int(port), *directory) as made:
        print(f"listening on {address} port {made.server_port}", flush=True)
        made.serve_forever()


if __name__ == "__main__":
    _main(sys.argv[1:])
