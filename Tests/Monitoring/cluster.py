"""A small cluster under load, scraped by Prometheus with the files in monitoring/."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import yaml

from processes import MONITORING, ROOT, Processes, answers

sys.path.append(str(ROOT / "Tests/Support"))
from ports import reserve_port  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
HALCYON = os.environ["HALCYON_EXECUTABLE"]
# Seconds to wait for a response, however slow the machine is.
TIMEOUT = 120


class Cluster:
    """Apache Kafka, Redis, a worker, a gateway, two origins, one of which always fails, and Prometheus."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="halcyon-monitoring-")
        self.folder = pathlib.Path(self.directory.name)
        self.processes = Processes(self.folder)
        self.kafka, self.redis, self.origin, self.broken = (reserve_port() for _ in range(4))
        self.ports = {"halcyon-worker": reserve_port(), "halcyon-gateway": reserve_port()}
        self.prometheus = reserve_port()
        self.ending = threading.Event()
        self.threads = []
        self.numbers = iter(range(1 << 30))

    # MARK: Servers

    def start(self):
        self.start_kafka()
        self.processes.start("redis", "redis-server", "--port", self.redis, "--bind", "127.0.0.1", "--save", "")
        for name, port in ("origin", self.origin), ("broken", self.broken):
            self.processes.start(name, sys.executable, HERE / "origin.py", port)
        for port in self.kafka, self.redis, self.origin, self.broken:
            self.processes.until(f"port {port} answers", lambda: listens(port))
        settings = {
            "HALCYON_KAFKA_BROKERS": f"127.0.0.1:{self.kafka}", "HALCYON_REDIS_URL": f"redis://127.0.0.1:{self.redis}",
            "HALCYON_RETRY_DELAYS": "1s", "HALCYON_RETRY_ATTEMPTS": 2, "HALCYON_RETRY_MAXIMUM_IN_PROCESS_DELAY": "100ms",
            "HALCYON_RESULTS_STORE": f"file://{self.folder}/results",
        }
        subprocess.run(
            [HALCYON, "topics", "create", "--partitions", "2"], check=True, capture_output=True, env={**os.environ, **{k: str(v) for k, v in settings.items()}})
        self.processes.start(
            "worker", HALCYON, "worker", **settings, HALCYON_DELIVERY="exactly-once", HALCYON_SOURCES_ALLOW="127.0.0.1",
            # Timeouts on a busy machine must not add dead letters.
            HALCYON_SOURCES_TIMEOUT="5m", HALCYON_SOURCES_STALL_TIMEOUT="5m", HALCYON_SOURCES_CONNECT_TIMEOUT="5m",
            HALCYON_IMAGES_RENDER_TIMEOUT="5m", HALCYON_SOURCES_DISK_CACHE=self.folder, HALCYON_HTTP_LISTEN=f"127.0.0.1:{self.ports['halcyon-worker']}",
            HALCYON_SOURCES_ARCHIVE_MINIMUM_PIXELS=8_000_000, HALCYON_IMAGES_DETECTOR="/bin/false",
            HALCYON_WORKER_INSTANCE="monitored", HALCYON_WEBHOOKS_ALLOW="127.0.0.1",
            HALCYON_WEBHOOKS_SECRET="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            HALCYON_WEBHOOKS_URL_good=f"http://127.0.0.1:{self.origin}/hook",
            HALCYON_WEBHOOKS_URL_bad=f"http://127.0.0.1:{self.origin}/nowhere")
        self.processes.start(
            "gateway", HALCYON, "gateway", **settings, HALCYON_GATEWAY_LISTEN=f"127.0.0.1:{self.ports['halcyon-gateway']}",
            HALCYON_GATEWAY_RATE=100000, HALCYON_GATEWAY_BURST=100000)
        for job, port in self.ports.items():
            self.processes.until(f"{job} is ready", lambda: answers(f"http://127.0.0.1:{port}/readyz"))
        self.start_prometheus()

    def start_kafka(self):
        home, port, controller = pathlib.Path(os.environ["KAFKA_HOME"]), self.kafka, reserve_port()
        properties = self.folder / "kafka.properties"
        properties.write_text("\n".join([
            "process.roles=broker,controller", "node.id=1", f"controller.quorum.voters=1@127.0.0.1:{controller}",
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}", "controller.listener.names=CONTROLLER",
            f"log.dirs={self.folder}/kafka", "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=2",
            "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=2", "group.initial.rebalance.delay.ms=0",
            "broker.session.timeout.ms=600000", ""]))
        variables = {"LOG_DIR": str(self.folder / "kafka-log"), "KAFKA_HEAP_OPTS": "-Xmx256m -Xms256m"}
        subprocess.run(
            [home / "bin/kafka-storage.sh", "format", "-t", "AAAAAAAAQACAAAAAAAAAAA", "-c", properties], check=True,
            capture_output=True, env={**os.environ, **variables})
        self.processes.start("kafka", home / "bin/kafka-server-start.sh", properties, **variables)

    def start_prometheus(self):
        """Starts Prometheus with the sample configuration, shorter intervals and the ports of this cluster."""
        sample = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
        sample["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        sample["rule_files"] = [str(MONITORING / file) for file in sample["rule_files"]]
        for job in sample["scrape_configs"]:
            job["static_configs"] = [{"targets": [f"127.0.0.1:{self.ports[job['job_name']]}"]}]
        (self.folder / "prometheus.yaml").write_text(yaml.safe_dump(sample))
        self.processes.start(
            "prometheus", "prometheus", f"--config.file={self.folder}/prometheus.yaml",
            f"--storage.tsdb.path={self.folder}/prometheus", f"--web.listen-address=127.0.0.1:{self.prometheus}")
        self.processes.until("Prometheus is ready", lambda: answers(f"http://127.0.0.1:{self.prometheus}/-/ready"))

    def stop(self):
        self.ending.set()
        self.processes.stop()
        for thread in self.threads:
            thread.join(10)
        self.directory.cleanup()

    # MARK: Load

    def load(self):
        """Starts to send requests of all kinds, until stop()."""
        for work in self.send_jobs, self.ask_for_images, self.read_events:
            thread = threading.Thread(target=self.keep_doing, args=(work,))
            thread.start()
            self.threads.append(thread)

    def keep_doing(self, work):
        while not self.ending.is_set():
            try:
                work()
            except OSError:
                # An error response, or the cluster is stopping.
                pass
            self.ending.wait(0.2)

    def send_jobs(self):
        good, broken = f"http://127.0.0.1:{self.origin}", f"http://127.0.0.1:{self.broken}"
        number = next(self.numbers)
        sources = [
            f"{good}/good/{number}", f"{good}/good/{number}", f"{good}/good/0", f"{good}/slow/{number}", f"{good}/missing/{number}",
            f"{broken}/broken/{number}", "initials:HC",
        ]
        jobs = [
            {"source": source, "width": 40 + number % 7, "priority": ("high", "normal", "low")[(number + index) % 3]}
            for index, source in enumerate(sources)]
        jobs.append({"source": f"{good}/good/0", "width": 90, "webhook": ("good", "bad")[number % 2]})
        jobs.append({"source": f"{good}/good/{number}", "width": 30, "delivery": "inline", "cache": {"memory": False}})
        body = "".join(json.dumps(job) + "\n" for job in jobs).encode()
        self.fetch("/v1/jobs", body, "application/x-ndjson")

    def ask_for_images(self):
        source = urllib.parse.quote(f"http://127.0.0.1:{self.origin}/good/{next(self.numbers) % 20}")
        self.fetch(f"/v1/render?width=50&source={source}")
        self.fetch("/v1/nothing")

    def read_events(self):
        with urllib.request.urlopen(self.gateway("/v1/events"), timeout=5) as stream:
            while not self.ending.is_set() and stream.readline():
                pass

    def gateway(self, path):
        return f"http://127.0.0.1:{self.ports['halcyon-gateway']}{path}"

    def fetch(self, path, body=None, kind=None):
        headers = {"Content-Type": kind} if kind else {}
        with urllib.request.urlopen(urllib.request.Request(self.gateway(path), body, headers), timeout=20) as answer:
            return answer.read()

    # MARK: Queries

    def metrics(self, job):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[job]}/metrics", timeout=TIMEOUT) as answer:
            return answer.read().decode()

    def ask(self, path, **parameters):
        """Returns the response of Prometheus. Raises AssertionError with its message for an invalid query."""
        url = f"http://127.0.0.1:{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, text):
        return self.ask("query", query=text)["result"]


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
