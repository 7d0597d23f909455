import HalcyonModel
import Kafka
import TestSupport
import Testing

@testable import HalcyonCluster

/// Reading the jobs of a batch that failed, from a mock broker.
@Suite(.limitedParallelism) struct FailedJobReaderTests {
    private let topics = Topics()
    private var lane: String { topics.jobs(.normal) }

    /// Runs `body` with a lane of two partitions. Each has the jobs of its offsets from 0 to 4.
    private func withReader(_ body: (FailedJobReader) async throws -> Void) async throws {
        let broker = try MockCluster()
        try await broker.createTopics([lane], partitions: 2)
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
        let result: Result<Void, any Error>
        do {
            for index in 0..<10 {
                let job = #"{"source":"initials:A","width":8,"batch":{"id":"b","index":\#(index)}}"#
                try await producer.send(
                    ProducerRecord(topic: lane, partition: Int32(index % 2), value: Array(job.utf8)))
            }
            result = .success(try await body(FailedJobReader(topics, properties: broker.consumerProperties)))
        } catch {
            result = .failure(error)
        }
        await producer.close()
        await broker.stop()
        try result.get()
    }

    private func failure(_ record: String) -> BatchFailure {
        BatchFailure(job: "job of \(record)", index: nil, code: "timeout", message: "", record: record)
    }

    /// Reads jobs, again if the broker responds too late on a busy machine.
    private func jobs(of failures: [BatchFailure], _ reader: FailedJobReader) async throws -> [FailedJob] {
        try await firstValue("the jobs are read") { try await reader.jobs(of: failures) }
    }

    @Test func readsJobsInSlicesOfABoundedSize() async throws {
        try await withReader { reader in
            let records = ["1-4", "0-2", "1-0", "0-0", "1-1"].map { "\(lane)-\($0)" }
            let failures = records.map { failure($0) }
            let found = try await firstValue("all slices are read") { () async throws -> [FailedJob]? in
                let slices = reader.slices(of: failures, bytes: 1)
                var found: [FailedJob] = []
                do {
                    while let slice = try await slices.next() {
                        #expect(slice.count == 1)
                        found += slice
                    }
                } catch {
                    await slices.close()
                    throw error
                }
                await slices.close()
                return found
            }
            #expect(found.map(\.index).sorted() == [0, 1, 2, 3, 4])
            #expect(found.allSatisfy { $0.failure == failures[$0.index] })

            let jobs = try await self.jobs(of: failures, reader)
            #expect(jobs.map(\.failure) == failures)
            #expect(jobs.allSatisfy { $0.job["batch"] == nil && $0.job["source"] != nil })
            let ids = jobs.map { String(decoding: $0.job["id"] ?? [], as: UTF8.self) }
            #expect(ids == failures.map { "\"\($0.job)\"" })
        }
    }

    /// The topic was created again, with fewer partitions and records.
    @Test func omitsJobsThatTheTopicDoesNotHave() async throws {
        try await withReader { reader in
            let records = ["\(lane)-7-3", "\(lane)-0-1", "\(lane)-1-99", "other-0-0", "unknown"]
            let jobs = try await self.jobs(of: records.map { failure($0) }, reader)
            #expect(jobs.map(\.failure.record) == ["\(lane)-0-1"])
            let none = try await self.jobs(of: [failure("\(lane)-7-3")], reader)
            #expect(none.isEmpty)
        }
    }
}
