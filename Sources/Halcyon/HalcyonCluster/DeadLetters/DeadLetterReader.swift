import HalcyonCoding
import Kafka

/// Reads dead letters.
///
/// The topic is read twice: first to index the dead letters that were not replayed, then where matching dead letters
/// may be. One dead letter at a time is in memory.
public struct DeadLetterReader: Sendable {
    /// A callback for progress, called periodically with the number of messages read and the total.
    public typealias Progress = @Sendable (_ read: Int, _ total: Int) -> Void

    let topics: Topics
    private let reader: JobDecoder
    private let properties: [String: String]
    private let events: ClientCallbacks
    private let progress: Progress

    /// Creates a reader.
    /// - Parameters:
    ///   - properties: the librdkafka properties for reading.
    ///   - reader: the decoder of the jobs in dead letters.
    public init(
        _ topics: Topics, properties: [String: String], reader: JobDecoder, events: ClientCallbacks = ClientCallbacks(),
        progress: @escaping Progress = { _, _ in }
    ) {
        self.topics = topics
        self.reader = reader
        // Overrides the operator's setting, because dead letters of aborted transactions do not count.
        self.properties = properties.merging(["isolation.level": "read_committed"]) { $1 }
        self.events = events
        self.progress = progress
    }

    /// Adds the messages that arrived since the last update to the index. If the deadline passes, the index contains
    /// what was read until then.
    /// - Parameter deadline: the time at which to stop; nil for none.
    /// - Returns: true if everything that existed at the time of the call was read.
    /// - Throws: `KafkaError`, also if the topic does not exist; `CancellationError`.
    public func update(_ index: inout DeadLetterIndex, until deadline: ContinuousClock.Instant? = nil) async throws
        -> Bool
    {
        var pass = try await TopicScan.open(
            topics.dead, from: index.next, properties: properties, events: events, until: deadline)
        if index.next.contains(where: { $1 > pass.ends[$0] ?? 0 }) {
            // The topic was deleted and created again.
            await pass.close()
            index = DeadLetterIndex()
            pass = try await TopicScan.open(
                topics.dead, from: [:], properties: properties, events: events, until: deadline)
        }
        for (partition, start) in pass.starts where index.next[partition] == nil { index.move(partition, to: start) }
        index.forget(before: pass.oldest)
        let isWhole = try await pass.run(progress) { record in
            index.note(record)
            return true
        }
        // The last offset may belong to a transaction marker.
        if isWhole { for (partition, end) in pass.ends { index.move(partition, to: end) } }
        return isWhole
    }

    /// Calls `body` with each matching dead letter, in the order of each partition, until `body` returns false or the
    /// deadline passes.
    /// - Parameters:
    ///   - index: an up-to-date index. Dead letters that are not in it are ignored.
    ///   - positions: the offsets to start from, by partition; by default the beginning.
    /// - Returns: the offsets to continue from; nil if no matching dead letter is left.
    /// - Throws: `KafkaError`, `CancellationError`, and errors of `body`.
    public func forEach(
        _ query: DeadLetterQuery, in index: DeadLetterIndex, from positions: [Int32: Int64] = [:],
        until deadline: ContinuousClock.Instant? = nil, _ body: (DeadLetterSummary) async throws -> Bool
    ) async throws -> [Int32: Int64]? {
        let ranges = query.ranges(in: index, from: positions)
        if ranges.isEmpty { return nil }
        // Other partitions are not read.
        var positions = index.next.merging(ranges.mapValues(\.lowerBound)) { $1 }
        let pass = try await TopicScan.open(
            topics.dead, from: positions, to: ranges.mapValues(\.upperBound), properties: properties, events: events,
            until: deadline)
        let isWhole = try await pass.run(progress) { record in
            positions[record.partition] = record.offset + 1
            guard let letter = DeadLetter(record) else { return true }
            let view = DeadLetterSummary(letter, isReplayed: index.isReplayed(letter.id), topics, reader)
            return query.matches(view) ? try await body(view) : true
        }
        return isWhole || query.ranges(in: index, from: positions).isEmpty ? nil : positions
    }
}

/// A scan of a range of offsets of a topic.
struct TopicScan {
    private let reader: TopicReader
    private let deadline: ContinuousClock.Instant?
    /// The first offset to read, by partition.
    let starts: [Int32: Int64]
    /// One past the last offset to read, by partition: the requested end, or the end of the partition when the scan was
    /// opened.
    let ends: [Int32: Int64]
    /// The offset of the oldest message of each partition.
    var oldest: [Int32: Int64] { reader.oldestOffsets }

    /// Opens a scan.
    /// - Parameters:
    ///   - starts: the first offsets by partition; other partitions are read from the beginning.
    ///   - ends: the end offsets, where omitted partitions are not read; nil for everything that exists.
    /// - Throws: `KafkaError`.
    static func open(
        _ topic: String, from starts: [Int32: Int64], to ends: [Int32: Int64]? = nil, properties: [String: String],
        events: ClientCallbacks, until deadline: ContinuousClock.Instant?
    ) async throws(KafkaError) -> TopicScan {
        let limit = Duration.seconds(10)
        let reader = try await TopicReader.open(
            topic, from: starts.isEmpty ? .beginning : .offsets(starts), properties: properties, tellsEnds: true,
            within: deadline.map { max(.milliseconds(1), min(limit, $0 - .now)) } ?? limit, events: events)
        return TopicScan(
            reader: reader, deadline: deadline, starts: reader.startOffsets, ends: ends ?? reader.endOffsets)
    }

    func close() async { await reader.close() }

    /// Calls `body` with each message, until `body` returns false or the deadline passes, and closes the scan. It can
    /// be called once.
    /// - Returns: true if the whole range was read.
    func run(
        _ progress: DeadLetterReader.Progress, _ body: (ConsumedRecord) async throws -> Bool
    ) async throws -> Bool {
        let timer = deadline.map { deadline in
            Task { [reader] in
                try await Task.sleep(until: deadline, clock: .continuous)
                await reader.close()
            }
        }
        let result: Result<Bool, any Error>
        do { result = .success(try await read(progress, body)) } catch { result = .failure(error) }
        timer?.cancel()
        await reader.close()
        return try result.get()
    }

    private func read(
        _ progress: DeadLetterReader.Progress, _ body: (ConsumedRecord) async throws -> Bool
    ) async throws -> Bool {
        var left = ends.filter { $0.value > starts[$0.key] ?? 0 }
        let total = left.reduce(0) { $0 + Int($1.value - (starts[$1.key] ?? 0)) }
        var count = 0
        while !left.isEmpty {
            guard let batch = try await reader.nextBatch() else {
                try Task.checkCancellation()
                return false
            }
            for record in batch.records {
                // librdkafka starts at the beginning if the offset is gone; those records are skipped.
                guard let end = left[record.partition], record.offset >= starts[record.partition] ?? 0 else { continue }
                if record.offset < end {
                    count += 1
                    if count % 1000 == 0 { progress(count, total) }
                    guard try await body(record) else { return false }
                    if let deadline, .now >= deadline { return false }
                }
                if record.offset + 1 >= end { left[record.partition] = nil }
            }
            // The last offsets may belong to transaction markers.
            for partition in batch.ends.keys { left[partition] = nil }
        }
        return true
    }
}
