import Concurrency
import Testing

@Suite struct TimerThreadTests {
    @Test func `timers go off in the order of their times and not before`() async {
        let timers = TimerThread(name: "alarms")
        let (calls, call) = AsyncStream<Int>.makeStream()
        let start = ContinuousClock.now
        for number in [3, 1, 2, 0] {
            _ = timers.set(at: start + .milliseconds(40 * number)) {
                if ContinuousClock.now >= start + .milliseconds(40 * number) { call.yield(number) }
            }
        }
        var heard: [Int] = []
        for await number in calls {
            heard.append(number)
            if heard.count == 4 { break }
        }
        #expect(heard == [0, 1, 2, 3])
    }

    @Test func `one that is taken back is not called, and those behind it are`() async {
        let timers = TimerThread(name: "alarms")
        let (calls, call) = AsyncStream<String>.makeStream()
        let wrong = timers.set(at: .now + .milliseconds(50)) { call.yield("taken back") }
        _ = timers.set(at: .now + .milliseconds(100)) { call.yield("later") }
        timers.cancel(wrong)
        var words = calls.makeAsyncIterator()
        #expect(await words.next() == "later")
        // Nothing is left to wait for, and the thread is woken again.
        _ = timers.set(at: .now + .seconds(100_000_000_000)) { call.yield("never") }
        _ = timers.set(at: .now - .seconds(1)) { call.yield("at once") }
        #expect(await words.next() == "at once")
    }

    @Test func `what is set goes with the timers`() async throws {
        final class Held: Sendable {}
        weak var held: Held?
        do {
            let timers = TimerThread(name: "alarms")
            let object = Held()
            held = object
            _ = timers.set(at: .now + .seconds(3600)) { _ = object }
        }
        for _ in 0..<1000 where held != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(held == nil)
    }

    @Test func `an answer reaches those who wait before it and after it`() {
        let answer = BlockingPromise<Int>()
        let early = NamedThread(name: "early") { #expect(answer.wait() == 7) }
        answer.fulfill(7)
        #expect(answer.wait() == 7)
        early.join()
    }
}
