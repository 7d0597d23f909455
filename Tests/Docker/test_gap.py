"""Pauses that crashes, restarts and additions of workers cause with the default settings."""
import contextlib
import itertools
import json
import os
import re
import signal
import threading
import time
import unittest

from cluster import docker, figure, shared, until

# Partitions of the normal lane that `halcyon topics create` creates.
PARTITIONS = 12
# Jobs a second.
RATE = 20
# A PNG of 16 by 16 pixels.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mM4kWJEEmIY1TCqYfhqAACoeF4QNBLLLwAAAABJRU5ErkJggg=="
# Seconds that a job may take. The aims are 2 s in partitions of unaffected workers and 12 s in those of the affected
# one. The margins are for machines whose processors Kafka, Redis, the workers, Docker's health checks and other
# programs share.
UNAFFECTED_LIMIT, AFFECTED_LIMIT = 2 + 1, 12 + 3


class Stream:
    """Submits jobs at a constant rate, each with a tiny image of its own."""

    _numbers = itertools.count()

    def __init__(self, cluster):
        self.cluster = cluster
        # The time at which each job was submitted, by its id.
        self.times = {}
        self._failure = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self):
        self._ending.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    @classmethod
    def job(cls):
        number = next(cls._numbers)
        return {"id": f"gap-{number}", "source": {"base64": IMAGE, "cacheKey": f"gap-{number}"}, "width": 8}

    def _run(self):
        begin = time.monotonic()
        try:
            while not self._ending.wait(max(0, begin + len(self.times) / RATE - time.monotonic())):
                job = Stream.job()
                self.times[job["id"]] = time.monotonic()
                self.cluster.submit([job])
        except Exception as error:  # stop() raises it
            self._failure = error


class Gap(unittest.TestCase):
    def setUp(self):
        self.cluster = shared()
        # Other tests may have changed the number of workers.
        self.cluster.scale(3)
        self.settle(self.cluster.workers)

    def test_killed_worker_with_restart(self):
        with self.measured("kill -9, Docker restarts it") as disrupt:
            worker = self.cluster.workers[0]
            restarts = worker.facts["RestartCount"]
            disrupt(worker)
            os.kill(worker.process, signal.SIGKILL)
            until("Docker starts it again", lambda: worker.facts["RestartCount"] == restarts + 1)
            self.settle(self.cluster.workers)

    def test_killed_worker_without_restart(self):
        with self.measured("docker kill, no restart") as disrupt:
            worker, *others = self.cluster.workers
            disrupt(worker)
            docker("kill", worker.name)
            self.settle(others)
        docker("start", worker.name)

    def test_paused_worker(self):
        with self.measured("docker pause for 20 s") as disrupt:
            worker = self.cluster.workers[0]
            disrupt(worker)
            docker("pause", worker.name)
            time.sleep(20)
            docker("unpause", worker.name)
            self.settle(self.cluster.workers)

    def test_rolling_deployment(self):
        """Each worker is replaced by a new one that serves before the next worker is stopped."""
        with self.measured("rolling deploy") as disrupt:
            for worker in self.cluster.workers:
                disrupt(worker)
                docker("stop", "--time", "40", worker.name)
                docker("rm", worker.name)
                self.cluster.scale(3)
                self.settle(self.cluster.workers)

    def test_scaling_up_and_down(self):
        with self.measured("3 → 6 → 3 workers") as disrupt:
            before = {worker.name for worker in self.cluster.workers}
            disrupt()
            self.cluster.scale(6)
            self.settle(self.cluster.workers)
            time.sleep(5)
            disrupt(*(worker for worker in self.cluster.workers if worker.name not in before))
            self.cluster.scale(3)
            self.settle(self.cluster.workers)

    @contextlib.contextmanager
    def measured(self, name):
        """Submits jobs throughout the block and checks when they ended.

        Yields a function to call with the workers that are about to be disturbed."""
        disruptions = []

        def disrupt(*workers):
            partitions = set().union(*(self.partitions(worker) for worker in workers))
            disruptions.append((time.monotonic(), partitions))

        with self.cluster.events() as events:
            first = Stream.job()
            self.cluster.submit([first])
            until("the reader of events is ready", lambda: first["id"] in self.endings(events))
            stream = Stream(self.cluster)
            try:
                time.sleep(3)
                yield disrupt
                time.sleep(3)
            finally:
                stream.stop()
            until("all jobs have ended", lambda: stream.times.keys() <= self.endings(events).keys(), 60)
            endings = {job: event for job, event in self.endings(events).items() if job in stream.times}
        self.assertEqual({event["type"] for event in endings.values()}, {"halcyon.image.ready"})
        arrivals = sorted(event["arrived"] for event in endings.values())
        silence = max(later - earlier for earlier, later in zip(arrivals, arrivals[1:]))
        longest = {True: 0, False: 0}
        for job, event in endings.items():
            partition = int(re.match(r".*\.jobs-(\d+)-", event["id"])[1])
            # The last disruption before its end may have delayed it.
            hit = next((partitions for moment, partitions in reversed(disruptions) if moment < event["arrived"]), set())
            longest[partition in hit] = max(longest[partition in hit], event["arrived"] - stream.times[job])
        figure(
            f"gap: {name}", f"{silence:.1f} s without any event; longest job of unaffected workers {longest[False]:.1f} s, of affected ones "
            f"{longest[True]:.1f} s; {len(endings)} of {len(stream.times)} ended")
        self.assertLess(longest[False], UNAFFECTED_LIMIT)
        self.assertLess(longest[True], AFFECTED_LIMIT)

    @staticmethod
    def endings(events):
        """Returns the first terminal event of each job by the job's id."""
        found = {}
        for event in list(events):
            if event["id"].endswith("-ended"):
                found.setdefault(event["data"]["job"]["id"], event)
        return found

    @staticmethod
    def partitions(worker):
        """Returns the worker's partitions of the normal lane, from its log since its last start."""
        logged = docker("logs", "--since", worker.facts["State"]["StartedAt"], worker.name)
        found = set()
        for line in (logged.stdout + logged.stderr).splitlines():
            if '"partitions ' not in line:
                continue
            record = json.loads(line)
            names = (re.fullmatch(r".*\.jobs\[(\d+)]", name) for name in record["partitions"])
            numbers = {int(name[1]) for name in names if name}
            found = found | numbers if record["message"] == "partitions assigned" else found - numbers
        return found

    def settle(self, workers):
        """Waits until each worker has partitions and each partition has one owner."""
        def settled():
            shares = [self.partitions(worker) for worker in workers]
            return all(shares) and sum(map(len, shares)) == PARTITIONS and len(set().union(*shares)) == PARTITIONS

        until("each partition has one owner", settled, 60, 0.5)
