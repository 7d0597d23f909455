/// How the attempts at a job went that failed. A pure value, and bounded: of many attempts the last ones are told in full.
public struct AttemptHistory: Hashable, Sendable {
    /// One of them.
    public struct Attempt: Hashable, Sendable {
        /// When it had failed, in milliseconds since 1970.
        public var moment: Int64
        /// Why.
        public var code: FailureCode
        /// What had happened, cut to ``AttemptHistory/longestMessage`` bytes.
        public var message: String

        /// Takes the values; a message that is too long is cut.
        public init(moment: Int64, code: FailureCode, message: String) {
            self.moment = moment
            self.code = code
            self.message = Self.cut(message)
        }

        private static func cut(_ message: String) -> String {
            guard message.utf8.count > longestMessage else { return message }
            return String(String.UnicodeScalarView(message.unicodeScalars.prefix(bytes: longestMessage))) + "…"
        }
    }

    /// How many attempts are told in full.
    public static let longest = 10
    /// Bytes of the longest message that is told in full.
    public static let longestMessage = 300

    /// How many attempts there were.
    public private(set) var count: Int
    /// When the first of them began, in milliseconds since 1970.
    public let began: Int64
    /// The last of them, the oldest first.
    public private(set) var attempts: [Attempt]

    /// Takes the values; of too many attempts the last.
    public init(began: Int64, count: Int = 0, attempts: [Attempt] = []) {
        self.began = began
        self.count = max(count, attempts.count)
        self.attempts = attempts.suffix(Self.longest)
    }

    /// Seconds from the first attempt's begin to a moment, which is in milliseconds since 1970.
    public func elapsed(at moment: Int64) -> Double { Double(max(0, moment - began)) / 1000 }

    /// One more attempt has failed.
    public mutating func add(_ failure: Failure, at moment: Int64) {
        count += 1
        attempts = (attempts + [Attempt(moment: moment, code: failure.code, message: failure.message)])
            .suffix(Self.longest)
    }
}
