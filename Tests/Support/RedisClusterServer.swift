import Concurrency
import Glibc
import Subprocess

/// A private Redis Cluster on 127.0.0.1. The slots are distributed evenly over the masters.
public final class RedisClusterServer: Sendable {
    /// The nodes. The initial masters come first.
    public var nodes: [RedisServer] { running.withLock { $0 } }
    /// The number of initial masters.
    public let masterCount: Int
    private let running: Lock<[RedisServer]>
    /// The folder of the nodes' cluster configuration files.
    private let folder: TemporaryFolder
    private let certificate: SelfSignedCertificate?
    private let arguments: [String]

    /// Starts the nodes and waits until each of them reports that all slots are served.
    ///
    /// If a master without replicas fails, the other masters keep serving (`cluster-require-full-coverage no`).
    /// - Parameters:
    ///   - replicas: The number of replicas of each master. With replicas, failover takes about 3 s. Without, nodes
    ///     wait 600 s for one that does not respond, so that a busy machine does not count as a failure.
    ///   - certificate: The certificate of nodes that accept only TLS, also between each other; nil for plain TCP.
    ///   - arguments: Arguments for each redis-server.
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
            try await cluster.create(replicas: replicas)
            if replicas == 0 { try await cluster.setNodeTimeout(.seconds(600)) }
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

    /// The `redis+cluster://` URL (`rediss` with TLS) of all nodes.
    public var url: String {
        (certificate == nil ? "redis" : "rediss") + "+cluster://"
            + nodes.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    }

    /// The initial masters.
    public var masters: ArraySlice<RedisServer> { nodes.prefix(masterCount) }

    /// Returns the node that currently reports itself as the owner of a slot.
    public func owner(of slot: Int) async throws -> RedisServer {
        for node in nodes where node.process.isRunning {
            let line = try await node.run("CLUSTER", "NODES").lines.first { $0.contains("myself,master") } ?? ""
            // <id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slots or slot ranges> …
            for range in line.split(separator: " ").dropFirst(8) {
                let ends = range.split(separator: "-").compactMap { Int($0) }
                if let first = ends.first, let last = ends.last, (first...last).contains(slot) { return node }
            }
        }
        throw ConditionTimeout(description: "no node serves slot \(slot)")
    }

    /// Moves a slot to another master while clients keep using the cluster, as `redis-cli --cluster reshard` does.
    public func move(slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        try await beginMove(of: slot, from: source, to: target)
        try await moveKeys(of: slot, from: source, to: target)
        try await endMove(of: slot, from: source, to: target)
    }

    /// Starts moving a slot. From now on the source redirects requests for keys that it no longer has (ASK).
    public func beginMove(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        _ = try await target.run("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", source.run("CLUSTER", "MYID").trimmed)
        _ = try await source.run("CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", target.run("CLUSTER", "MYID").trimmed)
    }

    /// Moves all keys of a slot that is being moved.
    public func moveKeys(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        while case let keys = try await source.run("CLUSTER", "GETKEYSINSLOT", "\(slot)", "50").lines, !keys.isEmpty {
            _ = try await source.run(["MIGRATE", "127.0.0.1", "\(target.port)", "", "0", "5000", "KEYS"] + keys)
        }
    }

    /// Finishes moving a slot. From now on the source redirects all requests for it (MOVED).
    public func endMove(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
        let identity = try await target.run("CLUSTER", "MYID").trimmed
        // The target first. In the reverse order, the slot may have no owner for a moment.
        for node in [target, source] + nodes where node.process.isRunning {
            _ = try? await node.run("CLUSTER", "SETSLOT", "\(slot)", "NODE", identity)
        }
    }

    /// Kills a node by its number. Its data is lost.
    public func kill(_ number: Int) async {
        nodes[number].process.send(SIGKILL)
        await nodes[number].process.exit()
    }

    /// Restarts a killed node on its old port with its old cluster configuration.
    public func revive(_ number: Int) async throws {
        let port = nodes[number].port
        let node = try await Self.startNode(number, folder, certificate, arguments, on: port)
        running.withLock { $0[number] = node }
        if nodes.count == masterCount { try await setNodeTimeout(.seconds(600)) }
    }

    /// Sets the time after which the running nodes count a node that does not respond as failed.
    public func setNodeTimeout(_ timeout: Duration) async throws {
        for node in nodes where node.process.isRunning {
            _ = try await node.run("CONFIG", "SET", "cluster-node-timeout", "\(Int(timeout / .milliseconds(1)))")
        }
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
        // The nodes use a second port for the cluster bus. A restarted node announces its new one.
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

    /// Distributes the slots and introduces the nodes to each other.
    ///
    /// `redis-cli --cluster create` introduces them once, and waits forever if one of them then does not reply within
    /// the node timeout, because the machine is busy.
    private func create(replicas: Int) async throws {
        for (number, master) in masters.enumerated() {
            let (first, end) = (16_384 * number / masterCount, 16_384 * (number + 1) / masterCount)
            _ = try await master.run("CLUSTER", "ADDSLOTSRANGE", "\(first)", "\(end - 1)")
            _ = try await master.run("CLUSTER", "SET-CONFIG-EPOCH", "\(number + 1)")
        }
        try await until("all nodes know each other") {
            let first = self.nodes[0]
            let known = try await first.run("CLUSTER", "NODES")
            for node in self.nodes.dropFirst() {
                // If the handshake takes too long on one side, only the other one knows its peer.
                let knows = try await node.run("CLUSTER", "NODES").contains(":\(first.port)@")
                if knows && known.contains(":\(node.port)@") { continue }
                let bus = try await node.run("CONFIG", "GET", "cluster-port").lines.last ?? ""
                _ = try await first.run("CLUSTER", "MEET", "127.0.0.1", "\(node.port)", bus)
            }
            for node in self.nodes where try await !node.isClusterHealthy(of: self.nodes.count) { return false }
            return true
        }
        for (number, replica) in nodes[masterCount...].enumerated() {
            let master = try await nodes[number % masterCount].run("CLUSTER", "MYID").trimmed
            _ = try await replica.run("CLUSTER", "REPLICATE", master)
        }
        for node in nodes[masterCount...] {
            try await until("replica \(node.port) is in sync with its master") {
                try await node.run("INFO", "replication").contains("master_link_status:up")
            }
        }
    }
}

extension RedisServer {
    /// True if this node knows a number of nodes, and that they serve all slots.
    fileprivate func isClusterHealthy(of count: Int) async throws -> Bool {
        let nodes = try await run("CLUSTER", "NODES").lines
        guard nodes.count == count, !nodes.contains(where: { $0.contains("handshake") }) else { return false }
        return try await run("CLUSTER", "INFO").contains("cluster_state:ok")
    }
}

extension String {
    fileprivate var lines: [String] { split(whereSeparator: \.isNewline).map(String.init) }
    fileprivate var trimmed: String { lines.first ?? "" }
}
