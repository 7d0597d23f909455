import HalcyonModel
import Telemetry

/// What a worker counts.
struct WorkerMetrics: Sendable {
    private let lanes: [Lane: LaneMetrics]
    private let retries: [Way: [FailureCode: Counter]]
    private let dead: [FailureCode: Counter]
    private let lookups: (hits: Counter, misses: Counter)
    /// Top-level fields of jobs that meant nothing.
    let unknownFields: Counter

    /// How a job is tried again.
    enum Way: String, CaseIterable {
        /// By the worker that has it.
        case process
        /// Through a topic.
        case topic
    }

    init(_ metrics: Metrics) {
        lanes = Dictionary(uniqueKeysWithValues: Lane.allCases.map { ($0, LaneMetrics(metrics, $0)) })
        retries = Dictionary(
            uniqueKeysWithValues: Way.allCases.map { way in
                (
                    way,
                    .ofCodes {
                        metrics.counter(
                            "halcyon_retries_total",
                            help:
                                "Attempts at jobs that failed and are followed by another, by code and by the way there.",
                            labels: ["code": $0.rawValue, "way": way.rawValue])
                    }
                )
            })
        dead = .ofCodes {
            metrics.counter(
                "halcyon_dead_letters_total",
                help: "Messages that were put aside in the topic of dead letters, by code.",
                labels: ["code": $0.rawValue])
        }
        func lookups(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_result_lookups_total",
                help: "Results that jobs looked for in Redis before anything was made, by whether they were there.",
                labels: ["result": result])
        }
        self.lookups = (lookups("hit"), lookups("miss"))
        unknownFields = metrics.counter(
            "halcyon_unknown_fields_total", help: "Top-level fields of jobs that meant nothing to this version.")
    }

    /// A job ended with an event.
    func ended(_ body: Event.Body, _ lane: Lane) { lanes[lane]?.ended(body) }

    /// A message was no job that can be done.
    func refused(_ code: FailureCode, _ lane: Lane) {
        lanes[lane]?.failed(code)
        if code == .invalidJob { putAside(code) }
    }

    /// A job looked for the results of its variants, and these were there.
    func lookedUp(_ job: JobContext, _ found: [ResultKey: ReadyResult]) {
        guard job.job.cache.looksAtResults else { return }
        for key in job.keys { (found[key] == nil ? lookups.misses : lookups.hits).add() }
    }

    /// A job failed and is tried again.
    func retried(_ code: FailureCode, _ way: Way) { retries[way]?[code]?.add() }

    /// A message was put aside.
    func putAside(_ code: FailureCode) { dead[code]?.add() }
}

extension [FailureCode: Counter] {
    /// One for each code.
    static func ofCodes(_ counter: (FailureCode) -> Counter) -> Self {
        Dictionary(uniqueKeysWithValues: FailureCode.allCases.map { ($0, counter($0)) })
    }
}

/// What a worker counts of the jobs of one lane.
struct LaneMetrics: Sendable {
    private let ready: [ResultOrigin: Counter]
    private let failures: [FailureCode: Counter]
    private let cancelled: Counter
    private let superseded: Counter
    /// By the stages' numbers.
    private let stages: [Histogram]

    init(_ metrics: Metrics, _ lane: Lane) {
        func ended(_ outcome: String, _ reason: String = "") -> Counter {
            metrics.counter(
                "halcyon_jobs_total",
                help: "Jobs that ended, by lane, outcome, and origin of the result or code of the failure.",
                labels: ["lane": lane.rawValue, "outcome": outcome, "reason": reason])
        }
        ready = Dictionary(
            uniqueKeysWithValues: ResultOrigin.allCases.map { ($0, ended("ready", $0.rawValue)) })
        failures = .ofCodes { ended("failed", $0.rawValue) }
        cancelled = ended("cancelled")
        superseded = ended("superseded")
        stages = Timings.Stage.allCases.map {
            metrics.histogram(
                "halcyon_stage_duration_seconds",
                help:
                    "Time that jobs spent in each stage, as their events tell it; total is from the job's message to its end.",
                labels: ["lane": lane.rawValue, "stage": $0.name])
        }
    }

    /// A job ended with an event.
    func ended(_ body: Event.Body) {
        switch body {
        case .ready(let ready):
            self.ready[ready.origin]?.add()
            observe(ready.timings)
        case .failed(let failure, _, let timings):
            failed(failure.code)
            observe(timings)
        case .cancelled: cancelled.add()
        case .superseded: superseded.add()
        case .started, .progress, .purged: break
        }
    }

    /// A job failed.
    func failed(_ code: FailureCode) { failures[code]?.add() }

    private func observe(_ timings: Timings) {
        for stage in Timings.Stage.allCases {
            if let milliseconds = timings[stage] { stages[stage.rawValue].observe(milliseconds / 1000) }
        }
    }
}
