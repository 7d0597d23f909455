import Synchronization

#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// The correction of the system's clock in milliseconds.
private let correction = Atomic<Int64>(0)

/// A point in civil time, for people and other machines. Do not use it to measure durations.
public struct Timestamp: Hashable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
    public let milliseconds: Int64

    /// Creates a timestamp.
    /// - Parameter milliseconds: Milliseconds since 1970-01-01T00:00:00Z.
    public init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    /// Creates a timestamp, rounded to milliseconds.
    /// - Parameter seconds: Seconds since 1970-01-01T00:00:00Z.
    public init(seconds: Double) {
        milliseconds = Int64((seconds * 1000).rounded())
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    public var seconds: Double { Double(milliseconds) / 1000 }

    /// The current time, by the system's clock plus this process's correction.
    public static var now: Timestamp {
        Timestamp(milliseconds: system.milliseconds + correction.load(ordering: .relaxed))
    }

    /// Sets the correction of the system's clock: the number of milliseconds added to ``now`` in the whole process.
    public static func correct(by milliseconds: Int64) { correction.store(milliseconds, ordering: .relaxed) }

    /// The time of the system's clock, uncorrected.
    public static var system: Timestamp {
        let time = systemTime
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// The value of ``now`` in nanoseconds since 1970-01-01T00:00:00Z, for shorter spans.
    public static var nanoseconds: Int64 {
        let time = systemTime
        let corrected = Int64(time.tv_sec) * 1000 + correction.load(ordering: .relaxed)
        return corrected * 1_000_000 + Int64(time.tv_nsec)
    }

    private static var systemTime: timespec {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time
    }

    /// The time in UTC with milliseconds (RFC 3339): `2026-11-21T10:35:00.250Z`. Supports the years 0 to 9999.
    public var rfc3339: String {
        let (seconds, thousandths) = milliseconds.floorDivided(by: 1000)
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        return String(unsafeUninitializedCapacity: 24) { text in
            var end = 0
            func put(_ value: Int, _ digits: Int, _ mark: Unicode.Scalar) {
                var rest = value
                for place in stride(from: end + digits - 1, through: end, by: -1) {
                    text[place] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
                text[end + digits] = UInt8(ascii: mark)
                end += digits + 1
            }
            put(Int(parts.tm_year) + 1900, 4, "-")
            put(Int(parts.tm_mon) + 1, 2, "-")
            put(Int(parts.tm_mday), 2, "T")
            put(Int(parts.tm_hour), 2, ":")
            put(Int(parts.tm_min), 2, ":")
            put(Int(parts.tm_sec), 2, ".")
            put(Int(thousandths), 3, "Z")
            return end
        }
    }
}

extension Int64 {
    /// The quotient rounded down, and the remainder, which is never negative.
    fileprivate func floorDivided(by divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

extension Timestamp {
    /// Parses a date-time of RFC 3339, with any offset and any number of decimals; nil for anything else.
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

/// A reader that consumes a text from the beginning.
private struct Reader {
    private var rest: ArraySlice<UInt8>

    init(_ text: String) { rest = ArraySlice(text.utf8) }

    var isAtEnd: Bool { rest.isEmpty }

    /// Skips the next character if it is one of `marks`. True if it was skipped.
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

    /// The fraction after a point, below 1; 0 without a point, nil for a point without digits.
    mutating func fraction() -> Double? {
        guard skip(".") else { return 0 }
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard !digits.isEmpty else { return nil }
        rest.removeFirst(digits.count)
        return Double("0." + String(decoding: digits, as: UTF8.self))
    }

    /// The offset from UTC in seconds, positive east of Greenwich.
    mutating func offset() -> Int? {
        if skip("Zz") { return 0 }
        let isBehind = rest.first == UInt8(ascii: "-")
        guard skip("+-"), let hours = number(digits: 2), skip(":"), let minutes = number(digits: 2), hours < 24,
            minutes < 60
        else { return nil }
        return (hours * 60 + minutes) * (isBehind ? -60 : 60)
    }
}
