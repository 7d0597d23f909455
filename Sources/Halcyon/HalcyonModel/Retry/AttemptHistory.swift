/// The failed attempts of a job. The history is bounded: only the last attempts are recorded in full.
public struct AttemptHistory: Hashable, Sendable {
    /// A failed attempt.
    public struct Attempt: Hashable, Sendable {
        /// The time of the failure, in milliseconds since 1970.
        public var moment: Int64
        /// The error code.
        public var code: JobErrorCode
        /// The error message, truncated to ``AttemptHistory/longestMessage`` bytes.
        public var message: String

        /// Creates an attempt and truncates its message if necessary.
        public init(moment: Int64, code: JobErrorCode, message: String) {
            self.moment = moment
            self.code = code
            self.message = Self.cut(message)
        }

        private static func cut(_ message: String) -> String {
            guard message.utf8.count > longestMessage else { return message }
            return String(String.UnicodeScalarView(message.unicodeScalars.prefix(bytes: longestMessage))) + "…"
        }
    }

    /// The maximum number of recorded attempts.
    public static let longest = 10
    /// The maximum length of a recorded message, in bytes.
    public static let longestMessage = 300

    /// The total number of attempts.
    public private(set) var count: Int
    /// The start of the first attempt, in milliseconds since 1970.
    public let began: Int64
    /// The last attempts, oldest first.
    public private(set) var attempts: [Attempt]

    /// Creates a history and drops the oldest attempts beyond ``longest``.
    public init(began: Int64, count: Int = 0, attempts: [Attempt] = []) {
        self.began = began
        self.count = max(count, attempts.count)
        self.attempts = attempts.suffix(Self.longest)
    }

    /// Returns the seconds from the start of the first attempt to `moment`, which is in milliseconds since 1970.
    public func elapsed(at moment: Int64) -> Double { Double(max(0, moment - began)) / 1000 }

    /// Records a failed attempt.
    public mutating func add(_ failure: JobError, at moment: Int64) {
        count += 1
        attempts = (attempts + [Attempt(moment: moment, code: failure.code, message: failure.message)])
            .suffix(Self.longest)
    }
}
