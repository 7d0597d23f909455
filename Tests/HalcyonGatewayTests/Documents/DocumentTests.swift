import Formats
import Foundation
import HalcyonModel
import Subprocess
import TestSupport
import Testing

@testable import HalcyonGateway

/// The OpenAPI and AsyncAPI documents match the gateway that serves them.
@Suite(.limitedParallelism) struct DocumentTests {
    @Test func containTheCurrentSchemas() async throws {
        let run = try await Self.run(Repository.path("scripts/documents"), ["--check"])
        #expect(run.exit == .code(0), "\(run.errors)")
    }

    @Test func areServedWithoutAKey() async throws {
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway({
                $0.access.keys = [APIKey(name: "k", secret: "k", scopes: [.read])]
            }) { (client: GatewayClient) async throws in
                for name in ["openapi", "asyncapi"] {
                    let answer = try await client.send(.get, "/\(name).yaml")
                    #expect(answer.status == 200 && answer.headers["Content-Type"] == "application/yaml")
                    #expect(answer.headers["Cache-Control"] == "no-cache")
                    #expect(answer.text.contains("\n\(name): 3."))
                    let tag = try #require(answer.headers["ETag"])
                    let again = try await client.send(.get, "/\(name).yaml", headers: ["If-None-Match": tag])
                    #expect(again.status == 304 && again.body.isEmpty && again.headers["ETag"] == tag)
                }
            }
        }
    }

    @Test func openAPIListsExactlyTheRoutes() async throws {
        let document = try await Self.document("openapi")
        try await GatewayFixture.with { fixture in
            try await fixture.withGateway { (client: GatewayClient) async throws in
                let paths = try #require(document["paths"] as? [String: [String: Any]])
                var named = Set(
                    paths.flatMap { path, item in
                        item.keys.filter { $0 != "parameters" }.map { "\($0.uppercased()) \(path)" }
                    })
                // GET implies HEAD; the document states that once.
                named = named.filter { !$0.hasPrefix("HEAD ") || !named.contains("GET" + $0.dropFirst(4)) }
                let probes: Set = ["GET /healthz", "GET /readyz", "GET /metrics"]
                // The dashboard is not part of the API.
                let page: Set = ["GET /", "GET /dashboard/{name}"]
                #expect(named == Set(client.routes).subtracting(page).union(probes))
                for probe in probes {
                    #expect([200, 503].contains(try await client.send(.get, String(probe.dropFirst(4))).status))
                }
            }
        }
    }

    @Test func openAPIListsAllProblemsCodesAndStates() async throws {
        let document = try await Self.document("openapi")
        let problem = try #require(Self.value(document, "components", "schemas", "Problem", "properties", "type"))
        #expect(problem["enum"] as? [String] == Problem.Kind.allCases.map { "/problems/\($0.rawValue)" })
        let codes = try #require(Self.value(document, "components", "schemas", "FailureCode"))
        #expect(Set(codes["enum"] as? [String] ?? []) == Set(JobErrorCode.allCases.map(\.rawValue)))
        let state = try #require(Self.value(document, "components", "schemas", "JobState", "properties", "state"))
        let kinds = Event.Kind.allCases.filter { $0 != .purged && $0 != .progress }.map(\.rawValue)
        #expect(state["enum"] as? [String] == ["accepted"] + kinds)
    }

    @Test func openAPIListsTheRenderParameters() async throws {
        let document = try await Self.document("openapi")
        // The signature is not a parameter but authenticates the request.
        let known = RenderQuery.texts.union(RenderQuery.values).union(RenderQuery.others).union(["wait"])
        #expect(try Self.parameters(of: "/v1/render", document).union(["signature"]) == known)
        let facts = RenderQuery.facts.union(RenderQuery.others).union(["wait", "location"])
        #expect(try Self.parameters(of: "/v1/info", document).union(["signature"]) == facts)
    }

    /// Returns the names of the parameters in the query of a route, each of which occurs once.
    private static func parameters(of path: String, _ document: [String: Any]) throws -> Set<String> {
        let route = try #require(Self.value(document, "paths", path, "get"))
        let sharedParameters = try #require(Self.value(document, "components", "parameters"))
        let parameters = try #require(route["parameters"] as? [[String: Any]]).map { parameter in
            guard let reference = parameter["$ref"] as? String, let name = reference.split(separator: "/").last else {
                return parameter
            }
            return sharedParameters[String(name)] as? [String: Any] ?? [:]
        }
        let inQuery = parameters.filter { $0["in"] as? String == "query" }.compactMap { $0["name"] as? String }
        #expect(inQuery.count == Set(inQuery).count)
        return Set(inQuery)
    }

    @Test func asyncAPIListsTheTopics() async throws {
        let document = try await Self.document("asyncapi")
        let channels = try #require(document["channels"] as? [String: [String: Any]])
        var topics: Set<String> = []
        for channel in channels.values where Self.servers(of: channel) == ["#/servers/kafka"] {
            let address = try #require(channel["address"] as? String)
            let delays = Self.value(channel, "parameters", "delay")?["enum"] as? [String] ?? [""]
            for delay in delays { topics.insert(address.replacingOccurrences(of: "{delay}", with: delay)) }
        }
        #expect(topics == Set(GatewayOptions(kafka: .init(brokers: ""), redis: .init(loopbackPort: 1)).topics.all))
    }

    // MARK: Helpers

    /// Returns a document as JSON after validating it.
    private static func document(_ kind: String) async throws -> [String: Any] {
        let bytes = try #require(EmbeddedFiles.files(".yaml")["\(kind).yaml"])
        let tools = try await run(Repository.path("scripts/python-tools"), [])
        try #require(tools.exit == .code(0), "\(tools.errors)")
        let python = tools.output.split(separator: "\n").last.map(String.init) ?? ""
        let run = try await run(
            python, [Repository.path("Tests/Support/documents.py"), kind, Repository.path("schemas")], input: bytes)
        try #require(run.exit == .code(0), "\(run.errors)")
        return try #require(try JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
    }

    private static func value(_ root: [String: Any], _ names: String...) -> [String: Any]? {
        names.reduce(root) { $0?[$1] as? [String: Any] }
    }

    private static func servers(of channel: [String: Any]) -> [String] {
        (channel["servers"] as? [[String: Any]] ?? []).compactMap { $0["$ref"] as? String }
    }

    private static func run(
        _ program: String, _ arguments: [String], input: [UInt8] = []
    ) async throws -> (exit: ChildProcess.Exit, output: String, errors: String) {
        let folder = TemporaryFolder("documents")
        let file = folder.write(input, to: "input")
        // The shell redirects the streams.
        let script = #"input=$1 folder=$2 && shift 2 && exec "$@" <"$input" >"$folder/output" 2>"$folder/errors""#
        let exit = try await ChildProcess.start(
            "/bin/sh", ["-c", script, "sh", file, folder.path, program] + arguments
        ).exit()
        let (output, errors) = (folder.read("output"), folder.read("errors"))
        await folder.remove()
        return (exit, String(decoding: output, as: UTF8.self), String(decoding: errors, as: UTF8.self))
    }
}
