#!/usr/bin/env python3
"""The keys of Halcyon's results, as docs/keys.md describes them: a reference for other languages.

    keys.py [--texts] [FILE]

Reads jobs, one on each line of FILE or standard input, and prints the key of each result; with --texts a JSON object of the canonical texts and the
key. Takes jobs that are valid (schemas/job.schema.json) and does not check them. Needs the standard library alone.
"""
import hashlib
import json
import math
import re
import sys

URL = re.compile(
    r"(?P<scheme>https?)://(?P<user>[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:]*)(:(?P<port>[0-9]*))?(?P<tail>[^#]*)",
    re.IGNORECASE)
DEFAULT_PORTS = {"http": 80, "https": 443}
MODES = {"fill": "scaleToFill", "contain": "scaleAspectFit", "cover": "scaleAspectFill", "redraw": "scaleToFill"}


def half_away(number):
    """The nearest whole number; of two that are as near, the one further from zero."""
    whole = math.floor(abs(number))
    if abs(number) - whole >= 0.5:
        whole += 1
    return int(math.copysign(whole, number))


def rounded(number):
    """To six decimals."""
    return half_away(float(number) * 1_000_000) / 1_000_000


def text(number):
    """To six decimals, without trailing zeros and without exponent."""
    millionths = half_away(float(number) * 1_000_000)
    whole, rest = divmod(abs(millionths), 1_000_000)
    fraction = f".{rest:06}".rstrip("0") if rest else ""
    return f"{'-' if millionths < 0 else ''}{whole}{fraction}"


def points(number):
    """A length: a number above zero stays above zero."""
    return max(rounded(number), 0.000001)


def canonical_url(url):
    parts = URL.match(url)
    scheme = parts["scheme"].lower()
    port = int(parts["port"]) if parts["port"] else DEFAULT_PORTS[scheme]
    shown_port = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    tail = parts["tail"] if parts["tail"].startswith("/") else "/" + parts["tail"]
    return f"{scheme}://{parts['user'] or ''}{parts['host'].lower()}{shown_port}{tail}"


def source_text(job):
    return f"halcyon-source/1\nurl:{canonical_url(job['source'])}\n"


def size(job):
    """What follows size= in the variant's text."""
    sizer = job.get("sizer", "natural")
    scale = rounded(job.get("screenScale", 1))
    if not job.get("sizeForDisplay", True):
        return "natural"
    if "width" in job and "height" in job:
        mode = job.get("contentMode", "scaleAspectFill")
        mode = MODES.get(mode, mode)
        options = job.get("scaleOptions", "")
        if mode == "scaleAspectFit" and options.startswith("fitCropsExcess"):
            mode += " cropsExcess"
        if mode == "scaleAspectFill" and options.lower().endswith("fillleavesexcess"):
            mode += " leavesExcess"
        return f"{text(points(job['width']))}x{text(points(job['height']))}@{text(scale)} {mode}"
    for side in ("width", "height"):
        if side in job:
            return f"{side} {text(max(1, half_away(points(job[side]))) * scale)}"
    if sizer == "natural":
        return "natural"
    (name, limit), = sizer.items()
    side = {"aspectScaleDownByWidth": "width", "aspectScaleDownByHeight": "height"}[name]
    return f"{side} {text(points(limit))}"


def variant_text(job):
    lines = ["halcyon-variant/1"]
    crop = job.get("cropRect", {"x": 0, "y": 0, "width": 1, "height": 1})
    sides = [text(crop[side]) for side in ("x", "y", "width", "height")]
    if sides != ["0", "0", "1", "1"] and sides[2] != "0" and sides[3] != "0":
        lines.append("crop=" + ",".join(sides))
    lines.append("size=" + size(job))
    if job.get("interpolationQuality") in ("none", "low", "medium"):
        lines.append("interpolation=" + job["interpolationQuality"])
    if job.get("format", "auto") != "auto":
        lines.append("format=" + job["format"])
    if "quality" in job:
        lines.append(f"quality={int(job['quality'])}")
    if job.get("lossless", False):
        lines.append("lossless")
    if "effort" in job:
        lines.append(f"effort={int(job['effort'])}")
    if job.get("progressive", False):
        lines.append("progressive")
    return "".join(line + "\n" for line in lines)


def first_128_bits(canonical_text):
    return hashlib.sha256(canonical_text.encode()).hexdigest()[:32]


def key(job):
    return f"halcyon:{{{first_128_bits(source_text(job))}}}:{first_128_bits(variant_text(job))}"


def main(lines, with_texts):
    for line in lines:
        job = json.loads(line)
        if with_texts:
            print(json.dumps({"sourceText": source_text(job), "variantText": variant_text(job), "key": key(job)}))
        else:
            print(key(job))


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if argument != "--texts"]
    if len(names) > 1 or any(name.startswith("-") for name in names):
        sys.exit(__doc__)
    main(open(names[0], encoding="utf-8") if names else sys.stdin, with_texts="--texts" in sys.argv)
