import Testing

@testable import Redis

@Suite struct PipelineCollectorTests {
    private let lost = RedisError(.connectionLost, "reset")

    /// Returns the result of a pipeline of two commands and a transaction, which have these outcomes.
    private func answer(_ outcomes: [PendingCommand.Outcome]) async -> PendingCommand.Outcome {
        await withCheckedContinuation { continuation in
            let call = PendingCommand(.pipeline([["A"], ["MULTI"], ["EXEC"], ["B"]]))
            call.wait(continuation)
            let collector = PipelineCollector(for: call, of: 4, pieces: 3)
            for (outcome, range) in zip(outcomes, [3..<4, 1..<3, 0..<1]) { collector.put(outcome, at: range) }
        }
    }

    @Test func restoresReplyOrder() async throws {
        let replies = await answer([
            .success(.integer(4)), .success(.array([.status("OK"), .array([])])), .success(.array([.integer(1)])),
        ])
        #expect(
            try replies.get() == .array([.array([.integer(1)]), .status("OK"), .array([]), .integer(4)]))
    }

    @Test func errorReplacesAllRepliesOfItsPiece() async throws {
        let refused = RedisError(.server("WRONGTYPE"), "WRONGTYPE x")
        let replies = await answer([.failure(refused), .failure(lost), .success(.integer(1))])
        #expect(try replies.get() == .array([.integer(1), .error(lost), .error(lost), .error(refused)]))
    }

    @Test func failsIfAllPiecesFail() async {
        let replies = await answer([.failure(lost), .failure(lost), .failure(lost)])
        #expect(replies == .failure(lost))
    }
}
