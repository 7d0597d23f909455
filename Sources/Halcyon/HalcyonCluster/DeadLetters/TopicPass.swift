import Kafka

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
