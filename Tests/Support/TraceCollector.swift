import Foundation
import Subprocess

/// A trace collector on a free port of 127.0.0.1 that receives OTLP over HTTP and returns scripted responses. It parses
/// requests with OpenTelemetry's own definitions, in `otlp_spans.py`.
public struct TraceCollector: Sendable {
    /// A span as parsed by OpenTelemetry's definitions.
    public struct Span: Decodable, Sendable {
        /// Identifiers in hexadecimal digits. `parent` is empty for a root span.
        public let trace, id, parent: String
        /// The name of the operation.
        public let name: String
        /// The span kind as a number of OTLP.
        public let kind: Int
        /// Times in nanoseconds since 1970.
        public let start, end: UInt64
        /// The attributes of the span and of its resource.
        public let attributes, resource: [String: Attribute]
        /// The trace id and span id of each link, joined by a hyphen.
        public let links: [String]
        /// The status code as a number of OTLP: 2 for an error.
        public let status: Int
        /// The status message.
        public let message: String
        /// The name of the instrumentation scope.
        public let scope: String

        /// The span in the format of ``links``.
        public var place: String { "\(trace)-\(id)" }
        /// The `traceparent` header that its children receive through Kafka.
        public var traceparent: String { "00-\(trace)-\(id)-01" }
    }

    /// The value of an attribute.
    public enum Attribute: Decodable, Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
        ExpressibleByBooleanLiteral
    {
        case bool(Bool)
        case integer(Int64)
        case string(String)

        /// Decodes a Boolean, an integer or a string.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let bool = try? container.decode(Bool.self) {
                self = .bool(bool)
            } else if let integer = try? container.decode(Int64.self) {
                self = .integer(integer)
            } else {
                self = .string(try container.decode(String.self))
            }
        }

        /// Creates a string attribute.
        public init(stringLiteral value: String) { self = .string(value) }
        /// Creates an integer attribute.
        public init(integerLiteral value: Int64) { self = .integer(value) }
        /// Creates a Boolean attribute.
        public init(booleanLiteral value: Bool) { self = .bool(value) }
    }

    /// The HTTP server.
    public let origin: RawOrigin

    /// Starts a collector that responds to each request with the steps returned by `answer`. By default it accepts all
    /// requests.
    public init(
        _ answer: @escaping @Sendable (RawOrigin.Request) -> [RawOrigin.Step] = { _ in taken }
    ) {
        origin = RawOrigin(answer)
    }

    /// The response of a collector that accepted all spans.
    public static let taken = RawOrigin.answer("200 OK", ["Content-Type: application/json"], "{}")

    /// The URL that receives traces.
    public var endpoint: String { origin.url("/v1/traces") }

    /// Returns the spans of all requests so far, in order of arrival.
    public func spans() async throws -> [Span] { try await Self.spans(origin.requests.map(\.body)) }

    /// Returns the spans of request bodies.
    /// - Throws: ``ConditionTimeout`` with the script's error output if a body is not a valid
    ///   `ExportTraceServiceRequest`.
    public static func spans(_ bodies: [[UInt8]]) async throws -> [Span] {
        if bodies.isEmpty { return [] }
        let python = try await PythonTools.interpreter()
        let folder = TemporaryFolder("otlp")
        let files = bodies.enumerated().map { folder.write($1, to: "\($0).json") }
        let script = Repository.path("Tests/Support/otlp_spans.py")
        let run = try await ChildProcess.run(
            python, [script] + files, timeLimit: .patience, outputLimit: 64 << 20)
        await folder.remove()
        guard run.end == .exit(.code(0)) else {
            throw ConditionTimeout(description: "otlp_spans.py ended with \(run.end): \(run.errors)")
        }
        return try run.output.split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(Span.self, from: Data($0))
        }
    }

    /// Stops the collector.
    public func stop() async throws { try await origin.stop() }
}
