"""Checks the installed package against the gateway in the environment (clients/conformance/behaviors.json)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

from servers import Answers, CuttingProxy, FlakyGateway, RawGateway, dimensions

from halcyon import (
    AsyncClient,
    Cache,
    Client,
    CropRect,
    Info,
    Job,
    JobCancelled,
    JobTimeout,
    Output,
    Point,
    Quality,
    Quantization,
    Sizer,
    Template,
    Trim,
    URLSigner,
    Variant,
    errors,
    failures,
    jobs,
    keys,
    processors,
    result_keys,
)
from halcyon._codec import encode
from halcyon.events import Event, Ready, Started

URL, KEY, SOURCES = (os.environ[name] for name in ("HALCYON_URL", "HALCYON_KEY", "HALCYON_SOURCES"))
KEY_ID, SECRET = os.environ["HALCYON_SIGNING_KEY"].split(":", 1)
RUN = f"python-{os.getpid()}-{int(time.time())}"

client = Client(URL, KEY)
behaviors: dict[str, Callable[[], str]] = {}
E = TypeVar("E", bound=BaseException)
_ids = iter(range(1_000_000))


def behavior(name: str) -> Callable[[Callable[[], str]], None]:
    """Registers the function that checks a behavior and returns a detail."""

    def register(body: Callable[[], str]) -> None:
        behaviors[name] = body

    return register


def new_id(what: str = "job") -> str:
    return f"{RUN}-{what}-{next(_ids)}"


def raised(type_: type[E], body: Callable[[], object]) -> E:
    """The error of a call, which must be of a type."""
    try:
        result = body()
    except type_ as error:
        return error
    raise AssertionError(f"expected {type_.__name__}, and got {result!r}")


def equal(found: object, expected: object) -> None:
    assert found == expected, f"expected {expected!r}, and got {found!r}"


def check_file(content: bytes, ready: Ready, size: tuple[int, int], index: int = 0) -> None:
    """Checks a file against the event: size, dimensions and SHA-256."""
    variant = ready.variants[index]
    equal(len(content), variant.bytes)
    equal(hashlib.sha256(content).hexdigest(), variant.sha256)
    equal(dimensions(content), size)
    equal((variant.width, variant.height), size)


def events_until_end(job_id: str, after: str) -> list[Event]:
    """The events of a job after a cursor, until its end."""
    found = []
    with closing(iterator := client.events(jobs=[job_id], after=after)):
        for message in iterator:
            assert message.event, message.gap
            found.append(message.event)
            if message.event.is_terminal:
                return found
    raise AssertionError


def open_url(url: str, **headers: str) -> tuple[int, bytes]:
    """The status and the body of a request without a key."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read1(200) if "/v1/events" in url else answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@behavior("submit")
def submit() -> str:
    job = Job(f"{SOURCES}/coffee.jpg", width=100, height=80, id=new_id(), priority="high")
    accepted = client.submit(job)
    equal((accepted.id, accepted.lane, list(accepted.keys)), (job.id, "high", result_keys(job)))
    equal(client.submit(job).id, job.id)
    odd = client.submit({**job.to_json(), "id": new_id(), "widht": 3})
    equal(odd.unknown_fields, ("widht",))
    first, second = client.submit_all([Job("initials:A", width=8), Job("initials:B", width=-1)])
    assert not isinstance(first, errors.Problem) and isinstance(second, errors.InvalidJob), (first, second)

    async def submitted() -> str:
        async with AsyncClient(URL, KEY) as aio:
            return (await aio.submit(Job("initials:A", width=8))).id

    assert asyncio.run(submitted())
    return accepted.keys[0]


@behavior("wait")
def wait() -> str:
    accepted = client.submit(Job(f"{SOURCES}/chelsea.jpg", variants=[Output(width=120, height=90), Output(name="s", width=40)]))
    ready = client.wait(accepted.id)
    first, second = ready.variants
    equal(ready.job.id, accepted.id)
    equal((first.width, first.height, first.format, second.name, second.width), (120, 90, "jpeg", "s", 40))
    assert first.bytes > 500 and len(first.sha256) == 64 and first.expires_at, first
    assert ready.source and ready.source.format == "jpeg" and ready.timings["total"] >= 0, ready
    equal(client.job_state(accepted.id, wait=5).state, "ready")
    return f"{first.bytes} bytes"


@behavior("submitAndWait")
def submit_and_wait() -> str:
    job = Job(f"{SOURCES}/coffee.jpg", width=160, height=120, format="png", delivery="inline")
    image = client.image(job)
    check_file(image.data, image.ready, (160, 120))
    large, small = client.images(Job(f"{SOURCES}/coffee.jpg", variants=[Output(width=100, height=50), Output(width=50, height=20)]))
    equal((dimensions(large.data), dimensions(small.data)), ((100, 50), (50, 20)))

    async def many() -> list[tuple[int, int]]:
        async with AsyncClient(URL, KEY) as aio:
            images = [aio.image(Job(f"{SOURCES}/rocket.jpg", width=60 + n, height=40)) for n in range(12)]
            return [dimensions(image.data) for image in await asyncio.gather(*images)]

    equal(asyncio.run(many()), [(60 + n, 40) for n in range(12)])
    return f"{len(image.data)} bytes"


@behavior("failureCodes")
def failure_codes() -> str:
    expected: dict[str, type[failures.JobFailed]] = {
        f"{SOURCES}/none.jpg": failures.NotFound,
        f"{SOURCES}/gone.jpg": failures.Gone,
        f"{SOURCES}/forbidden.jpg": failures.Forbidden,
        f"{SOURCES}/error.jpg": failures.HTTPError,
        f"{SOURCES}/corrupt.jpg": failures.CorruptImage,
        f"{SOURCES}/text.jpg": failures.UnsupportedFormat,
        "nothing:x": failures.UnsupportedSource,
    }
    for source, type_ in expected.items():
        failed = raised(failures.JobFailed, lambda: run_kafka(Job(source, width=20, id=new_id())))
        equal((type(failed), failed.code), (type_, type_.code))
        assert failed.message and failed.event.attempts == 1, failed
        equal(failed.retryable, type_ is failures.HTTPError)
    schema = {
        "invalid_job", "unsupported_source", "blocked_address", "not_found", "gone", "forbidden", "http_error", "dns_error",
        "connect_error", "origin_unavailable", "tls_error", "timeout", "too_many_redirects", "too_large", "too_many_pixels",
        "unsupported_format", "corrupt_image", "expired", "provider_error", "poison", "internal",
    }  # fmt: skip
    equal(set(failures.JobFailed.by_code), schema)
    return f"{len(expected)} failures, {len(schema)} codes"


def run_kafka(job: Job) -> Ready:
    """Runs a job; one that the gateway rejects is written to Kafka."""
    try:
        return client.run(job)
    except errors.InvalidJob:
        before = client.cursor()
        produce(job)
        event = events_until_end(job.id or "", before)[-1]
        assert not isinstance(event.data, Ready), event
        raise failures.failure(event.data) from None  # type: ignore[arg-type]


def produce(job: Job) -> None:
    """Writes a job to Kafka."""
    subprocess.run(["sh", "-c", os.environ["HALCYON_PRODUCE"]], input=job.encode() + b"\n", check=True, timeout=60)


@behavior("invalidJob")
def invalid_job() -> str:
    error = raised(errors.InvalidJob, lambda: client.submit({"source": f"{SOURCES}/coffee.jpg", "width": -1}))
    equal((error.status, error.kind, error.code, error.attempts), (400, "invalid-job", "invalid_job", 1))
    assert "width" in error.detail and not error.is_transient, error.detail
    return error.detail


@behavior("retryWithBackoff")
def retry_with_backoff() -> str:
    accepted = {"id": "flaky", "lane": "normal", "status": "/v1/jobs/flaky", "images": []}
    with FlakyGateway([(503, {"Retry-After": "1"}, {}), None, (202, {}, accepted), (400, {}, {"type": "/problems/invalid-job"})]) as flaky:
        patient = Client(flaky.url, retry_timeout=120)
        equal(patient.submit(Job("initials:A", width=8)).id, "flaky")
        bodies, times = [json.loads(body) for body in flaky.bodies], flaky.times
        equal(len(bodies), 3)
        assert bodies[0]["id"] and bodies[0] == bodies[1] == bodies[2], bodies
        assert times[1] - times[0] >= 1, times
        raised(errors.InvalidJob, lambda: patient.submit(Job("initials:A", width=8)))
        equal(len(flaky.bodies), 4)

    async def again() -> tuple[str, int]:
        with FlakyGateway([None, (503, {"Retry-After": "1"}, {}), (202, {}, accepted)]) as flaky:
            async with AsyncClient(flaky.url, retry_timeout=120) as aio:
                return (await aio.submit(Job("initials:A"))).id, len({body for body in flaky.bodies})

    equal(asyncio.run(again()), ("flaky", 1))
    with FlakyGateway([(503, {}, {})] * 20) as down:
        raised(errors.Problem, lambda: Client(down.url, retry_timeout=1).submit(Job("initials:A")))
        assert 1 < len(down.bodies) < 20, len(down.bodies)
    raised(errors.ConnectionFailed, lambda: Client("http://127.0.0.1:1", retry_timeout=0.5).submit(Job("initials:A")))
    return f"pause of {times[1] - times[0]:.2f} s"


@behavior("timeout")
def timeout() -> str:
    before, job = client.cursor(), Job(f"{SOURCES}/hang/timeout", width=9, id=new_id())
    begun = time.monotonic()
    error = raised(JobTimeout, lambda: client.run(job, timeout=1))
    took = time.monotonic() - begun
    assert isinstance(error, TimeoutError) and 0.9 < took < 60, took
    equal(events_until_end(job.id or "", before)[-1].name, "cancelled")
    return f"{took:.2f} s"


@behavior("cancelWait")
def cancel_wait() -> str:
    before, job_id = client.cursor(), new_id()

    async def cancelled() -> None:
        async with AsyncClient(URL, KEY) as aio:
            task = asyncio.create_task(aio.image(Job(f"{SOURCES}/hang/task", width=9, id=job_id)))
            async with aclosing(aio.events(jobs=[job_id], after=before)) as messages:
                async for message in messages:
                    if message.event and isinstance(message.event.data, Started):
                        break
            task.cancel()
            await task

    raised(asyncio.CancelledError, lambda: asyncio.run(cancelled()))
    equal(events_until_end(job_id, before)[-1].name, "cancelled")

    # A failure of the request that cancels the job does not replace the cancellation of the task.
    accepted = response(json.dumps({"id": "x", "lane": "normal"}))
    answers = {"POST": (accepted, "close"), "GET": ("", "silence"), "DELETE": BROKEN["malformed"]}

    async def cancelled_in_vain(gateway: RawGateway) -> float:
        async with AsyncClient(gateway.url) as aio:
            task = asyncio.create_task(aio.run(Job("initials:A", id="x")))
            while not any(head.startswith("GET ") for head in gateway.heads):
                await asyncio.sleep(0.01)
            begun = time.monotonic()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled(), task
            return time.monotonic() - begun

    with RawGateway(lambda head: answers[head.partition(" ")[0]]) as gateway:
        took = asyncio.run(cancelled_in_vain(gateway))
        # The gateway does not respond to the poll. A request that is not cancelled ends after 85 s.
        assert took < 60, took
        assert gateway.heads[-1].startswith("DELETE /v1/jobs/x "), gateway.heads

    before, job = client.cursor(), Job(f"{SOURCES}/hang/interrupt", width=9, id=new_id())
    main = threading.main_thread().ident or 0

    def interrupt() -> None:
        with closing(iterator := Client(URL, KEY).events(jobs=[job.id or ""], after=before, types=["started"])):
            next(iterator)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    raised(KeyboardInterrupt, lambda: client.run(job))
    equal(events_until_end(job.id or "", before)[-1].name, "cancelled")
    return f"{took:.2f} s"


@behavior("cancelJob")
def cancel_job() -> str:
    before, job = client.cursor(), Job(f"{SOURCES}/hang/cancel", width=9, id=new_id())
    accepted = client.submit(job)
    with closing(iterator := client.events(jobs=[accepted.id], after=before, types=["started"])):
        next(iterator)
    equal(client.cancel(accepted.id), True)
    equal(raised(JobCancelled, lambda: client.wait(accepted.id)).job_id, accepted.id)
    ended = client.run(Job("initials:E", width=9, id=new_id()))
    # The gateway stores the end of a job a moment after those who wait have it.
    attempts = 0
    while client.cancel(ended.job.id):
        attempts += 1
        assert attempts < 600
        time.sleep(0.1)
    return accepted.id


@behavior("subscribe")
def subscribe() -> str:
    before, job, other = client.cursor(), new_id(), new_id()
    for one in (other, job):
        client.run(Job(f"{SOURCES}/coffee.jpg?{one}", width=33, id=one, metadata={"n": [1, None]}))
    found = events_until_end(job, before)
    equal([event.name for event in found if event.name != "progress"], ["started", "ready"])
    assert all(event.job and event.job.id == job and event.job.metadata == {"n": [1, None]} for event in found), found
    with closing(iterator := client.events(types=["ready"], after=before, jobs=[job, other])):
        events = [next(iterator).event, next(iterator).event]
    equal({event.job.id for event in events if event and event.job and isinstance(event.data, Ready)}, {job, other})
    raised(errors.BadRequest, lambda: next(client.events(after="nonsense")))
    return " ".join(event.name for event in found)


@behavior("subscribeResume")
def subscribe_resume() -> str:
    before, ids = client.cursor(), [new_id() for _ in range(5)]
    for job_id in ids:
        client.run(Job("initials:R", width=21, id=job_id))

    def seen(messages: Iterator[str]) -> list[str]:
        return [next(messages) for _ in ids]

    with CuttingProxy(URL) as proxy:
        with closing(iterator := Client(proxy.url, KEY).events(types=["ready"], jobs=ids, after=before)):
            found = seen(message.event.job.id for message in iterator if message.event and message.event.job)
        equal(sorted(found), sorted(ids))
        equal(len(proxy.last_ids), 2)
        assert proxy.last_ids[0] == before and proxy.last_ids[1] not in ("", before), proxy.last_ids

    async def resumed(url: str) -> list[str]:
        found: list[str] = []
        async with AsyncClient(url, KEY) as aio, aclosing(aio.events(types=["ready"], jobs=ids, after=before)) as messages:
            async for message in messages:
                if message.event and message.event.job:
                    found.append(message.event.job.id)
                if len(found) == len(ids):
                    break
        return found

    with CuttingProxy(URL) as proxy:
        equal(sorted(asyncio.run(resumed(proxy.url))), sorted(ids))
        equal(len(proxy.last_ids), 2)
    return f"{len(ids)} events over 2 connections"


def response(body: str) -> str:
    """A complete response."""
    return f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}"


# Broken responses with an image, and the ends of their connections.
BROKEN = {
    "closed": (response("image")[:-3], "close"),
    "reset": (response("image")[:-3], "reset"),
    "silent": (response("image")[:-3], "silence"),
    "malformed": ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n", "close"),
}


def breaking() -> Callable[[str], tuple[str, str]]:
    """Answers of a gateway that breaks the first response with each image, and the first two streams of three events."""
    targets: list[str] = []

    def answer(head: str) -> tuple[str, str]:
        target = head.split(" ")[1]
        targets.append(target)
        attempt = targets.count(target)
        if target != "/v1/events":
            return BROKEN[target.rpartition("/")[2]] if attempt == 1 else (response("image"), "close")
        last_id = re.search(r"last-event-id: *(\d+)", head, re.IGNORECASE)
        events = [
            f'id: {n}\ndata: {{"id": "{n}", "type": "halcyon.image.started", "time": "2026-11-21T10:31:07Z", "data": {{"job": {{"id": "j"}}}}}}\n\n'
            for n in range(int(last_id[1]) + 1 if last_id else 1, 4)
        ]
        text = "".join(events) if attempt > 2 else events[0] + 'id: 9\ndata: {"id"'
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1\n\n"
        return head + text, "reset" if attempt == 2 else "silence"

    return answer


@behavior("brokenResponse")
def broken_response() -> str:
    expected = [b"image"] * len(BROKEN), ["1", "2", "3"]
    with RawGateway(breaking()) as gateway:
        reader = Client(gateway.url, read_timeout=0.25)
        images = [reader.stored(key) for key in BROKEN]
        with closing(iterator := reader.events(after="0")):
            equal((images, [next(iterator).cursor for _ in range(3)]), expected)

    async def through_aio(url: str) -> tuple[list[bytes], list[str]]:
        async with AsyncClient(url, read_timeout=0.25) as aio:
            images = await asyncio.gather(*(aio.stored(key) for key in BROKEN))
            cursors: list[str] = []
            async with aclosing(aio.events(after="0")) as messages:
                async for message in messages:
                    cursors.append(message.cursor)
                    if len(cursors) == 3:
                        break
            return images, cursors

    with RawGateway(breaking()) as gateway:
        equal(asyncio.run(through_aio(gateway.url)), expected)
    return ", ".join(BROKEN)


@behavior("info")
def info() -> str:
    facts = client.info(Job(f"{SOURCES}/coffee.jpg", phash=True))
    ready = client.run(Job(f"{SOURCES}/coffee.jpg", info=True, phash=True))
    equal(ready.variants[0].info, facts)
    equal((ready.variants[0].format, facts.format, facts.width), ("json", "jpeg", ready.variants[0].width))
    equal(len(facts.phash or ""), 16)
    equal(client.info(Job(f"{SOURCES}/coffee.jpg", info={"location": True})).location, None)
    equal((facts.truncated, facts.frames, facts.loop, facts.video, facts.palette), (False, None, None, None, None))
    raised(errors.NotFound, lambda: client.info(Job(f"{SOURCES}/none.jpg")))
    return str(facts.phash)


@behavior("infoMembers")
def info_members() -> str:
    text = pathlib.Path(os.environ["HALCYON_INFO"]).read_text(encoding="utf-8")
    expected = json.loads(text)
    # Every object has a member of a later version.
    answer = json.loads(text.replace("{", '{"later": {}, '))
    with FlakyGateway([(200, {}, answer)] * 2) as gateway:
        facts = Client(gateway.url).info(Job("initials:A"))

        async def through_aio() -> Info:
            async with AsyncClient(gateway.url) as aio:
                return await aio.info(Job("initials:A"))

        equal(asyncio.run(through_aio()), facts)
    equal(encode(facts), expected)
    assert facts.video and facts.exif and facts.location and facts.profile and facts.faces, facts
    equal((facts.video.codec, facts.video.duration, facts.loop, facts.exif.focal_length_in_35mm_film), ("h264", 12500, 3, 36.0))
    equal((facts.exif.exposure_bias, facts.location.longitude, facts.profile.color_space, facts.faces[1].x), (-0.5, -13.25, "RGB", 300))
    image = {"key": "halcyon:{00}:01", "width": 640, "height": 360, "format": "json", "bytes": 900, "sha256": "0" * 64, "info": answer}
    data = {"job": {"id": "a"}, "variants": [image], "origin": "network", "timings": {}}
    event = Event.from_json({"id": "1", "type": "halcyon.image.ready", "time": "2026-11-21T10:31:07Z", "data": data})
    assert isinstance(event.data, Ready), event
    equal(event.data.variants[0].info, facts)
    return f"{len(expected)} members"


@behavior("fetchStored")
def fetch_stored() -> str:
    ready = client.run(Job(f"{SOURCES}/coffee.jpg", width=90, height=60))
    assert ready.key and ready.variants[0].data is None, ready
    check_file(client.stored(ready.key), ready, (90, 60))
    check_file(client.fetch(ready.variants[0]), ready, (90, 60))
    equal(raised(errors.NotFound, lambda: client.stored("halcyon:{" + "0" * 32 + "}:" + "0" * 32)).status, 404)
    raised(errors.TooLarge, lambda: Client(URL, KEY, maximum_bytes=100).stored(ready.key or ""))
    return ready.key


@behavior("fetchInline")
def fetch_inline() -> str:
    ready = client.run(Job(f"{SOURCES}/coffee.jpg", width=70, height=50, delivery="inline"))
    assert ready.variants[0].data, ready
    # There is no gateway at this address.
    check_file(Client("http://127.0.0.1:1", retry_timeout=0).fetch(ready.variants[0]), ready, (70, 50))
    return f"{ready.variants[0].bytes} bytes"


@behavior("fetchOneRead")
def fetch_one_read() -> str:
    job = Job(f"{SOURCES}/no-store/coffee.jpg", width=1400, height=1000, format="png", upscale=True, cache=Cache(store=False))
    ready = client.run(job)
    variant = ready.variants[0]
    assert variant.data is None and ":handoff:" in variant.key, variant
    check_file(client.fetch(variant), ready, (1400, 1000))
    raised(errors.NotFound, lambda: client.fetch(variant))
    return f"{variant.bytes} bytes"


@behavior("fetchStoreURL")
def fetch_store_url() -> str:
    job = Job(f"{SOURCES}/chelsea.jpg?{RUN}", width=88, height=66, cache=Cache(store="required"))
    ready = client.run(job)
    url = ready.variants[0].url
    assert url and url.startswith(f"{SOURCES}/store/"), ready
    check_file(client.fetch(ready.variants[0]), ready, (88, 66))

    def blocking(gateway: str, variant: Variant) -> bytes:
        return Client(gateway, KEY).fetch(variant)

    def through_aio(gateway: str, variant: Variant) -> bytes:
        async def fetched() -> bytes:
            async with AsyncClient(gateway, KEY) as aio:
                return await aio.fetch(variant)

        return asyncio.run(fetched())

    # A gateway that knows nothing, and one with gateway.redirectsToStore. The first response of the store to each URL breaks.
    for name, fetch in {"blocking": blocking, "aio": through_aio}.items():
        with FlakyGateway([(404, {}, {"type": "/problems/not-found"})]) as flaky:
            check_file(fetch(flaky.url, replace(ready.variants[0], url=f"{url}?broken={RUN}-{name}")), ready, (88, 66))
            equal(len(flaky.bodies), 1)
        redirect: Answers = [(302, {"Location": f"{url}?broken={RUN}-{name}-redirect"}, {})]
        with FlakyGateway(redirect * 2) as flaky:
            check_file(fetch(flaky.url, ready.variants[0]), ready, (88, 66))
            equal(len(flaky.bodies), 2)
    with FlakyGateway([(302, {"Location": "/v1/batches"}, {})]) as flaky:
        raised(errors.InvalidResponse, lambda: Client(flaky.url, KEY).fetch(ready.variants[0]))
    return url


@behavior("fetchPut")
def fetch_put() -> str:
    target, cache = f"{SOURCES}/put/{RUN}-{{variant}}.{{format}}", Cache(store=False)
    outputs = [Output(name="large", width=80, height=60), Output(name="small", width=40, height=30, format="png")]
    ready = client.run(Job(f"{SOURCES}/rocket.jpg", variants=outputs, delivery=jobs.put(target), max_age=-1, cache=cache))
    equal([variant.put for variant in ready.variants], [f"{SOURCES}/put/{RUN}-large.jpeg", f"{SOURCES}/put/{RUN}-small.png"])
    check_file(client.fetch(ready.variants[0]), ready, (80, 60))
    check_file(client.fetch(ready.variants[1]), ready, (40, 30), index=1)
    image = client.image(Job(f"{SOURCES}/rocket.jpg", width=60, height=50, delivery=jobs.put(target), max_age=-1, cache=cache))
    check_file(image.data, image.ready, (60, 50))
    equal(open_url(image.variant.put or ""), (200, image.data))
    secret = f"{SOURCES}/put/{RUN}-secret?signature=5f3a"
    job = Job(f"{SOURCES}/rocket.jpg", width=50, height=40, delivery=jobs.put(secret), max_age=-1, cache=cache)
    raised(errors.NotDelivered, lambda: client.image(job))
    equal(open_url(secret)[0], 200)
    return image.variant.put or ""


def sources_of(count: int) -> list[str]:
    return [f"initials:{chr(65 + n % 26)}{chr(65 + n // 26)}" for n in range(count)]


@behavior("batchOfJobs")
def batch_of_jobs() -> str:
    batch_id = new_id("batch")
    parts: list[jobs.JobLike] = [Job(source, width=16) for source in sources_of(10)]
    submission = client.submit_batch([*parts, Job("initials:X", width=-5), Job(f"{SOURCES}/none.jpg", width=9)], id=batch_id)
    equal((submission.id, submission.accepted, submission.rejected), (batch_id, 11, 1))
    equal((submission.problems[0].line, type(submission.problems[0].problem)), (11, errors.InvalidJob))
    batch = client.wait_for_batch(batch_id)
    equal((batch.total, batch.ended, batch.counts.ready, batch.counts.failed), (11, 11, 10, 1))
    assert batch.completed_at and batch_id in [one.id for one in client.batches()], batch
    raised(errors.Conflict, lambda: client.submit_batch(parts, id=batch_id))

    open_id = new_id("batch")
    client.submit_batch(parts[:4], id=open_id, close=False)
    client.submit_batch(parts[4:], id=open_id, first=4, close=False)
    raised(JobTimeout, lambda: client.wait_for_batch(open_id, timeout=0.5))
    client.close_batch(open_id, 10)
    equal(client.wait_for_batch(open_id).counts.ready, 10)

    async def through_aio() -> int:
        async with AsyncClient(URL, KEY) as aio:
            submission = await aio.submit_batch(parts)
            return (await aio.wait_for_batch(submission.id)).counts.ready

    equal(asyncio.run(through_aio()), 10)
    raised(errors.NotFound, lambda: client.batch(new_id("nothing")))
    return f"{batch.ended} jobs"


@behavior("batchOfTemplate")
def batch_of_template() -> str:
    submission = client.submit_template(Template(width=24, height=24, format="png"), sources_of(5), priority="high")
    equal((submission.accepted, submission.rejected), (5, 0))
    equal(client.wait_for_batch(submission.id).counts.ready, 5)
    key = result_keys(Job("initials:CA", width=24, height=24, format="png"))[0]
    equal(dimensions(client.stored(key)), (24, 24))
    listed = client.submit_prefix(Template(width=24), "s3://no-such-bucket/2026/")
    equal(listed.prefix, "s3://no-such-bucket/2026/")
    batch = client.wait_for_batch(listed.id, timeout=300)
    assert batch.error and batch.error.code == "not_found" and batch.prefix == listed.prefix, batch
    return batch.error.message


@behavior("batchFailures")
def batch_failures() -> str:
    missing = [f"{SOURCES}/none.jpg?{n}" for n in range(7)]
    submission = client.submit_template(Template(width=9), [*missing, "initials:OK"])
    equal(client.wait_for_batch(submission.id).counts.failed, 7)
    found = client.batch_failures(submission.id)
    equal(sorted((one.job, one.index, one.code) for one in found), [(f"{submission.id}-{n}", n, "not_found") for n in range(7)])
    assert all(one.message and one.record for one in found), found
    equal([one.job for one in client.batch_failures(submission.id, start=2, limit=3)], [one.job for one in found[2:5]])
    one = {"code": "gone", "message": "gone", "record": ""}
    pages: Answers = [
        (200, {}, {"failed": 2, "failures": [{"job": "a", **one}], "next": "/v1/batches/x/failures?start=1&limit=1"}),
        (200, {}, {"failed": 2, "failures": [{"job": "b", **one}]}),
    ]
    with FlakyGateway(pages) as gateway:
        equal([failed.job for failed in Client(gateway.url).batch_failures("x")], ["a", "b"])
    return found[0].message


@behavior("batchCancel")
def batch_cancel() -> str:
    submission = client.submit_template(Template(width=9), [f"{SOURCES}/hang/{RUN}-{n}" for n in range(4)])
    client.cancel_batch(submission.id)
    equal(client.wait_for_batch(submission.id).counts.cancelled, 4)
    raised(errors.Conflict, lambda: client.cancel_batch(submission.id))
    return "4 cancelled"


@behavior("batchRetry")
def batch_retry() -> str:
    source = f"{SOURCES}/put/{RUN}-late.jpg"
    submission = client.submit_template(Template(width=30), [source, "initials:OK"])
    equal(client.wait_for_batch(submission.id).counts.failed, 1)
    with urllib.request.urlopen(f"{SOURCES}/coffee.jpg") as photograph:
        urllib.request.urlopen(urllib.request.Request(source, photograph.read(), method="PUT")).close()
    again = client.retry_batch(submission.id)
    equal((again.accepted, again.missing), (1, 0))
    counts = client.wait_for_batch(again.id).counts
    equal((counts.ready, counts.failed), (1, 0))
    raised(errors.Conflict, lambda: client.retry_batch(again.id))
    return again.id


@behavior("presetPut")
def preset_put() -> str:
    name = f"put-{RUN}"
    preset = client.put_preset(name, Template(width=32, height=18, format="webp"), overridable=["width"])
    equal((preset.name, preset.version, preset.overridable, preset.origin), (name, 1, ("width",), "registered"))
    equal(client.preset(name), preset)
    equal(client.put_preset(name, Template(width=32, height=18, format="webp"), overridable=["width"]).version, 1)
    equal(client.put_preset(name, Template(width=48, height=18)).version, 2)
    assert name in [one.name for one in client.presets()]
    client.delete_preset(name)
    raised(errors.NotFound, lambda: client.preset(name))
    raised(errors.NotFound, lambda: client.delete_preset(name))
    return name


@behavior("presetJob")
def preset_job() -> str:
    name = f"job-{RUN}"
    template = Template(width=52, height=34, format="png")
    client.put_preset(name, template, overridable=["width"])
    image = client.image(Job(f"{SOURCES}/coffee.jpg", preset=jobs.Preset(name, 1)))
    check_file(image.data, image.ready, (52, 34))
    assert image.data.startswith(b"\x89PNG") and image.ready.job.preset, image.ready
    equal((image.ready.job.preset.name, image.ready.job.preset.version), (name, 1))
    job = Job(f"{SOURCES}/coffee.jpg", preset=name, width=44)
    equal(client.run(job).key, result_keys(job, template)[0])
    assert "height" in raised(errors.InvalidJob, lambda: client.submit(Job("initials:A", preset=name, height=9))).detail
    client.delete_preset(name)
    return image.variant.key


@behavior("rerender")
def rerender() -> str:
    name, job = f"again-{RUN}", Job(f"{SOURCES}/rocket.jpg?{RUN}", preset=f"again-{RUN}")
    client.put_preset(name, Template(width=36, height=20, max_age=3600))
    client.run(job)
    after = Template(width=58, height=20, max_age=3600)
    client.put_preset(name, after)
    key = result_keys(job, after)[0]
    raised(errors.NotFound, lambda: client.stored(key))
    # Workers hear of a change within about a second.
    for _ in range(120):
        submission = client.rerender(name, priority="high")
        equal(submission.preset, name)
        batch = client.wait_for_batch(submission.id)
        equal((batch.total, batch.counts.ready, batch.preset), (1, 1, name))
        try:
            content = client.stored(key)
            break
        except errors.NotFound:
            time.sleep(0.25)
    equal(dimensions(content), (58, 20))
    client.delete_preset(name)
    return key


@behavior("signedURL")
def signed_url() -> str:
    example = URLSigner("https://images.example.org", "1", "0123456789abcdef0123456789abcdef")
    signature = "fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14"
    url = example.render(Job("https://example.org/cat.jpg", width=400), expires=1790000000)
    assert url.endswith(f"width=400&keyId=1&expires=1790000000&signature={signature}"), url
    signer = URLSigner(URL, KEY_ID, SECRET)
    job = Job(f"{SOURCES}/coffee.jpg", width=64, height=48, crop_rect=CropRect(0.1, 0, 0.5, 1), gravity=Point(0.5, 0.25), tags=["a", "b"])
    url = signer.render(job, lifetime=60)
    status, body = open_url(url)
    equal((status, dimensions(body)), (200, (64, 48)))
    # The parameters mean the same as the fields of the job.
    equal(client.stored(result_keys(job)[0]), body)
    equal(open_url(signer.image(result_keys(job)[0], lifetime=60)), (200, body))
    client.put_preset(f"url-{RUN}", Template(width=31, height=17))
    status, body = open_url(signer.render(Job(f"{SOURCES}/coffee.jpg", preset=f"url-{RUN}"), lifetime=60))
    equal((status, dimensions(body)), (200, (31, 17)))
    client.delete_preset(f"url-{RUN}")
    equal(open_url(signer.events(types=["ready"], lifetime=60))[0], 200)
    equal(open_url(url.replace("width=64", "width=65"))[0], 403)
    equal(open_url(signer.render(job, expires=1))[0], 403)
    equal(open_url(url.partition("&keyId")[0])[0], 401)
    equal(dimensions(client.render(job)), (64, 48))
    return url.partition("?")[0]


@behavior("resultKeys")
def result_keys_of_vectors() -> str:
    vectors = json.loads(pathlib.Path(os.environ["HALCYON_KEY_VECTORS"]).read_text(encoding="utf-8"))["vectors"]
    for vector in vectors:
        found = keys.source_text(vector["job"]), keys.variant_texts(vector["job"]), result_keys(vector["job"])
        assert found == (vector["sourceText"], vector["variantTexts"], vector["keys"]), vector["name"]
    job = Job(
        f"{SOURCES}/coffee.jpg?keys", width=61, height=43, screen_scale=2, quality=70, background="hsl(30 55% 42%)",
        processors=[processors.round_corner(width_fraction=0.2), processors.blur(1.5)])  # fmt: skip
    equal(client.run(job).key, result_keys(job)[0])
    # The margins around the letters are removed, and the event says what remained.
    job = Job(jobs.initials("JD"), trim=Trim(tolerance=20), before=["blackWhite"], format="png")
    ready = client.run(job)
    trim, variant = ready.variants[0].trim, ready.variants[0]
    assert trim and trim.x > 0 and trim.y > 0 and (trim.width, trim.height) == (variant.width, variant.height), ready
    equal(variant.key, result_keys(job)[0])
    raised(ValueError, lambda: result_keys(Job("initials:A", preset="card")))
    return f"{len(vectors)} vectors"


def complete_job() -> Job:
    """The job of job.json."""
    p = processors
    return Job(
        id="article-17-hero",
        source=jobs.url("https://example.org/cat.jpg?size=large", cache_key="cat-7"),
        alternatives=[
            "s3://pictures/cat.jpg",
            jobs.initials("JD", background="#306ba6", foreground="white"),
            jobs.video("https://example.org/cat.mp4", seconds=1.5),
        ],
        fallback=False, width=400, height=300, screen_scale=2, content_mode="scaleAspectFill", scale_options="fillLeavesExcess",
        position="topLeft", crop_rect=CropRect(0.5, 0, 0.5, 1), trim=Trim(20, "white", 0.01), size_for_display=True, gravity=Point(0.3, 0.25), upscale=False, interpolation_quality="medium",
        linear_light=True, background="#ffffff", before=[p.normalize(lower=2, upper=98.5), p.rotate(3)],
        processors=[
            p.round_corner(12, corners=["topLeft", "topRight"], background="white"),
            p.resize(200, 100, mode="aspectFit"), p.crop(100, 80, x=0.25, y=0.75), p.blur(2.5), p.tint("#336699"),
            p.overlay("black", fraction=0.3), p.overlay_image("https://example.org/frame.png", opacity=0.8),
            p.blend("multiply", "red", opacity=0.5), p.color_controls(brightness=0.1, contrast=1.2, saturation=0.9, exposure=0.5),
            p.black_white(), p.border(2, "navy", width_fraction=0.5), p.downsample(90, 90), p.sharpen(radius=0.7, amount=1.5),
            p.pixelate(8),
            p.watermark("file:///srv/logo.png", "topRight", margin=4, width_fraction=0.2, opacity=0.6, tiled=False),
            p.rotate(90, background="transparent"), p.flip("both"),
            p.pad(top=1, right=2, bottom=3, left=4, fill="color", color="gold"), p.pad(10, fill="mirror"),
            p.text(
                "Größe\n50 \\ 100", "DejaVu Sans", bold=True, italic=True, size=24, width=180, height=60, align="center", color="white",
                outline_width=2, outline_color="#333333", opacity=0.9, position="bottom", margin=8, offset=(-3, 1.5)),
            p.mask("heart"), p.mask_image("https://example.org/mask.png"), p.hue(30), p.gamma(1.8), p.normalize(lower=1, upper=99),
            p.duotone("navy", "gold"), p.blur_faces(0.5, margin=0.1, confidence=0.4), p.pixelate_faces(6, margin=0.1, confidence=0.4), p.overlay_image("https://example.org/frame.png", 1, "softLight"),
            p.watermark("file:///srv/logo.png", "left", margin=2, scale=0.5, offset=(5, -6), opacity=1, mode="luminosity", tiled=True),
        ],
        format="webp", quality=80, lossless=False, effort=4, progressive=True, strip_metadata=False, keep_profile=True, page=2, frames=1,
        maximum_bytes=50000, allow_resize=True, near_lossless=True, chroma_subsampling="4:4:4", bit_depth=8, quantize=Quantization(colors=16, dither=0.5),
        profile="srgb",
        tolerance="truncated", blurhash=True, dominant_color=True, palette=True, thumbhash=True, phash=True, faces=True, info={"location": True},
        variants=[
            Output(name="large", width=1600, format="avif", trim=True),
            Output(name="small", sizer=Sizer(aspect_scale_down_by_width=400), quality=Quality(target=0.98), format="best"),
            Output(name="dot", gravity="attention", crop_rect=CropRect(40, 30, 600, 400, unit="pixels")),
        ],
        partial=True, max_age=3600, cache=Cache(memory=True, store="required", source=False, reload=True, only_if_cached=False),
        tenant="shop-7", headers={"Accept": "image/webp", "X-Client": "conformance"}, tags=["article-17", "hero"],
        slot="article-17/hero", generation=1795257067290, delivery=jobs.put("https://bucket.example.org/items/7/{variant}.{format}"),
        priority="high", prefetch=False, refresh="beforeExpiry", not_before=datetime(2026, 11, 21, 10, 31, 7, tzinfo=timezone.utc),
        deadline=30, metadata={"article": 17}, placeholder="LEHV6nWB2yk8", alt_text="a cat", preset=jobs.Preset("card", 3),
        batch=jobs.Batch("catalogue-1", 0), webhook="shop",
    )  # fmt: skip


@behavior("kafkaJob")
def kafka_job() -> str:
    expected = json.loads(pathlib.Path(os.environ["HALCYON_JOB"]).read_text(encoding="utf-8"))
    found = json.loads(complete_job().encode())
    equal(sorted(found), sorted(expected))
    for name, value in expected.items():
        equal((name, found[name]), (name, value))
    before, job = client.cursor(), Job(f"{SOURCES}/coffee.jpg", width=77, height=55, id=new_id("kafka"), metadata="größer")
    equal((job.topic(), complete_job().topic("x.")), ("halcyon.jobs", "x.jobs.high"))
    produce(job)
    event = events_until_end(job.id or "", before)[-1]
    assert isinstance(event.data, Ready) and event.job and event.job.metadata == "größer", event
    check_file(client.fetch(event.data.variants[0]), event.data, (77, 55))
    return event.id


@behavior("unauthorized")
def unauthorized() -> str:
    for key in (None, "0" * 32):
        error = raised(errors.Unauthorized, lambda: Client(URL, key).submit(Job("initials:A")))
        equal((error.status, error.attempts), (401, 1))

    async def refused() -> int:
        async with AsyncClient(URL, "0" * 32) as aio:
            try:
                await aio.cursor()
            except errors.Unauthorized as error:
                return error.status
        raise AssertionError("the stream was accepted")

    equal(asyncio.run(refused()), 401)
    return error.detail


def main(names: list[str]) -> int:
    failed = 0
    for name in names or behaviors:
        begun = time.monotonic()
        try:
            ok, detail = True, behaviors[name]()
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            ok, detail = False, f"{type(error).__name__}: {error} ({pathlib.Path(place.filename).name}:{place.lineno})"
            traceback.print_exc()
        print(f"{name}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
        failed += not ok
        print(json.dumps({"behavior": name, "ok": ok, "detail": detail}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
