import HalcyonModel
import Telemetry

/// What a worker counts.
struct WorkerMetrics: Sendable {
    private let ready: [ResultOrigin: Counter]
    private let failed: [FailureCode: Counter]
    private let stages: [Timings.Stage: Histogram]
    /// Top-level fields of jobs that meant nothing.
    let unknownFields: Counter

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
        case .started: break
        }
    }

    /// A message was no job.
    func refused() { failed[.invalidJob]?.add() }

    private func observe(_ timings: Timings) {
        for (stage, histogram) in stages {
            if let milliseconds = timings[stage] { histogram.observe(milliseconds / 1000) }
        }
    }
}
