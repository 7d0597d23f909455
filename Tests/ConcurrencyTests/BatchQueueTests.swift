import Concurrency
import Testing

@Suite struct BatchQueueTests {
    @Test func requestsOneWakeUpPerBatch() {
        let queue = BatchQueue<Int>()
        #expect(queue.enqueue(1) == .first)
        #expect(queue.enqueue(2) == .queued)
        #expect(queue.drain() == [1, 2])
        #expect(queue.drain() == [])
        #expect(queue.enqueue(3) == .first)
    }

    @Test func closeReturnsUnreadElements() {
        let queue = BatchQueue<Int>()
        #expect(queue.enqueue(1) == .first)
        #expect(queue.close() == [1])
        #expect(queue.enqueue(2) == .closed)
        #expect(queue.drain() == [])
    }
}
