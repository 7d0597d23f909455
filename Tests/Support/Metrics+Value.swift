import Telemetry

extension Metrics {
    /// Returns the value of a series, given its name and labels in Prometheus' text format, or 0 if it does not exist.
    public func value(of series: String) -> Double {
        let line = String(decoding: prometheusText, as: UTF8.self).split(separator: "\n").first {
            $0.hasPrefix("\(series) ")
        }
        return line.flatMap { Double($0.dropFirst(series.utf8.count + 1)) } ?? 0
    }
}
