"""Values that the chart rejects, and the error messages."""
import re
import unittest

from chart import ROOT, Manifests, RenderError

KEY = {"HALCYON_GATEWAY_KEYS_shop": "only-an-example-of-a-key"}
REJECTIONS = {
    "unknown value": ({"replica": 3}, "replica"),
    "misspelled value": ({"worker": {"replcas": 3}}, "replcas"),
    "misspelled value of gateways": ({"gateway": {"ingress": {"host": "a"}}}, "host"),
    "wrong type": ({"worker": {"replicas": "three"}}, "replicas"),
    "invalid enum value": ({"worker": {"kind": "DaemonSet"}}, "kind"),
    "misspelled setting": ({"settings": {"worker": {"concurency": 2}}}, "concurency"),
    "setting with a dot in its name": ({"settings": {"worker.maximumInFlight": 2}}, "worker.maximumInFlight"),
    "setting in a wrong place": ({"settings": {"concurrency": 2}}, "concurrency"),
    "setting that is an object": ({"settings": {"worker": {"window": {"size": 2}}}}, "window"),
    "variable of another program": ({"secrets": {"REDIS_URL": "redis://redis"}}, "REDIS_URL"),
    "zero maxSurge": ({"worker": {"maxSurge": 0}}, "maxSurge"),
    "zero minReplicas": ({"autoscaling": {"minReplicas": 0}}, "minReplicas"),
    "invalid digest": ({"image": {"digest": "latest"}}, "digest"),
    "grace period in settings": ({"settings": {"worker": {"grace": "10s"}}}, "set worker.graceSeconds"),
    "same instance name for all workers": ({"settings": {"worker": {"instance": "a"}}}, "all workers would have the same name"),
    "static members without a StatefulSet": ({"settings": {"worker": {"staticMember": True}}}, "requires worker.kind StatefulSet"),
    "other address of probes": ({"settings": {"http": {"listen": ["0.0.0.0:80"]}}}, "settings.http.listen is not supported"),
    "other address of gateways": ({"settings": {"gateway": {"listen": "0.0.0.0:80"}}}, "settings.gateway.listen is not supported"),
    "API key in settings": ({"settings": {"gateway": {"keys": {"a": "b"}}}}, "set gateway.secrets.HALCYON_GATEWAY_KEYS_NAME instead"),
    "URL key in settings": ({"settings": {"gateway": {"urlKeys": {"a": "b"}}}}, "gateway.secrets.HALCYON_GATEWAY_URL_KEYS_ID"),
    "imgproxy key in settings": (
        {"settings": {"gateway": {"urls": {"imgproxy": {"keys": {"a": "00:00"}}}}}}, "gateway.secrets.HALCYON_GATEWAY_URLS_IMGPROXY_KEYS_NAME"),
    "purge hooks in settings": ({"settings": {"purge": {"hooks": {"a": "{}"}}}}, "secrets.HALCYON_PURGE_HOOKS_NAME"),
    "webhook secret in settings": ({"settings": {"webhooks": {"secret": "whsec_a"}}}, "set secrets.HALCYON_WEBHOOKS_SECRET instead"),
    "credentials in settings": (
        {"settings": {"sources": {"credentials": {"a": "https://u:p@a.example"}}}}, "secrets.HALCYON_SOURCES_CREDENTIALS_NAME"),
    "webhook secrets in settings": ({"settings": {"webhooks": {"secrets": {"a": "whsec_a"}}}}, "secrets.HALCYON_WEBHOOKS_SECRET_NAME"),
    "S3 secret key in settings": ({"settings": {"sources": {"s3": {"secretKey": "a"}}}}, "secrets.HALCYON_SOURCES_S3_SECRET_KEY"),
    "S3 session token in settings": ({"settings": {"sources": {"s3": {"sessionToken": "a"}}}}, "secrets.HALCYON_SOURCES_S3_SESSION_TOKEN"),
    "secret key of the result store in settings": (
        {"settings": {"results": {"s3": {"secretKey": "a"}}}}, "set secrets.HALCYON_RESULTS_S3_SECRET_KEY instead"),
    "session token of the result store in settings": (
        {"settings": {"results": {"s3": {"sessionToken": "a"}}}}, "set secrets.HALCYON_RESULTS_S3_SESSION_TOKEN instead"),
    "headers of the trace collector in settings": (
        {"settings": {"traces": {"headers": ["Authorization=a"]}}}, "set secrets.HALCYON_TRACES_HEADERS instead"),
    "Kafka password in settings": (
        {"settings": {"kafka": {"properties": {"sasl.password": "a"}}}}, "secrets.HALCYON_KAFKA_PROPERTY_sasl.password"),
    "Redis password in settings": ({"settings": {"redis": {"url": "redis://:a@redis"}}}, "set secrets.HALCYON_REDIS_URL instead"),
    "secrets and existingSecret": ({"secrets": {"HALCYON_LOG_LEVEL": "info"}, "existingSecret": "a"}, "secrets and existingSecret cannot be combined"),
    "secrets and existingSecret of gateways": ({"gateway": {"secrets": KEY, "existingSecret": "a"}}, "gateway.secrets and gateway.existingSecret cannot be combined"),
    "gateways without keys": ({"gateway": {"enabled": True}}, "gateways need keys"),
    "gateways with only a scope": (
        {"gateway": {"enabled": True, "secrets": {"HALCYON_GATEWAY_SCOPES_shop": "read"}}}, "HALCYON_GATEWAY_URL_KEYS_ID"),
    "Ingress without gateways": ({"gateway": {"ingress": {"enabled": True, "hosts": [{"host": "a"}]}}}, "requires gateway.enabled"),
    "Ingress without hosts": (
        {"gateway": {"enabled": True, "secrets": KEY, "ingress": {"enabled": True}}}, "gateway.ingress.hosts is empty"),
    "two autoscalers": ({"autoscaling": {"hpa": {"enabled": True}, "keda": {"enabled": True}}}, "autoscaling.hpa and autoscaling.keda cannot be combined"),
    "minReplicas above maxReplicas": ({"autoscaling": {"minReplicas": 13}}, "minReplicas is greater than"),
    "HPA without a CPU request": (
        {"autoscaling": {"hpa": {"enabled": True}}, "worker": {"resources": {"requests": {"cpu": None}}}}, "requires worker.resources.requests.cpu"),
    "minReplicas above maxReplicas of gateways": ({"gateway": {"autoscaling": {"minReplicas": 7}}}, "gateway.autoscaling.minReplicas is greater than"),
    "HPA without a CPU request of gateways": (
        {"gateway": {"autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}}, "requires gateway.resources.requests.cpu"),
    "KEDA without lanes": ({"autoscaling": {"keda": {"enabled": True, "lagPerWorker": {"high": 0, "normal": 0, "low": 0}}}}, "has no lane to scale by"),
    "KEDA without authentication": (
        {"autoscaling": {"keda": {"enabled": True}}, "secrets": {"HALCYON_KAFKA_PROPERTY_security.protocol": "sasl_ssl"}},
        "set autoscaling.keda.authenticationRef"),
    "KEDA without a SASL mechanism": (
        {"autoscaling": {"keda": {"enabled": True, "authenticationRef": {"name": "a"}}},
         "settings": {"kafka": {"properties": {"security.protocol": "SASL_SSL"}}}}, "sasl.mechanism"),
    "network policy with an unknown Redis URL": ({"existingSecret": "a", "networkPolicy": {"enabled": True}}, "set networkPolicy.redis.ports"),
    "network policy with a Redis URL in a variable": (
        {"extraEnv": [{"name": "HALCYON_REDIS_URL", "valueFrom": {}}], "networkPolicy": {"enabled": True}}, "set networkPolicy.redis.ports"),
    "disk cache on the read-only root": ({"settings": {"sources": {"diskCache": "/cache"}}}, "is not on a volume"),
    "two disk caches": (
        {"settings": {"sources": {"diskCache": "/cache"}}, "worker": {"sourcesFolder": {"enabled": True}}},
        "settings.sources.diskCache and worker.sourcesFolder cannot be combined"),
    "image that does not exist": ({"image": {"repository": "halcyon"}}, "set image.registry or image.repository to it"),
    "misspelled part of the image": ({"image": {"registy": "a"}}, "registy"),
    "pull secret without a name": ({"global": {"imagePullSecrets": [{}]}}, "imagePullSecrets"),
    "label of the chart": ({"commonLabels": {"app.kubernetes.io/name": "a"}}, "commonLabels.app.kubernetes.io/name is not supported"),
    "label of components": ({"commonLabels": {"app.kubernetes.io/component": "a"}}, "commonLabels.app.kubernetes.io/component is not supported"),
    "extra object without a kind": ({"extraObjects": [{"apiVersion": "v1"}]}, "extraObjects"),
    "source of variables without a reference": ({"envFrom": [{"prefix": "A_"}]}, "envFrom"),
    "misspelled source of variables": ({"worker": {"envFrom": [{"secret": {"name": "a"}}]}}, "envFrom"),
    "host alias without names": ({"hostAliases": [{"ip": "10.0.0.1"}]}, "hostnames"),
    "init container without a name": ({"worker": {"initContainers": [{"image": "a"}]}}, "initContainers"),
    "misspelled lifecycle hook": ({"worker": {"lifecycle": {"prestop": {}}}}, "prestop"),
    "probe with another path": ({"worker": {"readinessProbe": {"httpGet": {"path": "/"}}}}, "httpGet"),
    "probe without attempts": ({"gateway": {"livenessProbe": {"failureThreshold": 0}}}, "failureThreshold"),
    "liveness probe before the watchdog": (
        {"worker": {"livenessProbe": {"failureThreshold": 3}}}, "worker.livenessProbe would stop stuck workers after 30 s"),
    "grace period of workers too short": (
        {"worker": {"terminationGracePeriodSeconds": 30}}, "worker.terminationGracePeriodSeconds must be at least 40"),
    "grace period of gateways too short": (
        {"gateway": {"terminationGracePeriodSeconds": 49}}, "gateway.terminationGracePeriodSeconds must be at least 50"),
    "preStop hook without a grace period": (
        {"worker": {"lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}}, "set worker.terminationGracePeriodSeconds"),
    "two monitors": ({"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}, "podMonitor and serviceMonitor cannot be combined"),
    "route without gateways": (
        {"gateway": {"httpRoute": {"enabled": True, "parentRefs": [{"name": "a"}]}}}, "gateway.httpRoute.enabled requires gateway.enabled"),
    "route without a Gateway": (
        {"gateway": {"enabled": True, "secrets": KEY, "httpRoute": {"enabled": True}}}, "gateway.httpRoute.parentRefs is empty"),
    "invalid timeout of the route": ({"gateway": {"httpRoute": {"timeouts": {"request": "1 minute"}}}}, "request"),
    "Secret without a name": ({"existingSecrets": [{"variables": {"A": "b"}}]}, "existingSecrets"),
    "misspelled part of a Secret": ({"existingSecrets": [{"name": "a", "keys": {"A": "b"}}]}, "keys"),
    "invalid key of a Secret": ({"existingSecrets": [{"name": "a", "variables": {"A": "b/c"}}]}, "existingSecrets"),
    "Secret without keys": ({"existingSecrets": [{"name": "a"}]}, "Secret a has no variables and no files"),
    "Secret listed twice": (
        {"existingSecrets": [{"name": "a", "variables": {"A": "a"}}], "gateway": {"existingSecrets": [{"name": "a", "variables": {"B": "a"}}]}},
        "two entries for the Secret a"),
    "variable with two Secrets": (
        {"existingSecrets": [{"name": "a", "variables": {"A": "a"}}, {"name": "b", "files": {"A": "a"}}]}, "variable A has two values"),
    "variable in secrets and a Secret": (
        {"secrets": {"HALCYON_REDIS_URL": "redis://:a@redis"}, "existingSecrets": [{"name": "a", "variables": {"HALCYON_REDIS_URL": "url"}}]},
        "variable HALCYON_REDIS_URL has two values"),
    "network policy with a Redis URL in a Secret": (
        {"existingSecrets": [{"name": "a", "variables": {"HALCYON_REDIS_URL": "url"}}], "networkPolicy": {"enabled": True}},
        "set networkPolicy.redis.ports"),
    "network policy with brokers in a Secret": (
        {"existingSecrets": [{"name": "a", "variables": {"HALCYON_KAFKA_BROKERS": "brokers"}}], "networkPolicy": {"enabled": True}},
        "set networkPolicy.kafka.ports"),
    "network policy with other sources of variables": (
        {"envFrom": [{"secretRef": {"name": "a"}}], "networkPolicy": {"enabled": True}}, "set networkPolicy.redis.ports"),
    "Kafka to try beside another": (
        {"tryout": {"kafka": {"enabled": True}}, "settings": {"kafka": {"brokers": ["other:9092"]}}}, "tryout.kafka.enabled and settings.kafka.brokers"),
    "Redis to try beside another": (
        {"tryout": {"redis": {"enabled": True}}, "settings": {"redis": {"url": "redis://other"}}}, "tryout.redis.enabled and settings.redis.url"),
    "Redis to try beside a secret URL": (
        {"tryout": {"redis": {"enabled": True}}, "secrets": {"HALCYON_REDIS_URL": "redis://:a@redis"}},
        "tryout.redis.enabled and the variable HALCYON_REDIS_URL"),
    "invalid memory of Redis": ({"tryout": {"redis": {"maxmemory": "512Mi"}}}, "maxmemory"),
    "test without a job": ({"tests": {"submit": []}}, "submit"),
    "name too long": (
        {"worker": {"kind": "StatefulSet"}, "fullnameOverride": "a" * 50}, "fullnameOverride of at most 45"),
}


class Rejections(unittest.TestCase):
    def test_invalid_values_are_rejected_with_a_message(self):
        for name, (values, message) in REJECTIONS.items():
            with self.subTest(name):
                with self.assertRaises(RenderError) as rejected:
                    Manifests(values=values)
                self.assertIn(message, str(rejected.exception))

    def test_all_secret_settings_are_rejected(self):
        """Reads from the code which settings `halcyon config` masks."""
        folder = ROOT / "Sources/Halcyon/HalcyonCLI/Configuration"
        code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.swift"))
        found = re.findall(r'\b(Setting|SettingMap)\(\s*"([^"]+)"(?:(?!\bSetting(?:Map)?\b).)*?isSecret: true', code, re.DOTALL)
        stores = re.findall(r'prefix: "(\w+\.\w+)"', code)
        secrets = {name.replace(r"\(prefix)", store): kind for kind, name in found for store in stores}
        self.assertGreater(len(secrets), 10)
        for name, kind in secrets.items():
            value = {"a": "b"} if kind == "SettingMap" else "b"
            for part in reversed(name.split(".")):
                value = {part: value}
            with self.subTest(name), self.assertRaisesRegex(RenderError, rf"settings\.{re.escape(name)} is stored in a ConfigMap"):
                Manifests(values={"settings": value})

    def test_old_kubernetes_versions_are_rejected(self):
        with self.assertRaisesRegex(RenderError, "1.29"):
            Manifests(version="1.28.0")

    def test_similar_valid_values_are_accepted(self):
        Manifests(values={"gateway": {"enabled": True}, "settings": {"gateway": {"allowAnonymous": True}}})
        Manifests(values={"gateway": {"enabled": True}, "existingSecret": "yours"})
        Manifests(values={"gateway": {"enabled": True, "envFrom": [{"secretRef": {"name": "yours"}}]}})
        Manifests(values={"gateway": {"enabled": True, "extraEnv": [{"name": "HALCYON_GATEWAY_KEYS_shop", "valueFrom": {}}]}})
        for name in "HALCYON_GATEWAY_URL_KEYS_1", "HALCYON_GATEWAY_URLS_IMGPROXY_KEYS_a":
            Manifests(values={"gateway": {"enabled": True, "secrets": {name: "only-an-example-of-a-secret-of-urls"}}})
        Manifests(values={"settings": {"kafka": {"properties": {"sasl.username": "a"}}, "redis": {"url": "redis://user@redis:6379"}}})
        Manifests(
            values={
                "settings": {"sources": {"diskCache": "/cache/halcyon"}},
                "worker": {
                    "extraVolumes": [{"name": "cache", "hostPath": {"path": "/cache"}}],
                    "extraVolumeMounts": [{"name": "cache", "mountPath": "/cache"}]}})


if __name__ == "__main__":
    unittest.main()
