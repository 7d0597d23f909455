import HalcyonTelemetry
import ProgramSettings
import Telemetry
import Testing

@testable import HalcyonCLI

/// The trace options from settings and from the variables of OpenTelemetry.
@Suite struct TraceSettingsTests {
    private static func options(_ environment: [String: String]) throws -> TraceOptions? {
        try TraceOptions(Settings(ProgramOptions.schema, environment: environment))
    }

    private static func errorMessage(_ environment: [String: String]) -> String {
        do {
            _ = try options(environment)
            return ""
        } catch { return "\(error)" }
    }

    @Test(arguments: [
        ("HALCYON_TRACES_ENDPOINT", "http://c:4318", "http://c:4318/v1/traces"),
        ("HALCYON_TRACES_ENDPOINT", "http://c:4318/", "http://c:4318/v1/traces"),
        ("HALCYON_TRACES_ENDPOINT", "https://c/otlp", "https://c/otlp"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/own", "https://c/own"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318", "http://c:4318/v1/traces"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base", "https://c/base/v1/traces"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base/", "https://c/base/v1/traces"),
    ])
    func derivesTheEndpoint(variable: String, value: String, endpoint: String) throws {
        #expect(try Self.options([variable: value])?.endpoint == endpoint)
    }

    @Test func tracingIsOffWithoutAnEndpoint() throws {
        #expect(try Self.options(["OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "HALCYON_TRACES_RATIO": "1"]) == nil)
    }

    @Test func prefersMoreSpecificVariables() throws {
        var variables = [
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://base", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x=y",
            "OTEL_SERVICE_NAME": "images",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=prod",
        ]
        var options = try #require(try Self.options(variables))
        #expect(options.headers["api-key"] == "a b" && options.headers["x"] == "y")
        #expect(options.resource["service.name"] == .string("images"))
        #expect(options.resource["deployment.environment.name"] == .string("prod"))
        #expect(options.resource["service.version"] == .string(Version.number))
        variables["OTEL_SERVICE_NAME"] = nil
        #expect(try Self.options(variables)?.resource["service.name"] == .string("other"))
        variables.merge([
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces/t", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=c",
        ]) { $1 }
        options = try #require(try Self.options(variables))
        #expect(options.endpoint == "http://traces/t" && options.headers.fields.map(\.value) == ["c"])
        variables["HALCYON_TRACES_ENDPOINT"] = "http://own"
        #expect(try Self.options(variables)?.endpoint == "http://own/v1/traces")
    }

    @Test func readsEverySetting() throws {
        let options = try #require(
            try Self.options([
                "HALCYON_TRACES_ENDPOINT": "http://c", "HALCYON_TRACES_HEADERS": "a=b", "HALCYON_TRACES_SERVICE": "s",
                "HALCYON_TRACES_RESOURCE": "k=v", "HALCYON_TRACES_RATIO": "0.5", "HALCYON_TRACES_QUEUE": "100",
                "HALCYON_TRACES_BATCH": "10", "HALCYON_TRACES_INTERVAL": "2s", "HALCYON_TRACES_TIMEOUT": "3s",
                "HALCYON_TRACES_RETRY_TIMEOUT": "4s",
            ]))
        #expect(options.headers["a"] == "b" && options.ratio == 0.5 && options.timeout == .seconds(3))
        #expect(options.resource["service.name"] == .string("s") && options.resource["k"] == .string("v"))
        #expect(options.limits.queue == 100 && options.limits.batch == 10)
        #expect(options.limits.interval == .seconds(2) && options.limits.retryTimeout == .seconds(4))
    }

    /// An unsupported protocol in OpenTelemetry's variables is an error only if their endpoint is used.
    @Test func rejectsUnsupportedProtocols() throws {
        let variables = ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"]
        let message = Self.errorMessage(variables)
        #expect(message.contains("OTEL_EXPORTER_OTLP_PROTOCOL selects grpc") && message.contains("http/json"))
        #expect(
            Self.errorMessage(["HALCYON_TRACES_ENDPOINT": "http://c", "HALCYON_TRACES_PROTOCOL": "grpc"]).contains(
                "http/json"))
        #expect(try Self.options(variables.merging(["HALCYON_TRACES_ENDPOINT": "http://c:4318"]) { $1 }) != nil)
        #expect(try Self.options(variables.merging(["OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"]) { $1 }) != nil)
        #expect(
            Self.errorMessage(variables.merging(["OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"]) { $1 }).contains(
                "traces.protocol"))
    }

    @Test(arguments: [
        "c:4318", "ftp://c", "http://user:word@c", "http://c?a=b", "http://c/#a", "http://",
    ])
    func rejectsInvalidEndpoints(endpoint: String) {
        let message = Self.errorMessage(["OTEL_EXPORTER_OTLP_ENDPOINT": endpoint])
        #expect(message.contains("traces.endpoint: expected") && message.contains("OTEL_EXPORTER_OTLP_ENDPOINT"))
    }

    @Test(arguments: ["a", "=b", "a=%zz", "a=b,,c=d"]) func rejectsInvalidHeaders(headers: String) {
        let message = Self.errorMessage(["HALCYON_TRACES_HEADERS": headers])
        #expect(message.contains("traces.headers: expected a list, each name=value") && !message.contains("found"))
    }

    @Test func masksHeadersInTheConfiguration() async throws {
        let run = try await Executable.run(
            ["config", "--explain"],
            environment: ["OTEL_EXPORTER_OTLP_HEADERS": "api-key=hidden-1", "OTEL_SERVICE_NAME": "images"]
        ).expect(0)
        #expect(!run.output.contains("hidden-1"))
        #expect(
            run.lines.contains { $0.hasPrefix("traces.headers ") && $0.hasSuffix("****  (OTEL_EXPORTER_OTLP_HEADERS)") }
        )
        #expect(run.lines.contains { $0.hasPrefix("traces.service ") && $0.hasSuffix("images  (OTEL_SERVICE_NAME)") })
        let wrong = try await Executable.run(
            ["config"],
            environment: ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"]
        ).expect(2)
        #expect(wrong.errors.contains("http/json"))
    }
}
