"""Processors: the steps that a sized image goes through. Lengths are in points, colors are those of CSS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .jobs import Processor, Source

Corner = Literal["topLeft", "topRight", "bottomLeft", "bottomRight"]
Position = Literal[
    "center", "top", "bottom", "left", "right", "topLeft", "topRight", "bottomLeft", "bottomRight"
]  # fmt: skip
BlendMode = Literal[
    "normal", "multiply", "screen", "overlay", "darken", "lighten", "colorDodge", "colorBurn", "hardLight",
    "softLight", "difference", "exclusion",
]  # fmt: skip


def processor(name: str, /, **parameters: Any) -> Processor:
    """A processor by its name, such as one that a cluster has registered itself. Parameters that are None are left out."""
    return {name: {key: value for key, value in parameters.items() if value is not None}}


def round_corner(
    radius: float | None = None,
    *,
    width_fraction: float | None = None,
    height_fraction: float | None = None,
    corners: Sequence[Corner] | None = None,
    background: str | None = None,
) -> Processor:
    """Rounds the corners, by a radius in points or in a fraction of the image's width or height."""
    return processor(
        "roundCorner", radius=radius, widthFraction=width_fraction, heightFraction=height_fraction,
        corners=_list(corners), background=background)  # fmt: skip


def resize(width: float, height: float, mode: Literal["none", "aspectFit", "aspectFill"] | None = None) -> Processor:
    """Resizes the image; stretches it unless there is a mode."""
    return processor("resize", width=width, height=height, mode=mode)


def crop(width: float, height: float, *, x: float = 0.5, y: float = 0.5) -> Processor:
    """Crops the image to this size around an anchor, given in fractions."""
    return processor("crop", width=width, height=height, anchor={"x": x, "y": y})


def blur(radius: float) -> Processor:
    """Blurs the image (Gaussian)."""
    return processor("blur", radius=radius)


def tint(color: str) -> Processor:
    """Replaces all colors by one."""
    return processor("tint", color=color)


def overlay(color: str, fraction: float | None = None) -> Processor:
    """Lays a color over the image, of which `fraction` remains visible."""
    return processor("overlay", color=color, fraction=fraction)


def overlay_image(source: Source, opacity: float | None = None) -> Processor:
    """Lays another image over the image."""
    return processor("overlay", source=source, opacity=opacity)


def blend(mode: BlendMode, background: str, opacity: float | None = None) -> Processor:
    """Blends the image with a color."""
    return processor("blend", mode=mode, background=background, opacity=opacity)


def color_controls(
    *,
    brightness: float | None = None,
    contrast: float | None = None,
    saturation: float | None = None,
    exposure: float | None = None,
) -> Processor:
    """Changes brightness, contrast, saturation and exposure."""
    return processor(
        "colorControls", brightness=brightness, contrast=contrast, saturation=saturation, exposure=exposure)  # fmt: skip


def black_white() -> Processor:
    """Removes the colors."""
    return processor("blackWhite")


def border(
    width: float,
    color: str | None = None,
    *,
    radius: float | None = None,
    width_fraction: float | None = None,
    height_fraction: float | None = None,
    corners: Sequence[Corner] | None = None,
) -> Processor:
    """Draws a border, with round corners if a radius is given."""
    return processor(
        "border", width=width, color=color, radius=radius, widthFraction=width_fraction,
        heightFraction=height_fraction, corners=_list(corners))  # fmt: skip


def downsample(width: float, height: float) -> Processor:
    """Shrinks the image in proportion to fit this size."""
    return processor("downsample", width=width, height=height)


def sharpen(*, radius: float | None = None, amount: float | None = None) -> Processor:
    """Sharpens the image. The radius is in pixels."""
    return processor("sharpen", radius=radius, amount=amount)


def pixelate(size: float) -> Processor:
    """Replaces the image by squares of this size."""
    return processor("pixelate", size=size)


def watermark(
    source: Source,
    position: Position | None = None,
    *,
    margin: float | None = None,
    width_fraction: float | None = None,
    opacity: float | None = None,
    tiled: bool | None = None,
) -> Processor:
    """Places another image in a corner, along a side or in the middle."""
    return processor(
        "watermark", source=source, position=position, margin=margin, widthFraction=width_fraction, opacity=opacity,
        tiled=tiled)  # fmt: skip


def rotate(degrees: float, background: str | None = None) -> Processor:
    """Rotates the image clockwise."""
    return processor("rotate", degrees=degrees, background=background)


def flip(direction: Literal["horizontal", "vertical", "both"] | None = None) -> Processor:
    """Mirrors the image: left and right, unless another direction is given."""
    return processor("flip", direction=direction)


def _list(corners: Sequence[Corner] | None) -> list[Corner] | None:
    return None if corners is None else list(corners)
