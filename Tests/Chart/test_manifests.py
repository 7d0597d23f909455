"""Properties of all rendered manifests."""
import json
import pathlib
import unittest

import jsonschema
import kubernetes_validate

from chart import CHART, SETS, Manifests, run_helm

SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (pathlib.Path(__file__).parent / "schemas").glob("*.json")}
# The oldest supported version, one in between, and the newest known version.
VERSIONS = ["1.29.0", "1.34.0", "1.37.0"]


class EveryManifest(unittest.TestCase):
    def test_finds_sets_of_values(self):
        self.assertGreater(len(SETS), 8)

    def test_helm_lint_reports_nothing(self):
        for name in SETS:
            with self.subTest(name):
                run_helm("lint", "--strict", "--quiet", CHART, "--values", CHART / "ci" / name)

    def test_manifests_match_kubernetes_schemas(self):
        for name in SETS:
            with self.subTest(name):
                for version in VERSIONS:
                    for document in Manifests(name, version=version).all:
                        if document["kind"] in SCHEMAS:
                            jsonschema.validate(document, SCHEMAS[document["kind"]])
                        else:
                            kubernetes_validate.validate(document, version, strict=True)

    def test_names_are_unique(self):
        for name in SETS:
            with self.subTest(name):
                names = [(document["kind"], document["metadata"]["name"]) for document in Manifests(name).all]
                self.assertEqual(len(names), len(set(names)), names)
                self.assertTrue(all(len(name) <= 63 for _, name in names))

    def test_pods_are_hardened(self):
        for name in SETS:
            with self.subTest(name):
                for component, pod in Manifests(name).pods().items():
                    self.assertIs(pod["automountServiceAccountToken"], False)
                    self.assertIs(pod["enableServiceLinks"], False)
                    context = pod["securityContext"]
                    self.assertTrue(context["runAsNonRoot"])
                    self.assertEqual((context["runAsUser"], context["runAsGroup"]), (10001, 10001))
                    self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
                    for container in pod["containers"]:
                        self.assertEqual(container["name"], component)
                        self.assertEqual(
                            container["securityContext"],
                            {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
                        self.assertIn("memory", container["resources"]["limits"])

    def test_references_of_pods_resolve(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                external = {"halcyon-kafka", "images-gateway", "kafka-ca"}
                for pod in manifests.pods().values():
                    volumes = {volume["name"]: volume for volume in pod["volumes"]}
                    self.assertEqual(len(volumes), len(pod["volumes"]))
                    for volume in volumes.values():
                        if "configMap" in volume:
                            self.assertIn(volume["configMap"]["name"], manifests.of("ConfigMap").keys() | external)
                    for container in pod["containers"]:
                        self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes.keys())
                        for source in container.get("envFrom", []):
                            self.assertIn(source["secretRef"]["name"], manifests.of("Secret").keys() | external)

    def test_selectors_match_their_pods(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                labels = [
                    document["spec"]["template"]["metadata"]["labels"] for document in manifests.all
                    if document["kind"] in ("Deployment", "StatefulSet", "Job")]
                for document in manifests.all:
                    spec = document.get("spec", {})
                    selector = spec.get("podSelector") or spec.get("selector")
                    if selector:
                        wanted = selector.get("matchLabels", selector).items()
                        self.assertEqual(sum(wanted <= one.items() for one in labels), 1, document["metadata"]["name"])

    def test_halcyon_accepts_the_settings(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                for component in manifests.pods():
                    # `halcyon config` does not report keys that are missing because they are in another Secret.
                    settings = manifests.settings(component)
                    self.assertTrue(settings["http.listen"].endswith(":9464"))
                    self.assertTrue(settings["gateway.listen"].endswith(":8080"))

    def test_older_values_keep_names_and_selectors(self):
        for name, replicas in ("older-values.yaml", 2), ("older-full-values.yaml", 4):
            worker = Manifests(name).one("Deployment")
            self.assertEqual(worker["metadata"]["name"], "shop-halcyon-worker")
            self.assertEqual(worker["spec"]["replicas"], replicas)
            self.assertEqual(
                worker["spec"]["selector"]["matchLabels"],
                {"app.kubernetes.io/name": "halcyon", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/component": "worker"})

    def test_large_numbers_stay_numbers(self):
        self.assertEqual(Manifests("full-values.yaml").settings("worker")["images.maximumPixels"], "250000000")


if __name__ == "__main__":
    unittest.main()
