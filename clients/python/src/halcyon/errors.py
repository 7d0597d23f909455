"""Errors of the client, with a class for each kind of problem of a gateway. The failures of jobs are in halcyon.failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar


class HalcyonError(Exception):
    """The base of all errors of this package."""

    @property
    def is_transient(self) -> bool:
        """Whether the same request or job may succeed later."""
        return False


class ConnectionFailed(HalcyonError, ConnectionError):
    """The gateway could not be reached, or the connection broke."""

    @property
    def is_transient(self) -> bool:
        return True


class JobTimeout(HalcyonError, TimeoutError):
    """The job or the batch has not ended within the time-out."""

    @property
    def is_transient(self) -> bool:
        return True


class TooLarge(HalcyonError):
    """A response or an event exceeds `maximum_bytes`."""


class InvalidResponse(HalcyonError):
    """The response is not one of a gateway that this version understands."""


class NotDelivered(HalcyonError):
    """The image cannot be read by the client: it was uploaded to a URL that only the submitter of the job knows."""


class Problem(HalcyonError):
    """A request that the gateway refused (RFC 9457).

    Attributes:
        status: The HTTP status.
        kind: The kind of problem, such as `not-found`; `about:blank` if the response does not say.
        title: A summary that is the same for all problems of the kind.
        detail: What is wrong, and often how to fix it.
        code: The failure code, if the problem concerns a job.
        retry_after: The seconds after which the request may be repeated; 0 if the gateway did not say.
        attempts: The number of times that the request was sent.
    """

    kind: str = "about:blank"
    by_kind: ClassVar[dict[str, type[Problem]]] = {}

    def __init_subclass__(cls) -> None:
        Problem.by_kind[cls.kind] = cls

    def __init__(self, said: Mapping[str, Any], status: int, retry_after: float = 0) -> None:
        self.status = status
        self.kind = str(said.get("type") or "about:blank").rsplit("/", 1)[-1]
        self.title = str(said.get("title") or f"HTTP status {status}")
        self.detail = str(said.get("detail") or "the response has no details")
        self.code: str | None = said.get("code")
        self.retry_after = retry_after
        self.attempts = 1
        super().__init__(f"{self.title} ({status}): {self.detail}")

    @property
    def is_transient(self) -> bool:
        return self.status in (408, 429, 502, 503, 504)


class BadRequest(Problem):
    """A parameter or the body of the request is invalid."""

    kind = "bad-request"


class InvalidJob(Problem):
    """The job is invalid. `detail` names the field, and `code` is `invalid_job`."""

    kind = "invalid-job"


class Unauthorized(Problem):
    """The API key is missing or wrong."""

    kind = "unauthorized"


class Forbidden(Problem):
    """The API key does not have the scope, or the signature of a URL is wrong or expired."""

    kind = "forbidden"


class NotFound(Problem):
    """There is no such job, image, batch or preset (any more)."""

    kind = "not-found"


class MethodNotAllowed(Problem):
    """The route does not have this method."""

    kind = "method-not-allowed"


class NotAcceptable(Problem):
    """No format of the response is acceptable."""

    kind = "not-acceptable"


class Conflict(Problem):
    """The state does not allow the request: a job has ended, a batch is closed or belongs to another key, a preset is one of the settings."""

    kind = "conflict"


class Gone(Problem):
    """The source does not exist any more."""

    kind = "gone"


class PreconditionFailed(Problem):
    """The image is not the one that the request expects."""

    kind = "precondition-failed"


class RequestTooLarge(Problem):
    """The body, a job or the number of jobs is too large."""

    kind = "too-large"


class UnsupportedMediaType(Problem):
    """The media type of the body is not supported."""

    kind = "unsupported-media-type"


class RangeNotSatisfiable(Problem):
    """The range lies outside of the image."""

    kind = "range-not-satisfiable"


class Misdirected(Problem):
    """The host of the request is not one of the gateway."""

    kind = "misdirected"


class UnprocessableImage(Problem):
    """The source of a rendering is not an image that can be processed."""

    kind = "unprocessable-image"


class TooManyRequests(Problem):
    """The client exceeds one of its limits."""

    kind = "too-many-requests"


class BadOrigin(Problem):
    """The origin of a rendering's source failed."""

    kind = "bad-origin"


class Unavailable(Problem):
    """Kafka or Redis is down, or the gateway is overloaded or shutting down."""

    kind = "unavailable"


class GatewayTimeout(Problem):
    """The rendering took longer than the client waits."""

    kind = "timeout"


def problem(status: int, body: bytes | Mapping[str, Any], retry_after: str | None = None) -> Problem:
    """The problem of a response, of the class of its kind. The body may be anything, such as a page of a proxy."""
    said: Any = body
    if isinstance(body, bytes):
        try:
            said = json.loads(body)
        except ValueError:
            said = None
    if not isinstance(said, Mapping):
        said = {}
    seconds = float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else 0
    kind = str(said.get("type")).rsplit("/", 1)[-1]
    return Problem.by_kind.get(kind, Problem)(said, status, min(seconds, 86_400))
