/// The number of sends in librdkafka's queue, the senders that wait for room, and the phase of the producer.
///
/// Each send is counted from before it is enqueued until its delivery report. So if a sender finds the queue full while
/// others are counted, one of those will finish later and wake a waiter. If none is counted, the queue is empty and a
/// retry can succeed.
struct ProducerLifecycle {
    typealias Waiter = CheckedContinuation<Void, Never>

    private enum Phase { case open, closing, givingUp }
    private var phase = Phase.open
    private var count = 0
    private var waiters: [Waiter] = []
    private var firstWaiter = 0

    /// Counts a send. False if the producer is closing.
    mutating func admit() -> Bool {
        guard phase == .open else { return false }
        count += 1
        return true
    }

    /// Uncounts a send that librdkafka rejected.
    mutating func withdraw() { count -= 1 }

    /// Suspends a sender that found the queue full. False if it should retry immediately.
    mutating func wait(_ waiter: Waiter) -> Bool {
        guard phase == .open, count > 0 else { return false }
        waiters.append(waiter)
        return true
    }

    /// Counts delivery reports. Returns the same number of waiters to resume.
    mutating func finish(_ reports: Int) -> [Waiter] {
        count -= reports
        let woken = waiters[firstWaiter...].prefix(reports)
        firstWaiter = woken.endIndex
        defer {
            if firstWaiter * 2 >= waiters.count {
                waiters.removeFirst(firstWaiter)
                firstWaiter = 0
            }
        }
        return Array(woken)
    }

    /// Returns the next waiter to resume if a resumed sender no longer needs the room.
    mutating func passOn() -> Waiter? {
        guard firstWaiter < waiters.endIndex else { return nil }
        firstWaiter += 1
        return waiters[firstWaiter - 1]
    }

    /// Begins to close the producer. Returns all waiters.
    mutating func stopAdmitting() -> [Waiter] {
        phase = .closing
        defer { (waiters, firstWaiter) = ([], 0) }
        return Array(waiters[firstWaiter...])
    }

    /// Ends the time for flushing. The remaining records will fail.
    mutating func giveUp() { phase = .givingUp }

    var isGivingUp: Bool { phase == .givingUp }

    /// True if every send has had its report and no further sends can start.
    var hasEnded: Bool { phase == .givingUp && count == 0 }
}
