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
                    names = [container["name"] for container in pod["containers"]]
                    self.assertEqual(names[0], "submit" if component == "test" else component)
                    for container in pod["containers"]:
                        self.assertEqual(
                            container["securityContext"],
                            {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})
                        self.assertIn("memory", container["resources"]["limits"])

    def test_references_of_pods_resolve(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                external = {
                    "amazonmsk-halcyon", "gateway-keys", "halcyon", "halcyon-kafka", "images-cluster-ca-cert", "images-gateway", "images-s3",
                    "images-url-key", "kafka-ca", "other", "redis"}
                for pod in manifests.pods().values():
                    volumes = {volume["name"]: volume for volume in pod["volumes"]}
                    self.assertEqual(len(volumes), len(pod["volumes"]))
                    for volume in volumes.values():
                        if "configMap" in volume:
                            self.assertIn(volume["configMap"]["name"], manifests.of("ConfigMap").keys() | external)
                        if "secret" in volume:
                            self.assertIn(volume["secret"]["secretName"], external)
                    for container in pod["containers"]:
                        self.assertLessEqual({mount["name"] for mount in container["volumeMounts"]}, volumes.keys())
                        for source in container.get("envFrom", []):
                            if "secretRef" in source:
                                self.assertIn(source["secretRef"]["name"], manifests.of("Secret").keys() | external)
                            else:
                                self.assertTrue(source["configMapRef"]["optional"])
                        for variable in container["env"]:
                            if "secretKeyRef" in variable.get("valueFrom", {}):
                                self.assertIn(variable["valueFrom"]["secretKeyRef"]["name"], external)
                    if pod["serviceAccountName"] != "default":
                        self.assertIn(pod["serviceAccountName"], manifests.of("ServiceAccount"))

    def test_selectors_match_their_pods(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                labels = [
                    document["spec"]["template"]["metadata"]["labels"] for document in manifests.all
                    if document["kind"] in ("Deployment", "StatefulSet", "Job")]
                labels += [pod["metadata"]["labels"] for pod in manifests.of("Pod").values()]
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

    def test_common_labels_and_annotations_are_on_all_objects(self):
        manifests = Manifests("full-values.yaml")
        for document in manifests.all:
            if document["metadata"]["name"] == "halcyon-images-extra":
                continue
            with self.subTest(f"{document['kind']} {document['metadata']['name']}"):
                self.assertEqual(document["metadata"]["labels"]["example.org/owner"], "images")
                self.assertEqual(document["metadata"]["annotations"]["example.org/contact"], "images@example.org")
                template = document["spec"].get("template", {}) if "spec" in document else {}
                if template:
                    self.assertEqual(template["metadata"]["labels"]["example.org/owner"], "images")
                self.assertNotIn("example.org/owner", str(document.get("spec", {}).get("selector")))

    def test_extra_objects_are_templates(self):
        extra = Manifests("full-values.yaml").of("ConfigMap")["halcyon-images-extra"]
        self.assertEqual(extra["data"], {"brokers": "kafka-0.kafka:9092,kafka-1.kafka:9092"})
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-text', labels: {}}"
        self.assertIn("shop-text", Manifests(values={"extraObjects": [text]}).of("ConfigMap"))

    def test_images_have_the_registry(self):
        def images(values, name="minimal-values.yaml"):
            manifests = Manifests(name, values)
            pods = [document["spec"]["template"]["spec"] for document in manifests.all if document["kind"] in ("Deployment", "StatefulSet", "Job")]
            return {container["image"] for pod in pods + [manifests.one("Pod")["spec"]] for container in pod["containers"]}

        digest = "sha256:" + "0" * 64
        image = {"registry": "registry.example.org/", "repository": "halcyon", "tag": "1"}
        self.assertEqual(images({"image": image}), {"registry.example.org/halcyon:1"})
        self.assertEqual(images({"image": {**image, "digest": digest}}), {f"registry.example.org/halcyon@{digest}"})
        mirror = {"global": {"imageRegistry": "mirror.example.org"}}
        self.assertEqual(images({"image": image, **mirror}), {"mirror.example.org/halcyon:1"})
        self.assertEqual(
            images(mirror, "tryout-values.yaml"),
            {"mirror.example.org/halcyon:0.1.0", "mirror.example.org/apache/kafka:4.1.1", "mirror.example.org/library/redis:8"})
        self.assertEqual(images({"image": {"registry": "", "repository": "halcyon", "pullPolicy": "Never"}}), {"halcyon:0.1.0"})

    def test_pull_secrets_are_merged(self):
        values = {"global": {"imagePullSecrets": ["mirror", {"name": "other"}]}, "imagePullSecrets": [{"name": "other"}, {"name": "own"}]}
        for pod in Manifests(values=values).pods().values():
            self.assertEqual([secret["name"] for secret in pod["imagePullSecrets"]], ["mirror", "other", "own"])

    def test_large_numbers_stay_numbers(self):
        self.assertEqual(Manifests("full-values.yaml").settings("worker")["images.maximumPixels"], "250000000")


if __name__ == "__main__":
    unittest.main()
