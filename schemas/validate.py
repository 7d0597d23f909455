#!/usr/bin/env python3
"""Checks JSON values, one on each line, against a JSON Schema (2020-12).

    validate.py SCHEMA [FILE]

Reads FILE, or standard input.

Prints a line for each: "valid", or "invalid" with the place and the reason. Needs the package jsonschema (Debian:
python3-jsonschema). Exits 0 when every line could be checked, whatever came of it.
"""
import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(f"{sys.executable} has no jsonschema of version 4 or newer: install Debian's python3-jsonschema")


def main(path, lines):
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for line in lines:
        error = next(validator.iter_errors(json.loads(line)), None)
        print("valid" if error is None else ascii(f"invalid {error.json_path}: {error.message}")[1:-1][:300])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], open(sys.argv[2], encoding="utf-8") if len(sys.argv) == 3 else sys.stdin)
