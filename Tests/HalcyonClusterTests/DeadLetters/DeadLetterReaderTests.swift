import HalcyonCoding
import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// The topic of dead letters, on a broker.
@Suite struct DeadLetterReaderTests {
    private let topics = Topics()

    private func with(_ body: (DeadLetterReader, Producer, MockCluster) async throws -> Void) async throws {
        let broker = try MockCluster()
        try broker.createTopic(topics.dead, partitions: 2)
        let properties = ["bootstrap.servers": broker.bootstrapServers, "fetch.wait.max.ms": "10"]
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers])
        let result: Result<Void, any Error>
        do {
            let topic = DeadLetterReader(topics, properties: properties, reader: JobDecoder())
            result = .success(try await body(topic, producer, broker))
        } catch {
            result = .failure(error)
        }
        await producer.close()
        await broker.stop()
        try result.get()
    }

    private func put(_ count: Int, _ producer: Producer) async throws {
        for number in 0..<count {
            try await producer.send(
                ProducerRecord(topic: topics.dead, partition: Int32(number % 2), value: Array("\(number)".utf8)))
        }
    }

    @Test func whatWasReadOnceIsNotReadAgain() async throws {
        try await with { topic, producer, _ in
            try await put(10, producer)
            var index = DeadLetterIndex()
            #expect(try await topic.update(&index) && index.count == 10)
            try await put(4, producer)
            try await producer.send(Replay.mark(try #require(DeadLetterID("1-0")), topics))
            // As if somebody had read it in the meantime: what it had come to is where it goes on.
            #expect(try await topic.update(&index))
            #expect(index.count == 13 && index.next == [0: 7, 1: 8])
            #expect(try await topic.update(&index) && index.count == 13)
        }
    }

    @Test func aTopicOfTheSameNameIsReadFromItsBeginning() async throws {
        try await with { topic, producer, _ in
            try await put(4, producer)
            var index = DeadLetterIndex()
            for offset in 0..<100 {
                index.note(ConsumedRecord(topic: topics.dead, partition: 0, offset: Int64(offset), value: [1]))
            }
            #expect(try await topic.update(&index))
            #expect(index.count == 4 && index.next == [0: 2, 1: 2])
        }
    }

    @Test func whenTheTimeIsOverItGoesOnWhereItWas() async throws {
        try await with { topic, producer, _ in
            try await put(10, producer)
            var index = DeadLetterIndex()
            #expect(try await topic.update(&index))
            let deadline = ContinuousClock.now + .seconds(3)
            var found: [DeadLetterID] = []
            let next = try await topic.forEach(DeadLetterQuery(), in: index, until: deadline) { letter in
                found.append(letter.letter.id)
                try await Task.sleep(until: deadline, clock: .continuous)
                return true
            }
            #expect(found.count == 1)
            let end = try await topic.forEach(DeadLetterQuery(), in: index, from: try #require(next)) { letter in
                found.append(letter.letter.id)
                return true
            }
            #expect(end == nil && found.count == 10 && Set(found).count == 10)
        }
    }

    @Test func aBookThatIsNotReadInTimeKeepsWhatItHas() async throws {
        try await with { topic, producer, broker in
            try await put(10, producer)
            var index = DeadLetterIndex()
            broker.setRoundTripTime(.milliseconds(500))
            var rounds = 0
            // Each goes on where the one before has come to; a look-up that takes too long is an error.
            while true {
                rounds += 1
                if (try? await topic.update(&index, until: .now + .milliseconds(rounds * 200))) == true { break }
            }
            #expect(index.count == 10 && rounds > 1)
        }
    }
}
