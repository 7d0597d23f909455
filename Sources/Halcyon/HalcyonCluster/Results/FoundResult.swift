import HalcyonModel
import HalcyonWire
import Redis

extension ResultTier {
    /// A result that is there.
    public struct Found: Hashable, Sendable {
        /// What is known of it.
        public let facts: ResultFacts
        /// Milliseconds since 1970, as Redis has them.
        let expiresAtMilliseconds: Double
        /// When it was stored, likewise; nil where nobody asked, and where an older version stored it.
        let storedAt: Double?

        /// When it goes, in seconds since 1970.
        public var expiresAt: Double { expiresAtMilliseconds / 1000 }

        init(facts: ResultFacts, expiresAtMilliseconds: Double, storedAt: Double?) {
            self.facts = facts
            self.expiresAtMilliseconds = expiresAtMilliseconds
            self.storedAt = storedAt
        }

        /// From a reply of the fields `facts` and `expiresAt`, and perhaps `storedAt`.
        init?(_ reply: RedisValue) {
            // Facts that another version wrote may be unreadable.
            guard let fields = reply.array, fields.count >= 2, let json = fields[0].bytes,
                let expiresAt = fields[1].string.flatMap(Double.init), let facts = try? ResultFacts(json: json)
            else { return nil }
            self.init(
                facts: facts, expiresAtMilliseconds: expiresAt,
                storedAt: fields.count > 2 ? fields[2].string.flatMap(Double.init) : nil)
        }
    }
}
