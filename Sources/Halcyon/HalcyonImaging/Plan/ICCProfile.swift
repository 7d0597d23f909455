import Glibc

/// A partial parser of ICC profiles (ICC.1:2022), which detects sRGB.
///
/// The many sRGB profiles in use differ in name, size and bytes. The three colorants and the tone curve decide instead.
struct ICCProfile {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// True if a conversion from this profile to sRGB would not change 8-bit pixels.
    var isSRGB: Bool {
        guard signature(at: 16) == "RGB ", signature(at: 20) == "XYZ " else { return false }
        // sRGB's primaries, adapted to D50 (IEC 61966-2-1, by the Bradford matrix).
        let colorants = [
            ("rXYZ", [0.4361, 0.2225, 0.0139]), ("gXYZ", [0.3851, 0.7169, 0.0971]), ("bXYZ", [0.1431, 0.0606, 0.7141]),
        ]
        for (tag, expected) in colorants {
            guard let offset = offset(of: tag), let found = xyz(at: offset) else { return false }
            guard zip(found, expected).allSatisfy({ abs($0 - $1) < 0.003 }) else { return false }
        }
        for tag in ["rTRC", "gTRC", "bTRC"] {
            guard let offset = offset(of: tag) else { return false }
            for signal in [0.1, 0.25, 0.5, 0.75, 0.9] {
                guard let light = curve(at: offset, signal), abs(light - SRGB.light(signal)) < 0.008 else {
                    return false
                }
            }
        }
        return true
    }

    /// Returns the offset of a tag's data (ICC.1, 7.3).
    private func offset(of tag: String) -> Int? {
        guard let count = number(at: 128), count <= 100 else { return nil }
        for index in 0..<count where signature(at: 132 + index * 12) == tag { return number(at: 136 + index * 12) }
        return nil
    }

    /// Reads an XYZType (ICC.1, 10.31).
    private func xyz(at offset: Int) -> [Double]? {
        guard signature(at: offset) == "XYZ ", let x = fixed(at: offset + 8), let y = fixed(at: offset + 12),
            let z = fixed(at: offset + 16)
        else { return nil }
        return [x, y, z]
    }

    /// Evaluates a curveType (ICC.1, 10.6) or parametricCurveType (10.18).
    private func curve(at offset: Int, _ signal: Double) -> Double? {
        switch signature(at: offset) {
        case "curv":
            guard let count = number(at: offset + 8) else { return nil }
            if count == 0 { return signal }
            if count == 1 { return short(at: offset + 12).map { power(signal, Double($0) / 256) } }
            let position = signal * Double(count - 1)
            let index = Int(position)
            guard let low = short(at: offset + 12 + index * 2),
                let high = short(at: offset + 12 + min(index + 1, count - 1) * 2)
            else { return nil }
            return (Double(low) + Double(high - low) * (position - Double(index))) / 65535
        case "para":
            // Type 3 is the form of sRGB's curve; type 0, a plain power, comes near it in some profiles.
            guard let type = short(at: offset + 8), type == 0 || type == 3 else { return nil }
            let values = (0..<(type == 0 ? 1 : 5)).compactMap { fixed(at: offset + 12 + $0 * 4) }
            if type == 0 { return values.first.map { power(signal, $0) } }
            guard values.count == 5 else { return nil }
            return signal >= values[4] ? power(values[1] * signal + values[2], values[0]) : values[3] * signal
        default:
            return nil
        }
    }

    private func signature(at offset: Int) -> String {
        guard offset >= 0, offset + 4 <= bytes.count else { return "" }
        return String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
    }

    private func number(at offset: Int) -> Int? {
        guard offset >= 0, offset + 4 <= bytes.count else { return nil }
        return bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    private func short(at offset: Int) -> Int? {
        guard offset >= 0, offset + 2 <= bytes.count else { return nil }
        return Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }

    /// Reads an s15Fixed16Number (ICC.1, 4.6).
    private func fixed(at offset: Int) -> Double? {
        number(at: offset).map { Double(Int32(truncatingIfNeeded: $0)) / 65536 }
    }
}

/// Returns `base` to the power of `exponent`, or 0 for a negative base.
private func power(_ base: Double, _ exponent: Double) -> Double { base <= 0 ? 0 : pow(base, exponent) }
