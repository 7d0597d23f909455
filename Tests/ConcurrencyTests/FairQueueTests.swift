import TestSupport
import Testing

@testable import Concurrency

@Suite struct FairQueueTests {
    @Test func aFlowKeepsItsOrder() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { queue.append(number, to: Flow("a")) }
        #expect((0..<1000).map { _ in queue.popFirst()?.element } == Array(0..<1000))
        #expect(queue.popFirst() == nil && queue.isEmpty)
    }

    @Test func aLaterFlowIsServedBesideAnEarlierFlood() {
        var queue = FairQueue<String>()
        for number in 0..<50_000 { queue.append("big \(number)", to: Flow("big")) }
        for _ in 0..<100 { _ = queue.popFirst() }
        for number in 0..<10 { queue.append("small \(number)", to: Flow("small")) }
        let next = (0..<20).compactMap { _ in queue.popFirst()?.flow }
        #expect(next.count { $0 == "small" } >= 9)
        #expect(next.first == "small" || next.dropFirst().first == "small")
    }

    @Test func flowsShareInProportionToTheirWeights() {
        var queue = FairQueue<Int>()
        let weights = ["a": 1.0, "b": 2, "c": 5, "d": 0.5]
        for number in 0..<2000 {
            for (name, weight) in weights { queue.append(number, to: Flow(name, weight: weight)) }
        }
        var served: [String: Int] = [:]
        for _ in 0..<1700 { if let name = queue.popFirst()?.flow { served[name, default: 0] += 1 } }
        for (name, weight) in weights { #expect(abs(Double(served[name] ?? 0) - 200 * weight) <= 2, "\(served)") }
    }

    /// A flow below its share does not wait for a turn of all others.
    @Test func aFlowWithFewElementsIsServedNext() {
        var queue = FairQueue<Int>()
        for number in 0..<30 { for flow in 0..<200 { queue.append(number, to: Flow("\(flow)")) } }
        // Until all of them have had a turn, they are new, too.
        for _ in 0..<200 { _ = queue.popFirst() }
        for round in 0..<10 {
            queue.append(round, to: Flow("small"))
            #expect(queue.popFirst()?.flow == "small", "\(round)")
            // Twice as long as the turn of all flows.
            for _ in 0..<400 { _ = queue.popFirst() }
        }
    }

    @Test func refundedElementsDoNotCount() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { for name in ["a", "b"] { queue.append(number, to: Flow(name)) } }
        var served: [String: Int] = [:]
        for _ in 0..<300 {
            guard let flow = queue.popFirst()?.flow else { break }
            served[flow, default: 0] += 1
            // Half of the elements of a.
            if flow == "a", served[flow, default: 0] % 2 == 0 { queue.refund(flow) }
        }
        #expect(abs((served["a"] ?? 0) - 200) <= 2, "\(served)")
    }

    /// Refunds give no credit beyond that of an idle flow.
    @Test func refundsAreLimited() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { for name in ["a", "b"] { queue.append(number, to: Flow(name)) } }
        for _ in 0..<100 { _ = queue.popFirst() }
        for _ in 0..<100 { queue.refund("a") }
        queue.refund("unknown")
        let next = (0..<100).compactMap { _ in queue.popFirst()?.flow }
        #expect((50...52).contains(next.count { $0 == "a" }))
    }

    @Test func aFlowThatWasForgottenGainsNothing() {
        var queue = FairQueue<Int>()
        for number in 0..<10_000 { queue.append(number, to: Flow("big")) }
        var served: [String: Int] = [:]
        for number in 0..<2000 {
            // Idle flows that make the queue forget some.
            queue.append(number, to: Flow("\(number)"))
            if !queue.hasElements(of: "returning") { queue.append(number, to: Flow("returning")) }
            for _ in 0..<2 { if let flow = queue.popFirst()?.flow { served[flow, default: 0] += 1 } }
        }
        #expect(
            (served["returning"] ?? 0) <= (served["big"] ?? 0) + 2, "\(served["returning"] ?? 0) \(served["big"] ?? 0)")
    }

    @Test func anIdleFlowAccumulatesNoCredit() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { queue.append(number, to: Flow("a")) }
        for _ in 0..<500 { _ = queue.popFirst() }
        for number in 0..<500 { queue.append(number, to: Flow("b")) }
        let next = (0..<100).compactMap { _ in queue.popFirst()?.flow }
        #expect((49...51).contains(next.count { $0 == "b" }))
    }

    /// A flow that empties its queue after each element does not get more than one with a backlog.
    @Test func returningOftenGivesNoAdvantage() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { queue.append(number, to: Flow("backlog")) }
        queue.append(0, to: Flow("returning"))
        var served: [String: Int] = [:]
        for _ in 0..<400 {
            guard let name = queue.popFirst()?.flow else { break }
            served[name, default: 0] += 1
            if name == "returning" { queue.append(0, to: Flow("returning")) }
        }
        #expect(abs((served["returning"] ?? 0) - 200) <= 1, "\(served)")
    }

    @Test func elementsOutOfTurnCountTowardsTheShare() {
        var queue = FairQueue<Int>()
        for number in 0..<1000 { for name in ["a", "b"] { queue.append(number, to: Flow(name)) } }
        #expect((0..<100).map { _ in queue.popFirst(of: "a") } == Array(0..<100))
        let next = (0..<100).compactMap { _ in queue.popFirst()?.flow }
        #expect(next.count { $0 == "b" } >= 99)
        #expect(queue.count == 1800 && queue.popFirst(of: "c") == nil)
    }

    @Test(arguments: 0..<20) func everyElementIsServedOnceAndInItsFlowsOrder(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var queue = FairQueue<(flow: Int, number: Int)>()
        var (appended, served): ([Int: Int], [Int: Int]) = ([:], [:])
        func check(_ element: (flow: Int, number: Int)?) {
            guard let element else { return }
            #expect(element.number == served[element.flow, default: 0])
            served[element.flow, default: 0] += 1
        }
        for _ in 0..<20_000 {
            let flow = Int(random.next() % 300)
            switch random.next() % 5 {
            case 0, 1:
                let number = appended[flow, default: 0]
                queue.append((flow, number), to: Flow("\(flow)", weight: Double(random.next() % 4 + 1)))
                appended[flow] = number + 1
            case 2: check(queue.popFirst(of: "\(flow)"))
            default: check(queue.popFirst()?.element)
            }
        }
        while let next = queue.popFirst() { check(next.element) }
        #expect(appended == served && queue.isEmpty)
    }
}
