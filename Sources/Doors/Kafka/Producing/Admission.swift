/// Who is in librdkafka's queue, who waits for room in it, and whether the producer still takes anything.
///
/// Each send is counted before it is handed over and until its delivery report. So when someone finds the queue full
/// and others are counted, one of them will end later and wake a waiter; when nobody is counted the queue is empty and
/// it is worth trying again.
struct Admission {
    typealias Waiter = CheckedContinuation<Void, Never>

    private enum Phase { case open, closing, givingUp }
    private var phase = Phase.open
    private var count = 0
    private var waiters: [Waiter] = []
    private var firstWaiter = 0

    /// Counts a send in; false when the producer is being closed.
    mutating func admit() -> Bool {
        guard phase == .open else { return false }
        count += 1
        return true
    }

    /// A send was not taken by librdkafka.
    mutating func withdraw() { count -= 1 }

    /// Parks a sender that found the queue full; false when it should try again at once.
    mutating func wait(_ waiter: Waiter) -> Bool {
        guard phase == .open, count > 0 else { return false }
        waiters.append(waiter)
        return true
    }

    /// Delivery reports came; gives as many waiters to resume.
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

    /// A sender that was woken does not want the room any more; gives who is to be resumed in its place.
    mutating func passOn() -> Waiter? {
        guard firstWaiter < waiters.endIndex else { return nil }
        firstWaiter += 1
        return waiters[firstWaiter - 1]
    }

    /// The producer is being closed; gives all waiters.
    mutating func stopAdmitting() -> [Waiter] {
        phase = .closing
        defer { (waiters, firstWaiter) = ([], 0) }
        return Array(waiters[firstWaiter...])
    }

    /// The time for flushing is over: what is left is to fail.
    mutating func giveUp() { phase = .givingUp }

    var isGivingUp: Bool { phase == .givingUp }

    /// Whether every send has had its report and none can come.
    var hasEnded: Bool { phase == .givingUp && count == 0 }
}
