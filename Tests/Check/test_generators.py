"""Generates clients from the OpenAPI document, and compares its schemas with those in schemas/."""
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "Sources/Halcyon/HalcyonGateway/Documents/openapi.yaml"
TOOLS = pathlib.Path(sys.executable).parent
MODELS = ["Job", "Variant", "Event", "JobState", "Problem"]
VARIANTS = {"source": "https://example.org/cat.jpg", "format": "webp", "variants": [{"width": 400}, {"width": 40, "processors": ["flip"]}]}


def schema(name):
    return json.loads((ROOT / f"schemas/{name}.schema.json").read_text(encoding="utf-8"))


def events():
    """The events that docs/events.md shows."""
    blocks = re.findall(r"^```json\n(.*?)^```$", (ROOT / "docs/events.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [json.loads(block) for block in blocks]


def jobs():
    return [*schema("job")["examples"], VARIANTS]


def generate(tool, *arguments):
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    return subprocess.run([TOOLS / tool, *arguments], env=environment, check=True, capture_output=True, text=True)


class Generators(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)

    def test_openapi_python_client_generates_models(self):
        said = generate("openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", self.folder / "client", "--meta", "none")
        # It does not support other kinds of bodies, such as images, and returns them as bytes.
        for complaint in ["Unable to process schema", "Endpoint will not be generated", "Could not find reference"]:
            self.assertNotIn(complaint, said.stdout)
        models = importlib.import_module("client.models")
        for name in MODELS:
            self.assertTrue(hasattr(models, name), name)
        for operation in ["jobs.submit_jobs", "jobs.look_at_job", "images.render_image", "images.read_image"]:
            self.assertTrue(hasattr(importlib.import_module(f"client.api.{operation}"), "sync_detailed"), operation)
        for job in jobs():
            self.assertEqual(models.Job.from_dict(job).to_dict(), job)
        self.assertEqual(models.Variant(width=400).to_dict(), {"width": 400})
        for event in events():
            read = models.Event.from_dict(event)
            # Timestamps as Python writes them.
            written = re.sub(r"\.(\d{3})000\+00:00", r".\1Z", json.dumps(read.to_dict()))
            self.assertEqual(json.loads(written), event)
            # The members of a started event are some of those of a cancelled one.
            kind = event["type"].rsplit(".", 1)[1].replace("started", "cancelled").capitalize()
            # Both events of a batch have the same members.
            kind = "BatchProgress" if event["type"].startswith("halcyon.batch.") else kind
            self.assertEqual(type(read.data).__name__, f"Event{kind}")

    def test_datamodel_code_generator_generates_models(self):
        generate(
            "datamodel-codegen", "--input", DOCUMENT, "--input-file-type", "openapi", "--output", self.folder / "models.py",
            "--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11")
        models = importlib.import_module("models")
        for name in MODELS:
            self.assertTrue(hasattr(models, name), name)
        for job in jobs():
            self.assertEqual(models.Job.model_validate(job).model_dump(mode="json", exclude_none=True), job)
        self.assertEqual(models.Variant(width=400).model_dump(mode="json", exclude_none=True), {"width": 400})
        for event in events():
            models.Event.model_validate(event)
        with self.assertRaises(ValueError):
            models.Job.model_validate({"source": "initials:J", "widht": 400})


class Schemas(unittest.TestCase):
    """Compares the schemas of the document with those in schemas/."""

    def setUp(self):
        self.document = YAML(typ="safe").load(DOCUMENT)

    def validator(self, name):
        return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": self.document["components"]})

    def test_jobs_get_equal_verdicts(self):
        rules = [
            {"widht": 4}, {"id": ""}, {"width": 0}, {"width": None, "id": None}, {"width": 4, "sizer": "natural"}, {"variants": [{"width": 4, "sizer": "natural"}]},
            {"variants": [{"format": "bmp"}]}, {"variants": [{"id": "a"}]}, {"cropRect": {"x": 1, "y": 0, "width": 1, "height": 1}},
            {"cropRect": {"x": 1, "y": 0, "width": 0, "height": 1}}, {"source": "initials:J", "headers": {"A": "b"}}, {"headers": {"A": "b"}},
            {"generation": 1}, {"generation": 1, "slot": "a"}, {"delivery": {"put": "http://h/"}, "variants": [{}, {}]}, {"source": {"video": "initials:J"}},
            {"processors": ["blur"]}, {"processors": [{"roundCorner": {}}]}, {"processors": [{"roundCorner": {"radius": 1, "widthFraction": 1}}]},
            {"processors": [{"border": {"width": 1}}]}, {"processors": [{"overlay": {"color": "red", "source": "initials:J"}}]},
            {"processors": [{"flip": {}, "blackWhite": {}}]}, {"processors": [{"flip": {}, "blur": None}]}, {"processors": [{"flip": None}]},
            {"gravity": {"x": 0}}, {"gravity": {"x": 0, "y": 1}}, {"cache": {"reload": True, "onlyIfCached": True}},
        ]
        exact, other = Draft202012Validator(schema("job")), self.validator("Job")
        verdicts = []
        for job in [*jobs(), *({"source": "http://h/a", **rule} for rule in rules)]:
            verdicts.append(exact.is_valid(job))
            self.assertEqual(other.is_valid(job), verdicts[-1], job)
        self.assertGreater(verdicts.count(False), 15)

    def test_events_get_equal_verdicts(self):
        exact, other = Draft202012Validator(schema("event")), self.validator("Event")
        for event in events():
            self.assertTrue(exact.is_valid(event) and other.is_valid(event))
            for change in [{"type": "halcyon.image.other"}, {"data": {}}, {"data": {**event["data"], "count": -1, "code": "none", "key": ""}}]:
                self.assertEqual(other.is_valid({**event, **change}), exact.is_valid({**event, **change}), change)

    def test_schemas_declare_no_defaults(self):
        def defaults(node):
            if isinstance(node, dict):
                yield from (["default"] if "default" in node else [])
            for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
                yield from defaults(each)

        schemas = self.document["components"]["schemas"]
        for name in ["Job", "Variant", "Processor", "ProcessorStep", "Source"]:
            self.assertEqual(list(defaults(schemas[name])), [], name)


if __name__ == "__main__":
    unittest.main()
