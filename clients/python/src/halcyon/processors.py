"""Processors: the steps that an image goes through. Lengths are in points, colors are those of CSS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .jobs import Position, Processor, Source

Corner = Literal["topLeft", "topRight", "bottomLeft", "bottomRight"]
BlendMode = Literal[
    "normal", "multiply", "screen", "overlay", "darken", "lighten", "colorDodge", "colorBurn", "hardLight",
    "softLight", "difference", "exclusion", "hue", "saturation", "color", "luminosity",
]  # fmt: skip
Offset = tuple[float, float]
"""A distance to the right and downward."""
Shape = Literal[
    "circle", "ellipse", "triangle", "diamond", "pentagon", "hexagon", "octagon", "star", "heart"
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


def overlay_image(source: Source, opacity: float | None = None, mode: BlendMode | None = None) -> Processor:
    """Lays another image over the image."""
    return processor("overlay", source=source, opacity=opacity, mode=mode)


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


def blur_faces(amount: float | None = None, *, margin: float | None = None, confidence: float | None = None) -> Processor:
    """Blurs all faces, by a share of the longer side of the area, which exceeds the face by `margin` on each side."""
    return processor("blurFaces", amount=amount, margin=margin, confidence=confidence)


def pixelate_faces(cells: int | None = None, *, margin: float | None = None, confidence: float | None = None) -> Processor:
    """Replaces all faces by this number of squares along the longer side of the area."""
    return processor("pixelateFaces", cells=cells, margin=margin, confidence=confidence)


def watermark(
    source: Source,
    position: Position | None = None,
    *,
    margin: float | None = None,
    width_fraction: float | None = None,
    scale: float | None = None,
    offset: Offset | None = None,
    opacity: float | None = None,
    mode: BlendMode | None = None,
    tiled: bool | None = None,
) -> Processor:
    """Places another image in a corner, along a side or in the middle: at a fraction of the image's width, or at a scale of its own size."""
    return processor(
        "watermark", source=source, position=position, margin=margin, widthFraction=width_fraction, scale=scale,
        offset=_point(offset), opacity=opacity, mode=mode, tiled=tiled)  # fmt: skip


def rotate(degrees: float, background: str | None = None) -> Processor:
    """Rotates the image clockwise."""
    return processor("rotate", degrees=degrees, background=background)


def flip(direction: Literal["horizontal", "vertical", "both"] | None = None) -> Processor:
    """Mirrors the image: left and right, unless another direction is given."""
    return processor("flip", direction=direction)


def pad(
    all: float | None = None,
    *,
    top: float | None = None,
    right: float | None = None,
    bottom: float | None = None,
    left: float | None = None,
    fill: Literal["color", "edge", "mirror", "blur"] | None = None,
    color: str | None = None,
) -> Processor:
    """Enlarges the canvas on all sides, or on some. A color belongs to the fill `color`, which is the default."""
    return processor("pad", all=all, top=top, right=right, bottom=bottom, left=left, fill=fill, color=color)


def text(
    text: str,
    font: str,
    *,
    bold: bool | None = None,
    italic: bool | None = None,
    size: float | None = None,
    width: float | None = None,
    height: float | None = None,
    align: Literal["left", "center", "right"] | None = None,
    color: str | None = None,
    outline_width: float | None = None,
    outline_color: str | None = None,
    opacity: float | None = None,
    position: Position | None = None,
    margin: float | None = None,
    offset: Offset | None = None,
) -> Processor:
    """Draws a text in a font family that the workers have. Without a size, it is the largest that fits into the box of width and height."""
    return processor(
        "text", text=text, font=font, bold=bold, italic=italic, size=size, width=width, height=height, align=align,
        color=color, outlineWidth=outline_width, outlineColor=outline_color, opacity=opacity, position=position,
        margin=margin, offset=_point(offset))  # fmt: skip


def mask(shape: Shape) -> Processor:
    """Clips the image to a shape."""
    return processor("mask", shape=shape)


def mask_image(source: Source) -> Processor:
    """Clips the image by the opacity of another image, or by its luminance if it is opaque."""
    return processor("mask", source=source)


def hue(degrees: float) -> Processor:
    """Rotates all hues."""
    return processor("hue", degrees=degrees)


def gamma(gamma: float | None = None) -> Processor:
    """Brightens the midtones (above 1), or darkens them (below 1)."""
    return processor("gamma", gamma=gamma)


def normalize(*, lower: float | None = None, upper: float | None = None) -> Processor:
    """Stretches the lightness to the full range. `lower` and `upper` are the percentiles that become black and white."""
    return processor("normalize", lower=lower, upper=upper)


def duotone(dark: str, light: str) -> Processor:
    """Replaces the colors by a gradient between two of them."""
    return processor("duotone", dark=dark, light=light)


def _point(offset: Offset | None) -> dict[str, float] | None:
    return None if offset is None else {"x": offset[0], "y": offset[1]}


def _list(corners: Sequence[Corner] | None) -> list[Corner] | None:
    return None if corners is None else list(corners)
