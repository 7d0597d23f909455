"""Parses the requests that a trace collector received, with OpenTelemetry's own definitions, and prints the spans.

    otlp_spans.py FILE…

Each file is the body of one OTLP/HTTP request in JSON: `ExportTraceServiceRequest`. The output has one line of JSON per
span. Members that the definitions do not contain are errors. So are violations of OTLP's JSON mapping where it differs
from that of proto3: identifiers are hexadecimal, enumerations are numbers, and member names are in lower camel case.
"""
import base64
import json
import re
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

DIGITS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}


def unique(pairs):
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), f"duplicate member: {names}"
    return dict(pairs)


def in_proto3(node):
    """Converts a value to the JSON mapping of proto3, in which bytes are base64."""
    if isinstance(node, list):
        return [in_proto3(element) for element in node]
    if not isinstance(node, dict):
        return node
    result = {}
    for name, value in node.items():
        assert re.fullmatch("[a-z][A-Za-z0-9]*", name), f"name is not in lower camel case: {name}"
        if name in DIGITS:
            assert re.fullmatch("[0-9a-f]{%d}" % DIGITS[name], value) and set(value) != {"0"}, f"{name}: {value}"
            value = base64.b64encode(bytes.fromhex(value)).decode()
        if name in ("kind", "code"):
            assert type(value) is int, f"{name} is not a number: {value}"
        if name.endswith("UnixNano") or name == "intValue":
            assert type(value) is str, f"{name} is not a string: {value}"
        result[name] = in_proto3(value)
    return result


def plain(attributes):
    names = [pair.key for pair in attributes]
    assert len(set(names)) == len(names), f"duplicate attribute: {names}"
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in attributes}


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        body = json.load(file, object_pairs_hook=unique)
    request = json_format.ParseDict(in_proto3(body), ExportTraceServiceRequest(), ignore_unknown_fields=False)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                print(json.dumps({
                    "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                    "name": span.name, "kind": span.kind, "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano, "attributes": plain(span.attributes),
                    "links": [link.trace_id.hex() + "-" + link.span_id.hex() for link in span.links],
                    "status": span.status.code, "message": span.status.message,
                    "resource": plain(resource.resource.attributes), "scope": scope.scope.name}))
