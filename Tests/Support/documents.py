#!/usr/bin/env python3
"""Validates an API document of the gateway, read from standard input, and prints it as JSON.

    documents.py openapi|asyncapi SCHEMAS

OpenAPI documents are validated by openapi-spec-validator. No validator on PyPI is known to implement version 3 of
AsyncAPI correctly, so this script checks the structure of AsyncAPI documents itself: required members and the targets
of references. SCHEMAS is the folder of the schemas that an AsyncAPI document must contain unchanged. Those of the
OpenAPI document are checked by Tests/Check/test_generators.py. Exits with 1 and an error message if the document is
invalid.
"""
import json
import pathlib
import sys

import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator


def walk(value, path=()):
    yield path, value
    if isinstance(value, dict):
        for name, member in value.items():
            yield from walk(member, path + (name,))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from walk(member, path + (index,))


def resolve(document, reference):
    assert reference.startswith("#/"), f"{reference} points outside the document"
    value = document
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        assert isinstance(value, dict) and part in value, f"{reference} has no target"
        value = value[part]
    return value


def check_references(document):
    for path, value in walk(document):
        # A property could have this name too, but none of ours does.
        if path and path[-1] == "$ref":
            resolve(document, value)


def check_schema(document, pointer, path):
    """Checks that a schema equals its file, except for its identifier and the base of its references."""
    text = json.dumps(resolve(document, pointer)).replace(f'"$ref": "{pointer}/', '"$ref": "#/')
    expected = json.loads(path.read_text(encoding="utf-8"))
    del expected["$schema"], expected["$id"]
    assert json.loads(text) == expected, f"{pointer} differs from {path.name}"


def check_openapi(document, _):
    error = next(OpenAPIV31SpecValidator(document).iter_errors(), None)
    assert error is None, f"{list(error.absolute_path)}: {error.message}"


def check_asyncapi(document, schemas):
    assert document["asyncapi"] == "3.0.0"
    assert document["info"]["title"] and document["info"]["version"]
    for server in document["servers"].values():
        assert server["host"] and server["protocol"]
    for name, channel in document["channels"].items():
        known = {"address", "title", "summary", "description", "servers", "parameters", "messages", "bindings"}
        assert channel.keys() <= known, name
        assert all(server["$ref"].startswith("#/servers/") for server in channel["servers"]), name
        names = {part.split("}")[0] for part in channel["address"].split("{")[1:]}
        assert names == channel.get("parameters", {}).keys(), name
        assert all(message["$ref"].startswith("#/components/messages/") for message in channel["messages"].values()), name
    used = set()
    for name, operation in document["operations"].items():
        assert operation["action"] in ("send", "receive"), name
        channel = operation["channel"]["$ref"]
        assert channel.startswith("#/channels/"), name
        used |= {message["$ref"] for message in operation["messages"]}
        assert all(message["$ref"].startswith(f"{channel}/messages/") for message in operation["messages"]), name
    for name, channel in document["channels"].items():
        for message in channel["messages"]:
            assert f"#/channels/{name}/messages/{message}" in used, f"no operation uses {message} of {name}"
    for name, message in document["components"]["messages"].items():
        assert "payload" in message and message["title"], name
    for name in ("Job", "Event"):
        check_schema(document, f"#/components/schemas/{name}/schema", schemas / f"{name.lower()}.schema.json")


def main(kind, schemas):
    document = yaml.safe_load(sys.stdin.buffer)
    check_references(document)
    {"openapi": check_openapi, "asyncapi": check_asyncapi}[kind](document, pathlib.Path(schemas))
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], sys.argv[2])
    except AssertionError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
