import Redis
import Telemetry
import Threads

/// The leases of a process: who of all workers makes a product, and how the others hear that it is made.
///
/// A lease saves work and nothing rests on it: it may be lost, given twice, or not be had at all. What keeps results right is the fence that
/// scripts check when they store (``Fencing``). While Redis is away work goes on without leases, after
/// ``LeaseOptions/patience``; as soon as it answers again, with them.
public final class Leases: Sendable {
    /// What it was told.
    public let options: LeaseOptions
    private let book: LeaseBook
    private let wakeups = Wakeups()
    let keeper: LeaseKeeper
    private let outage: LeaseOutage
    private let metrics: LeaseMetrics
    /// Those of giving back and of prolonging: leases run out by themselves.
    private let errors: ToleratedErrors
    private let isClosed = Lock(false)

    /// Begins to listen for ends of others' leases.
    /// - Parameters:
    ///   - redis: with the subscriber its maker's, who closes both after ``close()``.
    public init(
        _ redis: RedisClient, _ subscriber: RedisSubscriber, _ options: LeaseOptions = LeaseOptions(), log: Log,
        metrics: Metrics
    ) {
        self.options = options
        self.metrics = LeaseMetrics(metrics)
        errors = ToleratedErrors(of: "leases", log: log, metrics: metrics)
        let process = String(UInt64.random(in: .min ... .max), radix: 36)
        book = LeaseBook(redis: redis, process: process, duration: options.duration)
        keeper = LeaseKeeper(book, every: options.duration / 3, lost: self.metrics.lost, errors)
        outage = LeaseOutage(redis, log, self.metrics.isCoalescing)
        wakeups.listen(to: "halcyon:process:\(process)", subscriber, whenDown: options.recheck)
        metrics.reading(.gauge, "halcyon_leases_held", help: "Leases that this worker holds now.") {
            [weak keeper] in Double(keeper?.count ?? 0)
        }
    }

    /// Ends what goes on in the background, and gives back what is still held: work that this process cuts short when it leaves is no
    /// death. It takes a moment at most, whether or not Redis answers; what was not given back then runs out by itself.
    public func close() async {
        isClosed.withLock { $0 = true }
        await wakeups.close()
        let held = await keeper.close()
        await outage.close()
        guard !held.isEmpty, !isWithout else { return }
        let ending = Task { [book, errors] in _ = await errors.tolerating { try await book.giveUp(held) } }
        let patience = Task {
            try await Task.sleep(for: Self.lastPatience)
            ending.cancel()
        }
        await ending.value
        patience.cancel()
    }

    /// How long giving back may take in the end.
    private static let lastPatience = Duration.seconds(2)

    /// Whether work goes on without leases at present.
    public var isWithout: Bool { outage.isOn }

    /// Attempts to get products of one source made, by this worker or by others. Whatever comes of it, what the attempt still holds is given
    /// back in the end.
    /// - Parameter names: of all that is wanted.
    /// - Throws: what `body` throws.
    public func attempting<Outcome: Sendable>(
        _ names: [LeaseName], _ kind: LeaseKind, _ urgency: Urgency,
        _ body: (LeaseAttempt) async throws -> Outcome
    ) async throws -> Outcome {
        let attempt = attempt(names, kind, urgency)
        do {
            let outcome = try await body(attempt)
            await attempt.end()
            return outcome
        } catch {
            // Not cancelled with the task: others wait for the leases.
            await Task { await attempt.end() }.value
            throw error
        }
    }

    /// Begins an attempt, which has to be ended.
    func attempt(_ names: [LeaseName], _ kind: LeaseKind, _ urgency: Urgency) -> LeaseAttempt {
        LeaseAttempt(self, wakeups.watch(names), metrics[kind], urgency)
    }

    /// Counts jobs that found the work under way in this process.
    public func joined(_ kind: LeaseKind, _ count: Int) { if count > 0 { metrics[kind].joined.add(count) } }

    // MARK: For attempts

    /// Asks, and asks again for a while when there is no answer.
    /// - Throws: `CancellationError`.
    func enter(
        _ wanted: [(name: LeaseName, seen: Seen)], attempt: String, level: Int
    ) async throws -> [LeaseAnswer] {
        let giveUpAt = ContinuousClock.now + options.patience
        var backoff = Backoff(initial: .milliseconds(50), maximum: .milliseconds(500))
        while !outage.isOn {
            // Nobody would give it back.
            if isClosed.withLock({ $0 }) { throw CancellationError() }
            do throws(RedisError) {
                return try await book.enter(wanted, attempt: attempt, level: level)
            } catch {
                switch error.code {
                case .cancelled, .closed: throw CancellationError()
                case _ where error.isRetriable && .now < giveUpAt: break
                default: outage.begin(error)
                }
            }
            if !outage.isOn { try await Task.sleep(for: backoff.next()) }
        }
        return wanted.map { _ in .without }
    }

    func hold(_ lease: Lease, _ urgency: Urgency) {
        keeper.add(lease, urgency)
        wakeups.onRaise(of: lease) { urgency.raise(to: $0) }
    }

    private func forget(_ lease: Lease) {
        keeper.remove(lease)
        wakeups.onRaise(of: lease, nil)
    }

    func release(_ lease: Lease, _ outcome: LeaseOutcome, deaths: Int? = nil) async {
        forget(lease)
        // Also when the task was cancelled. Where Redis is away the lease runs out by itself.
        _ = await Task { await errors.tolerating { try await book.release(lease, outcome, deaths: deaths) } }.value
    }

    /// Whether anybody else waits for what is made under leases of one attempt. If nobody does, they are at their end.
    /// - Returns: nil when there is no answer.
    func areWanted(_ leases: [Lease]) async -> Bool? {
        let answer = await errors.tolerating { try await book.areWanted(leases) }
        if answer == false { for lease in leases { forget(lease) } }
        return answer
    }

    func leave(_ names: [LeaseName], attempt: String) async {
        for name in names { await errors.tolerating { try await book.leave(name, attempt: attempt) } }
    }

    /// The lease of an attempt that does not know whether it has it.
    func perhaps(_ name: LeaseName, attempt: String) -> Lease {
        Lease(name: name, owner: book.owner(attempt), fence: 0, deaths: 0)
    }
}

/// What a lease is about: one product that one worker at a time makes, such as a result or a source.
///
/// It is named by the key under which the product is kept. The keys of the lease stand in the product's slot of a Redis Cluster.
///
/// | key | holds |
/// |---|---|
/// | `halcyon:{S}:lease:ITEM` | who makes it: `PROCESS:ATTEMPT:FENCE:LEVEL`; it goes by itself |
/// | `halcyon:{S}:waiters:ITEM` | who waits for it, `PROCESS:ATTEMPT`: a sorted set by when they last asked, in milliseconds |
/// | `halcyon:{S}:fences` | of all items of the source: `last`, the highest fence given; `floor` and `floor:ITEM`, below which nothing may be stored any more; `deaths:ITEM`, how many attempts at it never ended |
public struct LeaseName: Hashable, Sendable {
    /// The key of the product.
    public let product: String
    private let tag: Substring
    /// The last part of the product's key.
    public let item: Substring

    /// - Parameter product: a key `PREFIX{TAG}:ITEM`.
    public init(product: String) {
        guard let brace = product.firstIndex(of: "}") else {
            preconditionFailure("the key of a product needs a hash tag: \(product)")
        }
        self.product = product
        tag = product[...brace]
        item = product[brace...].dropFirst(2)
    }

    var lease: String { "\(tag):lease:\(item)" }
    var waiters: String { "\(tag):waiters:\(item)" }
    /// The fences of all items of one source.
    public var fences: String { "\(tag):fences" }
}

/// That this process makes a product for now.
public struct Lease: Hashable, Sendable {
    /// What it makes.
    public let name: LeaseName
    /// Who it is: the process and the attempt, new for each.
    public let owner: String
    /// Rises with each lease of a source: what was made under an older one overwrites nothing newer.
    public let fence: Int
    /// How many attempts at it had leases before this one and never ended them: their process died or hung in the middle, or stood still
    /// for so long that the lease ran out. Forgotten when one comes to an end that shows that it can be made or cannot, when it is
    /// purged, and with the fences.
    public let deaths: Int
}

/// What a process knows already of a product that it wants.
public enum Seen: Hashable, Sendable {
    /// That it is not there.
    case nothing
    /// A version that is of no use, with its fence; a newer one may be.
    case version(Int)
    /// Whatever is there, it is to be made anew.
    case anything
}

/// What a worker is told that wants a product.
public enum LeaseAnswer: Hashable, Sendable {
    /// It is there, or a newer version than was seen.
    case there
    /// Make it.
    case mine(Lease)
    /// Another attempt is at it.
    case held(Holder)
    /// Nobody can be asked: make it, unprotected.
    case without
}

/// Who makes a product at present.
public struct Holder: Hashable, Sendable {
    /// The process and the attempt.
    public let owner: String
    /// The lease's fence.
    public let fence: Int
    /// When the lease ends, if it is not renewed.
    public let left: Duration
}

/// How long things take with leases.
public struct LeaseOptions: Hashable, Sendable {
    /// How long a lease lasts that is not renewed: so long nobody does the work of a worker that has died. It is renewed three
    /// times in this time.
    public var duration = Duration.seconds(10)
    /// Who waits asks again after this time at the latest, whether or not it was woken.
    public var recheck = Duration.seconds(1)
    /// For how long Redis may give no answer until work goes on without leases.
    public var patience = Duration.seconds(6)

    /// Deaths (``Lease/deaths``) after which a product is poison.
    public var deaths = DeathLimits()

    /// The defaults.
    public init() {}
}
