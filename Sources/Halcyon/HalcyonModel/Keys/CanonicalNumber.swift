/// Numbers as keys know them: to six decimals, rounded half away from zero, so that any language can do the same.
public enum CanonicalNumber {
    /// The nearest number that keys can tell from others. What a job asks for is rounded so before anything is made of it:
    /// then outputs of one key are the same.
    /// - Parameter value: below 2^43 in size.
    public static func rounded(_ value: Double) -> Double { Double(millionths(value)) / 1_000_000 }

    fileprivate static func millionths(_ value: Double) -> Int {
        Int((value * 1_000_000).rounded(.toNearestOrAwayFromZero))
    }
}

extension String {
    /// Appends the shortest decimal that reads back as the same double, without exponent: `0.3333333333333333`, `0.5`, `400`.
    /// - Parameter value: 0 to 2^53.
    mutating func append(exact value: Double) {
        guard value != 0 else {
            self += "0"
            return
        }
        let text = value.description
        if let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) {
            // Of numbers so small alone: from 2^53 on Swift writes a positive one.
            self += "0." + String(repeating: "0", count: -exponent - 1) + text[..<mark].filter { $0 != "." }
        } else {
            self += text.hasSuffix(".0") ? text.dropLast(2) : text[...]
        }
    }

    /// Appends a number to six decimals, without trailing zeros or exponent: `0.333333`, `400`, `-1.5`.
    /// - Parameter value: below 2^43 in size.
    mutating func append(canonical value: Double) {
        let millionths = CanonicalNumber.millionths(value)
        if millionths < 0 { self += "-" }
        var (rest, decimals) = (millionths.magnitude, 6)
        while decimals > 0, rest.isMultiple(of: 10) { (rest, decimals) = (rest / 10, decimals - 1) }
        // From the last digit to the first; 20 digits and a point are the most there can be.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 21) { digits in
            var start = digits.endIndex
            func put(_ byte: UInt8) {
                start -= 1
                digits[start] = byte
            }
            repeat {
                put(UInt8(ascii: "0") + UInt8(rest % 10))
                rest /= 10
                decimals -= 1
                if decimals == 0 { put(UInt8(ascii: ".")) }
            } while rest > 0 || decimals >= 0
            self += String(decoding: digits[start...], as: UTF8.self)
        }
    }
}
