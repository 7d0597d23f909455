import Concurrency
import HalcyonCluster
import HalcyonCoding
import Kafka

/// A load for a cluster: jobs up to a concurrency limit. Each job is awaited before the next one replaces it.
final class BenchLoad: Sendable {
    /// The limits of a load.
    struct Limits: Sendable {
        /// The total number of jobs, or nil for no limit.
        var jobs: Int?
        /// The time for sending jobs, or nil for no limit.
        var time: Duration?
        /// Jobs per second, or nil to send a job whenever one has ended.
        var rate: Double?
        /// The maximum number of jobs in flight.
        var concurrency: Int
        /// The time to wait for outstanding jobs after ``time``.
        var drainTimeout: Duration
    }

    private struct Waiting {
        let start: ContinuousClock.Instant
        let end: AsyncStream<Void>.Continuation
    }

    private struct State {
        var next = 0
        var waiting: [[UInt8]: Waiting] = [:]
        var figures = BenchFigures()
    }

    private let drafts: [JobBuilder]
    private let reader: JobDecoder
    private let topics: Topics
    private let limits: Limits
    private let run = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
    private let state = Lock(State())

    /// - Parameter drafts: validated jobs. They are sent in rotation with new ids.
    init(_ drafts: [JobBuilder], _ limits: Limits, reader: JobDecoder, topics: Topics) {
        self.drafts = drafts
        self.limits = limits
        self.reader = reader
        self.topics = topics
    }

    /// The figures so far.
    var figures: BenchFigures { state.withLock { $0.figures } }

    /// Sends jobs and reads their events until all have ended, the time is over or the task is cancelled.
    /// - Parameter events: the events from before the first job on.
    /// - Throws: ``KafkaError`` for an error that is not retriable.
    func run(_ producer: Producer, _ events: TopicReader, from start: ContinuousClock.Instant) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.listen(to: events) }
            group.addTask {
                await self.send(by: producer, from: start)
                throw Over()
            }
            if let time = limits.time {
                group.addTask { [limits] in
                    try await Task.sleep(until: start + time + limits.drainTimeout, clock: .continuous)
                    throw Over()
                }
            }
            defer { group.cancelAll() }
            do { while try await group.next() != nil {} } catch is Over {} catch is CancellationError {}
        }
    }

    private struct Over: Error {}

    private func send(by producer: Producer, from start: ContinuousClock.Instant) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<limits.concurrency {
                group.addTask {
                    while let index = self.take(since: start) {
                        if let rate = self.limits.rate {
                            await Task.sleepUnlessCancelled(until: start + .seconds(Double(index) / rate))
                        }
                        if Task.isCancelled { return }
                        await self.perform(index, by: producer)
                    }
                }
            }
        }
    }

    /// Returns the index of the next job, or nil if no more jobs are to be sent.
    private func take(since start: ContinuousClock.Instant) -> Int? {
        state.withLock { state in
            if let jobs = limits.jobs, state.next >= jobs { return nil }
            let due = limits.rate.map { Duration.seconds(Double(state.next) / $0) } ?? .zero
            if let time = limits.time, max(due, start.duration(to: .now)) >= time { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Sends a job and waits until it has ended.
    private func perform(_ index: Int, by producer: Producer) async {
        var draft = drafts[index % drafts.count]
        let id = "bench-\(run)-\(index)"
        draft.set("id", id)
        let (ended, end) = AsyncStream<Void>.makeStream()
        let key = Array(id.utf8)
        do {
            let prepared = try ValidatedJob(draft, fallbackID: id, by: reader)
            state.withLock { $0.waiting[key] = Waiting(start: .now, end: end) }
            _ = try await producer.send(topics.record(of: prepared))
            state.withLock { $0.figures.submit() }
        } catch {
            return state.withLock { state in
                state.waiting[key] = nil
                if !Task.isCancelled { state.figures.missSubmission() }
            }
        }
        // The loop also ends if the task is cancelled.
        for await _ in ended {}
    }

    private func listen(to events: TopicReader) async throws(KafkaError) {
        var records = events.makeAsyncIterator()
        while let record = try await records.next() {
            let now = ContinuousClock.now
            guard let key = record.key, let value = record.value,
                state.withLock({ $0.waiting[key] != nil }), let ending = BenchEnding(json: value)
            else { continue }
            let waiting = state.withLock { state in
                let waiting = state.waiting.removeValue(forKey: key)
                if let waiting { state.figures.end(ending, from: waiting.start, at: now) }
                return waiting
            }
            waiting?.end.finish()
        }
    }
}
