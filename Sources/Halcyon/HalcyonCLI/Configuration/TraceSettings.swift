import Formats
import HalcyonModel
import HalcyonTelemetry
import ProgramSettings
import Telemetry

extension ProgramOptions {
    /// Settings of tracing and the export of traces.
    static let traceSettings: [Setting<ProgramOptions>] = [
        Setting(
            "traces.endpoint", \.traces.endpoint, .text,
            fallbacks: ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
        )
        .help(
            """
            OTLP endpoint for traces, HTTP with JSON (http://collector:4318). The default path is /v1/traces. \
            Tracing is disabled by default.
            """),
        Setting(
            "traces.protocol", \.tracesProtocol, .oneOf,
            fallbacks: ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
        )
        .help("Protocol of the collector. Only http/json is supported; http/protobuf endpoints accept it too."),
        Setting(
            "traces.headers", \.tracesHeaders, .list(of: .pair), isSecret: true,
            fallbacks: ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]
        )
        .help("Headers (Authorization=Bearer%20…) of requests to the collector, percent-encoded."),
        Setting("traces.service", \.tracesService, .text, fallbacks: ["OTEL_SERVICE_NAME"])
            .help("Service name in traces (service.name)."),
        Setting("traces.resource", \.tracesResource, .list(of: .pair), fallbacks: ["OTEL_RESOURCE_ATTRIBUTES"])
            .help("Additional resource attributes (deployment.environment.name=prod), percent-encoded."),
        Setting("traces.ratio", \.traces.ratio, .number(in: 0...1))
            .help("Fraction of jobs without a traceparent that are traced. For other jobs the traceparent decides."),
        Setting("traces.queue", \.traces.limits.queue, .integer(in: 16...1_000_000))
            .help("Maximum number of spans that wait for export. Further spans are dropped, and jobs are not delayed."),
        Setting("traces.batch", \.traces.limits.batch, .integer(in: 1...100_000))
            .help("Maximum number of spans per request."),
        Setting("traces.interval", \.traces.limits.interval, .duration(in: .milliseconds(10) ... .seconds(600)))
            .help("Maximum time that a span waits for others to fill a batch."),
        Setting("traces.timeout", \.traces.timeout, .duration(in: .milliseconds(10) ... .seconds(600)))
            .help("Timeout of one request to the collector."),
        Setting("traces.retryTimeout", \.traces.limits.retryTimeout, .duration(in: .zero ... .seconds(3600)))
            .help("Time for which spans are retried if the collector is unavailable."),
    ]
}

/// The export protocols that OpenTelemetry's variables can select.
enum TraceProtocol: String, CaseIterable, Sendable {
    case httpJSON = "http/json"
    /// Endpoints for protobuf accept JSON too.
    case httpProtobuf = "http/protobuf"
    /// Not supported.
    case grpc
}

extension TraceOptions {
    /// Creates the options. Returns nil if tracing is disabled.
    /// - Throws: ``ConfigurationError`` that names the setting.
    init?(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) {
        let options = settings.options
        guard !options.traces.endpoint.isEmpty else { return nil }
        try Self.checkProtocol(settings)
        self = options.traces
        endpoint = try Self.endpoint(settings)
        for pair in options.tracesHeaders { headers[pair.name] = pair.value }
        version = Version.number
        resource = ["service.name": options.tracesService, "service.version": Version.number]
        // As OpenTelemetry specifies, an explicit service name takes precedence over one among the attributes.
        let isNamed = settings.origin(of: \.tracesService) != .builtIn
        for pair in options.tracesResource where !(isNamed && pair.name == "service.name") {
            resource[pair.name] = .string(pair.value)
        }
    }

    /// Checks the protocol. A protocol from an OpenTelemetry variable does not matter if the endpoint is from a Halcyon
    /// setting.
    private static func checkProtocol(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) {
        let (endpoint, selected) = (settings.origin(of: \.traces.endpoint), settings.origin(of: \.tracesProtocol))
        guard settings.options.tracesProtocol == .grpc, endpoint.isOpenTelemetrys || !selected.isOpenTelemetrys else {
            return
        }
        throw ConfigurationError(
            "traces.protocol: \(selected) selects grpc, but only http/json is supported; set traces.endpoint to the "
                + "collector's endpoint for OTLP over HTTP, by default on port 4318")
    }

    private static func endpoint(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) -> String {
        let text = settings.options.traces.endpoint
        let origin = settings.origin(of: \.traces.endpoint)
        guard let url = try? WebURL(text), !url.hasUser, !text.utf8.contains(where: { "?#".utf8.contains($0) }),
            let start = url.canonical.firstRange(of: "://")?.upperBound
        else {
            throw ConfigurationError(
                "traces.endpoint: expected an http or https URL without user, query and fragment, such as "
                    + "http://collector:4318; see \(origin)")
        }
        // This variable is the base URL of all signals.
        let isBase = origin == .variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        guard isBase || url.canonical[start...].drop(while: { $0 != "/" }) == "/" else { return url.canonical }
        return url.canonical + (url.canonical.hasSuffix("/") ? "" : "/") + "v1/traces"
    }
}

extension SettingSource {
    /// True if an OpenTelemetry variable set it.
    fileprivate var isOpenTelemetrys: Bool {
        if case .variable(let name) = self { name.hasPrefix("OTEL_") } else { false }
    }
}

/// A name and a value.
struct NamedText: Hashable, Sendable {
    let name: String
    let value: String
}

extension ValueKind<NamedText> {
    /// A value kind for `name=value` with a percent-encoded value, as in OpenTelemetry's variables.
    static var pair: Self {
        ValueKind(
            "name=value, with commas and spaces in the value percent-encoded",
            read: { text in
                guard let equals = text.firstIndex(of: "="), equals != text.startIndex,
                    let value = PercentEncoding.decode(text[text.index(after: equals)...].utf8)
                else { return nil }
                return NamedText(
                    name: text[..<equals].filter { $0 != " " }, value: String(decoding: value, as: UTF8.self))
            },
            write: { "\($0.name)=\(PercentEncoding.encode($0.value, keeping: "/"))" })
    }
}
