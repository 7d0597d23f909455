"""What a source is known by in keys (docs/keys.md, The source's text)."""
import re

from keys_colors import color, hsl

URL = re.compile(
    r"(?P<scheme>https?)://(?P<user>[^/?#@]*@)?(?P<host>\[[^\]]*\]|[^/?#:]*)(:(?P<port>[0-9]*))?(?P<tail>[^#]*)",
    re.IGNORECASE)
DEFAULT_PORTS = {"http": 80, "https": 443}
SCHEME = "initials:"


def source(value):
    """A source as a job gives it."""
    if isinstance(value, dict):
        return initials(value["initials"], value.get("background"), value.get("foreground"))
    if value.startswith(SCHEME):
        return initials(value[len(SCHEME):], None, None)
    return "url:" + canonical_url(value)


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
