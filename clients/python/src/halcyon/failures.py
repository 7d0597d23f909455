"""Jobs that ended without an image, with a class for each failure code.

    try:
        image = client.image(job)
    except failures.NotFound:
        ...
    except failures.JobFailed as failure:
        print(failure.code, failure.message, failure.retryable)
"""

from __future__ import annotations

from typing import ClassVar

from .errors import HalcyonError
from .events import Failed


class JobEnded(HalcyonError):
    """The job ended without an image. `job_id` is its id."""

    job_id: str


class JobCancelled(JobEnded):
    """The job was cancelled."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(f"the job {job_id} was cancelled")


class JobSuperseded(JobEnded):
    """A job of a higher generation for the same slot superseded this one."""

    def __init__(self, job_id: str, generation: int) -> None:
        self.job_id, self.generation = job_id, generation
        super().__init__(f"the job {job_id} was superseded by generation {generation}")


class JobFailed(JobEnded):
    """The job failed. Codes of later versions of Halcyon are raised as this class itself.

    Attributes:
        code: The failure code.
        message: A description, whose wording may change.
        retryable: Whether the same job may succeed if it is submitted again later.
        event: All data of the event.
    """

    code: str = ""
    by_code: ClassVar[dict[str, type[JobFailed]]] = {}

    def __init_subclass__(cls) -> None:
        JobFailed.by_code[cls.code] = cls

    def __init__(self, event: Failed) -> None:
        self.event, self.job_id = event, event.job.id
        self.code, self.message, self.retryable = event.code, event.message, event.retryable
        super().__init__(f"failed: {event.code}: {event.message}")

    @property
    def is_transient(self) -> bool:
        return self.retryable


class InvalidJob(JobFailed):
    """The message is not a valid job."""

    code = "invalid_job"


class UnsupportedSource(JobFailed):
    """The scheme or kind of source is not supported."""

    code = "unsupported_source"


class BlockedAddress(JobFailed):
    """The host of the source has an address that is not allowed."""

    code = "blocked_address"


class NotFound(JobFailed):
    """404, or no such file or object."""

    code = "not_found"


class Gone(JobFailed):
    """410."""

    code = "gone"


class Forbidden(JobFailed):
    """401, 403 or 451, or a file outside of the allowed directories."""

    code = "forbidden"


class HTTPError(JobFailed):
    """Another error status, or a broken HTTP exchange."""

    code = "http_error"


class DNSError(JobFailed):
    """The host name has no address."""

    code = "dns_error"


class ConnectError(JobFailed):
    """The connection to the host failed."""

    code = "connect_error"


class OriginUnavailable(JobFailed):
    """The circuit breaker of the origin is open."""

    code = "origin_unavailable"


class TLSError(JobFailed):
    """The certificate of the host is not trusted, or the handshake failed."""

    code = "tls_error"


class Timeout(JobFailed):
    """A time limit of the transfer was exceeded."""

    code = "timeout"


class TooManyRedirects(JobFailed):
    """There were more redirects than allowed."""

    code = "too_many_redirects"


class TooLarge(JobFailed):
    """The source has more bytes than allowed."""

    code = "too_large"


class TooManyPixels(JobFailed):
    """The source or the output has more pixels than allowed."""

    code = "too_many_pixels"


class UnsupportedFormat(JobFailed):
    """The bytes are not an image in a supported format."""

    code = "unsupported_format"


class CorruptImage(JobFailed):
    """The bytes start like an image but are damaged."""

    code = "corrupt_image"


class Expired(JobFailed):
    """The deadline has passed."""

    code = "expired"


class ProviderError(JobFailed):
    """A provider other than HTTP failed."""

    code = "provider_error"


class Poison(JobFailed):
    """The job crashed or hung workers."""

    code = "poison"


class Internal(JobFailed):
    """A defect of Halcyon, or a problem of the machine."""

    code = "internal"


def failure(event: Failed) -> JobFailed:
    """The error of a failed job, of the class of its code."""
    return JobFailed.by_code.get(event.code, JobFailed)(event)
