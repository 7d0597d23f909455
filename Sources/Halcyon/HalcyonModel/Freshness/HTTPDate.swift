import Formats

/// The HTTP date formats (RFC 9110, section 5.6.7): IMF-fixdate, RFC 850 and asctime, and common variants without
/// weekday or seconds.
public enum HTTPDate {
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    /// Parses a date in GMT and returns seconds since 1970; nil if the text is not a date.
    /// - Parameters:
    ///   - text: The date, in any of the supported formats.
    ///   - now: The current time in seconds since 1970. Two-digit years are interpreted as at most 50 years in the
    ///     future.
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

    /// Formats a date as IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
    /// - Parameter seconds: The seconds since 1970, clamped to the years 1 to 9999.
    public static func text(of seconds: Double) -> String {
        let second = Int64(min(max(seconds, -62_135_596_800), 253_402_300_799).rounded(.down))
        let date = CivilDate(secondsSince1970: second)
        func digits(_ number: Int, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        func name(_ name: String) -> String { name.prefix(1).uppercased() + name.dropFirst() }
        // The 1st of January of the year 1 is a Monday.
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

/// The response header field `Retry-After` (RFC 9110, section 10.2.3).
public enum RetryAfter {
    /// Returns the delay in seconds, from 0 to 2^31: the number in the field, or the difference between its date and
    /// the date of the response; nil if the field is malformed.
    /// - Parameters:
    ///   - text: The value of the field.
    ///   - date: The field `Date` of the same response; nil to use `now`.
    ///   - now: The current time in seconds since 1970.
    public static func seconds(of text: String, date: String?, now: Double) -> Double? {
        if let seconds = DeltaSeconds.parse(text.utf8) { return Double(seconds) }
        guard let moment = HTTPDate.seconds(of: text, now: now) else { return nil }
        let delay = moment - (date.flatMap { HTTPDate.seconds(of: $0, now: now) } ?? now)
        return min(max(0, delay), Double(DeltaSeconds.greatest))
    }
}
