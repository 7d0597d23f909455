import Concurrency
import Formats
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Counts the ends of jobs of batches again from the topic of events, after Redis has lost their counts.
///
/// Ends that are counted already count no more, so a recount is correct while other workers count new ends. One scan of
/// the topic serves all batches that wait for it.
actor BatchRecounter {
    private let counter: BatchCounter
    private let batches: BatchLog
    private let properties: [String: String]
    private let log: Log
    private var waiting: Set<String> = []
    /// The batches that are being counted again.
    private var counting: Set<String> = []
    private var running: Task<Void, Never>?

    /// The number of ends that are counted at once.
    private static let step = 256

    /// - Parameter properties: the librdkafka properties for reading.
    init(_ counter: BatchCounter, _ batches: BatchLog, properties: [String: String], log: Log) {
        self.counter = counter
        self.batches = batches
        self.properties = properties.merging(["isolation.level": "read_committed"]) { $1 }
        self.log = log
    }

    /// Requests a recount, unless one is running, and returns immediately. A message tells the coordinator when it has
    /// ended.
    ///
    /// A recount that is running notices itself if Redis loses its counts. Another one behind it would only mark the
    /// counts as incomplete again before the coordinator has seen the message.
    func request(_ batch: String) {
        if counting.contains(batch) { return }
        waiting.insert(batch)
        if running == nil { running = Task { await run() } }
    }

    /// Stops the recount in progress.
    func close() async {
        running?.cancel()
        await running?.value
    }

    private func run() async {
        while !waiting.isEmpty, !Task.isCancelled {
            let requested = waiting.compactMap { batches.entry(of: $0)?.batch }.filter { $0.completed == nil }
            waiting = []
            if requested.isEmpty { continue }
            counting = Set(requested.map(\.id))
            defer { counting = [] }
            do {
                try await recount(requested)
            } catch {
                if Task.isCancelled { break }
                log.warning("counting batches again failed; retrying", ["error": "\(error)"])
                waiting.formUnion(requested.map(\.id))
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
        running = nil
    }

    private func recount(_ requested: [Batch]) async throws {
        let token = "\(UInt64.random(in: 0 ... .max))"
        log.notice("counting batches again from the topic of events", ["batches": requested.count])
        for batch in requested { try await counter.store.beginRecount(of: batch.id, token: token) }
        let ids = Set(requested.map(\.id))
        let oldest = requested.map(\.created).min() ?? 0
        let reader = try await TopicReader.open(
            counter.topics.events, from: .timestamp(max(0, oldest - BatchStore.clockTolerance)), properties: properties,
            tellsEnds: true)
        do {
            try await count(ids, in: reader)
        } catch {
            await reader.close()
            throw error
        }
        await reader.close()
        try Task.checkCancellation()
        for batch in requested {
            try await counter.store.note(batch)
            switch try await counter.store.open(batch, after: token) {
            case .opened:
                try await counter.tellCoordinator(of: batch.id)
                counter.metrics.recounted.add()
            case .lost: waiting.insert(batch.id)
            // Two workers that repeat recounts because of each other would never end.
            case .superseded: break
            }
        }
    }

    /// Counts the ends in all events up to the end of the topic as of the opening of the reader.
    private func count(_ ids: Set<String>, in reader: TopicReader) async throws {
        var positions = reader.startOffsets
        var ends: [String: [BatchEnd]] = [:]
        while reader.endOffsets.contains(where: { positions[$0.key, default: 0] < $0.value }) {
            guard let batch = try await reader.nextBatch() else { throw CancellationError() }
            for record in batch.records {
                positions[record.partition] = record.offset + 1
                guard let end = BatchEnd(record), ids.contains(end.membership.batch) else { continue }
                ends[end.membership.batch, default: []].append(end)
            }
            for (partition, end) in batch.ends { positions[partition] = max(end, positions[partition, default: 0]) }
            for (id, list) in ends where list.count >= Self.step {
                _ = try await counter.store.count(list, of: id, interval: .zero)
                ends[id] = nil
            }
        }
        for (id, list) in ends { _ = try await counter.store.count(list, of: id, interval: .zero) }
    }
}

/// The end of a recount.
enum RecountOutcome {
    /// The batch has all counts.
    case opened
    /// Redis has lost the counts since the recount began.
    case lost
    /// Another worker has begun a later recount.
    case superseded
}

/// Finds batches whose counts are incomplete although no message tells so, because a worker was killed before it
/// counted a job, or Redis has lost the last second of its writes in a failover. They are counted again.
struct BatchAudit: Sendable {
    let counter: BatchCounter
    let batches: BatchLog
    let recounter: BatchRecounter
    /// The time without progress after which a batch is counted again. It doubles with each repetition.
    let recountAfter: Duration

    /// The longest time without progress after which a batch is counted again.
    private static let longest = Duration.seconds(3600)

    /// The last change of a batch, as seen by this worker.
    private struct Check {
        var ended: Int
        var since = ContinuousClock.now
        var patience: Duration

        var isOver: Bool { since.duration(to: .now) >= patience }
    }

    /// Checks all batches periodically until the task is cancelled.
    /// - Parameter isOwner: a function that returns true if this worker handles the messages about batches. No other
    ///   one checks them.
    func run(while isOwner: @escaping @Sendable () -> Bool) async {
        var checks: [String: Check] = [:]
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: recountAfter / 4)
            checks = isOwner() ? await check(after: checks) : [:]
        }
    }

    private func check(after last: [String: Check]) async -> [String: Check] {
        var checks: [String: Check] = [:]
        for entry in batches.incomplete() where !Task.isCancelled {
            let id = entry.batch.id
            let (batch, isOpened): (Batch?, Bool)
            do throws(RedisError) {
                (batch, isOpened, _) = try await counter.store.state(of: id)
            } catch {
                // While Redis is unavailable, nothing can be counted either.
                continue
            }
            let ended = batch?.counts.ended ?? 0
            var check = last[id] ?? Check(ended: ended, patience: recountAfter)
            if check.ended != ended { check = Check(ended: ended, patience: recountAfter) }
            if check.isOver {
                if isOpened, batch?.isDone == true {
                    // The message may be lost, or still on its way. The next check repeats it.
                    try? await counter.tellCoordinator(of: id)
                } else {
                    await recounter.request(id)
                }
                check = Check(ended: ended, patience: min(check.patience * 2, Self.longest))
            }
            checks[id] = check
        }
        return checks
    }
}
