import Concurrency
import Telemetry
import Testing

@Suite struct MetricsTests {
    func text(_ metrics: Metrics) -> String { String(decoding: metrics.prometheusText, as: UTF8.self) }

    @Test func rendersPrometheusText() {
        let metrics = Metrics()
        metrics.counter("jobs_total", help: "Jobs that ended.", labels: ["outcome": "ready", "lane": "high"]).add(3)
        metrics.counter("jobs_total", help: "Jobs that ended.", labels: ["outcome": "failed", "lane": "high"]).add()
        metrics.gauge("queue_depth", help: "Jobs that wait.").set(2.5)
        let histogram = metrics.histogram(
            "fetch_seconds", help: "Time to fetch.", labels: ["kind": "http"], bounds: [0.5, 1, 2.5])
        for value in [0.1, 0.5, 0.75, 2, 100] { histogram.observe(value) }
        #expect(
            text(metrics) == """
                # HELP fetch_seconds Time to fetch.
                # TYPE fetch_seconds histogram
                fetch_seconds_bucket{kind="http",le="0.5"} 2
                fetch_seconds_bucket{kind="http",le="1"} 3
                fetch_seconds_bucket{kind="http",le="2.5"} 4
                fetch_seconds_bucket{kind="http",le="+Inf"} 5
                fetch_seconds_sum{kind="http"} 103.35
                fetch_seconds_count{kind="http"} 5
                # HELP jobs_total Jobs that ended.
                # TYPE jobs_total counter
                jobs_total{lane="high",outcome="failed"} 1
                jobs_total{lane="high",outcome="ready"} 3
                # HELP queue_depth Jobs that wait.
                # TYPE queue_depth gauge
                queue_depth 2.5

                """)
    }

    @Test func escapesHelpAndLabels() {
        let metrics = Metrics()
        metrics.gauge("g", help: "a \"b\"\n\\c", labels: ["l": "a \"b\"\n\\c"]).set(-.infinity)
        #expect(
            text(metrics) == #"""
                # HELP g a "b"\n\\c
                # TYPE g gauge
                g{l="a \"b\"\n\\c"} -Inf

                """#)
    }

    @Test func writesNumbersInPrometheusSyntax() {
        let metrics = Metrics()
        for (value, written) in [
            (0, "0"), (1e15, "1000000000000000"), (0.25, "0.25"), (.nan, "NaN"), (.infinity, "+Inf"),
        ] as [(Double, String)] {
            metrics.gauge("g", help: "").set(value)
            #expect(text(metrics).hasSuffix("\ng \(written)\n"))
        }
    }

    @Test func sameNameAndLabelsAreOneSeries() {
        let metrics = Metrics()
        let one = metrics.counter("c_total", help: "", labels: ["a": "1", "b": "2"])
        let same = metrics.counter("c_total", help: "", labels: ["b": "2", "a": "1"])
        let other = metrics.counter("c_total", help: "", labels: ["a": "2", "b": "1"])
        one.add()
        #expect(same === one)
        #expect(other.value == 0)
    }

    @Test func observesDurationsInSeconds() {
        let histogram = Metrics().histogram("h_seconds", help: "")
        histogram.observe(.milliseconds(250))
        #expect(histogram.sum == 0.25)
        #expect(histogram.cumulativeCounts.last == 1)
    }

    @Test func losesNothingUnderContention() {
        let metrics = Metrics()
        let counter = metrics.counter("c_total", help: "")
        let gauge = metrics.gauge("g", help: "")
        let histogram = metrics.histogram("h", help: "", bounds: [1, 2])
        let threads = (0..<4).map { index in
            NamedThread(name: "metrics-\(index)") {
                for number in 0..<10_000 {
                    counter.add()
                    gauge.add(1)
                    histogram.observe(Double(number % 4))
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(counter.value == 40_000)
        #expect(gauge.value == 40_000)
        #expect(histogram.cumulativeCounts == [20_000, 30_000, 40_000])
        #expect(histogram.sum == 60_000)
    }

    @Test func trapsOnMisuse() async {
        await #expect(processExitsWith: .failure) { _ = Metrics().counter("1c", help: "") }
        await #expect(processExitsWith: .failure) { _ = Metrics().counter("c", help: "", labels: ["a-b": ""]) }
        await #expect(processExitsWith: .failure) {
            let metrics = Metrics()
            _ = metrics.counter("c", help: "")
            _ = metrics.gauge("c", help: "")
        }
        await #expect(processExitsWith: .failure) { _ = Metrics().histogram("h", help: "", bounds: [2, 1]) }
    }
}
