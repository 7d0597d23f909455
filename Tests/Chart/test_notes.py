"""Notes that helm prints after an installation."""
import re
import unittest

from chart import SETS, Manifests, notes


class Notes(unittest.TestCase):
    def test_named_resources_exist(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                there = {f"{document['kind'].lower()}/{document['metadata']['name']}" for document in manifests.all}
                named = set(re.findall(r"\b(?:deployment|statefulset|service)/[-a-z0-9]+", notes(name)))
                self.assertTrue(named)
                self.assertLessEqual(named, there)
                self.assertIn(manifests.settings("worker")["kafka.prefix"] + "jobs.low", notes(name))

    def test_notes_depend_on_the_values(self):
        self.assertNotIn("Gateways", notes("minimal-values.yaml"))
        self.assertIn("https://images.example.org/v1", notes("gateway-values.yaml"))
        for name in "keda-values.yaml", "strimzi-tls-values.yaml":
            self.assertIn("rollout restart deployment/shop-halcyon-worker", notes(name))
        self.assertIn("images.example.org, at the Gateway public", notes("gateway-api-values.yaml"))
        self.assertNotIn("port-forward", notes("gateway-api-values.yaml"))
        self.assertIn("helm test shop --namespace images", notes("minimal-values.yaml"))
        self.assertIn("not for production", notes("tryout-values.yaml"))
        self.assertNotIn("not for production", notes("minimal-values.yaml"))


if __name__ == "__main__":
    unittest.main()
