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
