/// A number as canonical texts write it: rounded to six decimals, half away from zero, without trailing zeros or exponent, so
/// that any language can do the same.
func canonical(_ value: Double) -> String {
    let millionths = Int((value * 1_000_000).rounded(.toNearestOrAwayFromZero))
    let fraction = String(1_000_000 + abs(millionths) % 1_000_000).dropFirst()
    let trimmed = fraction.prefix(
        (fraction.lastIndex { $0 != "0" }.map { fraction.distance(from: fraction.startIndex, to: $0) + 1 }) ?? 0)
    let sign = millionths < 0 ? "-" : ""
    return "\(sign)\(abs(millionths) / 1_000_000)\(trimmed.isEmpty ? "" : ".\(trimmed)")"
}
