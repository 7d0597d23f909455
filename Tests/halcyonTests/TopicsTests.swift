import TestSupport
import Testing

/// `halcyon topics` on Apache Kafka.
@Suite(.limitedParallelism, .sharedApacheKafka, .enabled(if: ApacheKafka.isAvailable)) struct TopicsTests {
    @Test func createsTopicsOnceAndReportsExistingOnes() async throws {
        let prefix = SharedApacheKafka.uniquePrefix()
        let brokers = ["--brokers", try #require(SharedApacheKafka.current).bootstrapServers, "--prefix", prefix]
        try await Executable.run(["topics", "list"] + brokers).expect(3)
        let created = try await Executable.run(["topics", "create", "--partitions", "3"] + brokers).expect(0)
        #expect(created.lines.count == 18)
        #expect(
            created.lines[1] == """
                \(prefix)jobs: created, 3 partitions, 1 replica, \
                cleanup.policy=delete min.insync.replicas=1 retention.ms=604800000
                """)
        let again = try await Executable.run(["topics", "create", "--partitions", "3", "--json"] + brokers).expect(0)
        #expect(try again.json().allSatisfy { $0.at("outcome") == "existed" })
        let list = try await Executable.run(["topics", "list"] + brokers).expect(0)
        #expect(list.lines.contains("\(prefix)events: 3 partitions, 1 replica"))

        // A job that no worker processes.
        let submit = try await Executable.run(["submit", "https://example.org/a.jpg", "--id", "first"] + brokers)
            .expect(0)
        #expect(submit.lines == ["first"])
        // The doctor waits five seconds for Kafka.
        let doctor = try await firstValue("the doctor has reached Kafka") { () async throws -> Run? in
            let run = try await Executable.run(["doctor"] + brokers)
            return run.output.contains("events not yet delivered by group") ? run : nil
        }
        #expect(doctor.output.contains("\(prefix)jobs 1, \(prefix)jobs.low 0,"), "\(doctor)")
        #expect(doctor.output.contains("; it has never committed"), "\(doctor)")
        #expect(
            doctor.output.contains(
                "events not yet delivered by group halcyon-workers-notifications: \(prefix)events 0"),
            "\(doctor)")
        let tooMany = try await Executable.run(
            ["topics", "create", "--replication", "3"] + brokers.dropLast() + ["\(prefix)other."]
        ).expect(1)
        #expect(tooMany.output.contains("\(prefix)other.jobs: not created"))
    }
}
