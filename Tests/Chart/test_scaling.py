"""Autoscaling of workers and gateways."""
import unittest

from chart import Manifests


class Scaling(unittest.TestCase):
    def test_autoscaled_workers_have_no_fixed_replicas(self):
        self.assertEqual(Manifests().workers["spec"]["replicas"], 2)
        for name in "hpa-values.yaml", "keda-values.yaml", "full-values.yaml":
            self.assertNotIn("replicas", Manifests(name).workers["spec"])

    def test_workers_scale_by_cpu(self):
        manifests = Manifests("hpa-values.yaml")
        self.assertEqual(manifests.of("ScaledObject"), {})
        spec = manifests.one("HorizontalPodAutoscaler", "worker")["spec"]
        self.assertEqual(spec["scaleTargetRef"], {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop-halcyon-worker"})
        self.assertEqual((spec["minReplicas"], spec["maxReplicas"]), (2, 6))
        self.assertEqual(spec["metrics"][0]["resource"]["target"], {"type": "Utilization", "averageUtilization": 60})
        self.assertEqual(spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 300)

    def test_gateways_scale_by_cpu(self):
        self.assertEqual(Manifests("gateway-values.yaml").one("Deployment", "gateway")["spec"]["replicas"], 3)
        manifests = Manifests("hpa-values.yaml")
        self.assertNotIn("replicas", manifests.one("Deployment", "gateway")["spec"])
        spec = manifests.one("HorizontalPodAutoscaler", "gateway")["spec"]
        self.assertEqual(spec["scaleTargetRef"], {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop-halcyon-gateway"})
        self.assertEqual((spec["minReplicas"], spec["maxReplicas"]), (3, 9))
        self.assertEqual(spec["metrics"][0]["resource"]["target"], {"type": "Utilization", "averageUtilization": 75})
        # No autoscaler without gateways.
        self.assertEqual(Manifests(values={"gateway": {"autoscaling": {"enabled": True}}}).of("HorizontalPodAutoscaler"), {})

    def test_workers_scale_by_lag(self):
        manifests = Manifests("keda-values.yaml")
        self.assertEqual(manifests.of("HorizontalPodAutoscaler"), {})
        spec = manifests.one("ScaledObject")["spec"]
        self.assertEqual(spec["scaleTargetRef"], {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop-halcyon-worker"})
        self.assertEqual((spec["minReplicaCount"], spec["maxReplicaCount"]), (3, 48))
        triggers = {trigger["name"]: trigger["metadata"] for trigger in spec["triggers"]}
        # Topics and group as the program reports them.
        settings = manifests.settings("worker")
        self.assertEqual(
            {name: metadata["topic"] for name, metadata in triggers.items()},
            {"high": settings["kafka.prefix"] + "jobs.high", "normal": settings["kafka.prefix"] + "jobs", "overflow": settings["kafka.prefix"] + "overflow"})
        for trigger in spec["triggers"]:
            self.assertEqual(trigger["type"], "kafka")
            metadata = trigger["metadata"]
            self.assertEqual(metadata["consumerGroup"], settings["kafka.group"])
            self.assertEqual(metadata["bootstrapServers"], settings["kafka.brokers"])
            self.assertEqual(metadata["offsetResetPolicy"], "earliest")
            self.assertEqual((metadata["tls"], metadata["sasl"]), ("enable", "scram_sha512"))
            self.assertEqual(trigger["authenticationRef"], {"name": "halcyon-kafka"})
        self.assertEqual((triggers["high"]["lagThreshold"], triggers["normal"]["lagThreshold"]), ("50", "200"))

    def test_lag_uses_the_default_group_and_lanes(self):
        manifests = Manifests(values={"autoscaling": {"keda": {"enabled": True}}})
        settings = manifests.settings("worker")
        triggers = manifests.one("ScaledObject")["spec"]["triggers"]
        self.assertEqual({trigger["metadata"]["topic"] for trigger in triggers}, {"halcyon.jobs.high", "halcyon.jobs", "halcyon.jobs.low", "halcyon.overflow"})
        self.assertEqual({trigger["metadata"]["consumerGroup"] for trigger in triggers}, {settings["kafka.group"]})
        self.assertTrue(all("tls" not in trigger["metadata"] for trigger in triggers))


if __name__ == "__main__":
    unittest.main()
