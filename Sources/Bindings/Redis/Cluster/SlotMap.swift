/// The primary of each hash slot, and the other nodes of the cluster (CLUSTER SLOTS,
/// https://redis.io/commands/cluster-slots).
struct SlotMap: Hashable {
    /// The primaries that serve slots, ordered by their first slot.
    private(set) var masters: [RedisAddress] = []
    /// The other nodes.
    private(set) var replicas: Set<RedisAddress> = []
    /// The index of the primary of each slot, or ``nobody``.
    private var owners = [UInt16](repeating: nobody, count: HashSlot.count)
    private static let nobody = UInt16.max

    /// Parses the reply of the node at `asked` to CLUSTER SLOTS. An entry without a host refers to the host of that
    /// node.
    /// - Throws: ``RedisError/Code/protocolError`` if the reply is malformed.
    init(_ reply: RedisValue, asked: RedisAddress) throws(RedisError) {
        guard let ranges = reply.array else { throw .noSlots(reply) }
        for range in ranges {
            guard let parts = range.array, parts.count >= 3, let first = parts[0].integer, let last = parts[1].integer,
                first >= 0, last < HashSlot.count, first <= last
            else { throw .noSlots(range) }
            var nodes: [RedisAddress?] = []
            for node in parts[2...] { nodes.append(try Self.address(of: node, asked)) }
            // A node with an unknown name cannot be connected to.
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

    /// Returns the primary of a slot, or nil if no node serves it.
    func master(of slot: HashSlot) -> RedisAddress? {
        let owner = owners[slot.number]
        return owner == Self.nobody ? nil : masters[Int(owner)]
    }

    /// Records that the slot is now served by another primary.
    mutating func move(_ slot: HashSlot, to master: RedisAddress) {
        owners[slot.number] = index(of: master)
        replicas.remove(master)
    }

    /// True if every slot has a primary.
    var isComplete: Bool { !owners.contains(Self.nobody) }
}

extension RedisError {
    fileprivate static func noSlots(_ reply: RedisValue) -> RedisError {
        RedisError(.protocolError, "malformed reply to CLUSTER SLOTS: \(reply)")
    }
}

/// A hash slot of a Redis Cluster, one of 16384 (Redis Cluster specification, "Key distribution model").
struct HashSlot: Hashable {
    static let count = 16_384

    let number: Int

    /// Creates a slot from its number. Nil if there is no such slot.
    init?(number: Int) {
        guard (0..<Self.count).contains(number) else { return nil }
        self.number = number
    }

    /// Computes the slot of a key: CRC16 of the key, or of its hash tag, modulo 16384.
    ///
    /// The hash tag is the text between the first `{` and the first `}` after it, unless it is empty.
    init(of key: RedisArgument) {
        number =
            switch key {
            case .string(let text):
                text.utf8.withContiguousStorageIfAvailable { Self.number(of: $0) }
                    ?? Array(text.utf8).withUnsafeBufferPointer { Self.number(of: $0) }
            case .bytes(let bytes): bytes.withUnsafeBufferPointer { Self.number(of: $0) }
            case .integer(let value): Array(String(value).utf8).withUnsafeBufferPointer { Self.number(of: $0) }
            }
    }

    private static func number(of key: UnsafeBufferPointer<UInt8>) -> Int {
        var hashed = key[...]
        if let open = key.firstIndex(of: UInt8(ascii: "{")) {
            let behind = key[(open + 1)...]
            if let close = behind.firstIndex(of: UInt8(ascii: "}")), close > open + 1 { hashed = key[open + 1..<close] }
        }
        return Int(CRC16.of(hashed)) % count
    }
}

/// CRC-16/XMODEM: polynomial 0x1021, initial value 0, not reflected.
enum CRC16 {
    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) << 8) { value, _ in value & 0x8000 == 0 ? value << 1 : value << 1 ^ 0x1021 }
    }

    static func of(_ bytes: some Sequence<UInt8>) -> UInt16 {
        bytes.reduce(0) { $0 << 8 ^ table[Int($0 >> 8 ^ UInt16($1))] }
    }
}
