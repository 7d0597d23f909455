/// Which master serves which slot, and which other nodes there are (CLUSTER SLOTS, https://redis.io/commands/cluster-slots).
struct SlotMap: Hashable {
    /// The masters that serve slots, in the order of their first slot.
    private(set) var masters: [RedisAddress] = []
    /// The other nodes.
    private(set) var replicas: Set<RedisAddress> = []
    /// For each slot the index of its master, or ``nobody``.
    private var owners = [UInt16](repeating: nobody, count: HashSlot.count)
    private static let nobody = UInt16.max

    /// Reads the answer to CLUSTER SLOTS of the node at `asked`: where it names no host, its own is meant.
    /// - Throws: ``RedisError/Code/protocolError`` for what is no such answer.
    init(_ reply: RedisValue, asked: RedisAddress) throws(RedisError) {
        guard let ranges = reply.array else { throw .noSlots(reply) }
        for range in ranges {
            guard let parts = range.array, parts.count >= 3, let first = parts[0].integer, let last = parts[1].integer,
                first >= 0, last < HashSlot.count, first <= last
            else { throw .noSlots(range) }
            var nodes: [RedisAddress?] = []
            for node in parts[2...] { nodes.append(try Self.address(of: node, asked)) }
            // A node whose name is not known cannot be dialled.
            if let master = nodes[0] {
                let index = index(of: master)
                for slot in first...last { owners[slot] = index }
            }
            replicas.formUnion(nodes.dropFirst().compactMap { $0 })
        }
        replicas.subtract(masters)
    }

    private static func address(of node: RedisValue, _ asked: RedisAddress) throws(RedisError) -> RedisAddress? {
        guard let parts = node.array, parts.count >= 2, let port = parts[1].integer.flatMap(UInt16.init(exactly:))
        else {
            throw .noSlots(node)
        }
        let host = parts[0].string ?? ""
        if host == "?" || port == 0 { return nil }
        return .tcp(host: host.isEmpty ? asked.host ?? "" : host, port: port)
    }

    private mutating func index(of master: RedisAddress) -> UInt16 {
        if let known = masters.firstIndex(of: master) { return UInt16(known) }
        masters.append(master)
        return UInt16(masters.count - 1)
    }

    /// The master of a slot; nil when nobody serves it.
    func master(of slot: HashSlot) -> RedisAddress? {
        let owner = owners[slot.number]
        return owner == Self.nobody ? nil : masters[Int(owner)]
    }

    /// A server said that the slot is served by another one now.
    mutating func move(_ slot: HashSlot, to master: RedisAddress) {
        owners[slot.number] = index(of: master)
        replicas.remove(master)
    }

    /// Whether every slot has a master.
    var isComplete: Bool { !owners.contains(Self.nobody) }
}

extension RedisError {
    fileprivate static func noSlots(_ reply: RedisValue) -> RedisError {
        RedisError(.protocolError, "no answer to CLUSTER SLOTS: \(reply)")
    }
}
