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
        self.assertEqual((bare.of("PodMonitor"), bare.of("ServiceMonitor"), bare.of("PrometheusRule")), ({}, {}, {}))
        self.assertFalse(any(name.endswith("-dashboard") for name in bare.of("ConfigMap")))

    def test_job_labels_match_prometheus_yaml(self):
        known = {job["job_name"] for job in yaml.safe_load((MONITORING / "prometheus.yaml").read_text())["scrape_configs"]}
        for name, kind, endpoints in [
            ("gateway-values.yaml", "PodMonitor", "podMetricsEndpoints"), ("gateway-api-values.yaml", "ServiceMonitor", "endpoints"),
        ]:
            given = set()
            for monitor in Manifests(name).of(kind).values():
                for endpoint in monitor["spec"][endpoints]:
                    given |= {rule["replacement"] for rule in endpoint["relabelings"] if rule["targetLabel"] == "job"}
            self.assertEqual(given, known)

    def test_service_monitors_find_services_with_their_ports(self):
        manifests = Manifests("gateway-api-values.yaml")
        monitors = manifests.of("ServiceMonitor")
        self.assertEqual(monitors.keys(), {"shop-halcyon-worker", "shop-halcyon-gateway"})
        for monitor in monitors.values():
            self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            services = [service for service in manifests.of("Service").values() if wanted <= service["metadata"]["labels"].items()]
            ports = [port["name"] for service in services for port in service["spec"]["ports"]]
            self.assertEqual(ports.count(monitor["spec"]["endpoints"][0]["port"]), 1)
        # Only static members and ServiceMonitors need Services for metrics.
        self.assertEqual(Manifests().of("Service"), {})

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
