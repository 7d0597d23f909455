"""scripts/install with a program that only hands out its texts, and the lists of packages in scripts/deps."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """#!/bin/sh
case $1 in
manual) mkdir -p "$3/man1" "$3/man5" && echo page >"$3/man1/halcyon.1" && echo page >"$3/man5/halcyon.yaml.5" ;;
completions) echo "$2" ;;
esac
"""
FILES = {
    "bin/halcyon", "share/bash-completion/completions/halcyon", "share/zsh/site-functions/_halcyon", "share/fish/vendor_completions.d/halcyon.fish",
    "share/man/man1/halcyon.1", "share/man/man5/halcyon.yaml.5", "lib/systemd/system/halcyon-worker.service", "lib/systemd/system/halcyon-gateway.service",
    "share/doc/halcyon/halcyon.default", "share/doc/halcyon/LICENSE", "share/doc/halcyon/manifest",
}


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # The program is a script, which strip would not take.
        for name, text in {"halcyon": PROGRAM, "strip": "#!/bin/sh\n"}.items():
            (self.folder / "tools").mkdir(exist_ok=True)
            (self.folder / "tools" / name).write_text(text, encoding="utf-8")
            (self.folder / "tools" / name).chmod(0o755)

    def install(self, *arguments, code=0, **variables):
        tools = self.folder / "tools"
        done = subprocess.run(
            [ROOT / "scripts/install", *arguments], capture_output=True, text=True,
            env={"PATH": f"{tools}:{os.environ['PATH']}", "HALCYON_EXECUTABLE": str(tools / "halcyon"), **variables})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def files(self, folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    def test_all_parts_are_installed_and_removed(self):
        target = self.folder / "prefix"
        self.install(PREFIX=str(target))
        self.assertEqual(self.files(target), FILES)
        for path in self.files(target):
            self.assertEqual((target / path).stat().st_mode & 0o777, 0o755 if path == "bin/halcyon" else 0o644, path)
        for name in ("worker", "gateway"):
            unit = (target / f"lib/systemd/system/halcyon-{name}.service").read_text(encoding="utf-8")
            self.assertIn(f"\nExecStart={target}/bin/halcyon {name}\n", unit)
            self.assertNotIn("@", unit.replace("@system-service", ""))
        other = target / "share/man/man1/other.1"
        other.touch()
        self.install("--uninstall", PREFIX=str(target))
        self.assertEqual(self.files(target), {"share/man/man1/other.1"})
        self.assertEqual(sorted(path.name for path in target.iterdir()), ["share"])
        self.assertIn("is not installed", self.install("--uninstall", PREFIX=str(target), code=1))

    def test_destdir_precedes_the_prefix(self):
        self.install(PREFIX="/usr", DESTDIR=str(self.folder / "root"))
        self.assertEqual(self.files(self.folder / "root/usr"), FILES)
        unit = (self.folder / "root/usr/lib/systemd/system/halcyon-worker.service").read_text(encoding="utf-8")
        self.assertIn("\nExecStart=/usr/bin/halcyon worker\n", unit)
        self.install("--uninstall", PREFIX="/usr", DESTDIR=str(self.folder / "root"))
        self.assertEqual(self.files(self.folder / "root"), set())

    def test_mistakes_are_named(self):
        self.assertIn("must be an absolute path", self.install(PREFIX="here", code=2))
        self.assertIn("Usage:", self.install("--remove", code=2))
        self.assertIn("run make install", self.install(HALCYON_EXECUTABLE="/nowhere", PREFIX=str(self.folder / "x"), code=1))


class Units(unittest.TestCase):
    def test_a_worker_has_time_to_drain(self):
        grace = re.search(r"`worker\.grace` \| (\d+) s \|", (ROOT / "docs/deployment.md").read_text(encoding="utf-8"))
        for name in ("worker", "gateway"):
            unit = (ROOT / f"packaging/halcyon-{name}.service").read_text(encoding="utf-8")
            self.assertGreater(int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[1]), int(grace[1]) + 10)
            # Render processes must not receive the signal.
            self.assertIn("\nKillMode=mixed\n", unit)

    def test_services_of_one_machine_can_have_different_addresses(self):
        example = (ROOT / "packaging/halcyon.default").read_text(encoding="utf-8")
        # As a variable of both services, the address would exclude one of them.
        self.assertNotRegex(example, r"(?m)^#?HALCYON_HTTP_LISTEN=")
        addresses = set()
        for name in ("worker", "gateway"):
            unit = (ROOT / f"packaging/halcyon-{name}.service").read_text(encoding="utf-8")
            files = re.findall(r"^EnvironmentFile=-(.+)$", unit, re.MULTILINE)
            # The last one takes precedence.
            self.assertEqual(files, ["/etc/default/halcyon", f"/etc/default/halcyon-{name}"])
            addresses |= set(re.findall(rf"{files[1]}: +HALCYON_HTTP_LISTEN=(\S+)", example))
        self.assertEqual(len(addresses), 2, example)


class Packages(unittest.TestCase):
    def test_the_image_is_built_with_the_same_headers(self):
        listed = subprocess.run([ROOT / "scripts/deps", "list"], check=True, capture_output=True, text=True).stdout.split()
        dockerfile = (ROOT / "docker/Dockerfile").read_text(encoding="utf-8")
        build = dockerfile[dockerfile.index(" AS build"):dockerfile.index("WORKDIR /halcyon")]
        self.assertLessEqual(set(listed), set(build.split()))
        self.assertGreater(len(listed), 5)

    def test_usage(self):
        for script, arguments in {"deps": ["tests"], "package": [], "release": ["--build"]}.items():
            done = subprocess.run([ROOT / "scripts" / script, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, script)
            self.assertIn(f"scripts/{script}", done.stderr)


if __name__ == "__main__":
    unittest.main()
