"""A second implementation of the geometry and the effects of imgproxy's, thumbor's and imagor's URLs, on Pillow.

The `picture` of a vector in *-urls.json says in words what its URL means by the documentation of its server, so that nothing here depends on
how Halcyon reads URLs: steps separated by semicolons, such as `crop 10 20 200 100; fit 100 100; blur 2`.
"""
import math

import numpy
from PIL import Image, ImageDraw, ImageFilter, ImageOps


def picture(source, steps, mark):
    """Applies steps to an image, with the image of watermarks. Returns the image, or a size if the steps determine nothing else, and the
    tolerated distance."""
    image, tolerance = ImageOps.exif_transpose(source), None
    image = image.convert("RGBA" if image.mode in ("RGBA", "LA", "P") else "RGB")
    for step in steps.split(";"):
        name, *arguments = step.split()
        if name == "near":
            tolerance = float(arguments[0])
        elif name == "size":
            return tuple(map(int, arguments)), None
        elif name in ("watermark", "tiles"):
            image = STEPS[name](image, mark.convert("RGB"), *map(float, arguments))
        else:
            image = STEPS[name](image, *arguments)
    return image, tolerance


def rounded(number):
    return max(1, math.floor(number + 0.5))


def resized(image, width, height, box=None):
    if image.mode == "RGBA":
        # Colors of transparent pixels do not count.
        return image.convert("RGBa").resize((width, height), Image.Resampling.LANCZOS, box=box).convert("RGBA")
    return image.resize((width, height), Image.Resampling.LANCZOS, box=box)


def factors(image, width, height):
    return [float(side) / own for side, own in zip((width, height), image.size) if float(side)]


def fit(image, width, height, enlarge=None):
    factor = min(factors(image, width, height) + ([] if enlarge else [1]))
    return resized(image, *(rounded(side * factor) for side in image.size))


def cover(image, width, height):
    factor = max(factors(image, width, height))
    return resized(image, *(rounded(side * factor) for side in image.size))


def part(image, width, height, arguments):
    """The part of the given size around a point (`point X Y`) or at a side (`X Y`), as a box."""
    if arguments[:1] == ["point"]:
        starts = [float(point) * side - length / 2 for point, side, length in zip(arguments[1:3], image.size, (width, height))]
    else:
        x, y = (arguments + ["0.5", "0.5"])[:2] if arguments and arguments[0] != "enlarge" else ("0.5", "0.5")
        starts = [float(anchor) * (side - length) for anchor, side, length in zip((x, y), image.size, (width, height))]
    x, y = (min(max(start, 0), side - length) for start, side, length in zip(starts, image.size, (width, height)))
    return x, y, x + width, y + height


def fill(image, width, height, *arguments):
    factor = max(factors(image, width, height))
    box = part(image, float(width) / factor, float(height) / factor, list(arguments))
    return resized(image, int(width), int(height), box)


def fill_small(image, width, height, *arguments):
    """A source that does not cover the box is cut to it and not scaled."""
    assert max(factors(image, width, height)) > 1
    return anchor(image, width, height, *(arguments or ("0.5", "0.5")))


def fill_down(image, width, height, *arguments):
    factor = max(max(factors(image, width, height)), 1)
    return fill(image, rounded(float(width) / factor), rounded(float(height) / factor), *arguments)


def pad(image, width, height, color):
    canvas = Image.new("RGBA" if len(color) == 8 or image.mode == "RGBA" else "RGB", (int(width), int(height)), f"#{color}")
    inner = fit(image, width, height, True)
    canvas.paste(inner, ((canvas.width - inner.width) // 2, (canvas.height - inner.height + 1) // 2))
    return canvas


def stretch(image, width, height, *_):
    return resized(image, int(width), int(height))


def stretch_down(image, width, height):
    factor = max(1, *factors(image, width, height))
    return resized(image, *(rounded(float(side) / factor) for side in (width, height)))


def crop(image, x, y, width, height):
    x, y, width, height = map(int, (x, y, width, height))
    return image.crop((x, y, min(x + width, image.width), min(y + height, image.height)))


def crop_fraction(image, x, y, width, height):
    sides = image.size * 2
    return crop(image, *(float(number) * side for number, side in zip((x, y, width, height), sides)))


def anchor(image, width, height, x, y):
    width, height = min(int(width), image.width), min(int(height), image.height)
    return crop(image, *(math.floor(float(point) * (side - length) + 0.5) for point, side, length in zip((x, y), image.size, (width, height))), width, height)


def rotate(image, degrees):
    turns = {"90": Image.Transpose.ROTATE_270, "180": Image.Transpose.ROTATE_180, "270": Image.Transpose.ROTATE_90}
    return image.transpose(turns[degrees])


def flip(image, axis):
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT if axis == "h" else Image.Transpose.FLIP_TOP_BOTTOM)


def blur(image, radius):
    # Pixels beyond the edges are those at the edges.
    margin = math.ceil(3 * float(radius))
    samples = numpy.pad(numpy.asarray(image), ((margin, margin), (margin, margin), (0, 0)), "edge")
    blurred = Image.fromarray(samples).filter(ImageFilter.GaussianBlur(float(radius)))
    return blurred.crop((margin, margin, margin + image.width, margin + image.height))


def pixelate(image, size):
    samples, size = numpy.asarray(image).astype(float), int(size)
    for y in range(0, image.height, size):
        for x in range(0, image.width, size):
            samples[y : y + size, x : x + size] = samples[y : y + size, x : x + size].mean(axis=(0, 1))
    return Image.fromarray(samples.round().astype(numpy.uint8))


def mapped(image, change):
    samples = numpy.asarray(image).astype(float) / 255
    return Image.fromarray((change(samples).clip(0, 1) * 255).round().astype(numpy.uint8))


def saturation(image, amount):
    def change(samples):
        luma = samples @ numpy.array([0.2126, 0.7152, 0.0722])
        return luma[..., None] + float(amount) * (samples - luma[..., None])

    return mapped(image, change)


def color(image, hexadecimal, opacity):
    return Image.blend(image, Image.new("RGB", image.size, f"#{hexadecimal}"), float(opacity))


def flatten(image, hexadecimal):
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, f"#{hexadecimal}"), image).convert("RGB")


def trim(image, tolerance):
    """Removes rows and columns whose pixels all differ from that in the top left corner by at most the tolerance."""
    samples = numpy.asarray(image).astype(int)
    differs = (abs(samples - samples[0, 0]) > int(tolerance)).any(axis=-1)
    columns, rows = numpy.where(differs.any(axis=0))[0], numpy.where(differs.any(axis=1))[0]
    return image.crop((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))


def extend(image, top, right, bottom, left):
    canvas = Image.new("RGBA", (image.width + int(left) + int(right), image.height + int(top) + int(bottom)))
    canvas.paste(image.convert("RGBA"), (int(left), int(top)))
    return canvas


def hue(image, degrees):
    """hue-rotate() of CSS."""
    c, s = math.cos(math.radians(float(degrees))), math.sin(math.radians(float(degrees)))
    weights = numpy.array([0.213, 0.715, 0.072])
    turned = numpy.array([[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]])
    matrix = weights + c * (numpy.eye(3) - weights) + s * turned
    return mapped(image, lambda samples: samples @ matrix.T)


def corners(image, radius, hexadecimal):
    scale = 8
    mask = Image.new("L", (image.width * scale, image.height * scale))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, mask.width - 1, mask.height - 1), int(radius) * scale, fill=255)
    mask = mask.resize(image.size, Image.Resampling.BOX)
    return Image.composite(image.convert("RGBA"), Image.new("RGBA", image.size, f"#{hexadecimal}"), mask)


def watermark(image, mark, x, y, margin, share, opacity):
    """Lays a picture over the image, at a side or corner (X Y) with a margin. Its width is a share of the image's; 0 for its own."""
    space = [side - 2 * margin for side in image.size]
    width = share * image.width if share else mark.width
    factor = min(width / mark.width, *(side / own for side, own in zip(space, mark.size)))
    mark = resized(mark, *(rounded(side * factor) for side in mark.size))
    place = tuple(math.floor(margin + anchor * (side - own)) for anchor, side, own in zip((x, y), space, mark.size))
    image = image.copy()
    image.paste(mark, place, Image.new("L", mark.size, round(255 * opacity)))
    return image


def tiles(image, mark, margin, opacity):
    image, margin = image.copy(), int(margin)
    for y in range(margin, image.height, mark.height + margin):
        for x in range(margin, image.width, mark.width + margin):
            image.paste(mark, (x, y), Image.new("L", mark.size, round(255 * opacity)))
    return image


STEPS = {
    "original": lambda image: image, "fit": fit, "cover": cover, "fill": fill, "fillsmall": fill_small, "filldown": fill_down, "pad": pad,
    "stretch": stretch, "stretchdown": stretch_down, "crop": crop, "cropfrac": crop_fraction, "anchor": anchor, "rotate": rotate,
    "flip": flip, "blur": blur, "pixelate": pixelate, "saturation": saturation, "color": color, "flatten": flatten, "corners": corners,
    "watermark": watermark, "tiles": tiles, "trim": trim, "extend": extend, "hue": hue,
    "brightness": lambda image, amount: mapped(image, lambda samples: samples + float(amount)),
    "contrast": lambda image, amount: mapped(image, lambda samples: 0.5 + float(amount) * (samples - 0.5)),
}


def lab(image):
    """The CIE L*a*b* values of an image on gray, from sRGB with D65."""
    image = Image.alpha_composite(Image.new("RGBA", image.size, "#808080"), image.convert("RGBA")).convert("RGB")
    samples = numpy.asarray(image).astype(float) / 255
    linear = numpy.where(samples <= 0.04045, samples / 12.92, ((samples + 0.055) / 1.055) ** 2.4)
    xyz = linear @ numpy.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T / (0.9505, 1, 1.089)
    f = numpy.where(xyz > (6 / 29) ** 3, numpy.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return numpy.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def distance(left, right):
    """The mean distance of two images of one size in CIE L*a*b* (CIE76), where 2.3 is a just noticeable difference. As in S-CIELAB, a blur
    comes first, because the eye does not resolve single pixels: kernels differ, and positions are rounded to pixels."""
    left, right = (lab(blur(image.convert("RGBA"), 1)) for image in (left, right))
    return float(numpy.sqrt(((left - right) ** 2).sum(axis=-1)).mean())
