"""Contents of the image, and commands that run in it without other services."""
import json
import os
import pathlib
import secrets
import signal
import tempfile
import time
import unittest

from cluster import IMAGE, ROOT, Container, docker, figure, halcyon, mebibytes, until


class Image(unittest.TestCase):
    def setUp(self):
        self.facts = json.loads(docker("image", "inspect", IMAGE).stdout)[0]
        self.settings = self.facts["Config"]

    def test_runs_a_worker_as_an_unprivileged_user(self):
        self.assertEqual(self.settings["User"], "10001:10001")
        self.assertEqual((self.settings["Entrypoint"], self.settings["Cmd"]), (["halcyon"], ["worker"]))
        self.assertEqual(self.settings["Healthcheck"]["Test"], ["CMD", "halcyon", "health"])
        figure("size of the image", mebibytes(self.facts["Size"]))

    def test_has_labels(self):
        labels = self.settings["Labels"]
        for name in ("title", "description", "vendor", "licenses", "version", "revision", "created", "source", "base.name"):
            self.assertTrue(labels.get(f"org.opencontainers.image.{name}"), name)
        version = labels["org.opencontainers.image.version"]
        self.assertIn(version, ("unknown", halcyon("--version").stdout.split()[-1]))

    def test_has_the_libraries_and_formats(self):
        # Without Kafka and Redis, doctor exits with 1, and nothing else is broken.
        findings = json.loads(halcyon("doctor", "--json", "--brokers", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1", check=False).stdout)["findings"]
        said = {finding["subject"]: finding for finding in findings}
        libraries = said["libraries"]["message"]
        versions = dict(part.split()[:2] for part in libraries.split(", "))
        for name, least in (("libvips", (8, 15)), ("librdkafka", (2, 8)), ("hiredis", (1, 0))):
            self.assertGreaterEqual(tuple(int(number) for number in versions[name].split(".")[:2]), least, libraries)
        self.assertNotIn("without TLS", libraries)
        self.assertEqual({subject for subject, finding in said.items() if finding["level"] == "broken"}, {"Kafka", "Redis"}, findings)
        for finding in findings:
            print(f"{finding['level']:<8}{finding['subject']}: {finding['message']}")

    def test_detects_the_limits_of_the_container(self):
        box = ("run", "--rm", "--network", "none", "--cpus", "0.5", "--memory", "512m")
        done = docker(*box, IMAGE, "doctor", "--json", "--brokers", "127.0.0.1:1", "--redis", "redis://127.0.0.1:1", check=False)
        said = [finding["message"] for finding in json.loads(done.stdout)["findings"] if finding["subject"] == "limits"]
        self.assertIn("1 image at once, in 268 MB of 537 MB of memory", said)

    def test_renders_without_network_and_disk(self):
        for format in ("jpeg", "png", "webp", "avif", "gif", "tiff", "jxl"):
            with self.subTest(format):
                done = halcyon("render", "initials:JD", "--width", "64", "--format", format, "--json", "-o", "/dev/null")
                image = json.loads(done.stdout)
                self.assertEqual((image["format"], image["width"]), (format, 64))

    def test_extracts_frames_of_videos(self):
        """ffmpeg runs although dpkg.cfg excludes the libraries of its output devices."""
        with tempfile.TemporaryDirectory(prefix="halcyon-docker-") as folder:
            pathlib.Path(folder).chmod(0o777)
            box = ("run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", "--volume", f"{folder}:/videos")
            docker(*box, "--entrypoint", "ffmpeg", IMAGE, "-loglevel", "error", "-f", "lavfi", "-i", "testsrc=duration=1:size=64x48:rate=5", "/videos/clip.mp4")
            source = json.dumps({"video": "file:///videos/clip.mp4", "seconds": 0.4})
            done = docker(*box, IMAGE, "render", source, "--width", "32", "--set", "sources.fileRoots=/videos", "--json", "-o", "/dev/null")
        image = json.loads(done.stdout)
        self.assertEqual((image["width"], image["height"]), (32, 24))

    def test_has_no_detector(self):
        """Gravities then have their fallback, and jobs that hide or report faces fail."""
        def render(**fields):
            job = json.dumps({"source": "file:///pictures/astronaut.jpg", "width": 300, "height": 100} | fields)
            return halcyon(
                "render", "--job", "-", "--json", "--set", "sources.fileRoots=/pictures", "-o", "/dev/null", volumes=[f"{ROOT}/Samples:/pictures:ro"],
                input=job, check=False)

        strip = {gravity: json.loads(render(gravity=gravity).stdout)["sha256"] for gravity in ("faces", "attention", "center")}
        self.assertEqual(strip["faces"], strip["attention"])
        self.assertNotEqual(strip["faces"], strip["center"])
        for fields in ({"processors": ["blurFaces"]}, {"processors": ["pixelateFaces"]}, {"faces": True}):
            done = render(**fields)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("internal: faces cannot be detected: no detector is configured; set images.detector", done.stderr)

    def test_needs_no_shell(self):
        """Rendering, render processes and the health check work after all shells are removed."""
        name = f"halcyon-test-{secrets.token_hex(4)}"
        orders = f'FROM {IMAGE}\nUSER 0\nRUN ["rm", "/bin/sh", "/bin/bash", "/bin/dash"]\nUSER 10001:10001\n'
        docker("build", "--tag", name, "-", input=orders)
        self.addCleanup(docker, "rmi", "--force", name)
        self.assertNotEqual(docker("run", "--rm", "--entrypoint", "sh", name, "-c", "true", check=False).returncode, 0)
        box = ("--read-only", "--cap-drop", "ALL", "--network", "none", name)
        for source in ("initials:JD", "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/%3E".replace(" ", "%20")):
            docker("run", "--rm", *box, "render", source, "--width", "32", "-o", "/dev/null")
        docker("run", "--detach", "--name", name, "--health-interval", "1s", *box)
        self.addCleanup(docker, "rm", "--force", name)
        until("it is healthy", lambda: Container(name).health == "healthy")

    def test_health_check_follows_the_worker(self):
        """A worker that waits for Kafka is healthy; one that does not respond is not."""
        name = f"halcyon-test-{secrets.token_hex(4)}"
        docker(
            "run", "--detach", "--name", name, "--read-only", "--cap-drop", "ALL", "--network", "none", "--health-interval", "1s", "--health-retries", "1",
            "--health-timeout", "2s", "--health-start-period", "0s", IMAGE)
        self.addCleanup(docker, "rm", "--force", name)
        worker = Container(name)
        until("it is healthy", lambda: worker.health == "healthy")
        begin = time.monotonic()
        docker("exec", name, "halcyon", "health")
        figure("`docker exec … halcyon health`", f"{(time.monotonic() - begin) * 1000:.0f} ms, most of it Docker's")
        process = worker.process
        os.kill(process, signal.SIGSTOP)
        until("it is not healthy", lambda: worker.health == "unhealthy")
        os.kill(process, signal.SIGCONT)
        until("it is healthy again", lambda: worker.health == "healthy")

    def test_is_not_bound_to_an_architecture(self):
        self.assertEqual(self.facts["Os"], "linux")
        self.assertIn(self.facts["Architecture"], ("amd64", "arm64"))
        text = (pathlib.Path(__file__).parents[2] / "docker/Dockerfile").read_text(encoding="utf-8")
        orders = "".join(line for line in text.splitlines() if not line.startswith("#"))
        for word in ("x86_64", "amd64", "aarch64", "arm64", "TARGETARCH"):
            self.assertNotIn(word, orders)
