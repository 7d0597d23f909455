import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Telemetry

/// The messages about batches, which all workers follow: which batches exist, how many jobs they have, and which are
/// cancelled or completed. The owner must call ``close()`` at the end.
public final class BatchLog: Sendable {
    /// The messages about one batch.
    struct Entry: Sendable {
        /// The offset of the first message that implies the existence of the batch.
        var first: Int64
        var batch: Batch
        /// The time of the last message, in milliseconds since 1970.
        var updated: Int64
        /// The message that is next in the list of jobs; nil without one.
        var list: (offset: Int64, after: String?)?
    }

    private let follower: TopicFollower
    private let entries: Lock<BatchEntries>
    private let cancelHandler: Lock<@Sendable (String) -> Void>

    /// Starts reading and returns immediately.
    /// - Parameters:
    ///   - topics: the cluster's topics.
    ///   - properties: the librdkafka properties for reading.
    ///   - retention: the age in seconds of the oldest messages to read, and the time after its last message for which
    ///     a batch is known.
    ///   - log: the log of outages.
    public init(_ topics: Topics, properties: [String: String], retention: Double, log: Log) {
        let entries = Lock(BatchEntries(retention: Int64(retention * 1000)))
        let cancelHandler = Lock<@Sendable (String) -> Void>({ _ in })
        self.entries = entries
        self.cancelHandler = cancelHandler
        follower = TopicFollower(
            topics.batches, properties: properties.merging(["isolation.level": "read_committed"]) { $1 },
            memory: retention, log: log
        ) { record, _ in
            // Messages of producers in other partitions are forwarded to this one.
            guard record.partition == Topics.batchPartition else { return }
            // The coordinator logs invalid messages.
            guard let message = try? BatchMessage(json: record.value ?? []) else { return }
            entries.withLock { $0.add(message, record, now: Timestamp.now.milliseconds) }
            guard message.body == .cancel else { return }
            let handler = cancelHandler.withLock { $0 }
            handler(message.batch)
        }
    }

    /// Sets the handler of batches that are cancelled from now on. It is called once or more for each, when
    /// ``isCancelled(_:)`` already returns true.
    public func onCancel(_ handler: @escaping @Sendable (String) -> Void) {
        cancelHandler.withLock { $0 = handler }
    }

    /// Returns when all messages that existed at the start have been handled, or when the topic does not exist.
    public func caughtUp() async { await follower.caughtUp() }

    /// Waits until all messages below this offset have been handled.
    func waitUntilHandled(before offset: Int64) async {
        await follower.waitUntilHandled(Topics.batchPartition, before: offset)
    }

    /// Returns true if the batch was cancelled.
    public func isCancelled(_ batch: String) -> Bool { entry(of: batch)?.batch.cancelled != nil }

    func entry(of batch: String) -> Entry? { entries.withLock { $0.entry(of: batch, now: Timestamp.now.milliseconds) } }

    /// The batches that are not completed.
    func incomplete() -> [Entry] { entries.withLock { $0.incomplete(now: Timestamp.now.milliseconds) } }

    /// Stops reading.
    public func close() async { await follower.close() }
}

/// The messages about all batches that are known. A batch is forgotten when there has been no message about it for the
/// retention. Its id can then be used again. A pure value; all times are in milliseconds since 1970.
struct BatchEntries: Sendable {
    private var entries: [String: BatchLog.Entry] = [:]
    private let retention: Int64
    /// The number of entries at which old ones are removed.
    private var limit = Self.smallestLimit

    private static let smallestLimit = 1024

    init(retention: Int64) { self.retention = retention }

    /// The number of entries, including old ones that are still to be removed.
    var count: Int { entries.count }

    func entry(of batch: String, now: Int64) -> BatchLog.Entry? {
        entries[batch].flatMap { isKnown($0, now: now) ? $0 : nil }
    }

    /// The batches that are not completed.
    func incomplete(now: Int64) -> [BatchLog.Entry] {
        entries.values.filter { $0.batch.completed == nil && isKnown($0, now: now) }
    }

    private func isKnown(_ entry: BatchLog.Entry, now: Int64) -> Bool { now - entry.updated <= retention }

    mutating func add(_ message: BatchMessage, _ record: ConsumedRecord, now: Int64) {
        let time = record.timestamp
        var entry =
            entry(of: message.batch, now: time)
            ?? BatchLog.Entry(first: record.offset, batch: Batch(id: message.batch, created: time), updated: time)
        entry.updated = time
        switch message.body {
        case .open(let created, let tenant, let owner, let webhook):
            entry.batch.created = min(entry.batch.created, created)
            if entry.first == record.offset { entry.batch.owner = owner }
            // A later message may be that of a key that has not begun the batch.
            guard owner == nil || owner == entry.batch.owner else { break }
            entry.batch.tenant = entry.batch.tenant ?? tenant
            entry.batch.webhook = entry.batch.webhook ?? webhook
        case .list(let listing):
            // A message that was written twice, because its writer crashed, leads to one page.
            guard entry.list.map({ isAfter(listing.after, $0.after) }) ?? (listing.after == nil) else { break }
            entry.list = (record.offset, listing.after)
            switch listing.contents {
            case .prefix(let url): entry.batch.prefix = url
            case .preset(let name, _, _): entry.batch.preset = name
            }
            entry.batch.submitted = listing.submitted
        case .close(let total, let error):
            if entry.batch.total == nil { (entry.batch.total, entry.batch.error) = (total, error) }
        case .cancel: entry.batch.cancelled = entry.batch.cancelled ?? time
        case .completed(let counts):
            entry.batch.counts = counts
            entry.batch.completed = entry.batch.completed ?? time
        case .counted: break
        }
        entries[message.batch] = entry
        if entries.count >= limit {
            entries = entries.filter { isKnown($0.value, now: now) }
            limit = max(Self.smallestLimit, 2 * entries.count)
        }
    }
}

/// True if a position follows another one in a list; nil precedes all others.
private func isAfter(_ position: String?, _ other: String?) -> Bool {
    guard let position else { return false }
    return other.map { $0.utf8.lexicographicallyPrecedes(position.utf8) } ?? true
}
