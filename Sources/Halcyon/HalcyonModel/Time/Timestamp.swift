/// Moments as RFC 3339 writes them, in UTC with milliseconds.
public enum Timestamp {
    /// `2026-11-21T10:31:07.250Z`, for seconds since 1970 in the years 1 to 9999.
    public static func text(_ seconds: Double) -> String {
        let milliseconds = Int((seconds * 1000).rounded())
        let (days, inDay) = milliseconds.quotientAndFloor(by: 86_400_000)
        let (year, month, day) = Calendar.date(daysSince1970: days)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        func digits(_ value: Int, _ count: Int) {
            var divisor = 1
            for _ in 1..<count { divisor *= 10 }
            var rest = value
            while divisor > 0 {
                text.append(UInt8(ascii: "0") + UInt8(rest / divisor % 10))
                rest %= divisor
                divisor /= 10
            }
        }
        func mark(_ byte: Unicode.Scalar) { text.append(UInt8(ascii: byte)) }
        digits(year, 4)
        mark("-")
        digits(month, 2)
        mark("-")
        digits(day, 2)
        mark("T")
        digits(inDay / 3_600_000, 2)
        mark(":")
        digits(inDay / 60_000 % 60, 2)
        mark(":")
        digits(inDay / 1000 % 60, 2)
        mark(".")
        digits(inDay % 1000, 3)
        mark("Z")
        return String(decoding: text, as: UTF8.self)
    }

    /// Seconds since 1970 of an RFC 3339 date-time; nil for anything else.
    public static func seconds(_ text: String) -> Double? {
        let bytes = Array(text.utf8)
        func number(_ range: Range<Int>) -> Int? {
            guard range.upperBound <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[range] {
                guard (0x30...0x39).contains(byte) else { return nil }
                value = value * 10 + Int(byte - 0x30)
            }
            return value
        }
        func mark(_ index: Int, _ allowed: String) -> Bool {
            index < bytes.count && allowed.utf8.contains(bytes[index])
        }
        guard let year = number(0..<4), mark(4, "-"), let month = number(5..<7), mark(7, "-"), let day = number(8..<10),
            mark(10, "Tt "), let hour = number(11..<13), mark(13, ":"), let minute = number(14..<16), mark(16, ":"),
            let second = number(17..<19), (1...12).contains(month), Calendar.has(day, month, year), hour < 24,
            minute < 60, second <= 60
        else { return nil }
        var end = 19
        var fraction = 0.0
        if mark(end, ".") {
            var unit = 0.1
            end += 1
            let start = end
            while let digit = number(end..<end + 1) {
                fraction += Double(digit) * unit
                unit /= 10
                end += 1
            }
            guard end > start else { return nil }
        }
        var offset = 0
        if mark(end, "Zz") {
            end += 1
        } else if mark(end, "+-"), let hours = number(end + 1..<end + 3), mark(end + 3, ":"),
            let minutes = number(end + 4..<end + 6), hours < 24, minutes < 60
        {
            offset = (hours * 60 + minutes) * 60 * (bytes[end] == UInt8(ascii: "-") ? -1 : 1)
            end += 6
        } else {
            return nil
        }
        guard end == bytes.count else { return nil }
        let days = Calendar.daysSince1970(year, month, day)
        return Double(days * 86_400 + hour * 3600 + minute * 60 + second - offset) + fraction
    }

}

extension Int {
    /// Division that rounds down, with a remainder of at least 0.
    fileprivate func quotientAndFloor(by divisor: Int) -> (quotient: Int, remainder: Int) {
        let remainder = (self % divisor + divisor) % divisor
        return ((self - remainder) / divisor, remainder)
    }
}
