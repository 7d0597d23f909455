"""Servers that tests start on free ports of loopback, and stop by their process ids."""
import os
import pathlib
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


class Processes:
    """The processes of a test, with a folder for their logs."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.running = []

    def start(self, name, *command, **variables):
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [str(part) for part in command], stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                env={**os.environ, **{key: str(value) for key, value in variables.items()}})
        self.running.append((name, process))

    def until(self, what, condition, seconds=120):
        """Waits for a condition. Raises RuntimeError with the logs if a process ends or the time is over."""
        end = time.monotonic() + seconds
        while not condition():
            ended = [name for name, process in self.running if process.poll() is not None]
            if ended or time.monotonic() > end:
                logs = "".join(f"\n== {name}\n{self.log(name)[-3000:]}" for name, _ in self.running)
                raise RuntimeError(f"{what}: not within {seconds} s; ended processes: {', '.join(ended) or 'none'}{logs}")
            time.sleep(0.1)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self, name):
        """Kills a process, as if its machine had failed."""
        process = dict(self.running)[name]
        self.running.remove((name, process))
        process.kill()
        process.wait()

    def stop(self):
        # Later processes depend on earlier ones.
        for _, process in reversed(self.running):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running = []
