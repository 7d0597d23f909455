import Concurrency
import Glibc
import Subprocess
import TestSupport
import Testing

private let canCreateNetworks = geteuid() == 0 && findExecutable("ip") != nil && findExecutable("unshare") != nil

/// The address policy, observed at the socket: in a network namespace of its own every address is local, so that all
/// connections arrive at one listener.
@Suite(.enabled(if: canCreateNetworks, "creating a network requires root, and ip of iproute2"))
struct ConnectedAddressTests {
    /// Loads the URLs one after another.
    private static func load(
        _ urls: [String], allow: String = "", deny: String = ""
    ) async throws -> [String: [(outcome: String, connected: [String])]] {
        let folder = TemporaryFolder("addresses")
        folder.write("nameserver 127.0.0.1\noptions timeout:30 attempts:1\n".utf8, to: "resolv.conf")
        folder.write((urls.joined(separator: "\n") + "\n").utf8, to: "urls")
        folder.write(
            """
            ip link set lo up
            ip route add local 0.0.0.0/0 dev lo
            ip -6 route add local ::/0 dev lo
            mount --bind \(folder.path)/resolv.conf /etc/resolv.conf
            ALLOW='\(allow)' DENY='\(deny)' exec \(BuiltExecutable.path("AddressRunner")) <\(folder.path)/urls
            """.utf8, to: "run")
        let lines = Lock<[String]>([])
        var options = ChildProcess.Options()
        options.output = .lines { line in lines.withLock { $0.append(line) } }
        options.errors = .inherited
        let child = try await ChildProcess.start(
            "unshare", ["--net", "--mount", "sh", "-e", "\(folder.path)/run"], options: options)
        #expect(await child.exit() == .code(0))
        try await until("all results are read") { lines.withLock { $0.count } >= urls.count }
        await folder.remove()
        var results: [String: [(String, [String])]] = [:]
        for line in lines.withLock({ $0 }) {
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3 else { continue }
            results[parts[0], default: []].append((parts[1], parts[2].split(separator: " ").map(String.init)))
        }
        return results
    }

    @Test func connectsOnlyToPermittedAddresses() async throws {
        let tests = AddressTestCase.all
        #expect(tests.count >= 150)
        var results = try await Self.load(tests.map(\.url))
        for test in tests {
            guard let result = results[test.url]?.first else {
                Issue.record("\(test.url): no result")
                continue
            }
            results[test.url]?.removeFirst()
            #expect(
                result.outcome == test.outcome && result.connected == test.connected,
                "\(test.url): \(result.outcome) \(result.connected), expected \(test.outcome) \(test.connected)")
        }
    }

    @Test func appliesAllowAndDenyRules() async throws {
        let expected = [
            ("127.0.0.1", "ok", ["127.0.0.1"]), ("10.0.0.1", "blocked_address", []), ("[fd00::5]", "ok", ["fd00::5"]),
            ("[::ffff:127.0.0.1]", "ok", ["127.0.0.1"]), ("127.0.0.9", "blocked_address", []),
            // An allowed host may resolve to any address that is not denied.
            ("4-0a000001.test", "ok", ["10.0.0.1"]), ("4-7f000009.test", "blocked_address", []),
            ("4-0a000001.example", "dns_error", []), ("93.184.216.34", "blocked_address", []),
            ("1.1.1.1", "ok", ["1.1.1.1"]), ("evil.test", "blocked_address", []),
            ("4-5db8d822.test", "blocked_address", []),
        ]
        let results = try await Self.load(
            expected.map { "http://\($0.0):8080/" }, allow: "127.0.0.0/8,fd00::/8,*.test",
            deny: "127.0.0.9,93.184.216.0/24,evil.test")
        for (host, outcome, connected) in expected {
            let result = results["http://\(host):8080/"]?.first
            #expect(result?.outcome == outcome && result?.connected == connected, "\(host): \(result as Any)")
        }
    }
}
