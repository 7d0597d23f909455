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
