import Foundation
import Subprocess

/// A collector of traces on a free port of 127.0.0.1, which takes OTLP over HTTP and answers as a test wants. What it was sent is read with
/// OpenTelemetry's own definitions: `otlp_spans.py` beside this file.
public struct TraceCollector: Sendable {
    /// A span as the definitions read it.
    public struct Span: Decodable, Sendable {
        /// Hexadecimal digits; `parent` is empty for none.
        public let trace, id, parent: String
        /// What was done.
        public let name: String
        /// OTLP's number of the kind.
        public let kind: Int
        /// Nanoseconds since 1970.
        public let start, end: UInt64
        /// What the span says of itself, and the process.
        public let attributes, resource: [String: Attribute]
        /// `trace-id` of each.
        public let links: [String]
        /// OTLP's number of the status: 2 for an error.
        public let status: Int
        /// Why.
        public let message: String
        /// Who made it.
        public let scope: String

        /// As links name it.
        public var place: String { "\(trace)-\(id)" }
        /// As a child of it has it from Kafka.
        public var traceparent: String { "00-\(trace)-\(id)-01" }
    }

    /// The value of an attribute.
    public enum Attribute: Decodable, Hashable, Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
        ExpressibleByBooleanLiteral
    {
        case bool(Bool)
        case integer(Int64)
        case string(String)

        /// The first of the kinds that it can be read as.
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

        /// As it stands in the code.
        public init(stringLiteral value: String) { self = .string(value) }
        /// As it stands in the code.
        public init(integerLiteral value: Int64) { self = .integer(value) }
        /// As it stands in the code.
        public init(booleanLiteral value: Bool) { self = .bool(value) }
    }

    /// The server.
    public let origin: RawOrigin

    /// One that answers each request with the steps that `answer` gives; with nothing else said it takes everything.
    public init(
        _ answer: @escaping @Sendable (RawOrigin.Request) -> [RawOrigin.Step] = { _ in taken }
    ) {
        origin = RawOrigin(answer)
    }

    /// The answer of a collector that took everything.
    public static let taken = RawOrigin.answer("200 OK", ["Content-Type: application/json"], "{}")

    /// Where it takes traces.
    public var endpoint: String { origin.url("/v1/traces") }

    /// All spans of all requests so far, as they came.
    public func spans() async throws -> [Span] { try await Self.spans(origin.requests.map(\.body)) }

    /// The spans of bodies of requests.
    /// - Throws: ``NotInTime`` with what the script says, for a body that is no `ExportTraceServiceRequest`.
    public static func spans(_ bodies: [[UInt8]]) async throws -> [Span] {
        if bodies.isEmpty { return [] }
        let python = try await PythonTools.interpreter()
        let folder = TemporaryFolder("otlp")
        let files = bodies.enumerated().map { folder.write($1, to: "\($0).json") }
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "otlp_spans.py").path
        let run = try await ChildProcess.run(
            python, [script] + files, timeLimit: .seconds(120), outputLimit: 64 << 20)
        await folder.remove()
        guard run.end == .exit(.code(0)) else {
            throw NotInTime(description: "otlp_spans.py ended with \(run.end): \(run.errors)")
        }
        return try run.output.split(separator: UInt8(ascii: "\n")).map {
            try JSONDecoder().decode(Span.self, from: Data($0))
        }
    }

    /// Stops it.
    public func stop() async throws { try await origin.stop() }
}
