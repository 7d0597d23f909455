"""Parser of Server-Sent Events (HTML Living Standard, 9.2.6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .errors import TooLarge


@dataclass(frozen=True)
class Item:
    """A complete event; `name` is `id` if only the position changed, and `retry` for the reconnection time in milliseconds."""

    name: str
    data: str
    last_id: str


class Parser:
    """Parses the bytes of one connection. An event that is incomplete when the connection ends is dropped, and sent again after a reconnect."""

    def __init__(self, last_id: str, limit: int) -> None:
        self._limit, self._buffer, self._size = limit, b"", 0
        self._last_id = self._id = last_id
        self._name, self._data = "message", list[str]()

    def feed(self, part: bytes) -> Iterator[Item]:
        """Yields the items that are complete with this part. Raises TooLarge."""
        *lines, self._buffer = (self._buffer + part).split(b"\n")
        for line in lines:
            yield from self._line(line.removesuffix(b"\r").decode("utf-8", "replace"))
        if self._size + len(self._buffer) > self._limit:
            raise TooLarge(f"an event of more than {self._limit} bytes")

    def _line(self, line: str) -> Iterator[Item]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self._last_id = self._id
            yield Item(self._name if self._data else "id", "\n".join(self._data), self._last_id)
            self._name, self._data, self._size = "message", [], 0
        elif field == "data":
            self._data.append(value)
            self._size += len(value)
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdigit() and len(value) < 10:
            yield Item("retry", value, self._last_id)
