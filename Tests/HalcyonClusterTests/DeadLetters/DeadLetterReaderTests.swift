import HalcyonCoding
import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// Reading dead letters from a mock broker.
@Suite(.limitedParallelism) struct DeadLetterReaderTests {
    private let topics = Topics()

    private func withReader(_ body: (DeadLetterReader, Producer, MockCluster) async throws -> Void) async throws {
        let broker = try MockCluster()
        try await broker.createTopics([topics.dead], partitions: 2)
        let properties = broker.consumerProperties
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers])
        let result: Result<Void, any Error>
        do {
            let reader = DeadLetterReader(topics, properties: properties, reader: JobDecoder())
            result = .success(try await body(reader, producer, broker))
        } catch {
            result = .failure(error)
        }
        await producer.close()
        await broker.stop()
        try result.get()
    }

    private func sendLetters(_ count: Int, _ producer: Producer) async throws {
        for number in 0..<count {
            try await producer.send(
                ProducerRecord(topic: topics.dead, partition: Int32(number % 2), value: Array("\(number)".utf8)))
        }
    }

    /// Updates the index. On a busy machine, the broker may respond too late.
    private func update(_ index: inout DeadLetterIndex, _ reader: DeadLetterReader) async throws -> Bool {
        let end = ContinuousClock.now + .patience
        while true {
            do {
                return try await reader.update(&index)
            } catch let error as KafkaError where error.isRetriable && ContinuousClock.now < end {
                // Requests the ends again.
                try await Task.sleep(for: .milliseconds(10))
            }
        }
    }

    @Test func updateReadsOnlyNewRecords() async throws {
        try await withReader { reader, producer, _ in
            try await sendLetters(10, producer)
            var index = DeadLetterIndex()
            #expect(try await update(&index, reader) && index.count == 10)
            try await sendLetters(4, producer)
            try await producer.send(Replay.mark(try #require(DeadLetterID("1-0")), topics))
            // The update resumes at the offset that the previous one reached.
            #expect(try await update(&index, reader))
            #expect(index.count == 13 && index.next == [0: 7, 1: 8])
            #expect(try await update(&index, reader) && index.count == 13)
        }
    }

    @Test func rereadsARecreatedTopicFromTheBeginning() async throws {
        try await withReader { reader, producer, _ in
            try await sendLetters(4, producer)
            var index = DeadLetterIndex()
            for offset in 0..<100 {
                index.note(ConsumedRecord(topic: topics.dead, partition: 0, offset: Int64(offset), value: [1]))
            }
            #expect(try await update(&index, reader))
            #expect(index.count == 4 && index.next == [0: 2, 1: 2])
        }
    }

    @Test func forEachResumesAfterItsDeadline() async throws {
        try await withReader { reader, producer, _ in
            try await sendLetters(10, producer)
            var index = DeadLetterIndex()
            #expect(try await update(&index, reader))
            var (found, next, rounds): ([DeadLetterID], [Int32: Int64]?, Int) = ([], nil, 0)
            while found.isEmpty {
                rounds += 1
                let deadline = ContinuousClock.now + .milliseconds(rounds * 200)
                // A lookup that takes too long throws, and a slow broker sends nothing before the deadline.
                next = try? await reader.forEach(DeadLetterQuery(), in: index, until: deadline) { letter in
                    found.append(letter.letter.id)
                    try await Task.sleep(until: deadline, clock: .continuous)
                    return true
                }
            }
            #expect(found.count == 1)
            let end = try await reader.forEach(DeadLetterQuery(), in: index, from: try #require(next)) { letter in
                found.append(letter.letter.id)
                return true
            }
            #expect(end == nil && found.count == 10 && Set(found).count == 10)
        }
    }

    @Test func updateKeepsItsProgressAfterATimeout() async throws {
        try await withReader { reader, producer, broker in
            try await sendLetters(10, producer)
            var index = DeadLetterIndex()
            await broker.setRoundTripTime(.milliseconds(500))
            var rounds = 0
            // Each update resumes where the previous one stopped. A lookup that takes too long throws.
            while true {
                rounds += 1
                if (try? await reader.update(&index, until: .now + .milliseconds(rounds * 200))) == true { break }
            }
            #expect(index.count == 10 && rounds > 1)
        }
    }
}
