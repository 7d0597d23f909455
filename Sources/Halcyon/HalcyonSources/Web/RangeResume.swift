import Curl
import Formats
import HalcyonModel

/// An interrupted response and the information needed to resume it (RFC 9110, sections 13.1.5, 14 and 15.3.7). A pure
/// value.
struct RangeResume {
    /// The condition header of a range request.
    enum Condition: CaseIterable {
        /// `If-Range`: if the source has changed, the response is the whole source. Supports dates too.
        case ifRange
        /// `If-Match`: if the source has changed, the response is 412. The only option for S3 stores. Supports entity
        /// tags only.
        case ifMatch
    }

    /// The part that was received.
    private(set) var response: HTTPResponse
    /// The validator that proves that the rest belongs to this part.
    private let validator: String
    private let condition: Condition

    /// Creates the state for resuming a partial response.
    ///
    /// Returns nil if the response cannot be resumed: the origin has no range support or no strong validator, or the
    /// body was compressed in transit, so that the offset is unknown.
    init?(_ partial: HTTPResponse, _ condition: Condition = .ifRange) {
        let headers = partial.headers
        guard partial.status == 200, headers["Content-Encoding"] == nil,
            headers.first("Accept-Ranges")?.lowercased() != "none", let validator = Self.strongValidator(of: headers),
            condition == .ifRange || headers.first("ETag") != nil
        else { return nil }
        response = partial
        self.validator = validator
        self.condition = condition
    }

    /// The header fields of the range request.
    var fields: [(name: String, value: String)] {
        [("Range", "bytes=\(response.body.count)-"), (condition == .ifRange ? "If-Range" : "If-Match", validator)]
    }

    /// The meaning of a response to a range request.
    enum Outcome {
        /// The response is complete.
        case whole(HTTPResponse)
        /// Another part was received, and it was interrupted too.
        case more(RangeResume)
        /// A whole new response: the source has changed, or the origin ignores ranges.
        case anew(HTTPResponse)
        /// The source has changed and must be requested from the beginning.
        case changed
        /// The parts together exceed the limit.
        case tooLarge
        /// The response cannot be used.
        case useless
    }

    /// Appends the response to a range request.
    /// - Parameters:
    ///   - isWhole: False if that response was interrupted too.
    ///   - limit: The maximum size of all parts together, in bytes.
    func joined(with rest: HTTPResponse, isWhole: Bool, limit: Int) -> Outcome {
        if condition == .ifMatch, rest.status == 412 { return .changed }
        guard rest.status == 206 else { return isWhole && rest.status == 200 ? .anew(rest) : .useless }
        guard let range = rest.headers.first("Content-Range").flatMap(Self.range), range.first == response.body.count,
            rest.headers["Content-Encoding"] == nil,
            // The part belongs to another version, despite the condition (RFC 9110, section 15.3.7.3).
            rest.headers.first("ETag") == nil || rest.headers.first("ETag") == response.headers.first("ETag")
        else { return .useless }
        guard rest.body.count <= limit - response.body.count else { return .tooLarge }
        var longer = self
        longer.response.body += rest.body
        guard isWhole else { return .more(longer) }
        let expected = range.total ?? range.last + 1
        return longer.response.body.count == expected ? .whole(longer.response) : .useless
    }

    /// The maximum size of a source in a range, in bytes, so that positions can be added.
    private static let longestSource = 1 << 50

    /// Parses a range such as `bytes 100-199/200`. The total may be `*` for unknown.
    /// - Returns: nil if the range is invalid (RFC 9110, section 14.4) or ends beyond 2^50 bytes.
    static func range(_ text: String) -> (first: Int, last: Int, total: Int?)? {
        let parts = text.split { " -/".contains($0) }
        guard parts.count == 4, parts[0].lowercased() == "bytes", let first = Int(parts[1]), let last = Int(parts[2]),
            first <= last, last < longestSource
        else { return nil }
        if parts[3] == "*" { return (first, last, nil) }
        guard let total = Int(parts[3]), last < total, total <= longestSource else { return nil }
        return (first, last, total)
    }

    /// The strong validator: an entity tag that is not weak, or else the modification date if the response is at least
    /// one second newer, so that there was no second change within that second (RFC 9110, section 8.8.2.2).
    private static func strongValidator(of headers: HTTPFields) -> String? {
        if let tag = headers.first("ETag") { return tag.hasPrefix("\"") ? tag : nil }
        guard let text = headers.first("Last-Modified"), let changed = HTTPDate.seconds(of: text, now: 0),
            let date = headers.first("Date").flatMap({ HTTPDate.seconds(of: $0, now: 0) }), date - changed >= 1
        else { return nil }
        return text
    }
}
