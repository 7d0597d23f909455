import HalcyonModel
import Telemetry

extension SourceRequest {
    /// What a span says of asking for it. Nothing that gives access to the source: no user, and of a query the names alone, for any
    /// value may be a secret.
    var spanAttributes: SpanAttributes {
        guard case .web(let url) = source else { return ["halcyon.source": source.kindName] }
        let parts = PublicURL(url.canonical)
        return [
            "halcyon.source": source.kindName, "http.request.method": "GET", "url.full": parts.text,
            "server.address": url.host, "server.port": parts.port,
        ]
    }
}

extension Source {
    /// What kind of source it is.
    fileprivate var kindName: String {
        switch self {
        case .web: "http"
        case .initials: "initials"
        case .file: "file"
        case .data: "data"
        case .s3: "s3"
        case .video: "video"
        case .custom: "custom"
        }
    }

    /// Whether somebody else is asked for it.
    var spanKind: Span.Kind {
        switch self {
        case .web, .s3: .client
        case .initials, .file, .data, .video, .custom: .internal
        }
    }
}

/// A URL as everybody may read it.
struct PublicURL {
    /// Without user; what a query sets is hidden.
    let text: String
    /// The port, the scheme's own if it names none.
    let port: Int

    /// - Parameter canonical: an http or https URL in its canonical form.
    init(_ canonical: String) {
        let schemeEnd = canonical.firstRange(of: "://")?.upperBound ?? canonical.startIndex
        let rest = canonical[schemeEnd...]
        let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let authority = rest[..<authorityEnd].split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        let tail = rest[authorityEnd...]
        let question = tail.firstIndex(of: "?")
        let path = tail[..<(question ?? tail.endIndex)]
        let query = question.map { "?" + Self.hidden(tail[tail.index(after: $0)...]) } ?? ""
        text = "\(canonical[..<schemeEnd])\(authority)\(path)\(query)"
        let digits = authority.suffix(while: { $0.isASCII && $0.isNumber })
        let hasPort = authority.dropLast(digits.count).last == ":"
        port = (hasPort ? Int(digits) : nil) ?? (canonical.hasPrefix("https") ? 443 : 80)
    }

    /// The query's names.
    fileprivate static func hidden(_ query: Substring) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false).map { part in
            guard let equals = part.firstIndex(of: "=") else { return part.isEmpty ? "" : "REDACTED" }
            return "\(part[..<equals])=REDACTED"
        }.joined(separator: "&")
    }
}

extension String {
    /// A source's shown text for the log: of a URL's query the names alone, for any value may be a secret, and not longer than a message.
    var loggedURL: String {
        guard let start = firstRange(of: "://")?.upperBound, let question = self[start...].firstIndex(of: "?") else {
            return Failure.shortened(self)
        }
        return Failure.shortened(self[...question] + PublicURL.hidden(self[index(after: question)...]))
    }
}

extension Substring {
    fileprivate func suffix(while holds: (Character) -> Bool) -> Substring {
        var start = endIndex
        while start > startIndex, holds(self[index(before: start)]) { start = index(before: start) }
        return self[start...]
    }
}
