import Kafka
import Testing

@testable import HalcyonCluster

@Suite struct KafkaPropertiesTests {
    private func limit(_ own: [String: String] = [:], revocationTimeout: Duration) -> String? {
        KafkaProperties(brokers: "b:1", properties: own).worker(group: "g", revocationTimeout: revocationTimeout)[
            "max.poll.interval.ms"]
    }

    @Test func pollIntervalIsAMinuteUnlessMoreIsNeeded() {
        #expect(limit(revocationTimeout: .seconds(10)) == "60000")
        #expect(limit(revocationTimeout: .seconds(90)) == "120000")
        #expect(limit(["session.timeout.ms": "100000"], revocationTimeout: .seconds(10)) == "100000")
        #expect(limit(["max.poll.interval.ms": "300000"], revocationTimeout: .seconds(10)) == "300000")
    }

    @Test(arguments: [("2000", "2000"), ("6000", "3000"), ("30000", "10000")])
    func transactionsTimeOutWithinTheSession(session: String, timeout: String) {
        let properties = KafkaProperties(brokers: "b:1", properties: ["session.timeout.ms": session])
        #expect(properties.transactions(group: "g", instance: "a")["transaction.timeout.ms"] == timeout)
        #expect(properties.transactions(group: "g", instance: "a")["transactional.id"] == "g-a")
    }

    @Test(arguments: [
        ([:], "20000"), (["message.timeout.ms": "5000"], "5000"), (["message.timeout.ms": "300000"], "20000"),
        (["message.timeout.ms": "0"], "20000"), (["delivery.timeout.ms": "4000", "acks": "1"], "4000"),
    ])
    func messageTimeoutIsCappedAtTheLimit(own: [String: String], timeout: String) {
        let properties = KafkaProperties(brokers: "b:1", properties: own).producer(within: .seconds(20))
        #expect(properties["message.timeout.ms"] == timeout && properties["delivery.timeout.ms"] == nil)
        #expect(properties["acks"] == own["acks"] ?? "all")
    }

    /// librdkafka rejects longer timeouts of a transactional producer.
    @Test(arguments: ["message.timeout.ms", "delivery.timeout.ms", "socket.timeout.ms"])
    func timeoutsAreCappedAtThatOfTransactions(name: String) async throws {
        func timeout(_ own: [String: String]) -> String? {
            KafkaProperties(brokers: "127.0.0.1:1", properties: own).transactions(group: "g", instance: "a")[name]
        }
        #expect(timeout([:]) == nil)
        #expect(timeout([name: "300000"]) == "5000")
        #expect(timeout([name: "4000"]) == "4000")
        #expect(timeout([name: "0"]) == "5000")
        #expect(timeout([name: "300000", "transaction.timeout.ms": "8000"]) == "8000")
        let properties = KafkaProperties(brokers: "127.0.0.1:1", properties: [name: "300000"])
        let producer = try TransactionalProducer(properties: properties.transactions(group: "g", instance: "a"))
        await producer.close()
    }

    @Test func sessionTimeoutDefaultsToTenSeconds() {
        func session(_ own: [String: String]) -> [String?] {
            let properties = KafkaProperties(brokers: "b:1", properties: own)
            return [properties.notifier(group: "g"), properties.worker(group: "g")].map { $0["session.timeout.ms"] }
        }
        #expect(session([:]) == ["10000", "10000"])
        #expect(session(["session.timeout.ms": "30000"]) == ["30000", "30000"])
        #expect(KafkaProperties(brokers: "b:1").session == .seconds(10))
    }

    @Test func consumerProtocolLeavesTimeoutsToTheBrokers() {
        let properties = KafkaProperties(brokers: "b:1", properties: ["group.protocol": "consumer"]).worker(group: "g")
        for name in ["partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"] {
            #expect(properties[name] == nil)
        }
        #expect(properties["group.protocol"] == "consumer")
    }

    @Test func exactlyOnceForcesReadCommitted() {
        let properties = KafkaProperties(brokers: "b:1", properties: ["isolation.level": "read_uncommitted"])
        #expect(properties.worker(group: "g", exactlyOnce: true)["isolation.level"] == "read_committed")
        #expect(properties.worker(group: "g")["isolation.level"] == "read_uncommitted")
    }
}
