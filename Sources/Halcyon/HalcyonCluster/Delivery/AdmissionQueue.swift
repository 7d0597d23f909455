import Concurrency

/// The jobs of one partition that have been received and wait to be processed, and the number in flight. A pure value.
///
/// It decouples the order of processing from that of the partition. Flows share the window by weighted fair queueing,
/// and a flow with few jobs in flight does not wait for the window at all. Jobs that are held, because their lane or
/// tenant is paused, are not processed until they are released.
struct AdmissionQueue<Element: FlowMember> {
    private let window: Int
    private let reserve: Int
    private var waiting = FairQueue<Element>()
    /// The jobs that are held, in the order of their arrival within each flow.
    private(set) var held: [Element] = []
    /// The rule for jobs to hold; nil if none are held.
    private var isHeld: (@Sendable (Element) -> Bool)?
    private var inFlightByFlow: [String?: Int] = [:]
    /// The number of jobs in flight.
    private(set) var inFlight = 0

    /// Creates an empty queue.
    /// - Parameters:
    ///   - window: the number of jobs in flight up to which jobs are admitted by turns.
    ///   - reserve: the number of jobs in flight up to which a flow is admitted although the window is full. All flows
    ///     together exceed the window at most by its size.
    ///   - isHeld: the rule for jobs to hold; nil if none are held.
    init(window: Int, reserve: Int, isHeld: (@Sendable (Element) -> Bool)? = nil) {
        self.window = window
        self.reserve = reserve
        self.isHeld = isHeld
    }

    /// The number of jobs that wait, including those that are held.
    var count: Int { waiting.count + held.count }

    /// Adds jobs.
    /// - Returns: the jobs to process now.
    mutating func receive(_ elements: [Element]) -> [Element] {
        guard let isHeld else { return enqueue(elements) }
        held += elements.filter(isHeld)
        return enqueue(elements.filter { !isHeld($0) })
    }

    /// Replaces the rule for jobs to hold. It applies to jobs that wait, not to those in flight.
    /// - Returns: the jobs to process now.
    mutating func hold(where isHeld: (@Sendable (Element) -> Bool)?) -> [Element] {
        self.isHeld = isHeld
        let candidates = held
        held = []
        guard let isHeld else { return enqueue(candidates) }
        var remaining: [Element] = []
        while let (_, element) = waiting.popFirst() { remaining.append(element) }
        return receive(candidates.filter(isHeld) + remaining + candidates.filter { !isHeld($0) })
    }

    private mutating func enqueue(_ elements: [Element]) -> [Element] {
        if elements.isEmpty { return [] }
        if waiting.isEmpty, elements.count <= window - inFlight {
            for run in elements.runs(by: { $0.flow }) { begin(run.count, of: run[run.startIndex].flow.name) }
            return elements
        }
        for element in elements { waiting.append(element, to: element.flow) }
        return admit(Set(elements.lazy.map(\.flow.name)))
    }

    /// Removes jobs that are no longer in flight.
    /// - Returns: the jobs to process now.
    mutating func end(_ elements: some RandomAccessCollection<Element>) -> [Element] {
        for run in elements.runs(by: { $0.flow }) {
            let flow = run[run.startIndex].flow.name
            let left = (inFlightByFlow[flow] ?? 0) - run.count
            inFlightByFlow[flow] = left > 0 ? left : nil
        }
        inFlight -= elements.count
        return waiting.isEmpty ? [] : admit(Set(elements.lazy.map(\.flow.name)))
    }

    /// The window is refilled in portions of a quarter, so that jobs are processed in batches.
    private mutating func admit(_ flows: Set<String?>) -> [Element] {
        var admitted: [Element] = []
        if window - inFlight >= max(1, min(window / 4, waiting.count)) {
            while inFlight < window, let (flow, element) = waiting.popFirst() {
                begin(1, of: flow)
                admitted.append(element)
            }
        }
        for flow in flows {
            while inFlight < 2 * window, inFlightByFlow[flow, default: 0] < reserve,
                let element = waiting.popFirst(of: flow)
            {
                begin(1, of: flow)
                admitted.append(element)
            }
        }
        return admitted
    }

    private mutating func begin(_ count: Int, of flow: String?) {
        inFlight += count
        inFlightByFlow[flow, default: 0] += count
    }
}

/// An element of an ``AdmissionQueue``.
protocol FlowMember {
    /// The flow that the element belongs to.
    var flow: Flow { get }
}

extension JobDelivery: FlowMember {}
extension AdmissionQueue: Sendable where Element: Sendable {}

extension RandomAccessCollection {
    /// Returns the longest slices whose elements have the same property.
    func runs<Property: Equatable>(by property: (Element) -> Property) -> [SubSequence] {
        var runs: [SubSequence] = []
        var start = startIndex
        for index in indices.dropFirst() where property(self[index]) != property(self[start]) {
            runs.append(self[start..<index])
            start = index
        }
        if start < endIndex { runs.append(self[start...]) }
        return runs
    }
}
