"""Kafka and Redis of the chart, to try it."""
import re
import unittest

import yaml

from chart import ROOT, SERVERS, Manifests

COMPOSE = yaml.safe_load((ROOT / "docker/compose.yaml").read_text(encoding="utf-8"))["services"]


class Tryout(unittest.TestCase):
    manifests = Manifests("tryout-values.yaml")

    def container(self, server):
        return self.manifests.one("Deployment", server)["spec"]["template"]["spec"]["containers"][0]

    def test_disabled_by_default(self):
        for server in SERVERS:
            self.assertFalse(any(name.endswith(server) for name in Manifests().of("Deployment")))

    def test_settings_name_the_services(self):
        for component in self.manifests.pods():
            settings = self.manifests.settings(component)
            addresses = settings["kafka.brokers"], settings["redis.url"].removeprefix("redis://")
            services = [self.manifests.one("Service", server) for server in sorted(SERVERS)]
            self.assertEqual(
                addresses, tuple(f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}" for service in services))

    def test_broker_advertises_its_service(self):
        variables = {variable["name"]: variable["value"] for variable in self.container("kafka")["env"]}
        name = self.manifests.one("Service", "kafka")["metadata"]["name"]
        self.assertEqual(variables["KAFKA_ADVERTISED_LISTENERS"], f"CLIENTS://{name}:9092")
        # The rest is as in Compose, apart from the addresses.
        own = {"KAFKA_ADVERTISED_LISTENERS", "KAFKA_LISTENERS", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "KAFKA_INTER_BROKER_LISTENER_NAME", "KAFKA_LOG_DIRS"}
        of_compose = {name: str(value) for name, value in COMPOSE["kafka"]["environment"].items()}
        self.assertEqual(variables.keys(), of_compose.keys())
        self.assertEqual({name: variables[name] for name in variables.keys() - own}, {name: of_compose[name] for name in of_compose.keys() - own})

    def test_redis_is_as_in_compose(self):
        self.assertEqual(" ".join(self.container("redis")["command"]), COMPOSE["redis"]["command"].replace('""', ""))

    def test_images_are_those_of_compose(self):
        for server in SERVERS:
            image = COMPOSE[server]["image"]
            # A variable sets another tag.
            tag = re.fullmatch(rf".*:\$\{{{server.upper()}_VERSION:-([^@]+)\}}", image)[1]
            self.assertTrue(self.container(server)["image"].endswith(f"/{server}:{tag}"), image)

    def test_variables_set_the_tags_of_compose(self):
        images = [service["image"] for service in COMPOSE.values() if not service["image"].startswith("${HALCYON_IMAGE")]
        self.assertEqual(len(images), 4)
        for image in images:
            self.assertRegex(image, r"^[a-z/]+:\$\{[A-Z]+_VERSION:-v?[0-9.]+\}$")

    def test_pods_are_restricted(self):
        for server in SERVERS:
            pod = self.manifests.one("Deployment", server)["spec"]["template"]["spec"]
            self.assertIs(pod["automountServiceAccountToken"], False)
            self.assertIs(pod["enableServiceLinks"], False)
            self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            context = self.container(server)["securityContext"]
            self.assertEqual((context["allowPrivilegeEscalation"], context["capabilities"]), (False, {"drop": ["ALL"]}))
            self.assertIn("memory", self.container(server)["resources"]["limits"])
            self.assertEqual(pod["volumes"], [{"name": "data", "emptyDir": {}}])

    def test_data_can_be_on_a_volume(self):
        pod = Manifests("tryout-values.yaml", {"tryout": {"kafka": {"persistentVolumeClaim": "kafka"}}}).one("Deployment", "kafka")
        self.assertEqual(pod["spec"]["template"]["spec"]["volumes"], [{"name": "data", "persistentVolumeClaim": {"claimName": "kafka"}}])

    def test_topics_job_does_not_run_before_the_broker(self):
        hooks = {document["metadata"].get("annotations", {}).get("helm.sh/hook") for document in self.manifests.all}
        self.assertEqual(hooks, {None, "test"})
        # Jobs cannot be changed, so each revision has its own.
        self.assertEqual(self.manifests.one("Job")["metadata"]["name"], "shop-halcyon-topics-1")
        self.assertEqual(self.manifests.pods()["topics"]["serviceAccountName"], "shop-halcyon")

    def test_only_pods_of_the_release_connect(self):
        for server, port in ("kafka", 9092), ("redis", 6379):
            rule = self.manifests.one("NetworkPolicy", server)["spec"]["ingress"][0]
            self.assertEqual(rule["ports"], [{"port": port}])
            labels = rule["from"][0]["podSelector"]["matchLabels"]
            self.assertEqual(labels, {"app.kubernetes.io/name": "halcyon", "app.kubernetes.io/instance": "shop"})


if __name__ == "__main__":
    unittest.main()
