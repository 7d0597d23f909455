// Byte sizes and durations in their human-readable form. Only whole numbers, so that nothing is rounded.

private let byteUnits: [(name: String, size: Int)] = [
    ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10),
    ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10),
    ("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("KB", 1000), ("B", 1), ("", 1),
]

func byteCount(of text: String) -> Int? {
    let (number, unit) = split(text)
    guard let number, let size = byteUnits.first(where: { $0.name == unit })?.size else { return nil }
    let (bytes, isTooLarge) = number.multipliedReportingOverflow(by: size)
    return isTooLarge ? nil : bytes
}

func byteText(_ bytes: Int) -> String {
    let unit = byteUnits.prefix(4).first { bytes != 0 && bytes % $0.size == 0 }
    return unit.map { "\(bytes / $0.size)\($0.name)" } ?? "\(bytes)"
}

/// The units in milliseconds, largest first.
private let durationUnits: [(name: String, size: Int)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
]

func span(of text: String) -> Duration? {
    if text == "0" { return .zero }
    var total = 0
    var rest = text[...]
    var units = durationUnits[...]
    while !rest.isEmpty {
        let digits = rest.prefix { $0.isNumber }
        rest = rest.dropFirst(digits.count)
        let name = rest.prefix { $0.isLetter }
        rest = rest.dropFirst(name.count)
        guard let number = whole(digits), let unit = units.firstIndex(where: { $0.name == name }) else { return nil }
        let (span, isTooLong) = number.multipliedReportingOverflow(by: units[unit].size)
        let (sum, isTooMuch) = total.addingReportingOverflow(span)
        if isTooLong || isTooMuch { return nil }
        total = sum
        units = units[(unit + 1)...]
    }
    return text.isEmpty ? nil : .milliseconds(total)
}

func durationText(_ duration: Duration) -> String {
    var rest = Int(duration / .milliseconds(1))
    var text = ""
    for unit in durationUnits where rest >= unit.size {
        text += "\(rest / unit.size)\(unit.name)"
        rest %= unit.size
    }
    return text.isEmpty ? "0" : text
}

private func split(_ text: String) -> (Int?, Substring) {
    let digits = text.prefix { $0.isNumber }
    return (whole(digits), text.dropFirst(digits.count))
}

/// Parses ASCII digits without a sign.
private func whole(_ digits: Substring) -> Int? {
    digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(digits) : nil
}
