import Testing
import Threads

@Suite struct MailboxTests {
    @Test func asksForOneWakeUpPerBatch() {
        let box = Mailbox<Int>()
        #expect(box.post(1) == .first)
        #expect(box.post(2) == .queued)
        #expect(box.take() == [1, 2])
        #expect(box.take() == [])
        #expect(box.post(3) == .first)
    }

    @Test func givesBackWhatNobodyReadWhenClosed() {
        let box = Mailbox<Int>()
        #expect(box.post(1) == .first)
        #expect(box.close() == [1])
        #expect(box.post(2) == .closed)
        #expect(box.take() == [])
    }
}
