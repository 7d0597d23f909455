/// Sees what is asked for on a connection to a broker of Kafka as its bytes go by.
///
/// Each request is its length, four bytes, then what it asks for, two (https://kafka.apache.org/protocol, "Request Header"): its api key.
public struct RequestKeys {
    /// The length and the key of the request that goes by, as far as they have.
    private var head: [UInt8] = []
    /// Bytes of it that are still to come, once its head is there.
    private var rest = 0

    private static let headSize = 6

    /// The beginning of a connection.
    public init() {}

    /// Takes the next bytes.
    /// - Returns: the keys of the requests whose heads were completed by them.
    public mutating func see(_ bytes: ArraySlice<UInt8>) -> [Int16] {
        var (keys, bytes) = ([Int16](), bytes)
        while !bytes.isEmpty {
            let skipped = min(rest, bytes.count)
            rest -= skipped
            bytes = bytes.dropFirst(skipped)
            let part = bytes.prefix(Self.headSize - head.count)
            head += part
            bytes = bytes.dropFirst(part.count)
            guard head.count == Self.headSize else { continue }
            keys.append(Int16(bitPattern: UInt16(head[4]) << 8 | UInt16(head[5])))
            // The length counts the key and not itself.
            rest = max(0, head.prefix(4).reduce(0) { $0 << 8 | Int($1) } - 2)
            head = []
        }
        return keys
    }
}
