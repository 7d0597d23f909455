import HalcyonModel
import Telemetry

/// What a worker counts.
struct WorkerMetrics: Sendable {
    private let ready: [ResultOrigin: Counter]
    private let failed: [FailureCode: Counter]
    private let cancelled: Counter
    private let superseded: Counter
    private let retries: [Way: [FailureCode: Counter]]
    private let dead: [FailureCode: Counter]
    private let stages: [Timings.Stage: Histogram]
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
        let help = "Jobs that ended, by outcome and by origin of the result or code of the failure."
        ready = Dictionary(
            uniqueKeysWithValues: [ResultOrigin.memory, .sourceCache, .network].map {
                (
                    $0,
                    metrics.counter(
                        "halcyon_jobs_total", help: help, labels: ["outcome": "ready", "reason": $0.rawValue])
                )
            })
        failed = Dictionary(
            uniqueKeysWithValues: FailureCode.allCases.map {
                (
                    $0,
                    metrics.counter(
                        "halcyon_jobs_total", help: help, labels: ["outcome": "failed", "reason": $0.rawValue])
                )
            })
        cancelled = metrics.counter("halcyon_jobs_total", help: help, labels: ["outcome": "cancelled", "reason": ""])
        superseded = metrics.counter("halcyon_jobs_total", help: help, labels: ["outcome": "superseded", "reason": ""])
        retries = Dictionary(
            uniqueKeysWithValues: Way.allCases.map { way in
                (
                    way,
                    .ofCodes {
                        metrics.counter(
                            "halcyon_retries_total",
                            help:
                                "Attempts at jobs that failed and are followed by another, by code and by the way there.",
                            labels: ["reason": $0.rawValue, "way": way.rawValue])
                    }
                )
            })
        dead = .ofCodes {
            metrics.counter(
                "halcyon_dead_total", help: "Messages that were put aside in the topic dead.",
                labels: ["code": $0.rawValue])
        }
        stages = Dictionary(
            uniqueKeysWithValues: Timings.Stage.allCases.map {
                (
                    $0,
                    metrics.histogram(
                        "halcyon_stage_duration_seconds", help: "Time that jobs spent in each stage.",
                        labels: ["stage": $0.name])
                )
            })
        unknownFields = metrics.counter(
            "halcyon_unknown_fields_total", help: "Top-level fields of jobs that meant nothing to this version.")
    }

    /// A job ended with an event.
    func ended(_ body: Event.Body) {
        switch body {
        case .ready(let ready):
            self.ready[ready.origin]?.add()
            observe(ready.timings)
        case .failed(let failure, _, let timings):
            failed[failure.code]?.add()
            observe(timings)
        case .cancelled: cancelled.add()
        case .superseded: superseded.add()
        case .started, .purged: break
        }
    }

    /// A message was no job that can be done.
    func refused(_ code: FailureCode) {
        failed[code]?.add()
        if code == .invalidJob { putAside(code) }
    }

    /// A job failed and is tried again.
    func retried(_ code: FailureCode, _ way: Way) { retries[way]?[code]?.add() }

    /// A message was put aside.
    func putAside(_ code: FailureCode) { dead[code]?.add() }

    private func observe(_ timings: Timings) {
        for (stage, histogram) in stages {
            if let milliseconds = timings[stage] { histogram.observe(milliseconds / 1000) }
        }
    }
}

extension [FailureCode: Counter] {
    /// One for each code.
    fileprivate static func ofCodes(_ counter: (FailureCode) -> Counter) -> Self {
        Dictionary(uniqueKeysWithValues: FailureCode.allCases.map { ($0, counter($0)) })
    }
}
