"""Runs docker/compose.yaml with an origin, under its own project name and on free ports, once for all tests."""
import atexit
import contextlib
import functools
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKER = os.environ.get("DOCKER", "docker")
IMAGE = os.environ["HALCYON_IMAGE"]
# The image with the detector of faces. Empty if it is not tested.
FACES_IMAGE = os.environ.get("FACES_IMAGE", "")
SAMPLES = ("astronaut", "chelsea", "coffee", "hubble", "rocket")

# A slow origin, so that jobs are in flight whenever a worker is disturbed. Paths below /fast/ are not limited.
NGINX = """server {
    listen 80;
    root /images;
    limit_rate 100k;
    location /fast/ { alias /images/; limit_rate 0; }
}
"""

_figures = []


def figure(name, value):
    """Records a measurement for the table that is printed at the end."""
    _figures.append((name, value))


def mebibytes(count):
    return f"{count / (1 << 20):.0f} MiB"


def run(*command, check=True, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def docker(*arguments, **options):
    return run(DOCKER, *arguments, **options)


def halcyon(*arguments, image=IMAGE, volumes=(), **options):
    """Runs a command in a new container with the restrictions of compose.yaml and without a network."""
    mounts = [part for volume in volumes for part in ("--volume", volume)]
    return docker(
        "run", "--rm", "--interactive", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true", "--network", "none", *mounts,
        image, *arguments, **options)


def until(what, body, seconds=120, pause=0.1):
    """Waits until the result of body is true and returns it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = body()
        if found:
            return found
        time.sleep(pause)
    raise AssertionError(f"not within {seconds} s: {what}")


def get(url, timeout=10):
    """Returns status and body, or status 0 if there is no response."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def status(process, name):
    """A field of /proc/PID/status."""
    text = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(name + ":"))


class Container:
    """A container. Its properties are read each time they are used."""

    def __init__(self, name):
        self.name = name

    @property
    def facts(self):
        return json.loads(docker("inspect", self.name).stdout)[0]

    @property
    def process(self):
        """The PID of its first process on the host, or 0 if it does not run."""
        return self.facts["State"]["Pid"]

    @property
    def health(self):
        return self.facts["State"]["Health"]["Status"]

    @property
    def address(self):
        return next(iter(self.facts["NetworkSettings"]["Networks"].values()))["IPAddress"]

    def status(self, name):
        """A field of the first process' /proc/PID/status."""
        return status(self.process, name)

    @property
    def memory(self):
        """The anonymous resident memory of the first process, in bytes."""
        return int(self.status("RssAnon").split()[0]) * 1024

    def metric(self, name):
        """The sum of the samples of a metric over all labels, or 0 without samples."""
        _, body = get(f"http://{self.address}:9464/metrics")
        lines = [line.split() for line in body.decode().splitlines() if line.startswith((name + " ", name + "{"))]
        return sum(float(words[-1]) for words in lines)


class Cluster:
    def __init__(self):
        self.project = f"halcyon-test-{secrets.token_hex(4)}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="halcyon-docker-"))
        # Users of the containers read it.
        self.folder.chmod(0o755)
        self.ports = {name: free_port() for name in ("GATEWAY_PORT", "KAFKA_PORT", "REDIS_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT")}
        self.password = secrets.token_hex(16)
        self.environment = dict(
            os.environ, **{name: str(port) for name, port in self.ports.items()}, HALCYON_IMAGE=IMAGE, HALCYON_SOURCES_ALLOW="origin",
            HALCYON_LOG_LEVEL="info", COMPOSE_PROGRESS="quiet")
        self._write_images()
        self._write_certificates()
        (self.folder / "compose.json").write_text(json.dumps(self._additions()), encoding="utf-8")
        self.gateway = f"http://127.0.0.1:{self.ports['GATEWAY_PORT']}"
        self.prometheus = f"http://127.0.0.1:{self.ports['PROMETHEUS_PORT']}"

    def start(self):
        begin = time.monotonic()
        self.compose("up", "--detach", "--quiet-pull")
        until("the gateway serves", lambda: get(f"{self.gateway}/readyz")[0] == 200)
        until("a worker serves", lambda: self.workers and all(worker.health == "healthy" for worker in self.workers))
        figure("`compose up` until gateway and worker serve", f"{time.monotonic() - begin:.1f} s")

    def stop(self):
        self.compose("--profile", "tls", "--profile", "faces", "down", "--volumes", "--timeout", "40", "--remove-orphans", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def files(self):
        return ["--file", ROOT / "docker/compose.yaml", "--file", self.folder / "compose.json"]

    def compose(self, *arguments, **options):
        return docker("compose", "--project-name", self.project, *self.files, *arguments, env=self.environment, **options)

    def container(self, service):
        return self.containers(service)[0]

    def containers(self, service):
        """All containers of a service, running or not, in the order of their numbers."""
        rows = docker(
            "ps", "--all", "--format", '{{.Label "com.docker.compose.container-number"}} {{.Names}}',
            "--filter", f"label=com.docker.compose.project={self.project}", "--filter", f"label=com.docker.compose.service={service}",
            "--filter", "label=com.docker.compose.oneoff=False").stdout.splitlines()
        return [Container(row.split()[1]) for row in sorted(rows, key=lambda row: int(row.split()[0]))]

    @property
    def workers(self):
        return self.containers("worker")

    def scale(self, count):
        """Scales the workers as documented and waits until all are healthy."""
        self.compose("up", "--detach", "--no-recreate", "--scale", f"worker={count}")
        until(f"{count} workers serve", lambda: [worker.health for worker in self.workers] == ["healthy"] * count)

    def submit(self, jobs):
        """Submits jobs to the gateway, which acknowledges each on a line when the brokers have stored it."""
        body = "".join(json.dumps(job) + "\n" for job in jobs).encode()
        request = urllib.request.Request(
            f"{self.gateway}/v1/jobs", data=body, headers={"Content-Type": "application/x-ndjson"}, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            lines = [json.loads(line) for line in answer.read().splitlines()]
        taken = [line.get("id") for line in lines]
        assert taken == [job["id"] for job in jobs], lines

    @contextlib.contextmanager
    def events(self):
        """Yields a growing list of all events of the topic, read by `halcyon events` in a container. Each has the
        member `arrived`, the value of time.monotonic() at its arrival."""
        import threading
        name = f"{self.project}-events-{secrets.token_hex(2)}"
        command = [DOCKER, "compose", "--project-name", self.project, *self.files,
            "run", "--rm", "--no-TTY", "--no-deps", "--name", name, "gateway", "events", "--since", "beginning"]
        reader = subprocess.Popen(
            [str(part) for part in command], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)
        found = []

        def read():
            for line in reader.stdout:
                found.append(json.loads(line) | {"arrived": time.monotonic()})

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            docker("rm", "--force", name, check=False)
            reader.wait(timeout=60)
            thread.join(timeout=60)
            reader.stdout.close()

    def _write_images(self):
        images = self.folder / "images"
        images.mkdir()
        for name in SAMPLES:
            shutil.copy(ROOT / "Samples" / f"{name}.jpg", images)
        # Larger than any sample: 24 million pixels.
        done = subprocess.run(
            [DOCKER, "run", "--rm", "--network", "none", "--volume", f"{images}:/images:ro", IMAGE, "render", "/images/hubble.jpg", "--width", "6000",
                "--height", "4000", "--format", "jpeg"], capture_output=True, check=True)
        (images / "large.jpg").write_bytes(done.stdout)
        (self.folder / "nginx.conf").write_text(NGINX, encoding="utf-8")

    def _write_certificates(self):
        """Creates a certificate authority and a certificate for a Redis server named `secure`."""
        folder = self.folder / "certificates"
        folder.mkdir()
        openssl = functools.partial(run, "openssl", cwd=folder)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Halcyon's test authority",
            "-keyout", "authority.key", "-out", "authority.pem")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=secure", "-keyout", "redis.key", "-out", "redis.request")
        (folder / "names").write_text("subjectAltName=DNS:secure\n", encoding="utf-8")
        openssl("x509", "-req", "-in", "redis.request", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "redis.pem")
        # The user of the server reads it. It is useless after the test.
        (folder / "redis.key").chmod(0o644)

    def _additions(self):
        certificates = f"{self.folder}/certificates:/certificates:ro"
        return {"services": {
            "origin": {
                "image": "nginx:1.28", "networks": ["cluster"],
                "volumes": [f"{self.folder}/images:/images:ro", f"{self.folder}/nginx.conf:/etc/nginx/conf.d/default.conf:ro"]},
            "worker": {"depends_on": {"origin": {"condition": "service_started"}}},
            # Another cluster on the same brokers, whose Redis accepts only TLS.
            "secure": {
                "image": "redis:8", "networks": ["cluster"], "profiles": ["tls"], "volumes": [certificates],
                "command": [
                    "redis-server", "--port", "0", "--tls-port", "6380", "--tls-cert-file", "/certificates/redis.pem",
                    "--tls-key-file", "/certificates/redis.key", "--tls-ca-cert-file", "/certificates/authority.pem", "--tls-auth-clients", "no",
                    "--requirepass", self.password, "--save", "", "--maxmemory", "64mb", "--maxmemory-policy", "volatile-ttl"]},
            "secure-worker": {
                "extends": {"file": str(ROOT / "docker/compose.yaml"), "service": "worker"}, "profiles": ["tls"], "volumes": [certificates],
                "environment": {
                    "HALCYON_REDIS_URL": f"rediss://:{self.password}@secure:6380", "HALCYON_KAFKA_PREFIX": "tls.", "HALCYON_KAFKA_GROUP": "tls",
                    "SSL_CERT_FILE": "/certificates/authority.pem"}},
            # A worker with the detector of faces, in a third cluster on the same brokers.
            "faces-worker": {
                "extends": {"file": str(ROOT / "docker/compose.yaml"), "service": "worker"}, "profiles": ["faces"], "image": FACES_IMAGE or IMAGE,
                "environment": {"HALCYON_KAFKA_PREFIX": "faces.", "HALCYON_KAFKA_GROUP": "faces"}},
        }}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@functools.cache
def shared():
    """Returns the cluster of this test run."""
    cluster = Cluster()
    atexit.register(cluster.stop)
    cluster.start()
    return cluster


@atexit.register
def report():
    width = max((len(name) for name, _ in _figures), default=0)
    for name, value in _figures:
        print(f"{name:<{width}}  {value}", flush=True)
