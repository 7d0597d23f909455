import Concurrency
import HalcyonCluster
import JSON
import Kafka
import Measuring
import TestSupport

/// Renderings that miss, by Kafka and by HTTP.
struct Renderings {
    private let fixture: BenchmarkFixture
    /// Of one round.
    private static let count = 300
    /// As many at once keep the worker busy, and are no more than a caller may have under way.
    private static let atOnce = 64
    /// Before anything counts: a young broker takes more processor time than the worker, for it is still being compiled.
    private static let warmUps = 3

    init(_ fixture: BenchmarkFixture) { self.fixture = fixture }

    /// What one way took in each round, for each rendering.
    private struct Figures {
        var rates: [Double] = []
        var worker: [Double] = []
        var gateway: [Double] = []
    }

    func measure(rounds: Int) async throws {
        let events = try await Events(fixture.broker.bootstrapServers)
        var (kafka, http) = (Figures(), Figures())
        for round in 0..<Self.warmUps {
            try await byHTTP(sources("warm-http-\(round)-"))
            try await events.end(of: sources("warm-kafka-\(round)-"))
        }
        for round in 0..<rounds {
            for isHTTP in round % 2 == 0 ? [false, true] : [true, false] {
                let sources = sources("\(isHTTP)-\(round)-")
                let (worker, gateway) = (processorTime(of: fixture.worker.pid), processorTime(of: fixture.gateway.pid))
                let time = try await ContinuousClock().measure {
                    if isHTTP { try await byHTTP(sources) } else { try await events.end(of: sources) }
                }
                func add(_ figures: inout Figures) {
                    let count = Double(Self.count)
                    figures.rates.append(count / (time / .seconds(1)))
                    figures.worker.append((processorTime(of: fixture.worker.pid) - worker) / count)
                    figures.gateway.append((processorTime(of: fixture.gateway.pid) - gateway) / count)
                }
                if isHTTP { add(&http) } else { add(&kafka) }
            }
        }
        await events.close()
        say(
            "renderings of \(fixture.photographs.count) photographs that miss, \(rounds) rounds of \(Self.count), on \(fixture.broker.name)"
        )
        for (name, figures) in [("by Kafka", kafka), ("by HTTP ", http)] {
            say(
                "\(name)  \(decimal(median(figures.rates), 1)) a second; CPU \(decimal(median(figures.worker) * 1e3, 2)) ms of the worker,"
                    + " \(decimal(median(figures.gateway) * 1e3, 2)) ms of the gateway")
        }
        say("by HTTP it is \(quotient(http.rates, kafka.rates)) of the throughput by Kafka")
    }

    /// One round's, which nobody has asked for before.
    private func sources(_ name: String) -> [String] {
        (0..<Self.count).map { fixture.photographs.url($0, name) }
    }

    private func byHTTP(_ sources: [String]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, source) in sources.enumerated() {
                if number >= Self.atOnce { try await group.next() }
                group.addTask { _ = try await fixture.render(source) }
            }
            try await group.waitForAll()
        }
    }
}

/// Jobs that go by Kafka, and their events.
private final class Events: Sendable {
    private let producer: Producer
    private let reader: TopicReader
    private let ended = Lock((ready: 0, failed: 0))
    private let counting: Task<Void, any Error>
    /// Of the ids of its jobs.
    private static let prefix = "kafka-"

    init(_ brokers: String) async throws {
        producer = try Producer(properties: ["bootstrap.servers": brokers, "linger.ms": "2"])
        reader = try await TopicReader.open(
            Topics().events, from: .end, properties: ["bootstrap.servers": brokers, "fetch.wait.max.ms": "10"])
        counting = Task { [reader, ended] in
            // Those of renderings are others.
            for try await record in reader where record.key?.starts(with: Self.prefix.utf8) == true {
                let event = try JSON.parse(record.value ?? [], maximumSize: 1 << 20, maximumDepth: 64)
                let type = try event.member("type")?.string()
                ended.withLock { ended in
                    if type == "halcyon.image.ready" { ended.ready += 1 }
                    if type == "halcyon.image.failed" { ended.failed += 1 }
                }
            }
        }
    }

    /// Returns when the last of these sources' jobs has ended.
    func end(of sources: [String]) async throws {
        let wanted = ended.withLock { $0.ready } + sources.count
        try await withThrowingTaskGroup(of: Void.self) { [producer] group in
            for (number, source) in sources.enumerated() {
                let job = Array(
                    #"{"id":"\#(Self.prefix)\#(number)","source":"\#(source)",\#(BenchmarkFixture.fields)}"#.utf8)
                group.addTask { try await producer.send(ProducerRecord(topic: Topics().jobs(.normal), value: job)) }
            }
            try await group.waitForAll()
        }
        let patience = ContinuousClock.now + .seconds(300)
        while ended.withLock({ $0.ready }) < wanted {
            guard .now < patience, ended.withLock({ $0.failed }) == 0 else {
                throw ConditionTimeout(description: "not all jobs end well")
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    func close() async {
        counting.cancel()
        await reader.close()
        await producer.close()
    }
}
