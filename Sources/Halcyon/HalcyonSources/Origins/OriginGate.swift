import HalcyonModel
import Redis
import Telemetry
import Threads

/// Lets loads of an origin begin when the origin can take them.
///
/// Loads of one origin wait in the order in which they came; the first of them alone asks, so that thousands that wait cost no
/// more than one. Who waits holds nothing that loads of other origins need.
struct OriginGate: Sendable {
    /// A load that was let through.
    struct Pass: Sendable {
        fileprivate let origin: Origin
        fileprivate let load: String
        fileprivate let url: String
        fileprivate let book: any OriginBook
    }

    /// Whose turn it is to ask about an origin.
    private struct Turn {
        let slots: Slots
        var users = 0
    }

    private let shared: (any OriginBook)?
    private let own: LocalOriginBook
    private let turns = Lock<[Origin: Turn]>([:])
    private let shares: [Int]
    private let errors: ToleratedErrors

    /// - Parameters:
    ///   - redis: where all workers count; without it, and while it is away, this process counts alone, and takes half.
    ///   - shares: of the lanes, of the turns at one origin.
    ///   - errors: those of Redis.
    init(_ redis: RedisClient?, _ limits: OriginLimits, shares: [Int] = [1], errors: ToleratedErrors = .silent) {
        self.shares = shares
        self.errors = errors
        shared = redis.map { OriginKeeper(RedisOriginBook($0, limits), lease: limits.lease, errors) }
        var own = limits
        if redis != nil { own.concurrency = max(1, limits.concurrency / 2) }
        // A process hears of the end of all its loads.
        own.lease = .seconds(86_400)
        self.own = LocalOriginBook(own)
    }

    /// Waits until a load may begin. Whoever was let through says how it went with ``leave(_:_:)``.
    ///
    /// - Parameter url: an identifier of what is loaded, for the circuit breaker.
    /// - Throws: ``Failure`` `origin_unavailable` while the circuit breaker is open; `CancellationError`.
    func enter(_ origin: Origin, _ url: String, _ urgency: Urgency? = nil) async throws -> Pass {
        let slots = turns.withLock { turns in
            var turn = turns[origin] ?? Turn(slots: Slots(1, shares: shares))
            turn.users += 1
            turns[origin] = turn
            return turn.slots
        }
        defer {
            turns.withLock { turns in
                turns[origin]?.users -= 1
                if turns[origin]?.users == 0 { turns[origin] = nil }
            }
        }
        try await slots.acquire(urgency)
        defer { slots.release() }
        let load = String(UInt64.random(in: .min ... .max), radix: 36)
        while true {
            let (answer, book) = await ask(origin, load)
            switch answer {
            case .go: return Pass(origin: origin, load: load, url: url, book: book)
            // Not all processes at the same moment.
            case .wait(let time): try await Task.sleep(for: time * Double.random(in: 0.75...1.25))
            case .resting(let time):
                throw Failure(
                    .originUnavailable,
                    "the circuit breaker of \(origin) is open for \(time.wholeMilliseconds) ms more: too many loads failed"
                ).notBefore(time / .seconds(1))
            }
        }
    }

    /// A load has ended.
    func leave(_ pass: Pass, _ outcome: OriginOutcome) async {
        // Also when the task that loaded was cancelled. Where Redis is away the load counts until its lease is over.
        _ = await Task {
            await errors.tolerating { try await pass.book.leave(pass.origin, load: pass.load, of: pass.url, outcome) }
        }.value
    }

    private func ask(_ origin: Origin, _ load: String) async -> (OriginAnswer, any OriginBook) {
        if let shared, let answer = await errors.tolerating({ try await shared.enter(origin, load: load) }) {
            return (answer, shared)
        }
        return (own.enter(origin, load: load), own)
    }
}

extension OriginOutcome {
    /// What a failure to load says of the origin.
    init(_ failure: Failure) {
        switch failure.code {
        case .dnsError, .connectError, .tlsError, .timeout: self = .failed
        case .httpError: self = failure.isRetryable ? .failed : .answered
        default: self = .answered
        }
    }
}
