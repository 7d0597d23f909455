#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A date and time of day in UTC, in the proleptic Gregorian calendar.
public struct CivilDate: Hashable, Sendable {
    /// The year, 1 to 9999.
    public var year: Int
    /// The month, 1 to 12.
    public var month: Int
    /// The day, 1 to 31.
    public var day: Int
    /// The hour, 0 to 23.
    public var hour: Int
    /// The minute, 0 to 59.
    public var minute: Int
    /// The second, 0 to 60. A leap second counts as the next second.
    public var second: Int

    /// Creates a date from its components, without checking them.
    public init(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
    }

    /// Creates the date of a time in seconds since 1970, which may be negative. The years 1 to 9999 are supported.
    public init(secondsSince1970 seconds: Int64) {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        self.init(
            year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday),
            hour: Int(parts.tm_hour), minute: Int(parts.tm_min), second: Int(parts.tm_sec))
    }

    /// The time in seconds since 1970; nil if the date or time does not exist.
    public var secondsSince1970: Int64? {
        guard (1...9999).contains(year), (0..<24).contains(hour), (0..<60).contains(minute), (0...60).contains(second)
        else {
            return nil
        }
        var parts = tm()
        parts.tm_year = Int32(year - 1900)
        parts.tm_mon = Int32(month - 1)
        parts.tm_mday = Int32(day)
        // timegm normalizes the 31st of February to the 3rd of March and writes that to its argument.
        let midnight = timegm(&parts)
        guard parts.tm_mon == month - 1, parts.tm_mday == day else { return nil }
        return Int64(midnight) + Int64(hour * 3600 + minute * 60 + second)
    }
}
