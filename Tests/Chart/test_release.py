"""The test of a release, `helm test`: its pod, and its commands with a cluster of `halcyon dev`."""
import json
import os
import signal
import subprocess
import unittest

from chart import Manifests

HALCYON = os.environ["HALCYON_EXECUTABLE"]


class ReleaseTest(unittest.TestCase):
    def test_pod_is_a_test(self):
        manifests = Manifests("gateway-values.yaml")
        annotations = manifests.one("Pod")["metadata"]["annotations"]
        self.assertEqual(annotations["helm.sh/hook"], "test")
        # Logs of a failed and of a successful test can be read.
        self.assertEqual(annotations["helm.sh/hook-delete-policy"], "before-hook-creation")
        pod = manifests.pods()["test"]
        self.assertEqual(pod["restartPolicy"], "Never")
        self.assertEqual([container["name"] for container in pod["containers"]], ["submit", "gateway"])
        self.assertEqual([container["name"] for container in Manifests().pods()["test"]["containers"]], ["submit"])
        self.assertIn("avatar", Manifests("full-values.yaml").pods()["test"]["containers"][0]["args"])

    def test_gateways_are_asked_at_their_service(self):
        for name in "gateway-values.yaml", "gateway-api-values.yaml":
            manifests = Manifests(name)
            service = manifests.of("Service")["shop-halcyon-gateway"]
            address = f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
            self.assertIn(f"--url={address}", manifests.pods()["test"]["containers"][1]["args"])

    def test_commands_succeed_with_a_cluster_and_fail_without(self):
        submit, health = (container["args"] for container in Manifests("gateway-values.yaml").pods()["test"]["containers"])
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HALCYON_")}
        with subprocess.Popen([HALCYON, "dev", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as cluster:
            try:
                addresses = json.loads(cluster.stdout.readline())
                variables |= {"HALCYON_KAFKA_BROKERS": addresses["kafka"], "HALCYON_REDIS_URL": f"redis://{addresses['redis']}"}
                health = [f"--url={addresses['gateway']}" if argument.startswith("--url=") else argument for argument in health]

                def run(arguments):
                    return subprocess.run([HALCYON, *arguments], capture_output=True, text=True, env=variables)

                done = run(submit)
                self.assertEqual(done.returncode, 0, done.stderr)
                # It waits for the result: a job that fails fails the test.
                failing = ["data:image/png,none" if argument == "initials:JD" else argument for argument in submit]
                self.assertEqual(run(failing).returncode, 1)
                done = run(health)
                self.assertEqual(done.returncode, 0, done.stderr)
            finally:
                cluster.send_signal(signal.SIGINT)
                cluster.communicate(timeout=60)
        self.assertEqual(run(health).returncode, 1)
        self.assertNotEqual(run([*submit, "--timeout=1s"]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
