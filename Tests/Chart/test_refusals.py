"""Values that are refused, and what is said of them."""
import unittest

from chart import Manifests, Refused

KEY = {"HALCYON_GATEWAY_KEYS_shop": "only-an-example-of-a-key"}
REFUSALS = {
    "a value nobody knows": ({"replica": 3}, "replica"),
    "a misspelt value": ({"worker": {"replcas": 3}}, "replcas"),
    "a misspelt value of gateways": ({"gateway": {"ingress": {"host": "a"}}}, "host"),
    "a wrong kind": ({"worker": {"replicas": "three"}}, "replicas"),
    "a wrong word": ({"worker": {"kind": "DaemonSet"}}, "kind"),
    "a misspelt setting": ({"settings": {"worker": {"concurency": 2}}}, "concurency"),
    "a setting with a dot in its name": ({"settings": {"worker.maximumInFlight": 2}}, "worker.maximumInFlight"),
    "a setting in a wrong place": ({"settings": {"concurrency": 2}}, "concurrency"),
    "a setting that is no value": ({"settings": {"worker": {"window": {"size": 2}}}}, "window"),
    "a variable of another program": ({"secrets": {"REDIS_URL": "redis://redis"}}, "REDIS_URL"),
    "no more surge": ({"worker": {"maxSurge": 0}}, "maxSurge"),
    "no worker at night": ({"autoscaling": {"minReplicas": 0}}, "minReplicas"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "digest"),
    "the grace in its other place": ({"settings": {"worker": {"grace": "10s"}}}, "set worker.graceSeconds"),
    "one name for all": ({"settings": {"worker": {"instance": "a"}}}, "all workers would have the same name"),
    "static members without names": ({"settings": {"worker": {"staticMember": True}}}, "requires worker.kind StatefulSet"),
    "another place of probes": ({"settings": {"http": {"listen": ["0.0.0.0:80"]}}}, "settings.http.listen is not supported"),
    "another place of gateways": ({"settings": {"gateway": {"listen": "0.0.0.0:80"}}}, "settings.gateway.listen is not supported"),
    "an open key": ({"settings": {"gateway": {"keys": {"a": "b"}}}}, "set gateway.secrets.HALCYON_GATEWAY_KEYS_NAME instead"),
    "an open key of URLs": ({"settings": {"gateway": {"urlKeys": {"a": "b"}}}}, "gateway.secrets.HALCYON_GATEWAY_URL_KEYS_ID"),
    "an open secret": ({"settings": {"webhooks": {"secret": "whsec_a"}}}, "set secrets.HALCYON_WEBHOOKS_SECRET instead"),
    "open credentials": (
        {"settings": {"sources": {"credentials": {"a": "https://u:p@a.example"}}}}, "secrets.HALCYON_SOURCES_CREDENTIALS_NAME"),
    "open secrets": ({"settings": {"webhooks": {"secrets": {"a": "whsec_a"}}}}, "secrets.HALCYON_WEBHOOKS_SECRET_NAME"),
    "an open key of S3": ({"settings": {"sources": {"s3": {"secretKey": "a"}}}}, "secrets.HALCYON_SOURCES_S3_SECRET_KEY"),
    "an open token of S3": ({"settings": {"sources": {"s3": {"sessionToken": "a"}}}}, "secrets.HALCYON_SOURCES_S3_SESSION_TOKEN"),
    "an open password of Kafka": (
        {"settings": {"kafka": {"properties": {"sasl.password": "a"}}}}, "secrets.HALCYON_KAFKA_PROPERTY_sasl.password"),
    "an open password of Redis": ({"settings": {"redis": {"url": "redis://:a@redis"}}}, "set secrets.HALCYON_REDIS_URL instead"),
    "two Secrets": ({"secrets": {"HALCYON_LOG_LEVEL": "info"}, "existingSecret": "a"}, "secrets and existingSecret cannot be combined"),
    "two Secrets of gateways": ({"gateway": {"secrets": KEY, "existingSecret": "a"}}, "gateway.secrets and gateway.existingSecret cannot be combined"),
    "gateways without keys": ({"gateway": {"enabled": True}}, "gateways need keys"),
    "an Ingress to nothing": ({"gateway": {"ingress": {"enabled": True, "hosts": [{"host": "a"}]}}}, "requires gateway.enabled"),
    "an Ingress without hosts": (
        {"gateway": {"enabled": True, "secrets": KEY, "ingress": {"enabled": True}}}, "gateway.ingress.hosts is empty"),
    "two that count": ({"autoscaling": {"hpa": {"enabled": True}, "keda": {"enabled": True}}}, "autoscaling.hpa and autoscaling.keda cannot be combined"),
    "more than most": ({"autoscaling": {"minReplicas": 13}}, "minReplicas is greater than"),
    "percent of nothing": (
        {"autoscaling": {"hpa": {"enabled": True}}, "worker": {"resources": {"requests": {"cpu": None}}}}, "requires worker.resources.requests.cpu"),
    "more gateways than most": ({"gateway": {"autoscaling": {"minReplicas": 7}}}, "gateway.autoscaling.minReplicas is greater than"),
    "gateways without a measure": (
        {"gateway": {"autoscaling": {"enabled": True}, "resources": {"requests": {"cpu": None}}}}, "requires gateway.resources.requests.cpu"),
    "no lane": ({"autoscaling": {"keda": {"enabled": True, "lagPerWorker": {"high": 0, "normal": 0, "low": 0}}}}, "has no lane to scale by"),
    "KEDA without a user": (
        {"autoscaling": {"keda": {"enabled": True}}, "secrets": {"HALCYON_KAFKA_PROPERTY_security.protocol": "sasl_ssl"}},
        "set autoscaling.keda.authenticationRef"),
    "KEDA without a mechanism": (
        {"autoscaling": {"keda": {"enabled": True, "authenticationRef": {"name": "a"}}},
         "settings": {"kafka": {"properties": {"security.protocol": "SASL_SSL"}}}}, "sasl.mechanism"),
    "a Redis nobody sees": ({"existingSecret": "a", "networkPolicy": {"enabled": True}}, "set networkPolicy.redis.ports"),
    "a Redis of a variable": (
        {"extraEnv": [{"name": "HALCYON_REDIS_URL", "valueFrom": {}}], "networkPolicy": {"enabled": True}}, "set networkPolicy.redis.ports"),
    "a folder on the read-only root": ({"settings": {"sources": {"diskCache": "/cache"}}}, "is not on a volume"),
    "two folders": (
        {"settings": {"sources": {"diskCache": "/cache"}}, "worker": {"sourcesFolder": {"enabled": True}}},
        "settings.sources.diskCache and worker.sourcesFolder cannot be combined"),
    "too long a name": (
        {"worker": {"kind": "StatefulSet"}, "fullnameOverride": "a" * 50}, "fullnameOverride of at most 45"),
}


class Refusals(unittest.TestCase):
    def test_each(self):
        for name, (values, message) in REFUSALS.items():
            with self.subTest(name):
                with self.assertRaises(Refused) as refused:
                    Manifests(values=values)
                self.assertIn(message, str(refused.exception))

    def test_a_cluster_too_old(self):
        with self.assertRaisesRegex(Refused, "1.29"):
            Manifests(version="1.28.0")

    def test_what_is_nearly_refused(self):
        Manifests(values={"gateway": {"enabled": True}, "settings": {"gateway": {"allowAnonymous": True}}})
        Manifests(values={"gateway": {"enabled": True}, "existingSecret": "yours"})
        Manifests(values={"gateway": {"enabled": True, "extraEnv": [{"name": "HALCYON_GATEWAY_KEYS_shop", "valueFrom": {}}]}})
        Manifests(values={"settings": {"kafka": {"properties": {"sasl.username": "a"}}, "redis": {"url": "redis://user@redis:6379"}}})
        Manifests(
            values={
                "settings": {"sources": {"diskCache": "/cache/halcyon"}},
                "worker": {
                    "extraVolumes": [{"name": "cache", "hostPath": {"path": "/cache"}}],
                    "extraVolumeMounts": [{"name": "cache", "mountPath": "/cache"}]}})


if __name__ == "__main__":
    unittest.main()
