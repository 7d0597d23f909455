/// A parser that extracts the API keys of requests from the byte stream to a Kafka broker.
///
/// Each request starts with its length in four bytes and its API key in two bytes (https://kafka.apache.org/protocol,
/// "Request Header").
public struct RequestKeys {
    /// The part of the current request's length and key that has been received.
    private var head: [UInt8] = []
    /// The remaining bytes of the current request after its head.
    private var rest = 0

    private static let headSize = 6

    /// Creates a parser for a new connection.
    public init() {}

    /// Parses the next bytes.
    /// - Returns: The keys of the requests whose heads were completed by them.
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
            // The length includes the key and excludes itself.
            rest = max(0, head.prefix(4).reduce(0) { $0 << 8 | Int($1) } - 2)
            head = []
        }
        return keys
    }
}
