import Concurrency
import HalcyonModel
import Telemetry

/// The counters of a worker's jobs.
struct WorkerMetrics: Sendable {
    private let lanes: [Lane: LaneMetrics]
    /// The counters by tenant; nil if there are none.
    private let tenants: TenantMetrics?
    private let retries: [RetryMechanism: [JobErrorCode: Counter]]
    private let dead: [JobErrorCode: Counter]
    private let fallbacks: [JobErrorCode: Counter]
    private let lookups: (hits: Counter, misses: Counter)
    /// The number of unknown top-level fields in jobs.
    let unknownFields: Counter
    /// The number of times that a job was written to a delay topic, to wait for its start.
    let scheduled: Counter
    /// The number of jobs in flight that wait for their start or their next attempt.
    let delayed: Gauge

    /// The mechanism by which a job is retried.
    enum RetryMechanism: String, CaseIterable {
        /// A retry within the same worker process.
        case process
        /// A retry through a retry topic.
        case topic
    }

    /// - Parameter tenants: The maximum number of tenants with counters of their own; 0 for no counters by tenant.
    init(_ metrics: Metrics, tenants: Int) {
        self.tenants = tenants > 0 ? TenantMetrics(metrics, most: tenants) : nil
        lanes = Dictionary(uniqueKeysWithValues: Lane.allCases.map { ($0, LaneMetrics(metrics, $0)) })
        retries = Dictionary(
            uniqueKeysWithValues: RetryMechanism.allCases.map { way in
                (
                    way,
                    .ofCodes {
                        metrics.counter(
                            "halcyon_retries_total",
                            help:
                                "Failed attempts at jobs that are retried, by error code and retry mechanism.",
                            labels: ["code": $0.rawValue, "way": way.rawValue])
                    }
                )
            })
        dead = .ofCodes {
            metrics.counter(
                "halcyon_dead_letters_total",
                help: "Messages written to the dead-letter topic, by error code.",
                labels: ["code": $0.rawValue])
        }
        fallbacks = .ofCodes {
            metrics.counter(
                "halcyon_fallbacks_total",
                help: "Jobs that ended with their fallback picture, by the error code of their failure.",
                labels: ["code": $0.rawValue])
        }
        func lookups(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_result_lookups_total",
                help: "Result cache lookups, by result: hit or miss.",
                labels: ["result": result])
        }
        self.lookups = (lookups("hit"), lookups("miss"))
        unknownFields = metrics.counter(
            "halcyon_unknown_fields_total", help: "Unknown top-level fields in jobs.")
        scheduled = metrics.counter(
            "halcyon_scheduled_total", help: "Jobs written to a delay topic, where they wait for their start.")
        delayed = metrics.gauge(
            "halcyon_jobs_delayed", help: "Jobs in flight that wait for their start or their next attempt.")
    }

    /// Counts a job that ended with an event.
    /// - Parameter isRetried: True if the job has waited in a retry topic.
    func ended(_ body: Event.Body, _ lane: Lane, of tenant: String?, isRetried: Bool = false) {
        lanes[lane]?.ended(body, isRetried: isRetried)
        if let tenant { tenants?.ended(body, of: tenant) }
    }

    /// Counts a message that did not contain a valid job.
    func refused(_ code: JobErrorCode, _ lane: Lane) {
        lanes[lane]?.failed(code)
        if code == .invalidJob { putAside(code) }
    }

    /// Counts the cache hits and misses of a job's variants.
    func lookedUp(_ job: JobContext, hits: Int) {
        guard job.job.cache.looksAtResults else { return }
        lookups.hits.add(hits)
        lookups.misses.add(job.keys.count - hits)
    }

    /// Counts a failed attempt that is retried.
    func retried(_ code: JobErrorCode, _ way: RetryMechanism) { retries[way]?[code]?.add() }

    /// Counts a job that ended with its fallback picture.
    func fellBack(_ code: JobErrorCode) { fallbacks[code]?.add() }

    /// Counts a message that was written to the dead-letter topic.
    func putAside(_ code: JobErrorCode) { dead[code]?.add() }
}

extension [JobErrorCode: Counter] {
    /// Creates one counter for each error code.
    static func ofCodes(_ counter: (JobErrorCode) -> Counter) -> Self {
        Dictionary(uniqueKeysWithValues: JobErrorCode.allCases.map { ($0, counter($0)) })
    }
}

/// The metrics of the jobs of one lane.
struct LaneMetrics: Sendable {
    private let ready: [CacheStatus: Counter]
    private let failures: [JobErrorCode: Counter]
    private let cancelled: Counter
    private let superseded: Counter
    /// The histograms, indexed by the raw values of the stages.
    private let stages: [Histogram]

    init(_ metrics: Metrics, _ lane: Lane) {
        func ended(_ outcome: String, _ reason: String = "") -> Counter {
            metrics.counter(
                "halcyon_jobs_total",
                help: "Completed jobs, by lane, outcome, and result origin or error code.",
                labels: ["lane": lane.rawValue, "outcome": outcome, "reason": reason])
        }
        ready = Dictionary(
            uniqueKeysWithValues: CacheStatus.allCases.map { ($0, ended("ready", $0.rawValue)) })
        failures = .ofCodes { ended("failed", $0.rawValue) }
        cancelled = ended("cancelled")
        superseded = ended("superseded")
        stages = Timings.Stage.allCases.map {
            metrics.histogram(
                "halcyon_stage_duration_seconds",
                help:
                    "Time that jobs spend in each stage; total is from taking a job to its end, without queued.",
                labels: ["lane": lane.rawValue, "stage": $0.name])
        }
    }

    /// Counts a job that ended with an event.
    func ended(_ body: Event.Body, isRetried: Bool) {
        switch body {
        case .ready(let ready):
            self.ready[ready.origin]?.add()
            observe(ready.timings, isRetried)
        case .failed(let failure, _, let timings):
            failed(failure.code)
            observe(timings, isRetried)
        case .cancelled: cancelled.add()
        case .superseded: superseded.add()
        case .started, .progress, .purged: break
        }
    }

    /// Counts a failed job.
    func failed(_ code: JobErrorCode) { failures[code]?.add() }

    /// Records the durations of stages. If a job has waited in retry topics, its time in the queue includes these waits
    /// and says nothing about the number of workers, so it is left out.
    private func observe(_ timings: Timings, _ isRetried: Bool) {
        for stage in Timings.Stage.allCases where stage != .queued || !isRetried {
            if let milliseconds = timings[stage] { stages[stage.rawValue].observe(milliseconds / 1000) }
        }
    }
}

/// The counters of the busiest tenants. The number of series is bounded: all other tenants share one set of counters,
/// whose label `tenant` is `(others)`. Jobs without a tenant are not counted.
///
/// The busiest tenants are found with Space-Saving (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent
/// and Top-k Elements in Data Streams", ICDT 2005), in a sketch of four times as many entries. Its counts are halved
/// with each selection, so that tenants that have become idle make room.
final class TenantMetrics: Sendable {
    private final class Counters: Sendable {
        let ended: [Event.Kind: Counter]
        let seconds = Lock(0.0)

        init(_ metrics: Metrics, of tenant: String) {
            let kinds = Event.Kind.allCases.filter(\.isTerminal)
            ended = Dictionary(
                uniqueKeysWithValues: kinds.map { kind in
                    (
                        kind,
                        metrics.counter(
                            TenantMetrics.names.jobs, help: "Completed jobs of the busiest tenants, by outcome.",
                            labels: ["tenant": tenant, "outcome": kind.rawValue])
                    )
                })
            metrics.observable(
                .counter, TenantMetrics.names.seconds,
                help: "Time from submission to the end of jobs of the busiest tenants, summed over the jobs.",
                labels: ["tenant": tenant]
            ) { [seconds] in seconds.withLock { $0 } }
        }
    }

    private struct State {
        /// The estimated number of recent jobs by tenant.
        var sketch: [String: Int] = [:]
        var counters: [String: Counters] = [:]
        var selectedAt = ContinuousClock.now
    }

    /// The tenant label of all other tenants, which is no valid name of a tenant.
    static let others = "(others)"
    fileprivate static let names = (jobs: "halcyon_tenant_jobs_total", seconds: "halcyon_tenant_latency_seconds_total")
    /// The time between two selections of the busiest tenants.
    private static let interval = Duration.seconds(60)

    private let metrics: Metrics
    private let most: Int
    private let shared: Counters
    private let state = Lock(State())

    /// - Parameter most: The maximum number of tenants with counters of their own.
    init(_ metrics: Metrics, most: Int) {
        self.metrics = metrics
        self.most = most
        shared = Counters(metrics, of: Self.others)
    }

    /// Counts a job that ended with an event.
    func ended(_ body: Event.Body, of tenant: String, now: ContinuousClock.Instant = .now) {
        let counters = state.withLock { self.counters(of: tenant, &$0, now) }
        let timings: Timings? =
            switch body {
            case .ready(let ready): ready.timings
            case .failed(_, _, let timings): timings
            default: nil
            }
        let milliseconds = (timings?[.queued] ?? 0) + (timings?[.total] ?? 0)
        counters.seconds.withLock { $0 += milliseconds / 1000 }
        counters.ended[body.kind]?.add()
    }

    private func counters(of tenant: String, _ state: inout State, _ now: ContinuousClock.Instant) -> Counters {
        if state.sketch[tenant] == nil, state.sketch.count >= 4 * most,
            let least = state.sketch.min(by: { $0.value < $1.value })
        {
            state.sketch[least.key] = nil
            state.sketch[tenant] = least.value
        }
        state.sketch[tenant, default: 0] += 1
        if state.selectedAt.duration(to: now) >= Self.interval { select(&state, now) }
        if let counters = state.counters[tenant] { return counters }
        guard state.counters.count < most else { return shared }
        let counters = Counters(metrics, of: tenant)
        state.counters[tenant] = counters
        return counters
    }

    /// Removes the series of tenants that are no longer among the busiest ones.
    private func select(_ state: inout State, _ now: ContinuousClock.Instant) {
        state.selectedAt = now
        let busiest = Set(state.sketch.sorted { $0.value > $1.value }.prefix(most).map(\.key))
        for tenant in state.counters.keys where !busiest.contains(tenant) {
            state.counters[tenant] = nil
            for name in [Self.names.jobs, Self.names.seconds] { metrics.remove(name, where: "tenant", is: tenant) }
        }
        state.sketch = state.sketch.mapValues { $0 / 2 }.filter { $0.value > 0 }
    }
}
