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
    return [number(p, "opacity", 1), *mode(p), f"source={source(p['source'])}"]


def mode(p):
    """The blend mode, unless it is normal."""
    return [f"mode={p['mode']}"] if p.get("mode", "normal") != "normal" else []


def offset(p, scale):
    """The offset in whole pixels, unless it is zero."""
    value = p.get("offset", {})
    x, y = (int(math.copysign(whole_pixels(abs(value.get(name) or 0), scale, least=0), value.get(name) or 0)) for name in "xy")
    return [f"offset={x},{y}"] if (x, y) != (0, 0) else []


def border(p, scale):
    line = [f"width={text(points(p['width']) * scale)}", f"color={color(p.get('color', 'black'))}"]
    return line + corners(p, scale, radius=0)


def watermark(p, scale):
    parts = [p.get("position", "bottomRight"), f"margin={whole_pixels(p.get('margin', 0), scale, least=0)}"]
    if "widthFraction" in p:
        parts.append(f"width={text(points(p['widthFraction']))}")
    if rounded(p.get("scale", 1)) != 1:
        parts.append(f"scale={text(points(p['scale']))}")
    parts += offset(p, scale) + [number(p, "opacity", 1)] + mode(p)
    if p.get("tiled", False):
        parts.append("tiled")
    return parts + [f"source={source(p['source'])}"]


def angle(p):
    """An angle in degrees, 0 up to 360."""
    degrees = math.fmod(float(p["degrees"]), 360)
    degrees = rounded(degrees + 360 if degrees < 0 else degrees)
    return text(degrees if degrees < 360 else 0)


def rotate(p, scale):
    return [f"degrees={angle(p)}", f"background={color(p.get('background', 'transparent'))}"]


def pad(p, scale):
    sides = [f"{side}={whole_pixels(p.get(side, p.get('all', 0)), scale, least=0)}" for side in ("top", "right", "bottom", "left")]
    fill = p.get("fill", "color")
    return sides + [f"color={color(p.get('color', 'transparent'))}" if fill == "color" else f"fill={fill}"]


def written(p, scale):
    """The parameters of a text. The text itself is last, with backslashes and line feeds escaped."""
    parts = [p.get("position", "center"), f"margin={whole_pixels(p.get('margin', 0), scale, least=0)}", *offset(p, scale)]
    if "size" in p:
        parts.append(f"size={text(max(1, rounded(points(p['size']) * scale)))}")
    parts += [f"{side}={whole_pixels(p[side], scale)}" for side in ("width", "height") if side in p]
    parts += [f"align={p.get('align', 'left')}", f"color={color(p.get('color', 'black'))}"]
    outline = whole_pixels(p.get("outlineWidth", 0), scale, least=0)
    if outline:
        parts += [f"outline={outline}", f"outlineColor={color(p.get('outlineColor', 'white'))}"]
    parts.append(number(p, "opacity", 1))
    parts += [face for face in ("bold", "italic") if p.get(face, False)]
    lines = p["text"].replace("\\", "\\\\").replace("\n", "\\n")
    return parts + [f"font={p['font']}", f"text={lines}"]


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
    "blurFaces": lambda p, scale: [number(p, "amount", 0.15), number(p, "margin", 0.2), number(p, "confidence", 0.3)],
    "pixelateFaces": lambda p, scale: [f"cells={int(p.get('cells', 8))}", number(p, "margin", 0.2), number(p, "confidence", 0.3)],
    "watermark": watermark,
    "rotate": rotate,
    "flip": lambda p, scale: [p.get("direction", "horizontal")],
    "pad": pad,
    "text": written,
    "mask": lambda p, scale: [f"shape={p['shape']}" if "shape" in p else f"source={source(p['source'])}"],
    "hue": lambda p, scale: [f"degrees={angle(p)}"],
    "gamma": lambda p, scale: [number(p, "gamma", 2.2)],
    "normalize": lambda p, scale: [number(p, "lower", 1), number(p, "upper", 99)],
    "duotone": lambda p, scale: [f"dark={color(p['dark'])}", f"light={color(p['light'])}"],
}
