"""Conversion between dataclasses and the JSON of Halcyon, whose names are in camel case."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

from .errors import InvalidResponse

T = TypeVar("T")


def camel(name: str) -> str:
    """The JSON name of a field: `max_age` is `maxAge`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def encode(value: Any) -> Any:
    """The JSON value of a dataclass, or of values that contain dataclasses. Fields that are None are left out.

    Raises ValueError for a time without a time zone.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((camel(field.name), getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: encode(member) for name, member in fields if member is not None}
    if isinstance(value, Mapping):
        return {name: encode(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return value


def decode(type_: type[T], value: Any) -> T:
    """Creates a dataclass from its JSON. Ignores unknown members. Raises InvalidResponse if a required one is missing or has another type."""
    try:
        return typing.cast(T, _decode(type_, value))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidResponse(f"{type_.__name__}: {error!r}") from error


@functools.lru_cache(maxsize=None)
def _fields(type_: type) -> list[tuple[str, str, Any, bool]]:
    """(name, JSON name, type, whether it is required) of each field."""
    hints = typing.get_type_hints(type_)
    missing = dataclasses.MISSING
    return [
        (field.name, camel(field.name), hints[field.name], field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(type_)
        if field.init
    ]


def _decode(type_: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(type_):
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is not an object")
        arguments = {}
        for name, key, hint, required in _fields(typing.cast(type, type_)):
            if required or value.get(key) is not None:
                arguments[name] = _decode(hint, value[key])
        return typing.cast(type, type_)(**arguments)
    origin, parameters = typing.get_origin(type_), typing.get_args(type_)
    if origin in (types.UnionType, typing.Union):  # X | None
        return None if value is None else _decode(parameters[0], value)
    if origin is tuple:
        return tuple(_decode(parameters[0], item) for item in value)
    if type_ is datetime:
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    if type_ is float and isinstance(value, int):
        return float(value)
    if type_ is not Any and isinstance(type_, type) and not isinstance(value, type_):
        raise TypeError(f"{value!r} is not a {type_.__name__}")
    return value
