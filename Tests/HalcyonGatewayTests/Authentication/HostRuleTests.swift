import Testing

@testable import HalcyonGateway

/// Validation of the Host header.
@Suite struct HostRuleTests {
    @Test(arguments: [
        "localhost", "LOCALHOST:8080", "halcyon.localhost", "127.0.0.1", "127.1.2.3:8080", "[::1]", "[::1]:8080", "",
    ])
    func allowsLoopbackHosts(_ host: String) { #expect(HostRule(AccessOptions()).allows(host)) }

    @Test(arguments: [
        "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1.",
        "127.evil",
        "[::1].evil", "[::1].evil:80", "[::1]evil", "[::1", "[::1]:80.evil", "localhost:80.evil", "localhost:80:80",
        "::1", "127.0.0.256", "128.0.0.1", "[::2]", "notlocalhost", "10.0.0.1", "0.0.0.0",
    ])
    func rejectsOtherHosts(_ host: String) {
        #expect(!HostRule(AccessOptions()).allows(host))
    }

    @Test func allowsAnyHostWithKeysOrOpenAccess() {
        var (keyed, open) = (AccessOptions(), AccessOptions())
        keyed.keys = [APIKey(name: "a", secret: "0123456789abcdef", scopes: [.read])]
        open.isOpen = true
        #expect(HostRule(keyed).allows("evil.example") && HostRule(open).allows("evil.example"))
    }
}
