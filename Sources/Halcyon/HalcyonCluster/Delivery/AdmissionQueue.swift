import Concurrency

/// The jobs of one partition that have been received and wait to be processed, and the number in flight. A pure value.
///
/// It decouples the order of processing from that of the partition. Flows share the window by weighted fair queueing,
/// and a flow with few jobs in flight does not wait for the window at all.
struct AdmissionQueue<Element: FlowMember> {
    private let window: Int
    private let reserve: Int
    private var waiting = FairQueue<Element>()
    /// The size of the messages that wait, in bytes.
    private var waitingBytes = 0
    /// The number of jobs admitted since the last call of ``spill(_:after:)``.
    private var admittedCount = 0
    private var inFlightByFlow: [String?: Int] = [:]
    /// The number of jobs in flight.
    private(set) var inFlight = 0

    /// Creates an empty queue.
    /// - Parameters:
    ///   - window: the number of jobs in flight up to which jobs are admitted by turns.
    ///   - reserve: the number of jobs in flight up to which a flow is admitted although the window is full. All flows
    ///     together exceed the window at most by its size.
    init(window: Int, reserve: Int) {
        self.window = window
        self.reserve = reserve
    }

    /// The number of jobs that wait.
    var count: Int { waiting.count }

    /// Adds jobs.
    /// - Returns: the jobs to process now.
    mutating func receive(_ elements: [Element]) -> [Element] {
        if waiting.isEmpty, elements.count <= window - inFlight {
            for run in elements.runs(by: { $0.flow }) { begin(run.count, of: run[run.startIndex].flow.name) }
            return elements
        }
        for element in elements { append(element) }
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
                waitingBytes -= element.bytes
                admitted.append(element)
            }
        }
        for flow in flows {
            while inFlight < 2 * window, inFlightByFlow[flow, default: 0] < reserve,
                let element = waiting.popFirst(of: flow)
            {
                begin(1, of: flow)
                waitingBytes -= element.bytes
                admitted.append(element)
            }
        }
        return admitted
    }

    private mutating func append(_ element: Element) {
        waitingBytes += element.bytes
        waiting.append(element, to: element.flow)
    }

    /// The fill level at which jobs leave the queue for a topic of their own.
    struct SpillLimit: Hashable {
        /// The number of jobs that wait.
        var count: Int
        /// The size of their messages in bytes.
        var bytes: Int
        /// The time in which a queue that moves fast enough is processed, in seconds.
        var patience = 1.0
    }

    /// Removes the later half of a full queue that moves slowly, so that records behind it can be received. Flows with
    /// fewer jobs than the average keep theirs.
    /// - Parameters:
    ///   - limit: The fill level.
    ///   - seconds: The time since the last call.
    /// - Returns: The removed jobs, in the order of the partition.
    mutating func spill(_ limit: SpillLimit, after seconds: Double) -> [Element] {
        defer { admittedCount = 0 }
        guard waiting.count >= limit.count || waitingBytes >= limit.bytes, waiting.count > 1,
            Double(waiting.count) * seconds > Double(admittedCount) * limit.patience
        else { return [] }
        var all: [Element] = []
        while let (_, element) = waiting.popFirst() { all.append(element) }
        all.sort { $0.offset < $1.offset }
        let counts = Dictionary(all.map { ($0.flow.name, 1) }, uniquingKeysWith: +)
        let average = all.count / counts.count
        let busy = all.indices.filter { counts[all[$0].flow.name, default: 0] >= average }
        let removed = Set(busy.suffix(all.count / 2))
        (waiting, waitingBytes) = (FairQueue(), 0)
        for (index, element) in all.enumerated() where !removed.contains(index) { append(element) }
        return removed.sorted().map { all[$0] }
    }

    private mutating func begin(_ count: Int, of flow: String?) {
        inFlight += count
        admittedCount += count
        inFlightByFlow[flow, default: 0] += count
    }
}

/// An element of an ``AdmissionQueue``.
protocol FlowMember {
    /// The flow that the element belongs to.
    var flow: Flow { get }
    /// The offset of the record in its partition.
    var offset: Int64 { get }
    /// The size of the message in bytes.
    var bytes: Int { get }
}

extension JobDelivery: FlowMember {
    var offset: Int64 { entry.offset }
    var bytes: Int { record.bytes }
}
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
