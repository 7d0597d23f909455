import Curl
import Formats
import HalcyonModel

/// A response whose end is missing, and the way to the rest of it (RFC 9110, sections 13.1.5, 14 and 15.3.7). A pure value.
struct Resumption {
    /// How a request for the rest says of what.
    enum Condition: CaseIterable {
        /// `If-Range`: where the source has changed, all of it comes. It takes dates too.
        case ifRange
        /// `If-Match`: where the source has changed, nothing comes. Stores of S3 know no other. It takes entity tags alone.
        case ifMatch
    }

    /// What is there.
    private(set) var response: HTTPResponse
    /// What says that the rest belongs to it.
    private let validator: String
    private let condition: Condition

    /// Nil where the rest cannot be asked for: the origin gives no ranges or no validator that stands for each byte, or what
    /// came was compressed on its way, so that nobody knows where it broke off.
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

    /// What a request for the rest says.
    var fields: [(name: String, value: String)] {
        [("Range", "bytes=\(response.body.count)-"), (condition == .ifRange ? "If-Range" : "If-Match", validator)]
    }

    /// What a response to that request is.
    enum Outcome {
        /// With it the response is whole.
        case whole(HTTPResponse)
        /// Another part came, and its end is missing too.
        case more(Resumption)
        /// Another response, from its beginning: the source has changed, or the origin does not care for ranges.
        case anew(HTTPResponse)
        /// None: the source has changed, and is to be asked for from its beginning.
        case changed
        /// Nothing to make anything of.
        case useless
    }

    /// Joins a response to a request for the rest; `isWhole` is false where its own end is missing.
    func joined(with rest: HTTPResponse, isWhole: Bool) -> Outcome {
        if condition == .ifMatch, rest.status == 412 { return .changed }
        guard rest.status == 206 else { return isWhole && rest.status == 200 ? .anew(rest) : .useless }
        guard let range = rest.headers.first("Content-Range").flatMap(Self.range), range.first == response.body.count,
            rest.headers["Content-Encoding"] == nil,
            // Of another version, whatever was asked for (RFC 9110, section 15.3.7.3).
            rest.headers.first("ETag") == nil || rest.headers.first("ETag") == response.headers.first("ETag")
        else { return .useless }
        var longer = self
        longer.response.body += rest.body
        guard isWhole else { return .more(longer) }
        let expected = range.total ?? range.last + 1
        return longer.response.body.count == expected ? .whole(longer.response) : .useless
    }

    /// Of `bytes 100-199/200`; the total may be unknown, `*`.
    private static func range(_ text: String) -> (first: Int, last: Int, total: Int?)? {
        let parts = text.split { " -/".contains($0) }
        guard parts.count == 4, parts[0].lowercased() == "bytes", let first = Int(parts[1]), let last = Int(parts[2]),
            first <= last
        else { return nil }
        let total = Int(parts[3])
        guard total != nil || parts[3] == "*" else { return nil }
        return (first, last, total)
    }

    /// An entity tag that is not weak; else the date of the last change where the response is at least a second younger, so
    /// that there was no second change in that second (RFC 9110, section 8.8.2.2).
    private static func strongValidator(of headers: HTTPFields) -> String? {
        if let tag = headers.first("ETag") { return tag.hasPrefix("\"") ? tag : nil }
        guard let text = headers.first("Last-Modified"), let changed = HTTPDate.seconds(of: text, now: 0),
            let date = headers.first("Date").flatMap({ HTTPDate.seconds(of: $0, now: 0) }), date - changed >= 1
        else { return nil }
        return text
    }
}
