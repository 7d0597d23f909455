import CLinux
import CRdKafka
import Concurrency
import Glibc

/// A Kafka cluster inside this process: librdkafka's mock cluster, to which most Kafka clients can connect. (Apache's
/// own client, from version 4 on, finds no usable node in it: seen with 4.1.1 and librdkafka 2.0.)
///
/// For development and tests. It listens on free ports of 127.0.0.1 and stores everything in memory: the newest 5 MB of
/// each partition. Older records are dropped, read or not. It does not support admin requests (use
/// ``createTopics(_:partitions:)``), lookups by time, or isolation (aborted records are visible, and offsets sent to a
/// transaction are lost). It rejects commits while a group rebalances, whereas Apache Kafka accepts them from members
/// that have not rejoined yet. Topics are created on first use, with four partitions.
///
/// It waits for the whole `fetch.wait.max.ms` even if data arrives meanwhile. Set a short one for its consumers: 10 ms,
/// or more if there are many, because each fetch takes processor time. With librdkafka before 2.8 the first member of a
/// group waits 3 s for others.
///
/// Call ``stop()`` before releasing the last reference, so that the caller knows when it has ended.
///
/// `@unchecked Sendable`: librdkafka passes every call to the cluster's thread.
public final class MockCluster: @unchecked Sendable {
    private let client: Client
    private let cluster: OpaquePointer
    private let stopped = Lock(false)

    /// The value of `bootstrap.servers` for clients.
    public let bootstrapServers: String

    /// Starts the brokers, with the ids 1, 2, …
    /// - Throws: ``KafkaError`` if they cannot be started.
    public init(brokers: Int = 1, events: ClientCallbacks = ClientCallbacks()) throws(KafkaError) {
        client = try Client(RD_KAFKA_PRODUCER, properties: [:], events: events)
        guard let cluster = rd_kafka_mock_cluster_new(client.pointer, Int32(clamping: brokers)) else {
            throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, "cannot start the mock cluster")
        }
        self.cluster = cluster
        crdkafka_mock_join_at_once(cluster)
        bootstrapServers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    }

    /// Creates topics with this number of partitions each.
    /// - Throws: ``KafkaError/Code/topicAlreadyExists``.
    public func createTopics(_ names: [String], partitions: Int) async throws(KafkaError) {
        // The calls wait for the cluster's thread. With librdkafka 2.0.2, one in twelve does not wake it, and takes the
        // second that it sleeps. Connections wake it.
        let waking = Task { [ports] in
            while await Task.sleepUnlessCancelled(for: .milliseconds(5)) { ports.forEach(Self.connect) }
        }
        defer { waking.cancel() }
        try await blocking { [self] () throws(KafkaError) in
            for name in names {
                let code = rd_kafka_mock_topic_create(cluster, name, Int32(clamping: partitions), 1)
                if let error = KafkaError(unlessNone: code) { throw error }
            }
        }
    }

    private var ports: [UInt16] {
        bootstrapServers.split(separator: ",").compactMap { UInt16($0.drop { $0 != ":" }.dropFirst()) }
    }

    /// Connects to a port and closes the connection.
    private static func connect(to port: UInt16) {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { return }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        _ = withUnsafeBytes(of: &address) {
            Glibc.connect(socket, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        close(socket)
    }

    /// Closes all connections and refuses new ones, or accepts them again. Stored data is preserved.
    public func setDown(_ isDown: Bool) async {
        await blocking { [self] in
            guard isDown else {
                rd_kafka_mock_broker_set_up(cluster, -1)
                return
            }
            // A mock broker that goes down closes its socket and binds the port again. It aborts the process if that
            // fails, which happens while a child process that is being started holds a listening copy.
            let kept = ports.map { clinux_end_listening($0) }
            rd_kafka_mock_broker_set_down(cluster, -1)
            for socket in kept where socket >= 0 { close(socket) }
        }
    }

    /// Delays every response by this time.
    public func setRoundTripTime(_ time: Duration) async {
        await blocking { [self] in _ = rd_kafka_mock_broker_set_rtt(cluster, -1, time.milliseconds) }
    }

    /// Makes the next requests of a kind fail with these errors, one each.
    /// - Parameter apiKey: The request's number in the Kafka protocol: 0 produce, 1 fetch, 8 offset commit, …
    public func failRequests(_ apiKey: Int16, with codes: [KafkaError.Code]) {
        let codes = codes.map { rd_kafka_resp_err_t($0.rawValue) }
        rd_kafka_mock_push_request_errors_array(cluster, apiKey, codes.count, codes)
    }

    /// Stops the brokers. A second call does nothing.
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

    deinit {
        if stopped.withLock({ $0 }) { return }
        // It was not stopped. librdkafka aborts the process if the client is destroyed before its cluster.
        let (cluster, client) = (SendablePointer(cluster), client)
        _ = NamedThread(name: "kafka-destroy") {
            rd_kafka_mock_cluster_destroy(cluster.value)
            client.destroy()
        }
    }
}
