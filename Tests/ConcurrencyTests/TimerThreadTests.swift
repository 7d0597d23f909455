import Concurrency
import TestSupport
import Testing

@Suite struct TimerThreadTests {
    /// Calls `body` while no other timer can fire, however long it takes.
    private func beforeTimersFire(_ timers: TimerThread, _ body: () -> Void) {
        let latch = Latch()
        defer { latch.open() }
        _ = timers.set(at: .now - .seconds(60)) { latch.wait() }
        body()
    }

    @Test func firesInOrderOfTimeAndNotEarly() async {
        let timers = TimerThread(name: "alarms")
        let (calls, call) = AsyncStream<Int>.makeStream()
        let start = ContinuousClock.now
        beforeTimersFire(timers) {
            for number in [3, 1, 2, 0] {
                _ = timers.set(at: start + .milliseconds(40 * number)) {
                    if ContinuousClock.now >= start + .milliseconds(40 * number) { call.yield(number) }
                }
            }
        }
        var fired: [Int] = []
        for await number in calls {
            fired.append(number)
            if fired.count == 4 { break }
        }
        #expect(fired == [0, 1, 2, 3])
    }

    @Test func cancelledTimerDoesNotFireAndLaterOnesDo() async {
        let timers = TimerThread(name: "alarms")
        let (calls, call) = AsyncStream<String>.makeStream()
        beforeTimersFire(timers) {
            let cancelled = timers.set(at: .now + .milliseconds(50)) { call.yield("cancelled") }
            _ = timers.set(at: .now + .milliseconds(100)) { call.yield("later") }
            timers.cancel(cancelled)
        }
        var words = calls.makeAsyncIterator()
        #expect(await words.next() == "later")
        // No timer is left, so new ones must wake the thread.
        _ = timers.set(at: .now + .seconds(100_000_000_000)) { call.yield("never") }
        _ = timers.set(at: .now - .seconds(1)) { call.yield("at once") }
        #expect(await words.next() == "at once")
    }

    @Test func releasesCallbacksOnDeallocation() async throws {
        final class Held: Sendable {}
        weak var held: Held?
        do {
            let timers = TimerThread(name: "alarms")
            let object = Held()
            held = object
            _ = timers.set(at: .now + .seconds(3600)) { _ = object }
        }
        for _ in 0..<12_000 where held != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(held == nil)
    }

    @Test func promiseResumesEarlyAndLateWaiters() {
        let promise = BlockingPromise<Int>()
        let early = NamedThread(name: "early") { #expect(promise.wait() == 7) }
        promise.fulfill(7)
        #expect(promise.wait() == 7)
        early.join()
    }
}
