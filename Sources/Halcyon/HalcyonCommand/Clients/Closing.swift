/// Runs `body` and then `close`, also when `body` throws: what `defer` does where nothing is awaited.
/// - Throws: what `body` throws.
func closing<Value: Sendable>(
    _ close: () async -> Void, after body: () async throws -> Value
) async throws -> Value {
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    await close()
    return try result.get()
}
