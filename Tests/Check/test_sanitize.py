"""scripts/sanitize with a program in place of Swift that only records its arguments."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWIFT = """#!/bin/sh
printf "%s\\n" "$*" >>"$CALLS"
"""
TESTS = ["HalcyonKitTests.ImageTests/loads()", "HalcyonModelTests.ImageTests/sizes()", "KafkaTests.ImageTests/sends()"]


def selected(arguments):
    """The tests that match one of the filters, if there are any, and none of the patterns to skip."""
    patterns = {
        option: [value for name, value in zip(arguments, arguments[1:]) if name == option] for option in ("--filter", "--skip")}
    return [
        test for test in TESTS
        if (not patterns["--filter"] or any(re.search(pattern, test) for pattern in patterns["--filter"]))
        and not any(re.search(pattern, test) for pattern in patterns["--skip"])]


class Sanitize(unittest.TestCase):
    def runs(self, *arguments):
        """How often each test runs under the address sanitizer and under the thread sanitizer."""
        with tempfile.TemporaryDirectory() as folder:
            swift, calls = pathlib.Path(folder, "swift"), pathlib.Path(folder, "calls")
            swift.write_text(SWIFT, encoding="utf-8")
            swift.chmod(0o755)
            subprocess.run(
                [ROOT / "scripts/sanitize", *arguments], check=True,
                env={"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls)})
            runs = [call.split() for call in calls.read_text(encoding="utf-8").splitlines()]
        return {
            kind: sorted(test for run in runs if f"--sanitize={kind}" in run for test in selected(run)) for kind in ("address", "thread")}

    def test_each_test_runs_once_under_each_sanitizer(self):
        self.assertEqual(self.runs(), {"address": TESTS, "thread": TESTS[:2]})

    def test_filters_select_tests_once(self):
        self.assertEqual(self.runs("--filter", "ImageTests/s"), {"address": TESTS[1:], "thread": TESTS[1:2]})
        self.assertEqual(self.runs("--filter", "HalcyonKitTests"), {"address": TESTS[:1], "thread": TESTS[:1]})


if __name__ == "__main__":
    unittest.main()
