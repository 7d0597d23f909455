import HalcyonModel
import HalcyonTraces
import Settings
import Telemetry

/// What is recorded of jobs as traces, and where that goes.
extension Keys {
    private static let traces = TraceOptions(endpoint: "")

    static let tracesEndpoint = SettingKey(
        "traces.endpoint", .string, default: "",
        help:
            "Where traces go, by OTLP over HTTP in JSON (http://collector:4318). Without a path it is /v1/traces. Unless set, nothing is recorded."
    )
    static let tracesProtocol = SettingKey(
        "traces.protocol", .oneOf, default: TraceProtocol.httpJSON,
        help: "How the collector is spoken to: http/json, which listens where http/protobuf does, is all there is.")
    static let tracesHeaders = SettingKey(
        "traces.headers", .list(of: .pair), default: [],
        help: "Headers (Authorization=Bearer%20…) that are sent to it, percent-encoded.", isSecret: true)
    static let tracesService = SettingKey(
        "traces.service", .string, default: "halcyon", help: "What the processes are called in traces: service.name.")
    static let tracesResource = SettingKey(
        "traces.resource", .list(of: .pair), default: [],
        help: "What else a process says of itself in traces (deployment.environment.name=prod), percent-encoded.")
    static let tracesRatio = SettingKey(
        "traces.ratio", .double(in: 0...1), default: traces.ratio,
        help:
            "Which part is recorded of the jobs that bring no traceparent. Of the others it says itself whether they are."
    )
    static let tracesQueue = SettingKey(
        "traces.queue", .integer(in: 16...1_000_000), default: traces.limits.queue,
        help: "How many spans wait to be sent; what does not fit is dropped, and no job waits.")
    static let tracesBatch = SettingKey(
        "traces.batch", .integer(in: 1...100_000), default: traces.limits.batch,
        help: "How many spans go in one request.")
    static let tracesInterval = SettingKey(
        "traces.interval", .duration(in: .milliseconds(10) ... .seconds(600)), default: traces.limits.interval,
        help: "How long a span waits for others to go with.")
    static let tracesTimeout = SettingKey(
        "traces.timeout", .duration(in: .milliseconds(10) ... .seconds(600)), default: traces.timeout,
        help: "Time for one request to the collector.")
    static let tracesPatience = SettingKey(
        "traces.patience", .duration(in: .zero ... .seconds(3600)), default: traces.limits.patience,
        help: "For how long spans are sent again that the collector does not take now.")

    /// All of them, in the order in which they are listed.
    static let tracing: [any AnySettingKey] = [
        tracesEndpoint, tracesProtocol, tracesHeaders, tracesService, tracesResource, tracesRatio, tracesQueue,
        tracesBatch, tracesInterval, tracesTimeout, tracesPatience,
    ]

    /// What all of OpenTelemetry's own exporters read.
    static let tracingFallbacks = [
        SettingFallback([(tracesEndpoint, ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"])]),
        SettingFallback([(tracesProtocol, ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"])]),
        SettingFallback([(tracesHeaders, ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"])]),
        SettingFallback([(tracesService, ["OTEL_SERVICE_NAME"])]),
        SettingFallback([(tracesResource, ["OTEL_RESOURCE_ATTRIBUTES"])]),
    ]
}

/// What OpenTelemetry's exporters may be told to speak.
enum TraceProtocol: String, CaseIterable, Sendable {
    case httpJSON = "http/json"
    /// Who takes it takes JSON too, at the same place.
    case httpProtobuf = "http/protobuf"
    /// Not spoken.
    case grpc
}

extension TraceOptions {
    /// nil when nothing is to be recorded.
    /// - Throws: ``ConfigurationError`` that names the setting.
    init?(_ settings: Settings) throws(ConfigurationError) {
        guard !settings[Keys.tracesEndpoint].isEmpty else { return nil }
        try Self.checkProtocol(settings)
        self.init(endpoint: try Self.endpoint(settings))
        for pair in settings[Keys.tracesHeaders] { headers[pair.name] = pair.value }
        ratio = settings[Keys.tracesRatio]
        timeout = settings[Keys.tracesTimeout]
        limits.queue = settings[Keys.tracesQueue]
        limits.batch = settings[Keys.tracesBatch]
        limits.interval = settings[Keys.tracesInterval]
        limits.patience = settings[Keys.tracesPatience]
        version = Version.number
        resource = ["service.name": settings[Keys.tracesService], "service.version": Version.number]
        // A service's own name stands above one among the attributes, as OpenTelemetry has it.
        let isNamed = settings.origin(of: Keys.tracesService) != .builtIn
        for pair in settings[Keys.tracesResource] where !(isNamed && pair.name == "service.name") {
            resource[pair.name] = .string(pair.value)
        }
    }

    /// Where the place is Halcyon's own, what other programs are told to speak does not matter.
    private static func checkProtocol(_ settings: Settings) throws(ConfigurationError) {
        let (place, spoken) = (settings.origin(of: Keys.tracesEndpoint), settings.origin(of: Keys.tracesProtocol))
        guard settings[Keys.tracesProtocol] == .grpc, place.isOpenTelemetrys || !spoken.isOpenTelemetrys else { return }
        throw ConfigurationError(
            "traces.protocol: \(spoken) asks for grpc, and Halcyon speaks http/json alone; set traces.endpoint to where the collector "
                + "takes OTLP over HTTP, port 4318 unless changed")
    }

    private static func endpoint(_ settings: Settings) throws(ConfigurationError) -> String {
        let text = settings[Keys.tracesEndpoint]
        let origin = settings.origin(of: Keys.tracesEndpoint)
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

extension SettingKind<NamedText> {
    /// `name=value`, the value percent-encoded, as OpenTelemetry's variables have it.
    static var pair: Self {
        SettingKind(
            "name=value, with commas and blanks of the value percent-encoded",
            scalar: { text in
                guard let equals = text.firstIndex(of: "="), equals != text.startIndex,
                    let value = PercentEncoding.decode(text[text.index(after: equals)...].utf8)
                else { return nil }
                return NamedText(
                    name: text[..<equals].filter { $0 != " " }, value: String(decoding: value, as: UTF8.self))
            },
            write: { "\($0.name)=\(PercentEncoding.encode(path: $0.value))" })
    }
}
