"""Prometheus scrapes a cluster under load, and every query must return data."""
import itertools
import math
import os
import subprocess
import time
import unittest

import queries
import reference
from cluster import Cluster
from exposition import families, names

# Series that Prometheus adds. Recorded series have a test of their own.
OWN = {"up", "ALERTS"}
# Seconds to wait for a state.
TIMEOUT = 120


def wait(condition):
    """Waits until a condition is true, and returns its last value."""
    end = time.monotonic() + TIMEOUT
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.5)
    return value


def recorded():
    """Yields the name and the query of each recorded series."""
    for rule in queries.rules("recording-rules.yaml"):
        labels = ",".join(f'{name}="{value}"' for name, value in rule.get("labels", {}).items())
        yield rule["record"], f"{rule['record']}{{{labels}}}"


def has_data(query):
    """True if a query returns at least one finite number; 0/0 is not a number."""
    return any(math.isfinite(float(series["value"][1])) for series in cluster.query(query))


def queries_without_data():
    """Waits until each query of a panel, a recorded series or a metric in an alert has had data, and returns those that have had none."""
    missing = {query for _, query in itertools.chain(queries.panels(), recorded())}
    missing |= {selector for rule in queries.rules("alerts.yaml") for selector in queries.selectors(rule["expr"])}

    def is_complete():
        missing.difference_update([query for query in missing if has_data(query)])
        return not missing

    wait(is_complete)
    return missing


def setUpModule():
    global cluster, worker, gateway, without_data
    if not os.environ.get("KAFKA_HOME"):
        print("SKIPPED: a cluster under load, because KAFKA_HOME is not set (make kafka)")
        raise unittest.SkipTest("KAFKA_HOME is not set")
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.stop)
    cluster.start()
    cluster.load()
    without_data = queries_without_data()
    worker, gateway = cluster.metrics("halcyon-worker"), cluster.metrics("halcyon-gateway")


class Metrics(unittest.TestCase):
    def test_promtool_accepts_the_metrics(self):
        for text in worker, gateway:
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_labels_are_bounded(self):
        """After hundreds of sources and jobs, the series of a metric are bounded by the values of its labels."""
        for name, family in {**families(worker), **families(gateway)}.items():
            self.assertLess(family.series, 240 if family.kind != "histogram" else 800, name)
        for port in cluster.origin, cluster.broken:
            self.assertNotIn(str(port), worker + gateway)

    def test_reference_matches_the_metrics(self):
        def expected():
            return reference.expected(cluster.metrics("halcyon-worker"), cluster.metrics("halcyon-gateway"))

        if os.environ.get("WRITE_REFERENCE"):
            reference.DOCUMENT.write_text(expected())
        document = reference.DOCUMENT.read_text()
        # Some metrics appear with their first value.
        wait(lambda: expected() == document)
        self.assertEqual(document, expected(), "scripts/monitoring --write updates it")


class Data(unittest.TestCase):
    def test_panels_have_data(self):
        for title, query in queries.panels():
            with self.subTest(title):
                self.assertNotIn(query, without_data)

    def test_variables_have_values(self):
        for name, selector, label in queries.variables():
            with self.subTest(name):
                self.assertTrue(cluster.ask(f"label/{label}/values", **{"match[]": selector}))

    def test_recording_rules_have_data(self):
        for name, query in recorded():
            with self.subTest(name):
                self.assertNotIn(query, without_data)

    def test_metrics_of_alerts_have_data(self):
        """An alert has no data while all is well, but the metrics in its expression have."""
        for rule in queries.rules("alerts.yaml"):
            found = queries.selectors(rule["expr"])
            self.assertTrue(found, rule["alert"])
            for selector in found:
                with self.subTest(rule["alert"], selector=selector):
                    self.assertNotIn(selector, without_data)

    def test_rules_are_evaluated_without_an_error(self):
        groups = cluster.ask("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        self.assertEqual(len(rules), sum(len(queries.rules(file)) for file in ("recording-rules.yaml", "alerts.yaml")))
        self.assertEqual({rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")}, {})
        self.assertEqual({rule["health"] for rule in rules}, {"ok"})

    def test_queries_use_existing_metrics(self):
        known = names(worker) | names(gateway) | OWN | {rule["record"] for rule in queries.rules("recording-rules.yaml")}
        asked = [expression for _, expression in queries.panels()]
        asked += [rule["expr"] for file in ("alerts.yaml", "recording-rules.yaml") for rule in queries.rules(file)]
        named = {queries.metric(selector) for expression in asked for selector in queries.selectors(expression)}
        self.assertGreater(len(named), 40)
        self.assertEqual(named - known, set())


class Firing(unittest.TestCase):
    def test_dead_letters_fire_an_alert(self):
        """Jobs that exhaust their retries become dead letters, whose alert fires immediately."""
        found = wait(lambda: cluster.query('ALERTS{alertname="HalcyonDeadLetters",alertstate="firing"}'))
        # The circuit breaker of the origin that always fails opens after a while.
        self.assertTrue(found)
        self.assertLessEqual({series["metric"]["code"] for series in found}, {"http_error", "origin_unavailable"})


class Outages(unittest.TestCase):
    """Metrics of servers that stop. The name makes this class run last."""

    def until(self, wanted, *queries):
        """Waits until all series of each query have this value."""
        expected, found = [{wanted}] * len(queries), []

        def is_reached():
            found[:] = [{float(series["value"][1]) for series in cluster.query(query)} for query in queries]
            return found == expected

        wait(is_reached)
        self.assertEqual(found, expected, queries)

    def test_metrics_report_stopped_servers(self):
        self.until(1, "halcyon_redis_up", "halcyon_kafka_up", "halcyon_gateway_consuming", "halcyon_coalescing")
        cluster.processes.end("redis")
        self.until(0, "halcyon_redis_up", "halcyon_coalescing")
        cluster.processes.end("kafka")
        self.until(0, "halcyon_kafka_up", "halcyon_gateway_consuming")


if __name__ == "__main__":
    unittest.main()
