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

    @Test func heldElementsWaitUntilTheyAreReleased() {
        var queue = AdmissionQueue<Element>(window: 16, reserve: 2)
        #expect(queue.receive(elements(20, "a")).count == 16)
        #expect(queue.hold { $0.name == "a" }.isEmpty)
        #expect(queue.held.count == 4 && queue.count == 4)
        // Others continue, and those in flight end.
        #expect(queue.receive(elements(10, "a") + elements(1, "b")) == elements(1, "b"))
        #expect(queue.end(elements(16, "a") + elements(1, "b")).isEmpty)
        #expect(queue.held.count == 14 && queue.inFlight == 0)
        #expect(queue.hold { $0.name == "b" } == elements(14, "a"))
        #expect(queue.held.isEmpty && queue.count == 0)
        #expect(queue.receive(elements(2, "b")).isEmpty)
        #expect(queue.hold(where: nil) == elements(2, "b"))
    }

    @Test func aFlowKeepsItsOrderWhenItIsHeldAndReleased() {
        struct Numbered: FlowMember, Equatable {
            let name: String
            let number: Int
            var flow: Flow { Flow(name) }
        }
        var queue = AdmissionQueue<Numbered>(window: 4, reserve: 0)
        let all = (0..<60).map { Numbered(name: $0 % 2 == 0 ? "a" : "b", number: $0) }
        var inFlight = queue.receive(Array(all.prefix(30)))
        inFlight += queue.hold { $0.name == "a" }
        inFlight += queue.receive(Array(all.dropFirst(30)))
        var done: [Numbered] = []
        func finish() {
            while !inFlight.isEmpty {
                done.append(inFlight[0])
                inFlight += queue.end([inFlight.removeFirst()])
            }
        }
        finish()
        #expect(done.count { $0.name == "b" } == 30 && queue.held.count == 60 - done.count)
        inFlight = queue.hold(where: nil)
        finish()
        for name in ["a", "b"] {
            #expect(done.filter { $0.name == name }.map(\.number) == all.filter { $0.name == name }.map(\.number))
        }
        #expect(queue.count == 0 && queue.inFlight == 0)
    }
}
