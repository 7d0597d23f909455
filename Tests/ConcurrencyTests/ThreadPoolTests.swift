import Concurrency
import Testing

@Suite struct ThreadPoolTests {
    struct Refused: Error, Equatable {}

    @Test func returnsResultsAndErrorsUntilShutdown() async throws {
        let pool = ThreadPool(name: "pool", threads: 2)
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for value in 0..<500 { group.addTask { try await pool.run { value } } }
            return try await group.reduce(0, +)
        }
        #expect(sum == 499 * 500 / 2)
        await #expect(throws: Refused.self) { try await pool.run { throw Refused() } }
        NamedThread(name: "closer") { pool.shutdown() }.join()
        await #expect(throws: ThreadPoolClosed.self) { try await pool.run { 1 } }
    }

    @Test func callsOnThreadEndForEachThread() {
        let ended = Lock(0)
        let pool = ThreadPool(name: "pool", threads: 3, onThreadEnd: { ended.withLock { $0 += 1 } })
        pool.shutdown()
        #expect(ended.withLock { $0 } == 3)
    }
}
