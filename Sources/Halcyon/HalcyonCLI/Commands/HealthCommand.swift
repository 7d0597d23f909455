import Curl
import Formats
import JSON
import ProgramSettings

/// `halcyon health`: checks the worker or gateway on this machine, for container health checks without curl.
enum HealthCommand: Subcommand {
    private static let url = Parameter<String?>.option(
        "url", .text, as: "URL",
        help: "The base URL to check, such as http://worker:9464. Default: the listen addresses in the settings.")
    private static let ready = Parameter.flag(
        "ready", help: "Check readiness (/readyz) instead of liveness (/healthz).")
    private static let timeout = Parameter.option(
        "timeout", .duration(in: .milliseconds(1) ... .seconds(3600)), as: "DURATION",
        default: Duration.seconds(3), help: "The timeout of the check. Default: 3s.")
    private static let json = Parameter.flag("json", help: "Print the response as one JSON object.")

    static let command = Command(
        "health", summary: "Check the health of a worker or a gateway. Exits with code 1 if it is unhealthy.",
        discussion: """
            Use it for container health checks. It tries the listen addresses of a worker (http.listen) and then of a \
            gateway (gateway.listen) on this machine. The first address that accepts a connection decides. Neither \
            Kafka nor Redis is contacted.
            """, parameters: [url, ready, timeout, json],
        examples: [
            .init("halcyon health", "Check the worker or gateway in this container."),
            .init("halcyon health --ready --url http://127.0.0.1:8080", "Check whether a gateway is ready."),
        ])

    static let connection = Connection.none

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let options = try Configuration(arguments).options
        let addresses =
            arguments[url].map { [$0.hasSuffix("/") ? String($0.dropLast()) : $0] }
            ?? (options.httpListen + options.gatewayListen).map { "http://\($0.reachable)" }
        let path = arguments[ready] ? "/readyz" : "/healthz"
        let client = CurlClient()
        let finding = await ask(addresses.map { $0 + path }, within: arguments[timeout], client)
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

    /// Requests one URL after another until a server accepts the connection.
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
                let response = try await client.execute(request)
                let words = String(decoding: response.body, as: UTF8.self)
                return Finding(url: url, status: response.status, words: words)
            } catch let error {
                if error.code == .cannotConnect { continue }
                return Finding(url: url, status: nil, words: "\(url): \(error)")
            }
        }
        return Finding(
            url: nil, status: nil,
            words: "nothing listens at \(urls.joined(separator: " or ")) (http.listen, gateway.listen)")
    }
}

/// The result of a health check.
private struct Finding: JSONWritable {
    /// The URL of the server that accepted the connection, if any.
    let url: String?
    /// The HTTP status of the response, or nil without a response.
    let status: Int?
    /// The body of the response, or an error message.
    let words: String

    var isWell: Bool { status == 200 }

    /// Writes `{"healthy": true, "url": "http://127.0.0.1:9464/healthz", "status": 200, "says": "ok"}`.
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
    /// The address at which a local process reaches this listener. A wildcard address becomes the loopback address.
    fileprivate var reachable: HostPort {
        switch host {
        case "0.0.0.0": HostPort(host: "127.0.0.1", port: port)
        case "::": HostPort(host: "::1", port: port)
        default: self
        }
    }
}
