import Concurrency
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// Job consumers that join and leave, on real brokers.
@Suite(.limitedParallelism, .sharedApacheKafka, .serialized) struct JobConsumerTests {
    /// Options with a revocation timeout of ten minutes, which expires only if a consumer waits for an unstarted job.
    /// The last commit of a partition, without which jobs are repeated, may take long on a busy machine.
    static var options: JobConsumer.Options {
        var options = JobConsumer.Options()
        options.window = 5000
        (options.revocationTimeout, options.commitTimeout) = (.seconds(600), .seconds(60))
        return options
    }

    static func names(_ numbers: some Sequence<Int>) -> Set<String> { Set(numbers.map(String.init)) }

    @Test(arguments: BrokerKind.available)
    func drainReturnsWaitingJobsToTheNextConsumer(_ broker: BrokerKind) async throws {
        try await ConsumerFixture.with(broker, partitions: 2) { fixture in
            try await fixture.submit(0..<2000)
            // Every seventh job completes and two are in flight. Most of them follow waiting jobs.
            let first = ScriptedJobHandler {
                Int($0)! % 7 == 0 ? .completes : ["5", "1000"].contains($0) ? .starts : .waits
            }
            let consumer = first.consumer(Self.options)
            try await fixture.start(consumer)
            try await until("all jobs are received") { first.received.count == 2000 }
            async let left = consumer.shutdown(gracePeriod: .seconds(600))
            try await until("all waiting jobs are revoked") { first.revoked.count == 2000 - 286 - 2 }
            #expect(first.started.count == 2)
            first.completeStarted()
            #expect(await left == 0)
            #expect(first.startedAfterRevocation == 0)
            #expect(first.completed.count == 288)

            let metrics = Metrics()
            let second = ScriptedJobHandler { _ in .completes }
            let next = second.consumer(Self.options, metrics: metrics)
            try await fixture.start(next)
            try await until("the other jobs have completed") { first.completed.count + second.completed.count >= 2000 }
            #expect(Set(first.completed).isDisjoint(with: second.received))
            #expect(Set(first.completed + second.completed) == Self.names(0..<2000))
            #expect(await next.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(second.received.count == 2000 - 288)
            // Jobs that the first completed beyond the committed offset.
            #expect(DeliveryMetrics(metrics).skipped.value > 200)
        }
    }

    /// Needs Apache Kafka, because the mock cluster rejects commits during a rebalance.
    @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func rebalanceWaitsOnlyForStartedJobs() async throws {
        try await ConsumerFixture.with(.apache, partitions: 4) { fixture in
            try await fixture.submit(0..<4000)
            let isWaiting = Lock(true)
            let first = ScriptedJobHandler { name in
                guard isWaiting.withLock({ $0 }) else { return .completes }
                return Int(name)! % 3 == 0 ? .completes : Int(name)! % 100 == 1 ? .starts : .waits
            }
            let one = first.consumer(Self.options)
            try await fixture.start(one)
            try await until("all jobs are received") { first.received.count == 4000 }
            let started = Set(first.started)
            #expect(started.count > 20)

            let second = ScriptedJobHandler { _ in .completes }
            let other = second.consumer(Self.options)
            try await fixture.start(other)
            try await until("waiting jobs are revoked") { !first.revoked.isEmpty }
            #expect(second.received.isEmpty)
            // The first may be assigned all partitions again before the second joins, for example because topics are
            // discovered later.
            try await until("the second has received jobs") {
                first.completeStarted()
                return !second.received.isEmpty
            }
            isWaiting.withLock { $0 = false }
            try await until("all jobs have completed") {
                // A job may have been told to wait just before.
                first.completeAll()
                return first.completed.count + second.completed.count >= 4000
            }
            #expect(await one.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(await other.shutdown(gracePeriod: .seconds(600)) == 0)
            // Each job was completed once, by one of them.
            #expect((first.completed + second.completed).count == 4000)
            #expect(Set(first.completed + second.completed) == Self.names(0..<4000))
            #expect(!second.completed.isEmpty && started.isDisjoint(with: second.received))
            #expect(first.startedAfterRevocation == 0)
        }
    }

    @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func rebalanceWaitsNoLongerThanItsTimeout() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            try await fixture.submit(0..<10)
            var options = Self.options
            options.revocationTimeout = .milliseconds(200)
            let first = ScriptedJobHandler { $0 == "3" ? .starts : .completes }
            let one = first.consumer(options)
            try await fixture.start(one)
            try await until("all jobs but one have completed") { first.completed.count == 9 && first.started == ["3"] }
            // The partition stays or moves. In both cases it is revoked first.
            let second = ScriptedJobHandler { _ in .completes }
            let other = second.consumer(options)
            try await fixture.start(other)
            try await until("the job is received again") { first.received.count + second.received.count >= 11 }
            // Completed jobs are not received again.
            #expect((first.received + second.received).allSatisfy { $0 == "3" || first.completed.contains($0) })
            #expect(second.received.allSatisfy { $0 == "3" } && first.received.count { $0 != "3" } == 9)
            _ = await one.shutdown(gracePeriod: .zero)
            _ = await other.shutdown(gracePeriod: .zero)
        }
    }

    /// The offsets of a group are unstable while a transaction with a commit is open. If the group rebalances meanwhile,
    /// librdkafka (2.0.2) may take unstable offsets for missing ones and apply `auto.offset.reset`.
    @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func repeatsNoCommittedJobAfterRebalancesDuringATransaction() async throws {
        let partitions = 8
        try await ConsumerFixture.with(.apache, partitions: partitions) { fixture in
            try await fixture.submit(0..<1000)
            let first = ScriptedJobHandler { _ in .completes }
            let one = first.consumer(Self.options)
            try await fixture.start(one)
            try await until("all jobs have completed") { first.completed.count == 1000 }
            let topic = fixture.topics.jobs(.normal)
            let offsets = one.consumer.withLock { $0 }!.ends(
                of: (0..<partitions).map { TopicPartition(topic, Int32($0)) })
            // The transaction must not expire before the last rebalance. The brokers permit no more by default.
            let properties = ["transactional.id": fixture.topics.prefix, "transaction.timeout.ms": "900000"]
            let producer = try TransactionalProducer(
                properties: fixture.kafka.producer.merging(properties) { $1 })
            try await producer.initialize(within: .seconds(60))
            try await producer.begin()
            try await producer.sendOffsets(offsets.mapValues { GroupOffset($0) }, of: try await one.membership())
            #expect(await one.shutdown(gracePeriod: .seconds(600)) == 0)

            let second = ScriptedJobHandler { _ in .completes }
            let member = second.consumer(Self.options)
            try await fixture.start(member)
            await member.waitForAssignment()
            for _ in 0..<12 {
                let other = second.consumer(Self.options)
                try await fixture.start(other)
                await other.waitForAssignment()
                #expect(await other.shutdown(gracePeriod: .seconds(600)) == 0)
            }
            try await producer.commit(within: .seconds(60))
            await producer.close()
            try await fixture.submit(1000..<1100)
            try await until("the new jobs have completed") {
                Set(second.completed).isSuperset(of: Self.names(1000..<1100))
            }
            #expect(second.received.filter { Int($0)! < 1000 }.count == 0)
            #expect(await member.shutdown(gracePeriod: .seconds(600)) == 0)
        }
    }

    /// The jobs of the small flow are the last of the partition.
    @Test(arguments: BrokerKind.available) func aFlowPassesTheFloodOfAnother(_ broker: BrokerKind) async throws {
        try await ConsumerFixture.with(broker, partitions: 1) { fixture in
            let names = (0..<3000).map { "big:\($0)" } + (0..<20).map { "small:\($0)" }
            try await fixture.submitInOrder(names)
            var options = Self.options
            (options.window, options.reserve, options.lookahead) = (100, 4, 5000)
            let first = ScriptedJobHandler { $0.hasPrefix("small") ? .completes : .waits }
            let consumer = first.consumer(options)
            try await fixture.start(consumer)
            try await until("all jobs of the small flow have completed") { first.completed.count == 20 }
            #expect(first.received.count { $0.hasPrefix("big") } == 100)
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)

            let second = ScriptedJobHandler { _ in .completes }
            let next = second.consumer(options)
            try await fixture.start(next)
            try await until("all jobs of the big flow have completed") { second.completed.count >= 3000 }
            #expect(await next.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(Set(second.completed) == Set(names.dropLast(20)))
        }
    }

    @Test func delayedRecordsAreNoLag() async throws {
        try await ConsumerFixture.with(.mock, partitions: 1) { fixture in
            try await fixture.submitInOrder(["a", "b", "c"])
            try await fixture.submitInOrder(["d", "e"], to: fixture.topics.delays[0])
            try await fixture.submitInOrder(["f"], to: fixture.topics.retries[0])
            try await fixture.submitInOrder(["g"], to: fixture.topics.overflow)
            let (handler, metrics) = (ScriptedJobHandler { _ in .waits }, Metrics())
            var options = Self.options
            options.delayed = Set(fixture.topics.delays + fixture.topics.retries)
            let consumer = handler.consumer(options, metrics: metrics)
            try await fixture.start(consumer)
            try await until("all jobs are received") { handler.received.count == 7 }
            #expect(metrics.value(of: "halcyon_lag_offsets") == 4)
            #expect(metrics.value(of: "halcyon_delayed_offsets") == 3)
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)
        }
    }

    @Test(arguments: BrokerKind.available) func redeliversAndCountsUntrackedJobs(_ broker: BrokerKind) async throws {
        try await ConsumerFixture.with(broker, partitions: 1) { fixture in
            try await fixture.submitInOrder(0..<100)
            var options = Self.options
            // Room for the frame and two runs of one.
            options.metadataLimit = 16
            let metrics = Metrics()
            let first = ScriptedJobHandler { Int($0)! % 2 == 1 ? .completes : .waits }
            let consumer = first.consumer(options, metrics: metrics)
            try await fixture.start(consumer)
            try await until("all jobs are received") { first.received.count == 100 }
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(DeliveryMetrics(metrics).untracked.value == 48)

            let second = ScriptedJobHandler { _ in .completes }
            let next = second.consumer(Self.options)
            try await fixture.start(next)
            try await until("the other jobs have completed") { Set(first.completed + second.completed).count == 100 }
            try await until("all untracked jobs are received") { second.received.count == 98 }
            #expect(Set(first.completed).subtracting(second.received).count == 2)
            _ = await next.shutdown(gracePeriod: .seconds(600))
        }
    }

    @Test(.apacheKafkaWithLittleMetadata, .enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func commitsOffsetsOnlyWhenMetadataIsRejected() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            try await fixture.submitInOrder(0..<20)
            // The first two jobs of the partition complete, and one in the middle.
            let first = ScriptedJobHandler { ["0", "1", "10"].contains($0) ? .completes : .waits }
            let consumer = first.consumer(Self.options)
            try await fixture.start(consumer)
            try await until("all jobs are received") { first.received.count == 20 }
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)

            let second = ScriptedJobHandler { _ in .completes }
            let next = second.consumer(Self.options)
            try await fixture.start(next)
            try await until("all jobs beyond the committed offset are completed") { second.completed.count == 18 }
            #expect(second.completed.contains("10"))
            _ = await next.shutdown(gracePeriod: .seconds(600))
        }
    }

    @Test func retriesFetchingCommittedOffsets() async throws {
        try await ConsumerFixture.with(.mock, partitions: 1) { fixture in
            try await fixture.submitInOrder(0..<10)
            // OffsetFetch, by the consumer and by librdkafka itself: COORDINATOR_LOAD_IN_PROGRESS.
            fixture.mock?.failRequests(9, with: Array(repeating: KafkaError.Code(rawValue: 14), count: 6))
            let handler = ScriptedJobHandler { _ in .completes }
            let consumer = handler.consumer(Self.options)
            try await fixture.start(consumer)
            try await until("all jobs have completed") { handler.completed.count == 10 }
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)
        }
    }
}

/// Job consumers without a broker.
@Suite struct JobConsumerCommitTests {
    /// A committer whose commits never end, as with a coordinator that does not respond.
    private struct UnansweredCommitter: OffsetCommitter {
        let response = AsyncEvent()

        func commit(_ consumer: JobConsumer) async { await response.wait() }
    }

    @Test(.timeLimit(.minutes(10))) func drainEndsWithoutAResponseToItsCommit() async {
        var options = JobConsumer.Options()
        options.commitTimeout = .milliseconds(10)
        let committer = UnansweredCommitter()
        let consumer = JobConsumer(
            options: options, commits: committer, log: .silent, metrics: Metrics(), receive: { _ in })
        #expect(await consumer.shutdown(gracePeriod: .zero) == 0)
        committer.response.signal()
    }

    /// A committer that notes whether one commit begins before another has ended.
    private struct SlowCommitter: OffsetCommitter {
        let running = Lock(0)
        let mostRunning = Lock(0)

        func commit(_ consumer: JobConsumer) async {
            let count = running.withLock { running in
                running += 1
                return running
            }
            mostRunning.withLock { $0 = max($0, count) }
            await Task.sleepUnlessCancelled(for: .milliseconds(5))
            running.withLock { $0 -= 1 }
        }
    }

    /// A periodic commit has older offsets than the one at the end, and must not arrive after it.
    @Test func commitsDoNotOverlap() async throws {
        try await ConsumerFixture.with(.mock, partitions: 1) { fixture in
            var options = JobConsumer.Options()
            options.commitInterval = .zero
            for _ in 0..<5 {
                let committer = SlowCommitter()
                let consumer = JobConsumer(
                    options: options, commits: committer, log: .silent, metrics: Metrics(), receive: { _ in })
                try await fixture.start(consumer)
                try await until("commits have begun") { committer.mostRunning.withLock { $0 } > 0 }
                _ = await consumer.shutdown(gracePeriod: .zero)
                #expect(committer.mostRunning.withLock { $0 } == 1)
            }
        }
    }
}
