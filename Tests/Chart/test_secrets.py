"""Secrets of others, whose keys are mapped to variables and files."""
import unittest

from chart import SECRET, Manifests

TLS = {
    "HALCYON_KAFKA_PROPERTY_ssl.ca.location": ("images-cluster-ca-cert", "ca.crt"),
    "HALCYON_KAFKA_PROPERTY_ssl.certificate.location": ("halcyon", "user.crt"),
    "HALCYON_KAFKA_PROPERTY_ssl.key.location": ("halcyon", "user.key"),
}


class ExistingSecrets(unittest.TestCase):
    def references(self, manifests, component):
        """Variables that are keys of Secrets, each with the Secret and the key."""
        references = {
            variable["name"]: variable["valueFrom"]["secretKeyRef"]
            for variable in manifests.pods()[component]["containers"][0]["env"] if "secretKeyRef" in variable.get("valueFrom", {})}
        return {name: (reference["name"], reference["key"]) for name, reference in references.items()}

    def test_files_are_mounted_where_the_variables_say(self):
        manifests = Manifests("strimzi-tls-values.yaml")
        for component in "worker", "topics", "test":
            variables, files = manifests.variables(component), manifests.files(component)
            self.assertEqual({name: files[variables[name]] for name in TLS}, TLS, component)
            # Only the named keys are mounted, for example not user.p12.
            self.assertEqual(set(files.values()), set(TLS.values()), component)
            settings = manifests.settings(component)
            self.assertEqual(settings["kafka.properties.ssl.ca.location"], variables["HALCYON_KAFKA_PROPERTY_ssl.ca.location"])
            self.assertEqual(settings["kafka.properties.security.protocol"], "SSL")

    def test_passwords_are_variables(self):
        manifests = Manifests("strimzi-scram-values.yaml")
        for component in "worker", "topics", "test":
            self.assertEqual(self.references(manifests, component), {"HALCYON_KAFKA_PROPERTY_sasl.password": ("halcyon", "password")})
            self.assertEqual(set(manifests.files(component).values()), {("images-cluster-ca-cert", "ca.crt")})
        self.assertEqual(manifests.settings("worker")["kafka.properties.sasl.username"], "halcyon")
        trigger = manifests.one("ScaledObject")["spec"]["triggers"][0]["metadata"]
        self.assertEqual((trigger["sasl"], trigger["tls"]), ("scram_sha512", "enable"))

    def test_users_and_passwords_are_variables(self):
        manifests = Manifests("msk-values.yaml")
        kafka = {
            "HALCYON_KAFKA_PROPERTY_sasl.username": ("amazonmsk-halcyon", "username"),
            "HALCYON_KAFKA_PROPERTY_sasl.password": ("amazonmsk-halcyon", "password")}
        for component in "worker", "topics":
            self.assertEqual(self.references(manifests, component), {**kafka, "REDIS_PASSWORD": ("redis", "password")})
        # A variable can contain another one, whose source comes first.
        self.assertEqual(manifests.variables("worker")["HALCYON_REDIS_URL"], f"redis://:{SECRET}@redis:6379")

    def test_only_gateways_receive_their_secrets(self):
        manifests = Manifests("msk-values.yaml")
        self.assertEqual(self.references(manifests, "gateway")["HALCYON_GATEWAY_KEYS_shop"], ("gateway-keys", "shop"))
        for component in "worker", "topics", "test":
            self.assertNotIn("gateway-keys", str(manifests.pods()[component]))

    def test_no_secret_is_created(self):
        for name in "strimzi-tls-values.yaml", "strimzi-scram-values.yaml", "msk-values.yaml":
            self.assertEqual(Manifests(name).of("Secret"), {})


if __name__ == "__main__":
    unittest.main()
