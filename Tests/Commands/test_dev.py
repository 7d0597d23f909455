"""`make dev` and `make worker`, without the build."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 120


def wait(what, found):
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {TIMEOUT} s")


class Dev(unittest.TestCase):
    def setUp(self):
        # The scripts use the folder that contains them, so another cluster of the user is not affected.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        for name in ("dev", "worker"):
            (self.root / "scripts" / name).write_bytes((ROOT / "scripts" / name).read_bytes())
            (self.root / "scripts" / name).chmod(0o755)

    def start(self, name, *arguments):
        variables = {"PATH": os.environ["PATH"], "HALCYON_EXECUTABLE": os.environ["HALCYON_EXECUTABLE"], "HALCYON_GATEWAY_LISTEN": "127.0.0.1:0"}
        with open(self.root / name, "w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [self.root / "scripts" / name, *arguments], stdout=output, stderr=output, env=variables, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def test_worker_joins_and_leaves_the_cluster(self):
        dev = self.start("dev", "--log-level", "warning")
        wait("the cluster", lambda: "Ctrl-C stops" in self.text("dev"))
        gateway = next(line.split()[1] for line in self.text("dev").splitlines() if line.startswith("  Gateway"))

        def workers():
            with urllib.request.urlopen(f"{gateway}/v1/cluster", timeout=TIMEOUT) as answer:
                return {worker["id"] for worker in json.load(answer).get("workers", [])}

        wait("one worker", lambda: len(workers()) == 1)
        worker = self.start("worker")
        wait("two workers", lambda: len(workers()) == 2)
        os.killpg(worker.pid, signal.SIGINT)
        self.assertEqual(worker.wait(TIMEOUT), 0, self.text("worker"))
        wait("one worker again", lambda: len(workers()) == 1)
        # Like Ctrl-C in its terminal.
        os.killpg(dev.pid, signal.SIGINT)
        dev.wait(TIMEOUT)
        self.assertFalse((self.root / ".build/dev.env").exists())

    def test_worker_without_a_cluster_says_what_to_do(self):
        worker = self.start("worker")
        self.assertEqual(worker.wait(TIMEOUT), 1)
        self.assertIn("make dev", self.text("worker"))


if __name__ == "__main__":
    unittest.main()
