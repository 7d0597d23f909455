import HalcyonImaging
import HalcyonModel
import Telemetry

extension JobTrace {
    /// The source is there.
    func fetched(_ fetched: FetchedSource, _ request: SourceRequest, _ lap: Lap) {
        guard !fetched.cached.isShared else {
            // Another job's trace has the fetch.
            if let other = fetched.cached.loadedFor { link(to: other) }
            return add(.lease, lap, .internal, ["halcyon.source": "shared"])
        }
        var attributes = request.spanAttributes
        attributes.merge([
            "http.response.status_code": fetched.cached.source.status,
            "http.response.body.size": fetched.cached.source.body.count,
            "halcyon.origin": fetched.origin.rawValue,
        ])
        add(.fetch, lap, fetched.origin == .network ? request.source.spanKind : .internal, attributes)
    }

    /// The source does not come.
    func failedToFetch(_ request: SourceRequest, _ lap: Lap, _ error: any Error) {
        var attributes = request.spanAttributes
        attributes.merge(["error.type": (error as? Failure)?.code.rawValue])
        add(.fetch, lap, request.source.spanKind, attributes, error: error)
    }

    /// A result was put where the job wants it, or not. Of the URL, which may be a secret, the host is told.
    func put(at url: WebURL, _ bytes: Int, _ lap: Lap, _ error: (any Error)?) {
        let attributes: SpanAttributes = [
            "http.request.method": "PUT", "server.address": url.host, "http.request.body.size": bytes,
            "error.type": (error as? Failure)?.code.rawValue,
        ]
        add(.put, lap, .client, attributes, error: error)
    }

    /// The outputs are there. How long its parts took was measured where they were made, one after the other, and the last of them has just
    /// ended: before the first of them a thread was waited for.
    func rendered(_ timings: Rendering.Timings, _ lap: Lap) {
        let encode = max(lap.start, lap.end - timings.encode)
        let process = max(lap.start, encode - timings.process)
        let decode = max(lap.start, process - timings.decode)
        add(.decode, Lap(from: decode, to: process))
        add(.process, Lap(from: process, to: encode))
        add(.encode, Lap(from: encode, to: lap.end))
    }
}

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
