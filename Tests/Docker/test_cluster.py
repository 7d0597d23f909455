"""Jobs in the cluster of compose.yaml while workers are added, killed, paused and disconnected."""
import collections
import json
import os
import pathlib
import shutil
import signal
import tempfile
import time
import unittest
import urllib.parse

from cluster import ROOT, SAMPLES, docker, figure, get, mebibytes, shared, until

TERMINAL = {f"halcyon.image.{word}" for word in ("ready", "failed", "cancelled", "superseded")}
# Longer than session.timeout.ms (10 s by default), after which Kafka reassigns the worker's partitions.
AWAY = 15


class Variables(unittest.TestCase):
    """The environment of containers, as `docker compose config` prints it for a copy of the files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("compose.yaml", "passed.env"):
            shutil.copy(ROOT / "docker" / name, self.folder)

    def environments(self, **passed):
        others = {name: value for name, value in os.environ.items() if not name.startswith("HALCYON_")}
        shown = docker("compose", "--file", self.folder / "compose.yaml", "config", "--format", "json", env=others | passed).stdout
        return [json.loads(shown)["services"][service]["environment"] for service in ("topics", "worker", "gateway")]

    def test_variables_of_the_environment_apply_unless_the_file_sets_them(self):
        (self.folder / "halcyon.env").write_text("HALCYON_LOG_LEVEL=error\n", encoding="utf-8")
        for environment in self.environments(HALCYON_SOURCES_ALLOW="10.0.0.0/8", HALCYON_LOG_LEVEL="debug"):
            self.assertEqual(environment["HALCYON_SOURCES_ALLOW"], "10.0.0.0/8")
            self.assertEqual(environment["HALCYON_LOG_LEVEL"], "error")

    def test_variables_are_not_set_by_default(self):
        for environment in self.environments():
            self.assertEqual(environment.keys() & {"HALCYON_SOURCES_ALLOW", "HALCYON_LOG_LEVEL"}, set())


class Faults(unittest.TestCase):
    def setUp(self):
        self.cluster = shared()

    def job(self, number):
        """Pairs of jobs share a source. The source of every fiftieth job does not exist."""
        name = "nothing" if number % 50 == 0 else SAMPLES[number // 2 % len(SAMPLES)]
        return {"id": f"job-{number}", "source": f"http://origin/{name}.jpg?n={number // 2 * 2}", "width": 60 + number % 300, "height": 200}

    def submit(self, numbers):
        self.cluster.submit([self.job(number) for number in numbers])

    def busy(self, worker):
        """Waits until the worker has jobs in flight, because a fault of an idle worker shows nothing."""
        return until(f"{worker.name} has jobs in flight", lambda: worker.metric("halcyon_jobs_in_flight"), 60)

    def test_no_job_is_lost(self):
        cluster = self.cluster
        begin = time.monotonic()
        with cluster.events() as events:
            self.submit(range(250))
            self.busy(cluster.workers[0])
            scaling = time.monotonic()
            cluster.scale(4)
            figure("`--scale worker=4` until the three new ones serve", f"{time.monotonic() - scaling:.1f} s")
            workers = cluster.workers

            self.submit(range(250, 500))
            self.busy(workers[1])
            os.kill(workers[1].process, signal.SIGKILL)
            until("Docker starts the killed worker again", lambda: workers[1].facts["RestartCount"] == 1)

            self.submit(range(500, 750))
            self.busy(workers[2])
            docker("pause", workers[2].name)
            self.wait_without(events, 750)
            docker("unpause", workers[2].name)

            self.submit(range(750, 1000))
            self.busy(workers[3])
            network = f"{cluster.project}_cluster"
            docker("network", "disconnect", network, workers[3].name)
            self.wait_without(events, 1000)
            docker("network", "connect", "--alias", "worker", network, workers[3].name)

            wanted = {f"job-{number}" for number in range(1000)}
            took = time.monotonic() - begin
            until("all workers serve again", lambda: [worker.health for worker in workers] == ["healthy"] * 4)
            # Workers that come back may still publish events of jobs that they had processed.
            time.sleep(5)
            self.audit(self.endings(events), wanted, took)

        for worker in workers:
            facts = worker.facts
            self.assertFalse(facts["State"]["OOMKilled"])
            self.assertEqual(facts["RestartCount"], 1 if worker is workers[1] else 0, worker.name)
        figure("memory of the workers then (RssAnon)", ", ".join(mebibytes(worker.memory) for worker in workers))

    def wait_without(self, events, count):
        """Waits until the other workers have ended all jobs, and at least AWAY seconds."""
        begin = time.monotonic()
        wanted = {f"job-{number}" for number in range(count)}
        until(f"{count} jobs have ended while one worker is away", lambda: wanted <= self.endings(events).keys(), 120, 0.5)
        time.sleep(max(0, AWAY - (time.monotonic() - begin)))

    @staticmethod
    def endings(events):
        """Returns the terminal events of each job in the order of the topic."""
        found = collections.defaultdict(list)
        for event in list(events):
            if event["type"] in TERMINAL:
                found[event["data"]["job"]["id"]].append(event)
        return found

    def audit(self, endings, wanted, took):
        endings = {job: found for job, found in endings.items() if job in wanted}
        lost = wanted - endings.keys()
        records = sum(len(found) for found in endings.values())
        for job, found in endings.items():
            self.assertEqual(len({event["id"] for event in found}), 1, f"{job} ended in more than one way: {found}")
        kinds = collections.Counter(found[0]["type"].rsplit(".", 1)[1] for found in endings.values())
        figure("1000 jobs, 1 worker and then 4; one killed, one paused and one disconnected", f"{took:.0f} s")
        figure("  ended", f"{len(endings)}: {kinds['ready']} ready, {kinds['failed']} failed as not_found")
        figure("  lost", f"{len(lost)}")
        figure("  duplicate events with the same id", f"{records - len(endings)}")
        self.assertEqual(lost, set())
        self.assertEqual(kinds, {"ready": 980, "failed": 20})
        self.assertEqual({found[0]["data"].get("code") for found in endings.values()}, {None, "not_found"})


class Running(unittest.TestCase):
    def setUp(self):
        self.cluster = shared()

    def test_containers_are_hardened(self):
        for service in ("worker", "gateway"):
            for container in self.cluster.containers(service):
                host = container.facts["HostConfig"]
                self.assertTrue(host["ReadonlyRootfs"])
                self.assertEqual((host["CapDrop"], host["CapAdd"]), (["ALL"], None))
                self.assertIn("no-new-privileges:true", host["SecurityOpt"])
                self.assertGreater(host["Memory"], 0)
                # The state of the process in the kernel.
                self.assertEqual(container.status("Uid").split(), ["10001"] * 4)
                self.assertEqual({int(container.status(f"Cap{name}"), 16) for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")}, {0})
                self.assertEqual(container.status("NoNewPrivs"), "1")
                self.assertEqual(docker("diff", container.name).stdout, "")
                self.assertIn("/libtcmalloc_minimal.so.4", pathlib.Path(f"/proc/{container.process}/maps").read_text(encoding="utf-8"))

    def test_gateway_renders(self):
        begin = time.monotonic()
        source = urllib.parse.quote("http://origin/fast/chelsea.jpg?rendered")
        status, body = get(f"{self.cluster.gateway}/v1/render?source={source}&width=100&height=100", 60)
        self.assertEqual((status, body[:3]), (200, b"\xff\xd8\xff"), body[:200])
        figure("first image of the gateway", f"{(time.monotonic() - begin) * 1000:.0f} ms")
        self.assertIn(b"<html", get(self.cluster.gateway + "/")[1])

    def test_prometheus_scrapes_all_workers_and_the_gateway(self):
        def up(job):
            _, body = get(f"{self.cluster.prometheus}/api/v1/query?query=" + urllib.parse.quote(f'sum(up{{job="{job}"}})'))
            return [int(series["value"][1]) for series in json.loads(body)["data"]["result"]] if body else None

        wanted = len(self.cluster.workers)
        until("all workers are scraped", lambda: up("halcyon-worker") == [wanted], 60, 1)
        until("the gateway is scraped", lambda: up("halcyon-gateway") == [1], 60, 1)
        figure("workers that Prometheus discovered", str(wanted))

    def test_prometheus_loads_the_rules(self):
        _, body = get(f"{self.cluster.prometheus}/api/v1/rules")
        groups = json.loads(body)["data"]["groups"]
        files = {pathlib.Path(group["file"]).name for group in groups}
        self.assertEqual(files, {"recording-rules.yaml", "alerts.yaml"} & set(os.listdir(ROOT / "monitoring")))
        self.assertEqual([rule for group in groups for rule in group["rules"] if rule.get("lastError")], [])

    def test_restarted_worker_becomes_ready(self):
        """Measures the time from the start of a container to /readyz, which is polled every 10 ms."""
        took = []
        worker = self.cluster.workers[-1]
        for _ in range(3):
            docker("stop", "--time", "40", worker.name)
            self.assertEqual(worker.facts["State"]["ExitCode"], 0)
            begin = time.monotonic()
            docker("start", worker.name)
            started = time.monotonic()
            address = f"http://{worker.address}:9464"
            until("it is alive", lambda: get(f"{address}/healthz", 1)[0] == 200, pause=0.01)
            alive = time.monotonic()
            until("it is ready", lambda: get(f"{address}/readyz", 1)[0] == 200, pause=0.01)
            took.append((time.monotonic() - begin, alive - started, time.monotonic() - started))
        whole, alive, ready = (sorted(column)[1] for column in zip(*took))
        figure("`docker start` of a worker until it serves", f"{whole:.2f} s; once Docker has started it, {alive:.2f} s to /healthz and {ready:.2f} s to /readyz")
