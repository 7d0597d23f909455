import Foundation
import HalcyonCluster
import Kafka
import Processes
import TestSupport
import Testing
import Threads

/// Workers as processes of their own, on Apache Kafka, a stock redis-server and nginx.
@Suite(.takesTurns, .enabled(if: ApacheKafka.isAvailable), .serialized) struct SharedWorkTests {
    static let jobs = 2_000
    static let sources = 500

    /// What the workers of a test stand on.
    struct Ground: Sendable {
        let kafka: ApacheKafka
        let redis: RedisServer
        let origin: Nginx
        let folder: TemporaryFolder
        let events: EventLog
        let producer: Producer

        static func with(_ body: (Ground) async throws -> Void) async throws {
            let folder = TemporaryFolder("photographs")
            let photograph = try Photograph.bytes("chelsea.jpg")
            for number in 0..<SharedWorkTests.sources { _ = folder.write(photograph, to: "\(number).jpg") }
            let kafka = try await ApacheKafka()
            try await kafka.start()
            let topics = Topics()
            let properties = ["bootstrap.servers": kafka.bootstrapServers]
            let admin = try Admin(properties: properties)
            _ = try await admin.create(topics.all.map { NewTopic($0, partitions: 8, replication: 1) })
            await admin.close()
            let ground = Ground(
                kafka: kafka, redis: try await RedisServer.start(),
                origin: try await Nginx.start(serving: folder.path, "expires 1h;"), folder: folder,
                events: try await EventLog(topics, properties), producer: try Producer(properties: properties))
            do {
                try await body(ground)
            } catch {
                await ground.remove()
                throw error
            }
            await ground.remove()
        }

        func worker() async throws -> ChildProcess {
            var options = ChildProcess.Options()
            options.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HALCYON_") }.merging([
                "HALCYON_KAFKA_BROKERS": kafka.bootstrapServers,
                "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)", "HALCYON_SOURCES_ALLOW": "127.0.0.0/8",
                "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "6000", "HALCYON_LOG_LEVEL": "warning",
            ]) { $1 }
            options.errors = .inherited
            return try await ChildProcess.start(HalcyonExecutable.path, ["worker"], options: options)
        }

        /// Four sizes of each source.
        func submit(_ numbers: Range<Int>) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in numbers {
                    let source = "\(origin.url)/\(number % SharedWorkTests.sources).jpg"
                    let width = 60 + 20 * (number / SharedWorkTests.sources)
                    let job = #"{"id":"\#(number)","source":"\#(source)","width":\#(width),"height":60}"#
                    group.addTask {
                        try await producer.send(ProducerRecord(topic: "halcyon.jobs", value: Array(job.utf8)))
                    }
                }
                try await group.waitForAll()
            }
        }

        private func remove() async {
            await events.close()
            await producer.close()
            await origin.stop()
            await redis.stop()
            await kafka.remove()
            await folder.remove()
        }
    }

    @Test func threeWorkersShareTheWorkAndEachJobEndsOnce() async throws {
        try await Ground.with { ground in
            var workers: [ChildProcess] = []
            for _ in 0..<3 { workers.append(try await ground.worker()) }
            try await ground.submit(0..<Self.jobs)
            try await until("all jobs end", within: .seconds(120)) { ground.events.terminal.count >= Self.jobs }
            // A moment for what would come twice.
            try await Task.sleep(for: .seconds(1))
            let terminal = ground.events.terminal
            #expect(Set(terminal.map(\.jobID)).count == Self.jobs)
            #expect(terminal.count == Self.jobs)
            #expect(terminal.allSatisfy { $0.kind == "ready" })
            for worker in workers { #expect(await worker.stop(grace: .seconds(30)) == .code(0)) }
            // Each had a part: their events name the partition they came from, and no worker had all of those.
            #expect(
                Set(terminal.compactMap { ($0.json["id"] as? String)?.split(separator: "-").dropLast(2).last }).count
                    == 8)
        }
    }

    @Test func killingAWorkerInTheMiddleLosesNoJob() async throws {
        try await Ground.with { ground in
            var workers: [ChildProcess] = []
            for _ in 0..<3 { workers.append(try await ground.worker()) }
            try await ground.submit(0..<Self.jobs / 2)
            try await until("a quarter of the jobs has ended", within: .seconds(60)) {
                ground.events.terminal.count >= Self.jobs / 4
            }
            workers[0].send(SIGKILL)
            try await ground.submit(Self.jobs / 2..<Self.jobs)
            try await until("all jobs end", within: .seconds(120)) {
                Set(ground.events.terminal.map(\.jobID)).count >= Self.jobs
            }
            let terminal = ground.events.terminal
            #expect(terminal.allSatisfy { $0.kind == "ready" })
            // Redelivered jobs may end twice, but under the same event id.
            for (id, events) in Dictionary(grouping: terminal, by: \.jobID) where events.count > 1 {
                #expect(Set(events.compactMap { $0.json["id"] as? String }).count == 1, "job \(id)")
            }
            for worker in workers.dropFirst() { await worker.stop(grace: .seconds(30)) }
        }
    }
}
