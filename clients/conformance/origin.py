#!/usr/bin/env python3
"""The origin of the conformance programs: origin.py [PORT] serves photographs, failures and uploads on 127.0.0.1 and prints its URL.

behaviors.json describes the paths (HALCYON_SOURCES). Files of the result store are served under /store.
"""
import http.server
import pathlib
import sys
import threading
import urllib.parse

PHOTOGRAPHS = pathlib.Path(__file__).parents[2] / "Samples"
STATUSES = {"/none.jpg": 404, "/gone.jpg": 410, "/forbidden.jpg": 403, "/error.jpg": 500}


class Origin(http.server.ThreadingHTTPServer):
    """An HTTP server on a loopback port; 0 selects a free one."""

    daemon_threads = True

    def __init__(self, port=0, store=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.store, self.uploads, self.broken, self.closing = store, {}, set(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def file(self, path):
        """The bytes of a path; None if there is no such file."""
        if path.startswith("/put/"):
            return self.uploads.get(path)
        if path == "/text.jpg":
            return b"This is not an image.\n" * 100
        if path == "/corrupt.jpg":
            return (PHOTOGRAPHS / "coffee.jpg").read_bytes()[:400] + bytes(4000)
        folder = PHOTOGRAPHS
        if path.startswith("/store/") and self.store:
            folder, path = self.store, path.removeprefix("/store")
        path = path.removeprefix("/no-store")
        file = (folder / path.lstrip("/")).resolve()
        return file.read_bytes() if file.is_relative_to(folder) and file.is_file() else None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        if path.startswith("/hang/"):
            self.server.closing.wait()
            self.close_connection = True
            return
        if path.startswith("/store/") and (self.headers["Authorization"] or self.headers["X-API-Key"]):
            return self.respond(400, b"an API key was sent to the store")
        content = None if path in STATUSES else self.server.file(path)
        breaks = url.query.startswith("broken=") and self.path not in self.server.broken
        if breaks:
            self.server.broken.add(self.path)
        self.respond(STATUSES.get(path, 404) if content is None else 200, content or b"", path, breaks)

    def do_PUT(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        self.server.uploads[path] = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.respond(201, b"")

    def respond(self, status, content, path="", breaks=False):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store" if path.startswith("/no-store/") else "max-age=3600")
        self.end_headers()
        self.wfile.write(content[:len(content) // 2] if breaks else content)
        if breaks:
            self.close_connection = True

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    origin = Origin(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(origin.url, flush=True)
    origin.serve_forever()
