import HalcyonSources
import Testing

@Suite struct AddressPolicyTests {
    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1", "fec0::1", "fc00::1", "fd12:3456::1",
        "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:1234::1", "2001:10::1",
        "2001:db8::1",
        "2002:7f00:1::1", "2002:a00:1::", "3fff::1", "2a00:1450::5efe:10.0.0.1", "2a00:1450::200:5efe:192.168.0.1",
        "4000::1", "5f00::1",
    ])
    func rejectsNonPublicAddresses(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!AddressPolicy().permits(address))
    }

    @Test(arguments: [
        "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "172.15.255.255", "172.32.0.0", "192.0.1.0", "223.255.255.255", "::ffff:1.1.1.1", "2606:4700::1111",
        "2a00:1450:4001::1", "64:ff9b::101:101", "2002:101:101::1", "2a00:1450::5efe:1.1.1.1",
    ])
    func permitsPublicAddresses(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(AddressPolicy().permits(address))
    }

    @Test func allowsByRangeAndHostUnlessDenied() throws {
        let policy = AddressPolicy(
            allow: ["127.0.0.0/8", "fd00::/8", "*.intern.example", "cdn.example"],
            deny: ["127.0.0.9", "bad.intern.example"])
        let loopback = try #require(IPAddress("127.0.0.1"))
        let mapped = try #require(IPAddress("::ffff:127.0.0.1"))
        let denied = try #require(IPAddress("127.0.0.9"))
        let privateAddress = try #require(IPAddress("10.1.2.3"))
        #expect(policy.permits(loopback) && policy.permits(mapped))
        #expect(!policy.permits(denied) && policy.denies(denied))
        #expect(!policy.permits(privateAddress) && !policy.denies(privateAddress))
        #expect(policy.trusts(host: "a.intern.example") && policy.trusts(host: "cdn.example"))
        #expect(!policy.trusts(host: "intern.example") && !policy.trusts(host: "evilintern.example"))
        #expect(policy.denies(host: "bad.intern.example") && !policy.denies(host: "good.intern.example"))
    }

    /// A rule that matches nothing is rejected, because it would let in what it should keep out.
    @Test(arguments: [
        "127.0.0.0/88", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/", "10.0.0.0/8/8", "300.1.1.1", "127.1",
        "10.0.0", "2130706433", "0x7f.1", "0x7f000001", "127.0.0.1.5", "127.0.0.*", "*", "*.", "*.*.test", "a.*.test",
        "10.0.0.0/255.0.0.0", "10.0.0.1-10.0.0.9", "http://x", "http://x/", "x/8", "x:80", "[127.0.0.1]", "[::1]",
        "::1/129", "::g", "", " ", ".", "..", ".test", "a..test", "a b", " a", "-\u{e9}.test", "127.0.0.1\0", "a\0b",
        String(repeating: "a", count: 64) + ".test",
    ])
    func rejectsMalformedRules(text: String) {
        #expect(AddressRule(text) == nil)
    }

    /// The host of a URL may be an address instead of a name.
    @Test(arguments: [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("2001:DB8:0::1", "[2001:db8::1]")])
    func hostPatternMatchesAddresses(text: String, host: String) throws {
        #expect(try #require(HostPattern(text)).matches(host))
        #expect(try !#require(HostPattern(text)).matches("127.0.0.2"))
        let misspelt: [String] = ["300.1.1.1", "[::1]", "127.1"]
        #expect(misspelt.compactMap { HostPattern($0) }.isEmpty)
    }

    @Test(arguments: ["denied.test", "denied.test.", "DENIED.Test", "Denied.TEST."])
    func ignoresCaseAndTrailingDotOfNames(text: String) throws {
        let policy = AddressPolicy(deny: [try #require(AddressRule(text))])
        #expect(policy.denies(host: "denied.test") && policy.denies(host: "denied.test."))
        #expect(!policy.denies(host: "not-denied.test") && !policy.denies(host: "a.denied.test"))
        let below = AddressPolicy(allow: [try #require(AddressRule("*." + text))])
        #expect(below.trusts(host: "a.denied.test") && below.trusts(host: "a.denied.test."))
        #expect(!below.trusts(host: "denied.test"))
    }

    /// Translators and tunnels forward these addresses to the denied one.
    @Test(arguments: [
        "93.184.216.34", "::ffff:93.184.216.34", "::93.184.216.34", "::ffff:0:93.184.216.34", "64:ff9b::93.184.216.34",
        "64:ff9b:1:5db8:d8:2200::", "64:ff9b:1:ab:5d:b8d8:2200::", "64:ff9b:1:2:5d:b8d8:2200::",
        "64:ff9b:1::93.184.216.34", "2002:5db8:d822::1", "2001:0:5db8:d822::1", "2001:0:1:1:1:1:a247:27dd",
        "2606:4700::5efe:93.184.216.34",
    ])
    func denyRuleAppliesToEmbeddedIPv4(text: String) throws {
        let address = try #require(IPAddress(text))
        for rule: AddressRule in ["93.184.216.34", "93.184.0.0/16"] {
            #expect(AddressPolicy(deny: [rule]).denies(address))
            #expect(!AddressPolicy(allow: ["::/0"], deny: [rule]).permits(address))
        }
        #expect(!AddressPolicy(deny: ["93.185.0.0/16"]).denies(address))
    }

    /// An allow rule covers the address, but not the tunnels to it.
    @Test func allowRuleDoesNotApplyToEmbeddedIPv4() throws {
        let policy = AddressPolicy(allow: ["10.0.0.0/8"])
        for text in ["64:ff9b::10.0.0.1", "2002:a00:1::1"] {
            let address = try #require(IPAddress(text))
            #expect(!policy.permits(address))
        }
    }

    @Test(arguments: ["1.2.3.4/33", "::/129", "1.2.3/8", "x", "", "0x7f.1", "1.2.3.4/", "1.2.3.4/a"])
    func rejectsMalformedRanges(text: String) {
        #expect(AddressRange(text) == nil)
    }

    @Test(arguments: ["10.0.0.0/8", "2001:db8::/32", "::1/128", "192.0.2.1/32"])
    func rangeDescriptionRoundTrips(text: String) {
        #expect(AddressRange(text)?.description == text)
    }
}
