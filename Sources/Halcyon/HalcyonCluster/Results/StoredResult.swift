import HalcyonModel
import HalcyonWire
import Redis

extension ResultTier {
    /// A result as whoever passes it on needs it.
    public struct Stored: Sendable {
        /// What is known of it.
        public let facts: ResultFacts
        /// How long it will still be there, by Redis' own clock, so that the reader's does not matter.
        public var remainingMilliseconds: Int64
        /// The file; nil where nobody asked for it.
        public let body: [UInt8]?
    }

    /// Looks at a result, in one round trip; nil when it is not there, or when another version wrote what this one cannot read. That is no use
    /// of it, and a hand-off stays where it is.
    /// - Throws: ``RedisError``, also when the server has it and cannot tell.
    public func stored(_ key: String, withBody: Bool) async throws(RedisError) -> Stored? {
        let fields: [RedisArgument] = ["HMGET", .string(key), "facts"]
        let replies = try await redis.pipeline([withBody ? fields + ["body"] : fields, ["PTTL", .string(key)]])
        for case .error(let error) in replies { throw error }
        // Facts that another version wrote may be unreadable.
        guard replies.count == 2, let values = replies[0].array, values.count == (withBody ? 2 : 1),
            let json = values[0].bytes, let facts = try? ResultFacts(json: json), let remaining = replies[1].integer
        else { return nil }
        let body = withBody ? values[1].bytes : nil
        if withBody && body == nil { return nil }
        return Stored(facts: facts, remainingMilliseconds: Int64(max(0, remaining)), body: body)
    }

    /// Whether a text is of the kind that ``handOffKey(for:)`` makes.
    public static func isHandOffKey(_ text: String) -> Bool {
        // A result key with the mark in place of the colon between its parts.
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 4, parts[2].elementsEqual("handoff".utf8) else { return false }
        return ResultKey("\(Substring(parts[0])):\(Substring(parts[1])):\(Substring(parts[3]))") != nil
    }
}
