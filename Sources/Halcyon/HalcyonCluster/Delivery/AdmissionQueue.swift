import Concurrency

/// The jobs of one partition that have been received and wait to be processed, and the number in flight. A value,
/// except that all queues of a worker share the limits of flows.
///
/// It decouples the order of processing from that of the partition. Flows share the window by weighted fair queueing,
/// and a flow with few jobs in flight does not wait for the window at all. Jobs that are held, because their lane or
/// tenant is paused, are not processed until they are released.
struct AdmissionQueue<Element: FlowMember> {
    private let window: Int
    private let reserve: Int
    private let limiter: FlowLimiter?
    private let isRated: Bool
    private var waiting = FairQueue<Element>()
    /// The size of the messages that wait, in bytes.
    private var waitingBytes = 0
    /// The number of jobs admitted since the last call of ``measure(after:)``.
    private var admittedCount = 0
    /// The number of jobs admitted per second before that call; nil before the first one.
    private var rate: Double?
    /// True if the queue was full at the last call of ``spill(_:)``. A queue that has filled up since has no rate yet.
    private var wasFull = false
    /// The jobs that are held, in the order of their arrival within each flow.
    private(set) var held: [Element] = []
    /// The rule for jobs to hold; nil if none are held.
    private var isHeld: (@Sendable (Element) -> Bool)?
    private var inFlightByFlow: [String?: Int] = [:]
    /// The number of jobs in flight.
    private(set) var inFlight = 0
    /// The flows of jobs in flight that do not count towards the limits of flows, because they wait, by offset.
    private var released: [Int64: String] = [:]

    /// Creates an empty queue.
    /// - Parameters:
    ///   - window: the number of jobs in flight up to which jobs are admitted by turns.
    ///   - reserve: the number of jobs in flight up to which a flow is admitted although the window is full. All flows
    ///     together exceed the window at most by its size.
    ///   - limiter: the limits of flows; nil for none.
    ///   - isRated: false for jobs that have been received before, and do not count towards the rates of flows again.
    ///   - isHeld: the rule for jobs to hold; nil if none are held.
    init(
        window: Int, reserve: Int, limiter: FlowLimiter? = nil, isRated: Bool = true,
        isHeld: (@Sendable (Element) -> Bool)? = nil
    ) {
        self.window = window
        self.reserve = reserve
        self.limiter = limiter
        self.isRated = isRated
        self.isHeld = isHeld
    }

    /// The number of jobs that wait, including those that are held.
    var count: Int { waiting.count + held.count }

    /// Adds jobs.
    /// - Returns: the jobs to process now.
    mutating func receive(_ elements: [Element]) -> [Element] {
        guard let isHeld else { return enqueue(elements) }
        for element in elements where isHeld(element) { hold(element) }
        return enqueue(elements.filter { !isHeld($0) })
    }

    /// Replaces the rule for jobs to hold. It applies to jobs that wait, not to those in flight.
    /// - Returns: the jobs to process now.
    mutating func hold(where isHeld: (@Sendable (Element) -> Bool)?) -> [Element] {
        self.isHeld = isHeld
        let candidates = held
        held = []
        waitingBytes -= candidates.reduce(0) { $0 + $1.bytes }
        guard let isHeld else { return enqueue(candidates) }
        return receive(candidates.filter(isHeld) + removeAllWaiting() + candidates.filter { !isHeld($0) })
    }

    private mutating func enqueue(_ elements: [Element]) -> [Element] {
        if elements.isEmpty { return [] }
        let isLimited = limiter.map { limiter in elements.contains { limiter.isLimited($0.flow.name) } } ?? false
        if waiting.isEmpty, elements.count <= window - inFlight, !isLimited {
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
            limiter?.end(run.count { released.removeValue(forKey: $0.offset) == nil }, of: flow)
            let left = (inFlightByFlow[flow] ?? 0) - run.count
            inFlightByFlow[flow] = left > 0 ? left : nil
        }
        inFlight -= elements.count
        return waiting.isEmpty ? [] : admit(Set(elements.lazy.map(\.flow.name)))
    }

    /// Ends the jobs in flight towards the limits of their flows, because their partition is no longer processed here.
    func releaseLimits() {
        var counts = inFlightByFlow
        for flow in released.values { counts[flow, default: 0] -= 1 }
        for (flow, count) in counts { limiter?.end(count, of: flow) }
    }

    /// Ends a job in flight towards the limit of its flow while it waits. It keeps its place in the window.
    mutating func release(_ element: Element) {
        guard let limiter, let flow = element.flow.name, released.updateValue(flow, forKey: element.offset) == nil
        else { return }
        limiter.end(1, of: flow)
    }

    /// Counts a job that has waited towards the limit of its flow again, even beyond it.
    mutating func resume(_ element: Element) {
        guard !released.isEmpty, let flow = released.removeValue(forKey: element.offset) else { return }
        limiter?.resume(flow)
    }

    /// Admits jobs whose flows are within their limits again.
    /// - Returns: the jobs to process now.
    mutating func admitWithinLimits() -> [Element] {
        var admitted: [Element] = []
        while inFlight < window, let element = popFirst() { admitted.append(element) }
        return admitted
    }

    /// Takes the next job of a flow that is within its limits into the window.
    private mutating func popFirst() -> Element? {
        guard
            let (_, element) = waiting.popFirst(where: { [limiter, isRated] in
                limiter?.begin($0, isRated: isRated) ?? true
            })
        else { return nil }
        begin(element)
        return element
    }

    private mutating func begin(_ element: Element) {
        begin(1, of: element.flow.name)
        waitingBytes -= element.bytes
    }

    /// The number of jobs with which the window is refilled: those of 20 ms, up to a quarter of the window. Cached
    /// results are thus processed in batches, and slow jobs do not start at the same moment and delay those of others.
    private var portion: Int {
        let most = window / 4
        return max(1, rate.map { Int(min($0 / 50, Double(most))) } ?? most)
    }

    private mutating func admit(_ flows: Set<String?>) -> [Element] {
        var admitted: [Element] = []
        if window - inFlight >= min(portion, waiting.count) {
            while inFlight < window, let element = popFirst() { admitted.append(element) }
        }
        for flow in flows {
            while inFlight < 2 * window, inFlightByFlow[flow, default: 0] < guarantee, waiting.hasElements(of: flow),
                limiter?.begin(flow, isRated: isRated) ?? true, let element = waiting.popFirst(of: flow)
            {
                begin(element)
                admitted.append(element)
            }
        }
        return admitted
    }

    /// The number of jobs in flight up to which a flow is admitted although the window is full: the reserve, or less if
    /// there are so many flows that their reserves would take the place of others.
    private var guarantee: Int { min(reserve, max(1, window / max(1, inFlightByFlow.count))) }

    private mutating func append(_ element: Element) {
        waitingBytes += element.bytes
        waiting.append(element, to: element.flow)
    }

    private mutating func hold(_ element: Element) {
        waitingBytes += element.bytes
        held.append(element)
    }

    /// Removes all jobs that wait. Those of each flow are in their order.
    private mutating func removeAllWaiting() -> [Element] {
        var elements: [Element] = []
        while let (_, element) = waiting.popFirst() {
            waitingBytes -= element.bytes
            elements.append(element)
        }
        waiting = FairQueue()
        return elements
    }

    /// The fill level at which jobs leave the queue for a topic of their own.
    struct SpillLimit: Hashable {
        /// The number of jobs that wait.
        var count: Int
        /// The size of their messages in bytes.
        var bytes: Int
        /// The time in which a queue that moves fast enough is processed, in seconds.
        var patience: Double
    }

    /// Measures the rate at which jobs are admitted.
    /// - Parameter seconds: The time since the last call.
    mutating func measure(after seconds: Double) {
        (rate, admittedCount) = (Double(admittedCount) / seconds, 0)
    }

    /// Empties a queue that was full at the last call and moves slowly, so that records behind it can be received. Flows
    /// with fewer jobs than half the average keep theirs. What is left, waiting or in flight, is little, so that the
    /// commit metadata has room for the gaps between the removed jobs.
    /// - Parameter limit: The fill level.
    /// - Returns: The removed jobs, in the order of the partition.
    mutating func spill(_ limit: SpillLimit) -> [Element] {
        let isFull = count > 1 && (count >= limit.count || waitingBytes >= limit.bytes)
        let wasFull = wasFull
        self.wasFull = isFull
        guard isFull, wasFull, let rate, Double(count) > rate * limit.patience else { return [] }
        self.wasFull = false
        let all = (removeAllWaiting() + held).sorted { $0.offset < $1.offset }
        (held, waitingBytes) = ([], 0)
        let counts = Dictionary(all.map { ($0.flow.name, 1) }, uniquingKeysWith: +)
        let average = all.count / counts.count
        let isBusy = { (element: Element) in 2 * counts[element.flow.name, default: 0] >= average }
        for element in all where !isBusy(element) {
            if isHeld?(element) ?? false { hold(element) } else { append(element) }
        }
        return all.filter(isBusy)
    }

    private mutating func begin(_ count: Int, of flow: String?) {
        inFlight += count
        admittedCount += count
        inFlightByFlow[flow, default: 0] += count
    }
}

/// The limits of flows, such as tenants. Each member of a cluster observes an equal part of the limits.
public final class FlowLimiter: Sendable {
    /// The limits of all members together. Flows without a name have none.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of jobs in flight by flow.
        public var inFlight: [String: Int] = [:]
        /// The maximum number of jobs per second by flow.
        public var rates: [String: Double] = [:]
        /// The time, in seconds, whose jobs may begin at once if none have begun for as long.
        public var burst = 0.2

        /// The name that stands for all flows without limits of their own.
        public static let others = "*"

        /// Creates limits that limit nothing.
        public init() {}

        /// True if no flow is limited.
        public var isEmpty: Bool { inFlight.isEmpty && rates.isEmpty }

        fileprivate func inFlight(of flow: String) -> Int? { inFlight[flow] ?? inFlight[Self.others] }
        fileprivate func rate(of flow: String) -> Double? { rates[flow] ?? rates[Self.others] }
    }

    private struct State {
        var members = 1
        var inFlight: [String: Int] = [:]
        var buckets: [String: TokenBucket] = [:]
    }

    private let limits: Limits
    private let state = Lock(State())
    /// The number of token buckets above which full ones are discarded.
    private static let mostBuckets = 1000

    /// Creates a limiter for a single member.
    public init(_ limits: Limits) { self.limits = limits }

    /// Sets the number of members that share the limits, at least 1.
    public func setMembers(_ count: Int) { state.withLock { $0.members = max(1, count) } }

    /// True if there is a limit for a flow.
    func isLimited(_ flow: String?) -> Bool {
        guard let flow else { return false }
        return limits.inFlight(of: flow) != nil || limits.rate(of: flow) != nil
    }

    /// Begins a job of a flow, if it is within its limits.
    /// - Parameter isRated: true if the job counts towards the rate.
    func begin(_ flow: String?, isRated: Bool = true, at now: ContinuousClock.Instant = .now) -> Bool {
        guard let flow, isLimited(flow) else { return true }
        return state.withLock { state in
            let count = state.inFlight[flow, default: 0]
            // Each member may process at least one job.
            if let most = limits.inFlight(of: flow), count >= max(1, most / state.members) { return false }
            if isRated, let rate = limits.rate(of: flow).map({ $0 / Double(state.members) }) {
                if state.buckets.count > Self.mostBuckets {
                    state.buckets = state.buckets.filter { !$0.value.isFull(at: now) }
                }
                let full = TokenBucket(rate: rate, burst: rate * limits.burst, now: now)
                var bucket = state.buckets[flow] ?? full
                if bucket.rate != rate { bucket = full }
                let wait = bucket.take(at: now)
                state.buckets[flow] = bucket
                if wait != nil { return false }
            }
            if limits.inFlight(of: flow) != nil { state.inFlight[flow] = count + 1 }
            return true
        }
    }

    /// Counts a job in flight again, even beyond the limit of its flow.
    func resume(_ flow: String) {
        guard limits.inFlight(of: flow) != nil else { return }
        state.withLock { $0.inFlight[flow, default: 0] += 1 }
    }

    /// Ends jobs of a flow.
    func end(_ count: Int, of flow: String?) {
        guard let flow, limits.inFlight(of: flow) != nil else { return }
        state.withLock { state in
            let left = state.inFlight[flow, default: 0] - count
            state.inFlight[flow] = left > 0 ? left : nil
        }
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
