"""What the clients do, without I/O: generators that yield requests and pauses, and receive responses. Client and AsyncClient drive them."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Union
from urllib.parse import quote, unquote, urlencode, urlsplit

from ._codec import decode, encode
from ._sse import Parser
from .errors import (
    Conflict,
    ConnectionFailed,
    HalcyonError,
    InvalidResponse,
    JobTimeout,
    NotDelivered,
    NotFound,
    Problem,
    problem,
)
from .events import Batch, Cancelled, Event, Failed, Info, Message, Ready, Superseded, Variant
from .failures import JobCancelled, JobSuperseded, failure
from .jobs import JobLike, Priority, Source, TemplateLike, to_json
from .urls import events_target, image_target

T = TypeVar("T")

_JSON, _NDJSON = "application/json", "application/x-ndjson"
_ENDS = ("ready", "failed", "cancelled", "superseded")


@dataclass(frozen=True)
class Request:
    """A request: to a path of the gateway, or to an absolute URL of another server, which does not receive the API key."""

    method: str
    target: str
    body: bytes | None = None
    content_type: str = _JSON
    headers: Mapping[str, str] | None = None
    wait: float = 0
    """The seconds for which the server may delay the response."""
    completes: bool = False
    """Whether the request is completed even if its caller is cancelled."""
    redirects: bool = False
    """Whether one redirect to another server is followed, without the API key."""


@dataclass(frozen=True)
class Response:
    """A complete response."""

    status: int
    body: bytes
    retry_after: str | None = None
    location: str | None = None


Operation = Generator[Union[Request, float], Any, T]
"""Yields requests, whose responses it receives or ConnectionFailed is thrown, and pauses in seconds. Returns the result."""


@dataclass(frozen=True)
class Options:
    """The time limits in seconds, and the limit of an image or event in bytes."""

    retry_timeout: float = 30
    job_timeout: float = 300
    read_timeout: float = 60
    maximum_bytes: int = 64 << 20


@dataclass(frozen=True)
class AcceptedJob:
    """A job that a gateway has accepted and written to the brokers. `keys` are those of its results."""

    id: str
    lane: str
    keys: tuple[str, ...]
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobState:
    """The state of a job: `accepted`, or the type of its last event."""

    id: str
    state: str
    event: Event | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self.state in _ENDS


@dataclass(frozen=True)
class Image:
    """An image that a job has made: the file, its properties, and the data of the event."""

    data: bytes
    variant: Variant
    ready: Ready


@dataclass(frozen=True)
class RejectedJob:
    """An invalid job of a batch, by its line or position, starting at 1."""

    line: int
    problem: Problem


@dataclass(frozen=True)
class BatchSubmission:
    """The jobs of a batch that were accepted. If a worker lists the jobs, there are `prefix` or `preset` in place of the numbers."""

    id: str
    accepted: int = 0
    rejected: int = 0
    missing: int = 0
    problems: tuple[RejectedJob, ...] = ()
    prefix: str | None = None
    preset: str | None = None


@dataclass(frozen=True)
class BatchFailure:
    """A failed job of a batch."""

    job: str
    code: str
    message: str
    record: str = ""
    index: int | None = None


@dataclass(frozen=True)
class RegisteredPreset:
    """A preset: the fields of its jobs, those that jobs may set themselves, and its `origin`: `settings` or `registered`."""

    name: str
    version: int
    job: Mapping[str, Any]
    overridable: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class BatchOptions:
    """Parameters of a new batch. Fields of jobs that have their own are not changed."""

    id: str | None = None
    tenant: str | None = None
    priority: Priority | None = None
    deadline: float | None = None
    webhook: str | None = None

    def query(self) -> dict[str, Any]:
        """The parameters, with an id, so that the request can be repeated."""
        return {**encode(self), "id": self.id or new_id()}


def new_id() -> str:
    """A random id."""
    return str(uuid.uuid4())


def jittered(base: float, failures: int, longest: float) -> float:
    """The pause after a number of failures: exponential, and random so that clients do not retry together."""
    return min(base * 2.0 ** min(failures, 16), longest) * random.uniform(1, 1.5)


class Operations:
    """The operations of a client with its options."""

    def __init__(self, options: Options) -> None:
        self.options = options

    # Requests

    def send(self, request: Request, until: float | None = None) -> Operation[bytes]:
        """Sends a request until it succeeds, for up to `retry_timeout` after the first failure, or until a time of time.monotonic()."""
        failures = 0
        while True:
            try:
                response: Response = yield request
                if response.status == 302 and request.redirects:
                    response = yield Request("GET", _location(response))
                if 200 <= response.status < 300:
                    return response.body
                raise problem(response.status, response.body, response.retry_after)
            except (Problem, ConnectionFailed) as error:
                failures += 1
                asked = 0.0
                if isinstance(error, Problem):
                    error.attempts, asked = failures, error.retry_after
                if not error.is_transient:
                    raise
                if failures == 1:
                    end = time.monotonic() + self.options.retry_timeout
                    until = end if until is None else min(until, end)
                pause = max(asked, jittered(0.2, failures - 1, longest=30))
                if until is not None and time.monotonic() + pause >= until:
                    raise
            yield pause

    def json(self, request: Request, until: float | None = None) -> Operation[Any]:
        """Sends a request and decodes the response."""
        body = yield from self.send(request, until)
        try:
            return json.loads(body)
        except ValueError as error:
            raise InvalidResponse(f"the response is not JSON: {body[:200]!r}") from error

    # Jobs

    def submit(self, job: JobLike) -> Operation[AcceptedJob]:
        fields = to_json(job)
        fields["id"] = fields.get("id") or new_id()
        accepted = yield from self.json(_post("/v1/jobs", fields))
        return _accepted(accepted)

    def submit_all(self, jobs: Iterable[JobLike]) -> Operation[list[AcceptedJob | Problem]]:
        fields = [{**to_json(job), "id": to_json(job).get("id") or new_id()} for job in jobs]
        if not fields:
            return []
        body = yield from self.send(Request("POST", "/v1/jobs", _ndjson(fields), _NDJSON, completes=True))
        lines = [json.loads(line) for line in body.splitlines()]
        if len(lines) != len(fields):
            raise InvalidResponse(f"{len(lines)} results for {len(fields)} jobs")
        return [_problem(line["problem"]) if "problem" in line else _accepted(line) for line in lines]

    def job_state(self, job_id: str, wait: float = 0, until: float | None = None) -> Operation[JobState]:
        target = f"/v1/jobs/{quote(job_id, safe='')}" + (f"?wait={wait:.3f}" if wait else "")
        state = yield from self.json(Request("GET", target, wait=wait), until)
        event = state.get("event")
        return JobState(state["id"], state["state"], Event.from_json(event) if event else None)

    def wait(self, job_id: str, timeout: float | None = None) -> Operation[Ready]:
        timeout = self.options.job_timeout if timeout is None else timeout
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            begun = time.monotonic()
            try:
                state = yield from self.job_state(job_id, min(25, left), until=end)
            except HalcyonError as error:
                if error.is_transient and time.monotonic() + 0.5 >= end:
                    break
                raise
            if state.is_terminal:
                return _ready(job_id, state)
            # Limits the rate at a gateway that responds at once.
            yield max(0.0, min(0.25 - (time.monotonic() - begun), end - time.monotonic()))
        raise JobTimeout(f"the job {job_id} has not ended within {timeout:g} s")

    def run(self, job: JobLike, timeout: float | None = None) -> Operation[Ready]:
        fields = to_json(job)
        fields["id"] = fields.get("id") or new_id()
        try:
            yield from self.submit(fields)
            return (yield from self.wait(fields["id"], timeout))
        except HalcyonError as error:
            if isinstance(error, JobTimeout):
                yield from self._abandon(fields["id"])
            raise
        except BaseException:  # An interrupt, or the cancellation of a task.
            yield from self._abandon(fields["id"])
            raise

    def _abandon(self, job_id: str) -> Operation[None]:
        """Cancels a job whose result nobody awaits. A failure only means that the job is done in vain."""
        try:
            yield _delete(f"/v1/jobs/{quote(job_id, safe='')}")
        except HalcyonError:
            pass

    def cancel(self, job_id: str) -> Operation[bool]:
        try:
            yield from self.send(_delete(f"/v1/jobs/{quote(job_id, safe='')}"))
        except Conflict:
            return False
        return True

    # Images

    def image(self, job: JobLike, timeout: float | None = None) -> Operation[Image]:
        ready = yield from self.run(_by_reference(job), timeout)
        if not ready.variants:
            raise InvalidResponse("the job has made no image")
        return Image((yield from self.fetch(ready.variants[0])), ready.variants[0], ready)

    def images(self, job: JobLike, timeout: float | None = None) -> Operation[list[Image]]:
        ready = yield from self.run(_by_reference(job), timeout)
        images = []
        for variant in ready.variants:
            images.append(Image((yield from self.fetch(variant)), variant, ready))
        return images

    def stored(self, key: str) -> Operation[bytes]:
        # The gateway may redirect to the result store (gateway.redirectsToStore).
        return (yield from self.send(Request("GET", image_target(key), redirects=True)))

    def fetch(self, variant: Variant) -> Operation[bytes]:
        if variant.content is not None:
            return variant.content
        elsewhere = [url for url in (variant.url, variant.put) if url]
        try:
            return (yield from self.stored(variant.key))
        except NotFound:
            if not elsewhere:
                raise
        for url in elsewhere:
            if urlsplit(url).path in ("", "/"):
                raise NotDelivered(f"the image was uploaded to a URL of {url} that only the submitter knows")
            try:
                return (yield from self.send(Request("GET", url)))
            except Problem:
                if url == elsewhere[-1]:
                    raise
        raise AssertionError

    def render(self, target: str) -> Operation[bytes]:
        return (yield from self.send(Request("GET", target, wait=self.options.read_timeout)))

    def info(self, target: str) -> Operation[Info]:
        return decode(Info, (yield from self.json(Request("GET", target, wait=self.options.read_timeout))))

    # Batches

    def submit_batch(
        self, jobs: Sequence[JobLike], options: BatchOptions, first: int, close: bool
    ) -> Operation[BatchSubmission]:
        body = _ndjson([to_json(job) for job in jobs])
        query = {**options.query(), "first": first, "close": str(close).lower()}
        return (yield from self._create(query, body, _NDJSON, first + len(jobs)))

    def submit_template(
        self, template: TemplateLike, sources: Sequence[Source], options: BatchOptions, first: int, close: bool
    ) -> Operation[BatchSubmission]:
        body = _bytes({"template": to_json(template), "sources": sources})
        query = {**options.query(), "first": first, "close": str(close).lower()}
        return (yield from self._create(query, body, _JSON, first + len(sources)))

    def submit_prefix(self, template: TemplateLike, prefix: str, options: BatchOptions) -> Operation[BatchSubmission]:
        body = _bytes({"template": to_json(template), "prefix": prefix})
        return (yield from self._create(options.query(), body, _JSON, 0))

    def _create(self, query: dict[str, Any], body: bytes, content_type: str, jobs: int) -> Operation[BatchSubmission]:
        request = Request("POST", f"/v1/batches?{urlencode(query)}", body, content_type, completes=True)
        try:
            return _submission((yield from self.json(request)))
        except Conflict as error:
            if error.attempts == 1:
                raise
            # The response to an earlier attempt, which has closed the batch, was lost.
            batch = yield from self.batch(query["id"])
            total = batch.total or 0
            return BatchSubmission(batch.id, total, max(0, jobs - total), prefix=batch.prefix)

    def batch(self, batch_id: str) -> Operation[Batch]:
        return decode(Batch, (yield from self.json(Request("GET", _batch(batch_id)))))

    def batches(self, limit: int) -> Operation[list[Batch]]:
        page = yield from self.json(Request("GET", f"/v1/batches?limit={limit}"))
        return [decode(Batch, batch) for batch in page["batches"]]

    def batch_failures(self, batch_id: str, start: int, limit: int) -> Operation[list[BatchFailure]]:
        failures: list[BatchFailure] = []
        target = f"{_batch(batch_id)}/failures?start={start}&limit={min(limit, 1000)}"
        while True:
            page = yield from self.json(Request("GET", target))
            failures += [decode(BatchFailure, one) for one in page["failures"]]
            if len(failures) >= limit or not page.get("next"):
                return failures[:limit]
            target = page["next"]

    def close_batch(self, batch_id: str, total: int) -> Operation[Batch]:
        return decode(Batch, (yield from self.json(_post(f"{_batch(batch_id)}/close", {"total": total}))))

    def cancel_batch(self, batch_id: str) -> Operation[Batch]:
        return decode(Batch, (yield from self.json(_delete(_batch(batch_id)))))

    def retry_batch(self, batch_id: str, options: BatchOptions) -> Operation[BatchSubmission]:
        request = _post(f"{_batch(batch_id)}/retry?{urlencode(options.query())}", {})
        return _submission((yield from self.json(request)))

    def wait_for_batch(self, batch_id: str, timeout: float | None) -> Operation[Batch]:
        timeout = self.options.job_timeout if timeout is None else timeout
        end, pause = time.monotonic() + timeout, 0.1
        while not (batch := (yield from self.batch(batch_id))).is_completed:
            left = end - time.monotonic()
            if left <= 0:
                raise JobTimeout(f"the batch {batch_id} is not completed after {timeout:g} s: {batch.ended} jobs have ended")
            yield min(pause, left)
            pause = min(pause * 1.5, 2.0)
        return batch

    # Presets

    def put_preset(
        self, name: str, job: TemplateLike, overridable: Iterable[str], version: int | None
    ) -> Operation[RegisteredPreset]:
        value: dict[str, Any] = {"job": to_json(job), "overridable": list(overridable)}
        if version is not None:
            value["version"] = version
        request = replace(_post(_preset(name), value), method="PUT")
        return decode(RegisteredPreset, (yield from self.json(request)))

    def preset(self, name: str) -> Operation[RegisteredPreset]:
        return decode(RegisteredPreset, (yield from self.json(Request("GET", _preset(name)))))

    def presets(self) -> Operation[list[RegisteredPreset]]:
        listed = yield from self.json(Request("GET", "/v1/presets"))
        return [decode(RegisteredPreset, preset) for preset in listed["presets"]]

    def delete_preset(self, name: str) -> Operation[None]:
        yield from self.send(_delete(_preset(name)))

    def rerender(self, name: str, options: BatchOptions, reload: bool) -> Operation[BatchSubmission]:
        query = {**options.query(), "reload": str(reload).lower()}
        request = _post(f"{_preset(name)}/rerender?{urlencode(query)}", {})
        return _submission((yield from self.json(request)))


class Subscription:
    """The state of a subscription across its connections."""

    def __init__(self, options: Options, after: str, **filters: Iterable[str]) -> None:
        self._options, self.cursor, self._retry, self._failures = options, after, 2.0, 0
        self._target = events_target(**filters)
        self._parser = Parser(after, options.maximum_bytes)

    def request(self) -> Request:
        """The request of the next connection."""
        self._parser = Parser(self.cursor, self._options.maximum_bytes)
        headers = {"Accept": "text/event-stream"}
        return Request("GET", self._target, headers={**headers, "Last-Event-ID": self.cursor} if self.cursor else headers)

    def receive(self, part: bytes) -> Generator[Message, None, None]:
        """The messages that are complete with this part of the response."""
        for item in self._parser.feed(part):
            self._failures, self.cursor = 0, item.last_id
            if item.name == "retry":
                self._retry = int(item.data) / 1000
            elif item.name == "gap":
                yield Message(None, str(json.loads(item.data).get("reason", item.data)), self.cursor)
            elif item.name != "id":
                yield Message(Event.from_json(item.data), None, self.cursor)

    def pause(self, error: HalcyonError | None) -> float:
        """The seconds until the next connection. Raises permanent errors."""
        if error and not error.is_transient:
            raise error
        asked = error.retry_after if isinstance(error, Problem) else 0
        self._failures += 1
        return max(asked, jittered(self._retry, self._failures - 1, longest=max(30, self._retry)))


def _post(target: str, value: Any) -> Request:
    return Request("POST", target, _bytes(value), completes=True)


def _delete(target: str) -> Request:
    return Request("DELETE", target, completes=True)


def _location(response: Response) -> str:
    """The target of a redirect. It must be absolute, because a path would be requested from the gateway, with the API key."""
    location = response.location or ""
    if not location.startswith(("http://", "https://")):
        raise InvalidResponse(f"redirected to {location!r}, which is not an HTTP URL")
    return location


def _batch(batch_id: str) -> str:
    return f"/v1/batches/{quote(batch_id, safe='')}"


def _preset(name: str) -> str:
    return f"/v1/presets/{quote(name, safe='')}"


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _ndjson(values: Sequence[Any]) -> bytes:
    return b"".join(_bytes(value) + b"\n" for value in values)


def _by_reference(job: JobLike) -> dict[str, Any]:
    """The job with a delivery from which the client can read: stored images need not be in the event too."""
    fields = to_json(job)
    return {**fields, "delivery": "reference"} if fields.get("delivery") == "inline" else fields


def _accepted(said: Mapping[str, Any]) -> AcceptedJob:
    keys = tuple(unquote(path.rsplit("/", 1)[-1]) for path in said.get("images", ()))
    return decode(AcceptedJob, {**said, "keys": keys})


def _problem(said: Mapping[str, Any]) -> Problem:
    return problem(int(said.get("status", 0)), said)


def _submission(said: Mapping[str, Any]) -> BatchSubmission:
    rejected = tuple(RejectedJob(one["line"], _problem(one["problem"])) for one in said.get("problems", ()))
    return replace(decode(BatchSubmission, {**said, "problems": ()}), problems=rejected)


def _ready(job_id: str, state: JobState) -> Ready:
    """The data of the event of a job that has ended. Raises the error of another end."""
    match state.event.data if state.event else None:
        case Ready() as ready:
            return ready
        case Failed() as failed:
            raise failure(failed)
        case Cancelled():
            raise JobCancelled(job_id)
        case Superseded(superseded_by=generation):
            raise JobSuperseded(job_id, generation)
    raise InvalidResponse(f"the job {job_id} has ended as {state.state}, and its event is not stored any more")
