"""The environment of the commands: `halcyon dev`, an origin with photographs, and a folder like a reader's."""
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "Tests/Support"))
from ports import reserve_port  # noqa: E402

HALCYON = os.environ["HALCYON_EXECUTABLE"]
# Seconds that a block may take, and seconds for which a block that stays is observed at least.
TIMEOUT = 120
OBSERVATION_TIME = 6


class Origin:
    """A local substitute for example.org, which has an image for every path."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            name = pathlib.PurePosixPath(path.partition("?")[0]).name
            known = ROOT / "Samples" / name
            return str(known if known.is_file() else ROOT / "Samples/chelsea.jpg")

        def end_headers(self):
            self.send_header("Cache-Control", "max-age=600")
            super().end_headers()

        def log_message(self, *arguments):
            pass

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class CommandFixture:
    """A cluster, an origin and a temporary folder. stop() ends and removes them."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.origin = Origin()
        self.probes = f"127.0.0.1:{reserve_port()}"
        self.environment = self.folder / "dev.env"
        self.log = open(self.folder / "dev.log", "w", encoding="utf-8")
        variables = self.variables() | {"HALCYON_GATEWAY_LISTEN": "127.0.0.1:0", "HALCYON_HTTP_LISTEN": self.probes}
        self.process = subprocess.Popen(
            [HALCYON, "dev", "--json", "--environment", self.environment, "--log-level", "warning"], stdout=subprocess.PIPE, stderr=self.log, text=True, env=variables)
        addresses = json.loads(self.process.stdout.readline())
        self.kafka, self.redis, self.gateway = addresses["kafka"], addresses["redis"], addresses["gateway"]
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "halcyon").symlink_to(HALCYON)
        # Commands run make in the repository.
        (bin_folder / "make").write_text(f'#!/bin/sh\nexec /usr/bin/make -C "{ROOT}" "$@"\n')
        (bin_folder / "make").chmod(0o755)
        try:
            self.letter = self.make_dead_letter()
        except BaseException:
            self.stop()
            raise

    def variables(self):
        """The environment of a reader, without the variables of this test."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "KAFKA_HOME", "TMPDIR") if name in os.environ}
        return kept | {"PATH": f"{self.folder}/bin:{kept['PATH']}", "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def make_dead_letter(self):
        """Produces an invalid job and returns the id of its dead letter."""
        subprocess.run(["kcat", "-P", "-b", self.kafka, "-t", "halcyon.jobs"], input="no job\n", text=True, check=True)
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            listed = subprocess.run(
                [HALCYON, "dead", "list", "--json", "--brokers", self.kafka], capture_output=True, text=True, env=self.variables())
            if listed.stdout.strip():
                letter = json.loads(listed.stdout.splitlines()[0])
                return letter["letter"]
            time.sleep(0.2)
        raise TimeoutError(f"no dead letter within {TIMEOUT} s: {listed.stderr}")

    def with_local_addresses(self, text):
        """Returns a block with the addresses of the documentation replaced by those of this fixture."""
        places = {
            "https://example.org": self.origin.url,
            "http://127.0.0.1:8080": self.gateway,
            "http://worker:9464": f"http://{self.probes}",
            "redis://redis:6379": f"redis://{self.redis}",
            "kafka:9092": self.kafka,
            # Any free port.
            "0.0.0.0:8080": "127.0.0.1:0",
            # An existing dead letter.
            "0-1042": self.letter,
            # The Redis of `halcyon dev`.
            "redis-cli ": f"redis-cli -p {self.redis.rpartition(':')[2]} ",
        }
        for written, meant in places.items():
            text = text.replace(written, meant)
        return text

    def make_working_folder(self, name):
        """Makes a folder like a clone of the repository, with two images."""
        folder = self.folder / name.replace("/", "-")
        folder.mkdir()
        for entry in ("Examples", "Samples", "charts", "clients", "docs", "schemas", "scripts"):
            (folder / entry).symlink_to(ROOT / entry)
        (folder / ".build/release").mkdir(parents=True)
        (folder / ".build/release/halcyon").symlink_to(HALCYON)
        (folder / ".build/dev.env").symlink_to(self.environment)
        for picture in ("photo.jpg", "cat.jpg"):
            shutil.copy(ROOT / "Samples/chelsea.jpg", folder / picture)
        return folder

    def run(self, block, folder):
        """Runs a block and returns its exit code and the end of its output. A block that stays is interrupted after
        OBSERVATION_TIME, or later when it has printed something, and returns 0 if it was still running."""
        variables = self.variables() | {
            "HALCYON_KAFKA_BROKERS": self.kafka, "HALCYON_REDIS_URL": f"redis://{self.redis}", "HALCYON_SOURCES_ALLOW": "127.0.0.0/8"}
        with open(self.folder / "output", "w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                ["bash", "-eu", "-o", "pipefail", "-c", self.with_local_addresses(block.text)], cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True)
            try:
                if block.stays:
                    code = self.observe(process, output)
                else:
                    code = process.wait(TIMEOUT)
                    if block.may_find_nothing and code == 3:
                        code = 0
            except subprocess.TimeoutExpired:
                code = f"not completed within {TIMEOUT} s"
            finally:
                self.end(process)
            output.seek(0)
            return code, output.read()[-2000:]

    @staticmethod
    def observe(process, output):
        """Returns 0 if a block that stays is running after OBSERVATION_TIME, or later when it has printed something."""
        start = time.monotonic()
        while process.poll() is None:
            elapsed = time.monotonic() - start
            if elapsed >= OBSERVATION_TIME and os.fstat(output.fileno()).st_size:
                return 0
            if elapsed >= TIMEOUT:
                return f"printed nothing within {TIMEOUT} s"
            time.sleep(0.1)
        return process.returncode or "ended early"

    @staticmethod
    def end(process):
        """Ends the process group of a block and waits for its shell."""
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, each)
                process.wait(10)
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(TIMEOUT)
        self.process.stdout.close()
        self.log.close()
        self.origin.stop()
        shutil.rmtree(self.folder)
