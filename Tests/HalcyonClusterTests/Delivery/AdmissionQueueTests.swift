import Concurrency
import Testing

@testable import HalcyonCluster

@Suite struct AdmissionQueueTests {
    private struct Element: FlowMember, Equatable {
        let name: String
        var flow: Flow { Flow(name) }
    }

    private func elements(_ count: Int, _ name: String) -> [Element] { (0..<count).map { _ in Element(name: name) } }

    @Test func admitsAsManyAsTheWindow() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        #expect(queue.receive(elements(10, "a")).count == 10)
        #expect(queue.receive(elements(30, "a")).count == 6)
        #expect(queue.inFlight == 16 && queue.count == 24)
    }

    /// A refill of single jobs would look them up one by one.
    @Test func refillsInPortions() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        _ = queue.receive(elements(100, "a"))
        #expect(queue.end(elements(3, "a")).isEmpty)
        #expect(queue.end(elements(1, "a")).count == 4)
    }

    @Test func theLastOnesWaitForNoPortion() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        _ = queue.receive(elements(17, "a"))
        #expect(queue.end(elements(1, "a")).count == 1 && queue.count == 0)
    }

    @Test func aSmallFlowDoesNotWaitForTheWindow() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        _ = queue.receive(elements(1000, "big"))
        #expect(queue.receive(elements(5, "small")) == elements(2, "small"))
        #expect(queue.end(elements(1, "small")) == elements(1, "small"))
    }

    @Test func flowsThatWaitTakeTurns() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 0)
        _ = queue.receive(elements(1000, "big"))
        _ = queue.receive(elements(100, "small"))
        let next = queue.end(elements(16, "big"))
        #expect(next.count == 16 && next.count { $0.name == "small" } >= 8)
    }

    @Test func allReservesTogetherAreBounded() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 4)
        _ = queue.receive(elements(100, "big"))
        for tenant in 0..<100 { _ = queue.receive(elements(10, "\(tenant)")) }
        #expect(queue.inFlight == 32)
    }

    @Test func everyRecordIsAdmittedOnce() {
        var queue = AdmissionQueue<Element>(window: 8, reserve: 1)
        var inFlight = queue.receive((0..<5000).map { Element(name: "\($0 % 7 * ($0 % 3))") })
        var count = 0
        while !inFlight.isEmpty {
            count += 1
            inFlight += queue.end([inFlight.removeFirst()])
        }
        #expect(count == 5000 && queue.inFlight == 0 && queue.count == 0)
    }
}
