import HalcyonWire
import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// The topic of dead letters, on a broker.
@Suite struct DeadTopicTests {
    private let topics = Topics()

    private func with(_ body: (DeadTopic, Producer, MockCluster) async throws -> Void) async throws {
        let broker = try MockCluster()
        try broker.createTopic(topics.dead, partitions: 2)
        let properties = ["bootstrap.servers": broker.bootstrapServers, "fetch.wait.max.ms": "10"]
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers])
        let result: Result<Void, any Error>
        do {
            let topic = DeadTopic(topics, properties: properties, reader: JobReader())
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
            var book = DeadBook()
            #expect(try await topic.update(&book) && book.count == 10)
            try await put(4, producer)
            try await producer.send(Replay.mark(try #require(LetterID("1-0")), topics))
            // As if somebody had read it in the meantime: what it had come to is where it goes on.
            #expect(try await topic.update(&book))
            #expect(book.count == 13 && book.next == [0: 7, 1: 8])
            #expect(try await topic.update(&book) && book.count == 13)
        }
    }

    @Test func aTopicOfTheSameNameIsReadFromItsBeginning() async throws {
        try await with { topic, producer, _ in
            try await put(4, producer)
            var book = DeadBook()
            for offset in 0..<100 {
                book.note(ConsumedRecord(topic: topics.dead, partition: 0, offset: Int64(offset), value: [1]))
            }
            #expect(try await topic.update(&book))
            #expect(book.count == 4 && book.next == [0: 2, 1: 2])
        }
    }

    @Test func whenTheTimeIsOverItGoesOnWhereItWas() async throws {
        try await with { topic, producer, _ in
            try await put(10, producer)
            var book = DeadBook()
            #expect(try await topic.update(&book))
            let deadline = ContinuousClock.now + .seconds(3)
            var found: [LetterID] = []
            let next = try await topic.forEach(LetterQuery(), in: book, until: deadline) { letter in
                found.append(letter.letter.id)
                try await Task.sleep(until: deadline, clock: .continuous)
                return true
            }
            #expect(found.count == 1)
            let end = try await topic.forEach(LetterQuery(), in: book, from: try #require(next)) { letter in
                found.append(letter.letter.id)
                return true
            }
            #expect(end == nil && found.count == 10 && Set(found).count == 10)
        }
    }

    @Test func aBookThatIsNotReadInTimeKeepsWhatItHas() async throws {
        try await with { topic, producer, broker in
            try await put(10, producer)
            var book = DeadBook()
            broker.setRoundTripTime(.milliseconds(500))
            var rounds = 0
            // Each goes on where the one before has come to; a look-up that takes too long is an error.
            while true {
                rounds += 1
                if (try? await topic.update(&book, until: .now + .milliseconds(rounds * 200))) == true { break }
            }
            #expect(book.count == 10 && rounds > 1)
        }
    }
}
