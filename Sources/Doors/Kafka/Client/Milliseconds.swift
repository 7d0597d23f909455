extension Duration {
    /// Whole milliseconds, rounded up, as librdkafka's time-outs want them.
    var milliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        if overflow { return seconds < 0 ? 0 : .max }
        return Int32(clamping: max(0, whole + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}
