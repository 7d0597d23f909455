import Concurrency
import Glibc
import Subprocess

/// A private Redis Cluster on 127.0.0.1: masters that share the slots evenly, and replicas of theirs.
public final class RedisClusterServer: Sendable {
    /// The nodes; those that were masters at the beginning come first.
    public var nodes: [RedisServer] { running.withLock { $0 } }
    /// How many of the nodes were masters at the beginning.
    public let masterCount: Int
    private let running: Lock<[RedisServer]>
    /// The nodes write there which of them serve what.
    private let folder: TemporaryFolder
    private let certificate: SelfSignedCertificate?
    private let arguments: [String]

    /// Starts the nodes and waits until all of them know that all slots are served.
    ///
    /// Without replicas, other masters go on when one is gone (`cluster-require-full-coverage no`).
    /// - Parameters:
    ///   - replicas: replicas of each master. A lost master is replaced some 3 s later.
    ///   - certificate: what the nodes show; with it they speak TLS alone, to each other too.
    ///   - arguments: go to every redis-server.
    public static func start(
        masters: Int = 3, replicas: Int = 0, certificate: SelfSignedCertificate? = nil, _ arguments: [String] = []
    ) async throws -> RedisClusterServer {
        let folder = TemporaryFolder("redis-cluster")
        var nodes: [RedisServer] = []
        do {
            for number in 0..<masters * (1 + replicas) {
                nodes.append(try await startNode(number, folder, certificate, arguments))
            }
            let cluster = RedisClusterServer(nodes, masters: masters, folder, certificate, arguments)
            try await cluster.form(replicas: replicas)
            return cluster
        } catch {
            for node in nodes { await node.stop() }
            await folder.remove()
            throw error
        }
    }

    private init(
        _ nodes: [RedisServer], masters: Int, _ folder: TemporaryFolder, _ certificate: SelfSignedCertificate?,
        _ arguments: [String]
    ) {
        running = Lock(nodes)
        masterCount = masters
        self.folder = folder
        self.certificate = certificate
        self.arguments = arguments
    }

    /// `redis+cluster://` with all nodes.
    public var url: String {
        (certificate == nil ? "redis" : "rediss") + "+cluster://"
            + nodes.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    }

    /// The masters of the beginning.
    public var masters: ArraySlice<RedisServer> { nodes.prefix(masterCount) }

    /// The node that serves a slot now, by its own word.
    public func owner(of slot: Int) async throws -> RedisServer {
        for node in nodes where node.process.isRunning {
            let own = try await node.tell("CLUSTER", "NODES").lines.first { $0.contains("myself,master") } ?? ""
            // <id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slots or slot ranges> …
            for range in own.split(separator: " ").dropFirst(8) {
                let ends = range.split(separator: "-").compactMap { Int($0) }
                if let first = ends.first, let last = ends.last, (first...last).contains(slot) { return node }
            }
        }
        throw NotInTime(description: "nobody serves slot \(slot)")
    }

    /// Moves a slot to another master while everything goes on, as `redis-cli --cluster reshard` does.
    public func move(slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        try await beginMove(of: slot, from: source, to: target)
        try await moveKeys(of: slot, from: source, to: target)
        try await endMove(of: slot, from: source, to: target)
    }

    /// From now on the source sends those who ask for keys that it has not (ASK).
    public func beginMove(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        _ = try await target.tell("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", source.tell("CLUSTER", "MYID").trimmed)
        _ = try await source.tell("CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", target.tell("CLUSTER", "MYID").trimmed)
    }

    /// Moves all keys of a slot that is on its way.
    public func moveKeys(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        while case let keys = try await source.tell("CLUSTER", "GETKEYSINSLOT", "\(slot)", "50").lines, !keys.isEmpty {
            _ = try await source.tell(["MIGRATE", "127.0.0.1", "\(target.port)", "", "0", "5000", "KEYS"] + keys)
        }
    }

    /// From now on the source sends everyone on (MOVED).
    public func endMove(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        let identity = try await target.tell("CLUSTER", "MYID").trimmed
        // The target first: the other way round a slot may for a moment be nobody's.
        for node in [target, source] + nodes where node.process.isRunning {
            _ = try? await node.tell("CLUSTER", "SETSLOT", "\(slot)", "NODE", identity)
        }
    }

    /// Kills the node with this number. What it had in memory is gone.
    public func kill(_ number: Int) async {
        nodes[number].process.send(SIGKILL)
        await nodes[number].process.exit()
    }

    /// Starts a node again that was killed: where it was, as what it was.
    public func revive(_ number: Int) async throws {
        let port = nodes[number].port
        let node = try await Self.startNode(number, folder, certificate, arguments, on: port)
        running.withLock { $0[number] = node }
    }

    /// Stops all nodes.
    public func stop() async {
        for node in nodes { await node.stop() }
        await folder.remove()
    }

    // MARK: Starting

    private static func startNode(
        _ number: Int, _ folder: TemporaryFolder, _ certificate: SelfSignedCertificate?, _ arguments: [String],
        on port: UInt16? = nil
    ) async throws -> RedisServer {
        // The nodes talk to each other on a second port. A node that is started again announces its new one.
        try await RedisServer.start(
            port: port,
            [
                "--cluster-enabled", "yes", "--cluster-port", "\(LoopbackPort.reserve())", "--dir", folder.path,
                "--cluster-config-file", "nodes-\(number).conf",
                "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
                "--repl-diskless-sync-delay", "0",
            ] + (certificate == nil ? [] : ["--tls-cluster", "yes", "--tls-replication", "yes"]) + arguments,
            certificate: certificate)
    }

    private func form(replicas: Int) async throws {
        _ = try await RedisCommandLine.run(
            ["--cluster", "create"] + nodes.map { "127.0.0.1:\($0.port)" }
                + ["--cluster-replicas", "\(replicas)", "--cluster-yes"], authority: certificate?.certificate)
        for node in nodes {
            try await until("node \(node.port) knows the cluster") {
                let info = try await node.tell("CLUSTER", "INFO")
                return info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:\(self.nodes.count)")
            }
        }
        for node in nodes[masterCount...] {
            try await until("replica \(node.port) follows its master") {
                try await node.tell("INFO", "replication").contains("master_link_status:up")
            }
        }
    }
}

extension String {
    fileprivate var lines: [String] { split(whereSeparator: \.isNewline).map(String.init) }
    fileprivate var trimmed: String { lines.first ?? "" }
}
