"""scripts/release and scripts/package in a temporary repository with only the files that they need."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ["scripts/release", "Sources/Halcyon/HalcyonCLI/Version.swift", "charts/halcyon/Chart.yaml", "clients/python/pyproject.toml",
         "clients/python/src/halcyon/__init__.py", "clients/javascript/package.json", "clients/go/client.go", "clients/java/pom.xml",
         "clients/java/src/main/java/org/example/halcyon/Halcyon.java"]
CHANGES = "# Changes\n\n## [Unreleased]\n\n### Added\n\n- Something.\n"


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        origin = pathlib.Path(folder.name) / "origin"
        for name in FILES:
            (origin / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, origin / name)
        (origin / "CHANGELOG.md").write_text(CHANGES, encoding="utf-8")
        self.clone = origin
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit("All of it")
        clone = pathlib.Path(folder.name) / "clone"
        self.git("clone", "--quiet", origin, clone)
        self.clone = clone

    def git(self, *arguments):
        names = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false"]
        return subprocess.run(
            ["git", *names, *map(str, arguments)], cwd=self.clone, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def release(self, *arguments, code=0):
        variables = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_AUTHOR_NAME": "Nobody", "GIT_AUTHOR_EMAIL": "nobody@example.org", "GIT_COMMITTER_NAME": "Nobody",
            "GIT_COMMITTER_EMAIL": "nobody@example.org", "GIT_CONFIG_GLOBAL": "/dev/null"}
        done = subprocess.run(
            ["python3", self.clone / "scripts/release", *arguments], capture_output=True, text=True, env=variables)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def text(self, name):
        return (self.clone / name).read_text(encoding="utf-8")

    def test_release_is_one_commit_and_a_tag(self):
        self.assertIn("git push origin main v7.0.0", self.release("7.0.0"))
        self.assertIn('static let number = "7.0.0"', self.text(FILES[1]))
        self.assertIn("\nappVersion: 7.0.0\n", self.text(FILES[2]))
        self.assertRegex(self.text("CHANGELOG.md"), r"## \[Unreleased\]\n\n## \[7\.0\.0\] - \d{4}-\d\d-\d\d\n\n### Added")
        self.assertEqual(self.git("describe", "--exact-match"), "v7.0.0")
        self.assertEqual(self.git("rev-list", "--count", "HEAD"), "2")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.release("--check", "7.0.0")
        self.assertEqual(self.release("--notes", "7.0.0"), "### Added\n\n- Something.\n")

    def test_dry_run_prints_changes_and_writes_nothing(self):
        shown = self.release("--dry-run", "7.0.0")
        self.assertIn('+    static let number = "7.0.0"', shown)
        self.assertIn("+appVersion: 7.0.0", shown)
        self.assertIn("+## [7.0.0] - ", shown)
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertEqual(self.git("tag"), "")

    def test_release_increments_the_chart_version(self):
        def own():
            return next(line for line in self.text(FILES[2]).split("\n") if line.startswith("version: "))[len("version: "):]

        first = own()
        self.release("7.0.0")
        self.assertEqual(own(), first, "there was no release before")
        changes = self.clone / "CHANGELOG.md"
        changes.write_text(changes.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n", 1))
        self.commit("More")
        self.release("7.0.1")
        major, minor, patch = first.split(".")
        self.assertEqual(own(), f"{major}.{minor}.{int(patch) + 1}")
        changes.write_text(changes.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n- A chart.\n", 1))
        chart = self.clone / FILES[2]
        chart.write_text(chart.read_text().replace(f"version: {own()}", "version: 50.0.0", 1))
        self.commit("A chart")
        self.release("7.0.2")
        self.assertEqual(own(), "50.0.0", "it was raised by hand")

    def test_invalid_releases_are_rejected_with_a_reason(self):
        self.assertIn("not a semantic version", self.release("7.0", code=1))
        self.assertIn("not a semantic version", self.release("v7.0.0", code=1))
        self.release("7.0.0-rc.1")
        self.assertIn("there is a tag", self.release("7.0.0-rc.1", code=1))
        self.assertIn("nothing under [Unreleased]", self.release("7.0.0", code=1))
        changes = self.clone / "CHANGELOG.md"
        changes.write_text(changes.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n", 1))
        self.assertIn("not committed", self.release("7.0.0", code=1))
        self.commit("More")
        self.assertIn("does not come after 7.0.0-rc.1", self.release("7.0.0-beta.9", code=1))
        self.git("switch", "--quiet", "--create", "elsewhere")
        self.assertIn("on main", self.release("7.0.0", code=1))
        self.git("switch", "--quiet", "main")
        self.release("7.0.0")
        self.assertIn("scripts/release [--dry-run] VERSION", self.release(code=2))

    def test_check_rejects_versions_that_differ_from_the_code(self):
        self.release("7.0.0")
        self.assertIn("no section [7.0.1]", self.release("--check", "7.0.1", code=1))
        code = self.clone / FILES[1]
        code.write_text(code.read_text().replace("7.0.0", "7.0.1"))
        self.assertIn("says 7.0.1, not 7.0.0", self.release("--check", "7.0.0", code=1))


class Package(unittest.TestCase):
    def test_timestamps_are_those_of_the_commit_in_a_clone_of_another_user(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file in ("scripts/package", FILES[1]):
                (folder / "clone" / file).parent.mkdir(parents=True)
                shutil.copy(ROOT / file, folder / "clone" / file)
            # The first tool that gets the timestamps prints them, and ends the script.
            tools = {"id": "echo 0", "dpkg": "echo amd64", "apt-get": "exit 0", "swift": "exit 1", "debootstrap": 'echo "at $SOURCE_DATE_EPOCH"; exit 1'}
            (folder / "tools").mkdir()
            for tool, line in tools.items():
                (folder / "tools" / tool).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
                (folder / "tools" / tool).chmod(0o755)
            variables = {
                "PATH": f"{folder / 'tools'}:/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_COMMITTER_DATE": "@1700000000 +0000",
                # The namespace for mounts, of which there are none.
                "PACKAGE_NAMESPACE": os.readlink("/proc/self/ns/mnt")}
            git = ["git", "-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgSign=false"]
            for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "All of it"]):
                subprocess.run([*git, *arguments], cwd=folder / "clone", check=True, env=variables)
            done = subprocess.run(
                [folder / "clone/scripts/package", folder / "packages", "12"], capture_output=True, text=True,
                env=variables | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
            self.assertIn("at 1700000000\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
