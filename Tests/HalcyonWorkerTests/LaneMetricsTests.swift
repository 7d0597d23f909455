import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonWorker

/// Metrics of jobs that have ended.
@Suite struct LaneMetricsTests {
    private let metrics = Metrics()

    private func jobs(_ lane: Lane, _ outcome: String, _ reason: String = "") -> Double {
        metrics.value(of: #"halcyon_jobs_total{lane="\#(lane.rawValue)",outcome="\#(outcome)",reason="\#(reason)"}"#)
    }

    @Test(arguments: CacheStatus.allCases) func readyJobsAreCountedByLaneAndOrigin(_ origin: CacheStatus) {
        let counted = WorkerMetrics(metrics, tenants: 1)
        counted.ended(.ready(Ready(results: [], origin: origin, timings: Timings())), .high, of: nil)
        #expect(jobs(.high, "ready", origin.rawValue) == 1)
        #expect(jobs(.normal, "ready", origin.rawValue) == 0)
    }

    @Test func recordsStageDurationsFromTimings() {
        let counted = WorkerMetrics(metrics, tenants: 1)
        var timings = Timings()
        timings[.fetch] = 120
        timings[.total] = 250
        counted.ended(.failed(JobError(.timeout, "late"), attempts: 1, timings: timings), .low, of: nil)
        #expect(jobs(.low, "failed", "timeout") == 1)
        func sum(_ stage: String) -> Double {
            metrics.value(of: #"halcyon_stage_duration_seconds_sum{lane="low",stage="\#(stage)"}"#)
        }
        #expect(sum("fetch") == 0.12)
        #expect(sum("total") == 0.25)
        #expect(metrics.value(of: #"halcyon_stage_duration_seconds_count{lane="low",stage="encode"}"#) == 0)
    }

    /// After several attempts, the time in the queue includes waits in retry topics.
    @Test func timeInTheQueueIsThatOfJobsWithoutAWaitInARetryTopic() {
        let counted = WorkerMetrics(metrics, tenants: 1)
        func sum(_ stage: String) -> Double {
            metrics.value(of: #"halcyon_stage_duration_seconds_sum{lane="high",stage="\#(stage)"}"#)
        }
        let jobs: [(isRetried: Bool, queued: Double)] = [(false, 250), (true, 60_000)]
        for (isRetried, queued) in jobs {
            var timings = Timings()
            timings[.queued] = queued
            timings[.total] = 500
            let ready = Ready(results: [], origin: .memory, timings: timings)
            counted.ended(.ready(ready), .high, of: nil, isRetried: isRetried)
            let failed = Event.Body.failed(JobError(.timeout, "late"), attempts: 1, timings: timings)
            counted.ended(failed, .high, of: nil, isRetried: isRetried)
        }
        #expect(sum("queued") == 0.5)
        #expect(sum("total") == 2)
    }

    @Test func cancelledAndSupersededJobsAreNotFailures() {
        let counted = WorkerMetrics(metrics, tenants: 1)
        counted.ended(.cancelled, .normal, of: nil)
        counted.ended(.superseded(by: 3), .normal, of: nil)
        counted.refused(.invalidJob, .normal)
        #expect(jobs(.normal, "cancelled") == 1)
        #expect(jobs(.normal, "superseded") == 1)
        #expect(jobs(.normal, "failed", "invalid_job") == 1)
        #expect(metrics.value(of: #"halcyon_dead_letters_total{code="invalid_job"}"#) == 1)
    }
}
