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
