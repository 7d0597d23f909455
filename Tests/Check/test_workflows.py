"""Workflows use targets of the Makefile, run all targets of .ci/run, and pin their actions."""
import pathlib
import re
import unittest

from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = {path.name: YAML(typ="safe").load(path) for path in sorted((ROOT / ".github/workflows").glob("*.yaml"))}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def made(text):
    return set(re.findall(r"^\s*make ([a-z-]+)", text, re.MULTILINE))


class Workflows(unittest.TestCase):
    def test_make_targets_exist(self):
        for name, workflow in WORKFLOWS.items():
            for step in steps(workflow):
                self.assertLessEqual(made(step.get("run", "")), TARGETS, name)

    def test_ci_yaml_runs_all_targets_of_ci_run(self):
        everywhere = made((ROOT / ".ci/run").read_text(encoding="utf-8"))
        public = set().union(*(made(step.get("run", "")) for step in steps(WORKFLOWS["ci.yaml"])))
        self.assertTrue(everywhere)
        self.assertEqual(everywhere - public, set(), "ci.yaml does not run what .ci/run does")

    def test_actions_are_pinned_by_commit(self):
        for name in WORKFLOWS:
            text = (ROOT / ".github/workflows" / name).read_text(encoding="utf-8")
            for line in re.findall(r"^.*\buses: .*$", text, re.MULTILINE):
                self.assertRegex(line, r"uses: (\./\S+$|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)", name)

    def test_each_action_has_one_commit(self):
        found = set()
        for name in WORKFLOWS:
            found |= {step["uses"] for step in steps(WORKFLOWS[name]) if "uses" in step}
        names = [use.partition("@")[0] for use in found]
        self.assertEqual(len(names), len(set(names)), sorted(found))

    def test_permissions_are_minimal_and_jobs_have_timeouts(self):
        for name, workflow in WORKFLOWS.items():
            self.assertEqual(workflow["permissions"], {"contents": "read"}, name)
            for job in workflow["jobs"].values():
                self.assertTrue("uses" in job or "timeout-minutes" in job, name)
                for step in job.get("steps", []):
                    if step.get("uses", "").startswith("actions/checkout@"):
                        self.assertIs(step["with"]["persist-credentials"], False, name)

    def test_packages_are_built_without_python(self):
        """The image of Swift has no Python, and the job installs none."""
        job = WORKFLOWS["release.yaml"]["jobs"]["packages"]
        self.assertTrue(job["container"]["image"].startswith("swift:"))
        text = "\n".join(step.get("run", "") for step in job["steps"])
        scripts = set(re.findall(r"\bscripts/[\w-]+", text))
        self.assertTrue(scripts)
        self.assertNotIn("python", text)
        for script in scripts:
            self.assertNotIn("python", (ROOT / script).read_text(encoding="utf-8").split("\n", 1)[0], script)

    def test_matrix_has_the_two_supported_swift_releases(self):
        matrix = WORKFLOWS["ci.yaml"]["jobs"]["test"]["strategy"]["matrix"]["swift"]
        tools = re.search(r"swift-tools-version: (\S+)", (ROOT / "Package.swift").read_text(encoding="utf-8"))[1]
        image = re.search(r"^ARG SWIFT=(\d+\.\d+)", (ROOT / "docker/Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)[1]
        self.assertEqual(len(matrix), 2)
        self.assertIn(tools, matrix, "the oldest Swift that the package says it needs")
        self.assertIn(image, matrix, "the Swift that the image is built with")


if __name__ == "__main__":
    unittest.main()
