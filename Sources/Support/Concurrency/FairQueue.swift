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
    /// The elements of a flow. It is stored in a slot, so that its name is hashed only where an element arrives.
    fileprivate struct Backlog {
        var name: String?
        var elements = Deque<Element>()
        /// The start tag of the first element; for an empty flow that of the next one to arrive.
        var tag = -Double.infinity
        /// The number of the only valid entry in the heap.
        var entry: UInt64 = 0
        var weight: Double

        /// The tag of an element at a virtual time, at the earliest.
        func earliestTag(at virtualTime: Double) -> Double { virtualTime - 1 / weight }

        /// True if there are no elements and the flow has all the credit that a flow can have.
        func hasFullCredit(at virtualTime: Double) -> Bool { entry == 0 && tag <= earliestTag(at: virtualTime) }
    }

    private struct HeapEntry: Comparable {
        let tag: Double
        let number: UInt64
        let slot: Int

        static func < (first: Self, second: Self) -> Bool {
            (first.tag, first.number) < (second.tag, second.number)
        }
    }

    private var backlogs: [Backlog] = []
    /// The slots of the flows by name.
    private var slots: [String?: Int] = [:]
    /// The slots of flows that were forgotten.
    private var freeSlots: [Int] = []
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
    public var hasSeveralFlows: Bool { slots.count > 1 }

    /// True if the queue is empty.
    public var isEmpty: Bool { count == 0 }

    /// Returns true if a flow has elements.
    public func hasElements(of flow: String?) -> Bool { slots[flow].map { backlogs[$0].entry != 0 } ?? false }

    /// Appends an element to a flow. A changed weight applies from the next element that is served on.
    public mutating func append(_ element: Element, to flow: Flow) {
        count += 1
        let slot = slot(of: flow)
        backlogs[slot].elements.append(element)
        backlogs[slot].weight = flow.weight
        guard backlogs[slot].entry == 0 else { return }
        backlogs[slot].tag = max(backlogs[slot].tag, backlogs[slot].earliestTag(at: virtualTime))
        waitingFlows += 1
        schedule(slot)
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
            guard backlogs[entry.slot].entry == entry.number else { continue }
            let name = backlogs[entry.slot].name
            guard isReady(name) else {
                passed.append(entry)
                continue
            }
            if let element = popFirst(at: entry.slot) { return (name, element) }
        }
        return nil
    }

    /// Removes and returns the first element of a flow, out of turn. It counts towards the share of the flow.
    public mutating func popFirst(of flow: String?) -> Element? { slots[flow].flatMap { popFirst(at: $0) } }

    private mutating func popFirst(at slot: Int) -> Element? {
        guard let element = backlogs[slot].elements.popFirst() else { return nil }
        count -= 1
        virtualTime = max(virtualTime, backlogs[slot].tag)
        backlogs[slot].tag += 1 / backlogs[slot].weight
        if backlogs[slot].elements.isEmpty {
            backlogs[slot].entry = 0
            waitingFlows -= 1
            forgetIdleFlows()
        } else {
            schedule(slot)
        }
        return element
    }

    /// Returns true if an element of a flow would be served next: if the flow has no elements and has not been served
    /// too recently.
    public func isBelowShare(_ flow: Flow) -> Bool {
        slots[flow.name].map { backlogs[$0].hasFullCredit(at: virtualTime) } ?? true
    }

    /// Counts an element that is served without having been in the queue.
    public mutating func serve(_ flow: Flow) {
        let slot = slot(of: flow)
        let tag = max(backlogs[slot].tag, backlogs[slot].earliestTag(at: virtualTime))
        virtualTime = max(virtualTime, tag)
        backlogs[slot].tag = tag + 1 / backlogs[slot].weight
        if backlogs[slot].entry == 0 { forgetIdleFlows() } else { schedule(slot) }
    }

    /// Does not count an element that was served towards the share of its flow, because it took next to nothing.
    public mutating func refund(_ flow: String?) {
        guard let slot = slots[flow] else { return }
        let backlog = backlogs[slot]
        backlogs[slot].tag = max(backlog.tag - 1 / backlog.weight, backlog.earliestTag(at: virtualTime))
        if backlog.entry != 0 { schedule(slot) }
    }

    /// Returns the slot of a flow, which is created if necessary.
    private mutating func slot(of flow: Flow) -> Int {
        if let slot = slots[flow.name] { return slot }
        let backlog = Backlog(name: flow.name, weight: flow.weight)
        let slot = freeSlots.popLast() ?? backlogs.count
        if slot < backlogs.count { backlogs[slot] = backlog } else { backlogs.append(backlog) }
        slots[flow.name] = slot
        return slot
    }

    /// Enters a flow that has elements into the heap with its tag.
    private mutating func schedule(_ slot: Int) {
        if heap.count > 64 + 2 * waitingFlows { forgetOutdatedEntries() }
        nextNumber += 1
        backlogs[slot].entry = nextNumber
        push(HeapEntry(tag: backlogs[slot].tag, number: nextNumber, slot: slot))
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
        heap = heap.filter { backlogs[$0.slot].entry == $0.number }.sorted()
    }

    /// Drops flows without elements that have all the credit that a flow can have, when there are many flows.
    private mutating func forgetIdleFlows() {
        guard slots.count > capacity else { return }
        for (name, slot) in slots where backlogs[slot].hasFullCredit(at: virtualTime) {
            slots[name] = nil
            freeSlots.append(slot)
        }
        capacity = 64 + 2 * slots.count
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
