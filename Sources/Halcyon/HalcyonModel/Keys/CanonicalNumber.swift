/// Numbers as keys know them: to six decimals, rounded half away from zero, so that any language can do the same.
public enum CanonicalNumber {
    /// The nearest number that keys can tell from others. What a job asks for is rounded so before anything is made of it:
    /// then outputs of one key are the same.
    /// - Parameter value: below 2^43 in size.
    public static func rounded(_ value: Double) -> Double { Double(millionths(value)) / 1_000_000 }

    /// Without trailing zeros or exponent: `0.333333`, `400`, `-1.5`.
    /// - Parameter value: below 2^43 in size.
    static func text(_ value: Double) -> String {
        let millionths = millionths(value)
        let sign = millionths < 0 ? "-" : ""
        let (whole, rest) = abs(millionths).quotientAndRemainder(dividingBy: 1_000_000)
        if rest == 0 { return "\(sign)\(whole)" }
        var fraction = String(1_000_000 + rest).dropFirst()
        while fraction.last == "0" { fraction.removeLast() }
        return "\(sign)\(whole).\(fraction)"
    }

    private static func millionths(_ value: Double) -> Int {
        Int((value * 1_000_000).rounded(.toNearestOrAwayFromZero))
    }
}
