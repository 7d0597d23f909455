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

/// An answer of text.
func text(_ text: String) -> HTTPServer.Response { HTTPServer.Response(status: 200, text: text) }

/// Things noted on other threads.
final class Noted<Thing: Sendable>: Sendable {
    private let things = Lock<[Thing]>([])
    var all: [Thing] { things.withLock { $0 } }
    var count: Int { things.withLock { $0.count } }
    func note(_ thing: Thing) { things.withLock { $0.append(thing) } }
}

/// Waits until the task is cancelled, and notes that it was.
func untilCancelled(_ noted: Noted<String>) async throws {
    do {
        try await Task.sleep(for: .seconds(600))
    } catch {
        noted.note("cancelled")
        throw error
    }
}
