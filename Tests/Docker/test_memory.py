"""The memory of a worker does not grow with the number of its jobs."""
import os
import time
import unittest

from cluster import SAMPLES, figure, mebibytes, shared, until

JOBS = int(os.environ.get("HALCYON_DOCKER_JOBS", "5000"))
FORMATS = ("auto", "webp", "png", "jpeg")


class Memory(unittest.TestCase):
    def job(self, number):
        """Jobs of mixed sizes, which fragment the heap. Every twentieth source has 24 million pixels."""
        name = "large" if number % 20 == 0 else SAMPLES[number % len(SAMPLES)]
        return {
            "id": f"memory-{number}", "source": f"http://origin/fast/{name}.jpg?m={number % 97}", "width": 40 + number * 37 % 1500,
            "format": FORMATS[number % len(FORMATS)], "maxAge": 60}

    def test_memory_is_bounded(self):
        cluster = shared()
        cluster.scale(1)
        worker = cluster.workers[0]
        # A new process, so that jobs of other tests do not count.
        cluster.compose("restart", "--timeout", "40", "worker")
        until("it serves", lambda: worker.health == "healthy")
        at, ended, begin = {}, 0, time.monotonic()
        with cluster.events() as events:
            for mark in (500, JOBS):
                while ended < mark:
                    count = min(250, mark - ended)
                    cluster.submit([self.job(number) for number in range(ended, ended + count)])
                    ended += count
                until(f"{mark} jobs are ready", lambda: len(ready(events)) >= mark, 900, 0.5)
                # Memory of renderings in flight does not count, nor free memory, which a worker returns after five seconds.
                until("no job is in flight", lambda: worker.metric("halcyon_jobs_in_flight") == 0)
                time.sleep(12)
                at[mark] = worker.memory
                figure(f"memory of one worker after {mark} mixed jobs (RssAnon)", f"{mebibytes(at[mark])}; {time.monotonic() - begin:.0f} s")
        # With an allocator that keeps holes, it grows to a multiple (Benchmarks/README.md, Allocators).
        self.assertLess(at[JOBS], at[500] * 2)
        self.assertFalse(worker.facts["State"]["OOMKilled"])


def ready(events):
    return {
        event["data"]["job"]["id"] for event in list(events)
        if event["type"] == "halcyon.image.ready" and event["data"]["job"]["id"].startswith("memory-")}
