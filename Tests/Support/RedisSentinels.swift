import Subprocess

/// A private master with replicas, and sentinels that look after them, on 127.0.0.1.
public final class RedisSentinels: Sendable {
    /// The name of the service.
    public static let service = "images"

    /// The servers; the first is the master at the beginning.
    public let servers: [RedisServer]
    /// The sentinels.
    public let sentinels: [RedisServer]
    private let folder: TemporaryFolder

    /// Starts all of them and waits until the sentinels know each other and the replicas. A lost master is replaced some 3 s later.
    /// - Parameters:
    ///   - password: what the servers want; nothing when it is nil.
    ///   - sentinelPassword: what the sentinels want.
    ///   - certificate: theirs, when all of them are to speak TLS alone, with each other too.
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
            try await all.settle(sentinelPassword)
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

    /// `host:port` of each sentinel, with commas between them.
    public var hosts: String { sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") }

    /// Stops all of them.
    public func stop() async {
        for server in sentinels + servers { await server.stop() }
        await folder.remove()
    }

    private static func startSentinel(
        _ number: Int, of master: RedisServer, _ folder: TemporaryFolder, _ password: String?, _ own: String?,
        _ certificate: SelfSignedCertificate?
    ) async throws -> RedisServer {
        let service = Self.service
        let port = LoopbackPort.reserve()
        var lines = listening(on: port, certificate)
        lines += [
            "bind 127.0.0.1", "dir \(folder.path)",
            "sentinel monitor \(service) 127.0.0.1 \(master.port) 2",
            "sentinel down-after-milliseconds \(service) 1500", "sentinel failover-timeout \(service) 5000",
        ]
        if let password { lines.append("sentinel auth-pass \(service) \(password)") }
        if let own { lines += ["requirepass \(own)", "sentinel sentinel-pass \(own)"] }
        let file = folder.write(Array(lines.joined(separator: "\n").utf8), to: "sentinel-\(number).conf")
        let process = try await ChildProcess.start(
            "redis-server", [file, "--sentinel"], readyWhenItSays: "+monitor master")
        guard let process else { throw NotInTime(description: "redis-server --sentinel does not start") }
        return RedisServer(port: port, process: process, authority: certificate?.certificate)
    }

    private static func listening(on port: UInt16, _ certificate: SelfSignedCertificate?) -> [String] {
        guard let certificate else { return ["port \(port)"] }
        return [
            "port 0", "tls-port \(port)", "tls-cert-file \(certificate.certificate)", "tls-key-file \(certificate.key)",
            "tls-ca-cert-file \(certificate.certificate)", "tls-auth-clients no", "tls-replication yes",
        ]
    }

    private func settle(_ password: String?) async throws {
        let login = password.map { ["--no-auth-warning", "-a", $0] } ?? []
        for sentinel in sentinels {
            try await until("sentinel \(sentinel.port) knows the others") {
                let facts = try await sentinel.tell(login + ["SENTINEL", "MASTER", Self.service]).split(
                    whereSeparator: \.isNewline)
                func fact(_ name: Substring) -> Int? {
                    facts.firstIndex(of: name).flatMap { Int(facts[$0 + 1]) }
                }
                return fact("num-other-sentinels") == self.sentinels.count - 1
                    && fact("num-slaves") == self.servers.count - 1
            }
        }
    }
}
