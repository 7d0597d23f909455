import Concurrency
import HTTPServer
import TestSupport
import Testing

/// Runs `body` with a server, and stops it. Limits are wide unless they are set.
func withServer(
    _ change: (inout HTTPServer.Settings) -> Void = { _ in },
    handler: @escaping HTTPServer.Handler,
    _ body: (HTTPServer) async throws -> Void
) async throws {
    var settings = HTTPServer.Settings.patient
    change(&settings)
    let server = try HTTPServer.start(on: "127.0.0.1", settings, handler: handler)
    let result: Result<Void, any Error>
    do { result = .success(try await body(server)) } catch { result = .failure(error) }
    await server.shutdown(gracePeriod: .zero)
    try result.get()
}

/// Returns a response with a text.
func text(_ text: String) -> HTTPServer.Response { HTTPServer.Response(status: 200, text: text) }

/// A recorder of values for use on any thread.
final class Recorder<Element: Sendable>: Sendable {
    private let elements = Lock<[Element]>([])
    var all: [Element] { elements.withLock { $0 } }
    var count: Int { elements.withLock { $0.count } }
    func record(_ element: Element) { elements.withLock { $0.append(element) } }
}

/// Sleeps until the task is cancelled, and records that it was.
func sleepUntilCancelled(_ events: Recorder<String>) async throws {
    do {
        try await Task.sleep(for: .seconds(600))
    } catch {
        events.record("cancelled")
        throw error
    }
}
