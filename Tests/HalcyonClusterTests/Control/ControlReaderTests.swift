import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// On librdkafka's mock broker.
@Suite(.limitedParallelism) struct ControlReaderTests {
    /// A broker with the topic, and what a reader on it was told.
    private struct Scene {
        let broker: MockCluster
        let topics = Topics()
        let told = Lock<[ControlReader.ReceivedControlMessage]>([])
        let metrics = Metrics()

        init(hasTopic: Bool = true) throws {
            broker = try MockCluster()
            if hasTopic { try broker.createTopic(topics.control, partitions: 1) }
        }

        var properties: [String: String] {
            ["bootstrap.servers": broker.bootstrapServers, "fetch.wait.max.ms": "10"]
        }

        func reader(memory: Double = 3600) -> ControlReader {
            let options = ControlReader.Options(
                topics: topics, properties: properties, reader: JobDecoder(), memory: memory)
            return ControlReader(options, log: .silent, metrics: metrics) { [told] message in
                told.withLock { $0.append(message) }
            }
        }

        func write(_ texts: String..., at moment: Int64? = nil) async throws {
            let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
            for text in texts {
                try await producer.send(
                    ProducerRecord(topic: topics.control, value: Array(text.utf8), timestamp: moment))
            }
            await producer.close()
        }

        var messages: [ControlMessage] { told.withLock { $0.map(\.message) } }
    }

    @Test func hearsAllAndPassesOverWhatSaysNothing() async throws {
        let scene = try Scene()
        try await scene.write(#"{"cancel":"before"}"#)
        let reader = scene.reader()
        await reader.caughtUp()
        #expect(scene.messages == [.cancel("before")])
        try await scene.write("no JSON", #"{"drain":true}"#, #"{"cancel":""}"#, #"{"cancel":"after"}"#)
        try await until("the last message comes") { scene.messages.count == 2 }
        #expect(scene.messages == [.cancel("before"), .cancel("after")])
        #expect(scene.told.withLock { $0.map(\.isOld) } == [true, false])
        #expect(scene.told.withLock { $0.allSatisfy { abs($0.moment - Timestamp.now.milliseconds) < 600_000 } })
        let text = String(decoding: scene.metrics.prometheusText, as: UTF8.self)
        for line in ["kind=\"cancel\"} 2", "kind=\"unknown\"} 1", "kind=\"wrong\"} 2", "kind=\"purge\"} 0"] {
            #expect(text.contains("halcyon_control_messages_total{\(line)"), "\(text)")
        }
        await reader.close()
        await scene.broker.stop()
    }

    @Test func whatIsTooOldIsPassedOver() async throws {
        let scene = try Scene()
        try await scene.write(#"{"cancel":"old"}"#, at: Timestamp.now.milliseconds - 7_200_000)
        try await scene.write(#"{"cancel":"new"}"#, at: Timestamp.now.milliseconds - 1_800_000)
        let reader = scene.reader()
        await reader.caughtUp()
        #expect(scene.messages == [.cancel("new")])
        await reader.close()
        let patient = scene.reader(memory: 86_400)
        await patient.caughtUp()
        #expect(scene.messages == [.cancel("new"), .cancel("old"), .cancel("new")])
        await patient.close()
        await scene.broker.stop()
    }

    @Test func waitsForBrokersAndGoesOnWhereItWas() async throws {
        let scene = try Scene()
        let reader = scene.reader()
        try await scene.write(#"{"cancel":"1"}"#)
        try await until("it comes") { scene.messages.count == 1 }
        scene.broker.setDown(true)
        try await Task.sleep(for: .milliseconds(300))
        scene.broker.setDown(false)
        try await scene.write(#"{"cancel":"2"}"#)
        try await until("it comes") { scene.messages.count == 2 }
        #expect(scene.messages == [.cancel("1"), .cancel("2")])
        await reader.close()
        await scene.broker.stop()
    }

    /// The mock broker makes a topic that somebody asks for.
    @Test(.enabled(if: ApacheKafka.isAvailable)) func aTopicThatIsNotThereIsWaitedForAndHoldsNothingUp() async throws {
        let kafka = try await ApacheKafka()
        try await kafka.start()
        let (topics, told) = (Topics(), Lock<[ControlMessage]>([]))
        let properties = ["bootstrap.servers": kafka.bootstrapServers]
        let options = ControlReader.Options(topics: topics, properties: properties, reader: JobDecoder(), memory: 60)
        let reader = ControlReader(options, log: .silent, metrics: Metrics()) { message in
            told.withLock { $0.append(message.message) }
        }
        await reader.caughtUp()
        try await kafka.create([topics.control], partitions: 1)
        let producer = try Producer(properties: properties)
        try await ControlPublisher(producer, topics: topics).publish(.purge(Purge(.tag("a"))))
        await producer.close()
        try await until("it comes") { told.withLock { $0 == [.purge(Purge(.tag("a")))] } }
        await reader.close()
        await kafka.remove()
    }

    @Test func closesWhileNoBrokerIsThere() async throws {
        let scene = try Scene()
        let properties = scene.properties
        await scene.broker.stop()
        let options = ControlReader.Options(
            topics: scene.topics, properties: properties, reader: JobDecoder(), memory: 0)
        let reader = ControlReader(options, log: .silent, metrics: Metrics()) { _ in }
        try await Task.sleep(for: .milliseconds(50))
        await reader.close()
        // Who waits is let go.
        await reader.caughtUp()
    }
}
