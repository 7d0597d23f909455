import Curl
import Formats
import HalcyonModel
import Telemetry

/// What a process records as traces, on its way to a collector by OTLP over HTTP.
public final class Tracing: Sendable {
    /// Says what is recorded, and takes it.
    public let tracer: Tracer
    private let exporter: SpanExporter
    private let client: CurlClient
    private let timeout: Duration

    /// Starts. ``close(within:)`` must be called in the end.
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

    /// Sends what is left until then, and no longer than one request may take: what was worked on is done, and spans are worth no more.
    public func close(by deadline: ContinuousClock.Instant) async {
        await close(within: min(max(.zero, ContinuousClock.now.duration(to: deadline)), timeout))
    }

    /// Sends what is left, for at most so long, and closes everything. To be called when all that is recorded has ended.
    public func close(within limit: Duration) async {
        await exporter.close(within: limit)
        await client.close()
    }
}

/// Where spans go, and what is recorded. The settings of the same names are documented by `halcyon config`.
public struct TraceOptions: Sendable {
    /// The URL that spans are posted to.
    public var endpoint: String
    /// Sent along, as for a key.
    public var headers = HTTPFields()
    /// Which part is recorded of the jobs that nobody has decided about, 0 to 1.
    public var ratio = 1.0
    /// Time for one request.
    public var timeout = Duration.seconds(10)
    /// What the export may cost.
    public var limits = ExportLimits()
    /// What the process says of itself: `service.name` and more.
    public var resource: SpanAttributes = ["service.name": "halcyon"]
    /// Of Halcyon, as the scope of all spans and in the header `User-Agent`.
    public var version = "0"

    /// Takes the place of the collector; the rest has defaults.
    public init(endpoint: String) { self.endpoint = endpoint }
}

/// Posts the body of an export, and reads what the collector says to it.
struct SpanPost: Sendable {
    let client: CurlClient
    let options: TraceOptions

    /// No redirect is followed: OTLP knows none, and the headers may hold a key.
    @Sendable func send(_ body: [UInt8]) async -> ExportReply {
        var headers = options.headers
        headers["Content-Type"] = "application/json"
        var request = HTTPRequest(.post, options.endpoint, headers: headers, body: body)
        request.timeout = options.timeout
        request.connectTimeout = options.timeout
        request.stall = nil
        request.maxBytes = 1 << 20
        request.maxRedirects = 0
        do throws(CurlError) {
            let response = try await client.perform(request)
            let retryAfter = response.headers.first("Retry-After").flatMap {
                RetryAfter.seconds(of: $0, date: response.headers.first("Date"), now: Timestamp.now.seconds)
            }
            return ExportReply(status: response.status, retryAfter: retryAfter, body: response.body)
        } catch {
            // Whether they came is not known when there is no answer: a span that comes twice has the same name, and counts once.
            switch error.code {
            case .badURL, .badRequest, .unsupportedScheme, .tooLarge: return .refused("\(error)")
            default: return .unavailable("\(error)", retryAfter: nil)
            }
        }
    }
}
