import HalcyonModel
import Telemetry

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
