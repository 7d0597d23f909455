import Concurrency
import Testing

/// An event that is signaled once.
@Suite struct AsyncEventTests {
    @Test func resumesAllWaiters() async {
        let event = AsyncEvent()
        #expect(!event.isSignaled)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await event.wait() } }
            event.signal()
            event.signal()
        }
        #expect(event.isSignaled)
        // It stays signaled.
        await event.wait()
    }

    @Test(arguments: [true, false])
    func cancellationEndsTheWait(_ isWaiting: Bool) async throws {
        let event = AsyncEvent()
        let task = Task { await event.wait() }
        if isWaiting { try await Task.sleep(for: .milliseconds(20)) }
        task.cancel()
        await task.value
        #expect(!event.isSignaled)
    }
}
