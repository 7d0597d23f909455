import Glibc
import HalcyonCluster
import HalcyonWorker
import Kafka
import Processes
import Redis
import Telemetry
import TestSupport
import Testing
import Threads

@Suite(.takesTurns) struct OutageTests {
    /// Keeps what was logged.
    final class Notes: LogSink {
        private let lines = Lock<[String]>([])
        func take(_ record: LogRecord) { lines.withLock { $0.append(record.message) } }
        func count(_ message: String) -> Int { lines.withLock { $0.count { $0 == message } } }
    }

    @Test func redisAwayForAWhileLosesNoJobAndIsSaidOnce() async throws {
        let photograph = try Photograph.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        let notes = Notes()
        try await Stage.with { stage in
            let worker = try await Worker.start(stage.options, log: Log(level: .info, sink: notes), metrics: Metrics())
            await worker.ready()
            stage.redis.process.send(SIGKILL)
            await stage.redis.process.exit()
            for number in 0..<20 {
                try await stage.submit(
                    #"{"id":"\#(number)","source":"\#(origin.url("/\(number)"))","width":64,"height":64}"#)
            }
            // Nothing may claim to be stored while there is nowhere to store it.
            try await Task.sleep(for: .seconds(1))
            let again = try await RedisServer.start(port: stage.redis.port)
            try await until("the test's own client is connected again") {
                try await stage.client.send("PING").string == "PONG"
            }
            for number in 0..<20 {
                let event = try await stage.events.terminal(of: "\(number)")
                #expect(event.kind == "ready")
                let isStored = try await stage.client.send("EXISTS", .string(event.key)).integer == 1
                #expect(isStored || event.variant["data"] != nil)
            }
            try await stage.submit(#"{"id":"after","source":"\#(origin.url("/0"))","width":32,"height":32}"#)
            #expect(try await stage.events.terminal(of: "after").data["expiresAt"] != nil)
            #expect(notes.count("Redis is away; waiting for it") == 1)
            #expect(notes.count("connected to Redis") == 2)
            #expect(await worker.drain(grace: .seconds(5)) == 0)
            await again.stop()
        }
        try await origin.stop()
    }

    @Test func withoutRedisResultsComeInTheirEvents() async throws {
        let photograph = try Photograph.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        try await Stage.with { stage in
            stage.redis.process.send(SIGKILL)
            await stage.redis.process.exit()
            try await stage.withWorker({ $0.results.patience = .milliseconds(200) }) {
                try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await stage.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["data"] != nil && event.data["expiresAt"] == nil)
            }
        }
        try await origin.stop()
    }

    @Test func aFullRedisFailsNoJob() async throws {
        let photograph = try Photograph.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        try await Stage.with(redisArguments: ["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]) { stage in
            try await stage.withWorker {
                try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await stage.events.terminal(of: "a")
                #expect(event.kind == "ready" && event.variant["data"] != nil)
            }
        }
        try await origin.stop()
    }

    @Test func whatAFullRedisRefusesAndNoEventCanCarryFails() async throws {
        let photograph = try Photograph.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        try await Stage.with(redisArguments: ["--maxmemory", "100kb", "--maxmemory-policy", "noeviction"]) { stage in
            try await stage.withWorker({ $0.results.inlineLimit = 100 }) {
                try await stage.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let event = try await stage.events.terminal(of: "a")
                #expect(event.code == "internal" && event.message.contains("could not be stored"))
            }
        }
        try await origin.stop()
    }

    @Test(.enabled(if: ApacheKafka.isAvailable)) func kafkaAwayAtTheStartIsWaitedForAndSaidOnce() async throws {
        let photograph = try Photograph.bytes()
        let origin = RawOrigin { _ in RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"]) }
        let notes = Notes()
        let kafka = try await ApacheKafka()
        try await Stage.with { stage in
            var options = stage.options
            options.kafka = KafkaProperties(
                brokers: kafka.bootstrapServers, properties: ["session.timeout.ms": "6000"])
            let worker = try await Worker.start(options, log: Log(level: .info, sink: notes), metrics: Metrics())
            try await until("the worker says that Kafka is away", within: .seconds(30)) {
                notes.count("Kafka is away; waiting for it") == 1
            }
            try await kafka.start()
            let properties = ["bootstrap.servers": kafka.bootstrapServers]
            let admin = try Admin(properties: properties)
            _ = try await admin.create(stage.topics.all.map { NewTopic($0, partitions: 2, replication: 1) })
            await admin.close()
            let events = try await EventLog(stage.topics, properties)
            let producer = try Producer(properties: properties)
            let job = #"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#
            try await producer.send(ProducerRecord(topic: stage.topics.jobs(.normal), value: Array(job.utf8)))
            #expect(try await events.terminal(of: "a", within: .seconds(60)).kind == "ready")
            #expect(notes.count("Kafka is away; waiting for it") == 1)
            #expect(notes.count("Kafka is back") == 1)
            await producer.close()
            await events.close()
            #expect(await worker.drain(grace: .seconds(5)) == 0)
        }
        await kafka.remove()
        try await origin.stop()
    }
}
