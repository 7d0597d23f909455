"""Gateways, their Service and Ingress."""
import unittest

from chart import Manifests

KEYS = {"HALCYON_GATEWAY_KEYS_shop", "HALCYON_GATEWAY_SCOPES_shop", "HALCYON_GATEWAY_URL_KEYS_1"}


class Gateways(unittest.TestCase):
    manifests = Manifests("gateway-values.yaml")

    def test_disabled_by_default(self):
        self.assertEqual(Manifests().of("Deployment").keys(), {"shop-halcyon-worker"})
        self.assertEqual(Manifests().of("Service"), {})

    def test_service_routes_to_gateways(self):
        service = self.manifests.of("Service")["shop-halcyon-gateway"]["spec"]
        self.assertEqual(service["ports"], [{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"}])
        container = self.manifests.pods()["gateway"]["containers"][0]
        self.assertEqual(container["ports"], [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9464}])
        self.assertEqual(self.manifests.settings("gateway")["gateway.listen"], "0.0.0.0:8080")

    def test_only_readiness_depends_on_the_port_of_clients(self):
        container = self.manifests.pods()["gateway"]["containers"][0]
        probes = {probe: (container[probe]["httpGet"]["path"], container[probe]["httpGet"]["port"])
                  for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
        self.assertEqual(probes, {
            "startupProbe": ("/healthz", "metrics"), "livenessProbe": ("/healthz", "metrics"), "readinessProbe": ("/readyz", "http")})
        self.assertEqual(self.manifests.settings("gateway")["http.listen"], "0.0.0.0:9464")

    def test_shutdown_drains_connections(self):
        spec = self.manifests.one("Deployment", "gateway")["spec"]
        self.assertEqual(spec["strategy"]["rollingUpdate"], {"maxUnavailable": 0, "maxSurge": 1})
        pod = spec["template"]["spec"]
        self.assertEqual(pod["containers"][0]["lifecycle"]["preStop"], {"exec": {"command": ["sleep", "10"]}})
        self.assertEqual(pod["terminationGracePeriodSeconds"], 25 + 10 + 15)

    def test_only_gateways_have_keys(self):
        self.assertLessEqual(KEYS, self.manifests.variables("gateway").keys())
        for component in "worker", "topics":
            self.assertFalse(KEYS & self.manifests.variables(component).keys())
        self.assertEqual(self.manifests.settings("gateway")["gateway.scopes.shop"], "submit,read")

    def test_ingress_exposes_the_api_and_the_dashboard(self):
        spec = self.manifests.one("Ingress")["spec"]
        self.assertEqual(spec["ingressClassName"], "nginx")
        paths = {rule["host"]: [(path["path"], path["pathType"]) for path in rule["http"]["paths"]] for rule in spec["rules"]}
        self.assertEqual(paths, {"images.example.org": [("/v1", "Prefix")], "dashboard.example.org": [("/", "Prefix")]})
        services = {path["backend"]["service"]["name"] for rule in spec["rules"] for path in rule["http"]["paths"]}
        self.assertEqual(services, {"shop-halcyon-gateway"})

    def test_monitors_scrape_workers_and_gateways(self):
        monitors = self.manifests.of("PodMonitor")
        ports = {name: monitor["spec"]["podMetricsEndpoints"][0]["port"] for name, monitor in monitors.items()}
        self.assertEqual(ports, {"shop-halcyon-worker": "metrics", "shop-halcyon-gateway": "metrics"})

    def test_route_exposes_the_api(self):
        manifests = Manifests("gateway-api-values.yaml")
        spec = manifests.one("HTTPRoute")["spec"]
        self.assertEqual((spec["parentRefs"], spec["hostnames"]), ([{"name": "public", "namespace": "gateways"}], ["images.example.org"]))
        rule = spec["rules"][0]
        # Event streams have no limit.
        self.assertEqual(rule["matches"], [{"path": {"type": "PathPrefix", "value": "/v1"}}])
        self.assertEqual(rule["timeouts"], {"request": "0s"})
        service = manifests.of("Service")["shop-halcyon-gateway"]
        ports = [port["port"] for port in service["spec"]["ports"]]
        self.assertEqual([(one["name"], [one["port"]]) for one in rule["backendRefs"]], [(service["metadata"]["name"], ports)])
        self.assertEqual(Manifests("gateway-values.yaml").of("HTTPRoute"), {})

    def test_lifecycle_hooks_are_merged(self):
        hooks = Manifests("full-values.yaml").pods()["gateway"]["containers"][0]["lifecycle"]
        self.assertEqual(hooks["postStart"], {"exec": {"command": ["halcyon", "health"]}})
        self.assertEqual(hooks["preStop"], {"exec": {"command": ["sleep", "20"]}})
        own = Manifests("gateway-values.yaml", {"gateway": {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}})
        self.assertEqual(own.pods()["gateway"]["containers"][0]["lifecycle"], {"preStop": {"sleep": {"seconds": 5}}})

    def test_disruption_budgets_allow_one_unavailable_pod(self):
        budgets = {name: budget["spec"]["maxUnavailable"] for name, budget in self.manifests.of("PodDisruptionBudget").items()}
        self.assertEqual(budgets, {"shop-halcyon-worker": 1, "shop-halcyon-gateway": 1})


if __name__ == "__main__":
    unittest.main()
