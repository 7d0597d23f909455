"""The lines of processors in the text of a variant (docs/keys.md, Processors)."""
import math

from keys_colors import color
from keys_numbers import points, rounded, text, whole_pixels
from keys_sources import parameters_text, source

CORNERS = ["topLeft", "topRight", "bottomLeft", "bottomRight"]


def rule(value):
    """The name and the parameters of what is a name, or an object of one name and its parameters. Null is no parameter."""
    (name, parameters), = value.items() if isinstance(value, dict) else [(value, {})]
    return name, parameters


def processor(value, scale):
    """What follows processor= in the variant's text."""
    name, parameters = rule(value)
    if name not in TEXTS:
        return f"{name} {parameters_text(parameters)}"
    parameters = {key: value for key, value in parameters.items() if value is not None}
    return " ".join([name] + TEXTS[name](parameters, scale))


def size(p, scale):
    return f"{whole_pixels(p['width'], scale)}x{whole_pixels(p['height'], scale)}"


def number(p, name, default):
    return f"{name}={text(p.get(name, default))}"


def corners(p, scale, radius=None):
    """How far corners are cut, and which, unless it is all of them."""
    if "radius" in p or "widthFraction" in p or "heightFraction" in p:
        for name in ("radius", "widthFraction", "heightFraction"):
            if name in p:
                parts = [f"{name}={text(rounded(p[name]) * (scale if name == 'radius' else 1))}"]
    else:
        parts = [f"radius={radius}"]
    given = [corner for corner in CORNERS if corner in p.get("corners", CORNERS)]
    return parts + (["corners=" + ",".join(given)] if len(given) < 4 else [])


def round_corner(p, scale):
    background = color(p.get("background", "transparent"))
    return corners(p, scale) + ([f"background={background}"] if background != "#00000000" else [])


def crop(p, scale):
    anchor = p.get("anchor", {"x": 0.5, "y": 0.5})
    return [size(p, scale), number(anchor, "x", 0), number(anchor, "y", 0)]


def overlay(p, scale):
    if "color" in p:
        return [f"color={color(p['color'])}", number(p, "fraction", 0.5)]
    return [number(p, "opacity", 1), f"source={source(p['source'])}"]


def border(p, scale):
    line = [f"width={text(points(p['width']) * scale)}", f"color={color(p.get('color', 'black'))}"]
    return line + corners(p, scale, radius=0)


def watermark(p, scale):
    parts = [p.get("position", "bottomRight"), f"margin={whole_pixels(p.get('margin', 0), scale, least=0)}"]
    if "widthFraction" in p:
        parts.append(f"width={text(points(p['widthFraction']))}")
    parts.append(number(p, "opacity", 1))
    if p.get("tiled", False):
        parts.append("tiled")
    return parts + [f"source={source(p['source'])}"]


def rotate(p, scale):
    degrees = math.fmod(float(p["degrees"]), 360)
    degrees = rounded(degrees + 360 if degrees < 0 else degrees)
    return [f"degrees={text(degrees if degrees < 360 else 0)}", f"background={color(p.get('background', 'transparent'))}"]


TEXTS = {
    "roundCorner": round_corner,
    "resize": lambda p, scale: [size(p, scale), p.get("mode", "none")],
    "crop": crop,
    "blur": lambda p, scale: [f"radius={text(points(p['radius']) * scale)}"],
    "tint": lambda p, scale: [f"color={color(p['color'])}"],
    "overlay": overlay,
    "blend": lambda p, scale: [p["mode"], number(p, "opacity", 1), f"background={color(p['background'])}"],
    "colorControls": lambda p, scale: [
        number(p, "brightness", 0), number(p, "contrast", 1), number(p, "saturation", 1), number(p, "exposure", 0)],
    "blackWhite": lambda p, scale: [],
    "border": border,
    "downsample": lambda p, scale: [size(p, scale)],
    "sharpen": lambda p, scale: [number(p, "radius", 0.5), number(p, "amount", 1)],
    "pixelate": lambda p, scale: [f"size={whole_pixels(p['size'], scale)}"],
    "watermark": watermark,
    "rotate": rotate,
    "flip": lambda p, scale: [p.get("direction", "horizontal")],
}
