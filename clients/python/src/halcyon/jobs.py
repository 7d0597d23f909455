"""Jobs and their parts. Fields are those of docs/jobs.md in snake case; None means that the field is absent.

    job = Job("https://example.org/cat.jpg", width=400, height=300, processors=[processors.round_corner(radius=8)])
    producer.send(job.topic(), job.encode())
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Union

from ._codec import encode

JSON = Any
"""A JSON value: None, bool, int, float, str, a list or a dictionary."""

Source = Union[str, Mapping[str, JSON]]
"""A URL, `file:`, `s3:`, `data:` or `initials:` text, or an object as made by the functions of this module."""

Processor = Union[str, Mapping[str, JSON]]
"""A step that an image goes through, as made by halcyon.processors."""

ContentMode = Literal[
    "scaleToFill", "scaleAspectFit", "scaleAspectFill", "redraw", "center", "top", "bottom", "left", "right",
    "topLeft", "topRight", "bottomLeft", "bottomRight", "fill", "contain", "cover",
]  # fmt: skip
Position = Literal[
    "center", "top", "bottom", "left", "right", "topLeft", "topRight", "bottomLeft", "bottomRight"
]  # fmt: skip
ScaleOptions = Literal[
    "fitLeavesExcessAndFillCropsExcess", "fitCropsExcess", "fillLeavesExcess", "fitCropsExcessAndFillLeavesExcess"
]
InterpolationQuality = Literal["none", "low", "medium", "high", "default"]
Format = Literal["auto", "best", "jpeg", "png", "webp", "avif", "gif", "tiff", "jxl"]
Priority = Literal["high", "normal", "low"]


def url(url: str, cache_key: str | None = None) -> Source:
    """A URL that changes, such as a presigned one. The image is identified by the cache key."""
    return url if cache_key is None else {"url": url, "cacheKey": cache_key}


def inline(content: bytes, cache_key: str | None = None) -> Source:
    """An image that is part of the job."""
    source = {"base64": base64.b64encode(content).decode()}
    return source if cache_key is None else {**source, "cacheKey": cache_key}


def initials(letters: str, background: str | None = None, foreground: str | None = None) -> Source:
    """An avatar: one to three letters on a colored square. Colors are those of CSS."""
    colors = {"background": background, "foreground": foreground}
    return {"initials": letters, **{name: color for name, color in colors.items() if color is not None}}


def video(source: Source, seconds: float = 0) -> Source:
    """The frame of a video at a time."""
    return {"video": source, "seconds": seconds}


def video_sheet(source: Source, columns: int = 4, rows: int = 4, width: int = 320) -> Source:
    """Frames of a video in rows, at equal distances. The width is that of each in pixels."""
    return {"video": source, "contactSheet": {"columns": columns, "rows": rows, "width": width}}


def video_preview(source: Source, frames: int = 10, duration: float = 3, width: int = 320) -> Source:
    """An animation of frames of a video at equal distances. The duration is in seconds, the width in pixels."""
    return {"video": source, "preview": {"frames": frames, "duration": duration, "width": width}}


def put(url: str | Mapping[str, str]) -> Mapping[str, JSON]:
    """Delivery by upload: to a URL, to a template with placeholders such as `{variant}.{format}`, or to a URL for each variant by its name."""
    return {"put": url}


@dataclass(frozen=True)
class Point:
    """A point in fractions of the image, 0 to 1."""

    x: float
    y: float


@dataclass(frozen=True)
class CropRect:
    """The part of the source that is used, in fractions of it or in pixels."""

    x: float
    y: float
    width: float
    height: float
    unit: Literal["fractions", "pixels"] | None = None


@dataclass(frozen=True)
class Trim:
    """The detection of margins: the tolerance in levels, 0 to 254, the color of the margin, and the share of its pixels that may differ, 0 to 0.5."""

    tolerance: int | None = None
    background: str | None = None
    fuzz: float | None = None


@dataclass(frozen=True)
class Sizer:
    """A rule for the size, in place of width and height: the image is scaled down to a width or height in points."""

    aspect_scale_down_by_width: float | None = None
    aspect_scale_down_by_height: float | None = None


@dataclass(frozen=True)
class Cache:
    """What may be cached, and whether a cached result may be returned."""

    memory: bool | None = None
    store: bool | Literal["required"] | None = None
    source: bool | None = None
    reload: bool | None = None
    only_if_cached: bool | None = None


@dataclass(frozen=True)
class Preset:
    """A preset, of this version or a newer one."""

    name: str
    version: int | None = None


@dataclass(frozen=True)
class Batch:
    """The batch of a job that is written to Kafka, and the index of the job there."""

    id: str
    index: int | None = None


@dataclass(frozen=True)
class Quality:
    """The lowest quality whose similarity (SSIM) to the picture before encoding reaches the target, 0.5 to 0.9999."""

    target: float


@dataclass(frozen=True)
class Quantization:
    """A palette for PNG and GIF: at most 2, 4, 16 or 256 colors, and the amount of error diffusion, 0 to 1."""

    colors: int | None = None
    dither: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Picture:
    """The fields that jobs and their variants have in common."""

    width: float | None = None
    height: float | None = None
    screen_scale: float | None = None
    content_mode: ContentMode | None = None
    scale_options: ScaleOptions | None = None
    position: Position | None = None
    crop_rect: CropRect | None = None
    trim: bool | Trim | None = None
    gravity: Literal["center", "attention", "entropy", "faces", "objects"] | Point | Mapping[str, JSON] | None = None
    """A word, a point, or a detection such as `{"detect": "faces", "fallback": "entropy"}`."""
    size_for_display: bool | None = None
    sizer: Literal["natural"] | Sizer | Mapping[str, JSON] | None = None
    upscale: bool | None = None
    interpolation_quality: InterpolationQuality | None = None
    linear_light: bool | None = None
    background: str | None = None
    before: Sequence[Processor] | None = None
    processors: Sequence[Processor] | None = None
    format: Format | None = None
    quality: int | Quality | None = None
    maximum_bytes: int | None = None
    allow_resize: bool | None = None
    near_lossless: bool | None = None
    chroma_subsampling: Literal["auto", "4:4:4", "4:2:0"] | None = None
    bit_depth: Literal[8, 12, 16] | None = None
    quantize: bool | int | Quantization | None = None
    profile: Literal["srgb", "p3"] | None = None
    lossless: bool | None = None
    effort: int | None = None
    progressive: bool | None = None
    strip_metadata: bool | None = None
    keep_profile: bool | None = None
    page: int | None = None
    frames: int | None = None
    tolerance: Literal["strict", "truncated"] | None = None
    blurhash: bool | None = None
    dominant_color: bool | None = None
    palette: bool | None = None
    thumbhash: bool | None = None
    phash: bool | None = None
    faces: bool | None = None
    info: bool | Mapping[str, bool] | None = None
    """True, or `{"location": True}`, for facts about the source instead of an image."""

    def to_json(self) -> dict[str, JSON]:
        """The JSON object of the job or output."""
        value: dict[str, JSON] = encode(self)
        return value


@dataclass(frozen=True, kw_only=True)
class Output(_Picture):
    """One of several images of a job. Fields that it does not set are those of the job."""

    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Template(_Picture):
    """The fields that the jobs of a batch or of a preset have in common: a job without a source."""

    id: str | None = None
    alternatives: Sequence[Source] | None = None
    fallback: Source | Literal[False] | None = None
    variants: Sequence[Output] | None = None
    partial: bool | None = None
    max_age: float | None = None
    cache: Cache | None = None
    tenant: str | None = None
    headers: Mapping[str, str] | None = None
    tags: Sequence[str] | None = None
    slot: str | None = None
    generation: int | None = None
    delivery: Literal["reference", "inline"] | Mapping[str, JSON] | None = None
    priority: Priority | None = None
    prefetch: bool | None = None
    refresh: float | Literal["beforeExpiry"] | None = None
    not_before: float | datetime | None = None
    deadline: float | datetime | None = None
    metadata: JSON = None
    placeholder: JSON = None
    alt_text: JSON = None
    preset: str | Preset | None = None
    batch: Batch | None = None
    webhook: str | None = None


@dataclass(frozen=True)
class Job(Template):
    """A job: fetches, sizes, processes and encodes one image. Times are seconds from now, or dates with a time zone."""

    source: Source

    def to_json(self) -> dict[str, JSON]:
        """The JSON object of the job, with its source first."""
        return {"source": self.source, **super().to_json()}

    def encode(self) -> bytes:
        """The value of a Kafka message: the JSON in UTF-8."""
        return json.dumps(self.to_json(), ensure_ascii=False, separators=(",", ":")).encode()

    def topic(self, prefix: str = "halcyon.") -> str:
        """The Kafka topic of the job's lane."""
        return f"{prefix}jobs" + ("" if self.priority in (None, "normal") else f".{self.priority}")


JobLike = Union[Job, Mapping[str, JSON]]
"""A job, or its JSON object."""

TemplateLike = Union[Template, Mapping[str, JSON]]
"""A template, or its JSON object."""


def to_json(job: JobLike | TemplateLike) -> dict[str, JSON]:
    """The JSON object of a job or template."""
    return job.to_json() if isinstance(job, Template) else dict(job)
