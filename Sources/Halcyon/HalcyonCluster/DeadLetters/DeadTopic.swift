import HalcyonWire
import Kafka

/// Reads the dead letters there are.
///
/// The topic is read twice: once for a book of what is open, and then where letters may be that are wanted. One letter at a time is in memory.
public struct DeadTopic: Sendable {
    /// Told now and then how many messages were read, and of how many.
    public typealias Progress = @Sendable (_ read: Int, _ total: Int) -> Void

    let topics: Topics
    private let reader: JobReader
    private let properties: [String: String]
    private let events: ClientEvents
    private let progress: Progress

    /// - Parameters:
    ///   - properties: librdkafka's, for reading.
    ///   - reader: reads the jobs that letters are.
    public init(
        _ topics: Topics, properties: [String: String], reader: JobReader, events: ClientEvents = ClientEvents(),
        progress: @escaping Progress = { _, _ in }
    ) {
        self.topics = topics
        self.reader = reader
        // Whatever the operator set: a letter that its transaction took back is none.
        self.properties = properties.merging(["isolation.level": "read_committed"]) { $1 }
        self.events = events
        self.progress = progress
    }

    /// Reads what has come since the book was written. It keeps what it has come to when the time is over.
    /// - Parameter deadline: nil to go on for as long as it takes.
    /// - Returns: whether it has all that was there when this was called.
    /// - Throws: `KafkaError`, also when there is no such topic; `CancellationError`.
    public func update(_ book: inout DeadBook, until deadline: ContinuousClock.Instant? = nil) async throws -> Bool {
        var pass = try await TopicPass.open(
            topics.dead, from: book.next, properties: properties, events: events, until: deadline)
        if book.next.contains(where: { $1 > pass.ends[$0] ?? 0 }) {
            // It is another topic of the same name.
            await pass.close()
            book = DeadBook()
            pass = try await TopicPass.open(
                topics.dead, from: [:], properties: properties, events: events, until: deadline)
        }
        for (partition, start) in pass.starts where book.next[partition] == nil { book.move(partition, to: start) }
        book.forget(before: pass.oldest)
        let isWhole = try await pass.run(progress) { record in
            book.note(record)
            return true
        }
        // Behind the last message may be a transaction's marker.
        if isWhole { for (partition, end) in pass.ends { book.move(partition, to: end) } }
        return isWhole
    }

    /// Calls `body` with each letter that is wanted, the oldest of a partition first, until it says that it is enough or the time is over.
    /// - Parameters:
    ///   - positions: where to begin, by partition; else at the beginning.
    ///   - book: up to date. Letters that are not in it are none.
    /// - Returns: where to go on; nil when no such letter is left.
    /// - Throws: `KafkaError`, `CancellationError`, and what `body` throws.
    public func forEach(
        _ query: LetterQuery, in book: DeadBook, from positions: [Int32: Int64] = [:],
        until deadline: ContinuousClock.Instant? = nil, _ body: (LetterView) async throws -> Bool
    ) async throws -> [Int32: Int64]? {
        let ranges = query.ranges(in: book, from: positions)
        if ranges.isEmpty { return nil }
        // Of other partitions nothing is read.
        var positions = book.next.merging(ranges.mapValues(\.lowerBound)) { $1 }
        let pass = try await TopicPass.open(
            topics.dead, from: positions, to: ranges.mapValues(\.upperBound), properties: properties, events: events,
            until: deadline)
        let isWhole = try await pass.run(progress) { record in
            positions[record.partition] = record.offset + 1
            guard let letter = DeadLetter(record) else { return true }
            let view = LetterView(letter, isReplayed: book.isReplayed(letter.id), topics, reader)
            return query.matches(view) ? try await body(view) : true
        }
        return isWhole || query.ranges(in: book, from: positions).isEmpty ? nil : positions
    }
}

/// One reading of a part of a topic, from offset to offset.
struct TopicPass {
    private let reader: TopicReader
    private let deadline: ContinuousClock.Instant?
    /// Where it begins, by partition.
    let starts: [Int32: Int64]
    /// One past the last message that is wanted, by partition: those that were there when it was opened, or what was asked for.
    let ends: [Int32: Int64]
    /// Of the oldest message of each partition.
    var oldest: [Int32: Int64] { reader.oldestOffsets }

    /// - Parameters:
    ///   - starts: by partition; others are read from their beginning.
    ///   - ends: nil for all that is there; partitions that it leaves out are not wanted.
    /// - Throws: `KafkaError`.
    static func open(
        _ topic: String, from starts: [Int32: Int64], to ends: [Int32: Int64]? = nil, properties: [String: String],
        events: ClientEvents, until deadline: ContinuousClock.Instant?
    ) async throws(KafkaError) -> TopicPass {
        let limit = Duration.seconds(10)
        let reader = try await TopicReader.open(
            topic, from: starts.isEmpty ? .beginning : .offsets(starts), properties: properties, tellsEnds: true,
            within: deadline.map { max(.milliseconds(1), min(limit, $0 - .now)) } ?? limit, events: events)
        return TopicPass(
            reader: reader, deadline: deadline, starts: reader.startOffsets, ends: ends ?? reader.endOffsets)
    }

    func close() async { await reader.close() }

    /// Calls `body` with each message, until it says that it is enough or the time is over. Once; it is closed then.
    /// - Returns: whether all was read.
    func run(
        _ progress: DeadTopic.Progress, _ body: (ConsumedRecord) async throws -> Bool
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
        _ progress: DeadTopic.Progress, _ body: (ConsumedRecord) async throws -> Bool
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
                // What is gone is no reason to begin anew, as librdkafka does.
                guard let end = left[record.partition], record.offset >= starts[record.partition] ?? 0 else { continue }
                if record.offset < end {
                    count += 1
                    if count % 1000 == 0 { progress(count, total) }
                    guard try await body(record) else { return false }
                    if let deadline, .now >= deadline { return false }
                }
                if record.offset + 1 >= end { left[record.partition] = nil }
            }
            // What takes the last offsets may be no message.
            for partition in batch.ends.keys { left[partition] = nil }
        }
        return true
    }
}
