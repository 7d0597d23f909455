"""A client for Halcyon gateways. It is a single file that requires only Python's standard library. Copy it into your project.

    halcyon = Halcyon("http://127.0.0.1:8080", key=None)
    picture = halcyon.image({"source": "https://example.org/cat.jpg", "width": 400})
"""

from __future__ import annotations

import base64
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any

Job = dict[str, Any]
Event = dict[str, Any]
ENDS = ("ready", "failed", "cancelled", "superseded")


class Problem(Exception):
    """An error response of the gateway (RFC 9457)."""

    def __init__(self, status: int, body: bytes, retry_after: str | None = None) -> None:
        try:
            said = json.loads(body)
        except ValueError:
            said = {}
        if not isinstance(said, dict):
            said = {}
        self.status = status
        self.kind: str = said.get("type", "").removeprefix("/problems/")
        self.detail: str = said.get("detail", "")
        self.code: str | None = said.get("code")
        self.retry_after = int(retry_after) if retry_after and retry_after.isdigit() else 0
        super().__init__(f"{said.get('title', 'HTTP status')} ({status}): {self.detail}")

    @property
    def is_transient(self) -> bool:
        return self.status in (408, 429, 502, 503, 504)


class JobEnded(Exception):
    """The job ended without an image; `event` is its terminal event."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.code: str | None = event["data"].get("code")
        what = event["type"].rsplit(".", 1)[1]
        super().__init__(": ".join(filter(None, (what, self.code, event["data"].get("message")))))


class TooLarge(Exception):
    """A response or an event exceeds the size limit of the client."""


@dataclass(frozen=True)
class Message:
    """An item of the event stream: an event, or a `gap` if events before the next one are missing."""

    event: Event | None
    gap: str | None
    cursor: str


class Halcyon:
    """A client for a cluster, connected to one of its gateways. Thread-safe."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retry_timeout: float = 30,
        job_timeout: float = 300,
        read_timeout: float = 60,
        maximum_bytes: int = 64 << 20,
    ) -> None:
        """url: URL of the gateway; key: API key; retry_timeout: seconds for which failed requests are retried; job_timeout: seconds to wait
        for the end of a job; read_timeout: seconds without data after which a connection counts as lost; maximum_bytes: size limit of an
        image or an event."""
        self.url, self.key = url.rstrip("/"), key
        self.retry_timeout, self.job_timeout, self.read_timeout = retry_timeout, job_timeout, read_timeout
        self.maximum_bytes = maximum_bytes
        self._opener = urllib.request.build_opener(_NoRedirect)

    def submit(self, job: Job) -> dict[str, Any]:
        """Submits a job. When this returns, Kafka has stored the job. Without a response, the request is retried with the same id."""
        return json.loads(self._ask("POST", "/v1/jobs", {"id": str(uuid.uuid4()), **job}))

    def state(self, job_id: str, wait: float = 0) -> dict[str, Any]:
        """Returns `{"id", "state", "event"}`. With `wait`, waits up to that number of seconds for the end of the job."""
        return json.loads(self._ask("GET", f"/v1/jobs/{_quoted(job_id)}?wait={wait:.3f}", more=wait))

    def wait(self, job_id: str) -> Event:
        """Waits for the event `ready` of a job and returns it. Raises JobEnded for any other terminal event, TimeoutError after job_timeout."""
        end = time.monotonic() + self.job_timeout
        while (left := end - time.monotonic()) > 0:
            begun = time.monotonic()
            state = self.state(job_id, min(25, left))
            if state["state"] == "ready" and "event" in state:
                return state["event"]
            if state["state"] in ENDS:
                raise JobEnded(state.get("event") or {"type": f"halcyon.image.{state['state']}", "data": {}})
            # Limits the request rate if the gateway does not support waiting.
            time.sleep(max(0, 0.25 - (time.monotonic() - begun)))
        raise TimeoutError(f"the job {job_id} has not ended within {self.job_timeout:g} s")

    def image(self, job: Job) -> bytes:
        """Submits a job, waits for its end and returns its first image. Cancels the job on an interrupt or timeout."""
        job_id = self.submit({**job, "delivery": "reference"})["id"]
        try:
            event = self.wait(job_id)
        except (KeyboardInterrupt, TimeoutError):
            self.cancel(job_id)
            raise
        return self.delivered(event["data"]["variants"][0])

    def delivered(self, variant: dict[str, Any]) -> bytes:
        """Returns the image of a variant of an event `ready`. Reads it from the event if it is not stored, otherwise from the gateway. An image
        that is neither stored nor small enough for an event can be read once."""
        return base64.b64decode(variant["data"]) if "data" in variant else self.stored(variant["key"])

    def stored(self, key: str) -> bytes:
        """Returns a stored result. Raises Problem of the kind "not-found" if it does not exist or has expired."""
        return self._ask("GET", f"/v1/images/{_quoted(key)}")

    def cancel(self, job_id: str) -> bool:
        """Cancels a job. Returns False if it has already ended."""
        try:
            self._ask("DELETE", f"/v1/jobs/{_quoted(job_id)}")
        except Problem as problem:
            if problem.status == 409:
                return False
            raise
        return True

    def events(
        self,
        *,
        types: Iterable[str] = (),
        jobs: Iterable[str] = (),
        sources: Iterable[str] = (),
        after: str = "",
    ) -> Iterator[Message]:
        """Yields events from now on or after a `cursor`. After a connection loss, the stream resumes at its cursor, without missing or
        duplicate events. Raises permanent errors. Call close() on the iterator to end the stream."""
        query = [("type", ",".join(types))] if types else []
        query += [("job", job) for job in jobs] + [("source", source) for source in sources]
        target = "/v1/events" + ("?" + urllib.parse.urlencode(query) if query else "")
        cursor, pause, failures = after, 2.0, 0
        while True:
            asked = 0
            try:
                with self._open("GET", target, {"Accept": "text/event-stream", **({"Last-Event-ID": cursor} if cursor else {})}) as stream:
                    for name, value, last_id in _read_stream(stream, cursor, self.maximum_bytes):
                        failures, cursor = 0, last_id
                        if name == "retry":
                            pause = int(value) / 1000
                        elif name == "gap":
                            yield Message(None, json.loads(value).get("reason", value), cursor)
                        elif name != "id":
                            yield Message(json.loads(value), None, cursor)
            except Problem as problem:
                if not problem.is_transient:
                    raise
                asked = problem.retry_after
            except (OSError, HTTPException):
                pass
            time.sleep(max(asked, _jittered(pause, failures, longest=max(30, pause))))
            failures += 1

    def cursor(self) -> str:
        """Returns the current position of the event stream. `events(after=…)` yields all events after it."""
        with self._open("GET", "/v1/events", {}) as stream:
            for _, _, last_id in _read_stream(stream, "", self.maximum_bytes):
                if last_id:
                    return last_id
        raise ConnectionError("the event stream ended before it sent a cursor")

    def _ask(self, method: str, target: str, body: Job | None = None, more: float = 0) -> bytes:
        end, failures = None, 0
        while True:
            try:
                with self._open(method, target, {}, body, more) as answer:
                    data = answer.read(self.maximum_bytes + 1)
                    if len(data) > self.maximum_bytes:
                        raise TooLarge(f"more than {self.maximum_bytes} bytes")
                    return data
            except (Problem, OSError, HTTPException) as error:
                asked = error.retry_after if isinstance(error, Problem) else 0
                if isinstance(error, Problem) and not error.is_transient:
                    raise
                end = end or time.monotonic() + self.retry_timeout
                pause = max(asked, _jittered(0.2, failures, longest=30))
                if time.monotonic() + pause >= end:
                    raise
                time.sleep(pause)
                failures += 1

    def _open(
        self, method: str, target: str, headers: dict[str, str], body: Job | None = None, more: float = 0
    ) -> HTTPResponse:
        request = urllib.request.Request(self.url + target, method=method, headers=headers)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if self.key:
            request.add_header("Authorization", f"Bearer {self.key}")
        try:
            return self._opener.open(request, timeout=self.read_timeout + more)
        except urllib.error.HTTPError as error:
            with error:
                raise Problem(error.code, error.read(1 << 20), error.headers.get("Retry-After")) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Rejects redirects. Gateways do not redirect, and the key must not be sent to other servers."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _jittered(base: float, failures: int, longest: float) -> float:
    return min(base * 2 ** min(failures, 16), longest) * random.uniform(1, 1.5)


def _read_stream(stream: HTTPResponse, cursor: str, limit: int) -> Iterator[tuple[str, str, str]]:
    """Yields (name, value, cursor) for each complete event, ("id", "", cursor) if only the cursor changed, and ("retry", milliseconds, cursor)."""
    name, data, last_id = "message", [], cursor
    size = 0
    while True:
        line = stream.readline(limit + 1)
        size += len(line)
        if size > limit:
            raise TooLarge(f"an event of more than {limit} bytes")
        if not line.endswith(b"\n"):
            return  # The end of the stream. An incomplete event is sent again after a reconnect.
        field, _, value = line.rstrip(b"\r\n").decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if line in (b"\n", b"\r\n"):
            cursor = last_id
            yield (name, "\n".join(data), cursor) if data else ("id", "", cursor)
            name, data, size = "message", [], 0
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            last_id = value
        elif field == "retry" and value.isdigit() and len(value) < 10:
            yield "retry", value, cursor
