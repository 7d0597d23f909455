import Curl
import TestSupport
import Testing

/// Runs `body` with an origin that plays `script` and a client, and stops both.
func withOrigin(
    settings: CurlSettings = CurlSettings(), keepsLog: Bool = true,
    _ script: @escaping @Sendable (RawOrigin.Request) -> [RawOrigin.Step],
    _ body: (RawOrigin, CurlClient) async throws -> Void
) async throws {
    let origin = RawOrigin(keepsLog: keepsLog, script)
    let client = CurlClient(settings)
    let result: Result<Void, any Error>
    do { result = .success(try await body(origin, client)) } catch { result = .failure(error) }
    await client.close()
    try await origin.stop()
    try result.get()
}

extension HTTPRequest {
    /// Returns a request that waits for its response however slow the machine is.
    static func patient(_ url: String) -> HTTPRequest {
        var request = HTTPRequest(.get, url)
        (request.timeout, request.connectTimeout, request.stall) = (.seconds(600), .seconds(600), nil)
        return request
    }
}

/// Expects `body` to fail with `code`.
@discardableResult
func expectFailure<Value>(
    _ code: CurlError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Value
) async -> String {
    do {
        let value = try await body()
        Issue.record("\(value) instead of \(code)", sourceLocation: sourceLocation)
        return ""
    } catch {
        #expect((error as? CurlError)?.code == code, "\(error)", sourceLocation: sourceLocation)
        return "\(error)"
    }
}

/// Returns the text of a body.
func text(_ body: [UInt8]) -> String { String(decoding: body, as: UTF8.self) }
