/// Formats a number with a fixed number of decimals.
func decimal(_ value: Double, places: Int) -> String {
    let unit = (0..<places).reduce(1) { power, _ in power * 10 }
    let scaled = Int((abs(value) * Double(unit)).rounded())
    let fraction = places == 0 ? "" : "." + String(unit + scaled % unit).dropFirst()
    return "\(value < 0 && scaled > 0 ? "-" : "")\(scaled / unit)\(fraction)"
}

/// Formats a number of bytes in units of 1000, such as `12.3 kB`.
func byteText(_ bytes: Int) -> String {
    var value = Double(bytes)
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 || unit == "GB" {
            return "\(decimal(value, places: unit == "B" || value >= 99.95 ? 0 : 1)) \(unit)"
        }
        value /= 1000
    }
    return "\(bytes) B"
}

/// Formats milliseconds, such as `0.8 ms`, `45 ms` or `3.2 s`.
func spanText(milliseconds: Double) -> String {
    if milliseconds < 9.95 { return "\(decimal(milliseconds, places: 1)) ms" }
    if milliseconds < 999.5 { return "\(decimal(milliseconds, places: 0)) ms" }
    return "\(decimal(milliseconds / 1000, places: 1)) s"
}

/// Formats a count with a noun in the singular or plural, such as `1 job` or `2 jobs`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

extension String {
    /// Pads the string with trailing spaces.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

extension Duration {
    /// A duration of `count` times 24 hours.
    static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }

    /// The duration in milliseconds.
    var milliseconds: Double { self / .milliseconds(1) }
}
