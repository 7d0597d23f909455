import Curl
import Formats
import JSON
import ProgramSettings

/// `halcyon health`: asks the worker or gateway of this machine how it is, for health checks of images that have no curl.
enum HealthCommand: Subcommand {
    private static let url = Parameter<String?>.option(
        "url", .text, as: "URL",
        help: "Where to ask, such as http://worker:9464; unless given, where the settings say that it listens.")
    private static let ready = Parameter.flag(
        "ready", help: "Ask whether it serves (/readyz) rather than whether it gets on (/healthz).")
    private static let timeout = Parameter.option(
        "timeout", .duration(in: .milliseconds(1) ... .seconds(3600)), as: "DURATION",
        default: Duration.seconds(3), help: "When to take no answer for a bad one; 3s unless given.")
    private static let json = Parameter.flag("json", help: "Print the answer as one JSON object.")

    static let command = Command(
        "health", summary: "Ask a worker or a gateway how it is: exit code 0 when all is well, else 1.",
        discussion: """
            Made for the health checks of containers. It asks where the settings have a worker (http.listen) and else a gateway \
            (gateway.listen) listen, on this machine; the first place where somebody listens counts. Neither Kafka nor Redis is asked.
            """, parameters: [url, ready, timeout, json],
        examples: [
            .init("halcyon health", "Whether the worker or the gateway in this container gets on."),
            .init("halcyon health --ready --url http://127.0.0.1:8080", "Whether this gateway serves."),
        ])

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let options = try Configuration(arguments).options
        let places =
            arguments[url].map { [$0.hasSuffix("/") ? String($0.dropLast()) : $0] }
            ?? (options.httpListen + options.gatewayListen).map { "http://\($0.reachable)" }
        let path = arguments[ready] ? "/readyz" : "/healthz"
        let client = CurlClient()
        let finding = await ask(places.map { $0 + path }, within: arguments[timeout], client)
        await client.close()
        if arguments[json] {
            Console.print(json: finding.json)
        } else if finding.isWell {
            Console.print(finding.words)
        } else {
            Console.complain(finding.words)
        }
        return finding.isWell ? .done : .failed
    }

    /// Asks one place after another until somebody listens.
    private static func ask(
        _ urls: [String], within timeout: Duration, _ client: CurlClient
    ) async -> Finding {
        for url in urls {
            var request = HTTPRequest(.get, url)
            request.timeout = timeout
            request.connectTimeout = timeout
            request.maxRedirects = 0
            request.maxBytes = 64 << 10
            do {
                let response = try await client.perform(request)
                let words = String(decoding: response.body, as: UTF8.self)
                return Finding(url: url, status: response.status, words: words)
            } catch let error {
                if error.code == .cannotConnect { continue }
                return Finding(url: url, status: nil, words: "\(url): \(error)")
            }
        }
        return Finding(
            url: nil, status: nil,
            words: "nobody listens at \(urls.joined(separator: " or ")) (http.listen, gateway.listen)")
    }
}

/// What came of asking.
private struct Finding: JSONWritable {
    /// Who answered, or did not answer in time; nil where nobody listens.
    let url: String?
    /// What it answered.
    let status: Int?
    /// In its words, or in libcurl's.
    let words: String

    var isWell: Bool { status == 200 }

    /// `{"healthy": true, "url": "http://127.0.0.1:9464/healthz", "status": 200, "says": "ok"}`.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("healthy", isWell)
            writer.member("url", url)
            writer.member("status", status)
            writer.member("says", words.hasSuffix("\n") ? String(words.dropLast()) : words)
        }
    }
}

extension HostPort {
    /// Where a process of the same machine reaches who listens here: on all addresses means on loopback, too.
    fileprivate var reachable: HostPort {
        switch host {
        case "0.0.0.0": HostPort(host: "127.0.0.1", port: port)
        case "::": HostPort(host: "::1", port: port)
        default: self
        }
    }
}
