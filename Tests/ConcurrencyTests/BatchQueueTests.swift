import Concurrency
import Testing

@Suite struct BatchQueueTests {
    @Test func asksForOneWakeUpPerBatch() {
        let box = BatchQueue<Int>()
        #expect(box.enqueue(1) == .first)
        #expect(box.enqueue(2) == .queued)
        #expect(box.drain() == [1, 2])
        #expect(box.drain() == [])
        #expect(box.enqueue(3) == .first)
    }

    @Test func givesBackWhatNobodyReadWhenClosed() {
        let box = BatchQueue<Int>()
        #expect(box.enqueue(1) == .first)
        #expect(box.close() == [1])
        #expect(box.enqueue(2) == .closed)
        #expect(box.drain() == [])
    }
}
