import Values

extension ValueKind<Double> {
    /// `500/s`, `60000/min`, `1M/min`, `2k`: jobs a second.
    static var rate: Self {
        ValueKind("jobs in a time, such as 500/s, 60000/min or 1M/min") { text in
            let parts = text.split(separator: "/", omittingEmptySubsequences: false)
            let seconds = ["s": 1.0, "min": 60, "h": 3600, "d": 86_400]
            guard let count = count(parts[0]), parts.count <= 2, count > 0,
                let unit = seconds[parts.count == 2 ? String(parts[1]) : "s"]
            else { return nil }
            return count / unit
        }
    }

    /// `1500`, `20k`, `2M`: a number of things.
    static var amount: Self {
        ValueKind("a number above 0, such as 1500, 20k or 2M") { text in
            count(text[...]).flatMap { $0 > 0 ? $0 : nil }
        }
    }

    /// A part of a whole.
    static var part: Self {
        ValueKind("a number from 0 to 1") { text in Double(text).flatMap { (0...1).contains($0) ? $0 : nil } }
    }

    /// Milliseconds, not whole ones alone.
    static var milliseconds: Self {
        ValueKind("milliseconds above 0, such as 8.5") { text in
            Double(text).flatMap { $0 > 0 && $0 < 1e9 ? $0 : nil }
        }
    }

    private static func count(_ text: Substring) -> Double? {
        let factors: [Character: Double] = ["k": 1e3, "M": 1e6]
        let factor = text.last.flatMap { factors[$0] }
        return Double(factor == nil ? text : text.dropLast()).flatMap { number in
            let value = number * (factor ?? 1)
            return value >= 0 && value <= 1e12 ? value : nil
        }
    }
}
