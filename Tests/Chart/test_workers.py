"""Workers, and the job that creates their topics."""
import os
import subprocess
import unittest

from chart import SETS, Manifests, seconds


class Workers(unittest.TestCase):
    def container(self, manifests):
        return manifests.pods()["worker"]["containers"][0]

    def test_termination_grace_period_exceeds_worker_grace(self):
        for name in SETS:
            with self.subTest(name):
                manifests = Manifests(name)
                for component in manifests.pods().keys() - {"topics"}:
                    pod = manifests.pods()[component]
                    grace = seconds(manifests.settings(component)["worker.grace"])
                    before = pod["containers"][0].get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
                    self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], grace + int(before[1]) + 10)

    def test_probes(self):
        container = self.container(Manifests())
        paths = {probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
        self.assertEqual(
            paths, {
                "startupProbe": {"path": "/healthz", "port": "metrics"},
                "livenessProbe": {"path": "/healthz", "port": "metrics"},
                "readinessProbe": {"path": "/readyz", "port": "metrics"}})
        self.assertEqual(container["ports"], [{"name": "metrics", "containerPort": 9464}])
        self.assertEqual(Manifests().settings("worker")["http.listen"], "0.0.0.0:9464")

    def test_watchdog_acts_before_the_liveness_probe(self):
        for name, limit in ("minimal-values.yaml", 60), ("exactly-once-values.yaml", 90), ("full-values.yaml", 0):
            manifests = Manifests(name)
            self.assertEqual(seconds(manifests.settings("worker")["health.exitAfter"]), limit)
            probe = self.container(manifests)["livenessProbe"]
            patience = probe["periodSeconds"] * probe["failureThreshold"]
            self.assertGreaterEqual(patience, limit + 60)
            self.assertLess(patience, limit + 80)

    def test_rollout_keeps_all_workers_available(self):
        self.assertEqual(
            Manifests().workers["spec"]["strategy"], {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})

    def test_disk_cache_is_a_volume(self):
        pod = Manifests("static-members-values.yaml").pods()["worker"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        folders = {mount["mountPath"]: volumes[mount["name"]] for mount in pod["containers"][0]["volumeMounts"]}
        self.assertEqual(set(folders) & {"/tmp", "/var/tmp"}, set())
        self.assertEqual(folders["/var/cache/halcyon"]["emptyDir"], {"sizeLimit": "2Gi"})
        self.assertEqual(Manifests("static-members-values.yaml").settings("worker")["sources.diskCache"], "/var/cache/halcyon")

    def test_instance_names(self):
        def names(manifests):
            return [variable for variable in self.container(manifests)["env"] if variable["name"].startswith("HALCYON_WORKER")]

        own = {"name": "HALCYON_WORKER_INSTANCE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
        static = {"name": "HALCYON_WORKER_STATIC_MEMBER", "value": "true"}
        self.assertEqual(names(Manifests()), [])
        self.assertEqual(names(Manifests("exactly-once-values.yaml")), [own])
        self.assertEqual(names(Manifests("static-members-values.yaml")), [own, static])
        self.assertEqual(Manifests("static-members-values.yaml").settings("worker")["worker.staticMember"], "true")
        self.assertEqual(Manifests("static-members-values.yaml").settings("gateway")["worker.staticMember"], "false")

    def test_static_members_are_a_stateful_set(self):
        manifests = Manifests("static-members-values.yaml")
        workers = manifests.one("StatefulSet")
        service = manifests.one("Service", "worker")
        self.assertEqual(workers["spec"]["serviceName"], service["metadata"]["name"])
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(Manifests("exactly-once-values.yaml").workers["kind"], "Deployment")

    def test_pods_restart_when_settings_change(self):
        def checksums(values):
            template = Manifests("gateway-values.yaml", values).workers["spec"]["template"]
            return {name: value for name, value in template["metadata"]["annotations"].items() if name.startswith("checksum/")}

        before = checksums({})
        self.assertNotEqual(checksums({"settings": {"log": {"level": "debug"}}})["checksum/settings"], before["checksum/settings"])
        self.assertNotEqual(checksums({"secrets": {"HALCYON_REDIS_URL": "redis://:a@redis"}})["checksum/secrets"], before["checksum/secrets"])
        # A gateway key does not restart workers.
        self.assertEqual(checksums({"gateway": {"secrets": {"HALCYON_GATEWAY_KEYS_more": "another-example-of-a-key"}}}), before)

    def test_topology_spread_constraints(self):
        for constraint in Manifests().pods()["worker"]["topologySpreadConstraints"]:
            self.assertEqual(constraint["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], "worker")
            self.assertEqual(constraint["matchLabelKeys"], ["pod-template-hash"])
        for constraint in Manifests("static-members-values.yaml").pods()["worker"]["topologySpreadConstraints"]:
            self.assertNotIn("matchLabelKeys", constraint)


class Topics(unittest.TestCase):
    def hooks(self, name):
        return {
            (document["kind"], document["metadata"]["name"]): document["metadata"]["annotations"] for document in Manifests(name).all
            if "helm.sh/hook" in document["metadata"].get("annotations", {})}

    def test_job_is_a_hook_with_its_resources(self):
        hooks = self.hooks("full-values.yaml")
        name = "halcyon-images-topics"
        self.assertEqual(hooks.keys(), {(kind, name) for kind in ("Job", "ConfigMap", "Secret", "NetworkPolicy")})
        for (kind, _), annotations in hooks.items():
            self.assertEqual(annotations["helm.sh/hook"], "pre-install,pre-upgrade")
            self.assertEqual(annotations["helm.sh/hook-weight"], "0" if kind == "Job" else "-5")
        pod = Manifests("full-values.yaml").pods()["topics"]
        # The service account of the release does not exist yet.
        self.assertEqual(pod["serviceAccountName"], "default")
        self.assertEqual(pod["containers"][0]["args"], ["topics", "create", "--partitions=48", "--replication=3"])

    def test_invalid_settings_are_not_retried(self):
        failure = Manifests().one("Job")["spec"]["podFailurePolicy"]["rules"][0]
        self.assertEqual((failure["action"], failure["onExitCodes"]["operator"]), ("FailJob", "In"))
        done = subprocess.run(
            [os.environ["HALCYON_EXECUTABLE"], *Manifests().pods()["topics"]["containers"][0]["args"]],
            env={"HALCYON_KAFKA_BROKRES": "kafka:9092"}, capture_output=True)
        self.assertEqual(failure["onExitCodes"]["values"], [done.returncode])

    def test_settings_match_the_workers(self):
        for name in SETS:
            manifests = Manifests(name)
            names = ["kafka.brokers", "kafka.prefix", "retry.delays", "webhooks.delays", "sources.diskCacheRetention"]
            of_job, of_worker = manifests.settings("topics"), manifests.settings("worker")
            self.assertEqual([of_job[name] for name in names], [of_worker[name] for name in names])

    def test_existing_secret_is_not_copied(self):
        self.assertEqual(
            Manifests("keda-values.yaml").pods()["topics"]["containers"][0]["envFrom"], [{"secretRef": {"name": "halcyon-kafka"}}])
        self.assertEqual(Manifests("keda-values.yaml").of("Secret"), {})

    def test_job_can_be_disabled(self):
        self.assertEqual(Manifests(values={"topics": {"create": False}, "networkPolicy": {"enabled": True}}).of("Job"), {})


if __name__ == "__main__":
    unittest.main()
