/// One of several sources of work that share a resource, such as a tenant.
public struct Flow: Hashable, Sendable {
    /// The name of the flow; nil for work without one, which is a flow too.
    public var name: String?
    /// The weight, above 0. While several flows wait, each gets its share in proportion to its weight.
    public var weight: Double

    /// Creates a flow; by default that of work without a name.
    public init(_ name: String? = nil, weight: Double = 1) {
        self.name = name
        self.weight = weight
    }
}

/// A queue that serves several flows in proportion to their weights, whatever the order of arrival. A pure value.
///
/// Start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM 1996): the elements of a flow are
/// served in their order, and the next flow is the one with the lowest start tag. Each element raises the tag of its
/// flow by the inverse of its weight. A flow accumulates no credit while it has no elements. Appending and removing take
/// logarithmic time in the number of flows.
public struct FairQueue<Element> {
    fileprivate struct Backlog {
        var elements = Deque<Element>()
        /// The start tag of the first element; for an empty flow that of the next one to arrive.
        var tag: Double
        /// The number of the only valid entry in the heap.
        var turn: UInt64 = 0
        var weight: Double
    }

    private struct Turn: Comparable {
        let tag: Double
        let number: UInt64
        let flow: String?

        static func < (first: Self, second: Self) -> Bool {
            (first.tag, first.number) < (second.tag, second.number)
        }
    }

    private var flows: [String?: Backlog] = [:]
    /// The number of flows that have elements.
    private var waitingFlows = 0
    /// A binary min-heap of the flows that have elements. Entries with an outdated number are skipped.
    private var turns: [Turn] = []
    private var nextNumber: UInt64 = 0
    /// The start tag of the element that was served last.
    private var virtualTime = 0.0
    /// The number of elements.
    public private(set) var count = 0

    /// Creates an empty queue.
    public init() {}

    /// True if the queue is empty.
    public var isEmpty: Bool { count == 0 }

    /// Appends an element to a flow. A changed weight applies from the next element that is served on.
    public mutating func append(_ element: Element, to flow: Flow) {
        count += 1
        let time = virtualTime
        let wasIdle = Self.append(
            element, to: &flows[flow.name, default: Backlog(tag: 0, weight: 1)], flow.weight, at: time)
        guard wasIdle else { return }
        waitingFlows += 1
        schedule(flow.name)
    }

    /// Returns true if the flow had no elements.
    private static func append(
        _ element: Element, to backlog: inout Backlog, _ weight: Double, at virtualTime: Double
    ) -> Bool {
        backlog.elements.append(element)
        backlog.weight = weight
        guard backlog.turn == 0 else { return false }
        backlog.tag = max(backlog.tag, virtualTime)
        return true
    }

    /// Removes and returns the next element.
    public mutating func popFirst() -> (flow: String?, element: Element)? {
        while let turn = popTurn() {
            guard flows[turn.flow]?.turn == turn.number, let element = popFirst(of: turn.flow) else { continue }
            return (turn.flow, element)
        }
        return nil
    }

    /// Removes and returns the first element of a flow, out of turn. It counts towards the share of the flow.
    public mutating func popFirst(of flow: String?) -> Element? {
        guard let element = flows[flow]?.elements.popFirst(), let backlog = flows[flow] else { return nil }
        count -= 1
        virtualTime = max(virtualTime, backlog.tag)
        flows[flow]?.tag += 1 / backlog.weight
        if backlog.elements.isEmpty {
            flows[flow]?.turn = 0
            waitingFlows -= 1
            forgetIdleFlows()
        } else {
            schedule(flow)
        }
        return element
    }

    /// Enters a flow that has elements into the heap with its tag.
    private mutating func schedule(_ flow: String?) {
        if turns.count > 64 + 2 * waitingFlows { forgetOutdatedTurns() }
        nextNumber += 1
        flows[flow]?.turn = nextNumber
        turns.append(Turn(tag: flows[flow]?.tag ?? virtualTime, number: nextNumber, flow: flow))
        var child = turns.count - 1
        while child > 0, turns[child] < turns[(child - 1) / 2] {
            turns.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes outdated entries from the heap. A sorted array is a heap.
    private mutating func forgetOutdatedTurns() {
        turns = turns.filter { flows[$0.flow]?.turn == $0.number }.sorted()
    }

    /// Drops the tags of flows without elements when there are many of them.
    private mutating func forgetIdleFlows() {
        guard flows.count > 64 + 2 * waitingFlows else { return }
        flows = flows.filter { $0.value.turn != 0 }
    }

    private mutating func popTurn() -> Turn? {
        guard let first = turns.first else { return nil }
        let last = turns.removeLast()
        if turns.isEmpty { return first }
        turns[0] = last
        var parent = 0
        while case let children = (2 * parent + 1..<2 * parent + 3).clamped(to: turns.indices), !children.isEmpty {
            let least = children.min { turns[$0] < turns[$1] } ?? parent
            guard turns[least] < turns[parent] else { break }
            turns.swapAt(least, parent)
            parent = least
        }
        return first
    }
}

extension FairQueue: Sendable where Element: Sendable {}
extension FairQueue.Backlog: Sendable where Element: Sendable {}
