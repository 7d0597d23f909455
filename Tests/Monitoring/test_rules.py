"""Rules, alerts and the dashboard, as far as no cluster is needed."""
import itertools
import os
import re
import subprocess
import unittest

import yaml

import queries
from processes import MONITORING, ROOT


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Rules(unittest.TestCase):
    def test_promtool_takes_all(self):
        promtool("check", "config", MONITORING / "prometheus.yaml")
        promtool("check", "rules", MONITORING / "recording-rules.yaml", MONITORING / "alerts.yaml")

    def test_alerts_fire_when_they_should_and_else_not(self):
        promtool("test", "rules", MONITORING / "tests/alerts.yaml")

    def test_each_alert_is_tried_both_ways(self):
        tests = yaml.safe_load((MONITORING / "tests/alerts.yaml").read_text())["tests"]
        tried = {(re.search('alertname="(\\w+)"', check["expr"])[1], bool(check["exp_samples"]))
                 for test in tests for check in test["promql_expr_test"]}
        self.assertEqual(tried, {(rule["alert"], fires) for rule in queries.rules("alerts.yaml") for fires in (True, False)})

    def test_each_alert_says_what_to_do(self):
        headings = set(re.findall(r"^### (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE))
        alerts = queries.rules("alerts.yaml")
        self.assertEqual(headings, {rule["alert"] for rule in alerts})
        for rule in alerts:
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"), rule["alert"])
            self.assertEqual(rule["annotations"].keys(), {"summary", "description", "runbook_url"}, rule["alert"])
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/alerts.md#{rule['alert'].lower()}")

    def test_what_is_to_be_typed_exists(self):
        typed = re.findall(r"`(halcyon [^`]+)`", (ROOT / "docs/alerts.md").read_text())
        self.assertTrue(typed)
        for line in typed:
            words = line.split()[1:]
            options = {word for word in words if word.startswith("--")}
            command = list(itertools.takewhile(lambda word: not word.startswith("--"), words))
            done = subprocess.run([os.environ["HALCYON_EXECUTABLE"], *command, "--help"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, line)
            self.assertLessEqual(options, set(re.findall(r"--[a-z-]+", done.stdout)), line)


class Dashboard(unittest.TestCase):
    def test_panels_have_places_of_their_own(self):
        board = queries.dashboard()
        taken = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells
        identities = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(identities), len(set(identities)))

    def test_every_source_of_data_is_the_variable(self):
        for panel in queries.dashboard()["panels"]:
            for part in [panel] * (panel["type"] != "row") + panel.get("targets", []):
                self.assertEqual(part["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])

    def test_rows(self):
        rows = [panel["title"] for panel in queries.dashboard()["panels"] if panel["type"] == "row"]
        self.assertEqual(rows, [
            "Overview", "Lanes", "Stages", "Caches and coalescing", "Origins", "Delivery", "Gateway", "Process"])


if __name__ == "__main__":
    unittest.main()
