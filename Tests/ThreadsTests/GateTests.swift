import Testing
import Threads

/// Something that happens once.
@Suite struct GateTests {
    @Test func allWhoWaitLearnOfIt() async {
        let gate = Gate()
        #expect(!gate.isOpen)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { await gate.wait() } }
            gate.open()
            gate.open()
        }
        #expect(gate.isOpen)
        // It stays open.
        await gate.wait()
    }

    @Test(arguments: [true, false])
    func whoIsCancelledWaitsNoMore(_ isWaiting: Bool) async throws {
        let gate = Gate()
        let task = Task { await gate.wait() }
        if isWaiting { try await Task.sleep(for: .milliseconds(20)) }
        task.cancel()
        await task.value
        #expect(!gate.isOpen)
    }
}
