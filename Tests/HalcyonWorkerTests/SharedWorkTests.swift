import Concurrency
import Foundation
import Kafka
import Subprocess
import TestSupport
import Testing

@testable import HalcyonCluster

/// Workers as separate processes, with Apache Kafka, a stock redis-server and nginx.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable), .serialized)
struct SharedWorkTests {
    static let jobs = 2_000
    static let sources = 500

    /// The servers that the workers of a test use.
    struct SharedWorkFixture: Sendable {
        let kafka: ApacheKafka
        let topics: Topics
        let redis: RedisServer
        let origin: Nginx
        let folder: TemporaryFolder
        let events: EventLog
        let producer: Producer

        static func with(_ body: (SharedWorkFixture) async throws -> Void) async throws {
            let folder = TemporaryFolder("photographs")
            let photograph = try SampleImages.bytes("chelsea.jpg")
            for number in 0..<SharedWorkTests.sources { _ = folder.write(photograph, to: "\(number).jpg") }
            let kafka = try #require(SharedApacheKafka.current)
            let topics = Topics(prefix: SharedApacheKafka.uniquePrefix())
            let properties = ["bootstrap.servers": kafka.bootstrapServers]
            try await kafka.create(topics.all, partitions: 8)
            let fixture = SharedWorkFixture(
                kafka: kafka, topics: topics, redis: try await RedisServer.start(),
                origin: try await Nginx.start(serving: folder.path, "expires 1h;"), folder: folder,
                events: try await EventLog(topics, properties), producer: try Producer(properties: properties))
            do {
                try await body(fixture)
            } catch {
                await fixture.remove()
                throw error
            }
            await fixture.remove()
        }

        /// Starts worker processes and waits until each has partitions of the normal lane.
        /// - Parameter session: Their session timeout. The default survives pauses of a busy machine.
        func startWorkers(_ count: Int, session: Duration = .seconds(60)) async throws -> [ChildProcess] {
            var workers: [ChildProcess] = []
            let assigned = Lock<Set<Int>>([])
            for number in 0..<count {
                workers.append(
                    try await WorkerProcess.start(
                        brokers: kafka.bootstrapServers, redisPort: redis.port, prefix: topics.prefix,
                        [
                            "HALCYON_LOG_LEVEL": "info",
                            "HALCYON_KAFKA_PROPERTY_session.timeout.ms": "\(Int(session / .milliseconds(1)))",
                        ],
                        errors: .lines { line in
                            if line.contains("partitions assigned") && line.contains("jobs[") {
                                assigned.withLock { _ = $0.insert(number) }
                            }
                        }))
            }
            try await until("each worker has partitions") { assigned.withLock { $0.count == count } }
            return workers
        }

        /// Submits jobs for four sizes of each source, in all partitions.
        func submit(_ numbers: Range<Int>) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in numbers {
                    let source = "\(origin.url)/\(number % SharedWorkTests.sources).jpg"
                    let width = 60 + 20 * (number / SharedWorkTests.sources)
                    let job = #"{"id":"\#(number)","source":"\#(source)","width":\#(width),"height":60}"#
                    group.addTask {
                        try await producer.send(
                            ProducerRecord(
                                topic: topics.jobs(.normal), partition: Int32(number % 8), value: Array(job.utf8)))
                    }
                }
                try await group.waitForAll()
            }
        }

        /// Returns the completed offsets of the partitions of the normal lane, as the group has committed them.
        func completedRanges() async throws -> [Int32: CompletedRanges] {
            let admin = try Admin(properties: ["bootstrap.servers": kafka.bootstrapServers])
            let offsets = try await admin.committed(
                by: WorkerProcess.group(prefix: topics.prefix),
                in: (0..<8).map { TopicPartition(topics.jobs(.normal), $0) }, within: .patience)
            await admin.close()
            return Dictionary(
                uniqueKeysWithValues: offsets.map { partition, offset in
                    let map = CompletedRanges(commitMetadata: offset.metadata, at: offset.offset)
                    return (partition.partition, map ?? CompletedRanges(from: offset.offset))
                })
        }

        private func remove() async {
            await events.close()
            await producer.close()
            await origin.stop()
            await redis.stop()
            await folder.remove()
        }
    }

    @Test func threeWorkersShareJobsAndEndEachOnce() async throws {
        try await SharedWorkFixture.with { fixture in
            let workers = try await fixture.startWorkers(3)
            try await fixture.submit(0..<Self.jobs)
            try await until("all jobs end") { fixture.events.terminal.count >= Self.jobs }
            // Time for duplicates to arrive.
            try await Task.sleep(for: .seconds(1))
            let terminal = fixture.events.terminal
            #expect(Set(terminal.map(\.jobID)).count == Self.jobs)
            #expect(terminal.count == Self.jobs)
            #expect(terminal.allSatisfy { $0.kind == "ready" })
            for worker in workers { #expect(await worker.stop(grace: .seconds(60)) == .code(0)) }
        }
    }

    @Test func losesNoJobWhenAWorkerIsKilled() async throws {
        try await SharedWorkFixture.with { fixture in
            // Duplicates come only from the kill, and not from workers that join.
            let workers = try await fixture.startWorkers(3, session: .seconds(6))
            try await fixture.submit(0..<Self.jobs / 2)
            try await until("a quarter of the jobs has ended") {
                fixture.events.terminal.count >= Self.jobs / 4
            }
            let completed = try await fixture.completedRanges()
            workers[0].send(SIGKILL)
            try await fixture.submit(Self.jobs / 2..<Self.jobs)
            try await until("all jobs end") {
                Set(fixture.events.terminal.map(\.jobID)).count >= Self.jobs
            }
            let terminal = fixture.events.terminal
            #expect(terminal.allSatisfy { $0.kind == "ready" })
            // Redelivered jobs may end twice, but under the same event id.
            for (id, events) in Dictionary(grouping: terminal, by: \.jobID) where events.count > 1 {
                let names = Set(events.compactMap { $0.json["id"] as? String })
                #expect(names.count == 1, "job \(id)")
                // A job that was committed as completed is not processed again.
                let record = names.first?.split(separator: "-").dropLast().suffix(2).compactMap { Int64($0) } ?? []
                #expect(record.count == 2 && completed[Int32(record[0])]?.contains(record[1]) != true, "job \(id)")
            }
            for worker in workers.dropFirst() { await worker.stop(grace: .seconds(60)) }
        }
    }
}
