import Concurrency
import Testing

@Suite struct ConditionLockTests {
    @Test func waitsUntilTheConditionHolds() {
        let numbers = ConditionLock<[Int]>([])
        let sum = Lock(0)
        let reader = NamedThread(name: "reader") {
            for _ in 0..<1000 {
                let number = numbers.wait { $0.isEmpty ? nil : $0.removeFirst() }
                sum.withLock { $0 += number }
            }
        }
        for number in 0..<1000 {
            numbers.withLock { $0.append(number) }
            numbers.signal()
        }
        reader.join()
        let total = sum.withLock { $0 }
        #expect(total == 999 * 1000 / 2)
    }

    @Test func broadcastWakesAllWaiters() {
        let isOpen = ConditionLock(false)
        let threads = (0..<5).map { index in
            NamedThread(name: "waiter-\(index)") { isOpen.wait { $0 ? () : nil } }
        }
        isOpen.withLock { $0 = true }
        isOpen.broadcast()
        for thread in threads { thread.join() }
    }

    @Test func rechecksTheConditionAtTheGivenTime() {
        let start = ContinuousClock.now
        let deadline = ConditionLock(start + .milliseconds(50))
        let result = deadline.wait(for: { $0 <= .now ? 1 : nil }, recheckingAt: { $0 })
        #expect(result == 1 && start.duration(to: .now) >= .milliseconds(50))
        // A time in the past causes no wait.
        var count = 0
        deadline.wait(
            for: { _ -> Void? in
                count += 1
                return count == 3 ? () : nil
            }, recheckingAt: { _ in start })
    }

    @Test func withLockRethrowsErrors() {
        struct Refused: Error {}
        #expect(throws: Refused.self) { try ConditionLock(1).withLock { _ throws(Refused) in throw Refused() } }
    }
}
