"""Redis over TLS (rediss://) from the image, whose hiredis is that of Debian 13."""
import json
import unittest

from cluster import SAMPLES, figure, shared


class TLS(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = shared()
        cls.compose("run", "--rm", "--no-TTY", "secure-worker", "topics", "create")
        cls.compose("up", "--detach", "--wait", "--no-recreate", "secure", "secure-worker")

    @classmethod
    def compose(cls, *arguments, **options):
        return cls.cluster.compose("--profile", "tls", *arguments, **options)

    def run_in(self, *arguments, variables=(), **options):
        given = [part for variable in variables for part in ("--env", variable)]
        return self.compose("run", "--rm", "--no-TTY", "--no-deps", *given, "secure-worker", *arguments, **options)

    def redis(self, *arguments):
        tool = ("redis-cli", "--tls", "--cacert", "/certificates/authority.pem", "-h", "secure", "-p", "6380", "--no-auth-warning", "-a", self.cluster.password)
        return self.compose("exec", "--no-TTY", "secure", *tool, *arguments).stdout

    def test_jobs_store_results_over_tls(self):
        jobs = [
            {"id": f"tls-{number}", "source": f"http://origin/fast/{SAMPLES[number % len(SAMPLES)]}.jpg", "width": 50 + number, "height": 50}
            for number in range(20)]
        done = self.run_in("submit", "--from-file", "-", "--wait", "--json", "--timeout", "60s", input="".join(json.dumps(job) + "\n" for job in jobs))
        endings = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(endings), 20, done.stdout)
        keys = {ending["key"] for ending in endings}
        self.assertEqual(len(keys), 20)
        for key in keys:
            self.assertEqual(self.redis("hexists", key, "body").strip(), "1", key)
        figure("over rediss:// from the image", "20 jobs ready, their 20 results in a Redis that accepts only TLS")

    def test_doctor_accepts_redis_over_tls(self):
        findings = json.loads(self.run_in("doctor", "--json").stdout)["findings"]
        redis = [finding for finding in findings if finding["subject"] == "Redis"]
        self.assertTrue(redis and all(finding["level"] != "broken" for finding in redis), findings)
        for finding in redis:
            print(f"{finding['level']:<8}{finding['subject']}: {finding['message']}")

    def test_untrusted_certificates_are_rejected(self):
        """Without the certificate of the authority, and with a host name that the certificate does not cover."""
        done = self.run_in("doctor", "--json", variables=["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("certificate", self.broken(done))
        address = self.cluster.container("secure").address
        done = self.run_in("doctor", "--json", variables=[f"HALCYON_REDIS_URL=rediss://:{self.cluster.password}@{address}:6380"], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("certificate", self.broken(done))

    def broken(self, done):
        """Returns the message of the finding that Redis is broken."""
        return next(
            finding["message"] for finding in json.loads(done.stdout)["findings"]
            if (finding["subject"], finding["level"]) == ("Redis", "broken"))
