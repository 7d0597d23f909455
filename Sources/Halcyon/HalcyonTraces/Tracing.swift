import Curl
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
