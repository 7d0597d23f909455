import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// Reading the control topic on librdkafka's mock broker.
@Suite(.limitedParallelism) struct ControlReaderTests {
    /// A mock broker with the control topic, and the messages that readers received.
    private struct ControlReaderFixture {
        let broker: MockCluster
        let topics = Topics()
        let received = Lock<[ControlReader.ReceivedControlMessage]>([])
        let metrics = Metrics()

        init(hasTopic: Bool = true) async throws {
            broker = try MockCluster()
            if hasTopic { try await broker.createTopics([topics.control], partitions: 1) }
        }

        var properties: [String: String] { broker.consumerProperties }

        func reader(memory: Double = 3600) -> ControlReader {
            let options = ControlReader.Options(
                topics: topics, properties: properties, reader: JobDecoder(), memory: memory)
            return ControlReader(options, log: .silent, metrics: metrics) { [received] message in
                received.withLock { $0.append(message) }
            }
        }

        func publish(_ texts: String..., at moment: Int64? = nil) async throws {
            let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
            for text in texts {
                try await producer.send(
                    ProducerRecord(topic: topics.control, value: Array(text.utf8), timestamp: moment))
            }
            await producer.close()
        }

        var messages: [ControlMessage] { received.withLock { $0.map(\.message) } }
    }

    @Test func receivesAllMessagesAndSkipsInvalidOnes() async throws {
        let fixture = try await ControlReaderFixture()
        try await fixture.publish(#"{"cancel":"before"}"#)
        let reader = fixture.reader()
        await reader.caughtUp()
        #expect(fixture.messages == [.cancel(.job("before"))])
        try await fixture.publish("no JSON", #"{"drain":true}"#, #"{"cancel":""}"#, #"{"cancel":"after"}"#)
        try await until("the last message arrives") { fixture.messages.count == 2 }
        #expect(fixture.messages == [.cancel(.job("before")), .cancel(.job("after"))])
        #expect(fixture.received.withLock { $0.map(\.isOld) } == [true, false])
        #expect(fixture.received.withLock { $0.allSatisfy { abs($0.moment - Timestamp.now.milliseconds) < 600_000 } })
        let text = String(decoding: fixture.metrics.prometheusText, as: UTF8.self)
        for line in ["kind=\"cancel\"} 2", "kind=\"unknown\"} 1", "kind=\"wrong\"} 2", "kind=\"purge\"} 0"] {
            #expect(text.contains("halcyon_control_messages_total{\(line)"), "\(text)")
        }
        await reader.close()
        await fixture.broker.stop()
    }

    @Test func skipsOldMessages() async throws {
        let fixture = try await ControlReaderFixture()
        try await fixture.publish(#"{"cancel":"old"}"#, at: Timestamp.now.milliseconds - 7_200_000)
        try await fixture.publish(#"{"cancel":"new"}"#, at: Timestamp.now.milliseconds - 1_800_000)
        let reader = fixture.reader()
        await reader.caughtUp()
        #expect(fixture.messages == [.cancel(.job("new"))])
        await reader.close()
        let second = fixture.reader(memory: 86_400)
        await second.caughtUp()
        #expect(fixture.messages == [.cancel(.job("new")), .cancel(.job("old")), .cancel(.job("new"))])
        await second.close()
        await fixture.broker.stop()
    }

    @Test func resumesAfterABrokerOutage() async throws {
        let fixture = try await ControlReaderFixture()
        let reader = fixture.reader()
        try await fixture.publish(#"{"cancel":"1"}"#)
        try await until("the message arrives") { fixture.messages.count == 1 }
        await fixture.broker.setDown(true)
        try await Task.sleep(for: .milliseconds(300))
        await fixture.broker.setDown(false)
        try await fixture.publish(#"{"cancel":"2"}"#)
        try await until("the message arrives") { fixture.messages.count == 2 }
        #expect(fixture.messages == [.cancel(.job("1")), .cancel(.job("2"))])
        await reader.close()
        await fixture.broker.stop()
    }

    /// Needs Apache Kafka, because the mock broker creates requested topics.
    @Test(.sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) func waitsForAMissingTopicWithoutBlocking()
        async throws
    {
        let kafka = try #require(SharedApacheKafka.current)
        let (topics, received) = (Topics(prefix: SharedApacheKafka.uniquePrefix()), Lock<[ControlMessage]>([]))
        let properties = ["bootstrap.servers": kafka.bootstrapServers]
        let options = ControlReader.Options(topics: topics, properties: properties, reader: JobDecoder(), memory: 60)
        let reader = ControlReader(options, log: .silent, metrics: Metrics()) { message in
            received.withLock { $0.append(message.message) }
        }
        await reader.caughtUp()
        try await kafka.create([topics.control], partitions: 1)
        let producer = try Producer(properties: properties)
        try await ControlPublisher(producer, topics: topics).publish(.purge(Purge(.tag("a"))))
        await producer.close()
        try await until("the message arrives") { received.withLock { $0 == [.purge(Purge(.tag("a")))] } }
        await reader.close()
    }

    @Test func closesWithoutABroker() async throws {
        let fixture = try await ControlReaderFixture()
        let properties = fixture.properties
        await fixture.broker.stop()
        let options = ControlReader.Options(
            topics: fixture.topics, properties: properties, reader: JobDecoder(), memory: 0)
        let reader = ControlReader(options, log: .silent, metrics: Metrics()) { _ in }
        try await Task.sleep(for: .milliseconds(50))
        await reader.close()
        // Waiters are resumed.
        await reader.caughtUp()
    }
}
