import Telemetry

extension Metrics {
    /// What a series says, by its name and labels as Prometheus writes them; 0 when there is none.
    public func value(of series: String) -> Double {
        let line = String(decoding: prometheusText, as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix("\(series) ")
        }
        return line.flatMap { Double($0.dropFirst(series.utf8.count + 1)) } ?? 0
    }
}
