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
