"""Compares the examples of docs/freshness.md with the test vectors."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def row(vector):
    headers = "<br>".join(f"`{name}: {text}`" for name, text in vector["headers"].items()) or "none"
    expected = vector["expect"]
    if not expected["stored"]:
        life = "not stored"
    else:
        life = "`cache.defaultTTL`" if expected["ttl"] is None else f"{expected['ttl']:g} s"
    return f"| {vector['id']} | {vector['maxAge']:g} | {headers} | {life} |"


class Freshness(unittest.TestCase):
    def test_examples_match_the_vectors(self):
        vectors = json.loads((ROOT / "Tests/HalcyonModelTests/Vectors/freshness.json").read_text(encoding="utf-8"))["vectors"]
        page = (ROOT / "docs/freshness.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| M\d+ .*$", page, re.MULTILINE), [row(vector) for vector in vectors])


if __name__ == "__main__":
    unittest.main()
