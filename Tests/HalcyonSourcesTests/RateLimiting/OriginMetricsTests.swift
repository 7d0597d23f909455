import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonSources

/// Metrics of origins.
@Suite struct OriginMetricsTests {
    private let metrics = Metrics()

    @Test func countsOpenBreakersUntilCooldownEnds() async throws {
        let originMetrics = OriginMetrics(metrics)
        for (name, seconds) in [("one", 600.0), ("one", 600), ("two", 600), ("three", 0.1)] {
            let refusal = JobError(.originUnavailable, "left alone").retryAfter(atLeast: seconds)
            await #expect(throws: JobError.self) {
                try await originMetrics.waiting(for: Origin(name)) { () async throws in throw refusal }
            }
        }
        #expect(metrics.value(of: "halcyon_origin_refusals_total") == 4)
        #expect(metrics.value(of: "halcyon_origin_waiting") == 0)
        try await until("the short cooldown ends") { metrics.value(of: "halcyon_origin_circuit_breakers_open") == 2 }
    }

    @Test func countsWaitersAndIgnoresCancellation() async throws {
        let originMetrics = OriginMetrics(metrics)
        let seen = try await originMetrics.waiting(for: Origin("one")) { [metrics] () async throws in
            metrics.value(of: "halcyon_origin_waiting")
        }
        #expect(seen == 1)
        await #expect(throws: CancellationError.self) {
            try await originMetrics.waiting(for: Origin("one")) { () async throws in throw CancellationError() }
        }
        #expect(metrics.value(of: "halcyon_origin_waiting") == 0)
        #expect(metrics.value(of: "halcyon_origin_refusals_total") == 0)
    }
}
