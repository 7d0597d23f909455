#!/usr/bin/env python3
"""Computes schemas/key-vectors.json anew: the names and the jobs stay, the texts and keys are those of keys.py.

    key_vectors.py

To add a vector, write its name and its job into the file and run this. Halcyon's tests compare the file with its own keys.
"""
import json
import pathlib

import keys

FILE = pathlib.Path(__file__).parent / "key-vectors.json"


def main():
    file = json.loads(FILE.read_text(encoding="utf-8"))
    entries = []
    for vector in file["vectors"]:
        members = {"name": vector["name"], "job": vector["job"], **keys.texts(vector["job"])}
        lines = [f"      {json.dumps(name)}: {json.dumps(value)}" for name, value in members.items()]
        entries.append("    {\n" + ",\n".join(lines) + "\n    }")
    text = f'{{\n  "about": {json.dumps(file["about"])},\n  "vectors": [\n' + ",\n".join(entries) + "\n  ]\n}\n"
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
