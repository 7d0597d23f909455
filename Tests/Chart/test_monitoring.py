"""PodMonitors, rules and the dashboard, which are rendered from monitoring/."""
import json
import unittest

import yaml

from chart import ROOT, Manifests

MONITORING = ROOT / "monitoring"


class Monitoring(unittest.TestCase):
    manifests = Manifests("full-values.yaml")

    def test_disabled_by_default(self):
        bare = Manifests()
        self.assertEqual((bare.of("PodMonitor"), bare.of("PrometheusRule")), ({}, {}))
        self.assertFalse(any(name.endswith("-dashboard") for name in bare.of("ConfigMap")))

    def test_job_labels_match_prometheus_yaml(self):
        known = {job["job_name"] for job in yaml.safe_load((MONITORING / "prometheus.yaml").read_text())["scrape_configs"]}
        given = set()
        for monitor in Manifests("gateway-values.yaml").of("PodMonitor").values():
            for endpoint in monitor["spec"]["podMetricsEndpoints"]:
                given |= {rule["replacement"] for rule in endpoint["relabelings"] if rule["targetLabel"] == "job"}
        self.assertEqual(given, known)

    def test_rules_match_monitoring(self):
        rule = self.manifests.one("PrometheusRule")
        self.assertEqual(rule["metadata"]["labels"]["prometheus"], "main")
        groups = [
            group for file in ("recording-rules.yaml", "alerts.yaml")
            for group in yaml.safe_load((MONITORING / file).read_text())["groups"]]
        self.assertEqual(rule["spec"]["groups"], groups)

    def test_dashboard_matches_monitoring(self):
        board = next(board for name, board in self.manifests.of("ConfigMap").items() if name.endswith("-dashboard"))
        self.assertEqual(board["metadata"]["labels"]["grafana_dashboard"], "shop")
        self.assertEqual(json.loads(board["data"]["halcyon.json"]), json.loads((MONITORING / "grafana/halcyon.json").read_text()))


if __name__ == "__main__":
    unittest.main()
