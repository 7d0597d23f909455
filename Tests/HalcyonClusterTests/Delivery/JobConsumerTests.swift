import Concurrency
import Kafka
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCluster

/// Consumers of jobs that come and go, on real brokers.
@Suite(.limitedParallelism, .sharedApacheKafka, .serialized) struct JobConsumerTests {
    /// Patience that no test waits for: whoever waited for a job that has not begun would not come to an end.
    static var options: JobConsumer.Options {
        var options = JobConsumer.Options()
        options.window = 5000
        options.revocationTimeout = .seconds(600)
        return options
    }

    static func names(_ numbers: some Sequence<Int>) -> Set<String> { Set(numbers.map(String.init)) }

    @Test(arguments: Broker.available)
    func aDrainHandsBackWhatWaitsAndTheNextDoesThatAlone(_ broker: Broker) async throws {
        try await ConsumerFixture.with(broker, partitions: 2) { fixture in
            try await fixture.submit(0..<2000)
            // Every seventh has ended, and two are under way: most of them stand behind jobs that wait.
            let first = Hands { Int($0)! % 7 == 0 ? .endsAtOnce : ["5", "1000"].contains($0) ? .isBegun : .waits }
            let consumer = first.consumer(Self.options)
            try await fixture.start(consumer)
            try await until("all are taken") { first.taken.count == 2000 }
            async let left = consumer.shutdown(gracePeriod: .seconds(600))
            try await until("all that wait are recalled") { first.revoked.count == 2000 - 286 - 2 }
            #expect(first.begun.count == 2)
            first.finish()
            #expect(await left == 0)
            #expect(first.begunThoughRecalled == 0)
            #expect(first.ended.count == 288)

            let metrics = Metrics()
            let second = Hands { _ in .endsAtOnce }
            let next = second.consumer(Self.options, metrics: metrics)
            try await fixture.start(next)
            try await until("the rest has ended") { first.ended.count + second.ended.count >= 2000 }
            #expect(Set(first.ended).isDisjoint(with: second.taken))
            #expect(Set(first.ended + second.ended) == Self.names(0..<2000))
            #expect(await next.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(second.taken.count == 2000 - 288)
            // Those of the first whose offsets the committed one had not passed.
            #expect(DeliveryMetrics(metrics).skipped.value > 200)
        }
    }

    /// The mock cluster refuses commits while a group rebalances, so there this would be another test.
    @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func aRebalanceWaitsForWhatHasBegunAlone() async throws {
        try await ConsumerFixture.with(.apache, partitions: 4) { fixture in
            try await fixture.submit(0..<4000)
            let isWaiting = Lock(true)
            let first = Hands { name in
                guard isWaiting.withLock({ $0 }) else { return .endsAtOnce }
                return Int(name)! % 3 == 0 ? .endsAtOnce : Int(name)! % 100 == 1 ? .isBegun : .waits
            }
            let one = first.consumer(Self.options)
            try await fixture.start(one)
            try await until("all are taken") { first.taken.count == 4000 }
            let begun = Set(first.begun)
            #expect(begun.count > 20)

            let second = Hands { _ in .endsAtOnce }
            let other = second.consumer(Self.options)
            try await fixture.start(other)
            try await until("what waits is recalled") { !first.revoked.isEmpty }
            #expect(second.taken.isEmpty)
            // The first may be given everything anew before the second is in the group: topics that it hears of later
            // are reason enough.
            try await until("the second has its share") {
                first.finish()
                return !second.taken.isEmpty
            }
            isWaiting.withLock { $0 = false }
            first.finishAll()
            try await until("all have ended") { first.ended.count + second.ended.count >= 4000 }
            #expect(await one.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(await other.shutdown(gracePeriod: .seconds(600)) == 0)
            // Each by one of them, and once.
            #expect((first.ended + second.ended).count == 4000)
            #expect(Set(first.ended + second.ended) == Self.names(0..<4000))
            #expect(!second.ended.isEmpty && begun.isDisjoint(with: second.taken))
            #expect(first.begunThoughRecalled == 0)
        }
    }

    @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func aRebalanceWaitsNoLongerThanItsPatience() async throws {
        try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
            try await fixture.submit(0..<10)
            var options = Self.options
            options.revocationTimeout = .milliseconds(200)
            let first = Hands { $0 == "3" ? .isBegun : .endsAtOnce }
            let one = first.consumer(options)
            try await fixture.start(one)
            try await until("all but one have ended") { first.ended.count == 9 && first.begun == ["3"] }
            // The one partition stays with whom it was or moves: either way it is taken away first.
            let second = Hands { _ in .endsAtOnce }
            let other = second.consumer(options)
            try await fixture.start(other)
            try await until("it is taken again") { first.taken.count + second.taken.count >= 11 }
            // What had ended is not.
            #expect((first.taken + second.taken).allSatisfy { $0 == "3" || first.ended.contains($0) })
            #expect(second.taken.allSatisfy { $0 == "3" } && first.taken.count { $0 != "3" } == 9)
            _ = await one.shutdown(gracePeriod: .zero)
            _ = await other.shutdown(gracePeriod: .zero)
        }
    }

    @Test(arguments: Broker.available) func whatFindsNoRoomInTheMapIsDoneAgainAndSaid(_ broker: Broker) async throws {
        try await ConsumerFixture.with(broker, partitions: 1) { fixture in
            try await fixture.submitInOrder(0..<100)
            var options = Self.options
            // The frame, and two runs of one.
            options.metadataLimit = 16
            let metrics = Metrics()
            let first = Hands { Int($0)! % 2 == 1 ? .endsAtOnce : .waits }
            let consumer = first.consumer(options, metrics: metrics)
            try await fixture.start(consumer)
            try await until("all are taken") { first.taken.count == 100 }
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)
            #expect(DeliveryMetrics(metrics).untracked.value == 48)

            let second = Hands { _ in .endsAtOnce }
            let next = second.consumer(Self.options)
            try await fixture.start(next)
            try await until("the rest has ended") { Set(first.ended + second.ended).count == 100 }
            try await until("all has come") { second.taken.count == 98 }
            #expect(Set(first.ended).subtracting(second.taken).count == 2)
            _ = await next.shutdown(gracePeriod: .seconds(600))
        }
    }

    @Test(.enabled(if: ApacheKafka.isAvailable, "KAFKA_HOME is not set"))
    func brokersThatTakeNoSuchMetadataGetTheOffsetsAlone() async throws {
        let kafka = try await ApacheKafka(properties: ["offset.metadata.max.bytes=12"])
        do {
            try await kafka.start()
            try await SharedApacheKafka.$current.withValue(kafka) {
                try await ConsumerFixture.with(.apache, partitions: 1) { fixture in
                    try await fixture.submitInOrder(0..<20)
                    // The head of the partition ends, and one in its midst.
                    let first = Hands { ["0", "1", "10"].contains($0) ? .endsAtOnce : .waits }
                    let consumer = first.consumer(Self.options)
                    try await fixture.start(consumer)
                    try await until("all are taken") { first.taken.count == 20 }
                    #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)

                    let second = Hands { _ in .endsAtOnce }
                    let next = second.consumer(Self.options)
                    try await fixture.start(next)
                    try await until("all that was not committed has come") { second.ended.count == 18 }
                    #expect(second.ended.contains("10"))
                    _ = await next.shutdown(gracePeriod: .seconds(600))
                }
            }
        } catch {
            await kafka.remove()
            throw error
        }
        await kafka.remove()
    }

    @Test func jobsAreTakenThoughTheFirstAnswersDoNotSayWhatWasCommitted() async throws {
        try await ConsumerFixture.with(.mock, partitions: 1) { fixture in
            try await fixture.submitInOrder(0..<10)
            // OffsetFetch, by the consumer and by librdkafka itself: COORDINATOR_LOAD_IN_PROGRESS.
            fixture.mock?.failRequests(9, with: Array(repeating: KafkaError.Code(rawValue: 14), count: 6))
            let hands = Hands { _ in .endsAtOnce }
            let consumer = hands.consumer(Self.options)
            try await fixture.start(consumer)
            try await until("all have ended") { hands.ended.count == 10 }
            #expect(await consumer.shutdown(gracePeriod: .seconds(600)) == 0)
        }
    }
}
