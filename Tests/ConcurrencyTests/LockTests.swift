import Concurrency
import Testing

@Suite struct LockTests {
    @Test func countsEveryIncrementOfManyThreads() {
        let count = Lock(0)
        let threads = (0..<4).map { index in
            NamedThread(name: "count-\(index)") {
                for _ in 0..<10_000 { count.withLock { $0 += 1 } }
            }
        }
        for thread in threads { thread.join() }
        #expect(count.withLock { $0 } == 40_000)
    }
}
