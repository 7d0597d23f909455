/// The rules for retrying failed jobs.
///
/// Short delays use exponential backoff with full jitter (AWS Architecture Blog, "Exponential Backoff and Jitter": a
/// random delay from 0 to `min(cap, base · 2^n)`) and are waited out in the worker. Longer delays go through delay
/// topics of increasing length. They are drawn from the whole range between the previous topic's delay and the topic's
/// own, so that jobs that failed together are not retried together.
public struct RetryPolicy: Hashable, Sendable {
    /// The maximum number of attempts; 1 disables retries.
    public var attempts = 5
    /// The maximum delay before the first retry, in seconds. It doubles with each attempt.
    public var base = 0.5
    /// The maximum delay that is waited out in the worker, in seconds. Longer delays go through a topic; with 0 all do.
    public var inProcess = 2.0
    /// The time after the first attempt within which a job is retried, in seconds.
    public var budget = 1800.0

    /// Creates a policy with default limits.
    public init() {}

    /// A policy without retries.
    public static var once: RetryPolicy {
        var policy = RetryPolicy()
        policy.attempts = 1
        return policy
    }

    /// The state of a job whose last attempt failed.
    public struct RetryContext: Hashable, Sendable {
        /// The number of attempts so far, at least 1.
        public var attempts: Int
        /// The seconds since the start of the first attempt.
        public var elapsed: Double
        /// The seconds until the job's deadline; nil if it has none.
        public var left: Double?
        /// The index of the delay topic it came through last; nil if it came directly from its lane.
        public var topic: Int?

        /// Creates the state of a failed job.
        public init(attempts: Int, elapsed: Double = 0, left: Double? = nil, topic: Int? = nil) {
            self.attempts = attempts
            self.elapsed = elapsed
            self.left = left
            self.topic = topic
        }
    }

    /// The decision about a failed job.
    public enum Decision: Hashable, Sendable {
        /// Retries in the worker after a delay in seconds.
        case now(after: Double)
        /// Retries after a delay in seconds, through the delay topic with this index.
        case later(topic: Int, after: Double)
        /// Gives up.
        case giveUp(RetryExhaustedReason)
    }

    /// Decides whether and when a failed job is retried.
    /// - Parameters:
    ///   - failure: The error of the last attempt.
    ///   - trial: The state of the job.
    ///   - delays: The maximum delays of the delay topics in seconds, in increasing order.
    ///   - dice: A random number, 0 to 1.
    public func decide(
        _ failure: JobError, _ trial: RetryContext, delays: [Double], dice: Double = .random(in: 0..<1)
    ) -> Decision {
        guard failure.isRetryable else { return .giveUp(.final) }
        guard trial.attempts < attempts else { return .giveUp(.attempts) }
        // Earlier retries would fail the same way: the origin sent Retry-After, or the failure is in the negative
        // cache.
        let floor = failure.retryAfter ?? 0
        let ceiling = base * Double(sign: .plus, exponent: min(trial.attempts - 1, 60), significand: 1)
        let (wait, decision): (Double, Decision)
        if trial.topic == nil, floor + ceiling <= inProcess {
            wait = floor + dice * ceiling
            decision = .now(after: wait)
        } else {
            guard let (topic, range) = Self.topic(after: trial.topic, notBefore: floor, delays, inProcess) else {
                return .giveUp(.attempts)
            }
            wait = range.lowerBound + dice * (range.upperBound - range.lowerBound)
            decision = .later(topic: topic, after: wait)
        }
        if let left = trial.left, wait >= left { return .giveUp(.deadline) }
        return trial.elapsed + wait > budget ? .giveUp(.budget) : decision
    }

    /// Returns the next delay topic and its range of delays: the first topic that exceeds the minimum delay, otherwise
    /// the longest. Nil if there are no delay topics.
    private static func topic(
        after last: Int?, notBefore floor: Double, _ delays: [Double], _ shortest: Double
    ) -> (Int, ClosedRange<Double>)? {
        guard !delays.isEmpty else { return nil }
        let next = min(last.map { $0 + 1 } ?? 0, delays.count - 1)
        let topic = delays[next...].firstIndex { $0 > floor } ?? delays.count - 1
        let before = topic > 0 ? delays[topic - 1] : min(shortest, delays[0])
        return (topic, min(max(before, floor), delays[topic])...delays[topic])
    }
}

/// The reason that a failed job is not retried.
public enum RetryExhaustedReason: String, CaseIterable, Sendable {
    /// The error is permanent.
    case final
    /// The maximum number of attempts is reached.
    case attempts
    /// The time budget of the policy is exhausted.
    case budget
    /// The job's deadline would pass before the next attempt.
    case deadline

    /// True if the job is stored as a dead letter, because a later retry could succeed.
    public var isForLater: Bool { self == .attempts || self == .budget }
}

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
