import Curl
import HalcyonCluster
import Kafka
import Processes
import TestSupport

/// The servers of a run, a worker, a gateway, and a client of it.
final class Ground: Sendable {
    let brokerName: String
    let brokers: String
    let gateway: ChildProcess
    let worker: ChildProcess
    let port: UInt16
    let photographs: Int
    /// Pixels and settings of all images, as a query has them and as a job.
    static let query = "width=400&height=300&format=jpeg&quality=80"
    static let fields = #""width":400,"height":300,"format":"jpeg","quality":80"#
    private let client = CurlClient()
    private let apache: ApacheKafka?
    private let mock: MockCluster?
    private let redis: RedisServer
    private let origin: Nginx
    private let folder: TemporaryFolder

    init(executable: String, photographs: [[UInt8]]) async throws {
        self.photographs = photographs.count
        let topics = Topics()
        folder = TemporaryFolder("photographs")
        for (number, bytes) in photographs.enumerated() { _ = folder.write(bytes, to: "\(number).jpg") }
        origin = try await Nginx.start(serving: folder.path, "expires 1h; access_log off;")
        redis = try await RedisServer.start()
        if ApacheKafka.isAvailable {
            let kafka = try await ApacheKafka()
            try await kafka.start()
            (apache, mock, brokers, brokerName) = (kafka, nil, kafka.bootstrapServers, "Apache Kafka")
            try await kafka.create(topics.all, partitions: 8)
        } else {
            let kafka = try MockCluster()
            for topic in topics.all { try kafka.createTopic(topic, partitions: 8) }
            (apache, mock, brokers, brokerName) = (nil, kafka, kafka.bootstrapServers, "librdkafka's mock cluster")
        }
        port = LoopbackPort.free()
        var options = ChildProcess.Options()
        options.environment = [
            "HALCYON_KAFKA_BROKERS": brokers, "HALCYON_REDIS_URL": "redis://127.0.0.1:\(redis.port)",
            "HALCYON_SOURCES_ALLOW": "127.0.0.0/8", "HALCYON_LOG_LEVEL": "error",
            "HALCYON_GATEWAY_LISTEN": "127.0.0.1:\(port)", "HALCYON_GATEWAY_RATE": "1000000",
            "HALCYON_GATEWAY_BURST": "1000000",
        ]
        options.errors = .inherited
        worker = try await ChildProcess.start(executable, ["worker"], options: options)
        gateway = try await ChildProcess.start(executable, ["gateway"], options: options)
        let port = port
        try await until("the gateway is ready") { try await RawClient(port).get("/readyz").status == 200 }
    }

    /// One of the photographs under a name of its own, so that nothing of it is stored yet.
    func source(_ number: Int, _ tag: String) -> String {
        "\(origin.url)/\(number % photographs).jpg?\(tag)\(number / photographs)"
    }

    /// What the gateway makes of one.
    func render(_ source: String) async throws -> HTTPResponse {
        var request = HTTPRequest(
            .get, "http://127.0.0.1:\(port)/v1/render?source=\(source.escaped)&\(Self.query)&priority=normal")
        (request.timeout, request.stall) = (.seconds(120), nil)
        let response = try await client.perform(request)
        guard response.status == 200 else {
            throw NotInTime(description: "\(response.status): \(String(decoding: response.body, as: UTF8.self))")
        }
        return response
    }

    func remove() async {
        await client.close()
        await gateway.stop()
        await worker.stop()
        await origin.stop()
        await redis.stop()
        await mock?.stop()
        await apache?.remove()
        await folder.remove()
    }
}

extension String {
    /// For a query's value.
    fileprivate var escaped: String {
        utf8.reduce(into: "") { text, byte in
            let isPlain = (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
            text += isPlain ? String(UnicodeScalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
    }
}
