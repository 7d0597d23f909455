"""Checks of rules, alerts and the dashboard that need no cluster."""
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
    def test_promtool_accepts_all_files(self):
        promtool("check", "config", MONITORING / "prometheus.yaml")
        promtool("check", "rules", MONITORING / "recording-rules.yaml", MONITORING / "alerts.yaml")

    def test_alerts_fire_only_when_expected(self):
        promtool("test", "rules", MONITORING / "tests/alerts.yaml")

    def test_each_alert_is_tested_firing_and_silent(self):
        tests = yaml.safe_load((MONITORING / "tests/alerts.yaml").read_text())["tests"]
        tested = {(re.search('alertname="(\\w+)"', check["expr"])[1], bool(check["exp_samples"]))
                 for test in tests for check in test["promql_expr_test"]}
        self.assertEqual(tested, {(rule["alert"], fires) for rule in queries.rules("alerts.yaml") for fires in (True, False)})

    def test_each_alert_has_a_runbook(self):
        headings = set(re.findall(r"^### (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE))
        alerts = queries.rules("alerts.yaml")
        self.assertEqual(headings, {rule["alert"] for rule in alerts})
        for rule in alerts:
            self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"), rule["alert"])
            self.assertEqual(rule["annotations"].keys(), {"summary", "description", "runbook_url"}, rule["alert"])
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/alerts.md#{rule['alert'].lower()}")

    def test_commands_of_runbooks_exist(self):
        commands = re.findall(r"`(halcyon [^`]+)`", (ROOT / "docs/alerts.md").read_text())
        self.assertTrue(commands)
        for line in commands:
            words = line.split()[1:]
            options = {word for word in words if word.startswith("--")}
            command = list(itertools.takewhile(lambda word: not word.startswith("--"), words))
            done = subprocess.run([os.environ["HALCYON_EXECUTABLE"], *command, "--help"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, line)
            self.assertLessEqual(options, set(re.findall(r"--[a-z-]+", done.stdout)), line)


class Dashboard(unittest.TestCase):
    def test_panels_do_not_overlap(self):
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

    def test_panels_use_the_datasource_variable(self):
        for panel in queries.dashboard()["panels"]:
            for part in [panel] * (panel["type"] != "row") + panel.get("targets", []):
                self.assertEqual(part["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])

    def test_dashboard_has_the_expected_rows(self):
        rows = [panel["title"] for panel in queries.dashboard()["panels"] if panel["type"] == "row"]
        self.assertEqual(rows, [
            "Overview", "Lanes", "Stages", "Caches and coalescing", "Origins", "Delivery", "Gateway", "Process"])


if __name__ == "__main__":
    unittest.main()
