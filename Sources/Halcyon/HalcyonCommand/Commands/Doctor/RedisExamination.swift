import Redis

/// Looks at Redis: who answers, what is away, what it does when its memory is full, whether it saves to disk.
struct RedisExamination {
    let endpoint: RedisEndpoint

    func findings() async -> [Diagnosis] {
        let client = RedisClient(endpoint)
        var findings: [Diagnosis]
        do throws(RedisError) {
            let words = try await client.sendToEveryMaster(["INFO"])
            switch endpoint.servers {
            case .one: findings = Self.findings(of: words, named: "", at: "\(endpoint)")
            case .sentinels(_, let service):
                findings =
                    Self.findings(
                        of: words, named: "master of \(service), ", at: words.first.map { "\($0.master)" } ?? "")
                    + (await sentinels())
            case .cluster:
                findings = Self.findings(of: words, named: "master, ", at: nil) + (await cluster(client))
            }
        } catch {
            findings = [
                .broken(
                    "Redis", "no answer from \(endpoint): \(error)",
                    mend: "start it, or name its address (redis.url, --redis)")
            ]
        }
        await client.close()
        return findings
    }

    /// What each master said to INFO; those of a cluster are known by their addresses.
    private static func findings(of words: [RedisClient.Word], named kind: String, at address: String?) -> [Diagnosis] {
        words.flatMap { word -> [Diagnosis] in
            switch word.outcome {
            case .success(let reply):
                RedisInfo(reply.string ?? "").findings(
                    kind: kind, at: address ?? "\(word.master)", among: address == nil ? "\(word.master): " : "")
            case .failure(let error):
                [
                    .broken(
                        "Redis", "no answer from \(address ?? "the master at \(word.master)"): \(error)",
                        mend: "start it; meanwhile its results are made again, and come in their events")
                ]
            }
        }
    }

    /// What the nodes say of the cluster as a whole.
    private func cluster(_ client: RedisClient) async -> [Diagnosis] {
        // That Redis does not answer was said above.
        guard let text = try? await client.send("CLUSTER", "NODES").string else { return [] }
        var findings = ClusterNodes(text).findings
        // Who may not ask for it is told nothing about it.
        let coverage = try? await client.sendToEveryMaster(["CONFIG", "GET", "cluster-require-full-coverage"])
        let isRequired = coverage?.contains { node in
            if case .success(let reply) = node.outcome { reply.array?.last?.string == "yes" } else { false }
        }
        if isRequired == true {
            findings.append(
                .warning(
                    "cluster", "while one master is away, the others refuse to serve too",
                    mend: "CONFIG SET cluster-require-full-coverage no, on every node"))
        }
        return findings
    }

    /// Whether every sentinel answers.
    private func sentinels() async -> [Diagnosis] {
        let away = await withTaskGroup(of: Diagnosis?.self) { group in
            for sentinel in endpoint.sentinels {
                group.addTask {
                    let client = RedisClient(sentinel)
                    var diagnosis: Diagnosis?
                    do throws(RedisError) {
                        _ = try await client.send("PING")
                    } catch {
                        diagnosis = .warning(
                            "sentinels", "no answer from \(sentinel): \(error)",
                            mend: "start it: a lost master is replaced only while most sentinels agree")
                    }
                    await client.close()
                    return diagnosis
                }
            }
            var away: [Diagnosis] = []
            for await diagnosis in group { if let diagnosis { away.append(diagnosis) } }
            return away.sorted { $0.message < $1.message }
        }
        return away.isEmpty ? [.ok("sentinels", "\(endpoint.sentinels.count) answer")] : away
    }
}

/// The answer to INFO: lines of `name:value` (https://redis.io/commands/info).
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
    /// What the answer means.
    /// - Parameters:
    ///   - kind: what the server is, such as `master, `.
    ///   - name: what findings about one of several servers begin with.
    func findings(kind: String = "", at address: String, among name: String = "") -> [Diagnosis] {
        [
            .ok("Redis", "\(kind)version \(self["redis_version"] ?? "unknown") at \(address)"), memory(name),
            persistence(name),
        ]
    }

    private func memory(_ name: String) -> Diagnosis {
        let used = byteText(self["used_memory"].flatMap { Int($0) } ?? 0)
        let limit = self["maxmemory"].flatMap { Int($0) } ?? 0
        let policy = self["maxmemory_policy"] ?? "unknown"
        guard limit > 0 else {
            return .warning(
                "memory", "\(name)\(used) used, and no limit: results may take all memory there is",
                mend: "CONFIG SET maxmemory 2gb, and maxmemory-policy volatile-ttl")
        }
        let facts = "\(name)\(used) of \(byteText(limit)) used, policy \(policy)"
        switch policy {
        case "noeviction":
            return .warning(
                "memory", "\(facts): when it is full no result can be stored",
                mend: "CONFIG SET maxmemory-policy volatile-ttl: what would go soonest makes room")
        case _ where policy.hasPrefix("allkeys-"):
            return .warning(
                "memory", "\(facts): keys of others without an expiry may be evicted too",
                mend: "CONFIG SET maxmemory-policy volatile-ttl, unless Halcyon is alone here")
        default: return .ok("memory", facts)
        }
    }

    private func persistence(_ name: String) -> Diagnosis {
        let saves = self["aof_enabled"] == "1"
        if self["rdb_last_bgsave_status"] == "err" || (saves && self["aof_last_write_status"] == "err") {
            return .warning(
                "disk", "\(name)the last save failed; Redis may refuse to write",
                mend: "make room on its disk, or CONFIG SET save \"\" and appendonly no: results can be made again")
        }
        return .ok(
            "disk",
            name + (saves ? "append-only file on; results can be made again, so it may be off" : "no append-only file"))
    }
}

/// The answer to CLUSTER NODES: what a cluster knows of its nodes (https://redis.io/docs/latest/commands/cluster-nodes/).
struct ClusterNodes {
    /// One node.
    private struct Node {
        let address: Substring
        let flags: [Substring]
        var slots = 0

        /// <id> <host:port@bus,name> <flags> <master> <ping> <pong> <epoch> <link> <slot or first-last or [slot on its way] …>
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
        /// Given up by the others, or by one of them.
        var isAway: Bool { flags.contains("fail") || flags.contains("fail?") || flags.contains("noaddr") }
    }

    private let nodes: [Node]

    init(_ text: String) { nodes = text.split(whereSeparator: \.isNewline).compactMap(Node.init) }

    /// What that means for Halcyon.
    var findings: [Diagnosis] {
        let masters = nodes.filter { $0.isMaster && $0.slots > 0 }
        let replicas = nodes.filter { !$0.isMaster }
        let served = masters.filter { !$0.isAway }.reduce(0) { $0 + $1.slots }
        let facts =
            "\(counted(masters.count, "master")), \(counted(replicas.count, "replica")), \(served) of 16384 slots served"
        var findings = [
            served == 16_384
                ? Diagnosis.ok("cluster", facts)
                : .broken(
                    "cluster", facts, mend: "redis-cli --cluster check says which are missing, --cluster fix mends")
        ]
        for node in nodes where node.isAway {
            findings.append(
                .warning(
                    "cluster", "the \(node.isMaster ? "master" : "replica") at \(node.address) is away",
                    mend: "start it, or have the others forget it (CLUSTER FORGET)"))
        }
        return findings
    }
}
