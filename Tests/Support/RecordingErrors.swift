import Testing

/// Runs the body of a test that has a process of its own, and records an error that it throws. Without this, the error
/// ends the process with a signal, and is not reported. Of a failed expectation, only the comment is reported.
public func recordingErrors(_ body: () async throws -> Void) async {
    do { try await body() } catch { Issue.record("\(error)") }
}
