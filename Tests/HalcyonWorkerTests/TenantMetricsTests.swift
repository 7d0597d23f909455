import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonWorker

/// The counters of the busiest tenants.
@Suite struct TenantMetricsTests {
    private func jobs(_ metrics: Metrics, _ tenant: String, _ outcome: String = "ready") -> Double {
        metrics.value(of: #"halcyon_tenant_jobs_total{outcome="\#(outcome)",tenant="\#(tenant)"}"#)
    }

    private func tenants(_ metrics: Metrics) -> Set<String> {
        let lines = String(decoding: metrics.prometheusText, as: UTF8.self).split(separator: "\n")
        let latencies = lines.filter { $0.hasPrefix("halcyon_tenant_latency_seconds_total{") }
        return Set(latencies.map { String($0.split(separator: "\"")[1]) })
    }

    private func ready(_ milliseconds: Double) -> Event.Body {
        var timings = Timings()
        (timings[.queued], timings[.total]) = (milliseconds, milliseconds)
        return .ready(Ready(results: [], origin: .memory, timings: timings))
    }

    @Test func countsOutcomesAndLatency() {
        let metrics = Metrics()
        let counters = TenantMetrics(metrics, most: 2)
        counters.ended(ready(250), of: "a")
        counters.ended(ready(500), of: "a")
        counters.ended(.failed(JobError(.timeout, ""), attempts: 1, timings: Timings()), of: "a")
        counters.ended(.cancelled, of: "b")
        #expect(jobs(metrics, "a") == 2 && jobs(metrics, "a", "failed") == 1 && jobs(metrics, "b", "cancelled") == 1)
        #expect(metrics.value(of: #"halcyon_tenant_latency_seconds_total{tenant="a"}"#) == 1.5)
        #expect(tenants(metrics) == ["a", "b", TenantMetrics.others])
    }

    @Test func countsOthersTogether() {
        let metrics = Metrics()
        let counters = TenantMetrics(metrics, most: 2)
        for number in 0..<1000 { counters.ended(.cancelled, of: "t\(number)") }
        #expect(tenants(metrics) == ["t0", "t1", TenantMetrics.others])
        #expect(jobs(metrics, TenantMetrics.others, "cancelled") == 998)
    }

    @Test func busyTenantsReplaceIdleOnes() {
        let metrics = Metrics()
        let counters = TenantMetrics(metrics, most: 2)
        let start = ContinuousClock.now
        for tenant in ["a", "b", "c"] { counters.ended(.cancelled, of: tenant, now: start) }
        #expect(tenants(metrics) == ["a", "b", TenantMetrics.others])
        for _ in 0..<10 { counters.ended(.cancelled, of: "c", now: start) }
        for _ in 0..<5 { counters.ended(.cancelled, of: "b", now: start) }
        // A later job leads to a selection.
        counters.ended(.cancelled, of: "c", now: start + .seconds(61))
        #expect(tenants(metrics) == ["b", "c", TenantMetrics.others])
        #expect(jobs(metrics, "b", "cancelled") == 6 && jobs(metrics, "c", "cancelled") == 1)
        #expect(jobs(metrics, TenantMetrics.others, "cancelled") == 11)
        // Counts are halved each time, so that a tenant that was busy once makes room.
        for minute in 2..<8 {
            for _ in 0..<3 { counters.ended(.cancelled, of: "d", now: start + .seconds(61 * minute)) }
        }
        #expect(tenants(metrics).contains("d"))
    }
}
