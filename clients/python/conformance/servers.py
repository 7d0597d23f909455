"""Small servers of the conformance program, and the dimensions of images."""

from __future__ import annotations

import http.server
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Optional, TypeVar
from urllib.parse import urlsplit


def dimensions(content: bytes) -> tuple[int, int]:
    """Width and height of a JPEG or PNG file."""
    if content.startswith(b"\x89PNG"):
        width, height = struct.unpack(">II", content[16:24])
        return width, height
    assert content.startswith(b"\xff\xd8"), content[:16]
    place = 2
    while place < len(content):
        marker, length = content[place + 1], int.from_bytes(content[place + 2 : place + 4], "big")
        if marker in (0xC0, 0xC1, 0xC2):
            height, width = struct.unpack(">HH", content[place + 5 : place + 9])
            return width, height
        place += 2 + length
    raise AssertionError("a JPEG without a frame")


Answers = list[Optional[tuple[int, dict[str, str], dict[str, Any]]]]


class FlakyGateway:
    """Answers requests in turn with (status, headers, JSON), or with a closed connection for None. A context manager."""

    def __init__(self, answers: Answers) -> None:
        self.bodies: list[bytes] = []
        self.times: list[float] = []
        waiting = iter(answers)
        flaky = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                flaky.times.append(time.monotonic())
                flaky.bodies.append(self.rfile.read(int(self.headers["Content-Length"] or 0)))
                answer = next(waiting)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, value = answer
                body = json.dumps(value).encode()
                self.send_response(status)
                for name, content in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, content)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> FlakyGateway:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


S = TypeVar("S", bound="SocketServer")


class SocketServer:
    """Serves each connection in a thread of its own. A context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        raise NotImplementedError


class RawGateway(SocketServer):
    """Answers one request on each connection with bytes, whatever they are.

    `answer` returns for the head of a request the bytes and the end: `close`, `reset`, or `silence` until the client closes the connection.
    `heads` are the heads of the requests.
    """

    def __init__(self, answer: Callable[[str], tuple[str, str]]) -> None:
        self.heads: list[str] = []
        self._answer = answer
        super().__init__()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, client.makefile("rb") as request:
            head = ""
            while (line := request.readline().decode()).strip():
                head += line
            if not head:
                return
            length = re.search(r"content-length: *(\d+)", head, re.IGNORECASE)
            request.read(int(length[1]) if length else 0)
            self.heads.append(head)
            text, end = self._answer(head)
            client.sendall(text.encode())
            if end == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif end == "silence":
                client.recv(1)


class CuttingProxy(SocketServer):
    """Relays connections to a gateway, and cuts the first one in the middle of the second event.

    `last_ids` are the headers Last-Event-ID of the connections.
    """

    def __init__(self, url: str) -> None:
        self.last_ids: list[str] = []
        gateway = urlsplit(url)
        self._gateway = (gateway.hostname or "", gateway.port or 80)
        super().__init__()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._gateway) as gateway:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            last_id = re.search(rb"\r\nlast-event-id: *([^\r]*)", head, re.IGNORECASE)
            self.last_ids.append(last_id[1].decode() if last_id else "")
            first, seen = len(self.last_ids) == 1, b""
            gateway.sendall(head)
            while part := gateway.recv(65536):
                seen += part
                events = [match.start() for match in re.finditer(rb"\ndata: ", seen)]
                if first and len(events) > 1:
                    keep = events[1] + 40 - (len(seen) - len(part))
                    client.sendall(part[: max(keep, 0)])
                    return
                try:
                    client.sendall(part)
                except OSError:
                    return
