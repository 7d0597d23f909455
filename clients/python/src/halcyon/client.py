"""The client with blocking calls."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from . import __version__
from ._operations import (
    AcceptedJob,
    BatchFailure,
    BatchOptions,
    BatchSubmission,
    Image,
    JobState,
    Operation,
    Operations,
    Options,
    RegisteredPreset,
    Request,
    Response,
    Subscription,
)
from .errors import ConnectionFailed, HalcyonError, Problem, TooLarge, problem
from .events import Batch, Info, Message, Ready, Variant
from .jobs import JobLike, Priority, Source, TemplateLike
from .urls import info_target, render_target

T = TypeVar("T")


class Client:
    """A client of a Halcyon cluster, connected to one of its gateways. Can be used by several threads.

    Args:
        url: The URL of the gateway.
        key: An API key, which is sent to the gateway only.
        retry_timeout: The seconds for which failed requests are repeated.
        job_timeout: The seconds to wait for the end of a job or batch.
        read_timeout: The seconds without data after which a connection counts as lost.
        maximum_bytes: The size limit of an image or event.
        ssl_context: The context of HTTPS connections.

    All methods raise halcyon.errors.Problem if the gateway refuses the request, ConnectionFailed if it cannot be reached, TooLarge and
    InvalidResponse.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        retry_timeout: float = 30,
        job_timeout: float = 300,
        read_timeout: float = 60,
        maximum_bytes: int = 64 << 20,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._options = Options(retry_timeout, job_timeout, read_timeout, maximum_bytes)
        self._operations = Operations(self._options)
        self._connections = _Connections(url, key, self._options, ssl_context)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._connections.close()

    # Jobs

    def submit(self, job: JobLike) -> AcceptedJob:
        """Submits a job. The brokers have stored it when this returns. Without a response, it is sent again with the same id.

        Raises halcyon.errors.InvalidJob if the job is invalid.
        """
        return self._run(self._operations.submit(job))

    def submit_all(self, jobs: Iterable[JobLike]) -> list[AcceptedJob | Problem]:
        """Submits many jobs in one request. Returns the accepted job or the problem of each, in order."""
        return self._run(self._operations.submit_all(jobs))

    def job_state(self, job_id: str, wait: float = 0) -> JobState:
        """The state of a job, after its end or `wait` seconds. Raises halcyon.errors.NotFound for an unknown job."""
        return self._run(self._operations.job_state(job_id, wait))

    def wait(self, job_id: str, timeout: float | None = None) -> Ready:
        """Waits until a job is ready, for up to `timeout` seconds (`job_timeout`).

        Raises a class of halcyon.failures if the job ends otherwise; JobTimeout.
        """
        return self._run(self._operations.wait(job_id, timeout))

    def run(self, job: JobLike, timeout: float | None = None) -> Ready:
        """Submits a job and waits until it is ready. Cancels the job on a time-out and on KeyboardInterrupt. Raises like submit and wait."""
        return self._run(self._operations.run(job, timeout))

    def cancel(self, job_id: str) -> bool:
        """Cancels a job; its event tells whether that was in time. Returns False if it has already ended."""
        return self._run(self._operations.cancel(job_id))

    # Images

    def image(self, job: JobLike, timeout: float | None = None) -> Image:
        """Submits a job, waits for its end and reads its first image. Raises like run."""
        return self._run(self._operations.image(job, timeout))

    def images(self, job: JobLike, timeout: float | None = None) -> list[Image]:
        """Like image, but reads the images of all variants, without those that could not be made."""
        return self._run(self._operations.images(job, timeout))

    def fetch(self, variant: Variant) -> bytes:
        """Reads the file of a variant of a ready event: from the event, from the gateway, from the public URL of the result store, or from the
        address to which it was uploaded.

        An image that is neither stored nor in the event can be read once. Raises halcyon.errors.NotFound if it does not exist any more;
        NotDelivered if only the submitter knows its address.
        """
        return self._run(self._operations.fetch(variant))

    def stored(self, key: str) -> bytes:
        """Reads a stored result by its key. Raises halcyon.errors.NotFound if there is none."""
        return self._run(self._operations.stored(key))

    def render(self, job: JobLike) -> bytes:
        """Reads the image of a job from /v1/render, which renders it if necessary. Problems have the failure code of the job."""
        return self._run(self._operations.render(render_target(job)))

    def info(self, job: JobLike) -> Info:
        """Reads the facts about the source of a job from /v1/info. No image is rendered."""
        return self._run(self._operations.info(info_target(job)))

    # Batches

    def submit_batch(
        self,
        jobs: Sequence[JobLike],
        *,
        id: str | None = None,
        first: int = 0,
        close: bool = True,
        tenant: str | None = None,
        priority: Priority | None = None,
        deadline: float | None = None,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Submits jobs as a batch, or as a part of one.

        Args:
            jobs: The jobs. Invalid ones are rejected, and reported in `problems`.
            id: The id of the batch; a random one by default.
            first: The index of the first job: the number of jobs in earlier parts.
            close: Whether these are the last jobs.
            tenant, priority, deadline: Fields of jobs that have none.
            webhook: A webhook that is notified of the completion of the batch.

        Raises halcyon.errors.Conflict if the batch is closed or belongs to another key; BadRequest if no job is valid.
        """
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return self._run(self._operations.submit_batch(jobs, options, first, close))

    def submit_template(
        self,
        template: TemplateLike,
        sources: Sequence[Source],
        *,
        id: str | None = None,
        first: int = 0,
        close: bool = True,
        tenant: str | None = None,
        priority: Priority | None = None,
        deadline: float | None = None,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Submits a batch of jobs that differ in their sources only. Parameters and errors are those of submit_batch."""
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return self._run(self._operations.submit_template(template, sources, options, first, close))

    def submit_prefix(
        self,
        template: TemplateLike,
        prefix: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        priority: Priority | None = None,
        deadline: float | None = None,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Submits a batch of a job for each object whose URL begins with a prefix, `s3://bucket/path/`. A worker lists the objects."""
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return self._run(self._operations.submit_prefix(template, prefix, options))

    def batch(self, batch_id: str) -> Batch:
        """The state of a batch. Raises halcyon.errors.NotFound for an unknown batch."""
        return self._run(self._operations.batch(batch_id))

    def batches(self, limit: int = 100) -> list[Batch]:
        """The newest batches, at most 1000."""
        return self._run(self._operations.batches(limit))

    def batch_failures(self, batch_id: str, *, start: int = 0, limit: int = 1000) -> list[BatchFailure]:
        """The failed jobs of a batch in the order of their ends, without the first `start`. Reads as many pages as needed."""
        return self._run(self._operations.batch_failures(batch_id, start, limit))

    def close_batch(self, batch_id: str, total: int) -> Batch:
        """Sets the number of jobs of an open batch. Raises halcyon.errors.Conflict if it is closed with another number."""
        return self._run(self._operations.close_batch(batch_id, total))

    def cancel_batch(self, batch_id: str) -> Batch:
        """Cancels all jobs of a batch that have not ended. Raises halcyon.errors.Conflict for a completed batch."""
        return self._run(self._operations.cancel_batch(batch_id))

    def retry_batch(
        self,
        batch_id: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        priority: Priority | None = None,
        deadline: float | None = None,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Submits the failed jobs of a completed batch as a new batch.

        Raises halcyon.errors.Conflict if the batch is not completed or no job failed.
        """
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return self._run(self._operations.retry_batch(batch_id, options))

    def wait_for_batch(self, batch_id: str, timeout: float | None = None) -> Batch:
        """Waits until a batch is completed, for up to `timeout` seconds (`job_timeout`). Raises JobTimeout."""
        return self._run(self._operations.wait_for_batch(batch_id, timeout))

    # Presets

    def put_preset(
        self, name: str, job: TemplateLike, *, overridable: Iterable[str] = (), version: int | None = None
    ) -> RegisteredPreset:
        """Registers or replaces a preset. Needs the scope `admin`, like all methods of presets.

        Args:
            name: The name of the preset.
            job: The fields of its jobs.
            overridable: The JSON names of fields that jobs may set themselves.
            version: The version; the next one by default.

        Raises halcyon.errors.Conflict for a preset of the settings and an old version.
        """
        return self._run(self._operations.put_preset(name, job, overridable, version))

    def preset(self, name: str) -> RegisteredPreset:
        """A preset. Raises halcyon.errors.NotFound if there is none with this name."""
        return self._run(self._operations.preset(name))

    def presets(self) -> list[RegisteredPreset]:
        """All presets, ordered by name."""
        return self._run(self._operations.presets())

    def delete_preset(self, name: str) -> None:
        """Deletes a preset. Raises halcyon.errors.NotFound if there is none with this name."""
        self._run(self._operations.delete_preset(name))

    def rerender(
        self,
        name: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        priority: Priority | None = None,
        reload: bool = False,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Makes the results of a preset again, as a batch. With `reload`, the sources are fetched again."""
        options = BatchOptions(id, tenant, priority, None, webhook)
        return self._run(self._operations.rerender(name, options, reload))

    # Events

    def events(
        self,
        *,
        types: Iterable[str] = (),
        jobs: Iterable[str] = (),
        batches: Iterable[str] = (),
        sources: Iterable[str] = (),
        after: str = "",
    ) -> Generator[Message, None, None]:
        """Yields the events that match all filters, from now on or after a cursor, without end.

        A connection that breaks is opened again after a delay and resumes: no event is missed or repeated. Close the iterator to end the
        subscription. Raises permanent errors.

        Args:
            types: Short names of types, such as `ready` or `batch.completed`.
            jobs, batches, sources: Ids of jobs, ids of batches, and sources as given in jobs.
            after: The position, as returned by cursor() or in a message.
        """
        subscription = Subscription(self._options, after, types=types, jobs=jobs, batches=batches, sources=sources)
        while True:
            error: HalcyonError | None = None
            try:
                with closing(self._connections.stream(subscription.request())) as parts:
                    for part in parts:
                        yield from subscription.receive(part)
            except HalcyonError as failure:
                error = failure
            time.sleep(subscription.pause(error))

    def cursor(self) -> str:
        """The current position in the stream of events: `events(after=…)` yields all later events."""
        subscription = Subscription(self._options, "")
        with closing(self._connections.stream(subscription.request())) as parts:
            for part in parts:
                for _ in subscription.receive(part):
                    pass
                if subscription.cursor:
                    return subscription.cursor
        raise ConnectionFailed("the event stream ended before its first position")

    def _run(self, operation: Operation[T]) -> T:
        """Does what an operation yields until it returns."""
        step: Any = None
        error: BaseException | None = None
        while True:
            try:
                wanted = operation.send(step) if error is None else operation.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            step = error = None
            try:
                if isinstance(wanted, Request):
                    step = self._connections.send(wanted)
                else:
                    time.sleep(wanted)
            except BaseException as raised:
                error = raised


class _Connections:
    """Sends requests over HTTP/1.1 and keeps connections to the gateway for the next ones."""

    def __init__(self, url: str, key: str | None, options: Options, ssl_context: ssl.SSLContext | None) -> None:
        self._gateway, self._key, self._options = urlsplit(url.rstrip("/")), key, options
        if self._gateway.scheme not in ("http", "https") or not self._gateway.hostname:
            raise ValueError(f"{url!r} is not an HTTP URL")
        self._ssl, self._lock = ssl_context, threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def send(self, request: Request) -> Response:
        """Sends a request and reads the response. Raises ConnectionFailed; TooLarge."""
        with _connection_errors():
            with closing(self._exchange(request)) as exchange:
                answer = next(exchange)
                body = answer.read(self._options.maximum_bytes + 1)
                if len(body) > self._options.maximum_bytes:
                    raise TooLarge(f"a response of more than {self._options.maximum_bytes} bytes")
                if answer.length:
                    raise http.client.IncompleteRead(body, answer.length)
                next(exchange, None)
                return Response(answer.status, body, answer.headers.get("Retry-After"), answer.headers.get("Location"))

    def stream(self, request: Request) -> Generator[bytes, None, None]:
        """Yields the parts of a response until its end. Raises the problem of the response; ConnectionFailed."""
        with _connection_errors():
            with closing(self._exchange(request)) as exchange:
                answer = next(exchange)
                if answer.status != 200:
                    raise problem(answer.status, answer.read(1 << 20), answer.headers.get("Retry-After"))
                while part := answer.read1(1 << 16):
                    yield part

    def _exchange(self, request: Request) -> Generator[http.client.HTTPResponse, None, None]:
        """Yields a response, and keeps the connection if it is advanced after the response was read."""
        to_gateway = request.target.startswith("/")
        target, headers = request.target, {"User-Agent": f"halcyon-python/{__version__}", **(request.headers or {})}
        if to_gateway:
            target = self._gateway.path + target
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
        else:
            other = urlsplit(request.target)
            target = (other.path or "/") + (f"?{other.query}" if other.query else "")
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        connection = self._pop() if to_gateway else None
        try:
            if connection is not None:
                try:
                    answer = self._begin(connection, request, target, headers)
                except (ConnectionError, http.client.BadStatusLine):
                    # The server has closed the idle connection.
                    connection.close()
                    connection = None
            if connection is None:
                connection = self._connection(self._gateway if to_gateway else urlsplit(request.target))
                answer = self._begin(connection, request, target, headers)
            yield answer
            if to_gateway and answer.isclosed() and connection.sock is not None:
                with self._lock:
                    self._idle.append(connection)
                connection = None
        finally:
            if connection is not None:
                connection.close()

    def _pop(self) -> http.client.HTTPConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _connection(self, url: SplitResult) -> http.client.HTTPConnection:
        if url.scheme == "https":
            return http.client.HTTPSConnection(
                url.hostname or "", url.port, timeout=self._options.read_timeout, context=self._ssl
            )
        return http.client.HTTPConnection(url.hostname or "", url.port, timeout=self._options.read_timeout)

    def _begin(
        self, connection: http.client.HTTPConnection, request: Request, target: str, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        timeout = self._options.read_timeout + request.wait
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        connection.request(request.method, target, request.body, headers)
        return connection.getresponse()


@contextmanager
def _connection_errors() -> Iterator[None]:
    """Raises ConnectionFailed for the errors of sockets and of HTTP."""
    try:
        yield
    except HalcyonError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
