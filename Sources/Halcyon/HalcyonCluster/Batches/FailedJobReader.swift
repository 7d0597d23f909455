import HalcyonCoding
import HalcyonModel
import JSON
import Kafka

/// Reads the original messages of jobs of a batch that failed, so that they can be submitted again.
public struct FailedJobReader: Sendable {
    private let topics: Topics
    private let properties: [String: String]

    /// Creates a reader.
    /// - Parameters:
    ///   - topics: the cluster's topics.
    ///   - properties: the librdkafka properties for reading.
    public init(_ topics: Topics, properties: [String: String]) {
        self.topics = topics
        self.properties = properties
    }

    /// Returns the messages of failed jobs in order, without their batch. Those that Kafka has deleted are left out.
    /// - Throws: ``KafkaError``, `CancellationError`.
    public func jobs(of failures: [BatchFailure]) async throws -> [(failure: BatchFailure, job: JobBuilder)] {
        var wanted: [String: Set<RecordPosition>] = [:]
        for position in failures.compactMap({ RecordPosition($0.record) }) where topics.lanes.contains(position.topic) {
            wanted[position.topic, default: []].insert(position)
        }
        var messages: [String: [UInt8]] = [:]
        for (topic, positions) in wanted { try await read(positions, of: topic, into: &messages) }
        return failures.compactMap { failure in
            // The worker has decoded the message before.
            guard let message = messages[failure.record],
                var job = try? JobBuilder(json: message, maximumSize: message.count)
            else { return nil }
            job["batch"] = nil
            if job["id"] == nil { job.set("id", failure.job) }
            return (failure, job)
        }
    }

    private func read(
        _ positions: Set<RecordPosition>, of topic: String, into messages: inout [String: [UInt8]]
    ) async throws {
        let end = try await TopicReader.open(topic, from: .end, properties: properties)
        var starts = end.endOffsets
        await end.close()
        var left = Dictionary(grouping: positions, by: \.partition).mapValues { $0.map(\.offset).max() ?? 0 }
        for position in positions { starts[position.partition] = min(starts[position.partition] ?? 0, position.offset) }
        let reader = try await TopicReader.open(topic, from: .offsets(starts), properties: properties, tellsEnds: true)
        do {
            while !left.isEmpty {
                guard let batch = try await reader.nextBatch() else { throw CancellationError() }
                for record in batch.records {
                    let position = RecordPosition(
                        topic: topic, partition: record.partition, offset: record.offset)
                    if positions.contains(position) { messages[position.description] = record.value }
                    if let last = left[record.partition], record.offset >= last { left[record.partition] = nil }
                }
                for partition in batch.ends.keys { left[partition] = nil }
            }
        } catch {
            await reader.close()
            throw error
        }
        await reader.close()
    }
}

/// The position of a record: its topic, partition and offset, separated by hyphens.
private struct RecordPosition: Hashable, CustomStringConvertible {
    let topic: String
    let partition: Int32
    let offset: Int64

    init(topic: String, partition: Int32, offset: Int64) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
    }

    init?(_ text: String) {
        let parts = text.split(separator: "-")
        guard parts.count >= 3, let offset = Int64(parts[parts.count - 1]),
            let partition = Int32(parts[parts.count - 2])
        else { return nil }
        self.init(topic: parts.dropLast(2).joined(separator: "-"), partition: partition, offset: offset)
    }

    var description: String { "\(topic)-\(partition)-\(offset)" }
}
