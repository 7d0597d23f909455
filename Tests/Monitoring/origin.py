"""An origin with valid, slow and failing sources, which also receives webhooks: origin.py PORT"""
import http.server
import pathlib
import sys
import time

PHOTOGRAPH = (pathlib.Path(__file__).resolve().parents[2] / "Samples/chelsea.jpg").read_bytes()


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        kind = self.path.split("/")[1]
        if kind == "slow":
            time.sleep(0.5)
        if kind in ("good", "slow"):
            # The path makes each a different source.
            self.answer(200, PHOTOGRAPH)
        else:
            self.answer({"missing": 404, "broken": 500}[kind])

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(200 if self.path == "/hook" else 500)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Origin).serve_forever()
