import Formats

/// Dates as HTTP writes them (RFC 9110, section 5.6.7): IMF-fixdate, RFC 850 and asctime, and what senders make of them (no
/// weekday, no seconds).
public enum HTTPDate {
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    /// Seconds since 1970 of a date in GMT; nil for anything that is not one.
    /// - Parameters:
    ///   - text: the date, in any of the forms above.
    ///   - now: seconds since 1970; a year of two digits is the one of that ending which lies at most 50 years ahead.
    public static func seconds(of text: String, now: Double) -> Double? {
        var day: Int?
        var month: Int?
        var year: Int?
        var time: (hour: Int, minute: Int, second: Int)?
        for part in text.split(whereSeparator: { " ,-\t".contains($0) }) {
            if part.contains(":") {
                guard time == nil, let found = timeOfDay(part) else { return nil }
                time = found
            } else if let number = number(part) {
                if day == nil, part.count <= 2 {
                    day = number
                } else if year == nil, part.count == 2 || part.count == 4 {
                    year = part.count == 4 ? number : fullYear(number, now: now)
                } else {
                    return nil
                }
            } else {
                let word = part.lowercased()
                if let index = months.firstIndex(of: String(word.prefix(3))) {
                    guard month == nil else { return nil }
                    month = index + 1
                } else if !weekdays.contains(String(word.prefix(3))), word != "gmt", word != "utc", word != "z" {
                    return nil
                }
            }
        }
        guard let day, let month, let year, let time else { return nil }
        let date = CivilDate(
            year: year, month: month, day: day, hour: time.hour, minute: time.minute, second: time.second)
        return date.secondsSince1970.map(Double.init)
    }

    /// The date as IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
    /// - Parameter seconds: since 1970; those outside the years 1 to 9999 are taken for the nearest of them.
    public static func text(of seconds: Double) -> String {
        let second = Int64(min(max(seconds, -62_135_596_800), 253_402_300_799).rounded(.down))
        let date = CivilDate(secondsSince1970: second)
        func digits(_ number: Int, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        func name(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
        // Counted from a Monday, the 1st of January of the year 1.
        let weekday = Int((second + 62_135_596_800) / 86_400 % 7)
        return
            "\(name(weekdays[weekday])), \(digits(date.day)) \(name(months[date.month - 1])) \(digits(date.year, 4)) "
            + "\(digits(date.hour)):\(digits(date.minute)):\(digits(date.second)) GMT"
    }

    private static func number(_ part: Substring) -> Int? {
        part.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(part) : nil
    }

    private static func timeOfDay(_ part: Substring) -> (hour: Int, minute: Int, second: Int)? {
        let fields = part.split(separator: ":", omittingEmptySubsequences: false).map { number($0) }
        guard (2...3).contains(fields.count), let hour = fields[0], let minute = fields[1],
            let second = fields.count == 3 ? fields[2] : 0
        else { return nil }
        return (hour, minute, second)
    }

    private static func fullYear(_ ending: Int, now: Double) -> Int {
        let thisYear = 1970 + Int(now / 31_556_952)
        let candidate = thisYear - thisYear % 100 + ending
        return candidate > thisYear + 50 ? candidate - 100 : candidate <= thisYear - 50 ? candidate + 100 : candidate
    }
}

/// The field `Retry-After` of a response (RFC 9110, section 10.2.3).
public enum RetryAfter {
    /// Seconds that the field asks for: it has them, or a date, which counts from the response's own; nil for neither.
    /// - Parameters:
    ///   - text: the field's value.
    ///   - date: the field `Date` of the same response.
    ///   - now: seconds since 1970.
    public static func seconds(of text: String, date: String?, now: Double) -> Double? {
        if !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            return Double(text)
        }
        guard let moment = HTTPDate.seconds(of: text, now: now) else { return nil }
        return max(0, moment - (date.flatMap { HTTPDate.seconds(of: $0, now: now) } ?? now))
    }
}
