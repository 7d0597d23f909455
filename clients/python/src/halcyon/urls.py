"""URLs of gateways, and their signatures (docs/access.md). A signed URL gives access to whoever has it, for use on web pages."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

from .jobs import JobLike, to_json


def render_target(job: JobLike) -> str:
    """The path and query of /v1/render that returns the image of a job. A preset is part of the path."""
    fields = to_json(job)
    preset = fields.pop("preset", None)
    if isinstance(preset, dict):
        preset = preset["name"]
    path = "/v1/render" if preset is None else f"/v1/render/preset/{quote(preset, safe='')}"
    return f"{path}?{urlencode([(name, _parameter(name, value)) for name, value in fields.items()], quote_via=quote)}"


def info_target(job: JobLike) -> str:
    """The path and query of /v1/info that returns the facts about the source of a job."""
    fields = to_json(job)
    info = fields.pop("info", True)
    if isinstance(info, dict) and "location" in info:
        fields["location"] = info["location"]
    return f"/v1/info?{urlencode([(name, _parameter(name, value)) for name, value in fields.items()], quote_via=quote)}"


def image_target(key: str) -> str:
    """The path of a stored result."""
    return f"/v1/images/{quote(key, safe='')}"


def events_target(
    *, types: Iterable[str] = (), jobs: Iterable[str] = (), batches: Iterable[str] = (), sources: Iterable[str] = ()
) -> str:
    """The path and query of the event stream with these filters."""
    query = [("type", ",".join(types))] + [("job", job) for job in jobs]
    query += [("batch", batch) for batch in batches] + [("source", source) for source in sources]
    query = [(name, value) for name, value in query if value]
    return "/v1/events" + (f"?{urlencode(query)}" if query else "")


class URLSigner:
    """Signs URLs with a secret of `gateway.urlKeys`. Keep the secret on servers.

    signer = URLSigner("https://images.example.org", "1", secret)
    url = signer.render(Job("https://example.org/cat.jpg", width=400), lifetime=3600)
    """

    def __init__(self, url: str, key_id: str, secret: str) -> None:
        self.url, self.key_id, self._secret = url.rstrip("/"), key_id, secret

    def sign(self, target: str, *, lifetime: float | None = None, expires: int | None = None) -> str:
        """The signed URL of a target, such as `/v1/render?…`. It is valid for `lifetime` seconds, or until `expires` (Unix time).

        Gateways require an expiry, unless `gateway.requiresExpiry` is false.
        """
        if expires is None and lifetime is not None:
            expires = int(time.time() + lifetime)
        target += ("&" if "?" in target else "?") + f"keyId={quote(self.key_id, safe='')}"
        if expires is not None:
            target += f"&expires={expires}"
        signature = hmac.new(self._secret.encode(), target.encode(), hashlib.sha256).hexdigest()
        return f"{self.url}{target}&signature={signature}"

    def render(self, job: JobLike, *, lifetime: float | None = None, expires: int | None = None) -> str:
        """The signed URL of the image of a job, which is rendered when it is first requested."""
        return self.sign(render_target(job), lifetime=lifetime, expires=expires)

    def info(self, job: JobLike, *, lifetime: float | None = None, expires: int | None = None) -> str:
        """The signed URL of the facts about the source of a job."""
        return self.sign(info_target(job), lifetime=lifetime, expires=expires)

    def image(self, key: str, *, lifetime: float | None = None, expires: int | None = None) -> str:
        """The signed URL of a stored result."""
        return self.sign(image_target(key), lifetime=lifetime, expires=expires)

    def events(
        self, *, lifetime: float | None = None, expires: int | None = None, **filters: Iterable[str]
    ) -> str:
        """The signed URL of the event stream, for the EventSource of browsers. `filters` are those of events_target."""
        return self.sign(events_target(**filters), lifetime=lifetime, expires=expires)


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name == "cropRect":
        sides = ",".join(_parameter("", value[side]) for side in ("x", "y", "width", "height"))
        return sides + (",pixels" if value.get("unit") == "pixels" else "")
    if name == "gravity" and value.get("detect") is None:
        return f"{_parameter('', value['x'])},{_parameter('', value['y'])}"
    if name == "tags":
        return ",".join(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
