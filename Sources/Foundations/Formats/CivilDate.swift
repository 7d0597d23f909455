#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// A date and time of day in UTC, by the proleptic Gregorian calendar.
public struct CivilDate: Hashable, Sendable {
    /// 1 to 9999.
    public var year: Int
    /// 1 to 12.
    public var month: Int
    /// 1 to 31.
    public var day: Int
    /// 0 to 23.
    public var hour: Int
    /// 0 to 59.
    public var minute: Int
    /// 0 to 60: a leap second counts as the next one.
    public var second: Int

    /// Takes the numbers as they are.
    public init(year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
    }

    /// That second of 1970 and after, or before it, of the years 1 to 9999.
    public init(secondsSince1970 seconds: Int64) {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        self.init(
            year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday),
            hour: Int(parts.tm_hour), minute: Int(parts.tm_min), second: Int(parts.tm_sec))
    }

    /// Seconds since 1970; nil when there is no such date or time.
    public var secondsSince1970: Int64? {
        guard (1...9999).contains(year), (0..<24).contains(hour), (0..<60).contains(minute), (0...60).contains(second)
        else {
            return nil
        }
        var parts = tm()
        parts.tm_year = Int32(year - 1900)
        parts.tm_mon = Int32(month - 1)
        parts.tm_mday = Int32(day)
        // timegm takes the 31st of February for the 3rd of March and says so in its argument.
        let midnight = timegm(&parts)
        guard parts.tm_mon == month - 1, parts.tm_mday == day else { return nil }
        return Int64(midnight) + Int64(hour * 3600 + minute * 60 + second)
    }
}
