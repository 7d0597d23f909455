"""Events: what happened to jobs and batches. Values of later versions of Halcyon (types, states, formats, codes) are kept as they are."""

from __future__ import annotations

import base64
import builtins
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Union

from ._codec import decode
from .errors import InvalidResponse


@dataclass(frozen=True)
class PresetReference:
    """The preset of a job and its version."""

    name: str
    version: int


@dataclass(frozen=True)
class BatchReference:
    """The batch of a job, and its index there."""

    id: str
    index: int | None = None


@dataclass(frozen=True)
class JobReference:
    """The job of an event, with the values that the job gave to be returned."""

    id: str
    metadata: Any = None
    placeholder: Any = None
    alt_text: Any = None
    preset: PresetReference | None = None
    batch: BatchReference | None = None


@dataclass(frozen=True)
class Rect:
    """A part of an image, in pixels from its top left corner."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Face(Rect):
    """A face in an image, with the confidence of the detector, 0 to 1."""

    confidence: float


@dataclass(frozen=True)
class Encoding:
    """The outcome of the search for the size or the quality of a file. `encodings` is 0 if the file of the source was used."""

    encodings: int
    quality: int | None = None
    colors: int | None = None
    similarity: float | None = None


@dataclass(frozen=True)
class Profile:
    """An ICC profile: its description, and its color space, such as `RGB`, `GRAY` or `CMYK`."""

    name: str | None = None
    color_space: str | None = None


@dataclass(frozen=True)
class VideoInfo:
    """A video: its codec, such as `h264`, and the duration of the whole video in milliseconds."""

    codec: str
    duration: int | None = None


@dataclass(frozen=True)
class Exif:
    """The metadata of a camera. `date_time_original` is the local time of the exposure, with the offset from UTC if it is known, such as
    `2026-05-01T12:34:56+02:00`. `exposure_time` is in seconds, `exposure_bias` in EV, `focal_length` and `focal_length_in_35mm_film` are in
    millimeters, and `flash` tells whether the flash fired."""

    make: str | None = None
    model: str | None = None
    lens_make: str | None = None
    lens_model: str | None = None
    software: str | None = None
    artist: str | None = None
    copyright: str | None = None
    date_time_original: str | None = None
    exposure_time: float | None = None
    f_number: float | None = None
    iso: float | None = None
    exposure_bias: float | None = None
    focal_length: float | None = None
    focal_length_in_35mm_film: float | None = None
    flash: bool | None = None


@dataclass(frozen=True)
class Location:
    """A place on Earth, in degrees north and east of WGS 84, and in meters above sea level."""

    latitude: float
    longitude: float
    altitude: float | None = None


@dataclass(frozen=True)
class Info:
    """Facts about a source (docs/info.md). Those that are unknown, that the source does not have or that the job did not ask for are None.

    `bytes` is the size of the file. `width` and `height` are in pixels, after auto-rotation, and `orientation` is that of EXIF, 1 to 8. An
    animation has a number of `frames`, a `duration` in milliseconds, and a `loop`, the number of times that it is played, 0 for an endless
    loop; a PDF or TIFF has a number of `pages`. `color_space` is `rgb`, `gray`, `cmyk` or `other`, and `bits_per_sample` is None for
    floating-point samples. `video` is the video that a frame or a contact sheet is from. `thumbhash` is in base64, and `faces` are in the
    upright source, the most confident first."""

    format: str
    media_type: str
    bytes: int
    width: int
    height: int
    orientation: int
    color_space: str
    alpha: bool
    frames: int | None = None
    duration: int | None = None
    loop: int | None = None
    pages: int | None = None
    bits_per_sample: int | None = None
    profile: Profile | None = None
    video: VideoInfo | None = None
    truncated: bool = False
    exif: Exif | None = None
    location: Location | None = None
    blurhash: str | None = None
    dominant_color: str | None = None
    palette: tuple[str, ...] | None = None
    thumbhash: str | None = None
    phash: str | None = None
    faces: tuple[Face, ...] | None = None


@dataclass(frozen=True)
class Variant:
    """An image that a job has made. `bytes` is its length, `trim` the part of the upright source that remained when margins were removed, `data`
    the file if it is in the event, `url` its address in the result store, and `put` the address to which it was uploaded. `info` has the facts
    about the source, if the job asked for them."""

    key: str
    width: int
    height: int
    format: str
    bytes: int
    sha256: str
    name: str | None = None
    frames: int | None = None
    blurhash: str | None = None
    dominant_color: str | None = None
    trim: Rect | None = None
    palette: tuple[str, ...] | None = None
    thumbhash: str | None = None
    phash: str | None = None
    faces: tuple[Face, ...] | None = None
    info: Info | None = None
    encoding: Encoding | None = None
    expires_at: datetime | None = None
    url: str | None = None
    put: str | None = None
    data: str | None = field(default=None, repr=False)

    @property
    def content(self) -> builtins.bytes | None:
        """The file if it is in the event, else None."""
        return None if self.data is None else base64.b64decode(self.data)


@dataclass(frozen=True)
class SourceFacts:
    """The fetched source of a job."""

    bytes: int
    format: str
    width: int
    height: int
    status: int | None = None
    etag: str | None = None
    truncated: bool = False


@dataclass(frozen=True)
class VariantFailure:
    """A variant that could not be made, by its index in the job."""

    variant: int
    code: str
    message: str


@dataclass(frozen=True)
class Fallback:
    """The failure of a job whose fallback picture was delivered."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True)
class Started:
    """Work for the job started."""

    job: JobReference


@dataclass(frozen=True)
class Progress:
    """The source is being fetched; `received` and `total` are bytes."""

    job: JobReference
    stage: str
    received: int
    attempt: int
    total: int | None = None


@dataclass(frozen=True)
class Ready:
    """All images of the job are available. `timings` are milliseconds by stage."""

    job: JobReference
    variants: tuple[Variant, ...]
    origin: str
    timings: Mapping[str, float]
    key: str | None = None
    expires_at: datetime | None = None
    attempts: int = 1
    source: SourceFacts | None = None
    failures: tuple[VariantFailure, ...] = ()
    alternative: str | None = None
    fallback: Fallback | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """The job failed and has no images."""

    job: JobReference
    code: str
    message: str
    retryable: bool
    attempts: int
    timings: Mapping[str, float]


@dataclass(frozen=True)
class Cancelled:
    """The job was cancelled."""

    job: JobReference


@dataclass(frozen=True)
class Superseded:
    """A job of a higher generation for the same slot superseded this one."""

    job: JobReference
    superseded_by: int


@dataclass(frozen=True)
class Purged:
    """Results of a source, a tag, a key or a tenant were purged."""

    count: int
    source: str | None = None
    tag: str | None = None
    key: str | None = None
    tenant: str | None = None
    cache_tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class BatchCounts:
    """The jobs of a batch that have ended, by outcome."""

    ready: int
    failed: int
    cancelled: int
    superseded: int


@dataclass(frozen=True)
class ListError:
    """The error that ended the list of a batch's jobs early."""

    code: str
    message: str


@dataclass(frozen=True)
class Batch:
    """The state of a batch: `open`, `listing`, `running`, `cancelling` or `completed`. `total` is None while jobs may be added."""

    id: str
    state: str
    created_at: datetime
    ended: int
    counts: BatchCounts
    total: int | None = None
    tenant: str | None = None
    cancelled_at: datetime | None = None
    completed_at: datetime | None = None
    prefix: str | None = None
    preset: str | None = None
    submitted: int | None = None
    error: ListError | None = None
    failures: str | None = None

    @property
    def is_completed(self) -> bool:
        """Whether all jobs have ended."""
        return self.state == "completed"


@dataclass(frozen=True)
class BatchProgress:
    """Jobs of a batch have ended."""

    batch: Batch


@dataclass(frozen=True)
class BatchCompleted:
    """The batch is closed, and all its jobs have ended."""

    batch: Batch


EventData = Union[
    Started, Progress, Ready, Failed, Cancelled, Superseded, Purged, BatchProgress, BatchCompleted, Mapping[str, Any]
]

_TYPES: dict[str, type[Any]] = {
    "halcyon.image.started": Started,
    "halcyon.image.progress": Progress,
    "halcyon.image.ready": Ready,
    "halcyon.image.failed": Failed,
    "halcyon.image.cancelled": Cancelled,
    "halcyon.image.superseded": Superseded,
    "halcyon.image.purged": Purged,
    "halcyon.batch.progress": BatchProgress,
    "halcyon.batch.completed": BatchCompleted,
}


@dataclass(frozen=True)
class Event:
    """A CloudEvent of Halcyon. `data` is an object of this module, selected by `type`; the JSON object itself for an unknown type."""

    id: str
    type: str
    time: datetime
    data: EventData
    subject: str | None = None
    traceparent: str | None = None

    @property
    def name(self) -> str:
        """The short name of the type: `ready`, or `batch.completed`."""
        return self.type.removeprefix("halcyon.").removeprefix("image.")

    @property
    def job(self) -> JobReference | None:
        """The job of the event; None if it belongs to none."""
        job = getattr(self.data, "job", None)
        return job if isinstance(job, JobReference) else None

    @property
    def is_terminal(self) -> bool:
        """Whether the event ends its job."""
        return isinstance(self.data, (Ready, Failed, Cancelled, Superseded))

    @staticmethod
    def from_json(value: Any) -> Event:
        """Creates an event from its JSON: an object, or the text or bytes of a message. Raises InvalidResponse."""
        if isinstance(value, (str, bytes)):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise InvalidResponse(f"an event is not JSON: {error}") from None
        if not isinstance(value, Mapping):
            raise InvalidResponse("an event is not an object")
        envelope = decode(_Envelope, value)
        type_ = _TYPES.get(envelope.type)
        data = decode(type_, envelope.data) if type_ else envelope.data
        return Event(envelope.id, envelope.type, envelope.time, data, envelope.subject, envelope.traceparent)


@dataclass(frozen=True)
class _Envelope:
    id: str
    type: str
    time: datetime
    data: Any
    subject: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True)
class Message:
    """An item of a subscription: an event, or a `gap` if the broker has deleted events before the next one. `cursor` is the position after it."""

    event: Event | None
    gap: str | None
    cursor: str
