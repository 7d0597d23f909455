"""What a source is known by in keys (docs/keys.md, Source text)."""
import base64
import hashlib
import json
import re
import urllib.parse

from keys_colors import color, hsl
from keys_numbers import text

URL = re.compile(
    r"(?P<scheme>https?)://(?P<user>[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:]*)(:(?P<port>[0-9]*))?(?P<tail>[^#]*)",
    re.IGNORECASE)
DEFAULT_PORTS = {"http": 80, "https": 443}
SCHEME = "initials:"


def source(value):
    """A source as a job gives it."""
    if isinstance(value, dict):
        if "initials" in value:
            return initials(value["initials"], value.get("background"), value.get("foreground"))
        if value.get("url") is not None:
            return source(value["url"]) if value.get("cacheKey") is None else f"url:key={value['cacheKey']}"
        if "base64" in value:
            return data(padded(value["base64"]), value.get("cacheKey"))
        if "video" in value:
            return f"video:{selected(value)} {source(value['video'])}"
        (name, parameters), = value.items()
        return f"custom:{name} {parameters_text(parameters)}"
    if value.startswith(SCHEME):
        return initials(value[len(SCHEME):], None, None)
    scheme, _, rest = value.partition(":")
    kind = OF_SCHEMES.get(scheme.lower())
    return kind(rest) if kind else f"custom:{scheme} {rest}"


def selected(video):
    """The frames of a video."""
    if video.get("contactSheet") is not None:
        sheet = {"columns": 4, "rows": 4, "width": 320} | given(video["contactSheet"])
        return f"sheet {int(sheet['columns'])}x{int(sheet['rows'])} {int(sheet['width'])}"
    if video.get("preview") is not None:
        preview = {"frames": 10, "duration": 3, "width": 320} | given(video["preview"])
        return f"preview {int(preview['frames'])} {text(preview['duration'])} {int(preview['width'])}"
    return text(video.get("seconds") or 0)


def given(members):
    return {name: value for name, value in members.items() if value is not None}


def parameters_text(parameters):
    """Compact JSON. Whole numbers and texts come out as Halcyon's; fractions may be written in another way."""
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def file(rest):
    """What follows file: as the decoded path. Its parts are those that are not empty and not a dot."""
    path = rest[2:].partition("/")[2] if rest.startswith("//") else rest
    parts = [urllib.parse.unquote(part) for part in path.split("/")]
    return "file:" + "".join("/" + part for part in parts if part not in ("", "."))


def s3(rest):
    """What follows s3: with the key percent-encoded anew, so that each has one spelling."""
    bucket, _, rest = rest[2:].partition("/")
    key, query, version = rest.partition("?")
    return f"s3:{bucket}/{urllib.parse.quote(urllib.parse.unquote(key), safe='/~')}{query}{version}"


def data_url(rest):
    kind, _, encoded = rest.partition(",")
    decoded = urllib.parse.unquote_to_bytes(encoded)
    return data(padded(decoded.decode()) if kind.lower().endswith(";base64") else decoded)


def padded(encoded):
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4))


def data(content, key=None):
    return f"data:key={key}" if key is not None else "data:sha256=" + hashlib.sha256(content).hexdigest()


def canonical_url(url):
    parts = URL.match(url)
    scheme = parts["scheme"].lower()
    port = int(parts["port"]) if parts["port"] else DEFAULT_PORTS[scheme]
    shown_port = "" if port == DEFAULT_PORTS[scheme] else f":{port}"
    tail = parts["tail"] if parts["tail"].startswith("/") else "/" + parts["tail"]
    return f"{scheme}://{parts['user'] or ''}{parts['host'].lower()}{shown_port}{tail}"


def initials(text, background, foreground):
    """Letters, then the two colours; those that are not given follow from the letters."""
    background = color(background) if background is not None else color_of(text)
    if foreground is not None:
        foreground = color(foreground)
    else:
        red, green, blue = (int(background[place:place + 2], 16) ** 2 / 65025 for place in (1, 3, 5))
        foreground = "#000000ff" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.36 else "#ffffffff"
    return f"initials:{text} {background} {foreground}"


def color_of(text):
    """One of twelve hues: FNV-1a of the letters' UTF-8 chooses."""
    hash = 2166136261
    for byte in text.encode():
        hash = (hash ^ byte) * 16777619 % 2 ** 32
    return "#" + "".join(f"{channel:02x}" for channel in hsl(hash % 12 * 30, 0.55, 0.42)) + "ff"


OF_SCHEMES = {
    "http": lambda rest: "url:" + canonical_url("http:" + rest),
    "https": lambda rest: "url:" + canonical_url("https:" + rest),
    "file": file, "data": data_url, "s3": s3,
}
