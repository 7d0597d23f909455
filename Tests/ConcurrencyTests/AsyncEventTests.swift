import Concurrency
import Testing

/// Something that happens once.
@Suite struct AsyncEventTests {
    @Test func allWhoWaitLearnOfIt() async {
        let gate = AsyncEvent()
        #expect(!gate.isSignaled)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await gate.wait() } }
            gate.signal()
            gate.signal()
        }
        #expect(gate.isSignaled)
        // It stays open.
        await gate.wait()
    }

    @Test(arguments: [true, false])
    func whoIsCancelledWaitsNoMore(_ isWaiting: Bool) async throws {
        let gate = AsyncEvent()
        let task = Task { await gate.wait() }
        if isWaiting { try await Task.sleep(for: .milliseconds(20)) }
        task.cancel()
        await task.value
        #expect(!gate.isSignaled)
    }
}
