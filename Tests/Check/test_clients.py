"""The client packages agree with the schemas: failure codes, kinds of problems, the job and the facts that have all members, and versions."""
import importlib
import json
import pathlib
import re
import sys
import unittest

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients/python/src"))


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


class Clients(unittest.TestCase):
    def test_job_with_all_fields_is_valid(self):
        schema, job = json.loads(read("schemas/job.schema.json")), json.loads(read("clients/conformance/job.json"))
        errors = [f"{error.json_path}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(job)]
        self.assertEqual(errors, [])
        # A job with a size has no sizer; its variants have.
        self.assertEqual(set(schema["properties"]) - set(job), {"sizer"})
        named = [next(iter(step)) for step in job["processors"]]
        known = schema["$defs"]["processor"]["oneOf"][1]["properties"]
        self.assertEqual(set(named), set(known))

    def test_facts_with_all_members_are_valid(self):
        schema, facts = json.loads(read("schemas/event.schema.json")), json.loads(read("clients/conformance/info.json"))
        validator = jsonschema.Draft202012Validator({**schema["$defs"]["info"], "$defs": schema["$defs"]})
        self.assertEqual([f"{error.json_path}: {error.message}" for error in validator.iter_errors(facts)], [])
        self.check_members(facts, schema["$defs"]["info"], schema, "info")

    def check_members(self, value, type_, schema, path):
        """Checks that an object and those in it have exactly the members of their schema."""
        if reference := type_.get("$ref"):
            type_ = schema
            for name in reference.removeprefix("#/").split("/"):
                type_ = type_[name]
        if isinstance(value, list):
            for item in value:
                self.check_members(item, type_["items"], schema, path)
        if isinstance(value, dict):
            self.assertEqual(set(value), set(type_["properties"]), path)
            for name, member in value.items():
                self.check_members(member, type_["properties"][name], schema, f"{path}.{name}")

    def test_every_failure_code_has_a_name(self):
        codes = set(json.loads(read("schemas/event.schema.json"))["$defs"]["code"]["enum"])
        self.assertEqual(set(importlib.import_module("halcyon.failures").JobFailed.by_code), codes)
        self.assertEqual(self.javascript("FailureCode"), codes)
        self.assertEqual(self.go("FailureCode"), codes)
        self.assertEqual(self.java("FailureCode"), {code.replace("_", "-") for code in codes})

    def test_every_kind_of_problem_has_a_name(self):
        kinds = set(re.findall(r"- /problems/([a-z-]+)$", read("schemas/openapi.yaml"), re.MULTILINE))
        self.assertGreater(len(kinds), 10)
        self.assertEqual(set(importlib.import_module("halcyon.errors").Problem.by_kind), kinds)
        self.assertEqual(self.javascript("ProblemKind"), kinds)
        self.assertEqual(self.go("ProblemKind"), kinds)
        self.assertEqual(self.java("ProblemException"), kinds)

    def test_behaviors_have_unique_names_and_sentences(self):
        behaviors = json.loads(read("clients/conformance/behaviors.json"))["behaviors"]
        self.assertEqual(len({behavior["name"] for behavior in behaviors}), len(behaviors))
        for behavior in behaviors:
            self.assertRegex(behavior["sentence"], r"^[A-Z].*\.$")

    def javascript(self, name):
        """The values of a constant of the JavaScript package."""
        members = re.search(rf"export const {name} = Object\.freeze\({{(.*?)}}\)", read("clients/javascript/src/errors.js"), re.DOTALL)
        return set(re.findall(r'\w+: "([^"]+)"', members[1]))

    def go(self, name):
        """The values of the constants of a type of the Go package, without that of a response without a kind."""
        return set(re.findall(rf'^\t\w+ +{name} += "([a-z_-]+)"', read("clients/go/errors.go"), re.MULTILINE))

    def java(self, name):
        """The constants of the enumeration in a file of the Java package with hyphens, without those that no gateway sends."""
        text = re.sub(r"/\*\*.*?\*/", "", read(f"clients/java/src/main/java/org/example/halcyon/{name}.java"), flags=re.DOTALL)
        constants = re.search(r"public enum \w+ {(.*?);", text, re.DOTALL)[1]
        return {word.lower().replace("_", "-") for word in re.findall(r"[A-Z][A-Z_]+", constants)} - {"unknown", "blank"}


if __name__ == "__main__":
    unittest.main()
