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
    private let entries: Lock<[String: Entry]>
    private let retention: Int64

    /// Starts reading and returns immediately.
    /// - Parameters:
    ///   - topics: the cluster's topics.
    ///   - properties: the librdkafka properties for reading.
    ///   - retention: the age in seconds of the oldest messages to read.
    ///   - log: the log of outages.
    ///   - onCancel: the callback for batches that are cancelled, called once or more for each.
    public init(
        _ topics: Topics, properties: [String: String], retention: Double, log: Log,
        onCancel: @escaping @Sendable (String) -> Void
    ) {
        let entries = Lock<[String: Entry]>([:])
        self.entries = entries
        self.retention = Int64(retention * 1000)
        follower = TopicFollower(
            topics.batches, properties: properties.merging(["isolation.level": "read_committed"]) { $1 },
            memory: retention, log: log
        ) { record, _ in
            // Messages of producers in other partitions are forwarded to this one.
            guard record.partition == Topics.batchPartition else { return }
            // The coordinator logs invalid messages.
            guard let message = try? BatchMessage(json: record.value ?? []) else { return }
            entries.withLock { $0.add(message, record) }
            if message.body == .cancel { onCancel(message.batch) }
        }
    }

    /// Returns when all messages that existed at the start have been handled, or when the topic does not exist.
    public func caughtUp() async { await follower.caughtUp() }

    /// Waits until all messages below this offset have been handled.
    func waitUntilHandled(before offset: Int64) async {
        await follower.waitUntilHandled(Topics.batchPartition, before: offset)
    }

    /// Returns true if the batch was cancelled.
    public func isCancelled(_ batch: String) -> Bool { entries.withLock { $0[batch]?.batch.cancelled != nil } }

    func entry(of batch: String) -> Entry? { entries.withLock { $0[batch] } }

    /// The batches that are not completed.
    func incomplete() -> [Entry] {
        let oldest = Timestamp.now.milliseconds - retention
        return entries.withLock { entries in
            entries = entries.filter { $0.value.updated >= oldest }
            return entries.values.filter { $0.batch.completed == nil }
        }
    }

    /// Stops reading.
    public func close() async { await follower.close() }
}

extension [String: BatchLog.Entry] {
    fileprivate mutating func add(_ message: BatchMessage, _ record: ConsumedRecord) {
        let time = record.timestamp
        var entry =
            self[message.batch]
            ?? BatchLog.Entry(first: record.offset, batch: Batch(id: message.batch, created: time), updated: time)
        entry.updated = time
        switch message.body {
        case .open(let created, let tenant, let owner, let webhook):
            entry.batch.created = Swift.min(entry.batch.created, created)
            entry.batch.tenant = entry.batch.tenant ?? tenant
            entry.batch.owner = entry.batch.owner ?? owner
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
        self[message.batch] = entry
    }
}

/// True if a position follows another one in a list; nil precedes all others.
private func isAfter(_ position: String?, _ other: String?) -> Bool {
    guard let position else { return false }
    return other.map { $0.utf8.lexicographicallyPrecedes(position.utf8) } ?? true
}
