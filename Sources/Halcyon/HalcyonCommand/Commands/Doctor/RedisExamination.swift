import Redis

/// Looks at Redis: whether it answers, what it does when its memory is full, whether it saves to disk.
struct RedisExamination {
    let endpoint: RedisEndpoint

    func findings() async -> [Diagnosis] {
        let client = RedisClient(endpoint)
        let result: Result<RedisValue, RedisError>
        do throws(RedisError) {
            result = .success(try await client.send("INFO"))
        } catch {
            result = .failure(error)
        }
        await client.close()
        switch result {
        case .success(let reply): return Self.findings(in: RedisInfo(reply.string ?? ""), at: "\(endpoint)")
        case .failure(let error):
            return [
                .broken(
                    "Redis", "no answer from \(endpoint): \(error)",
                    mend: "start it, or name its address (redis.url, --redis)")
            ]
        }
    }

    /// What the answer to INFO means.
    static func findings(in info: RedisInfo, at address: String) -> [Diagnosis] {
        [.ok("Redis", "version \(info["redis_version"] ?? "unknown") at \(address)"), memory(info), persistence(info)]
    }

    private static func memory(_ info: RedisInfo) -> Diagnosis {
        let used = byteText(info["used_memory"].flatMap { Int($0) } ?? 0)
        let limit = info["maxmemory"].flatMap { Int($0) } ?? 0
        let policy = info["maxmemory_policy"] ?? "unknown"
        guard limit > 0 else {
            return .warning(
                "memory", "\(used) used, and no limit: results may take all memory there is",
                mend: "CONFIG SET maxmemory 2gb, and maxmemory-policy volatile-ttl")
        }
        let facts = "\(used) of \(byteText(limit)) used, policy \(policy)"
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

    private static func persistence(_ info: RedisInfo) -> Diagnosis {
        let saves = info["aof_enabled"] == "1"
        if info["rdb_last_bgsave_status"] == "err" || (saves && info["aof_last_write_status"] == "err") {
            return .warning(
                "disk", "the last save failed; Redis may refuse to write",
                mend: "make room on its disk, or CONFIG SET save \"\" and appendonly no: results can be made again")
        }
        return .ok(
            "disk", saves ? "append-only file on; results can be made again, so it may be off" : "no append-only file")
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
