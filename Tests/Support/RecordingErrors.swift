import Testing

/// Runs the body of a test that has a process of its own, and records an error that it throws. Without this, Swift
/// Testing reports that such a body threw an error, but not which.
public func recordingErrors(_ body: () async throws -> Void) async {
    do { try await body() } catch { Issue.record("\(error)") }
}
