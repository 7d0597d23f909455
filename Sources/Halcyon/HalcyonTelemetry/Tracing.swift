import Curl
import Formats
import HalcyonModel
import Telemetry

/// Records the traces of a process and exports them to a collector by OTLP over HTTP.
public final class Tracing: Sendable {
    /// The tracer that samples and records spans.
    public let tracer: Tracer
    private let exporter: SpanExporter
    private let client: CurlClient
    private let timeout: Duration

    /// Starts exporting. ``close(within:)`` must be called at the end.
    public init(_ options: TraceOptions, log: Log, metrics: Metrics) {
        var settings = CurlSettings()
        settings.userAgent = "Halcyon/\(options.version)"
        settings.idleConnections = 1
        client = CurlClient(settings)
        timeout = options.timeout
        let post = SpanPost(client: client, options: options)
        exporter = SpanExporter(
            options.limits, resource: options.resource, scope: ("halcyon", options.version), log: log,
            metrics: metrics, send: post.send)
        tracer = Tracer(ratio: options.ratio, exporter)
    }

    /// Exports the remaining spans until the deadline, but for at most the timeout of one request, and closes
    /// everything.
    public func close(by deadline: ContinuousClock.Instant) async {
        await close(within: min(max(.zero, ContinuousClock.now.duration(to: deadline)), timeout))
    }

    /// Exports the remaining spans within the limit and closes everything. It must be called after all recorded work
    /// has ended.
    public func close(within limit: Duration) async {
        await exporter.close(within: limit)
        await client.close()
    }
}

/// The options of trace recording and export. `halcyon config` documents the settings with the same names.
public struct TraceOptions: Sendable {
    /// The URL to which spans are posted.
    public var endpoint: String
    /// The header fields to add to requests, such as an API key.
    public var headers = HTTPFields()
    /// The fraction of jobs without an upstream sampling decision that are recorded, 0 to 1.
    public var ratio = 1.0
    /// The timeout of a request.
    public var timeout = Duration.seconds(10)
    /// The resource limits of the export.
    public var limits = ExportLimits()
    /// The resource attributes of the process, such as `service.name`.
    public var resource: SpanAttributes = ["service.name": "halcyon"]
    /// The version of Halcyon, used in the scope of all spans and in the header `User-Agent`.
    public var version = "0"

    /// Creates options for a collector, with defaults for the rest.
    public init(endpoint: String) { self.endpoint = endpoint }
}

/// Posts the body of an export and reads the collector's response.
struct SpanPost: Sendable {
    let client: CurlClient
    let options: TraceOptions

    /// Sends the body. Redirects are not followed, because OTLP does not use them and the headers may contain a key.
    @Sendable func send(_ body: [UInt8]) async -> ExportResponse {
        var headers = options.headers
        headers["Content-Type"] = "application/json"
        var request = HTTPRequest(.post, options.endpoint, headers: headers, body: body)
        request.timeout = options.timeout
        request.connectTimeout = options.timeout
        request.stall = nil
        request.maxBytes = 1 << 20
        request.maxRedirects = 0
        do throws(CurlError) {
            let response = try await client.execute(request)
            let retryAfter = response.headers.first("Retry-After").flatMap {
                RetryAfter.seconds(of: $0, date: response.headers.first("Date"), now: Timestamp.now.seconds)
            }
            return ExportResponse(status: response.status, retryAfter: retryAfter, body: response.body)
        } catch {
            // Without a response the spans may have been delivered. A repeated span has the same id and counts once.
            switch error.code {
            case .badURL, .badRequest, .unsupportedScheme, .tooLarge: return .refused("\(error)")
            default: return .unavailable("\(error)", retryAfter: nil)
            }
        }
    }
}
