"""Keys of results, computed from jobs (docs/keys.md): a program that knows the job can read the result without a request to Halcyon."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from ._colors import color, hsl
from ._numbers import exact, half_away, points, rounded, text, whole_pixels
from .jobs import JobLike, TemplateLike, to_json

_Fields = Mapping[str, Any]

_MODES = {"fill": "scaleToFill", "contain": "scaleAspectFit", "cover": "scaleAspectFill", "redraw": "scaleToFill"}
_SIZERS = {"aspectScaleDownByWidth": "width", "aspectScaleDownByHeight": "height"}
_TRACING = ("traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id")
_SIZE = ("width", "height", "sizer", "sizeForDisplay")
_CORNERS = ("topLeft", "topRight", "bottomLeft", "bottomRight")
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<user>[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:]*)(:(?P<port>[0-9]*))?(?P<tail>[^#]*)",
    re.IGNORECASE,
)
_PORTS = {"http": 80, "https": 443}


def result_keys(job: JobLike, preset: TemplateLike | None = None) -> list[str]:
    """The Redis keys of the results of a job, in the order of its variants, or the only one.

    The job must be valid. `preset` are the fields of its preset, which a job that names one needs. Raises ValueError without them, and for
    colors that are none.
    """
    source = _hash(source_text(job, preset))
    return [f"halcyon:{{{source}}}:{_hash(variant)}" for variant in variant_texts(job, preset)]


def source_text(job: JobLike, preset: TemplateLike | None = None) -> str:
    """The canonical text that identifies the source of a job. See result_keys."""
    fields = _fields(job, preset)
    tenant = f"tenant:{fields['tenant']}\n" if "tenant" in fields else ""
    headers = {name.lower(): value for name, value in fields.get("headers", {}).items() if value is not None}
    lines = "".join(f"header: {name}={headers[name]}\n" for name in sorted(headers) if name not in _TRACING)
    return f"halcyon-source/1\n{tenant}{lines}{_source(fields['source'])}\n"


def variant_texts(job: JobLike, preset: TemplateLike | None = None) -> list[str]:
    """The canonical text of each variant of a job. See result_keys."""
    fields = _fields(job, preset)
    texts = []
    for variant in fields.get("variants", [{}]):
        # A variant that has any field of the size has all of them.
        sized = any(name in variant for name in _SIZE)
        inherited = {name: value for name, value in fields.items() if not (sized and name in _SIZE)}
        merged = {**inherited, **variant}
        texts.append(_variant({name: value for name, value in merged.items() if value is not None}))
    return texts


def _hash(canonical: str) -> str:
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _fields(job: JobLike, preset: TemplateLike | None) -> dict[str, Any]:
    own = {name: value for name, value in to_json(job).items() if value is not None}
    if "preset" in own and preset is None:
        raise ValueError("the keys of a job with a preset depend on the fields of the preset")
    template = {} if preset is None else to_json(preset)
    return {**{name: value for name, value in template.items() if value is not None}, **own}


# The source


def _frames(video: _Fields) -> str:
    def members(name: str, **defaults: float) -> _Fields:
        return defaults | {member: value for member, value in video[name].items() if value is not None}

    if video.get("contactSheet") is not None:
        sheet = members("contactSheet", columns=4, rows=4, width=320)
        return f"sheet {int(sheet['columns'])}x{int(sheet['rows'])} {int(sheet['width'])}"
    if video.get("preview") is not None:
        preview = members("preview", frames=10, duration=3, width=320)
        return f"preview {int(preview['frames'])} {text(preview['duration'])} {int(preview['width'])}"
    return text(video.get("seconds") or 0)


def _source(value: Any) -> str:
    if isinstance(value, Mapping):
        if "initials" in value:
            return _initials(value["initials"], value.get("background"), value.get("foreground"))
        if value.get("url") is not None:
            return _source(value["url"]) if value.get("cacheKey") is None else f"url:key={value['cacheKey']}"
        if "base64" in value:
            return _data(_base64(value["base64"]), value.get("cacheKey"))
        if "video" in value:
            return f"video:{_frames(value)} {_source(value['video'])}"
        ((name, parameters),) = value.items()
        return f"custom:{name} {_compact(parameters)}"
    scheme, _, rest = value.partition(":")
    if scheme == "initials":
        return _initials(rest, None, None)
    kind = _SCHEMES.get(scheme.lower())
    return kind(rest) if kind else f"custom:{scheme} {rest}"


def _compact(parameters: Any) -> str:
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _web(url: str) -> str:
    parts = _URL.match(url)
    if not parts:
        raise ValueError(f"{url!r} is not a URL")
    scheme = parts["scheme"].lower()
    port = int(parts["port"]) if parts["port"] else _PORTS[scheme]
    shown = "" if port == _PORTS[scheme] else f":{port}"
    tail = parts["tail"] if parts["tail"].startswith("/") else "/" + parts["tail"]
    return f"url:{scheme}://{parts['user'] or ''}{parts['host'].lower()}{shown}{tail}"


def _file(rest: str) -> str:
    path = rest[2:].partition("/")[2] if rest.startswith("//") else rest
    parts = [urllib.parse.unquote(part) for part in path.split("/")]
    return "file:" + "".join("/" + part for part in parts if part not in ("", "."))


def _s3(rest: str) -> str:
    bucket, _, rest = rest[2:].partition("/")
    key, query, version = rest.partition("?")
    return f"s3:{bucket}/{urllib.parse.quote(urllib.parse.unquote(key), safe='/~')}{query}{version}"


def _data_url(rest: str) -> str:
    kind, _, encoded = rest.partition(",")
    decoded = urllib.parse.unquote_to_bytes(encoded)
    return _data(_base64(decoded.decode()) if kind.lower().endswith(";base64") else decoded)


def _base64(encoded: str) -> bytes:
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4))


def _data(content: bytes, key: str | None = None) -> str:
    return f"data:key={key}" if key is not None else "data:sha256=" + hashlib.sha256(content).hexdigest()


def _initials(letters: str, background: str | None, foreground: str | None) -> str:
    if background is None:
        # One of twelve hues, by the FNV-1a of the letters.
        value = 2166136261
        for byte in letters.encode():
            value = (value ^ byte) * 16777619 % 2**32
        background = "#" + "".join(f"{channel:02x}" for channel in hsl(value % 12 * 30, 0.55, 0.42))
    background = color(background)
    if foreground is None:
        red, green, blue = (int(background[place : place + 2], 16) ** 2 / 65025 for place in (1, 3, 5))
        foreground = "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.36 else "white"
    return f"initials:{letters} {background} {color(foreground)}"


_SCHEMES: dict[str, Callable[[str], str]] = {
    "http": lambda rest: _web("http:" + rest),
    "https": lambda rest: _web("https:" + rest),
    "file": _file,
    "data": _data_url,
    "s3": _s3,
}


# The variant


def _rule(value: Any) -> tuple[str, Any]:
    """The name and the parameters of what is a name, or an object of one name and its parameters."""
    ((name, parameters),) = value.items() if isinstance(value, Mapping) else [(value, {})]
    return name, {} if parameters is None else parameters


def _goal(fields: _Fields) -> str:
    """What decides the size: `display`, `width`, `height`, `custom` or `natural`."""
    if not fields.get("sizeForDisplay", True):
        return "natural"
    if "width" in fields and "height" in fields:
        return "display"
    for side in ("width", "height"):
        if side in fields:
            return side
    name, _ = _rule(fields.get("sizer", "natural"))
    return "natural" if name == "natural" else _SIZERS.get(name, "custom")


def _size(fields: _Fields) -> str:
    scale, goal = rounded(fields.get("screenScale", 1)), _goal(fields)
    if goal == "natural":
        return "natural"
    if goal == "display":
        return f"{text(points(fields['width']))}x{text(points(fields['height']))}@{text(scale)} {_mode(fields)}"
    if goal in fields:
        return f"{goal} {text(max(1, half_away(points(fields[goal]))) * scale)}"
    name, parameters = _rule(fields["sizer"])
    return f"{goal} {text(points(parameters))}" if name in _SIZERS else f"custom {name} {_compact(parameters)}"


def _mode(fields: _Fields) -> str:
    given: str = fields.get("contentMode", "scaleAspectFill")
    mode = _MODES.get(given, given)
    options = fields.get("scaleOptions", "")
    if mode == "scaleAspectFit" and options.startswith("fitCropsExcess"):
        return mode + " cropsExcess"
    if mode == "scaleAspectFill" and options.lower().endswith("fillleavesexcess"):
        return mode + " leavesExcess"
    if mode == "scaleAspectFit" and fields.get("position", "center") != "center":
        return f"{mode} {fields['position']}"
    return mode


def _trim(fields: _Fields) -> str | None:
    """The detection of margins; None if they are kept."""
    value = fields.get("trim", False)
    if value is False:
        return None
    given = {} if value is True else {name: member for name, member in value.items() if member is not None}
    parts = [str(int(given.get("tolerance", 10)))]
    if "background" in given:
        parts.append(f"background={color(given['background'])}")
    if rounded(given.get("fuzz", 0)) > 0:
        parts.append(f"fuzz={text(given['fuzz'])}")
    return " ".join(parts)


def _gravity(fields: _Fields, crops: bool) -> str | None:
    given = fields.get("gravity", "center")
    if _goal(fields) != "display" or _mode(fields) != "scaleAspectFill" or given == "center":
        return None
    if isinstance(given, str) and given not in _DETECTIONS:
        return given
    if isinstance(given, str) or given.get("detect") is not None:
        given = {"detect": given} if isinstance(given, str) else given
        confidence, fallback = given.get("confidence"), given.get("fallback")
        fallback = "attention" if fallback is None else fallback
        if not isinstance(fallback, str):
            fallback = f"{text(fallback['x'])},{text(fallback['y'])}"
        return f"{given['detect']} confidence={text(0.5 if confidence is None else confidence)} fallback={fallback}"
    point = f"{text(given['x'])},{text(given['y'])}"
    return None if point == "0.5,0.5" and not crops else point


def _detects(fields: _Fields) -> bool:
    """True if a detector is needed."""
    names = [_rule(step)[0] for step in fields.get("before", []) + fields.get("processors", [])]
    gravity = (_gravity(fields, True) or "").split(" ")[0]
    return gravity in _DETECTIONS or "blurFaces" in names or "pixelateFaces" in names or bool(fields.get("faces", False))


_DETECTIONS = ("faces", "objects")
# The name and version of the detector that Halcyon provides (images.detectorName).
_DETECTOR = "opencv-centerface/1"
_FINDINGS = {"blurhash": "blurhash", "dominantColor": "dominant-color", "palette": "palette", "thumbhash": "thumbhash", "phash": "phash", "faces": "faces"}


def _variant(fields: _Fields) -> str:
    info = fields.get("info", False)
    if info is not False:
        # Facts about the source depend on no other fields.
        fields = {name: value for name, value in fields.items() if name in ("page", "tolerance") or name in _FINDINGS}
    scale = rounded(fields.get("screenScale", 1))
    lines = ["halcyon-variant/1"]
    if fields.get("page", 1) != 1:
        lines.append(f"page={int(fields['page'])}")
    lines += ["before=" + _processor(step, scale) for step in fields.get("before", [])]
    rect = fields.get("cropRect", {"x": 0, "y": 0, "width": 1, "height": 1})
    sides = [exact(rect[side]) for side in ("x", "y", "width", "height")]
    pixels = rect.get("unit") == "pixels"
    crops = (pixels or sides != ["0", "0", "1", "1"]) and sides[2] != "0" and sides[3] != "0"
    goal = _goal(fields)
    if crops:
        lines.append("crop=" + ",".join(sides) + (" pixels" if pixels else ""))
    if trim := _trim(fields):
        lines.append("trim=" + trim)
    lines.append("size=" + _size(fields))
    if gravity := _gravity(fields, crops or trim is not None):
        lines.append("gravity=" + gravity)
    if goal == "display" and fields.get("upscale") is False:
        lines.append("upscale=false")
    if goal in ("width", "height") and fields.get("upscale") is True:
        lines.append("upscale=true")
    if fields.get("interpolationQuality", "default") != "default":
        lines.append(f"interpolation={fields['interpolationQuality']}")
    if fields.get("linearLight", False):
        lines.append("linear-light")
    if (background := color(fields.get("background", "transparent"))) != "#00000000":
        lines.append("background=" + background)
    lines += ["processor=" + _processor(step, scale) for step in fields.get("processors", [])]
    if fields.get("format", "auto") != "auto":
        lines.append(f"format={fields['format']}")
    if "quality" in fields and not isinstance(fields["quality"], dict):
        lines.append(f"quality={int(fields['quality'])}")
    if isinstance(fields.get("quality"), dict):
        lines.append("quality=target " + text(fields["quality"]["target"]))
    if "maximumBytes" in fields:
        lines.append(f"maximum-bytes={int(fields['maximumBytes'])}")
        if fields.get("allowResize", False):
            lines.append("allow-resize")
    if fields.get("lossless", False):
        lines.append("lossless")
    if fields.get("nearLossless", False):
        lines.append("near-lossless")
    if fields.get("chromaSubsampling", "auto") != "auto":
        lines.append(f"chroma={fields['chromaSubsampling']}")
    if fields.get("bitDepth", 8) != 8:
        lines.append(f"bit-depth={int(fields['bitDepth'])}")
    quantize = fields.get("quantize", False)
    if quantize is not False:
        parts = quantize if isinstance(quantize, dict) else {} if quantize is True else {"colors": quantize}
        colors, dither = parts.get("colors"), parts.get("dither")
        lines.append(f"quantize={int(256 if colors is None else colors)} dither={text(1 if dither is None else dither)}")
    if "effort" in fields:
        lines.append(f"effort={int(fields['effort'])}")
    if fields.get("progressive", False):
        lines.append("progressive")
    if not fields.get("stripMetadata", True):
        lines.append("metadata")
    if fields.get("keepProfile", False):
        lines.append("profile")
    if fields.get("profile", "srgb") != "srgb":
        lines.append(f"profile={fields['profile']}")
    if "frames" in fields:
        lines.append(f"frames={int(fields['frames'])}")
    if "tolerance" in fields:
        lines.append(f"tolerance={fields['tolerance']}")
    lines += [line for name, line in _FINDINGS.items() if fields.get(name, False)]
    if _detects(fields):
        lines.append(f"detector={_DETECTOR}")
    if info is not False:
        lines.append("info=location" if info is not True and info.get("location", False) else "info")
    return "".join(line + "\n" for line in lines)


# Processors


def _processor(value: Any, scale: float) -> str:
    name, parameters = _rule(value)
    if name not in _TEXTS:
        return f"{name} {_compact(parameters)}"
    given = {key: member for key, member in parameters.items() if member is not None}
    return " ".join([name, *_TEXTS[name](given, scale)])


def _number(p: _Fields, name: str, default: float) -> str:
    return f"{name}={text(p.get(name, default))}"


def _pixels(p: _Fields, scale: float) -> str:
    return f"{whole_pixels(p['width'], scale)}x{whole_pixels(p['height'], scale)}"


def _radius(p: _Fields, scale: float) -> list[str]:
    """The radius of the corners, and which of them, unless it is all."""
    parts = [f"{name}={text(rounded(p[name]))}" for name in ("widthFraction", "heightFraction") if name in p]
    if not parts:
        parts = [f"radius={text(rounded(p.get('radius', 0)) * scale)}"]
    given = [corner for corner in _CORNERS if corner in p.get("corners", _CORNERS)]
    return parts + (["corners=" + ",".join(given)] if len(given) < 4 else [])


def _round_corner(p: _Fields, scale: float) -> list[str]:
    background = color(p.get("background", "transparent"))
    return _radius(p, scale) + ([f"background={background}"] if background != "#00000000" else [])


def _crop(p: _Fields, scale: float) -> list[str]:
    anchor = p.get("anchor", {"x": 0.5, "y": 0.5})
    return [_pixels(p, scale), _number(anchor, "x", 0), _number(anchor, "y", 0)]


def _overlay(p: _Fields, scale: float) -> list[str]:
    if "color" in p:
        return [f"color={color(p['color'])}", _number(p, "fraction", 0.5)]
    return [_number(p, "opacity", 1), *_blend_mode(p), f"source={_source(p['source'])}"]


def _blend_mode(p: _Fields) -> list[str]:
    return [f"mode={p['mode']}"] if p.get("mode", "normal") != "normal" else []


def _offset(p: _Fields, scale: float) -> list[str]:
    """The offset in whole pixels, unless it is zero."""
    given = p.get("offset", {})
    lengths = [given.get(name) or 0 for name in "xy"]
    x, y = [whole_pixels(abs(length), scale, least=0) * (-1 if length < 0 else 1) for length in lengths]
    return [f"offset={x},{y}"] if x or y else []


def _border(p: _Fields, scale: float) -> list[str]:
    line = [f"width={text(points(p['width']) * scale)}", f"color={color(p.get('color', 'black'))}"]
    return line + _radius(p, scale)


def _watermark(p: _Fields, scale: float) -> list[str]:
    parts = [p.get("position", "bottomRight"), f"margin={whole_pixels(p.get('margin', 0), scale, least=0)}"]
    if "widthFraction" in p:
        parts.append(f"width={text(points(p['widthFraction']))}")
    if rounded(p.get("scale", 1)) != 1:
        parts.append(f"scale={text(points(p['scale']))}")
    parts += [*_offset(p, scale), _number(p, "opacity", 1), *_blend_mode(p)]
    if p.get("tiled", False):
        parts.append("tiled")
    return [*parts, f"source={_source(p['source'])}"]


def _degrees(p: _Fields) -> str:
    degrees = math.fmod(float(p["degrees"]), 360)
    degrees = rounded(degrees + 360 if degrees < 0 else degrees)
    return f"degrees={text(degrees if degrees < 360 else 0)}"


def _pad(p: _Fields, scale: float) -> list[str]:
    lengths = {side: p.get(side, p.get("all", 0)) for side in ("top", "right", "bottom", "left")}
    fill = p.get("fill", "color")
    return [
        *(f"{side}={whole_pixels(length, scale, least=0)}" for side, length in lengths.items()),
        f"color={color(p.get('color', 'transparent'))}" if fill == "color" else f"fill={fill}",
    ]


def _text(p: _Fields, scale: float) -> list[str]:
    parts = [p.get("position", "center"), f"margin={whole_pixels(p.get('margin', 0), scale, least=0)}", *_offset(p, scale)]
    if "size" in p:
        parts.append(f"size={text(max(1, rounded(points(p['size']) * scale)))}")
    parts += [f"{side}={whole_pixels(p[side], scale)}" for side in ("width", "height") if side in p]
    parts += [f"align={p.get('align', 'left')}", f"color={color(p.get('color', 'black'))}"]
    if outline := whole_pixels(p.get("outlineWidth", 0), scale, least=0):
        parts += [f"outline={outline}", f"outlineColor={color(p.get('outlineColor', 'white'))}"]
    parts.append(_number(p, "opacity", 1))
    parts += [face for face in ("bold", "italic") if p.get(face, False)]
    lines = p["text"].replace("\\", "\\\\").replace("\n", "\\n")
    return [*parts, f"font={p['font']}", f"text={lines}"]


_TEXTS: dict[str, Callable[[_Fields, float], list[str]]] = {
    "roundCorner": _round_corner,
    "resize": lambda p, scale: [_pixels(p, scale), p.get("mode", "none")],
    "crop": _crop,
    "blur": lambda p, scale: [f"radius={text(points(p['radius']) * scale)}"],
    "tint": lambda p, scale: [f"color={color(p['color'])}"],
    "overlay": _overlay,
    "blend": lambda p, scale: [p["mode"], _number(p, "opacity", 1), f"background={color(p['background'])}"],
    "colorControls": lambda p, scale: [
        _number(p, "brightness", 0),
        _number(p, "contrast", 1),
        _number(p, "saturation", 1),
        _number(p, "exposure", 0),
    ],
    "blackWhite": lambda p, scale: [],
    "border": _border,
    "downsample": lambda p, scale: [_pixels(p, scale)],
    "sharpen": lambda p, scale: [_number(p, "radius", 0.5), _number(p, "amount", 1)],
    "pixelate": lambda p, scale: [f"size={whole_pixels(p['size'], scale)}"],
    "blurFaces": lambda p, scale: [_number(p, "amount", 0.15), _number(p, "margin", 0.2), _number(p, "confidence", 0.3)],
    "pixelateFaces": lambda p, scale: [f"cells={int(p.get('cells', 8))}", _number(p, "margin", 0.2), _number(p, "confidence", 0.3)],
    "watermark": _watermark,
    "rotate": lambda p, scale: [_degrees(p), f"background={color(p.get('background', 'transparent'))}"],
    "flip": lambda p, scale: [p.get("direction", "horizontal")],
    "pad": _pad,
    "text": _text,
    "mask": lambda p, scale: [f"shape={p['shape']}" if "shape" in p else f"source={_source(p['source'])}"],
    "hue": lambda p, scale: [_degrees(p)],
    "gamma": lambda p, scale: [_number(p, "gamma", 2.2)],
    "normalize": lambda p, scale: [_number(p, "lower", 1), _number(p, "upper", 99)],
    "duotone": lambda p, scale: [f"dark={color(p['dark'])}", f"light={color(p['light'])}"],
}
