/// When a job that failed is tried again, and when it is given up. A pure value.
///
/// Short waits are drawn with full jitter (AWS Architecture Blog, "Exponential Backoff and Jitter": at random from 0 up to
/// `min(cap, base · 2^n)`), and the worker itself waits them out. Longer ones go through topics, one for each length, one after the other; they
/// are drawn from the whole range between the wait before and the topic's own, so that jobs which failed together do not come back together.
public struct RetryPolicy: Hashable, Sendable {
    /// How often a job is tried in all; 1 for once and not again.
    public var attempts = 5
    /// Up to how many seconds the first wait takes; it doubles with each attempt.
    public var base = 0.5
    /// Seconds that a worker waits itself, at most; what takes longer goes through a topic. 0: everything does.
    public var inProcess = 2.0
    /// Seconds after its first attempt when a job is tried no more.
    public var budget = 1800.0

    /// The defaults.
    public init() {}

    /// A policy that tries every job once.
    public static var once: RetryPolicy {
        var policy = RetryPolicy()
        policy.attempts = 1
        return policy
    }

    /// What is known of a job that has failed once more.
    public struct Trial: Hashable, Sendable {
        /// Its attempts so far, all of them failed; at least 1.
        public var attempts: Int
        /// Seconds since the first of them began.
        public var elapsed: Double
        /// Seconds until nobody wants it any more; nil when that is never.
        public var left: Double?
        /// Which of the topics it came through last; nil when it came from its lane.
        public var topic: Int?

        /// Takes the values as they are.
        public init(attempts: Int, elapsed: Double = 0, left: Double? = nil, topic: Int? = nil) {
            self.attempts = attempts
            self.elapsed = elapsed
            self.left = left
            self.topic = topic
        }
    }

    /// What becomes of it.
    public enum Decision: Hashable, Sendable {
        /// The worker tries again after so many seconds.
        case now(after: Double)
        /// It goes through the topic at this place of the list, to be tried after so many seconds.
        case later(topic: Int, after: Double)
        /// It is tried no more.
        case giveUp(GivingUp)
    }

    /// - Parameters:
    ///   - failure: of the last attempt.
    ///   - trial: what was tried so far.
    ///   - delays: the topics, by the longest waits in seconds that go through each, rising.
    ///   - dice: a random number, 0 to 1.
    public func decide(
        _ failure: Failure, _ trial: Trial, delays: [Double], dice: Double = .random(in: 0..<1)
    ) -> Decision {
        guard failure.isRetryable else { return .giveUp(.final) }
        guard trial.attempts < attempts else { return .giveUp(.attempts) }
        // Before that it would be the same failure: its origin said so, or it is remembered so long.
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

    /// The next topic, and from when to when: the first that is longer than what must be waited, else the longest. Nil when there is none.
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

/// Why a job that failed is not tried again.
public enum GivingUp: String, CaseIterable, Sendable {
    /// It would fail again: its source or its picture is to blame.
    case final
    /// It was tried as often as the policy says.
    case attempts
    /// The time was up that the policy gives.
    case budget
    /// Its own deadline comes first.
    case deadline

    /// Whether the job may be wanted later, so that it is put aside for somebody to look at.
    public var isForLater: Bool { self == .attempts || self == .budget }
}
