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
/// flow by the inverse of its weight. A flow that had no elements for a while is served next, once: it accumulates a
/// credit of one element at most, so that flows with few elements do not wait until all others have had a turn.
/// Appending and removing take logarithmic time in the number of flows.
public struct FairQueue<Element> {
    fileprivate struct Backlog {
        var elements = Deque<Element>()
        /// The start tag of the first element; for an empty flow that of the next one to arrive.
        var tag: Double
        /// The number of the only valid entry in the heap.
        var entry: UInt64 = 0
        var weight: Double

        /// The tag of an element at a virtual time, at the earliest.
        func earliestTag(at virtualTime: Double) -> Double { virtualTime - 1 / weight }
    }

    private struct HeapEntry: Comparable {
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
    private var heap: [HeapEntry] = []
    private var nextNumber: UInt64 = 0
    /// The start tag of the element that was served last.
    private var virtualTime = 0.0
    /// The number of flows above which those that can be recreated are forgotten.
    private var capacity = 64
    /// The number of elements.
    public private(set) var count = 0

    /// Creates an empty queue.
    public init() {}

    /// True if several flows have had elements and are not forgotten.
    public var hasSeveralFlows: Bool { flows.count > 1 }

    /// True if the queue is empty.
    public var isEmpty: Bool { count == 0 }

    /// Returns true if a flow has elements.
    public func hasElements(of flow: String?) -> Bool { flows[flow].map { $0.entry != 0 } ?? false }

    /// Appends an element to a flow. A changed weight applies from the next element that is served on.
    public mutating func append(_ element: Element, to flow: Flow) {
        count += 1
        let time = virtualTime
        let wasIdle = Self.append(
            element, to: &flows[flow.name, default: Backlog(tag: -.infinity, weight: 1)], flow.weight, at: time)
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
        guard backlog.entry == 0 else { return false }
        backlog.tag = max(backlog.tag, backlog.earliestTag(at: virtualTime))
        return true
    }

    /// Removes and returns the next element of those flows that are ready.
    /// - Parameter isReady: A function that returns true if the next element of a flow may be removed. Its element is
    ///   then removed. It is called at most once for each flow.
    public mutating func popFirst(
        where isReady: (_ flow: String?) -> Bool = { _ in true }
    ) -> (flow: String?, element: Element)? {
        var passed: [HeapEntry] = []
        defer { for entry in passed { push(entry) } }
        while let entry = popEntry() {
            guard flows[entry.flow]?.entry == entry.number else { continue }
            guard isReady(entry.flow) else {
                passed.append(entry)
                continue
            }
            if let element = popFirst(of: entry.flow) { return (entry.flow, element) }
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
            flows[flow]?.entry = 0
            waitingFlows -= 1
            forgetIdleFlows()
        } else {
            schedule(flow)
        }
        return element
    }

    /// Returns true if an element of a flow would be served next: if the flow has no elements and has not been served
    /// too recently.
    public func isBelowShare(_ flow: Flow) -> Bool {
        guard let backlog = flows[flow.name] else { return true }
        return backlog.entry == 0 && backlog.tag <= backlog.earliestTag(at: virtualTime)
    }

    /// Counts an element that is served without having been in the queue.
    public mutating func serve(_ flow: Flow) {
        var backlog = flows[flow.name] ?? Backlog(tag: -.infinity, weight: flow.weight)
        let tag = max(backlog.tag, backlog.earliestTag(at: virtualTime))
        virtualTime = max(virtualTime, tag)
        backlog.tag = tag + 1 / backlog.weight
        flows[flow.name] = backlog
        if backlog.entry == 0 { forgetIdleFlows() } else { schedule(flow.name) }
    }

    /// Does not count an element that was served towards the share of its flow, because it took next to nothing.
    public mutating func refund(_ flow: String?) {
        guard let backlog = flows[flow] else { return }
        flows[flow]?.tag = max(backlog.tag - 1 / backlog.weight, backlog.earliestTag(at: virtualTime))
        if backlog.entry != 0 { schedule(flow) }
    }

    /// Enters a flow that has elements into the heap with its tag.
    private mutating func schedule(_ flow: String?) {
        if heap.count > 64 + 2 * waitingFlows { forgetOutdatedEntries() }
        nextNumber += 1
        flows[flow]?.entry = nextNumber
        push(HeapEntry(tag: flows[flow]?.tag ?? virtualTime, number: nextNumber, flow: flow))
    }

    private mutating func push(_ entry: HeapEntry) {
        heap.append(entry)
        var child = heap.count - 1
        while child > 0, heap[child] < heap[(child - 1) / 2] {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes outdated entries from the heap. A sorted array is a heap.
    private mutating func forgetOutdatedEntries() {
        heap = heap.filter { flows[$0.flow]?.entry == $0.number }.sorted()
    }

    /// Drops flows without elements that have all the credit that a flow can have, when there are many flows.
    private mutating func forgetIdleFlows() {
        guard flows.count > capacity else { return }
        flows = flows.filter { $0.value.entry != 0 || $0.value.tag > $0.value.earliestTag(at: virtualTime) }
        capacity = 64 + 2 * flows.count
    }

    private mutating func popEntry() -> HeapEntry? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if heap.isEmpty { return first }
        heap[0] = last
        var parent = 0
        while case let children = (2 * parent + 1..<2 * parent + 3).clamped(to: heap.indices), !children.isEmpty {
            let least = children.min { heap[$0] < heap[$1] } ?? parent
            guard heap[least] < heap[parent] else { break }
            heap.swapAt(least, parent)
            parent = least
        }
        return first
    }
}

extension FairQueue: Sendable where Element: Sendable {}
extension FairQueue.Backlog: Sendable where Element: Sendable {}
