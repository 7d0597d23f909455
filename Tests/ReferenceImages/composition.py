"""A second implementation of trimming, padding, text, masks, colors and blending, on Pillow and numpy.

Every function takes an image in RGB or RGBA and returns the expected one. Formulas come from the specifications that docs/processors.md names, not
from Halcyon's code.
"""
import math
import sys
import pathlib

import numpy
from PIL import Image, ImageDraw, ImageFont

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "CompatibleURLs"))
from reference import distance, lab  # noqa: E402, F401


def samples(image):
    return numpy.asarray(image.convert("RGBA"), dtype=float) / 255


def picture(array):
    image = Image.fromarray(numpy.clip(array * 255 + 0.5, 0, 255).astype("uint8"), "RGBA")
    return image


def trimmed(image, tolerance=10, background=None, fuzz=0):
    """Removes margins: rows and columns in which at most the share `fuzz` of the pixels differs from the background."""
    array = numpy.asarray(image.convert("RGBA"), dtype=float)
    array = array * numpy.concatenate([array[..., 3:] / 255] * 3 + [numpy.ones_like(array[..., 3:])], axis=-1)
    corner = array[0, 0] if background is None else numpy.array(background, dtype=float)
    differs = (numpy.abs(array - corner) > tolerance).any(axis=-1)
    columns, rows = numpy.where(differs.mean(axis=0) > fuzz)[0], numpy.where(differs.mean(axis=1) > fuzz)[0]
    if not len(columns) or not len(rows):
        return image
    return image.crop((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))


def padded(image, top=0, right=0, bottom=0, left=0, color=(0, 0, 0, 0), mode=None):
    """Adds a color around the image, or with a mode of numpy.pad its edge or its mirror image."""
    array = numpy.asarray(image.convert("RGBA"))
    sides = ((top, bottom), (left, right), (0, 0))
    if mode:
        return Image.fromarray(numpy.pad(array, sides, mode=mode), "RGBA")
    canvas = Image.new("RGBA", (image.width + left + right, image.height + top + bottom), color)
    canvas.paste(image.convert("RGBA"), (left, top))
    return canvas


def faces_hidden(image, areas, change):
    """Replaces each area (left, top, right, bottom) by change(area), the first one first."""
    image = image.convert("RGB")
    for area in areas:
        image.paste(change(image.crop(area)), area[:2])
    return image


def blurred(image, deviation):
    """A Gaussian blur of an opaque image, whose edges are extended."""
    reach = math.ceil(4 * deviation)
    weights = numpy.exp(-numpy.arange(-reach, reach + 1) ** 2 / (2 * deviation**2))
    array = numpy.pad(numpy.asarray(image, dtype=float), ((reach, reach), (reach, reach), (0, 0)), mode="edge")
    for axis in (0, 1):
        array = numpy.apply_along_axis(numpy.convolve, axis, array, weights / weights.sum(), "valid")
    return Image.fromarray(numpy.clip(array + 0.5, 0, 255).astype("uint8"), "RGB")


def pixelated(image, side):
    """Squares of the mean color from the top left corner."""
    array = numpy.asarray(image, dtype=float).copy()
    for top in range(0, image.height, side):
        for left in range(0, image.width, side):
            square = array[top : top + side, left : left + side]
            square[...] = square.mean(axis=(0, 1))
    return Image.fromarray((array + 0.5).astype("uint8"), "RGB")


def polygon(corners, turned=0.0):
    return [(0.5 + 0.5 * math.sin(2 * math.pi * i / corners + turned), 0.5 - 0.5 * math.cos(2 * math.pi * i / corners + turned)) for i in range(corners)]


def star():
    inner = (3 - math.sqrt(5)) / 2
    return [((0.5 if i % 2 == 0 else 0.5 * inner) * math.sin(math.pi * i / 5), -(0.5 if i % 2 == 0 else 0.5 * inner) * math.cos(math.pi * i / 5)) for i in range(10)]


def heart():
    turns = [math.radians(i) for i in range(360)]
    return [(16 * math.sin(t) ** 3, -(13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t))) for t in turns]


SHAPES = {"circle": polygon(360), "ellipse": polygon(360), "triangle": [(0.5, 0), (1, 1), (0, 1)], "diamond": polygon(4), "pentagon": polygon(5),
          "hexagon": polygon(6), "octagon": polygon(8, math.pi / 8), "star": star(), "heart": heart()}


def masked(image, shape):
    """Cuts the image to a shape, drawn eight times as large and averaged."""
    (left, right), (top, bottom) = ((min(c), max(c)) for c in zip(*SHAPES[shape]))
    times, (width, height) = 8, image.size
    side = min(width, height)
    (x, y, across, down) = ((width - side) / 2, (height - side) / 2, side, side) if shape == "circle" else (0, 0, width, height)
    corners = [((x + (px - left) / (right - left) * across) * times - 0.5, (y + (py - top) / (bottom - top) * down) * times - 0.5) for px, py in SHAPES[shape]]
    mask = Image.new("L", (width * times, height * times))
    ImageDraw.Draw(mask).polygon(corners, fill=255)
    return with_alpha(image, numpy.asarray(mask.resize(image.size, Image.Resampling.BOX)) / 255)


def with_alpha(image, factor):
    array = samples(image)
    array[..., 3] *= factor
    return picture(array)


def masked_by(image, other):
    """Cuts the image by the luminance of an opaque one (CSS Masking 1, section 7.10)."""
    light = linear(samples(other.resize(image.size, Image.Resampling.LANCZOS))[..., :3]) @ [0.2126, 0.7152, 0.0722]
    return with_alpha(image, encoded(light))


def linear(values):
    return numpy.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def encoded(values):
    values = numpy.clip(values, 0, 1)
    return numpy.where(values <= 0.0031308, values * 12.92, 1.055 * values ** (1 / 2.4) - 0.055)


def hue(image, degrees):
    """hue-rotate() of Filter Effects 1, section 8.6: the matrix of feColorMatrix."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrix = numpy.array([
        [0.213 + c * 0.787 - s * 0.213, 0.715 - c * 0.715 - s * 0.715, 0.072 - c * 0.072 + s * 0.928],
        [0.213 - c * 0.213 + s * 0.143, 0.715 + c * 0.285 + s * 0.140, 0.072 - c * 0.072 - s * 0.283],
        [0.213 - c * 0.213 - s * 0.787, 0.715 - c * 0.715 + s * 0.715, 0.072 + c * 0.928 + s * 0.072]])
    array = samples(image)
    array[..., :3] = array[..., :3] @ matrix.T
    return picture(array)


def gamma(image, value):
    array = samples(image)
    array[..., :3] **= 1 / value
    return picture(array)


WHITE = numpy.array([0.95047, 1.0, 1.08883])
TO_XYZ = numpy.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])


def to_lab(rgb):
    ratios = linear(rgb) @ TO_XYZ.T / WHITE
    f = numpy.where(ratios > 216 / 24389, numpy.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return numpy.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def from_lab(values):
    y = (values[..., 0] + 16) / 116
    f = numpy.stack([y + values[..., 1] / 500, y, y - values[..., 2] / 200], axis=-1)
    ratios = numpy.where(f > 6 / 29, f ** 3, (116 * f - 16) * 27 / 24389)
    return encoded(ratios * WHITE @ numpy.linalg.inv(TO_XYZ).T)


def normalized(image, lower=1, upper=99):
    """Stretches L* of CIE L*a*b* between two percentiles."""
    array = samples(image)
    values = to_lab(array[..., :3])
    low, high = numpy.percentile(values[..., 0], [lower, upper])
    values[..., 0] = numpy.clip((values[..., 0] - low) * 100 / (high - low), 0, 100)
    array[..., :3] = from_lab(values)
    return picture(array)


def duotone(image, dark, light):
    array = samples(image)
    luma = (array[..., :3] @ [0.2126, 0.7152, 0.0722])[..., None]
    dark, light = (numpy.array(color) / 255 for color in (dark, light))
    array[..., :3] = dark + (light - dark) * luma
    return picture(array)


def luminosity(c):
    return c @ [0.3, 0.59, 0.11]


def set_luminosity(c, value):
    c = c + (value - luminosity(c))[..., None]
    gray, low, high = luminosity(c)[..., None], c.min(axis=-1, keepdims=True), c.max(axis=-1, keepdims=True)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        c = numpy.where(low < 0, gray + (c - gray) * gray / (gray - low), c)
        return numpy.where(high > 1, gray + (c - gray) * (1 - gray) / (high - gray), c)


def saturation(c):
    return c.max(axis=-1) - c.min(axis=-1)


def set_saturation(c, value):
    low, spread = c.min(axis=-1, keepdims=True), saturation(c)[..., None]
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return numpy.where(spread > 0, (c - low) * value[..., None] / spread, 0)


def soft(cb, cs):
    d = numpy.where(cb <= 0.25, ((16 * cb - 12) * cb + 4) * cb, numpy.sqrt(cb))
    return numpy.where(cs <= 0.5, cb - (1 - 2 * cs) * cb * (1 - cb), cb + (2 * cs - 1) * (d - cb))


def hard(cb, cs):
    return numpy.where(cs <= 0.5, 2 * cb * cs, cb + (2 * cs - 1) - cb * (2 * cs - 1))


def dodge(cb, cs):
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return numpy.where(cb == 0, 0, numpy.where(cs == 1, 1, numpy.minimum(1, cb / (1 - cs))))


def burn(cb, cs):
    with numpy.errstate(divide="ignore", invalid="ignore"):
        return numpy.where(cb == 1, 1, numpy.where(cs == 0, 0, 1 - numpy.minimum(1, (1 - cb) / cs)))


# Compositing and Blending 1, sections 10.1 and 10.2.
MODES = {
    "normal": lambda cb, cs: cs, "multiply": lambda cb, cs: cb * cs, "screen": lambda cb, cs: cb + cs - cb * cs, "overlay": lambda cb, cs: hard(cs, cb),
    "darken": numpy.minimum, "lighten": numpy.maximum, "colorDodge": dodge, "colorBurn": burn, "hardLight": hard, "softLight": soft,
    "difference": lambda cb, cs: numpy.abs(cb - cs), "exclusion": lambda cb, cs: cb + cs - 2 * cb * cs,
    "hue": lambda cb, cs: set_luminosity(set_saturation(cs, saturation(cb)), luminosity(cb)),
    "saturation": lambda cb, cs: set_luminosity(set_saturation(cb, saturation(cs)), luminosity(cb)),
    "color": lambda cb, cs: set_luminosity(cs, luminosity(cb)), "luminosity": lambda cb, cs: set_luminosity(cb, luminosity(cs)),
}


def blended(image, layer, mode, opacity=1.0, x=0, y=0):
    """Lays a layer over the image (section 5.1)."""
    backdrop = samples(image)
    whole = numpy.zeros_like(backdrop)
    pixels = samples(layer)
    left, top = max(0, x), max(0, y)
    right, bottom = min(image.width, x + layer.width), min(image.height, y + layer.height)
    whole[top:bottom, left:right] = pixels[top - y:bottom - y, left - x:right - x]
    cb, ab, cs = backdrop[..., :3], backdrop[..., 3:], whole[..., :3]
    alpha = whole[..., 3:] * opacity
    mixed = (1 - ab) * cs + ab * MODES[mode](cb, cs)
    total = alpha + ab * (1 - alpha)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        colors = numpy.where(total > 0, (mixed * alpha + cb * ab * (1 - alpha)) / total, 0)
    return picture(numpy.concatenate([colors, total], axis=-1))


def in_linear_light(image, size):
    """Averages light in whole blocks of pixels, premultiplied."""
    array = samples(image)
    down, across = array.shape[0] // size[1], array.shape[1] // size[0]
    light = numpy.concatenate([linear(array[..., :3]) * array[..., 3:], array[..., 3:]], axis=-1)
    means = light.reshape(size[1], down, size[0], across, 4).mean(axis=(1, 3))
    with numpy.errstate(divide="ignore", invalid="ignore"):
        colors = numpy.where(means[..., 3:] > 0, means[..., :3] / means[..., 3:], 0)
    return picture(numpy.concatenate([encoded(colors), means[..., 3:]], axis=-1))


def written(image, text, font, size, color, x, y, anchor):
    """Draws text with FreeType alone. The anchor is that of the box around the ink: its position in fractions."""
    face = ImageFont.truetype(font, size)
    left, top, right, bottom = face.getbbox(text)
    layer = Image.new("RGBA", image.size, (*color[:3], 0))
    origin = (x - anchor[0] * (right - left) - left, y - anchor[1] * (bottom - top) - top)
    ImageDraw.Draw(layer).text((round(origin[0]), round(origin[1])), text, font=face, fill=(*color[:3], 255))
    return blended(image, layer, "normal")
