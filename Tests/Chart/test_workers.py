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
                for component in manifests.pods().keys() - {"topics", "test"}:
                    pod = manifests.pods()[component]
                    grace = seconds(manifests.settings(component)["worker.grace"])
                    hook = pod["containers"][0].get("lifecycle", {}).get("preStop", {"sleep": {"seconds": 0}})
                    before = hook["sleep"]["seconds"] if "sleep" in hook else int(hook["exec"]["command"][1])
                    self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], grace + before + 10)

    def test_grace_period_can_be_longer(self):
        values = {"worker": {"graceSeconds": 100, "terminationGracePeriodSeconds": 300}}
        manifests = Manifests(values=values)
        self.assertEqual(manifests.pods()["worker"]["terminationGracePeriodSeconds"], 300)
        self.assertEqual(manifests.settings("worker")["worker.grace"], "1m40s")
        self.assertEqual(Manifests(values={"worker": {"graceSeconds": 100}}).pods()["worker"]["terminationGracePeriodSeconds"], 115)

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

    def test_probes_can_be_tuned(self):
        manifests = Manifests("full-values.yaml")
        startup = self.container(manifests)["startupProbe"]
        self.assertEqual((startup["initialDelaySeconds"], startup["periodSeconds"], startup["failureThreshold"]), (1, 2, 120))
        # The derived threshold follows the period.
        values = {"settings": {"health": {"exitAfter": "2m"}}, "worker": {"livenessProbe": {"periodSeconds": 7}}}
        probe = self.container(Manifests(values=values))["livenessProbe"]
        self.assertEqual((probe["periodSeconds"], probe["failureThreshold"]), (7, 26))
        self.assertEqual(self.container(Manifests(values={"worker": {"livenessProbe": {"failureThreshold": 9}}}))["livenessProbe"]["failureThreshold"], 9)
        gateway = manifests.pods()["gateway"]["containers"][0]
        self.assertEqual([gateway[name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")], ["/healthz", "/readyz"])
        self.assertEqual((gateway["livenessProbe"]["failureThreshold"], gateway["readinessProbe"]["timeoutSeconds"]), (3, 2))

    def test_pods_accept_common_fields(self):
        pods = Manifests("full-values.yaml").pods()
        for component, pod in pods.items():
            self.assertEqual(pod["hostAliases"], [{"ip": "10.20.0.5", "hostnames": ["kafka-0.kafka", "kafka-1.kafka"]}])
            self.assertEqual(pod["runtimeClassName"], "gvisor", component)
            self.assertIn({"configMapRef": {"name": "proxies", "optional": True}}, pod["containers"][0]["envFrom"])
        self.assertEqual([[one["name"] for one in pods[name]["initContainers"]] for name in ("worker", "gateway")], [["wait"], ["proxy"]])
        self.assertFalse({"initContainers"} & (pods["topics"].keys() | pods["test"].keys()))
        self.assertIn({"prefix": "OTHER_", "secretRef": {"name": "other"}}, pods["worker"]["containers"][0]["envFrom"])
        self.assertNotIn("other", str(pods["gateway"]["containers"][0]["envFrom"]))
        self.assertEqual(self.container(Manifests("full-values.yaml"))["lifecycle"], {"preStop": {"sleep": {"seconds": 20}}})

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
            if document["metadata"].get("annotations", {}).get("helm.sh/hook", "test") != "test"}

    def test_job_is_a_hook_with_its_resources(self):
        hooks = self.hooks("full-values.yaml")
        name = "halcyon-images-topics"
        self.assertEqual(hooks.keys(), {(kind, name) for kind in ("Job", "ConfigMap", "Secret", "NetworkPolicy", "ServiceAccount")})
        for (kind, _), annotations in hooks.items():
            self.assertEqual(annotations["helm.sh/hook"], "pre-install,pre-upgrade")
            self.assertEqual(annotations["helm.sh/hook-weight"], "0" if kind == "Job" else "-5")
        pod = Manifests("full-values.yaml").pods()["topics"]
        self.assertEqual(pod["containers"][0]["args"], ["topics", "create", "--partitions=48", "--replication=3"])

    def test_job_has_a_service_account_that_exists_before_the_release(self):
        manifests = Manifests("full-values.yaml")
        name = manifests.pods()["topics"]["serviceAccountName"]
        account = manifests.of("ServiceAccount")[name]
        self.assertEqual(account["metadata"]["annotations"]["example.org/role"], "images")
        weights = [int(manifest["metadata"]["annotations"]["helm.sh/hook-weight"]) for manifest in (account, manifests.one("Job"))]
        self.assertLess(*weights)
        # The account of workers is no hook, otherwise it would be replaced while they run.
        workers = manifests.of("ServiceAccount")[manifests.pods()["worker"]["serviceAccountName"]]
        self.assertNotIn("helm.sh/hook", workers["metadata"]["annotations"])
        own = Manifests(values={"serviceAccount": {"create": False, "name": "yours"}})
        self.assertEqual({pod["serviceAccountName"] for pod in own.pods().values()}, {"yours"})
        self.assertEqual(own.of("ServiceAccount"), {})

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
