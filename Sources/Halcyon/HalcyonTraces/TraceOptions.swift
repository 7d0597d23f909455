import HTTPFields
import Telemetry

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
