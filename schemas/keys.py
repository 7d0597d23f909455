#!/usr/bin/env python3
"""The keys of Halcyon's results, as docs/keys.md describes them: a reference for other languages.

    keys.py [--texts] [FILE]

Reads jobs, one on each line of FILE or standard input, and prints the key of each result, those of one job on one line; with --texts a JSON object of
the canonical texts and the keys. Takes jobs that are valid (schemas/job.schema.json) and does not check them. Needs the standard library alone.
"""
import hashlib
import json
import sys

from keys_colors import color
from keys_numbers import exact, half_away, points, rounded, text
from keys_processors import processor, rule
from keys_sources import parameters_text, source

MODES = {"fill": "scaleToFill", "contain": "scaleAspectFit", "cover": "scaleAspectFill", "redraw": "scaleToFill"}
SIZERS = {"aspectScaleDownByWidth": "width", "aspectScaleDownByHeight": "height"}
TRACING = ("traceparent", "tracestate", "baggage", "x-request-id", "x-correlation-id")
SIZE = ("width", "height", "sizer", "sizeForDisplay")


def source_text(job):
    tenant = "" if job.get("tenant") is None else f"tenant:{job['tenant']}\n"
    return f"halcyon-source/1\n{tenant}{headers(job.get('headers') or {})}{source(job['source'])}\n"


def headers(fields):
    """A line for each header that may change what an origin answers."""
    deciding = {name.lower(): value for name, value in fields.items() if name.lower() not in TRACING}
    return "".join(f"header: {name}={deciding[name]}\n" for name in sorted(deciding))


def variants(job):
    """The fields of each output, without those that are null. A variant that says anything of its size says all of it."""
    outputs = []
    for variant in job.get("variants") or [{}]:
        inherited = {name: value for name, value in job.items() if name not in SIZE or not any(n in variant for n in SIZE)}
        fields = {**inherited, **variant}
        outputs.append({name: value for name, value in fields.items() if value is not None})
    return outputs


def goal(fields):
    """display, width, height, custom or natural: what decides the size."""
    if not fields.get("sizeForDisplay", True):
        return "natural"
    if "width" in fields and "height" in fields:
        return "display"
    for side in ("width", "height"):
        if side in fields:
            return side
    name, _ = rule(fields.get("sizer", "natural"))
    return "natural" if name == "natural" else SIZERS.get(name, "custom")


def size(fields):
    """What follows size= in the variant's text."""
    scale = rounded(fields.get("screenScale", 1))
    what = goal(fields)
    if what == "natural":
        return "natural"
    if what == "display":
        return f"{text(points(fields['width']))}x{text(points(fields['height']))}@{text(scale)} {mode(fields)}"
    if what in fields:
        return f"{what} {text(max(1, half_away(points(fields[what]))) * scale)}"
    name, parameters = rule(fields["sizer"])
    return f"{what} {text(points(parameters))}" if name in SIZERS else f"custom {name} {parameters_text(parameters)}"


def mode(fields):
    """The content mode, and what is done with excess."""
    mode = fields.get("contentMode", "scaleAspectFill")
    mode = MODES.get(mode, mode)
    options = fields.get("scaleOptions", "")
    if mode == "scaleAspectFit" and options.startswith("fitCropsExcess"):
        mode += " cropsExcess"
    if mode == "scaleAspectFill" and options.lower().endswith("fillleavesexcess"):
        mode += " leavesExcess"
    if mode == "scaleAspectFit" and fields.get("position", "center") != "center":
        mode += " " + fields["position"]
    return mode


def trim(fields):
    """What follows trim=; nothing if margins are kept."""
    given = fields.get("trim", False)
    if given is False:
        return None
    given = {} if given is True else {name: value for name, value in given.items() if value is not None}
    parts = [str(int(given.get("tolerance", 10)))]
    if "background" in given:
        parts.append("background=" + color(given["background"]))
    if rounded(given.get("fuzz", 0)) > 0:
        parts.append("fuzz=" + text(given["fuzz"]))
    return " ".join(parts)


def gravity(fields, crop):
    """What follows gravity=; nothing for the middle of what is used."""
    given = fields.get("gravity", "center")
    if goal(fields) != "display" or mode(fields) != "scaleAspectFill" or given == "center":
        return None
    if isinstance(given, str) and given not in DETECTIONS:
        return given
    if isinstance(given, str) or given.get("detect") is not None:
        given = {"detect": given} if isinstance(given, str) else given
        confidence, fallback = (given.get(name) for name in ("confidence", "fallback"))
        fallback = "attention" if fallback is None else fallback
        fallback = fallback if isinstance(fallback, str) else f"{text(fallback['x'])},{text(fallback['y'])}"
        return f"{given['detect']} confidence={text(0.5 if confidence is None else confidence)} fallback={fallback}"
    point = f"{text(given['x'])},{text(given['y'])}"
    return None if point == "0.5,0.5" and not crop else point


def detects(fields):
    """True if a detector is needed: for the gravity, for a processor, or for what the event reports."""
    names = [rule(step)[0] for step in fields.get("before", []) + fields.get("processors", [])]
    found = (gravity(fields, True) or "").split(" ")[0]
    return found in DETECTIONS or any(name in ("blurFaces", "pixelateFaces") for name in names) or fields.get("faces", False)


DETECTIONS = ("faces", "objects")
# The name and version of the detector that Halcyon provides: images.detectorName.
DETECTOR = "opencv-centerface/1"
FINDINGS = {"blurhash": "blurhash", "dominantColor": "dominant-color", "palette": "palette", "thumbhash": "thumbhash", "phash": "phash", "faces": "faces"}


def variant_text(fields):
    lines = ["halcyon-variant/1"]
    info = fields.get("info", False)
    if info is not False:
        # Facts about the source depend on no other fields.
        fields = {name: value for name, value in fields.items() if name in ("page", "tolerance") or name in FINDINGS}
    scale = rounded(fields.get("screenScale", 1))
    if fields.get("page", 1) != 1:
        lines.append(f"page={int(fields['page'])}")
    for step in fields.get("before", []):
        lines.append("before=" + processor(step, scale))
    rect = fields.get("cropRect", {"x": 0, "y": 0, "width": 1, "height": 1})
    sides = [exact(rect[side]) for side in ("x", "y", "width", "height")]
    pixels = rect.get("unit") == "pixels"
    crop = (pixels or sides != ["0", "0", "1", "1"]) and sides[2] != "0" and sides[3] != "0"
    if crop:
        lines.append("crop=" + ",".join(sides) + (" pixels" if pixels else ""))
    if trim(fields):
        lines.append("trim=" + trim(fields))
    lines.append("size=" + size(fields))
    if gravity(fields, crop or trim(fields)):
        lines.append("gravity=" + gravity(fields, crop or trim(fields)))
    if goal(fields) == "display" and fields.get("upscale") is False:
        lines.append("upscale=false")
    if goal(fields) in ("width", "height") and fields.get("upscale") is True:
        lines.append("upscale=true")
    if fields.get("interpolationQuality", "default") != "default":
        lines.append("interpolation=" + fields["interpolationQuality"])
    if fields.get("linearLight", False):
        lines.append("linear-light")
    if color(fields.get("background", "transparent")) != "#00000000":
        lines.append("background=" + color(fields["background"]))
    for step in fields.get("processors", []):
        lines.append("processor=" + processor(step, scale))
    if fields.get("format", "auto") != "auto":
        lines.append("format=" + fields["format"])
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
    lines += [line for name, line in FINDINGS.items() if fields.get(name, False)]
    if detects(fields):
        lines.append(f"detector={DETECTOR}")
    if info is not False:
        lines.append("info=location" if info is not True and info.get("location", False) else "info")
    return "".join(line + "\n" for line in lines)


def first_128_bits(canonical_text):
    return hashlib.sha256(canonical_text.encode()).hexdigest()[:32]


def texts(job):
    """The texts of the source and of each variant, and the key of each result."""
    of_source = source_text(job)
    of_variants = [variant_text(fields) for fields in variants(job)]
    keys = [f"halcyon:{{{first_128_bits(of_source)}}}:{first_128_bits(text)}" for text in of_variants]
    return {"sourceText": of_source, "variantTexts": of_variants, "keys": keys}


def main(lines, with_texts):
    for line in lines:
        found = texts(json.loads(line))
        print(json.dumps(found) if with_texts else " ".join(found["keys"]))


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if argument != "--texts"]
    if len(names) > 1 or any(name.startswith("-") for name in names):
        sys.exit(__doc__)
    main(open(names[0], encoding="utf-8") if names else sys.stdin, with_texts="--texts" in sys.argv)
