import CLinux
import CRdKafka
import Glibc
import Threads

/// A Kafka cluster inside this process: librdkafka's mock cluster, which most Kafka clients can connect to. (Apache's own, from version 4 on, finds no
/// node there that it would ask: seen with 4.1.1 and librdkafka 2.0.)
///
/// For development and tests. It listens on free ports of 127.0.0.1 and keeps everything in memory: the newest 5 MB a
/// partition, and what is older is gone, read or not. It does not know admin requests (use
/// ``createTopic(_:partitions:)``), look-ups by time, or isolation (aborted records are seen, offsets sent to a
/// transaction are lost). It refuses commits while a group rebalances, which Apache Kafka takes from members that have
/// not rejoined yet. Topics that a client asks for are made by themselves, with four partitions.
///
/// It waits out `fetch.wait.max.ms` even when data comes meanwhile: give consumers of it `fetch.wait.max.ms=10`. With
/// librdkafka before 2.8 the first member of a group waits 3 s for others.
///
/// ``stop()`` must be called before the last reference goes.
///
/// `@unchecked Sendable`: librdkafka hands every call over to the cluster's own thread.
public final class MockCluster: @unchecked Sendable {
    private let client: Client
    private let cluster: OpaquePointer
    private let stopped = Lock(false)

    /// `bootstrap.servers` for clients.
    public let bootstrapServers: String

    /// Starts the brokers, with the ids 1, 2, …
    /// - Throws: ``KafkaError`` when they cannot be started.
    public init(brokers: Int = 1, events: ClientEvents = ClientEvents()) throws(KafkaError) {
        client = try Client(RD_KAFKA_PRODUCER, properties: [:], events: events)
        guard let cluster = rd_kafka_mock_cluster_new(client.pointer, Int32(clamping: brokers)) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, "the mock cluster does not start")
        }
        self.cluster = cluster
        crdkafka_mock_join_at_once(cluster)
        bootstrapServers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    }

    /// Makes a topic.
    /// - Throws: ``KafkaError/Code/topicAlreadyExists``.
    public func createTopic(_ name: String, partitions: Int) throws(KafkaError) {
        let code = rd_kafka_mock_topic_create(cluster, name, Int32(clamping: partitions), 1)
        if let error = KafkaError(unlessNone: code) { throw error }
    }

    /// Cuts all connections and takes no new ones, or takes them again. What was stored stays.
    public func setDown(_ isDown: Bool) {
        guard isDown else {
            rd_kafka_mock_broker_set_up(cluster, -1)
            return
        }
        // A mock broker that goes down closes its socket and binds the port anew, and aborts the process where that fails: while a child that is
        // being started holds a copy that listens.
        let ports = bootstrapServers.split(separator: ",").compactMap { UInt16($0.drop { $0 != ":" }.dropFirst()) }
        let kept = ports.map { clinux_end_listening($0) }
        rd_kafka_mock_broker_set_down(cluster, -1)
        for socket in kept where socket >= 0 { close(socket) }
    }

    /// Holds every answer back for this long.
    public func setRoundTripTime(_ time: Duration) {
        rd_kafka_mock_broker_set_rtt(cluster, -1, time.milliseconds)
    }

    /// Answers the next requests of a kind with these errors, one each.
    /// - Parameter apiKey: a request's number in the Kafka protocol: 0 produce, 1 fetch, 8 offset commit, …
    public func failRequests(_ apiKey: Int16, with codes: [KafkaError.Code]) {
        let codes = codes.map { rd_kafka_resp_err_t($0.rawValue) }
        rd_kafka_mock_push_request_errors_array(cluster, apiKey, codes.count, codes)
    }

    /// Ends the brokers. A second call does nothing.
    public func stop() async {
        await blocking { [self] in
            let first = stopped.withLock { stopped in
                defer { stopped = true }
                return !stopped
            }
            guard first else { return }
            rd_kafka_mock_cluster_destroy(cluster)
            client.destroy()
        }
    }
}
