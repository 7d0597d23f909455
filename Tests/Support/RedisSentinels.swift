import Subprocess

/// A private Redis master with replicas, monitored by sentinels, on 127.0.0.1.
public final class RedisSentinels: Sendable {
    /// The name of the monitored master.
    public static let service = "images"

    /// The Redis servers. The first one is the initial master.
    public let servers: [RedisServer]
    /// The three sentinels.
    public let sentinels: [RedisServer]
    private let folder: TemporaryFolder

    /// Starts all servers and waits until the sentinels have discovered each other and the replicas. Failover takes
    /// about 3 s.
    /// - Parameters:
    ///   - password: The password of the servers; nil for none.
    ///   - sentinelPassword: The password of the sentinels; nil for none.
    ///   - certificate: The certificate of servers and sentinels that accept only TLS, also between each other; nil for
    ///     plain TCP.
    public static func start(
        replicas: Int = 1, password: String? = nil, sentinelPassword: String? = nil,
        certificate: SelfSignedCertificate? = nil
    ) async throws -> RedisSentinels {
        let folder = TemporaryFolder("redis-sentinels")
        var servers: [RedisServer] = []
        var sentinels: [RedisServer] = []
        do {
            let login = password.map { ["--requirepass", $0, "--masterauth", $0] } ?? []
            let secure = certificate == nil ? [] : ["--tls-replication", "yes"]
            let arguments = login + secure + ["--repl-diskless-sync-delay", "0", "--dir", folder.path]
            for number in 0...replicas {
                let master = number == 0 ? [] : ["--replicaof", "127.0.0.1 \(servers[0].port)"]
                servers.append(
                    try await RedisServer.start(arguments + master, certificate: certificate))
            }
            for number in 0..<3 {
                sentinels.append(
                    try await startSentinel(
                        number, of: servers[0], folder, password, sentinelPassword, certificate))
            }
            let all = RedisSentinels(servers, sentinels, folder)
            try await all.waitForDiscovery(sentinelPassword)
            return all
        } catch {
            for server in sentinels + servers { await server.stop() }
            await folder.remove()
            throw error
        }
    }

    private init(_ servers: [RedisServer], _ sentinels: [RedisServer], _ folder: TemporaryFolder) {
        self.servers = servers
        self.sentinels = sentinels
        self.folder = folder
    }

    /// The addresses of the sentinels as `host:port`, separated by commas.
    public var hosts: String { sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") }

    /// Stops all servers and sentinels.
    public func stop() async {
        for server in sentinels + servers { await server.stop() }
        await folder.remove()
    }

    private static func startSentinel(
        _ number: Int, of master: RedisServer, _ folder: TemporaryFolder, _ password: String?,
        _ sentinelPassword: String?,
        _ certificate: SelfSignedCertificate?
    ) async throws -> RedisServer {
        let service = Self.service
        let port = LoopbackPort.reserve()
        var lines = listenerSettings(on: port, certificate)
        lines += [
            "bind 127.0.0.1", "dir \(folder.path)",
            "sentinel monitor \(service) 127.0.0.1 \(master.port) 2",
            "sentinel down-after-milliseconds \(service) 1500", "sentinel failover-timeout \(service) 5000",
        ]
        if let password { lines.append("sentinel auth-pass \(service) \(password)") }
        if let sentinelPassword {
            lines += ["requirepass \(sentinelPassword)", "sentinel sentinel-pass \(sentinelPassword)"]
        }
        let file = folder.write(Array(lines.joined(separator: "\n").utf8), to: "sentinel-\(number).conf")
        let process = try await ChildProcess.start(
            "redis-server", [file, "--sentinel"], readyWhenItSays: "+monitor master")
        guard let process else { throw ConditionTimeout(description: "redis-server --sentinel failed to start") }
        return RedisServer(port: port, process: process, authority: certificate?.certificate)
    }

    private static func listenerSettings(on port: UInt16, _ certificate: SelfSignedCertificate?) -> [String] {
        guard let certificate else { return ["port \(port)"] }
        return [
            "port 0", "tls-port \(port)", "tls-cert-file \(certificate.certificate)", "tls-key-file \(certificate.key)",
            "tls-ca-cert-file \(certificate.certificate)", "tls-auth-clients no", "tls-replication yes",
        ]
    }

    private func waitForDiscovery(_ password: String?) async throws {
        let login = password.map { ["--no-auth-warning", "-a", $0] } ?? []
        for sentinel in sentinels {
            try await until("sentinel \(sentinel.port) has discovered all others and the replicas") {
                let fields = try await sentinel.run(login + ["SENTINEL", "MASTER", Self.service]).split(
                    whereSeparator: \.isNewline)
                func field(_ name: Substring) -> Int? {
                    fields.firstIndex(of: name).flatMap { Int(fields[$0 + 1]) }
                }
                return field("num-other-sentinels") == self.sentinels.count - 1
                    && field("num-slaves") == self.servers.count - 1
            }
        }
    }
}
