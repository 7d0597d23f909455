import Redis

/// Checks Redis: availability, eviction policy and persistence.
struct RedisCheck {
    let endpoint: RedisEndpoint

    func findings() async -> [DoctorReport] {
        let client = RedisClient(endpoint)
        var findings: [DoctorReport]
        do throws(RedisError) {
            let words = try await client.sendToAllPrimaries(["INFO"])
            switch endpoint.servers {
            case .one: findings = Self.findings(of: words, named: "", at: "\(endpoint)")
            case .sentinels(_, let service):
                findings =
                    Self.findings(
                        of: words, named: "primary of \(service), ", at: words.first.map { "\($0.master)" } ?? "")
                    + (await sentinels())
            case .cluster:
                findings = Self.findings(of: words, named: "primary, ", at: nil) + (await cluster(client))
            }
        } catch {
            findings = [
                .broken(
                    "Redis", "no answer from \(endpoint): \(error)",
                    mend: "start it, or correct its address (redis.url, --redis)")
            ]
        }
        await client.close()
        return findings
    }

    /// The findings from the INFO replies of the primaries. Those of a cluster are named by their addresses.
    private static func findings(of words: [RedisClient.NodeReply], named kind: String, at address: String?)
        -> [DoctorReport]
    {
        words.flatMap { word -> [DoctorReport] in
            switch word.outcome {
            case .success(let reply):
                RedisInfo(reply.string ?? "").findings(
                    kind: kind, at: address ?? "\(word.master)", among: address == nil ? "\(word.master): " : "")
            case .failure(let error):
                [
                    .broken(
                        "Redis", "no answer from \(address ?? "the primary at \(word.master)"): \(error)",
                        mend: "start it; until then its results are rendered again and delivered in events")
                ]
            }
        }
    }

    /// The findings on the cluster as a whole.
    private func cluster(_ client: RedisClient) async -> [DoctorReport] {
        // An unavailable Redis has been reported above.
        guard let text = try? await client.send("CLUSTER", "NODES").string else { return [] }
        var findings = ClusterNodes(text).findings
        // Users without permission for CONFIG get no finding.
        let coverage = try? await client.sendToAllPrimaries(["CONFIG", "GET", "cluster-require-full-coverage"])
        let isRequired = coverage?.contains { node in
            if case .success(let reply) = node.outcome { reply.array?.last?.string == "yes" } else { false }
        }
        if isRequired == true {
            findings.append(
                .warning(
                    "cluster", "if one primary is unavailable, the others refuse commands too",
                    mend: "run CONFIG SET cluster-require-full-coverage no on every node"))
        }
        return findings
    }

    /// The finding on the availability of the sentinels.
    private func sentinels() async -> [DoctorReport] {
        let away = await withTaskGroup(of: DoctorReport?.self) { group in
            for sentinel in endpoint.sentinels {
                group.addTask {
                    let client = RedisClient(sentinel)
                    var diagnosis: DoctorReport?
                    do throws(RedisError) {
                        _ = try await client.send("PING")
                    } catch {
                        diagnosis = .warning(
                            "sentinels", "no answer from \(sentinel): \(error)",
                            mend: "start it; failover requires a majority of the sentinels")
                    }
                    await client.close()
                    return diagnosis
                }
            }
            var away: [DoctorReport] = []
            for await diagnosis in group { if let diagnosis { away.append(diagnosis) } }
            return away.sorted { $0.message < $1.message }
        }
        return away.isEmpty ? [.ok("sentinels", "\(endpoint.sentinels.count) available")] : away
    }
}

/// The reply to INFO: lines of `name:value` (https://redis.io/commands/info).
struct RedisInfo {
    private let values: [Substring: Substring]

    init(_ text: String) {
        let pairs = text.split(whereSeparator: \.isNewline).compactMap { line -> (Substring, Substring)? in
            guard !line.hasPrefix("#"), let colon = line.firstIndex(of: ":") else { return nil }
            return (line[..<colon], line[line.index(after: colon)...])
        }
        values = Dictionary(pairs) { first, _ in first }
    }

    subscript(name: String) -> String? { values[name[...]].map(String.init) }
}

extension RedisInfo {
    /// Returns the findings from the reply.
    /// - Parameters:
    ///   - kind: the role of the server, such as `primary, `.
    ///   - name: the prefix of findings about one of several servers.
    func findings(kind: String = "", at address: String, among name: String = "") -> [DoctorReport] {
        [
            .ok("Redis", "\(kind)version \(self["redis_version"] ?? "unknown") at \(address)"), memory(name),
            persistence(name),
        ]
    }

    private func memory(_ name: String) -> DoctorReport {
        let used = byteText(self["used_memory"].flatMap { Int($0) } ?? 0)
        let limit = self["maxmemory"].flatMap { Int($0) } ?? 0
        let policy = self["maxmemory_policy"] ?? "unknown"
        guard limit > 0 else {
            return .warning(
                "memory", "\(name)\(used) used, no limit; results can exhaust the memory of the machine",
                mend: "run CONFIG SET maxmemory 2gb and CONFIG SET maxmemory-policy volatile-ttl")
        }
        let facts = "\(name)\(used) of \(byteText(limit)) used, policy \(policy)"
        switch policy {
        case "noeviction":
            return .warning(
                "memory", "\(facts): no results can be stored once memory is full",
                mend: "run CONFIG SET maxmemory-policy volatile-ttl to evict the results that expire first")
        case _ where policy.hasPrefix("allkeys-"):
            return .warning(
                "memory", "\(facts): keys of other applications may be evicted too",
                mend: "run CONFIG SET maxmemory-policy volatile-ttl, unless only Halcyon uses this server")
        default: return .ok("memory", facts)
        }
    }

    private func persistence(_ name: String) -> DoctorReport {
        let saves = self["aof_enabled"] == "1"
        if self["rdb_last_bgsave_status"] == "err" || (saves && self["aof_last_write_status"] == "err") {
            return .warning(
                "disk", "\(name)the last save failed; Redis may refuse writes",
                mend: "free disk space, or disable persistence with CONFIG SET save \"\" and CONFIG SET appendonly no")
        }
        return .ok(
            "disk",
            name + (saves ? "append-only file on, which Halcyon does not require" : "no append-only file"))
    }
}

/// The reply to CLUSTER NODES (https://redis.io/docs/latest/commands/cluster-nodes/).
struct ClusterNodes {
    /// A node of the cluster.
    private struct Node {
        let address: Substring
        let flags: [Substring]
        var slots = 0

        /// Parses a line in the format `<id> <host:port@bus,name> <flags> <master> <ping> <pong> <epoch> <link>
        /// <slot or first-last or [migrating slot] …>`.
        init?(_ line: Substring) {
            let words = line.split(separator: " ")
            guard words.count >= 8 else { return nil }
            address = words[1].prefix { $0 != "@" }
            flags = words[2].split(separator: ",")
            for range in words[8...] where !range.hasPrefix("[") {
                let ends = range.split(separator: "-").compactMap { Int($0) }
                if let first = ends.first, let last = ends.last, first <= last { slots += last - first + 1 }
            }
        }

        var isMaster: Bool { flags.contains("master") }
        /// True if the node is marked as failing by another node, or has no known address.
        var isAway: Bool { flags.contains("fail") || flags.contains("fail?") || flags.contains("noaddr") }
    }

    private let nodes: [Node]

    init(_ text: String) { nodes = text.split(whereSeparator: \.isNewline).compactMap(Node.init) }

    /// The findings on nodes and slot coverage.
    var findings: [DoctorReport] {
        let masters = nodes.filter { $0.isMaster && $0.slots > 0 }
        let replicas = nodes.filter { !$0.isMaster }
        let served = masters.filter { !$0.isAway }.reduce(0) { $0 + $1.slots }
        let facts =
            "\(counted(masters.count, "primary node")), \(counted(replicas.count, "replica")), "
            + "\(served) of 16384 slots served"
        var findings = [
            served == 16_384
                ? DoctorReport.ok("cluster", facts)
                : .broken(
                    "cluster", facts, mend: "run redis-cli --cluster check, and --cluster fix to repair it")
        ]
        for node in nodes where node.isAway {
            findings.append(
                .warning(
                    "cluster", "the \(node.isMaster ? "primary" : "replica") at \(node.address) is unavailable",
                    mend: "start it, or remove it from the cluster with CLUSTER FORGET"))
        }
        return findings
    }
}
