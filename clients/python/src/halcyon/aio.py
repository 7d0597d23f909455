"""The client for asyncio. Its methods are those of halcyon.Client, which documents them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

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


class AsyncClient:
    """A client of a Halcyon cluster for asyncio. Arguments and errors are those of halcyon.Client.

    When a task is cancelled, requests that change something are still completed, and run, image and images cancel their job.
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

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections. The client can still be used."""
        self._connections.close()

    async def submit(self, job: JobLike) -> AcceptedJob:
        """Submits a job."""
        return await self._run(self._operations.submit(job))

    async def submit_all(self, jobs: Iterable[JobLike]) -> list[AcceptedJob | Problem]:
        """Submits many jobs in one request."""
        return await self._run(self._operations.submit_all(jobs))

    async def job_state(self, job_id: str, wait: float = 0) -> JobState:
        """The state of a job, after its end or `wait` seconds."""
        return await self._run(self._operations.job_state(job_id, wait))

    async def wait(self, job_id: str, timeout: float | None = None) -> Ready:
        """Waits until a job is ready."""
        return await self._run(self._operations.wait(job_id, timeout))

    async def run(self, job: JobLike, timeout: float | None = None) -> Ready:
        """Submits a job and waits until it is ready. Cancels the job on a time-out and when the task is cancelled."""
        return await self._run(self._operations.run(job, timeout))

    async def cancel(self, job_id: str) -> bool:
        """Cancels a job. Returns False if it has already ended."""
        return await self._run(self._operations.cancel(job_id))

    async def image(self, job: JobLike, timeout: float | None = None) -> Image:
        """Submits a job, waits for its end and reads its first image."""
        return await self._run(self._operations.image(job, timeout))

    async def images(self, job: JobLike, timeout: float | None = None) -> list[Image]:
        """Like image, but reads the images of all variants."""
        return await self._run(self._operations.images(job, timeout))

    async def fetch(self, variant: Variant) -> bytes:
        """Reads the file of a variant of a ready event, however it was delivered."""
        return await self._run(self._operations.fetch(variant))

    async def stored(self, key: str) -> bytes:
        """Reads a stored result by its key."""
        return await self._run(self._operations.stored(key))

    async def render(self, job: JobLike) -> bytes:
        """Reads the image of a job from /v1/render."""
        return await self._run(self._operations.render(render_target(job)))

    async def info(self, job: JobLike) -> Info:
        """Reads the facts about the source of a job from /v1/info."""
        return await self._run(self._operations.info(info_target(job)))

    async def submit_batch(
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
        """Submits jobs as a batch, or as a part of one."""
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return await self._run(self._operations.submit_batch(jobs, options, first, close))

    async def submit_template(
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
        """Submits a batch of jobs that differ in their sources only."""
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return await self._run(self._operations.submit_template(template, sources, options, first, close))

    async def submit_prefix(
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
        """Submits a batch of a job for each object whose URL begins with a prefix."""
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return await self._run(self._operations.submit_prefix(template, prefix, options))

    async def batch(self, batch_id: str) -> Batch:
        """The state of a batch."""
        return await self._run(self._operations.batch(batch_id))

    async def batches(self, limit: int = 100) -> list[Batch]:
        """The newest batches."""
        return await self._run(self._operations.batches(limit))

    async def batch_failures(self, batch_id: str, *, start: int = 0, limit: int = 1000) -> list[BatchFailure]:
        """The failed jobs of a batch in the order of their ends."""
        return await self._run(self._operations.batch_failures(batch_id, start, limit))

    async def close_batch(self, batch_id: str, total: int) -> Batch:
        """Sets the number of jobs of an open batch."""
        return await self._run(self._operations.close_batch(batch_id, total))

    async def cancel_batch(self, batch_id: str) -> Batch:
        """Cancels all jobs of a batch that have not ended."""
        return await self._run(self._operations.cancel_batch(batch_id))

    async def retry_batch(
        self,
        batch_id: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        priority: Priority | None = None,
        deadline: float | None = None,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Submits the failed jobs of a completed batch as a new batch."""
        options = BatchOptions(id, tenant, priority, deadline, webhook)
        return await self._run(self._operations.retry_batch(batch_id, options))

    async def wait_for_batch(self, batch_id: str, timeout: float | None = None) -> Batch:
        """Waits until a batch is completed."""
        return await self._run(self._operations.wait_for_batch(batch_id, timeout))

    async def put_preset(
        self, name: str, job: TemplateLike, *, overridable: Iterable[str] = (), version: int | None = None
    ) -> RegisteredPreset:
        """Registers or replaces a preset."""
        return await self._run(self._operations.put_preset(name, job, overridable, version))

    async def preset(self, name: str) -> RegisteredPreset:
        """A preset."""
        return await self._run(self._operations.preset(name))

    async def presets(self) -> list[RegisteredPreset]:
        """All presets, ordered by name."""
        return await self._run(self._operations.presets())

    async def delete_preset(self, name: str) -> None:
        """Deletes a preset."""
        await self._run(self._operations.delete_preset(name))

    async def rerender(
        self,
        name: str,
        *,
        id: str | None = None,
        tenant: str | None = None,
        priority: Priority | None = None,
        reload: bool = False,
        webhook: str | None = None,
    ) -> BatchSubmission:
        """Makes the results of a preset again, as a batch."""
        options = BatchOptions(id, tenant, priority, None, webhook)
        return await self._run(self._operations.rerender(name, options, reload))

    async def events(
        self,
        *,
        types: Iterable[str] = (),
        jobs: Iterable[str] = (),
        batches: Iterable[str] = (),
        sources: Iterable[str] = (),
        after: str = "",
    ) -> AsyncGenerator[Message, None]:
        """Yields the events that match all filters, from now on or after a cursor, without end."""
        subscription = Subscription(self._options, after, types=types, jobs=jobs, batches=batches, sources=sources)
        while True:
            error: HalcyonError | None = None
            try:
                async with aclosing(self._connections.stream(subscription.request())) as parts:
                    async for part in parts:
                        for message in subscription.receive(part):
                            yield message
            except HalcyonError as failure:
                error = failure
            await asyncio.sleep(subscription.pause(error))

    async def cursor(self) -> str:
        """The current position in the stream of events."""
        subscription = Subscription(self._options, "")
        async with aclosing(self._connections.stream(subscription.request())) as parts:
            async for part in parts:
                for _ in subscription.receive(part):
                    pass
                if subscription.cursor:
                    return subscription.cursor
        raise ConnectionFailed("the event stream ended before its first position")

    async def _run(self, operation: Operation[T]) -> T:
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
                if not isinstance(wanted, Request):
                    await asyncio.sleep(wanted)
                elif wanted.completes:
                    step = await _completed(asyncio.ensure_future(self._connections.send(wanted)))
                else:
                    step = await self._connections.send(wanted)
            except BaseException as raised:
                error = raised


async def _completed(task: asyncio.Future[T]) -> T:
    """Waits for a request, also if the current task is cancelled meanwhile."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


class _Connection:
    """A connection with HTTP/1.1."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float) -> None:
        self._reader, self._writer, self._timeout = reader, writer, timeout
        self.status, self.headers, self.is_reusable = 0, dict[str, str](), False

    def close(self) -> None:
        self._writer.close()

    async def begin(self, method: str, target: str, headers: dict[str, str], body: bytes | None, wait: float) -> None:
        """Sends a request and reads the head of the response."""
        head = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if body is not None or method in ("POST", "PUT"):
            head.append(f"Content-Length: {len(body or b'')}")
        self.is_reusable = False
        self._writer.write("\r\n".join([*head, "", ""]).encode("latin-1") + (body or b""))
        await asyncio.wait_for(self._writer.drain(), self._timeout)
        self.status = 100
        while 100 <= self.status < 200:
            line = await self._line(self._timeout + wait)
            version, status, *_ = line.split(" ", 2) + [""]
            if not version.startswith("HTTP/1.") or not status.isdigit():
                raise ConnectionFailed(f"the response begins with {line[:80]!r}")
            self.status, self.headers = int(status), {}
            while line := await self._line(self._timeout):
                name, _, value = line.partition(":")
                self.headers[name.lower()] = value.strip()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yields the parts of the body."""
        closes = self.headers.get("connection", "").lower() == "close"
        if self.status in (204, 304):
            pass
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self._line(self._timeout)).partition(";")[0], 16):
                async for part in self._exactly(size):
                    yield part
                await self._line(self._timeout)
            while await self._line(self._timeout):
                pass
        elif "content-length" in self.headers:
            async for part in self._exactly(int(self.headers["content-length"])):
                yield part
        else:
            closes = True
            while part := await asyncio.wait_for(self._reader.read(1 << 16), self._timeout):
                yield part
        self.is_reusable = not closes

    async def _exactly(self, size: int) -> AsyncGenerator[bytes, None]:
        while size:
            part = await asyncio.wait_for(self._reader.read(min(size, 1 << 16)), self._timeout)
            if not part:
                raise ConnectionFailed("the connection was closed in the middle of a response")
            size -= len(part)
            yield part

    async def _line(self, timeout: float) -> str:
        line = await asyncio.wait_for(self._reader.readline(), timeout)
        if not line.endswith(b"\n"):
            raise ConnectionFailed("the connection was closed before the end of a response")
        return line.rstrip(b"\r\n").decode("latin-1")


class _Connections:
    """Sends requests over HTTP/1.1 and keeps connections to the gateway for the next ones."""

    def __init__(self, url: str, key: str | None, options: Options, ssl_context: ssl.SSLContext | None) -> None:
        self._gateway, self._key, self._options, self._ssl = urlsplit(url.rstrip("/")), key, options, ssl_context
        if self._gateway.scheme not in ("http", "https") or not self._gateway.hostname:
            raise ValueError(f"{url!r} is not an HTTP URL")
        self._idle: list[_Connection] = []

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def send(self, request: Request) -> Response:
        """Sends a request and reads the response. Raises ConnectionFailed; TooLarge."""
        body = bytearray()
        with _connection_errors():
            async with aclosing(self._exchange(request)) as exchange:
                connection = await anext(exchange)
                async for part in connection.parts():
                    body += part
                    if len(body) > self._options.maximum_bytes:
                        raise TooLarge(f"a response of more than {self._options.maximum_bytes} bytes")
                await anext(exchange, None)
                headers = connection.headers
                return Response(connection.status, bytes(body), headers.get("retry-after"), headers.get("location"))

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yields the parts of a response until its end. Raises the problem of the response; ConnectionFailed."""
        with _connection_errors():
            async with aclosing(self._exchange(request)) as exchange:
                connection = await anext(exchange)
                async with aclosing(connection.parts()) as parts:
                    if connection.status != 200:
                        body = b"".join([part async for part in parts])
                        raise problem(connection.status, body, connection.headers.get("retry-after"))
                    async for part in parts:
                        yield part

    async def _exchange(self, request: Request) -> AsyncGenerator[_Connection, None]:
        """Yields a connection with the head of a response, and keeps it if it is advanced after the response was read."""
        to_gateway = request.target.startswith("/")
        url = self._gateway if to_gateway else urlsplit(request.target)
        target = url.path + request.target if to_gateway else (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = {"Host": url.netloc.rpartition("@")[2], "User-Agent": f"halcyon-python/{__version__}"}
        if to_gateway and self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        headers.update(request.headers or {})
        arguments = (request.method, target, headers, request.body, request.wait)
        connection = self._idle.pop() if to_gateway and self._idle else None
        try:
            if connection is not None:
                try:
                    await connection.begin(*arguments)
                except (ConnectionError, asyncio.IncompleteReadError):
                    # The server has closed the idle connection.
                    connection.close()
                    connection = None
            if connection is None:
                secure = (self._ssl or ssl.create_default_context()) if url.scheme == "https" else None
                port = url.port or (443 if secure else 80)
                opening = asyncio.open_connection(url.hostname, port, ssl=secure)
                connection = _Connection(*await asyncio.wait_for(opening, self._options.read_timeout), self._options.read_timeout)
                await connection.begin(*arguments)
            yield connection
            if to_gateway and connection.is_reusable:
                self._idle.append(connection)
                connection = None
        finally:
            if connection is not None:
                connection.close()


@contextmanager
def _connection_errors() -> Iterator[None]:
    """Raises ConnectionFailed for the errors of sockets and of HTTP."""
    try:
        yield
    except HalcyonError:
        raise
    except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
        raise ConnectionFailed(f"{type(error).__name__}: {error}") from error
