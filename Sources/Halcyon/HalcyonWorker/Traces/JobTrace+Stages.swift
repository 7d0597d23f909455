import HalcyonImaging
import HalcyonModel
import Telemetry

extension JobTrace {
    /// Records that the source was fetched.
    func fetched(_ fetched: FetchedSource, _ request: SourceRequest, _ lap: Interval) {
        guard !fetched.cached.isShared else {
            // The fetch is recorded in the trace of another job.
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

    /// Records that the source could not be fetched.
    func failedToFetch(_ request: SourceRequest, _ lap: Interval, _ error: any Error) {
        var attributes = request.spanAttributes
        attributes.merge(["error.type": (error as? JobError)?.code.rawValue])
        add(.fetch, lap, request.source.spanKind, attributes, error: error)
    }

    /// Records the upload of a result. Only the host of the URL is recorded, because the URL may be a secret.
    func put(at url: WebURL, _ bytes: Int, _ lap: Interval, _ error: (any Error)?) {
        let attributes: SpanAttributes = [
            "http.request.method": "PUT", "server.address": url.host, "http.request.body.size": bytes,
            "error.type": (error as? JobError)?.code.rawValue,
        ]
        add(.put, lap, .client, attributes, error: error)
    }

    /// Records that the results were rendered. The durations of the steps were measured during rendering. The steps ran
    /// one after the other and the last one has just ended; the time before the first one was spent waiting for a
    /// thread.
    func rendered(_ timings: RenderResult.Timings, _ lap: Interval) {
        let encode = max(lap.start, lap.end - timings.encode)
        let process = max(lap.start, encode - timings.process)
        let decode = max(lap.start, process - timings.decode)
        add(.decode, Interval(from: decode, to: process))
        add(.process, Interval(from: process, to: encode))
        add(.encode, Interval(from: encode, to: lap.end))
    }
}

extension SourceRequest {
    /// The span attributes of a request for the source. They contain nothing that gives access to the source: no
    /// credentials, and only the names of the query, because any value may be a secret.
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
    /// The kind of the source.
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

    /// The kind of the span: `client` if the source is requested from another server.
    var spanKind: Span.Kind {
        switch self {
        case .web, .s3: .client
        case .initials, .file, .data, .video, .custom: .internal
        }
    }
}

/// A URL without its secrets.
struct PublicURL {
    /// The text of the URL without credentials and with redacted query values.
    let text: String
    /// The port, or the default port of the scheme.
    let port: Int

    /// - Parameter canonical: An http or https URL in canonical form.
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

    /// Returns the query with its values redacted.
    fileprivate static func hidden(_ query: Substring) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false).map { part in
            guard let equals = part.firstIndex(of: "=") else { return part.isEmpty ? "" : "REDACTED" }
            return "\(part[..<equals])=REDACTED"
        }.joined(separator: "&")
    }
}

extension String {
    /// The text of a source for the log, shortened to the length of a message. Query values are redacted, because any
    /// value may be a secret.
    var loggedURL: String {
        guard let start = firstRange(of: "://")?.upperBound, let question = self[start...].firstIndex(of: "?") else {
            return JobError.shortened(self)
        }
        return JobError.shortened(self[...question] + PublicURL.hidden(self[index(after: question)...]))
    }
}

extension Substring {
    fileprivate func suffix(while holds: (Character) -> Bool) -> Substring {
        var start = endIndex
        while start > startIndex, holds(self[index(before: start)]) { start = index(before: start) }
        return self[start...]
    }
}
