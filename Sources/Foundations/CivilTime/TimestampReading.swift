extension Timestamp {
    /// Reads a date-time of RFC 3339, with any offset and any number of decimals; nil for anything else.
    public init?(rfc3339 text: String) {
        var reader = Reader(text)
        guard let year = reader.number(digits: 4), reader.skip("-"), let month = reader.number(digits: 2),
            reader.skip("-"),
            let day = reader.number(digits: 2), reader.skip("Tt "), let hour = reader.number(digits: 2),
            reader.skip(":"),
            let minute = reader.number(digits: 2), reader.skip(":"), let second = reader.number(digits: 2),
            let fraction = reader.fraction(), let offset = reader.offset(), reader.isAtEnd,
            let seconds = CivilDate(
                year: year, month: month, day: day, hour: hour, minute: minute, second: second
            ).secondsSince1970
        else { return nil }
        self.init(seconds: Double(seconds - Int64(offset)) + fraction)
    }
}

/// Goes through a text from its beginning.
private struct Reader {
    private var rest: ArraySlice<UInt8>

    init(_ text: String) { rest = ArraySlice(text.utf8) }

    var isAtEnd: Bool { rest.isEmpty }

    /// Whether the next character is one of `marks`; then it is behind us.
    mutating func skip(_ marks: String) -> Bool {
        guard let next = rest.first, marks.utf8.contains(next) else { return false }
        rest.removeFirst()
        return true
    }

    mutating func number(digits: Int) -> Int? {
        let text = rest.prefix(digits)
        guard text.count == digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        rest.removeFirst(digits)
        return text.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// What follows a point, below 1; 0 without a point, nil for a point alone.
    mutating func fraction() -> Double? {
        guard skip(".") else { return 0 }
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty else { return nil }
        rest.removeFirst(digits.count)
        return Double("0." + String(decoding: digits, as: UTF8.self))
    }

    /// Seconds that the zone is ahead of UTC.
    mutating func offset() -> Int? {
        if skip("Zz") { return 0 }
        let isBehind = rest.first == UInt8(ascii: "-")
        guard skip("+-"), let hours = number(digits: 2), skip(":"), let minutes = number(digits: 2), hours < 24,
            minutes < 60
        else { return nil }
        return (hours * 60 + minutes) * (isBehind ? -60 : 60)
    }
}
