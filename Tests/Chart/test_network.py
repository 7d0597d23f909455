"""Network policies: traffic from and to pods."""
import ipaddress
import re
import unittest

from chart import ROOT, Manifests


def ports(rule):
    return [port["port"] for port in rule.get("ports", [])]


def blocks(rule):
    return [peer["ipBlock"] for peer in rule.get("to", []) if "ipBlock" in peer]


def allows(rule, address, port):
    """Whether an egress rule allows a connection to an address."""
    inside = any(
        ipaddress.ip_address(address) in ipaddress.ip_network(block["cidr"])
        and not any(ipaddress.ip_address(address) in ipaddress.ip_network(one) for one in block.get("except", []))
        for block in blocks(rule))
    return inside and port in (ports(rule) or [port])


class NetworkPolicies(unittest.TestCase):
    def egress(self, component, name="gateway-values.yaml", values=None):
        return Manifests(name, values).one("NetworkPolicy", component)["spec"]["egress"]

    def test_disabled_by_default(self):
        self.assertEqual(Manifests().of("NetworkPolicy"), {})

    def test_ingress_allows_only_served_ports(self):
        manifests = Manifests("gateway-values.yaml")
        for component, served in ("worker", [["metrics"]]), ("gateway", [["http"], ["metrics"]]):
            spec = manifests.one("NetworkPolicy", component)["spec"]
            self.assertEqual(spec["policyTypes"], ["Ingress", "Egress"])
            self.assertEqual([ports(rule) for rule in spec["ingress"]], served)
        topics = manifests.one("NetworkPolicy", "topics")["spec"]
        self.assertEqual(topics["policyTypes"], ["Ingress", "Egress"])
        self.assertNotIn("ingress", topics)

    def test_egress_allows_only_required_ports(self):
        self.assertEqual([ports(rule) for rule in self.egress("worker")], [[53, 53], [9092], [6379], []])
        self.assertEqual([ports(rule) for rule in self.egress("gateway")], [[53, 53], [9092], [6379]])
        self.assertEqual([ports(rule) for rule in self.egress("topics")], [[53, 53], [9092]])

    def test_egress_ports_follow_the_settings(self):
        self.assertEqual(ports(self.egress("worker", "exactly-once-values.yaml")[1]), [9094])
        for url, wanted in [
            ("redis://redis", [6379]), ("redis://:secret@redis:7000/2", [7000]), ("rediss+cluster://a:7001,b:7002,c:7001", [7001, 7002]),
            ("redis+sentinel://u:p@a,b:26380/images", [26379, 26380, 6379]), ("redis://[fd00::1]:6390", [6390]),
        ]:
            rules = self.egress("worker", values={"secrets": {"HALCYON_REDIS_URL": url}})
            self.assertEqual(ports(rules[2]), wanted, url)
        self.assertEqual(ports(self.egress("worker", "keda-values.yaml")[2]), [6380])

    def test_the_test_pod_reaches_the_gateways(self):
        rules = self.egress("test")
        self.assertEqual([ports(rule) for rule in rules], [[53, 53], [9092], [6379], ["http"]])
        manifests = Manifests("full-values.yaml")
        labels = manifests.one("Pod")["metadata"]["labels"]
        peers = manifests.one("NetworkPolicy", "gateway")["spec"]["ingress"][0]["from"]
        self.assertTrue(any(peer["podSelector"]["matchLabels"].items() <= labels.items() for peer in peers if "podSelector" in peer))

    def test_egress_excludes_internal_addresses(self):
        rule = self.egress("worker")[3]
        for address in "93.184.215.14", "2606:2800:21f:cb07::1":
            self.assertTrue(allows(rule, address, 443), address)
        for address in [
            "10.0.0.1", "172.31.255.255", "192.168.1.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
            "fd00::1", "fe80::1", "::1", "2001:db8::1", "2002:a00:1::1",
        ]:
            self.assertFalse(allows(rule, address, 443), address)

    def test_excluded_addresses_match_the_address_policy(self):
        code = (ROOT / "Sources/Halcyon/HalcyonSources/Addresses/IPAddress.swift").read_text(encoding="utf-8")
        of_program = set(re.findall(r'"([0-9.]+/[0-9]+)"', code))
        self.assertGreater(len(of_program), 10)
        self.assertEqual(set(blocks(self.egress("worker")[3])[0]["except"]), of_program)

    def test_egress_includes_allowed_origins(self):
        rule = self.egress("worker", values={"settings": {"sources": {"allow": ["10.20.0.0/16", "*.internal"]}}})[3]
        self.assertTrue(allows(rule, "10.20.1.1", 8080))
        self.assertFalse(allows(rule, "10.21.1.1", 8080))
        self.assertTrue(allows(self.egress("worker", "full-values.yaml")[3], "93.184.215.14", 443))
        self.assertFalse(allows(self.egress("worker", "full-values.yaml")[3], "93.184.215.14", 8443))

    def test_extra_rules_are_those_of_workers_and_gateways(self):
        rule = {"to": [{"ipBlock": {"cidr": "10.30.0.0/16"}}], "ports": [{"port": 4318}]}
        values = {"networkPolicy": {"extraEgress": [rule]}}
        for component in "worker", "gateway":
            self.assertEqual(self.egress(component, values=values), [*self.egress(component), rule], component)
        for component in "topics", "test":
            self.assertNotIn(rule, self.egress(component, values=values), component)


if __name__ == "__main__":
    unittest.main()
