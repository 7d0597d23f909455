import Formats
import HalcyonModel
import HalcyonTelemetry
import ProgramSettings
import Telemetry

extension ProgramOptions {
    /// Settings of the traces of jobs, and of their export.
    static let traceSettings: [Setting<ProgramOptions>] = [
        Setting(
            "traces.endpoint", \.traces.endpoint, .text,
            fallbacks: ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
        )
        .help(
            "Where traces go, by OTLP over HTTP in JSON (http://collector:4318). Without a path it is /v1/traces. Unless set, nothing is recorded."
        ),
        Setting(
            "traces.protocol", \.tracesProtocol, .oneOf,
            fallbacks: ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
        )
        .help("How the collector is spoken to: http/json, which listens where http/protobuf does, is all there is."),
        Setting(
            "traces.headers", \.tracesHeaders, .list(of: .pair), isSecret: true,
            fallbacks: ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]
        )
        .help("Headers (Authorization=Bearer%20…) that are sent to it, percent-encoded."),
        Setting("traces.service", \.tracesService, .text, fallbacks: ["OTEL_SERVICE_NAME"])
            .help("What the processes are called in traces: service.name."),
        Setting("traces.resource", \.tracesResource, .list(of: .pair), fallbacks: ["OTEL_RESOURCE_ATTRIBUTES"])
            .help("What else a process says of itself in traces (deployment.environment.name=prod), percent-encoded."),
        Setting("traces.ratio", \.traces.ratio, .number(in: 0...1))
            .help(
                "Which part is recorded of the jobs that bring no traceparent. Of the others it says itself whether they are."
            ),
        Setting("traces.queue", \.traces.limits.queue, .integer(in: 16...1_000_000))
            .help("How many spans wait to be sent; what does not fit is dropped, and no job waits."),
        Setting("traces.batch", \.traces.limits.batch, .integer(in: 1...100_000))
            .help("How many spans go in one request."),
        Setting("traces.interval", \.traces.limits.interval, .duration(in: .milliseconds(10) ... .seconds(600)))
            .help("How long a span waits for others to go with."),
        Setting("traces.timeout", \.traces.timeout, .duration(in: .milliseconds(10) ... .seconds(600)))
            .help("Time for one request to the collector."),
        Setting("traces.patience", \.traces.limits.patience, .duration(in: .zero ... .seconds(3600)))
            .help("For how long spans are sent again that the collector does not take now."),
    ]
}

/// The protocols that OpenTelemetry's exporters may be told to use.
enum TraceProtocol: String, CaseIterable, Sendable {
    case httpJSON = "http/json"
    /// A collector that takes it takes JSON too, at the same endpoint.
    case httpProtobuf = "http/protobuf"
    /// Not spoken.
    case grpc
}

extension TraceOptions {
    /// nil when nothing is to be recorded.
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
        // A service's own name stands above one among the attributes, as OpenTelemetry has it.
        let isNamed = settings.origin(of: \.tracesService) != .builtIn
        for pair in options.tracesResource where !(isNamed && pair.name == "service.name") {
            resource[pair.name] = .string(pair.value)
        }
    }

    /// The protocol of other programs does not matter where the endpoint is Halcyon's own.
    private static func checkProtocol(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) {
        let (place, spoken) = (settings.origin(of: \.traces.endpoint), settings.origin(of: \.tracesProtocol))
        guard settings.options.tracesProtocol == .grpc, place.isOpenTelemetrys || !spoken.isOpenTelemetrys else {
            return
        }
        throw ConfigurationError(
            "traces.protocol: \(spoken) asks for grpc, and Halcyon speaks http/json alone; set traces.endpoint to where the collector "
                + "takes OTLP over HTTP, port 4318 unless changed")
    }

    private static func endpoint(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) -> String {
        let text = settings.options.traces.endpoint
        let origin = settings.origin(of: \.traces.endpoint)
        guard let url = try? WebURL(text), !url.hasUser, !text.utf8.contains(where: { "?#".utf8.contains($0) }),
            let start = url.canonical.firstRange(of: "://")?.upperBound
        else {
            throw ConfigurationError(
                "traces.endpoint: expected an http or https URL without user, query and fragment, such as http://collector:4318; see "
                    + "\(origin)")
        }
        // That variable names what stands before the paths of all signals.
        let isBase = origin == .variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        guard isBase || url.canonical[start...].drop(while: { $0 != "/" }) == "/" else { return url.canonical }
        return url.canonical + (url.canonical.hasSuffix("/") ? "" : "/") + "v1/traces"
    }
}

extension SettingOrigin {
    /// Whether a variable of OpenTelemetry's set it.
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
    /// `name=value`, the value percent-encoded, as OpenTelemetry's variables have it.
    static var pair: Self {
        ValueKind(
            "name=value, with commas and blanks of the value percent-encoded",
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
